import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from epicqa.cli.score import score_command as score
from epicqa.errors import EpicqaError

GOLDEN = Path(__file__).parent.parent / "golden"
JUDGMENTS = GOLDEN / "synthetic_judgments.json"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(score, [str(argument) for argument in arguments])


def golden(kind: str, name: str = "a") -> dict[tuple[str, ...], float]:
    rows = (GOLDEN / f"published_{name}_{kind}.tsv").read_text().splitlines()
    return {tuple(row.split("\t")[:3]): float(row.split("\t")[3]) for row in rows}


@pytest.mark.parametrize(("kind", "choice"), [("expert", "expert"), ("consumer", "general")])
def test_tsv(kind: str, choice: str) -> None:
    result = run(
        *(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS),
        *("--questions", choice, "--format", "tsv"),
    )
    assert result.exit_code == 0
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert {tuple(row[:3]): float(row[3]) for row in rows} == pytest.approx(golden(kind), rel=0, abs=1e-12)
    assert [row[1:3] for row in rows[-3:]] == [["MEAN", name] for name in ("exact", "partial", "relaxed")]


def test_several_runs_put_the_means_last() -> None:
    paths = [GOLDEN / f"synthetic_{name}.tsv" for name in "ab"]
    result = run(*paths, "--judgments", JUDGMENTS, "--format", "tsv")
    rows = [line.split("\t")[:2] for line in result.stdout.splitlines()]
    assert len(rows) == 2 * 25 * 3
    assert rows[-6:] == [["synthetic_a", "MEAN"]] * 3 + [["synthetic_b", "MEAN"]] * 3


def test_json() -> None:
    result = run(
        GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--questions", "expert", "--format", "json"
    )
    (record,) = json.loads(result.stdout)
    assert (record["tag"], record["definition"], len(record["questions"])) == ("synthetic_a", "published", 12)
    assert record["mean"]["exact"] == pytest.approx(golden("expert")["synthetic_a", "MEAN", "exact"])


def test_table() -> None:
    result = run(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--questions", "expert")
    assert "synthetic_a: NDNS, published definition" in result.stdout
    assert "EQ023" in result.stdout
    assert f"{golden('expert')['synthetic_a', 'MEAN', 'exact']:.4f}" in result.stdout


def test_repeated_warnings_are_cut_short() -> None:
    result = run(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--format", "tsv")
    lines = result.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert sum("annotated twice" in line for line in lines) == 10
    assert "warning: 23 more of this kind (annotated-twice)" in lines
    assert sum(f"{GOLDEN / 'synthetic_a.tsv'}:" in line for line in lines) <= 20


def test_unreadable_runs_are_refused_with_every_line(tmp_path: Path) -> None:
    first, second = tmp_path / "1.tsv", tmp_path / "2.tsv"
    first.write_text("EQ001 Q0 a 1 1 t\nEQ001 Q0 a-C000-S001:a-C000-S000 1 nan t\n")
    second.write_text("EQ001\n")
    result = run(first, second, "--judgments", JUDGMENTS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        ["epicqa", f"{first}:1"],
        ["epicqa", f"{first}:2"],
        ["epicqa", f"{first}:2"],
        ["epicqa", f"{second}:1"],
    ]


def test_what_check_refuses_is_only_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    judged = json.loads(JUDGMENTS.read_text())[4]
    assert judged["question_id"] == "EQ005"
    context = judged["annotations"][0]["sentence_id"].rpartition("-S")[0]
    path.write_text(
        f"EQ005 Q0 {context}-S000:{context}-S009 1 9 t\n"
        f"EQ005 Q0 {context}-S001:{context}-S001 2 8 u\n"
        f"EQ005 Q0 {context}-S003:{context}-S003 3 7 t\n"
        f"EQ005 Q0 {context}-S010:{context}-S010 4 6 t\n"
        "EQ005 Q0 a-C000-S001:a-C001-S001 5 5 t\n"
        "EQ777 Q0 a-C000-S001:a-C000-S001 3 7 t\n"
    )
    result = run(path, "--judgments", JUDGMENTS, "--format", "tsv")
    assert result.exit_code == 0
    for said in [
        ":2: run tag 'u'",
        ":2: 2 passages share sentences with another of their question",
        ":5: a-C000-S001:a-C001-S001 ",
    ]:
        assert f"{path}{said}" in result.stderr
    assert f"{path}: no judgments, left out: EQ777" in result.stderr


def test_judgments_through_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    path.write_bytes((GOLDEN / "synthetic_c.tsv").read_bytes())
    result = run(path)
    assert isinstance(result.exception, EpicqaError)
    assert "pass --judgments FILE" in str(result.exception)
    manifest = {"epicqa_manifest": 1, "judgments": str(JUDGMENTS)}
    path.with_suffix(".json").write_text(json.dumps(manifest))
    result = run(path, "--questions", "expert", "--format", "tsv")
    assert result.exit_code == 0
    assert "no passages, counts 0: EQ005, EQ015" in result.stderr


def epicqa(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "epicqa", "score", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_from_the_shell(tmp_path: Path) -> None:
    done = epicqa(
        GOLDEN / "synthetic_b.tsv", "--judgments", JUDGMENTS, "--questions", "expert", "--format", "tsv"
    )
    assert done.returncode == 0
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {tuple(row[:3]): float(row[3]) for row in rows} == pytest.approx(golden("expert", "b"), abs=1e-12)


@pytest.mark.parametrize(
    ("judgments", "said"),
    [("absent.json", "absent.json: No such file"), (GOLDEN / "synthetic_a.tsv", "broken JSON")],
)
def test_bad_judgments_from_the_shell(judgments: object, said: str) -> None:
    done = epicqa(GOLDEN / "synthetic_b.tsv", "--judgments", judgments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("epicqa: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
