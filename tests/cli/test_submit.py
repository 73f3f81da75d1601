import gzip
import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from epicqa.cli.submit import submit_command as submit

MakeRun = Callable[..., Path]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(submit, [str(argument) for argument in arguments])


def test_batch(index: str, make_run: MakeRun, tmp_path: Path) -> None:
    two = make_run("two", ("CQ001",), {"config": {"task": "e2e", "description": "from the manifest"}})
    two.write_bytes(b"\xef\xbb\xbf\r\n" + two.read_bytes().replace(b"\n", b"\r\n").replace(b"\t", b"  "))
    out = tmp_path / "new" / "batch"
    result = run(two, make_run("one"), "--team", "us", "--out", out, "--description", "one=BM25 = plain")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{out / 'us.tar.gz'}\n", "")
    names = ["SUBMISSION.json", "one.tsv", "two.tsv"]
    assert sorted(path.name for path in out.iterdir()) == [*names, "us.tar.gz"]
    summary = json.loads((out / "SUBMISSION.json").read_text())
    assert summary == {
        "team": "us",
        "runs": [
            {
                "tag": tag,
                "file": f"{tag}.tsv",
                "tasks": tasks,
                "part": part,
                "description": description,
                "questions": questions,
                "passages": questions * 20,
                "sha256": hashlib.sha256((out / f"{tag}.tsv").read_bytes()).hexdigest(),
            }
            for tag, tasks, part, description, questions in [
                ("one", ["expert"], "ae", "BM25 = plain", 2),
                ("two", ["general"], "e2e", "from the manifest", 1),
            ]
        ],
    }
    # What is sent is in the track's format, whatever the file was like.
    first = (out / "two.tsv").read_bytes().split(b"\n")[0]
    assert first == b"CQ001\tQ0\ta-C000-S000:a-C000-S000\t1\t1.000000\ttwo"
    with tarfile.open(out / "us.tar.gz") as tar:
        assert tar.getnames() == [f"us/{name}" for name in names]
        for member in tar.getmembers():
            assert (member.mtime, member.uid, member.uname) == (0, 0, "")
            handle = tar.extractfile(member)
            assert handle
            assert handle.read() == (out / Path(member.name).name).read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["batch"]


def test_same_runs_same_bytes(index: str, make_run: MakeRun, tmp_path: Path) -> None:
    one, two = make_run("one"), make_run("two")
    (tmp_path / "x").mkdir()
    assert run(one, two, "--team", "us", "--out", tmp_path / "x").exit_code == 0
    assert run(two, one, "--team", "us", "--out", tmp_path / "y").exit_code == 0
    assert (tmp_path / "x" / "us.tar.gz").read_bytes() == (tmp_path / "y" / "us.tar.gz").read_bytes()
    assert gzip.decompress((tmp_path / "x" / "us.tar.gz").read_bytes())


def test_every_reason_and_nothing_written(index: str, make_run: MakeRun, tmp_path: Path) -> None:
    one, twin = make_run("one"), make_run("ONE")
    long = make_run("x" * 25)
    bad = make_run("bad")
    with bad.open("a") as handle:
        handle.write("EQ001 Q0 a-C000-S000:a-C000-S000 21 0.5 bad\nEQ001 Q0 a 22 0.1 bad\n")
    empty = tmp_path / "empty.tsv"
    empty.touch()
    before = sorted(tmp_path.rglob("*"))
    result = run(
        *(one, twin, long, bad, empty, one),
        *("--team", "no spaces", "--out", tmp_path, "--description", "who=what"),
    )
    assert result.exit_code == 2
    for reason in [
        f"{bad}:41: a-C000-S000:a-C000-S000 repeats line 1 of EQ001",
        f"{bad}:42: malformed passage 'a'",
        f"{empty}: empty",
        f"{tmp_path}: team 'no spaces', expected 1 to 24 letters",
        f"{tmp_path}: not empty",
        f"{twin}: run tag 'ONE' is that of {one} too",
        f"{long}: run tag '{'x' * 25}', expected 1 to 24",
        f"{one}: given twice",
        f"{tmp_path}: a description for tag 'who', which no run has",
    ]:
        assert reason in result.stdout
    assert len(result.stdout.splitlines()) == 9
    assert sorted(tmp_path.rglob("*")) == before


def test_out_is_a_file(index: str, make_run: MakeRun, tmp_path: Path) -> None:
    one = make_run("one")
    result = run(one, "--team", "us", "--out", one)
    assert (result.exit_code, result.stdout) == (2, f"{one}: a file, expected a new or an empty folder\n")


def test_description_without_a_tag(index: str, make_run: MakeRun, tmp_path: Path) -> None:
    result = run(make_run("one"), "--team", "us", "--out", tmp_path / "x", "--description", "text")
    assert result.exit_code == 2
    assert "expected TAG=TEXT" in result.stderr
