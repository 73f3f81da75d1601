"""The command line as a whole."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import click
import pytest

from epicqa import cli as command_line
from epicqa.cli import VERBS, cli


def test_verbs_are_listed_and_explained(epicqa: Callable) -> None:
    ended = epicqa("--help")
    assert (ended.status, ended.err) == (0, "")
    for verb in VERBS:
        assert f"  {verb} " in ended.out
        helped = epicqa(verb, "--help")
        assert helped.status == 0 and helped.out.startswith(f"Usage: epicqa {verb} ")
        assert all(len(line) <= 110 for line in helped.out.splitlines())


def test_version(epicqa: Callable) -> None:
    assert epicqa("--version").out.split()[-1] == metadata.version("epicqa")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["--no-such"], "No such option"),
        (["run", "--no-such"], "No such option"),
        (["run", "extra"], "unexpected extra argument"),
        (["run", "--depth", "many"], "'many' is not a valid integer"),
        (["run", "--retriever", "colbert"], "'colbert' is not one of"),
        (["run", "--threads", "0"], "0 is not in the range"),
        (["run", "--audience", "children"], "'children' is not one of 'expert', 'general'"),
        (["ask", "x", "--backend", "onnx"], "'onnx' is not one of 'auto', 'torch', 'openvino'"),
        (["run", "--budget", "60"], "'60', expected a time such as 90s, 60m or 1.5h"),
        # What was a number in earlier versions.
        (["run", "--diversity", "0.3"], "'0.3' is not one of 'novelty', 'mmr', 'none'"),
        (["ask", "x", "--diversity", "0"], "'0' is not one of 'novelty', 'mmr', 'none'"),
        (["run", "--rerank-seconds", "5"], "No such option"),
        (["ask"], "Missing argument 'QUESTION'"),
        (["ask", "x", "-n", "1001"], "1001 is not in the range"),
    ],
    ids=str,
)
def test_wrong_usage_is_status_2(epicqa: Callable, arguments: list[str], message: str) -> None:
    ended = epicqa(*arguments)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err.splitlines()[-1] and "Traceback" not in ended.err


def test_no_verb_at_all_shows_help(epicqa: Callable) -> None:
    ended = epicqa()
    assert ended.status == 2 and "Usage: epicqa" in ended.err + ended.out


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 1, "interrupted; the same command goes on where it stopped"),
        (click.Abort(), 1, "interrupted; the same command goes on where it stopped"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "the disk is full; make room"),
        (OSError(errno.EDQUOT, "Quota exceeded"), 2, "the disk is full; make room"),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), 2, "a/b: Permission denied"),
        (command_line.EpicqaError("two\nlines"), 2, "two lines"),
        (click.FileError("x", "odd"), 2, "Could not open file 'x': odd"),
    ],
    ids=repr,
)
def test_errors_are_one_line(
    epicqa: Callable, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, line: str
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.get_command(click.Context(cli), "check"), "callback", fail)
    ended = epicqa("check", "x.tsv")
    assert (ended.status, ended.out) == (status, "")
    assert (
        ended.err.splitlines()[-1].startswith(f"epicqa: {line}") and len(ended.err.strip().splitlines()) == 1
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)], ids=str
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom epicqa.cli import main\n"
        f"sys.argv = ['epicqa', *{arguments!r}]\n"
        "try:\n main()\nfinally:\n print('LOADED', *sorted(sys.modules), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stdout
    loaded = ended.stderr.split("LOADED")[1].split()
    heavy = {"torch", "jnius", "jnius_config", "numpy", "pyarrow", "faiss", "transformers", "rich", "scipy"}
    assert not heavy & set(loaded)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    environment = {**os.environ, "_EPICQA_COMPLETE": f"{shell}_source"}
    # The program's name decides the variable's.
    program = Path(sys.executable).with_name("epicqa")
    ended = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "_EPICQA_COMPLETE" in ended.stdout and f"{shell}_complete" in ended.stdout


def test_completion_of_verbs() -> None:
    environment = {
        **os.environ,
        "_EPICQA_COMPLETE": "bash_complete",
        "COMP_WORDS": "epicqa s",
        "COMP_CWORD": "1",
    }
    program = Path(sys.executable).with_name("epicqa")
    ended = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert ended.stdout.split() == ["plain,score", "plain,submit"]


@pytest.mark.parametrize("arguments", [["run"], ["ask", "on steel?"]], ids=str)
def test_no_index_yet(
    epicqa: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert epicqa(*arguments).line().endswith("(there: none yet); build it with epicqa index")
    assert "no index 'absent'" in epicqa(*arguments, "--index", "absent").line()
    assert "expected up to 64 letters" in epicqa(*arguments, "--index", "../x").line()
    assert list(tmp_path.iterdir()) == []


# Without Java, which takes seconds to start.
_QUICK = ("--retriever", "dense", "--diversity", "none")


def test_a_reader_that_has_enough_is_no_error(home: Path, plain_flags: list) -> None:
    for arguments in (["--json", "-n", "1000"], ["-n", "1000"]):
        command = [sys.executable, "-m", "epicqa", "ask", "steel?", *_QUICK, *plain_flags, *arguments]
        # A terminal of an old encoding must not matter either.
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout and process.stderr
            assert process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == ""
