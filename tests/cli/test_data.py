"""``epicqa data check`` on made-up folders in the published layout."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest


def document(name: str) -> str:
    context = f"{name}-C000"
    sentence = {"sentence_id": f"{context}-S000", "start": 0, "end": 8}
    contexts = [{"section": None, "context_id": context, "text": "One two.", "sentences": [sentence]}]
    return json.dumps({"document_id": name, "metadata": {}, "contexts": contexts}) + "\n"


def write_questions(path: Path, ids: list[str]) -> None:
    texts = {"question": "what?", "query": "what", "background": "why"}
    path.write_text(json.dumps([{"question_id": one, **texts} for one in ids]))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the general questions of the first part need, as many as published; a space in its name."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "the data"
    (folder / "ae").mkdir(parents=True)
    write_questions(folder / "ae" / "general_questions.json", [f"CQ{number:03d}" for number in range(42)])
    (folder / "ae" / "general.jsonl").write_text("".join(document(f"d{number}") for number in range(925)))
    return folder


def test_what_is_there_what_is_missing_and_what_to_do(data: Path, epicqa: Callable) -> None:
    nugget = {"nugget_id": "N", "nugget": "one"}
    annotation = {"sentence_id": "d1-C000-S000", "nugget_ids": ["N"]}
    answered = [{"question_id": "CQ001", "nuggets": [nugget], "annotations": [annotation]}]
    (data / "ae" / "prelim.json").write_text(json.dumps(answered))
    ended = epicqa("data", "check", data)
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0] == f"EPIC-QA in {data}"
    rows = {row[0]: row[1:] for row in map(str.split, lines[3:18]) if row}
    assert rows["ae/general"] == ["925", "925", "ok"]
    assert rows["ae/general_questions.json"] == ["42", "42", "ok"]
    assert rows["e2e/cord19"] == ["0", "236,035", "missing"]
    assert "ae: answers                     1          -  ok" in lines
    missing = lines[lines.index("Missing, and where it is obtained:") + 1 : lines.index("To go on with:")]
    assert len(missing) == 11 and all("https://" in line for line in missing)
    assert any(line.startswith("  e2e/chqa (pages for the public): see https://") for line in missing)
    commands = [shlex.split(line) for line in lines[lines.index("To go on with:") + 1 :]]
    assert commands == [
        ["epicqa", "index", str(data / "ae" / "general.jsonl"), "--name", "ae-general"],
        ["epicqa", "run", "--data", str(data), "--task", "ae", "--questions", "general"],
        ["epicqa", "score", "runs/ae-general.tsv", "--judgments", str(data / "ae" / "prelim.json")],
    ]


def test_json(data: Path, epicqa: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_DATA", str(data))
    ended = epicqa("data", "check", "--json")
    assert (ended.status, ended.err) == (0, "")
    told = json.loads(ended.out)
    assert told["data"] == str(data) and len(told["commands"]) == 2
    (general,) = (one for one in told["parts"] if one["part"] == "ae/general")
    assert general == {
        "part": "ae/general",
        "what": "pages for the public",
        "kind": "documents",
        "found": 925,
        "published": 925,
        "state": "ok",
        "files": [str(data / "ae" / "general.jsonl")],
        "obtained": general["obtained"],
        "problems": [],
    }


def test_what_differs_or_is_malformed_is_status_1(data: Path, epicqa: Callable) -> None:
    write_questions(data / "ae" / "general_questions.json", ["CQ001"])
    ended = epicqa("data", "check", data)
    assert ended.status == 1 and "41 fewer" in ended.out and "--name ae-general" in ended.out
    (data / "ae" / "general_questions.json").write_text("{")
    (data / "e2e" / "ccns-trec").mkdir(parents=True)
    ended = epicqa("data", "check", data)
    assert ended.status == 1 and "malformed" in ended.out and "To go on with" not in ended.out
    assert f"{data}/ae/general_questions.json:1: broken JSON" in ended.out
    assert ended.err == (
        f"warning: {data}/e2e/ccns-trec: looks like e2e/ccns_trec, expected in {data}/e2e under that name\n"
    )
    (data / "ae" / "general_questions.json").unlink()
    # Nothing is wrong, and nothing can be asked.
    assert epicqa("data", "check", data).status == 1


def test_what_a_terminal_would_obey_is_not_printed(data: Path, epicqa: Callable) -> None:
    (data / "ae" / "cord19").mkdir()
    (data / "ae" / "cord19" / "a\x1b[31m.json").write_text("{}")
    (data / "e2e" / "e\x1b[31m" / "chqa").mkdir(parents=True)
    (data / "ae" / "\x1b[31m.json").write_text('[{"nuggets": 1}]')
    ended = epicqa("data", "check", data)
    assert ended.status == 1 and "no document in the track's form" in ended.out and "chqa" in ended.err
    assert "\x1b" not in ended.out + ended.err


def test_bad_input_is_status_2(data: Path, epicqa: Callable) -> None:
    assert epicqa("data", "check", data / "absent").line().startswith(f"{data}/absent: no such folder")
    assert epicqa("data", "check", data.parent).line().endswith(f"expected {data}, where ae/ lies")
    assert epicqa("data", "check").line().endswith("expected DIR or EPICQA_DATA")
