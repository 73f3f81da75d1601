"""Building a corpus: records read by one process, parsed by several, joined, and never half there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import orjson

from epicqa.corpus import layout, merge
from epicqa.corpus.shards import Counts, Shard, write_shard
from epicqa.corpus.sources import Record, records
from epicqa.corpus.store import CorpusStore
from epicqa.corpus.workers import Call, in_order
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, write_bytes

BATCH_BYTES = 4 << 20

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CorpusSummary:
    """What a build made.

    Attributes:
        documents, contexts, sentences: rows of the corpus.
        skipped: records that are not in it, listed in ``report``.
        fingerprint: hex SHA-256 of the content, whatever the batches, workers and compression were.
        report: the path of ``report.jsonl``.
    """

    documents: int
    contexts: int
    sentences: int
    skipped: int
    fingerprint: str
    report: Path


def build_corpus(
    sources: Sequence[Path],
    folder: Path,
    *,
    workers: int = 2,
    strict: bool = False,
    progress: Progress | None = None,
) -> CorpusSummary:
    """Build ``folder`` from the sources, or go on where an interrupted build of it stopped.

    The folder belongs to these sources: whoever calls again with others chooses another folder. Records
    that are no documents, and documents whose id came before, are skipped and listed in ``report.jsonl``.

    Args:
        sources: folders, files and archives, in collection order.
        folder: made if missing; holds the corpus when this returns.
        workers: processes that parse; 1 or fewer parse in this process.
        strict: stop at the first record that would be skipped.
        progress: called with the documents and sentences parsed so far.

    Raises:
        EpicqaError: a source cannot be read, nothing in it is valid, or ``strict`` found a bad record.
        OSError: the disk is full or not writable; finished shards stay.
    """
    if (done := _finished(folder)) is None:
        (folder / layout.SHARDS).mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        shards = _write_shards(sources, folder, workers, strict, progress)
        done = _merge(folder, shards, strict)
    elif strict and done.skipped:
        with done.report.open("rb") as report:
            first = orjson.loads(report.readline())
        raise EpicqaError(f"{merge.place(first['file'], first['line'])}: {first['reason']}")
    remove_tree(folder / layout.SPILLS)
    remove_tree(folder / layout.SHARDS)
    return done


def _finished(folder: Path) -> CorpusSummary | None:
    """The corpus that is there, if it is whole; one that does not open is taken apart."""
    try:
        store = CorpusStore.open(folder)
    except EpicqaError:
        (folder / layout.SUMMARY).unlink(missing_ok=True)
        return None
    return CorpusSummary(
        store.n_documents,
        store.n_contexts,
        store.n_sentences,
        layout.read_summary(folder)["skipped"],
        store.fingerprint,
        folder / layout.REPORT,
    )


def _remove_leftovers(folder: Path) -> None:
    """Temporary files of a build that was killed."""
    remove_tree(folder / layout.SPILLS)
    for temporary in (*folder.glob(".*.tmp"), *(folder / layout.SHARDS).glob(".*.tmp")):
        temporary.unlink(missing_ok=True)


def _batches(sources: Sequence[Path]) -> Iterator[list[Record]]:
    """Records in collection order, cut by size alone so that a resumed build cuts at the same places."""
    batch: list[Record] = []
    size = 0
    for source in sources:
        for record in records(source):
            batch.append(record)
            size += len(record.raw)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _write_shards(
    sources: Sequence[Path], folder: Path, workers: int, strict: bool, progress: Progress | None
) -> list[Path]:
    """Shards of all batches in order; under ``strict`` up to the first that skipped a record."""

    def calls() -> Iterator[Call]:
        for number, batch in enumerate(_batches(sources)):
            path = layout.shard_path(folder, number)
            # What an earlier, interrupted build finished is not done again.
            yield (_counts, (path,)) if _counts(path) else (write_shard, (path, batch))

    shards: list[Path] = []
    documents = sentences = 0
    with closing(in_order(calls(), workers)) as results:
        for number, counts in enumerate(results):
            shards.append(layout.shard_path(folder, number))
            documents += counts.documents
            sentences += counts.sentences
            if progress:
                progress(documents, sentences)
            if strict and counts.skipped:
                break
    return shards


def _counts(path: Path) -> Counts | None:
    """What a shard that is there holds; None if it is not there or not whole."""
    try:
        return Shard(path).counts
    except (OSError, ValueError, KeyError):
        return None


def _merge(folder: Path, shards: Sequence[Path], strict: bool) -> CorpusSummary:
    planned = merge.plan(shards)
    first = next(planned.skipped(), None)
    if strict and first:
        raise EpicqaError(str(first))
    skipped = merge.write_report(folder / layout.REPORT, planned)
    if not any(Shard(path).counts.documents for path in shards):
        raise EpicqaError(f"no valid document, {skipped} skipped; the first is {first}")
    rows, fingerprint = merge.write_tables(folder, planned)
    duplicates = sum(map(len, planned.duplicates.values()))
    content = {
        "format": "epicqa corpus",
        "version": layout.VERSION,
        "fingerprint": fingerprint,
        **rows,
        "skipped": skipped,
        "skipped_by_kind": {"invalid": skipped - duplicates, "duplicate": duplicates},
        "bytes": {table: layout.table_path(folder, table).stat().st_size for table in layout.TABLES},
    }
    write_bytes(folder / layout.SUMMARY, orjson.dumps(content, option=orjson.OPT_INDENT_2))
    return CorpusSummary(**rows, skipped=skipped, fingerprint=fingerprint, report=folder / layout.REPORT)
