"""Shards joined into the final files, column by column, in memory that does not grow with the text."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from epicqa.corpus import layout
from epicqa.corpus.shards import Shard, Skipped, place
from epicqa.files import remove_tree, replacing

if TYPE_CHECKING:
    from typing_extensions import Buffer

_PIECE = 8 << 20


@dataclass(frozen=True)
class Plan:
    """What stays out besides the records that are no documents.

    Attributes:
        shards: the shards in collection order.
        duplicates: by shard, the rows whose document id stands earlier, and why.
    """

    shards: Sequence[Path]
    duplicates: dict[int, dict[int, Skipped]] = field(default_factory=dict)

    def skipped(self) -> Iterator[Skipped]:
        """Every skipped record in collection order."""
        for number, path in enumerate(self.shards):
            found = [*Shard(path).skipped, *self.duplicates.get(number, {}).values()]
            yield from sorted(found, key=lambda one: one.ordinal)


def plan(shards: Sequence[Path]) -> Plan:
    """Find duplicate document ids: hashes of all, the ids themselves only where hashes are equal."""
    hashes = [np.empty(0, np.uint64)]
    hashes += [layout.numbers(Shard(path).batch["hash"]).copy() for path in shards]
    sizes = np.array([len(one) for one in hashes[1:]], dtype=np.int64)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    values, counts = np.unique(every := np.concatenate(hashes), return_counts=True)
    rows = np.flatnonzero(np.isin(every, values[counts > 1]))
    seen: dict[str, str] = {}
    duplicates: dict[int, dict[int, Skipped]] = defaultdict(dict)
    of_shard = np.searchsorted(firsts, rows, side="right") - 1
    for number in np.unique(of_shard).tolist():
        batch = Shard(shards[number]).batch
        for row in (rows[of_shard == number] - firsts[number]).tolist():
            document_id, ordinal, file, line = (
                batch[name][row].as_py() for name in ("document_id", "ordinal", "file", "line")
            )
            line = line or None
            if document_id in seen:
                reason = f"duplicate document id {document_id!r}, first in {seen[document_id]}"
                duplicates[number][row] = Skipped(ordinal, file, line, document_id, reason)
            else:
                seen[document_id] = place(file, line)
    return Plan(shards, dict(duplicates))


def write_report(path: Path, planned: Plan) -> int:
    """Write one JSON line for each skipped record; returns how many."""
    count = 0
    with replacing(path) as temporary, temporary.open("wb") as sink:
        for count, one in enumerate(planned.skipped(), start=1):  # noqa: B007
            line = {"file": one.file, "line": one.line, "document_id": one.document_id, "reason": one.reason}
            sink.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return count


def write_tables(folder: Path, planned: Plan) -> tuple[dict[str, int], str]:
    """Write the three Arrow files; returns their row counts and the fingerprint of the content.

    The fingerprint is the SHA-256 over the documents' SHA-256 digests in collection order, each over the
    JSON of its id, title, url, metadata, and contexts with their spans.
    """
    spills = folder / layout.SPILLS
    remove_tree(spills)
    spills.mkdir()
    fingerprint = hashlib.sha256()
    with ExitStack() as stack:
        merging = _Merging(spills, stack)
        for number, path in enumerate(planned.shards):
            batch = Shard(path).batch
            if out := planned.duplicates.get(number):
                keep = np.ones(batch.num_rows, dtype=bool)
                keep[list(out)] = False
                bits = pa.py_buffer(np.packbits(keep, bitorder="little"))
                batch = batch.filter(pa.Array.from_buffers(pa.bool_(), len(keep), [None, bits]))
            fingerprint.update(b"".join(batch["digest"].to_pylist()))
            merging.add(batch)
    merging.sort_hashes()
    for table, schema in layout.TABLES.items():
        with (
            replacing(layout.table_path(folder, table)) as temporary,
            _Sink(temporary, merging.release) as sink,
            pa.ipc.new_file(sink, schema) as writer,
        ):
            writer.write_batch(merging.batch(table))
    remove_tree(spills)
    return merging.rows, fingerprint.hexdigest()


class _Sink(io.FileIO):
    """A file written in pieces, with a call after each."""

    def __init__(self, path: Path, after: Callable[[], None]) -> None:
        super().__init__(path, "w")
        self._after = after

    def write(self, data: Buffer) -> int:
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += super().write(view[done : done + _PIECE])
            self._after()
        return done


class _Merging:
    """The columns of the three tables as flat files that grow shard by shard, then become Arrow buffers."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.rows = dict.fromkeys(layout.TABLES, 0)
        self._folder = folder
        self._stack = stack
        self._files: dict[str, BinaryIO] = {}
        self._ends: dict[str, int] = defaultdict(int)
        self._hashes: list[NDArray[np.uint64]] = []
        self._maps: list[mmap.mmap] = []
        for table, schema in layout.TABLES.items():
            for one in schema:
                if pa.types.is_large_string(one.type) or pa.types.is_large_list(one.type):
                    self._append(f"{table}.{one.name}.offsets", np.zeros(1, np.int64).data)

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the documents of one shard and all that is theirs."""
        contexts = batch["contexts"].flatten()
        number, section, text, lists = contexts.flatten()
        sentences = lists.flatten()
        self._hashes.append(layout.numbers(batch["hash"]).copy())
        for name in ("document_id", "title", "url", "metadata"):
            self._append_text(f"documents.{name}", batch[name])
        self._append_number("contexts.document", self._parents("documents", batch["contexts"]))
        self._append_number("contexts.number", layout.numbers(number))
        self._append_text("contexts.section", section)
        self._append_text("contexts.text", text)
        self._append_number("sentences.context", self._parents("contexts", lists))
        for name, values in zip(_SENTENCE_NUMBERS, sentences.flatten(), strict=True):
            self._append_number(f"sentences.{name}", layout.numbers(values))
        self._append_offsets("documents.contexts", _lengths(batch["contexts"]))
        self._append_offsets("contexts.sentences", _lengths(lists))
        for table, part in (("documents", batch), ("contexts", contexts), ("sentences", sentences)):
            self.rows[table] += len(part)

    def sort_hashes(self) -> None:
        """Write the id look-up; 12 bytes a document are held in memory for it."""
        hashes = np.concatenate(self._hashes or [np.empty(0, np.uint64)])
        order = np.argsort(hashes, kind="stable")
        (self._folder / "documents.sorted_hash").write_bytes(hashes[order].data)
        (self._folder / "documents.sorted_row").write_bytes(order.astype(np.int32).data)

    def batch(self, table: str) -> pa.RecordBatch:
        """One table over its memory-mapped columns."""
        rows = self.rows[table]
        columns = []
        for one in layout.TABLES[table]:
            name = f"{table}.{one.name}"
            if pa.types.is_large_string(one.type):
                buffers = [None, self._mapped(f"{name}.offsets"), self._mapped(f"{name}.bytes")]
                columns.append(pa.Array.from_buffers(one.type, rows, buffers))
            elif pa.types.is_large_list(one.type):
                buffers = [None, self._mapped(f"{name}.offsets")]
                nulls = pa.nulls(self._ends[name])
                columns.append(pa.Array.from_buffers(one.type, rows, buffers, children=[nulls]))
            else:
                columns.append(pa.Array.from_buffers(one.type, rows, [None, self._mapped(name)]))
        return pa.RecordBatch.from_arrays(columns, schema=layout.TABLES[table])

    def _parents(self, table: str, lists: pa.LargeListArray) -> NDArray[np.int32]:
        first = self.rows[table]
        return np.repeat(np.arange(first, first + len(lists)), _lengths(lists)).astype(np.int32)

    def _append_text(self, name: str, texts: pa.LargeStringArray) -> None:
        lengths = _lengths(texts)
        if data := texts.buffers()[2]:
            ends = layout.offsets(texts)
            self._append(f"{name}.bytes", memoryview(data)[ends[0] : ends[-1]])
        else:
            self._append(f"{name}.bytes", memoryview(b""))
        self._append_offsets(name, lengths)

    def _append_offsets(self, name: str, lengths: NDArray[np.int64]) -> None:
        ends = self._ends[name] + np.cumsum(lengths)
        self._append(f"{name}.offsets", ends.data)
        self._ends[name] += int(lengths.sum())

    def _append_number(self, name: str, values: NDArray[np.int32]) -> None:
        self._append(name, np.ascontiguousarray(values).data)

    def _append(self, name: str, data: memoryview) -> None:
        if name not in self._files:
            self._files[name] = self._stack.enter_context((self._folder / name).open("wb"))
        self._files[name].write(data)

    def _mapped(self, name: str) -> pa.Buffer:
        with (self._folder / name).open("rb") as stream:
            if not os.fstat(stream.fileno()).st_size:
                return pa.py_buffer(b"")  # an empty file cannot be mapped
            self._maps.append(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        return pa.py_buffer(self._maps[-1])

    def release(self) -> None:
        """Give back the memory of the pages read so far; they come again when read again."""
        for one in self._maps:
            one.madvise(mmap.MADV_DONTNEED)


_SENTENCE_NUMBERS = ("number", "start", "end", "byte_start", "byte_end")


def _lengths(array: pa.LargeStringArray | pa.LargeListArray) -> NDArray[np.int64]:
    """Bytes of each text, or elements of each list."""
    return np.diff(layout.offsets(array))
