"""``epicqa score --task scifact``."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from epicqa.claims.scifact_scores import MEASURES

NAMES = [f"{measure}_{figure}" for measure in MEASURES for figure in ("p", "r", "f1")]


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The options for two claims; ``p.jsonl`` is right but for a sentence too many."""
    monkeypatch.chdir(tmp_path)
    write(
        Path("corpus.jsonl"),
        *({"doc_id": i, "title": "t", "abstract": ["a", "b", "c", "d", "e"]} for i in (7, 8)),
    )
    write(
        Path("claims.jsonl"),
        {"id": 1, "claim": "x", "evidence": {"7": [{"sentences": [0, 1, 2, 3], "label": "SUPPORT"}]}},
        {"id": 2, "claim": "y", "evidence": {}},
    )
    write(
        Path("p.jsonl"),
        {"id": 1, "evidence": {"7": {"sentences": [0, 1, 2, 3, 4], "label": "SUPPORT"}}},
        {"id": 2, "evidence": {}},
    )
    return ["--task", "scifact", "--claims", "claims.jsonl", "--corpus", "corpus.jsonl"]


def test_tsv(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert (done.status, done.err) == (0, "")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[0] for row in rows] == NAMES
    f1 = repr(2 * 0.8 * 1.0 / 1.8)
    assert [row[1] for row in rows] == ["0.8", "1.0", f1, "0.8", "1.0", f1, *["1.0"] * 3, *["0.0"] * 3]
    assert epicqa("score", "p.jsonl", *files, "--format", "tsv", "--definition", "paper").out == done.out


def test_the_leaderboard(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("score", "p.jsonl", *files, "--format", "json", "--definition", "leaderboard")
    record = json.loads(done.out)
    assert (record["task"], record["definition"], record["claims"]) == ("scifact", "leaderboard", 2)
    assert list(record["values"]) == NAMES
    assert record["values"]["abstract_label_rationale_f1"] == 1.0
    assert record["counts"]["sentence_selection_only"] == {"right": 4, "predicted": 5, "gold": 4}
    assert "bootstrap" not in record


def test_bootstrap(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("score", "p.jsonl", *files, "--format", "json", "--bootstrap")
    spread = json.loads(done.out)["bootstrap"]
    assert list(spread) == NAMES and spread["sentence_selection_only_p"].keys() == {
        "deviation",
        "low",
        "high",
    }
    rows = epicqa("score", "p.jsonl", *files, "--format", "tsv", "--bootstrap").out.splitlines()
    first = rows[0].split("\t")
    assert first[:2] == ["sentence_selection_only_p", "0.8"]
    assert list(map(float, first[2:])) == list(spread["sentence_selection_only_p"].values())
    assert "bootstrap over claims" in epicqa("score", "p.jsonl", *files, "--bootstrap").out


def test_other_formats(epicqa: Callable, files: list[object]) -> None:
    table = epicqa("score", "p.jsonl", *files).out
    assert table.startswith("p.jsonl: SciFact, paper definition, 2 claims\n")
    assert table.splitlines()[3].split() == [
        "sentence_selection_only",
        "0.8000",
        "1.0000",
        "0.8889",
        "4",
        "5",
        "4",
    ]
    rows = list(csv.reader(io.StringIO(epicqa("score", "p.jsonl", *files, "--format", "csv").out)))
    assert rows[:2] == [["measure", "value"], ["sentence_selection_only_p", "0.8"]] and len(rows) == 13
    assert (
        r"sentence\_selection\_only & 0.8000" in epicqa("score", "p.jsonl", *files, "--format", "latex").out
    )
    done = epicqa("score", "p.jsonl", *files, "-o", "out.txt")
    assert (done.status, done.out, Path("out.txt").read_text()) == (0, "", table)


def test_a_claim_left_out(epicqa: Callable, files: list[object]) -> None:
    write(Path("p.jsonl"), {"id": 2, "evidence": {}})
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert done.status == 0
    assert done.err == "warning: p.jsonl: 1 of 2 claims without a prediction, they do not count\n"
    line = epicqa("score", "p.jsonl", *files, "--definition", "leaderboard").line()
    assert line.startswith("p.jsonl: claim 1: it has no prediction, expected one for each claim")


def test_steps_of_a_pipeline(epicqa: Callable, files: list[object]) -> None:
    nothing = {"claim_id": 2, "evidence": {}}
    write(Path("r.jsonl"), {"claim_id": 1, "evidence": {"7": [0, 1, 2, 3, 4], "8": []}}, nothing)
    said = {"7": {"label": "SUPPORT", "confidence": 1}, "8": {"label": "NOT_ENOUGH_INFO"}}
    write(Path("l.jsonl"), {"claim_id": 1, "labels": said}, {"claim_id": 2, "labels": {}})
    done = epicqa("score", "r.jsonl", *files, "--format", "tsv")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == NAMES[:3]
    assert done.err == "warning: r.jsonl: rationales only, scored by sentence_selection_only\n"
    done = epicqa("score", "l.jsonl", *files, "--format", "tsv")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == NAMES[6:9]
    whole = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    for pair in (("r.jsonl", "l.jsonl"), ("l.jsonl", "r.jsonl")):
        assert epicqa("score", *pair, *files, "--format", "tsv") == whole
    assert epicqa("score", "l.jsonl", "p.jsonl", *files).line().startswith("two files, of labels and full")
    assert epicqa("score", *["p.jsonl"] * 3, *files).line().startswith("three files or more, expected one")


def test_retrieved_abstracts(epicqa: Callable, files: list[object]) -> None:
    write(Path("p.jsonl"), {"claim_id": 1, "doc_ids": [8]}, {"claim_id": 2, "doc_ids": [8, 7]})
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    rows = ["abstract_hit_one\t0.5", "abstract_hit_all\t0.5", "abstract_recall\t0.0"]
    assert (done.status, done.err, done.out.splitlines()) == (0, "", rows)
    record = json.loads(epicqa("score", "p.jsonl", *files, "--format", "json", "--bootstrap").out)
    assert record["counts"]["abstract_recall"] == {"right": 0, "of": 1}
    assert list(record["bootstrap"]) == list(record["values"])
    assert 0.3 < record["bootstrap"]["abstract_hit_one"]["deviation"] < 0.4
    table = epicqa("score", "p.jsonl", *files).out.splitlines()
    assert [line.split() for line in table[3:6]] == [
        ["abstract_hit_one", "0.5000", "1", "2"],
        ["abstract_hit_all", "0.5000", "1", "2"],
        ["abstract_recall", "0.0000", "0", "1"],
    ]
    write(Path("p.jsonl"), {"claim_id": 2, "doc_ids": []})
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert done.err == "warning: p.jsonl: 1 of 2 claims without a prediction, they do not count\n"
    assert done.out.splitlines()[1] == "abstract_hit_all\t1.0"
    line = epicqa("score", "p.jsonl", *files, "--definition", "leaderboard").line()
    assert line.startswith("p.jsonl: claim 1: it has no prediction, expected one for each claim")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"id": 2, "evidence": {}}, {"id": 1, "evidence": {}}], "p.jsonl:2: claim 1: stands after claim 2"),
        ([{"id": 2, "evidence": {}}, {"id": 2, "evidence": {}}], "p.jsonl:2: claim 2: also on line 1"),
        (
            [{"id": 1, "evidence": {"9": {"sentences": [0], "label": "SUPPORT"}}}],
            "p.jsonl:1: claim 1: document 9 is unknown",
        ),
        (
            [{"id": 1, "evidence": {"7": {"sentences": [5], "label": "SUPPORT"}}}],
            "p.jsonl:1: claim 1: document 7: sentence 5, expected one of the 5 there",
        ),
        ([{"claim_id": 1, "doc_ids": [7, 7]}], "p.jsonl:1: claim 1: document 7 is repeated"),
    ],
)
def test_bad_predictions(epicqa: Callable, files: list[object], lines: list[object], said: str) -> None:
    write(Path("p.jsonl"), *lines)
    assert epicqa("score", "p.jsonl", *files, "-o", "out.txt").line().startswith(said)
    assert not Path("out.txt").exists()


def test_bad_claims_and_corpus(epicqa: Callable, files: list[object]) -> None:
    write(Path("claims.jsonl"), {"id": 1, "claim": ""})
    assert epicqa("score", "p.jsonl", *files).line() == "claims.jsonl:1: claim 1: no text, expected the claim"
    write(Path("claims.jsonl"), {"id": 1, "claim": "x"}, {"id": 2, "claim": "y"})
    assert "claim 1: its evidence is not known" in epicqa("score", "p.jsonl", *files).line()
    Path("corpus.jsonl").write_bytes(b'{"doc_id": 7, "title": "", "abstract": []}\n\xff\n')
    assert epicqa("score", "p.jsonl", *files).line().startswith("corpus.jsonl:2: not UTF-8, expected")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judgments", "j.json"], "--judgments is for --task epicqa, expected none with --task scifact"),
        (["-m", "exact"], "--measure is for --task epicqa, expected none with --task scifact"),
        (["--answered"], "--complete/--answered is for --task epicqa, expected none with --task scifact"),
        (["--ideal", "beam"], "--ideal is for --task epicqa"),
        (["--questions", "all"], "--questions is for --task epicqa"),
        (["--qrels", "q"], "--qrels is for --task epicqa"),
        (["--report", "r"], "--report is for --task epicqa"),
        (
            ["--definition", "tac2020"],
            "--definition tac2020 is none of --task scifact, expected paper or lead",
        ),
        (["--task", "epicqa"], "--claims is for --task scifact or fever, expected none with --task epicqa"),
    ],
    ids=str,
)
def test_options_of_the_other_task(
    epicqa: Callable, files: list[object], options: list[str], said: str
) -> None:
    assert epicqa("score", "p.jsonl", *files, *options).line().startswith(said)


@pytest.mark.parametrize("definition", ["paper", "leaderboard"])
def test_definitions_of_the_other_task(epicqa: Callable, files: list[object], definition: str) -> None:
    line = epicqa("score", "p.jsonl", "--definition", definition).line()
    assert line == f"--definition {definition} is none of --task epicqa, expected published or tac2020"
    assert epicqa("score", "p.jsonl", "--bootstrap").line().startswith("--bootstrap is for --task scifact")


@pytest.mark.parametrize("left", ["--claims", "--corpus"])
def test_files_that_are_needed(epicqa: Callable, files: list[object], left: str) -> None:
    at = files.index(left)
    line = epicqa("score", "p.jsonl", *files[:at], *files[at + 2 :]).line()
    assert line == f"--task scifact needs the claims and their corpus, pass {left} FILE"


def test_the_published_systems(epicqa: Callable, shared: Path) -> None:
    folder = shared / "scifact"
    options = (
        "--task",
        "scifact",
        "--claims",
        folder / "claims_dev.jsonl",
        "--corpus",
        folder / "corpus.jsonl.gz",
    )
    systems = folder / "systems"
    pair = (
        systems / "rationale_selection_dev_scibert_mlm.jsonl",
        systems / "kgat_dev_roberta_large_mlm.jsonl",
    )
    done = epicqa("score", *pair, *options, "--format", "json", "--bootstrap")
    record = json.loads(done.out)
    assert record["counts"]["abstract_label_rationale"] == {"right": 91, "predicted": 108, "gold": 209}
    assert record["counts"]["sentence_selection_label"] == {"right": 145, "predicted": 195, "gold": 366}
    assert 0.02 < record["bootstrap"]["abstract_label_rationale_f1"]["deviation"] < 0.06
