import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from epicqa.cli.check import check_command as check


def run(*arguments: object) -> Result:
    return CliRunner().invoke(check, [str(argument) for argument in arguments])


def append(path: Path, *lines: str) -> None:
    with path.open("a") as handle:
        handle.writelines(f"{line}\n" for line in lines)


def test_valid(index: str, make_run: Callable[..., Path]) -> None:
    path = make_run("one")
    result = run(path)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{path}: valid\n", "")


def test_every_problem_and_status_two(index: str, make_run: Callable[..., Path]) -> None:
    good, path = make_run("good"), make_run("bad")
    append(
        path,
        "EQ001 Q0 a-C000-S000:a-C000-S000 21 0.5 bad",
        "EQ009 Q0 a-C000-S000:a-C000-S000 1 0.5 bad",
        "EQ001 Q0 e-C000-S000:e-C000-S000 22 nan bad",
        "EQ001 Q0 e-C000-S000:e-C000-S000 22 0.1 bad",
    )
    result = run(good, path)
    assert result.exit_code == 2
    lines = result.stdout.splitlines()
    assert lines[0] == f"{good}: valid"
    assert [line.split(": ")[0] for line in lines[1:-1]] == [f"{path}:{n}" for n in (41, 42, 43, 44)]
    assert lines[-1] == f"{path}: invalid, 4 problems"


def test_json(index: str, make_run: Callable[..., Path]) -> None:
    path = make_run("bad")
    append(path, "EQ001 Q0")
    result = run(path, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout) == [
        {
            "run": str(path),
            "valid": False,
            "problems": [
                {
                    "line": 41,
                    "kind": "columns",
                    "message": "2 columns, expected 6: question_id Q0 first_id:last_id rank score run_tag",
                    "fatal": True,
                }
            ],
        }
    ]


def test_warnings_leave_a_run_valid(index: str, make_run: Callable[..., Path]) -> None:
    path = make_run(
        "one", manifest={"questions": {"ids": ["EQ001", "EQ002", "EQ003"]}, "index_fingerprint": "f0"}
    )
    path.write_text("".join(line for line in path.open() if "S004" not in line))
    result = run(path)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"warning: {path}: EQ001: 16 passages, the index could give 20",
        f"warning: {path}: EQ002: 16 passages, the index could give 20",
        f"warning: {path}: no passages for 1 of 3 questions: EQ003",
        f"warning: {path}: made on an index with fingerprint f0, index small has f1",
    ]


def test_index_and_questions_by_flag(index: str, make_run: Callable[..., Path], tmp_path: Path) -> None:
    path = make_run("one")
    path.with_suffix(".json").unlink()
    result = run(path)
    assert result.exit_code == 2
    assert "index unknown" in result.stdout
    assert "pass --index NAME" in result.stdout
    assert "questions unknown" in run(path, "--index", index).stderr
    (tmp_path / "q.json").write_text(
        json.dumps([{"question_id": "EQ001", "question": "q", "query": "", "background": ""}])
    )
    result = run(path, "--index", index, "--questions", tmp_path / "q.json")
    assert f"{path}:21: unknown question EQ002 (20 lines)" in result.stdout
    append(path, "EQ001 Q0")
    result = run(path, "--index", "absent")
    assert [line.split(": ")[0] for line in result.stdout.splitlines()] == [
        f"{path}:41",
        "indexes/absent",
        str(path),
    ]


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00"])
def test_no_run_at_all(index: str, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.tsv"
    path.write_bytes(data)
    result = run(path, tmp_path / "absent.tsv")
    assert result.exit_code == 2
    assert result.stdout.count(": invalid, 1 problems\n") == 2
