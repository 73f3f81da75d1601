"""``epicqa submit --task fever``."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


def write(path: str, *lines: object) -> None:
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))


def predicted(claim_id: int, *evidence: list[object]) -> dict[str, object]:
    return {"id": claim_id, "predicted_label": "SUPPORTS", "predicted_evidence": list(evidence)}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The options for two test claims, and predictions in another order than theirs."""
    monkeypatch.chdir(tmp_path)
    write("test.jsonl", {"id": 7, "claim": "x"}, {"id": 3, "claim": "y"})
    write("p.jsonl", predicted(3, ["Café_-LRB-x-RRB-", 0]) | {"note": "!"}, predicted(7))
    return ["--task", "fever", "--claims", "test.jsonl"]


def test_archive(epicqa: Callable, files: list[object]) -> None:
    done = epicqa("submit", "p.jsonl", *files, "-o", "new/us.zip")
    assert (done.status, done.out, done.err) == (0, "new/us.zip\n", "")
    with zipfile.ZipFile("new/us.zip") as archive:
        assert archive.testzip() is None
        (member,) = archive.infolist()
        lines = archive.read(member).decode("ascii").splitlines()
    assert (member.filename, member.date_time) == ("predictions.jsonl", (1980, 1, 1, 0, 0, 0))
    assert list(map(json.loads, lines)) == [predicted(7), predicted(3, ["Café_-LRB-x-RRB-", 0])]
    # The same predictions, the same bytes; what stood there is replaced.
    before = Path("new/us.zip").read_bytes()
    write("p.jsonl", predicted(7), predicted(3, ["Café_-LRB-x-RRB-", 0]))
    assert epicqa("submit", "p.jsonl", *files, "--out", "new/us.zip").status == 0
    assert Path("new/us.zip").read_bytes() == before
    assert [path.name for path in Path("new").iterdir()] == ["us.zip"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([predicted(3)], "p.jsonl: claim 7: it has no prediction, expected one for each claim"),
        ([predicted(3), predicted(3)], "p.jsonl:2: claim 3: also on line 1, expected each claim once"),
        ([predicted(3), predicted(4)], "p.jsonl:2: claim 4: no such claim"),
        (
            [predicted(3, *(["A", i] for i in range(6)))],
            "p.jsonl:1: claim 3: 6 sentences, expected at most 5",
        ),
        ([{"id": "3", "predicted_label": "SUPPORTS"}], "p.jsonl:1: 'id' is '3', expected a whole number"),
        ([{"id": 3, "predicted_label": "SUPPORTS"}], "p.jsonl: labels only, expected lines of"),
    ],
)
def test_bad_predictions(epicqa: Callable, files: list[object], lines: list[object], message: str) -> None:
    write("p.jsonl", *lines)
    Path("us.zip").write_text("before")
    assert epicqa("submit", "p.jsonl", *files, "-o", "us.zip").line().startswith(message)
    assert Path("us.zip").read_text() == "before"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "us.tar.gz"], "us.tar.gz: another name, expected NAME.zip"),
        (["-o", "."], ".: a folder, expected NAME.zip"),
        (["-o", "u.zip", "--team", "us"], "--team is for --task epicqa, expected none with --task fever"),
        (["-o", "u.zip", "--description", "a=b"], "--description is for --task epicqa"),
        (["-o", "u.zip", "p.jsonl"], "two files or more, expected one of predictions"),
        (["-o", "u", "--team", "us", "--task", "epicqa"], "--claims is for --task fever, expected none with"),
    ],
    ids=str,
)
def test_bad_options(epicqa: Callable, files: list[object], options: list[str], message: str) -> None:
    assert epicqa("submit", "p.jsonl", *files, *options).line().startswith(message)
    assert sorted(path.name for path in Path().iterdir()) == ["p.jsonl", "test.jsonl"]


def test_what_each_task_needs(epicqa: Callable, files: list[object]) -> None:
    assert epicqa("submit", "p.jsonl", *files[:2], "-o", "u.zip").line().endswith("pass --claims FILE")
    done = epicqa("submit", "p.jsonl", "--out", "u")
    assert (done.status, done.out) == (2, "") and "Missing option '--team'" in done.err
