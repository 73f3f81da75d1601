"""``epicqa score --task fever``."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from epicqa.claims.fever_scores import MEASURES


def write(path: str, *lines: object) -> None:
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))


def predicted(claim_id: int, label: str, *evidence: list[object]) -> dict[str, object]:
    return {"id": claim_id, "predicted_label": label, "predicted_evidence": list(evidence)}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The options for three claims; ``p.jsonl`` has a label, and a sentence, that are wrong."""
    monkeypatch.chdir(tmp_path)
    write(
        "claims.jsonl",
        {"id": 1, "label": "SUPPORTS", "claim": "x", "evidence": [[[1, 1, "A", 0]]]},
        {"id": 2, "label": "REFUTES", "claim": "y", "evidence": [[[1, 1, "B", 0], [1, 1, "C", 0]]]},
        {"id": 3, "label": "NOT ENOUGH INFO", "claim": "z", "evidence": [[[1, None, None, None]]]},
    )
    right = predicted(2, "REFUTES", ["B", 0], ["C", 0])
    write("p.jsonl", predicted(1, "SUPPORTS", ["A", 0], ["A", 1]), right, predicted(3, "REFUTES"))
    return ["--task", "fever", "--claims", "claims.jsonl"]


def test_tsv(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert (done.status, done.err) == (0, "")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[0] for row in rows] == list(MEASURES)
    assert [row[1] for row in rows] == [repr(2 / 3), repr(2 / 3), "0.75", "1.0", repr(1.5 / 1.75)]
    assert (
        epicqa("score", "p.jsonl", *files, "--format", "tsv", "--definition", "shared-task").out == done.out
    )


def test_other_formats(epicqa: Callable, files: list[object]) -> None:
    table = epicqa("score", "p.jsonl", *files).out
    assert table.startswith("p.jsonl: FEVER, shared-task definition, 3 claims\n")
    assert [line.split() for line in table.splitlines()[3:9]] == [
        ["fever_score", "0.6667", "2", "3"],
        ["label_accuracy", "0.6667", "2", "3"],
        ["evidence_precision", "0.7500", "1.5", "2"],
        ["evidence_recall", "1.0000", "2", "2"],
        ["evidence_f1", "0.8571", "-", "-"],
        ["label_kappa", "0.5000", "-", "-"],
    ]
    rows = list(csv.reader(io.StringIO(epicqa("score", "p.jsonl", *files, "--format", "csv").out)))
    assert rows[0] == ["measure", "value"] and len(rows) == 6
    assert r"fever\_score & 0.6667" in epicqa("score", "p.jsonl", *files, "--format", "latex").out
    record = json.loads(epicqa("score", "p.jsonl", *files, "--format", "json").out)
    assert (record["task"], record["definition"], record["claims"]) == ("fever", "shared-task", 3)
    assert record["counts"]["evidence_precision"] == {"right": 1.5, "of": 2}
    # Two of three, a third by chance: it stands beside the measures, not among them.
    assert record["label_kappa"] == 0.5 and list(record["values"]) == list(MEASURES)
    assert "evidence_f1" not in record["counts"] and "bootstrap" not in record
    done = epicqa("score", "p.jsonl", *files, "-o", "out.txt")
    assert (done.status, done.out, Path("out.txt").read_text()) == (0, "", table)


def test_bootstrap(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("score", "p.jsonl", *files, "--format", "json", "--bootstrap")
    assert list(json.loads(done.out)["bootstrap"]) == list(MEASURES)
    table = epicqa("score", "p.jsonl", *files, "--bootstrap").out
    assert "bootstrap over claims" in table
    assert ["label_kappa", "0.5000", "-", "-", "-"] in [line.split() for line in table.splitlines()]


def test_by_place_and_by_id(epicqa: Callable, files: list[object]) -> None:
    write("p.jsonl", predicted(2, "REFUTES", ["B", 0], ["C", 0]), predicted(1, "SUPPORTS", ["A", 0]))
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv", "--definition", "by-id")
    assert done.err == "warning: p.jsonl: 1 of 3 claims without a prediction, they count as wrong\n"
    assert done.out.splitlines()[0] == f"fever_score\t{2 / 3!r}"
    line = epicqa("score", "p.jsonl", *files).line()
    assert line.startswith("p.jsonl: 2 predictions, expected 3, one for each claim")
    with Path("p.jsonl").open("a") as more:
        more.write(json.dumps(predicted(3, "NOT ENOUGH INFO")) + "\n")
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert done.err.startswith("warning: p.jsonl: 2 of 3 predictions have another id than the claim at their")
    assert done.out.splitlines()[0] == f"fever_score\t{1 / 3!r}"


def test_labels_only(epicqa: Callable, files: list[object]) -> None:
    write("p.jsonl", *({"id": i, "predicted_label": "SUPPORTS"} for i in (1, 2, 3)))
    done = epicqa("score", "p.jsonl", *files, "--format", "tsv")
    assert done.out == f"label_accuracy\t{1 / 3!r}\n"
    assert done.err == "warning: p.jsonl: labels only, scored by label_accuracy\n"
    table = epicqa("score", "p.jsonl", *files).out.splitlines()
    assert table[3].split() == ["label_accuracy", "0.3333", "1", "3"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([predicted(1, "MAYBE")], "p.jsonl:1: claim 1: 'predicted_label' is 'MAYBE', expected"),
        ([predicted(1, "REFUTES", ["A"])], "p.jsonl:1: claim 1: evidence ['A'], expected [page, line]"),
        ([predicted(9, "REFUTES")], "p.jsonl:1: claim 9: no such claim, expected one of"),
        ([predicted(1, "REFUTES")] * 2, "p.jsonl:2: claim 1: also on line 1, expected each claim once"),
    ],
)
def test_bad_predictions(epicqa: Callable, files: list[object], lines: list[object], message: str) -> None:
    write("p.jsonl", *lines)
    done = epicqa("score", "p.jsonl", *files, "--definition", "by-id", "-o", "out.txt")
    assert done.line().startswith(message)
    assert not Path("out.txt").exists()


def test_bad_claims(epicqa: Callable, files: list[object]) -> None:
    write("claims.jsonl", {"id": 1, "claim": "x"})
    assert "claim 1: its label is not known" in epicqa("score", "p.jsonl", *files).line()
    assert epicqa("score", "p.jsonl", *files[:2]).line().endswith("pass --claims FILE")
    assert epicqa("score", "p.jsonl", "p.jsonl", *files).line().startswith("two files or more, expected one")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--corpus", "c"], "--corpus is for --task scifact, expected none with --task fever"),
        (["-m", "exact"], "--measure is for --task epicqa, expected none with --task fever"),
        (
            ["--definition", "paper"],
            "--definition paper is none of --task fever, expected shared-task or by-",
        ),
        (["--task", "scifact", "--definition", "by-id"], "--definition by-id is none of --task scifact"),
        (["--task", "epicqa"], "--claims is for --task scifact or fever, expected none with --task epicqa"),
    ],
    ids=str,
)
def test_options_of_the_other_tasks(
    epicqa: Callable, files: list[object], options: list[str], message: str
) -> None:
    assert epicqa("score", "p.jsonl", *files, *options).line().startswith(message)


def test_the_released_files(epicqa: Callable, shared: Path) -> None:
    folder = shared / "fever"
    done = epicqa(
        *("score", folder / "scorer" / "predictions.jsonl.gz", "--task", "fever"),
        *("--claims", folder / "paper_dev.jsonl", "--format", "tsv"),
    )
    assert (done.status, done.err) == (0, "")
    values = dict(line.split("\t") for line in done.out.splitlines())
    assert list(values) == list(MEASURES)
    assert (values["fever_score"][:7], values["label_accuracy"][:7]) == ("0.32573", "0.52085")
