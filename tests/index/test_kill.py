"""Builds in processes of their own, killed, interrupted, or out of disk; the next build goes on."""

import functools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from epicqa import sample
from epicqa.corpus import build as corpus_build
from epicqa.errors import EpicqaError
from epicqa.index import encode, lucene
from epicqa.index.build import BuildOptions, build_index, verify_index
from epicqa.models import resolve

KILLS = 10
PIECES = (25_000, 250, 250)
"""Bytes of a batch, rows of a Lucene shard and of a chunk: several of each for a small collection."""

# Builds in those pieces. With a step and a limit, no file may grow beyond the limit from there on; with
# "interrupt", Ctrl-C comes while the step is under way.
DRIVER = """
import os, resource, signal, sys, threading
from epicqa.cli import main
from epicqa.corpus import build as corpus_build
from epicqa.index import build, encode, lucene

if __name__ == "__main__":
    pieces, step, what = sys.argv[1:4]
    batch, shard, chunk = map(int, pieces.split(","))
    corpus_build.BATCH_BYTES, lucene.SHARD_ROWS = batch, shard
    encode.encode_corpus.__kwdefaults__["chunk"] = chunk
    plain = build._Watch.step

    def watched(self, name):
        if step and name.startswith(step):
            if what == "interrupt":
                threading.Timer(0.05, os.killpg, (0, signal.SIGINT)).start()
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(what), int(what)))
        return plain(self, name)

    build._Watch.step = watched
    sys.argv[1:] = sys.argv[4:]
    main()
"""


def write_documents(path: Path, count: int) -> Path:
    """The sample's documents, and some of them again under other ids."""
    lines = []
    for number in range(count):
        document = orjson.loads(LINES[number % len(LINES)])
        name = document["document_id"]
        lines.append(orjson.dumps(document).replace(name.encode(), f"{name}-{number}".encode()))
    path.write_bytes(b"\n".join(lines))
    return path


LINES = sample.documents_path().read_bytes().splitlines()


def begin(home: Path, *arguments: object, step: str = "", what: object = "") -> subprocess.Popen[str]:
    driver = [sys.executable, "-c", DRIVER, ",".join(map(str, PIECES)), step, str(what)]
    return subprocess.Popen(
        [*driver, "index", *map(str, arguments)],
        env={**os.environ, "EPICQA_HOME": str(home), "EPICQA_CACHE": str(home / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """The exit status and the lines of the error stream that are not empty."""
    _, told = process.communicate(timeout=300)
    return process.returncode, [line for line in told.splitlines() if line.strip()]


def working(root: Path) -> Path | None:
    return next(root.glob("building-*"), None)


def wait_for_build(root: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the build has a folder: what comes before is the start of Python."""
    until = time.monotonic() + 120
    while not working(root):
        assert process.poll() is None and time.monotonic() < until, end(process)
        time.sleep(0.003)


def go_on(source: Path, *, threads: int = 1, force: bool = False) -> str:
    """The next build, in this process; its fingerprint. Nothing else is left."""
    index = build_index([source], "a", BuildOptions(threads=threads, force=force))
    verify_index("a")
    root = index.folder.parent
    assert {path.name for path in root.iterdir()} == {".lock", "CURRENT", index.folder.name}
    parts = {"corpus", "lucene", "vectors.faiss", "vectors.json", "seconds.json", "index.json"}
    assert {path.name for path in index.folder.iterdir()} == parts
    assert not [path for path in root.rglob("*") if "tmp" in path.name or "shard" in path.name]
    return index.fingerprint


static = functools.cache(functools.partial(resolve.load_encoder, "static"))


@pytest.fixture(autouse=True)
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds in this process go on in the driver's pieces, with one encoder for all."""
    monkeypatch.setattr(resolve, "load_encoder", lambda name: static())
    monkeypatch.setattr(corpus_build, "BATCH_BYTES", PIECES[0])
    monkeypatch.setattr(lucene, "SHARD_ROWS", PIECES[1])
    monkeypatch.setitem(encode.encode_corpus.__kwdefaults__, "chunk", PIECES[2])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two collections, and a home in which the first one is built."""
    folder = tmp_path_factory.mktemp("kill")
    for name, count in (("one.jsonl", 60), ("two.jsonl", 65)):
        write_documents(folder / name, count)
    yield folder


@pytest.fixture(scope="module")
def uninterrupted(place: Path) -> tuple[float, str]:
    """Builds the first collection once: the seconds it took from its folder on, and its fingerprint."""
    process = begin(place / "home", place / "one.jsonl", "--name", "a", "--threads", 2)
    wait_for_build(place / "home" / "indexes" / "a", process)
    began = time.monotonic()
    assert end(process) == (0, [])
    seconds = time.monotonic() - began
    manifest = place / "home" / "indexes" / "a" / "generation-000001" / "index.json"
    return seconds, orjson.loads(manifest.read_bytes())["fingerprint"]


def moments(seed: int, seconds: float) -> list[float]:
    """Random moments, one in each tenth of a build."""
    draw = random.Random(seed)
    return [seconds * (number + draw.random()) / KILLS for number in range(KILLS)]


def kill(home: Path, after: float, *arguments: object) -> bool:
    """Kill the process group of a build; whether it was still building."""
    process = begin(home, *arguments)
    wait_for_build(home / "indexes" / "a", process)
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    end(process)
    return process.returncode == -signal.SIGKILL


def test_a_first_build_killed_at_random_moments(
    place: Path, uninterrupted: tuple[float, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, expected = uninterrupted
    killed = 0
    for number, after in enumerate(moments(1, seconds)):
        home = tmp_path / str(number)
        monkeypatch.setenv("EPICQA_HOME", str(home))
        killed += kill(home, after, place / "one.jsonl", "--name", "a", "--threads", 1 + (number % 3 == 0))
        if (home / "indexes" / "a" / "CURRENT").exists():
            assert verify_index("a").fingerprint == expected
        else:
            with pytest.raises(EpicqaError, match=r"^index 'a' is incomplete, .* goes on where it stopped$"):
                verify_index("a")
        assert go_on(place / "one.jsonl") == expected
    assert killed >= KILLS // 2


def test_a_rebuild_killed_at_random_moments(
    place: Path, uninterrupted: tuple[float, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, old = uninterrupted
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path / "reference"))
    changed = go_on(place / "two.jsonl")
    assert changed != old
    killed = 0
    for number, after in enumerate(moments(2, seconds)):
        home = tmp_path / str(number)
        shutil.copytree(place / "home", home)
        monkeypatch.setenv("EPICQA_HOME", str(home))
        force = number % 2 == 1
        source, new = (place / "one.jsonl", old) if force else (place / "two.jsonl", changed)
        flags = ["--force"] if force else []
        killed += kill(home, after, source, "--name", "a", "--threads", 1 + (number % 3 == 0), *flags)
        whole = verify_index("a")
        assert whole.fingerprint == (old if whole.folder.name == "generation-000001" else new)
        assert whole.store.n_documents in (60, 65) and whole.lucene.frequency("viru") > 0
        assert go_on(source, force=force) == new
    assert killed >= KILLS // 2


def test_ctrl_c_is_one_line_and_the_next_build_goes_on(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: tuple[float, str]
) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    root = tmp_path / "indexes" / "a"
    line = "epicqa: interrupted; the same command goes on where it stopped"
    kept: dict[str, int] = {}
    for step in ("reading", "indexing", "encoding"):
        process = begin(
            tmp_path, place / "one.jsonl", "--name", "a", "--threads", 2, step=step, what="interrupt"
        )
        assert end(process) == (1, [line]), step
        work = working(root)
        assert work
        now = {path.name: path.stat().st_mtime_ns for path in (work / "corpus").glob("*.arrow")}
        now |= {path.name: path.stat().st_mtime_ns for path in work.glob("lucene/*.doc")}
        # What an earlier command finished is not done again.
        assert kept.items() <= now.items()
        kept = now
    assert {"contexts.arrow", "sentences.arrow", "documents.arrow"} < kept.keys()
    assert go_on(place / "one.jsonl") == uninterrupted[1]


def test_a_full_disk_is_one_line_and_the_next_build_goes_on(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uninterrupted: tuple[float, str]
) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    root = tmp_path / "indexes" / "a"
    line = "epicqa: the disk is full; make room and run the same command again, it goes on where it stopped"
    # Vectors end 45 bytes after their numbers: the last limit is met when their file is closed.
    size = (place / "home" / "indexes" / "a" / "generation-000001" / "vectors.faiss").stat().st_size
    limits = {"reading": 8_000, "indexing": 3_000, "encoding": 100_000, "building": size - 10}
    for step, limit in limits.items():
        process = begin(tmp_path, place / "one.jsonl", "--name", "a", "--threads", 2, step=step, what=limit)
        assert end(process) == (2, [line]), step
        with pytest.raises(EpicqaError, match="is incomplete"):
            verify_index("a")
        work = working(root)
        assert work
        made = {path.name for path in work.iterdir()}
        assert ("lucene" in made) == (step in ("encoding", "building"))
        assert "vectors.faiss" not in made
        assert not list(work.rglob(".*.tmp"))
    assert go_on(place / "one.jsonl") == uninterrupted[1]
