"""``epicqa explain`` as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicqa.corpus.store import CorpusStore
from epicqa.ranking import Ranking
from epicqa.runs import write_run

JUDGED = {
    "question_id": "EQ001",
    "nuggets": [{"nugget_id": f"EQ001-N{i}", "nugget": f"fact {i}"} for i in range(4)],
    "annotations": [
        {"sentence_id": "a-C000-S001", "nugget_ids": ["EQ001-N0"]},
        {"sentence_id": "a-C000-S002", "nugget_ids": ["EQ001-N0", "EQ001-N1"]},
        {"sentence_id": "b-C000-S000", "nugget_ids": ["EQ001-N1"]},
        {"sentence_id": "c-C000-S004", "nugget_ids": ["EQ001-N2"]},
    ],
}
EMPTY = {"question_id": "EQ009", "nuggets": [], "annotations": []}

Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def judgments(tmp_path: Path) -> Path:
    path = tmp_path / "judgments.json"
    missing = {**JUDGED, "question_id": "EQ005"}
    path.write_text(json.dumps([JUDGED, EMPTY, missing]))
    return path


@pytest.fixture
def run(tmp_path: Path, judgments: Path) -> Path:
    path = tmp_path / "run.tsv"
    passages = ["a-C000-S000:a-C000-S001", "a-C000-S001:a-C000-S003", "d-C000-S000:d-C000-S001"]
    passages += ["b-C000-S000:b-C000-S000", "b-C000-S001:b-C000-S001", "a-C000-S004:b-C000-S002"]
    path.write_text("".join(f"EQ001 Q0 {one} {i} {99 - i} tag\n" for i, one in enumerate(passages, 1)))
    manifest = {
        "epicqa_manifest": 1,
        "index": "small",
        "index_fingerprint": "f1",
        "judgments": str(judgments),
    }
    path.with_suffix(".json").write_text(json.dumps(manifest))
    return path


def test_page(epicqa: Cli, run: Path, index: str) -> None:
    done = epicqa("explain", run, "--question", "EQ001")
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    # a-C000-S000:S001 has 1 nugget in 2 sentences; S001:S003 has 1 new one in 3: 2 / 3 + 2 / 4 / log2(3).
    assert lines[0].startswith("EQ001  NDNS exact 0.")
    assert " = DNS 0.9821 / ideal " in lines[0]
    assert lines[1] == "run tag: 6 passages, 2 of 3 nuggets found"
    assert lines[2] == "published definition, ideal ranking by beam search"
    assert "   1  gain 0.6667 / 1.0000 = 0.6667   NDNS 0." in done.out
    for said in (
        "      at      a-C000-S000:S001  a\n",
        "      F S000  One.\n      N S001  Two.  +N0\n      new     N0  fact 0\n",
        "      R S001  Two.  =N0\n      N S002  Tri.  +N1  =N0\n      F S003  Qua.\n",
        "      new     N1  fact 1\n",
        "ranks 3-6: nothing new (2 unjudged, 1 redundant, 1 filler)",
        "Never found (1)\n      N2      fact 2  (in c-C000-S004; ideal rank",
    ):
        assert said in done.out, said
    assert "\x1b" not in done.out
    assert not [line for line in lines if line != line.rstrip()]


def test_every_passage(epicqa: Cli, run: Path, index: str) -> None:
    out = epicqa("explain", run, "--question", "EQ001", "--all").out
    assert "nothing new" not in out
    assert "      U S000  One.\n      U S001  Two.\n" in out
    assert "      R S000  One.  =N1\n" in out
    assert "its ends lie in two contexts, so it gains nothing" in out
    assert "a-C000-S004:b-C000-S002" in out
    assert "line 6" in out


def test_depth_folds_and_says_what_comes_below(epicqa: Cli, run: Path, index: str) -> None:
    out = epicqa("explain", run, "--question", "EQ001", "--depth", 1).out
    assert "\n   2  gain" not in out
    assert "Found below rank 1 (1)\n      N1      fact 1  (rank 2; ideal rank 2)\n" in out


def test_ideal_beside(epicqa: Cli, run: Path, index: str) -> None:
    out = epicqa("explain", run, "--question", "EQ001").out
    assert "ideal   gain 1.0000, NDNS 0.4693  a-C000-S001\n              N0  fact 0\n" in out
    assert "ideal   gain 1.0000, NDNS 0.7654  a-C000-S002\n              N1  fact 1\n" in out
    assert "(2 unjudged, 1 redundant, 1 filler); ideal there: gain 1.0000, 1 new\n      nugget\n" in out
    run.write_text("EQ001 Q0 a-C000-S001:a-C000-S001 1 9 tag\n")
    assert "ideal   has the same passage\n" in epicqa("explain", run, "--question", "EQ001").out


def test_tac2020(epicqa: Cli, run: Path, index: str) -> None:
    arguments = ("explain", run, "--question", "EQ001", "--definition", "tac2020", "--measure", "ndcg")
    out = epicqa(*arguments).out
    assert out.startswith("EQ001  ndcg 0.")
    assert "NDCG 0." in out
    assert "tac2020 definition" in out
    # Redundant passages gain again.
    assert "   4  gain 1.0000 / 2.3219 = 0.4307   NDCG" in out
    line = epicqa("explain", run, "--question", "EQ001", "--measure", "ndcg").line()
    assert line == "no measure 'ndcg' in the published definition, expected one of exact, partial, relaxed"


def test_json(epicqa: Cli, run: Path, index: str) -> None:
    done = epicqa("explain", run, "--question", "EQ001", "--json", "--ideal", "best")
    record = json.loads(done.out)
    assert done.out.isascii()
    assert (record["question_id"], record["search"], record["measure"]) == ("EQ001", "best", "exact")
    assert [passage["rank"] for passage in record["passages"]] == [1, 2, 3, 4, 5, 6]
    assert record["passages"][1]["sentences"][1] == {
        "sentence_id": "a-C000-S002",
        "kind": "novel",
        "new": ["EQ001-N1"],
        "seen": ["EQ001-N0"],
    }
    assert record["texts"]["a-C000-S002"] == "Tri."
    assert record["passages"][-1]["ndns"] == record["ndns"]
    assert record["nuggets"][2]["rank"] is None


def test_same_value_as_score(epicqa: Cli, run: Path, index: str) -> None:
    scored = epicqa("score", run, "--format", "tsv", "--questions", "all").out.splitlines()
    values = {tuple(line.split("\t")[1:3]): float(line.split("\t")[3]) for line in scored}
    for measure in ("exact", "partial", "relaxed"):
        found = json.loads(epicqa("explain", run, "--question", "EQ001", "--measure", measure, "--json").out)
        assert found["ndns"] == values["EQ001", measure]


def test_without_an_index(epicqa: Cli, run: Path, index: str, judgments: Path) -> None:
    run.with_suffix(".json").unlink()
    done = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments)
    assert done.status == 0
    assert done.err == (
        "note: ids without their texts, pass --index NAME to see them "
        "(no manifest beside the run names an index)\n"
    )
    assert "F S000   N S001 +N0\n" in done.out
    assert "Two." not in done.out
    assert "fact 0" in done.out
    given = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments, "--index", "small")
    assert (given.status, given.err) == (0, "")
    assert "N S001  Two." in given.out
    line = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments, "--index", "no").line()
    assert "no such index" in line


def test_with_a_real_index(epicqa: Cli, home: Path, sample_store: CorpusStore) -> None:
    run = home / "sample.tsv"
    row = sample_store.row("ppzvnm2d-C000-S001")
    write_run(run, "t", {"EQ001": Ranking.of_sentences(np.array([row]), np.ones(1))}, sample_store)
    manifest = {"epicqa_manifest": 1, "index": "sample", "judgments": "sample"}
    run.with_suffix(".json").write_text(json.dumps(manifest))
    done = epicqa("explain", run, "--question", "EQ001")
    assert (done.status, done.err) == (0, "")
    assert "  Aerosol and surface stability" in done.out or "ppzvnm2d-C000-S001  " in done.out
    assert "N S001  " in done.out
    assert "  +N01  +N02\n" in done.out


def test_index_that_is_gone_or_another(epicqa: Cli, run: Path, index: str) -> None:
    path = run.with_suffix(".json")
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"index": "gone"}))
    done = epicqa("explain", run, "--question", "EQ001")
    assert done.status == 0
    assert done.err.startswith("note: ids without their texts") and "no such index" in done.err
    path.write_text(json.dumps(manifest | {"index_fingerprint": "f2"}))
    done = epicqa("explain", run, "--question", "EQ001")
    assert "index 'small' is not the one that the run was made on" in done.err
    assert "N S001  Two." in done.out


def test_sentence_that_the_index_lacks(epicqa: Cli, run: Path, index: str) -> None:
    run.write_text("EQ001 Q0 a-C000-S002:a-C000-S007 1 9 tag\n")
    done = epicqa("explain", run, "--question", "EQ001")
    assert "F S007  (not in the index)" in done.out


def test_question_missing_from_the_run(epicqa: Cli, run: Path, index: str) -> None:
    done = epicqa("explain", run, "--question", "EQ005")
    assert done.status == 0
    assert done.err == f"note: {run}: no passages for EQ005, so it scores 0; this is the ideal\n"
    assert done.out.startswith("EQ005  NDNS exact 0.0000 = DNS 0.0000 / ideal ")
    assert "N0  fact 0" in done.out
    short = epicqa("explain", run, "--question", "EQ005", "--depth", 1)
    assert "more, --depth shows them" in short.out


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("EQ777", "no question 'EQ777', expected one of EQ001, EQ009, EQ005"),
        ("EQ009", "EQ009: no nuggets in the judgments, so no score to explain"),
    ],
)
def test_questions_that_have_no_score(epicqa: Cli, run: Path, index: str, question: str, said: str) -> None:
    assert said in epicqa("explain", run, "--question", question).line()


def test_other_bad_input(epicqa: Cli, run: Path, tmp_path: Path) -> None:
    assert "No such file" in epicqa("explain", tmp_path / "no.tsv", "--question", "EQ001").line()
    bad = tmp_path / "bad.tsv"
    bad.write_text("EQ001 Q0 a 1 1 t\nEQ001\n")
    assert f"{bad}:1: " in epicqa("explain", bad, "--question", "EQ001").line()
    bad.write_text("EQ001 Q0 a-C000-S000:a-C000-S001 1 1 t\n")
    assert "pass --judgments FILE" in epicqa("explain", bad, "--question", "EQ001").line()


def test_texts_are_shown_as_text(epicqa: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "[red]x[/red] \x1b[2J [link=http://x]y[/link] \u202e <script>"
    judgments = tmp_path / "j.json"
    judgments.write_text(
        json.dumps(
            [
                {
                    "question_id": "EQ001",
                    "nuggets": [{"nugget_id": f"{evil}{i}", "nugget": evil} for i in range(2)],
                    "annotations": [
                        {"sentence_id": "a-C000-S000", "nugget_ids": [f"{evil}0"]},
                        {"sentence_id": "[bold]-C000-S000", "nugget_ids": [f"{evil}1"]},
                    ],
                }
            ]
        )
    )
    run = tmp_path / "run.tsv"
    run.write_text("EQ001 Q0 a-C000-S000:a-C000-S000 1 1 [red]$x$\x1b[1m\n")
    monkeypatch.setenv("COLUMNS", "300")
    done = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments)
    assert done.status == 0
    assert "\x1b" not in done.out and "\u202e" not in done.out
    assert "[red]x[/red]" in done.out
    assert "run [red]$x$ [1m:" in done.out
    assert "[bold]-C000-S000" in done.out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments).out
    assert "\x1b[32m" in coloured
    assert "\x1b[2J" not in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = epicqa("explain", run, "--question", "EQ001", "--judgments", judgments).out
    assert "\x1b[32m" not in plain


def test_absurd_passage(epicqa: Cli, run: Path, index: str) -> None:
    run.write_text("EQ001 Q0 a-C000-S000:a-C000-S999999999 1 9 tag\n")
    done = epicqa("explain", run, "--question", "EQ001")
    assert done.status == 0
    assert "...     999,999,998 more sentences, not listed" in done.out
    assert "N S002  Tri.  +N0  +N1" in done.out


def test_help_and_listing(epicqa: Cli) -> None:
    assert "Show why a RUN scores what it scores" in epicqa("explain", "--help").out
    assert "explain" in epicqa("--help").out
