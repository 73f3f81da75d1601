"""Collecting: pieces read by one process, made into documents by several, joined, and never half there.

The work lies in ``.NAME.collecting`` beside the collection ``NAME`` until that is whole. There, ``parts/``
holds what is finished, so that an interrupted run goes on; it belongs to one plan: source, inputs, settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epicqa.collect.join import Progress, join
from epicqa.collect.layout import MARK, Collected, read_collected
from epicqa.collect.parts import Part, read_part, write_part
from epicqa.collect.settings import Settings
from epicqa.collect.url_ids import cached_url_ids, read_url_ids, write_url_ids
from epicqa.corpus.sources.raw import LeftOut, Piece, RawSource
from epicqa.corpus.workers import Call, WorkerDied, in_order
from epicqa.errors import EpicqaError
from epicqa.files import digest_of, remove_tree, sha256_of, state_of, sweep, sync_folder, write_bytes
from epicqa.packages import versions

VERSION = 1
BATCH_BYTES = 4 << 20
BATCH_PIECES = 64

_LEFT_OUT_BYTES = 256
_PACKAGES = (
    *("epicqa", "sentencex", "datasketch", "trafilatura", "lxml", "charset-normalizer"),
    *("warcio", "markdown-it-py"),
)


def collect(
    source: RawSource,
    inputs: Sequence[Path],
    out: Path,
    settings: Settings | None = None,
    *,
    url_ids: Path | None = None,
    workers: int = 2,
    force: bool = False,
    progress: Progress | None = None,
) -> Collected:
    """Make a collection of raw sources in ``out``, or go on where an interrupted run of the same stopped.

    The same inputs and settings give the same bytes, whatever the workers. What does not become a document is
    listed in ``report.tsv``, near-duplicates in ``near-duplicates.tsv``.

    Args:
        source: what kind of inputs these are.
        inputs: files and folders, in collection order.
        out: a folder; missing, empty, or a collection, which is replaced when the new one is whole.
        settings: what becomes of the documents; by default everything is kept.
        url_ids: a table of addresses and ids (see `read_url_ids`), made if missing: pages found there get
            these ids, others are added.
        workers: processes; 1 or fewer work in this process.
        force: collect again although nothing has changed.
        progress: told how far it is.

    Raises:
        EpicqaError: an input is missing or of another kind, ``out`` holds other files or an input, no
            document was found, or another process collects into ``out``.
        OSError: the disk is full; what was finished stays.
    """
    from filelock import FileLock, Timeout

    settings = settings or Settings()
    out = _checked(out, inputs, url_ids)
    work = out.with_name(f".{out.name}.collecting")
    work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(work / ".lock", timeout=0):
            told = progress or (lambda step, done, total: None)
            job = _Job(source, inputs, out, work, settings, url_ids, workers, told)
            if not out.exists() and (work / "old").exists():
                # A run was stopped between two renames.
                (work / "old").rename(out)
            plan = job.plan()
            done = None if force else _unchanged(out, plan)
            done = done or _collect(job, plan)
            remove_tree(work)
            return done
    except Timeout:
        raise EpicqaError(f"{out}: another process collects into it; wait for it to end") from None
    except WorkerDied:
        raise
    except EpicqaError:
        # Of other inputs nothing here is of use.
        remove_tree(work)
        raise


@dataclass(frozen=True, slots=True)
class _Job:
    source: RawSource
    inputs: Sequence[Path]
    out: Path
    work: Path
    settings: Settings
    url_ids: Path | None
    workers: int
    progress: Progress

    def plan(self) -> dict[str, Any]:
        """Everything that decides what the collection holds, but for the releases of packages."""
        table = self.url_ids
        return {
            "version": VERSION,
            "source": {"name": self.source.name, **asdict(self.source)},  # type: ignore[call-overload]
            "settings": asdict(self.settings),
            "inputs": [state_of(path, lambda name: True) for path in self.inputs],
            "url_ids": None if table is None else sha256_of(table) if table.exists() else "",
        }


def _checked(out: Path, inputs: Sequence[Path], url_ids: Path | None) -> Path:
    """Where ``out`` really lies, if a collection can be put there."""
    real = out.resolve()
    if real.exists() and not real.is_dir():
        raise EpicqaError(f"{out}: a file, expected a folder for the collection")
    if real.is_dir() and not (real / MARK).exists() and any(real.iterdir()):
        raise EpicqaError(
            f"{out}: holds files of something else; expected a new folder, an empty one, or a collection"
        )
    if not real.name:
        raise EpicqaError(f"{out}: expected a folder below")
    for given in inputs:
        if not given.exists():
            raise EpicqaError(f"{given}: no such file or folder")
        path = given.resolve()
        if path.is_relative_to(real) or real.is_relative_to(path):
            raise EpicqaError(f"{out}: lies in the input {given}, or that in it; expected another folder")
    if url_ids is not None:
        for folder in (out, *inputs):
            # There it would go with the old collection, or make every run a new one.
            if url_ids.resolve().is_relative_to(folder.resolve()):
                raise EpicqaError(f"{url_ids}: lies in {folder}; expected another place for the table of ids")
    return real


def _unchanged(out: Path, plan: dict[str, Any]) -> Collected | None:
    """The collection that is there, if it is of this plan."""
    found = read_collected(out)
    return found if found and found.key == digest_of(plan) else None


def _collect(job: _Job, plan: dict[str, Any]) -> Collected:
    key = digest_of([plan, versions(_PACKAGES)])
    _own(job.work, key)
    table = _table(job)
    parts = dict(_parts(job, table))
    ids = {} if table is None else dict(read_url_ids(table))
    stage = job.work / "collection"
    remove_tree(stage)
    joined = join(parts, stage, job.settings, ids if table else None, job.progress)
    if job.url_ids:
        write_url_ids(job.url_ids, ids)
        plan["url_ids"] = sha256_of(job.url_ids)
    done = Collected(out=job.out, key=digest_of(plan), source=job.source.name, **joined)
    write_bytes(stage / MARK, done.to_json(plan))
    _put(stage, job.out, job.work / "old")
    return done


def _own(work: Path, key: str) -> None:
    """Empty the work folder of what another plan left there."""
    mark = work / "plan"
    if not mark.exists() or mark.read_bytes() != key.encode():
        for path in work.iterdir():
            if path.name == ".lock":
                continue
            if path.is_dir():
                remove_tree(path)
            else:
                path.unlink()
        write_bytes(mark, key.encode())
    (work / "parts").mkdir(exist_ok=True)
    (work / "scratch").mkdir(exist_ok=True)
    sweep(work)
    sweep(work / "parts")


def _table(job: _Job) -> Path | None:
    """The table of ids as it was when the work began, wherever it goes meanwhile."""
    if job.url_ids is None:
        return None
    # One process may collect several times.
    cached_url_ids.cache_clear()
    copy = job.work / "url-ids.tsv"
    if not copy.exists():
        write_url_ids(copy, read_url_ids(job.url_ids) if job.url_ids.exists() else {})
    return copy


def _parts(job: _Job, table: Path | None) -> Iterator[tuple[Path, Part]]:
    """The parts, in order, each when it is finished."""

    def stem(number: int) -> Path:
        return job.work / "parts" / f"{number:06d}"

    def calls() -> Iterator[Call]:
        for number, batch in enumerate(_batches(job)):
            path = stem(number)
            if read_part(path):
                yield read_part, (path,)
            else:
                yield write_part, (path, batch, job.source, job.settings, table)

    documents = 0
    # Some sources read long before there is a document.
    job.progress("collecting documents", 0, None)
    with closing(in_order(calls(), job.workers)) as results:
        for number, part in enumerate(results):
            documents += len(part.entries)
            job.progress("collecting documents", documents, None)
            yield stem(number), part


def _batches(job: _Job) -> Iterator[list[Piece | LeftOut]]:
    """Pieces in order, cut by number and size alone so that a resumed run cuts at the same places."""
    batch: list[Piece | LeftOut] = []
    pieces = size = 0
    for one in job.source.pieces(job.inputs, job.work / "scratch", job.settings.max_file_size):
        batch.append(one)
        if isinstance(one, LeftOut):
            size += _LEFT_OUT_BYTES
        else:
            size += len(one.raw) if one.size is None else one.size
            pieces += 1
        if size >= BATCH_BYTES or pieces >= BATCH_PIECES:
            yield batch
            batch, pieces, size = [], 0, 0
    if batch:
        yield batch


def _put(stage: Path, out: Path, old: Path) -> None:
    """Move a whole collection to its place; one that is there goes only then."""
    remove_tree(old)
    if out.exists():
        out.rename(old)
    stage.rename(out)
    sync_folder(out.parent)
    remove_tree(old)
