import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from epicqa import sample
from epicqa.cli import main
from epicqa.index import build

Outcome = tuple[int, str, list[str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A home in which a process of its own built the sample, and what that printed."""
    home = tmp_path_factory.mktemp("built")
    done = subprocess.run(
        [sys.executable, "-m", "epicqa", "index", "--threads", "2"],
        env={**os.environ, "EPICQA_HOME": str(home), "EPICQA_CACHE": str(home / "cache")},
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    yield home, done.stdout, done.stderr


@pytest.fixture
def index(built: tuple[Path, str, str], home: Path) -> Path:
    """The folder of a copy of that index."""
    shutil.copytree(built[0] / "indexes", home / "indexes")
    return home / "indexes" / "sample"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"".join(sample.documents_path().read_bytes().splitlines(keepends=True)[:5]))
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Runs ``epicqa index`` here: the exit status, what it printed, and the lines of its error stream."""

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["epicqa", "index", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        told = capsys.readouterr()
        return int(caught.value.code or 0), told.out, told.err.splitlines()

    return run


def refused(outcome: Outcome) -> str:
    status, printed, (line,) = outcome
    assert (status, printed) == (2, "")
    assert line.startswith("epicqa: ")
    return line.removeprefix("epicqa: ")


def test_no_source_is_the_sample(built: tuple[Path, str, str]) -> None:
    home, printed, told = built
    assert told == ""
    assert f"index        sample ({home}/indexes/sample/generation-000001)\n" in printed
    assert "sources      the bundled sample\n" in printed
    assert "vectors      static, 256 numbers, flat\n" in printed
    assert "skipped" not in printed
    assert sorted(path.name for path in home.iterdir()) == ["indexes"]


def test_info_tells_the_same_as_the_build(built: tuple[Path, str, str], call, monkeypatch) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(built[0]))
    assert call("--info", "sample") == (0, built[1], [])
    # Nothing has changed, so the same command only tells.
    monkeypatch.setattr(build, "_steps", None)
    assert call() == (0, built[1], [])
    assert call("--name", "sample", "--threads", 1) == (0, built[1], [])


@pytest.mark.usefixtures("index")
def test_info_as_json(call) -> None:
    status, printed, told = call("--info", "sample", "--json")
    found = json.loads(printed)
    assert (status, told) == (0, [])
    assert (found["name"], found["sample"], found["documents"], found["skipped"]) == ("sample", True, 96, 0)
    assert found["dense"]["kind"] == "flat" and found["bytes"] > 1_000_000
    assert len(found["fingerprint"]) == 64
    assert not {"files", "key", "format", "sha256"} & found.keys()
    assert json.loads(call("--json")[1]) == found


def test_the_name_is_default_where_there_is_a_source(call, documents: Path, index: Path) -> None:
    status, printed, told = call(documents, "--dense", "none", "--threads", 1)
    assert (status, told) == (0, [])
    assert "index        default (" in printed
    assert f"sources      {documents}\n" in printed and "vectors      none\n" in printed
    assert call(documents, "--dense", "none", "--threads", 1, "--name", "b")[0] == 0
    assert call("--list") == (0, "b\ndefault\nsample\n", [])
    assert json.loads(call("--list", "--json")[1]) == ["b", "default", "sample"]


def test_an_empty_list(call) -> None:
    assert call("--list") == (0, "", [])
    assert call("--list", "--json") == (0, "[]\n", [])


def test_recall_is_printed_for_an_approximate_kind(call, documents: Path) -> None:
    status, printed, told = call(documents, "--vectors", "sq8", "--threads", 1)
    assert (status, told) == (0, [])
    (line,) = [line for line in printed.splitlines() if line.startswith("vectors")]
    start, recall = line.split("recall ")
    assert start == "vectors      static, 256 numbers, sq8, "
    assert recall.endswith(" of exact at depth 1000") and 0.9 < float(recall.split()[0]) <= 1


def test_skipped_documents_are_told_of(call, documents: Path, home: Path) -> None:
    with documents.open("ab") as sink:
        sink.write(b"{}\n\xff\n")
    status, printed, told = call(documents, "--dense", "none", "--threads", 1)
    report = home / "indexes" / "default" / "generation-000001" / "corpus" / "report.jsonl"
    assert (status, told) == (0, [])
    assert f"skipped      2, see {report}\n" in printed
    assert [json.loads(line)["line"] for line in report.read_text().splitlines()] == [6, 7]
    assert f"skipped      2, see {report}\n" in call("--info", "default")[1]
    strict = call(documents, "--dense", "none", "--threads", 1, "--strict", "--name", "s")
    assert refused(strict).startswith(f"{documents}:6: ")
    assert "'s' is incomplete, its build did not finish" in refused(call("--info", "s"))


@pytest.mark.usefixtures("index")
def test_verify(call) -> None:
    status, printed, told = call("--verify", "sample")
    assert (status, told) == (0, [])
    assert printed.endswith("every file is the one that was built\n")
    assert json.loads(call("--verify", "sample", "--json")[1])["name"] == "sample"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden"])
@pytest.mark.parametrize("flag", ["--info", "--verify", "--name"])
def test_an_illegal_name(call, home: Path, flag: str, name: str) -> None:
    assert refused(call(flag, name)).startswith(f"index name {name!r}, expected up to 64 letters, digits")
    assert not home.exists()


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("flag", ["--info", "--verify"])
def test_an_unknown_name(call, flag: str) -> None:
    line = refused(call(flag, "x"))
    assert line.startswith("no index 'x' in ")
    assert line.endswith("(there: sample); build it with epicqa index")


def test_bad_sources(call, home: Path, tmp_path: Path) -> None:
    (tmp_path / "d.txt").touch()
    assert "no such file" in refused(call(tmp_path / "missing"))
    assert "unknown kind of file" in refused(call(tmp_path / "d.txt"))
    assert "unknown model" in refused(call("--dense", "./missing"))
    assert not home.exists()
    status, _, told = call("--vectors", "x")
    assert status == 2 and "'x' is not one of" in told[-1]


PARTS = ["corpus/sentences.arrow", "corpus/corpus.json", "lucene/segments_1", "vectors.faiss", "index.json"]


@pytest.mark.parametrize("part", PARTS)
def test_damage(call, index: Path, part: str) -> None:
    path = index / "generation-000001" / part
    data = path.read_bytes()
    again = "build index 'sample' again with epicqa index --force"
    path.write_bytes(data[:-1])
    assert refused(call("--info", "sample")).startswith(f"{path}: damaged")
    path.write_bytes(data[:40] + bytes([data[40] ^ 255]) + data[41:])
    assert refused(call("--info", "sample")).startswith(f"{path}: damaged")
    path.unlink()
    line = refused(call("--info", "sample"))
    assert line.startswith(f"{path}: ") and line.endswith(again)


@pytest.mark.parametrize("part", PARTS[:-1])
def test_verify_finds_a_flipped_byte_whose_time_was_restored(call, index: Path, part: str) -> None:
    path = index / "generation-000001" / part
    state = path.stat()
    data = path.read_bytes()
    path.write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert call("--info", "sample")[0] == 0
    assert refused(call("--verify", "sample")).startswith(f"{path}: damaged, its checksum")


def test_another_epicqas_index(call, index: Path) -> None:
    path = index / "generation-000001" / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7}))
    line = refused(call("--info", "sample"))
    assert "index 'sample' is of version 7, this epicqa reads version 1; build it again" in line


def test_a_copied_index_opens(built: tuple[Path, str, str], call, home: Path) -> None:
    shutil.copytree(built[0] / "indexes", home / "indexes", copy_function=shutil.copyfile)
    assert call("--info", "sample")[0] == 0
    assert call("--verify", "sample")[0] == 0


def test_two_builds_of_one_name(call, documents: Path, home: Path) -> None:
    root = home / "indexes" / "default"
    root.mkdir(parents=True)
    with FileLock(root / ".lock"):
        line = refused(call(documents, "--dense", "none"))
    assert line == "index 'default' is being built by another process; wait for it to end"


def test_help_loads_neither_models_nor_java_nor_numpy() -> None:
    code = (
        "import sys; sys.argv = ['epicqa', 'index', '--help']\n"
        "from epicqa.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([name for name in ('numpy', 'torch', 'jnius', 'faiss', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
