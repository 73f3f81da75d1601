import functools
import gzip
import json
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from epicqa import sample
from epicqa.corpus import build as corpus_build
from epicqa.errors import EpicqaError
from epicqa.index import build, encode, lucene
from epicqa.index.build import BuildOptions, Index, build_index, list_indexes, open_index, verify_index
from epicqa.models import resolve

PLAIN = BuildOptions(dense="none", threads=1)
STATIC = BuildOptions(threads=1)
GENERATION = "home/indexes/a/generation-000001"


load_encoder = resolve.load_encoder
static = functools.cache(functools.partial(load_encoder, "static"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the indexes of a test lie; the default encoder is loaded once for all."""
    monkeypatch.setattr(
        resolve, "load_encoder", lambda name: static() if name == "static" else load_encoder(name)
    )
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "home"


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, Lucene shards and chunks for the few documents of a test."""
    monkeypatch.setattr(corpus_build, "BATCH_BYTES", 5_000)
    monkeypatch.setattr(lucene, "SHARD_ROWS", 60)
    monkeypatch.setitem(encode.encode_corpus.__kwdefaults__, "chunk", 60)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Twenty of the sample's documents."""
    path = tmp_path / "documents.jsonl"
    path.write_bytes(b"".join(sample_lines()[:20]))
    return path


def sample_lines() -> list[bytes]:
    return sample.documents_path().read_bytes().splitlines(keepends=True)


def error(call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(EpicqaError) as caught:
        call(*args)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def held(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def is_tidy(index: Index) -> bool:
    """Whether nothing is there but the one whole generation."""
    parts = ["corpus", "index.json", "lucene", "seconds.json"]
    parts += ["vectors.faiss", "vectors.json"] if index.has_vectors else []
    return (
        held(index.folder.parent) == [".lock", "CURRENT", index.folder.name]
        and held(index.folder) == sorted(parts)
        and not [path for path in index.folder.rglob("*") if "tmp" in path.name or "shard" in path.name]
        and set(index.manifest["files"])
        == {
            path.relative_to(index.folder).as_posix()
            for path in index.folder.rglob("*")
            if path.is_file() and path.name not in ("index.json", "write.lock")
        }
    )


def never(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("built again")


def stop_at(step: str) -> build.Progress:
    """Ctrl-C at the end of a step, or where it begins when its end is not known."""

    def told(name: str, done: int, total: int | None) -> None:
        if name.startswith(step) and total in (None, done):
            raise KeyboardInterrupt

    return told


def finished(work: Path) -> set[tuple[int, int]]:
    """Inodes and times of the finished files of a build: one that is written again has others."""
    found = [path for path in work.rglob("*") if path.suffix in (".arrow", ".npy", ".doc", ".fdt")]
    states = [path.stat() for path in found if ".tmp" not in str(path)]
    return {(state.st_ino, state.st_mtime_ns) for state in states}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with an index of the twenty documents, in one piece, to be copied."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "d.jsonl").write_bytes(b"".join(sample_lines()[:20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder / "home"))
        build_index([folder / "d.jsonl"], "a", STATIC)
    yield folder


@pytest.fixture
def copied(home: Path, whole: Path) -> Path:
    """The folder of a copy of that index."""
    shutil.copytree(whole / "home", home)
    return home / "indexes" / "a"


# Names


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", ".x", "-x", "a b", "x\n", "é", "x" * 65])
def test_a_name_that_is_no_folder_name_is_refused(home: Path, documents: Path, name: str) -> None:
    assert "index name" in error(open_index, name)
    assert "expected up to 64 letters" in error(build_index, [documents], name, PLAIN)
    assert not home.exists()


@given(st.text(min_size=1, max_size=5) | st.from_regex(r"[./\\a]{1,4}", fullmatch=True))
def test_an_allowed_name_stays_in_its_folder(name: str) -> None:
    try:
        build.check_name(name)
    except EpicqaError:
        return
    assert Path("/i", name).parent == Path("/i") and name not in (".", "..")


def test_an_unknown_name_says_which_there_are(home: Path, documents: Path) -> None:
    assert "no index 'a' in" in error(open_index, "a")
    assert "(there: none yet); build it with epicqa index" in error(open_index, "a")
    build_index([documents], "b", PLAIN)
    assert "(there: b)" in error(open_index, "a")
    assert list_indexes() == ["b"]
    assert not (home / "indexes" / "a").exists()


# Again


def test_the_same_again_builds_nothing(documents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_index([documents], "a", STATIC)
    assert is_tidy(first)
    monkeypatch.setattr(build, "_steps", never)
    again = build_index([documents], "a", BuildOptions(threads=2))
    assert (again.folder, again.manifest) == (first.folder, first.manifest)


def test_force_builds_again_the_same(documents: Path) -> None:
    first = build_index([documents], "a", STATIC)
    again = build_index([documents], "a", BuildOptions(threads=1, force=True))
    assert again.folder != first.folder and is_tidy(again)
    assert again.fingerprint == first.fingerprint


def test_changed_sources_and_options_replace_the_index(documents: Path, tmp_path: Path) -> None:
    found = [build_index([documents], "a", PLAIN)]
    with documents.open("ab") as sink:
        sink.write(sample_lines()[20])
    found.append(build_index([documents], "a", PLAIN))
    os.utime(documents, ns=(1, 1))
    found.append(build_index([documents], "a", PLAIN))
    found.append(build_index([documents], "a", STATIC))
    found.append(build_index([documents], "a", BuildOptions(threads=1, titles=False)))
    found.append(build_index([documents], "a", BuildOptions(threads=1, vectors="sq8")))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "d.jsonl").write_bytes(sample_lines()[30])
    found.append(build_index([documents, tmp_path / "more"], "a", PLAIN))
    assert [index.folder.name for index in found] == [f"generation-{n:06d}" for n in range(1, 8)]
    assert [index.manifest["documents"] for index in found] == [20, 21, 21, 21, 21, 21, 22]
    assert found[1].fingerprint == found[2].fingerprint
    assert len({index.fingerprint for index in found}) == 6
    assert is_tidy(found[-1])


def test_what_is_not_read_of_a_folder_changes_nothing_and_what_a_link_leads_to_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    lines = sample_lines()
    (elsewhere / "one.json").write_bytes(lines[0])
    (folder / "two.json").write_bytes(lines[1])
    (folder / "link").symlink_to(elsewhere)
    first = build_index([folder], "a", PLAIN)
    assert first.manifest["documents"] == 2
    with monkeypatch.context() as patch:
        patch.setattr(build, "_steps", never)
        (folder / "README.txt").touch()
        (folder / ".git").mkdir()
        (folder / ".git" / "x.json").touch()
        (folder / "dangling.txt").symlink_to("nowhere")
        build_index([folder], "a", PLAIN)
    (elsewhere / "three.json").write_bytes(lines[2])
    assert build_index([folder], "a", PLAIN).manifest["documents"] == 3


def test_a_file_name_that_is_not_utf_8_can_be_indexed(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    (folder / os.fsdecode(b"d\xfe.json")).write_bytes(sample_lines()[0])
    built = build_index([folder], "a", PLAIN)
    assert built.manifest["documents"] == 1
    assert "\\xff" in built.manifest["sources"][0]


# Sources


def test_bad_sources_leave_nothing(home: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").touch()
    for name, wrong in (("none", "no such file"), ("empty", "no documents"), ("notes.txt", "unknown kind")):
        assert wrong in error(build_index, [tmp_path / name], "a", PLAIN)
    options = BuildOptions(dense=str(tmp_path / "empty"))
    assert "no model there" in error(build_index, [], "a", options)
    assert "unknown kind of vectors 'x'" in error(build_index, [], "a", BuildOptions(vectors="x"))
    assert not home.exists()


def test_indexes_inside_a_source_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.json").write_bytes(sample_lines()[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPICQA_HOME")
    assert ".: holds indexes, where indexes go" in error(build_index, [Path()], "a", PLAIN)
    assert build_index([Path("d.json")], "a", PLAIN).manifest["documents"] == 1


def test_skipped_documents_are_counted_and_listed_or_stop_a_strict_build(documents: Path) -> None:
    lines = documents.read_bytes().splitlines(keepends=True)
    lines[3:3] = [b"{broken\n", b"\xff\n", lines[0]]
    documents.write_bytes(b"".join(lines))
    built = build_index([documents], "a", PLAIN)
    assert (built.manifest["documents"], built.manifest["skipped"]) == (20, 3)
    report = [orjson.loads(line) for line in (built.folder / "corpus" / "report.jsonl").open("rb")]
    assert [(one["file"], one["line"]) for one in report] == [(str(documents), line) for line in (4, 5, 6)]
    strict = BuildOptions(dense="none", threads=1, strict=True)
    assert error(build_index, [documents], "a", strict).startswith(f"{documents}:4: broken JSON")
    # The index before it is still there.
    assert verify_index("a").fingerprint == built.fingerprint
    documents.write_bytes(b"".join(lines[:3] + lines[6:]))
    assert build_index([documents], "a", strict).fingerprint == built.fingerprint


def test_every_packing_of_the_same_documents_is_the_same_corpus(documents: Path, tmp_path: Path) -> None:
    data = documents.read_bytes()
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "d.jsonl.xz").write_bytes(lzma.compress(data))
    (tmp_path / "d.jsonl.zst").write_bytes(zstandard.compress(data))
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, line in enumerate(data.splitlines()):
        (folder / f"{number:03d}.json").write_text(json.dumps(json.loads(line), indent=1))
    with tarfile.open(tmp_path / "d.tar.gz", "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.write(documents, "d/documents.jsonl")
    packings = ["documents.jsonl", "d.jsonl.gz", "d.jsonl.xz", "d.jsonl.zst", "folder", "d.tar.gz", "d.zip"]
    found = {build_index([tmp_path / name], "a", PLAIN).manifest["corpus"] for name in packings}
    assert len(found) == 1


def test_one_and_two_threads_and_other_pieces_give_the_same_index(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lzma.open(shared / "mini" / "expert.jsonl.xz") as source:
        lines = [next(source) for _ in range(25)]
    (tmp_path / "d.jsonl").write_bytes(b"".join(lines))
    one = build_index([tmp_path / "d.jsonl"], "one", STATIC)
    monkeypatch.setattr(corpus_build, "BATCH_BYTES", 300_000)
    monkeypatch.setattr(lucene, "SHARD_ROWS", 1_000)
    monkeypatch.setitem(encode.encode_corpus.__kwdefaults__, "chunk", 1_000)
    two = build_index([tmp_path / "d.jsonl"], "two", BuildOptions(threads=2))
    assert one.manifest["documents"] == 25
    assert one.manifest["sentences"] > 3_000
    assert one.fingerprint == two.fingerprint
    assert (
        one.manifest["files"]["vectors.faiss"]["sha256"] == two.manifest["files"]["vectors.faiss"]["sha256"]
    )
    texts = ["how does the virus spread", "surfaces"]
    hits = [
        index.lucene.search([index.lucene.text_query(text) for text in texts], 50, k1=0.9, b=0.4)
        for index in (one, two)
    ]
    for (rows, scores), (rows_too, scores_too) in zip(*hits, strict=True):
        assert len(rows) == 50
        np.testing.assert_array_equal(rows, rows_too)
        np.testing.assert_array_equal(scores, scores_too)


# Vectors and models


def test_vectors_by_kind(documents: Path) -> None:
    none = build_index([documents], "none", PLAIN)
    assert not none.has_vectors and none.manifest["dense"] is None and is_tidy(none)
    for call in (lambda: none.vectors, lambda: none.encoder):
        assert error(call) == "index 'none' has no vectors; build it without --dense none"
    flat = build_index([documents], "flat", STATIC).manifest["dense"]
    assert (flat["model"], flat["kind"], flat["recall"]) == ("static", "flat", None)
    quantised = build_index([documents], "sq8", BuildOptions(threads=1, vectors="sq8")).manifest["dense"]
    assert quantised["kind"] == "sq8" and 0.95 < quantised["recall"] <= 1


def test_a_model_that_changed_since_is_noticed(
    documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    shutil.copytree(Path(build.__file__).parents[1] / "models" / "static", model)
    monkeypatch.chdir(tmp_path)
    index = build_index([documents], "a", BuildOptions(dense="model", threads=1))
    monkeypatch.chdir("/")
    assert index.encoder.fingerprint == index.manifest["dense"]["fingerprint"]
    with (model / "config_sentence_transformers.json").open("a") as file:
        file.write(" ")
    message = error(lambda: open_index("a").encoder)
    assert message.startswith(f"model {str(model)!r} differs from the one that index 'a' was built with")
    again = build_index([documents], "a", BuildOptions(dense=str(model), threads=1))
    assert again.encoder.fingerprint != index.encoder.fingerprint


# Interrupted


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("step", ["reading", "indexing", "encoding", "building"])
def test_an_interrupted_first_build_goes_on(home: Path, documents: Path, whole: Path, step: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index([documents], "a", STATIC, stop_at(step))
    message = error(open_index, "a")
    assert message.startswith("index 'a' is incomplete, its build did not finish; run the same epicqa index")
    assert list_indexes() == []
    (work,) = (home / "indexes" / "a").glob("building-*")
    before, seen = finished(work), set()
    assert before

    def look(name: str, done: int, total: int | None) -> None:
        seen.update(finished(work))

    index = build_index([documents], "a", STATIC, look)
    assert before <= seen | finished(index.folder)
    assert is_tidy(index)
    assert index.fingerprint == json.loads((whole / GENERATION / "index.json").read_bytes())["fingerprint"]


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("force", [False, True])
def test_an_interrupted_rebuild_leaves_the_old_index(documents: Path, force: bool) -> None:
    old = build_index([documents], "a", STATIC)
    if not force:
        documents.write_bytes(b"".join(sample_lines()[:15]))
    options = BuildOptions(threads=1, force=force)
    for step in ("indexing", "building"):
        with pytest.raises(KeyboardInterrupt):
            build_index([documents], "a", options, stop_at(step))
        assert verify_index("a").fingerprint == old.fingerprint
    new = build_index([documents], "a", options)
    assert is_tidy(new) and new.folder != old.folder
    assert (new.fingerprint == old.fingerprint) == force


def test_a_build_that_ends_before_current_is_pointed_to_by_the_next(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(build, "_point", killed)
            with pytest.raises(KeyboardInterrupt):
                build_index([documents], "a", PLAIN)
        if list_indexes():
            assert verify_index("a").manifest["documents"] == 20
        else:
            assert "incomplete" in error(open_index, "a")
        with monkeypatch.context() as patch:
            patch.setattr(build, "_steps", never)
            index = build_index([documents], "a", PLAIN)
        assert is_tidy(index)
        documents.write_bytes(b"".join(sample_lines()[:15]))
    assert index.manifest["documents"] == 15


def test_going_back_after_a_rebuild_that_was_killed_late_builds_nothing(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = build_index([documents], "a", PLAIN)
    with monkeypatch.context() as patch:
        patch.setattr(build, "_point", lambda *args: None)
        build_index([documents], "a", STATIC)
    monkeypatch.setattr(build, "_steps", never)
    back = build_index([documents], "a", PLAIN)
    assert back.folder == old.folder and is_tidy(back)


def test_what_a_killed_build_left_is_swept(
    home: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = home / "indexes" / "a"
    with monkeypatch.context() as patch:
        patch.setattr(build, "remove_tree", lambda path: None)
        build_index([documents], "a", PLAIN)
        build_index([documents], "a", STATIC)
    assert len(held(root)) == 4
    with pytest.raises(KeyboardInterrupt):
        build_index([documents], "a", BuildOptions(threads=1, titles=False), stop_at("building"))
    (work,) = root.glob("building-*")
    (root / "building-0000").mkdir()
    (root / "generation-old").mkdir()
    (root / ".CURRENT.1.tmp").touch()
    for name in (".vectors.faiss.1.tmp", ".index.json.1.tmp", "lucene-shards/shard-000/x", "lucene.tmp/x"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).touch()
    index = build_index([documents], "a", BuildOptions(threads=1, titles=False))
    # What is not a build's is left alone.
    (root / "generation-old").rmdir()
    assert is_tidy(index)


def test_an_upgrade_does_not_go_on_with_half_an_index_but_keeps_a_whole_one(
    home: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index([documents], "a", STATIC, stop_at("building"))
    (before,) = (home / "indexes" / "a").glob("building-*")
    monkeypatch.setattr(build, "versions", lambda: {"epicqa": "99"})
    with pytest.raises(KeyboardInterrupt):
        build_index([documents], "a", STATIC, stop_at("building"))
    (after,) = (home / "indexes" / "a").glob("building-*")
    assert after != before
    index = build_index([documents], "a", STATIC)
    monkeypatch.setattr(build, "versions", lambda: {"epicqa": "100"})
    monkeypatch.setattr(build, "_steps", never)
    assert build_index([documents], "a", STATIC).folder == index.folder


# Several at once


def test_a_second_build_of_the_same_name_is_refused(documents: Path) -> None:
    told: list[str] = []

    def second(name: str, done: int, total: int | None) -> None:
        told.append(error(build_index, [documents], "a", PLAIN))

    build_index([documents], "a", PLAIN, second)
    assert set(told) == {"index 'a' is being built by another process; wait for it to end"}


def test_what_a_reader_has_open_outlives_a_rebuild(documents: Path) -> None:
    build_index([documents], "a", STATIC)
    old, unopened = open_index("a"), open_index("a")
    vector = old.encoder.encode_queries(["masks and distance"])

    def state() -> list[Any]:
        found = old.lucene.search([old.lucene.text_query("the virus spreads")], 20, k1=0.9, b=0.4)[0]
        near = old.vectors.search(vector, 20)[0]
        store = old.store
        texts = [store.sentence_text(row) for row in range(store.n_sentences)]
        return [found[0].tolist(), found[1].tolist(), near[0].tolist(), near[1].tolist(), texts]

    before = state()
    documents.write_bytes(b"".join(sample_lines()[40:60]))
    new = build_index([documents], "a", STATIC)
    assert is_tidy(new)
    assert state() == before
    assert new.store.sentence_text(0) != old.store.sentence_text(0)
    again = "index 'a' was built again after it was opened; open it again"
    for call in (lambda: unopened.store, lambda: unopened.lucene, lambda: unopened.vectors):
        assert error(call) == again


def test_a_rebuild_while_an_index_is_opened_opens_the_new_one(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = build_index([documents], "a", PLAIN)
    plain = build._current
    calls: list[Path] = []

    def current(root: Path, name: str) -> Path:
        folder = plain(root, name)
        calls.append(folder)
        if len(calls) == 1:
            build_index([documents], "a", BuildOptions(dense="none", threads=1, force=True))
        return folder

    monkeypatch.setattr(build, "_current", current)
    assert open_index("a").folder != old.folder


# Damage


PARTS = ["corpus/contexts.arrow", "corpus/corpus.json", "lucene/_0.fdt", "lucene/segments_1", "vectors.faiss"]


@pytest.mark.parametrize("part", [*PARTS, "index.json", "CURRENT"])
@pytest.mark.parametrize("kind", ["flipped", "cut", "missing"])
def test_damage_is_noticed(copied: Path, part: str, kind: str) -> None:
    path = copied / part if part == "CURRENT" else open_index("a").folder / part
    data = path.read_bytes()
    if kind == "missing":
        path.unlink()
    elif kind == "cut":
        path.write_bytes(data[:-2])
    else:
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    message = error(open_index, "a")
    assert ("incomplete" if (part, kind) == ("CURRENT", "missing") else str(copied)) in message
    assert error(verify_index, "a") == message


@pytest.mark.parametrize("part", ["corpus/contexts.arrow", "index.json", "CURRENT"])
def test_the_next_build_mends_damage(copied: Path, whole: Path, part: str) -> None:
    path = copied / part if part == "CURRENT" else open_index("a").folder / part
    path.write_bytes(path.read_bytes()[:-3])
    mended = build_index([whole / "d.jsonl"], "a", STATIC)
    assert is_tidy(mended)
    assert verify_index("a").manifest["documents"] == 20


@pytest.mark.parametrize("part", PARTS)
def test_a_flipped_byte_with_its_time_restored_is_found_by_verify(copied: Path, part: str) -> None:
    path = open_index("a").folder / part
    state = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    open_index("a")
    assert f"{path}: damaged" in error(verify_index, "a")


def test_a_copy_without_times_opens(home: Path, whole: Path) -> None:
    shutil.copytree(whole / "home", home, copy_function=shutil.copyfile)
    index = verify_index("a")
    assert index.store.n_documents == 20
    assert len(index.vectors) == index.store.n_sentences
    assert index.lucene.frequency("viru") > 0


def test_another_version_is_refused_and_replaced(
    copied: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.manifests, "VERSION", 2)
    assert "index 'a' is of version 1, this epicqa reads version 2" in error(open_index, "a")
    assert build_index([whole / "d.jsonl"], "a", PLAIN).manifest["version"] == 2
