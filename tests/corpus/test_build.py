import gzip
import hashlib
import io
import json
import lzma
import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import zstandard

from epicqa.corpus import build as build_module
from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError

Make = Callable[..., dict[str, Any]]


def dump(given: Any) -> bytes:
    return json.dumps(given, ensure_ascii=False).encode()


def lines(*given: Any) -> bytes:
    return b"".join(one if isinstance(one, bytes) else dump(one) + b"\n" for one in given)


def report(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "report.jsonl").read_bytes().splitlines()]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "BATCH_BYTES", 2000)


@pytest.fixture(scope="session")
def many(document: Make) -> list[dict[str, Any]]:
    texts = [["Ünï 😀 one.", "Two."], ["𝛼 three."]]
    return [document(f"d-{i}", texts[: 1 + i % 2], url=f"https://x.org/{i}", n=i) for i in range(60)]


def test_every_container_gives_the_same_corpus(tmp_path: Path, many: list[dict[str, Any]]) -> None:
    many = sorted(many, key=lambda one: one["document_id"])
    (tmp_path / "folder").mkdir()
    for one in many:
        (tmp_path / "folder" / f"{one['document_id']}.json").write_bytes(json.dumps(one, indent=1).encode())
    whole = lines(*many)
    zst = zstandard.ZstdCompressor().compress(whole)
    packed = {".jsonl": whole, ".jsonl.gz": gzip.compress(whole), ".jsonl.xz": lzma.compress(whole)}
    for suffix, data in (packed | {".jsonl.zst": zst}).items():
        (tmp_path / f"d{suffix}").write_bytes(data)
    with tarfile.open(tmp_path / "d.tar.gz", "w:gz") as archive:
        for one in many:
            member = tarfile.TarInfo(f"e2e/{one['document_id']}.json")
            member.size = len(dump(one))
            archive.addfile(member, io.BytesIO(dump(one)))
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as zipped:
        zipped.writestr("first.jsonl", lines(*many[:20]))
        zipped.writestr("rest.jsonl.gz", gzip.compress(lines(*many[20:])))
    (tmp_path / "d.tgz").write_bytes((tmp_path / "d.tar.gz").read_bytes())
    sources = list(tmp_path.iterdir())
    assert len(sources) == 8
    prints = {one.name: build_corpus([one], tmp_path / f"c-{one.name}").fingerprint for one in sources}
    assert len(set(prints.values())) == 1, prints


def test_workers_and_batches_change_nothing(
    tmp_path: Path, many: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many, many[3], b"{broken\n"))
    monkeypatch.setattr(build_module, "BATCH_BYTES", 1500)
    one = build_corpus([source], tmp_path / "1", workers=1)
    two = build_corpus([source], tmp_path / "2", workers=2)
    monkeypatch.setattr(build_module, "BATCH_BYTES", 1 << 20)
    whole = build_corpus([source], tmp_path / "3", workers=1)
    assert one.fingerprint == two.fingerprint == whole.fingerprint
    for name in ("documents.arrow", "contexts.arrow", "sentences.arrow", "report.jsonl", "corpus.json"):
        assert len({(tmp_path / n / name).read_bytes() for n in "123"}) == 1, name
    assert sorted(p.name for p in (tmp_path / "2").iterdir()) == [
        "contexts.arrow",
        "corpus.json",
        "documents.arrow",
        "report.jsonl",
        "sentences.arrow",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"document_id": "d-x"},
        {"title": "Another"},
        {"title": None},
        {"url": "https://x.org/other"},
        {"n": 1.5},
        {"section": None},
        {"section": "Bodz"},
        {"text": "Ünï 😀 one. Twp."},
        {"end": 9},
    ],
)
def test_fingerprint_sees_every_field(tmp_path: Path, document: Make, change: dict[str, Any]) -> None:
    def made(folder: str, change: dict[str, Any]) -> str:
        given = document(
            change.get("document_id", "d-0"), [["Ünï 😀 one.", "Two."]], url="https://x.org/0", n=0
        )
        context = given["contexts"][0]
        for key in change:
            if key in given["metadata"]:
                given["metadata"][key] = change[key]
            elif key in context:
                context[key] = change[key]
            elif key == "end":
                context["sentences"][0]["end"] = change[key]
        (tmp_path / "d.json").write_bytes(dump(given))
        return build_corpus([tmp_path / "d.json"], tmp_path / folder).fingerprint

    assert made("a", {}) == made("b", {}) != made("c", change)


def test_fingerprint_sees_order(tmp_path: Path, many: list[dict[str, Any]]) -> None:
    for name, found in (("a", many), ("b", many[::-1])):
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*found))
    a, b = (build_corpus([tmp_path / f"{n}.jsonl"], tmp_path / n) for n in "ab")
    assert a.sentences == b.sentences
    assert a.fingerprint != b.fingerprint


def test_bad_records_are_skipped_counted_and_listed(tmp_path: Path, document: Make) -> None:
    source = tmp_path / "d.jsonl"
    bad = document("bad")
    bad["contexts"][0]["sentences"][0]["end"] = 99
    source.write_bytes(lines(document("a"), b"\n", b'{"document_id"\n', bad, b'{"id":"c","text":"\xe9"}\n'))
    summary = build_corpus([source], tmp_path / "c")
    assert (summary.documents, summary.contexts, summary.sentences, summary.skipped) == (1, 1, 2, 3)
    assert summary.report == tmp_path / "c" / "report.jsonl"
    found = report(tmp_path / "c")
    assert [(one["file"], one["line"], one["document_id"]) for one in found] == [
        (str(source), 3, None),
        (str(source), 4, "bad"),
        (str(source), 5, None),
    ]
    assert [one["reason"].split(":")[0] for one in found] == [
        "broken JSON",
        "sentence bad-C000-S000",
        "not UTF-8",
    ]
    summary = json.loads((tmp_path / "c" / "corpus.json").read_bytes())
    assert summary["skipped_by_kind"] == {"invalid": 3, "duplicate": 0}


@pytest.mark.parametrize("workers", [1, 2])
def test_first_of_duplicate_ids_wins(
    tmp_path: Path, document: Make, small_batches: None, workers: int
) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.json"
    filler = [document(f"f{i}") for i in range(30)]
    first.write_bytes(lines(document("x", [["First."]]), *filler, document("x", [["Second."]]), b"junk\n"))
    second.write_bytes(dump(document("x", [["Third."]])))
    summary = build_corpus([first, second], tmp_path / "c", workers=workers)
    assert (summary.documents, summary.skipped) == (31, 3)
    store = CorpusStore.open(tmp_path / "c")
    assert store.sentence_text(store.row("x-C000-S000")) == "First."
    reason = f"duplicate document id 'x', first in {first}:1"
    assert report(tmp_path / "c")[::2] == [
        {"file": str(first), "line": 32, "document_id": "x", "reason": reason},
        {"file": str(second), "line": None, "document_id": "x", "reason": reason},
    ]
    assert report(tmp_path / "c")[1]["line"] == 33
    with pytest.raises(EpicqaError) as error:
        build_corpus([first, second], tmp_path / "s", strict=True, workers=workers)
    assert str(error.value) == f"{first}:32: {reason}"


def test_a_shard_of_duplicates_only(tmp_path: Path, many: list[dict[str, Any]], small_batches: None) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many))
    once = build_corpus([source], tmp_path / "1", workers=1)
    twice = build_corpus([source, source], tmp_path / "2", workers=1)
    assert (twice.fingerprint, twice.skipped) == (once.fingerprint, 60)


def test_equal_hashes_of_different_ids(
    tmp_path: Path, many: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("shards", "store"):
        monkeypatch.setattr(f"epicqa.corpus.{module}.id_hash", lambda document_id: len(document_id))
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many, many[7]))
    assert build_corpus([source], tmp_path / "c", workers=1).skipped == 1
    store = CorpusStore.open(tmp_path / "c")
    assert [store.document_row(one["document_id"]) for one in many] == list(range(60))
    with pytest.raises(KeyError):
        store.document_row("d-x")


def test_strict_stops_at_the_first(tmp_path: Path, document: Make, small_batches: None) -> None:
    source = tmp_path / "d.jsonl"
    filler = [document(f"f{i}") for i in range(20)]
    source.write_bytes(lines(*filler, {"id": "x"}, *filler, b"{", b"\n"))
    with pytest.raises(EpicqaError) as error:
        build_corpus([source], tmp_path / "c", strict=True)
    assert str(error.value) == f"{source}:21: missing key 'text'"
    assert not (tmp_path / "c" / "corpus.json").exists()
    assert build_corpus([source], tmp_path / "c").skipped == 22
    with pytest.raises(EpicqaError, match=":21: missing key 'text'"):
        build_corpus([source], tmp_path / "c", strict=True)


def test_nothing_valid(tmp_path: Path) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(b"{}\nnull\n")
    with pytest.raises(EpicqaError) as error:
        build_corpus([source], tmp_path / "c")
    assert str(error.value) == (
        f"no valid document, 2 skipped; the first is {source}:1: missing key 'document_id'"
    )
    with pytest.raises(EpicqaError, match="no corpus here"):
        CorpusStore.open(tmp_path / "c")


def test_unreadable_source_stops_the_build(tmp_path: Path, many: list[dict[str, Any]]) -> None:
    (tmp_path / "d.jsonl").write_bytes(lines(*many))
    (tmp_path / "e.jsonl.xz").write_bytes(lzma.compress(lines(*many))[:-20])
    with pytest.raises(EpicqaError, match=r"e\.jsonl\.xz: cannot be read, damaged or cut short"):
        build_corpus([tmp_path / "d.jsonl", tmp_path / "e.jsonl.xz"], tmp_path / "c")


def test_progress_grows_to_the_total(tmp_path: Path, many: list[dict[str, Any]], small_batches: None) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many))
    seen: list[tuple[int, int]] = []
    summary = build_corpus([source], tmp_path / "c", progress=lambda *counts: seen.append(counts))
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] == (summary.documents, summary.sentences)


def test_second_build_is_the_first(tmp_path: Path, many: list[dict[str, Any]]) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many, b"[]\n"))
    first = build_corpus([source], tmp_path / "c")
    source.unlink()
    assert build_corpus([source], tmp_path / "c") == first


@pytest.mark.parametrize("damage", ["documents.arrow", "sentences.arrow", "corpus.json"])
def test_damaged_corpus_is_built_again(tmp_path: Path, many: list[dict[str, Any]], damage: str) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many))
    first = build_corpus([source], tmp_path / "c")
    (tmp_path / "c" / damage).write_bytes(b"{}")
    assert build_corpus([source], tmp_path / "c") == first
    assert CorpusStore.open(tmp_path / "c").fingerprint == first.fingerprint


def test_resume_keeps_whole_shards_and_replaces_damaged(
    tmp_path: Path, many: list[dict[str, Any]], small_batches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*many))
    whole = build_corpus([source], tmp_path / "whole", workers=1)

    def stop(documents: int, sentences: int) -> None:
        if documents > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_corpus([source], tmp_path / "c", workers=1, progress=stop)
    shards = sorted((tmp_path / "c" / "shards").iterdir())
    (tmp_path / "c" / "shards" / ".shard-000099.arrow.1.tmp").write_bytes(b"half")
    shards[1].write_bytes(shards[1].read_bytes()[:500])
    kept = {shard: shard.stat().st_mtime_ns for shard in shards if shard != shards[1]}
    seen: dict[Path, int] = {}

    def look(planned: list[Path]) -> Any:
        seen.update({shard: shard.stat().st_mtime_ns for shard in planned})
        return real(planned)

    real = build_module.merge.plan
    monkeypatch.setattr(build_module.merge, "plan", look)
    assert build_corpus([source], tmp_path / "c", workers=1).fingerprint == whole.fingerprint
    assert kept.items() <= seen.items()
    assert len(list((tmp_path / "c").iterdir())) == 5


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Writing past ``size`` fails as on a full disk, in this process and those it starts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [1000, 40_000])
def test_no_space_leaves_what_is_whole(
    tmp_path: Path, document: Make, monkeypatch: pytest.MonkeyPatch, workers: int, size: int
) -> None:
    monkeypatch.setattr(build_module, "BATCH_BYTES", 10_000)
    source = tmp_path / "d.jsonl"
    source.write_bytes(lines(*(document(f"d{i}", [["word " * 50] * 5]) for i in range(60))))
    with largest_file(size), pytest.raises(OSError, match="large"):
        build_corpus([source], tmp_path / "c", workers=workers)
    assert not (tmp_path / "c" / "corpus.json").exists()
    assert not list((tmp_path / "c").rglob("*.tmp"))
    assert bool(list((tmp_path / "c" / "shards").iterdir())) == (size > 1000)
    assert build_corpus([source], tmp_path / "c", workers=1).documents == 60


BUILD = """
import os, sys
from pathlib import Path
from epicqa.corpus import build
if __name__ == "__main__":
    build.BATCH_BYTES = 30_000
    os.setpgid(0, 0)
    print("begun", flush=True)
    try:
        build.build_corpus([Path(sys.argv[1])], Path(sys.argv[2]), workers=2)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.fixture(scope="module")
def subprocess_build(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Path, Path], subprocess.Popen[bytes]]:
    script = tmp_path_factory.mktemp("script") / "script.py"
    script.write_text(BUILD)

    def start(source: Path, folder: Path) -> subprocess.Popen[bytes]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(script), str(source), str(folder)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        return process

    return start


def alive_in_group(group: int) -> bool:
    def is_one(process: psutil.Process) -> bool:
        try:
            return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    return any(map(is_one, psutil.process_iter()))


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


@pytest.mark.slow
def test_killed_at_many_moments(
    tmp_path: Path, shared: Path, subprocess_build: Callable[[Path, Path], subprocess.Popen[bytes]]
) -> None:
    source = tmp_path / "general.jsonl"
    with lzma.open(shared / "mini/general.jsonl.xz") as stream:
        source.write_bytes(b"".join(line for _, line in zip(range(400), stream, strict=False)))
    whole = build_corpus([source], tmp_path / "whole", workers=1)
    folder = tmp_path / "c"

    def shards() -> int:
        return len(list((folder / "shards").glob("shard-*")))

    moments: list[Callable[[], bool]] = [
        lambda: folder.exists(),
        lambda: shards() >= 1,
        lambda: shards() >= 5,
        lambda: (folder / "merge").exists(),
        lambda: (folder / "contexts.arrow").exists(),
        lambda: (folder / "corpus.json").exists(),
    ]
    for moment in moments:
        process = subprocess_build(source, folder)
        wait_until(lambda: moment() or process.poll() is not None)  # noqa: B023
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if (folder / "corpus.json").exists():
            assert CorpusStore.open(folder).fingerprint == whole.fingerprint
        else:
            with pytest.raises(EpicqaError, match="did not finish"):
                CorpusStore.open(folder)
    assert build_corpus([source], folder).fingerprint == whole.fingerprint
    digests = {p.name: hashlib.sha256(p.read_bytes()).digest() for p in folder.iterdir()}
    assert digests == {
        p.name: hashlib.sha256(p.read_bytes()).digest() for p in (tmp_path / "whole").iterdir()
    }


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(
    tmp_path: Path,
    shared: Path,
    subprocess_build: Callable[[Path, Path], subprocess.Popen[bytes]],
    sent: signal.Signals,
) -> None:
    folder = tmp_path / "c"
    process = subprocess_build(shared / "mini/general.jsonl.xz", folder)
    assert wait_until(lambda: len(list((folder / "shards").glob("shard-*"))) >= 2)
    if sent == signal.SIGINT:
        os.killpg(process.pid, sent)  # as a terminal does
    else:
        process.send_signal(sent)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    if sent == signal.SIGINT:
        assert errors.decode() == ""
        assert not list(folder.rglob("*.tmp"))
    assert wait_until(lambda: not alive_in_group(process.pid))
    assert list((folder / "shards").glob("shard-*"))
    assert not (folder / "corpus.json").exists()


def test_build_imports_nothing_heavy(tmp_path: Path, many: list[dict[str, Any]]) -> None:
    (tmp_path / "d.jsonl").write_bytes(lines(*many))
    code = (
        "import sys; from pathlib import Path; from epicqa.corpus.build import build_corpus\n"
        f"build_corpus([Path({str(tmp_path / 'd.jsonl')!r})], Path({str(tmp_path / 'c')!r}))\n"
        "print([one for one in ('torch', 'pandas', 'transformers', 'faiss', 'jnius') if one in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
