"""One batch of records parsed into one Arrow file: the part of a build that runs in worker processes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from epicqa.corpus.model import Context, Document
from epicqa.corpus.sources import BadDocument, Record, parse
from epicqa.files import replacing
from epicqa.ids import parse_context_id, parse_sentence_id

SENTENCE = pa.struct([(name, pa.int32()) for name in ("number", "start", "end", "byte_start", "byte_end")])
CONTEXT = pa.struct(
    [
        ("number", pa.int32()),
        ("section", pa.large_string()),
        ("text", pa.large_string()),
        ("sentences", pa.large_list(SENTENCE)),
    ]
)
SHARD = pa.schema(
    [
        ("document_id", pa.large_string()),
        ("title", pa.large_string()),
        ("url", pa.large_string()),
        ("metadata", pa.large_string()),
        ("hash", pa.uint64()),
        ("digest", pa.binary(32)),
        ("ordinal", pa.int32()),
        ("file", pa.large_string()),
        # 0 where the whole file is the document.
        ("line", pa.int64()),
        ("contexts", pa.large_list(CONTEXT)),
    ]
)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that is not in the corpus; ``ordinal`` is its place in the batch."""

    ordinal: int
    file: str
    line: int | None
    document_id: str | None
    reason: str

    def __str__(self) -> str:
        return f"{place(self.file, self.line)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Counts:
    """What one shard holds."""

    documents: int
    sentences: int
    skipped: int


def place(file: str, line: int | None) -> str:
    return file if line is None else f"{file}:{line}"


def id_hash(document_id: str) -> int:
    """64 bits of BLAKE2b of an id: the key of the id look-up, stable across machines."""
    return int.from_bytes(hashlib.blake2b(document_id.encode(), digest_size=8).digest(), "little")


@dataclass
class _Columns:
    """Flat columns; the offsets say how many rows of the next level belong to a row."""

    documents: list[tuple[Any, ...]] = field(default_factory=list)
    contexts: list[tuple[Any, ...]] = field(default_factory=list)
    sentences: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    context_offsets: list[int] = field(default_factory=lambda: [0])
    sentence_offsets: list[int] = field(default_factory=lambda: [0])

    def add(self, document: Document, ordinal: int, record: Record) -> None:
        metadata = orjson.dumps(document.metadata, option=orjson.OPT_SORT_KEYS)
        content = [
            document.document_id,
            document.title,
            document.url,
            orjson.Fragment(metadata),
            [self._add_context(context) for context in document.contexts],
        ]
        self.context_offsets.append(len(self.contexts))
        self.documents.append(
            (
                document.document_id,
                document.title or "",
                document.url or "",
                metadata.decode(),
                id_hash(document.document_id),
                hashlib.sha256(orjson.dumps(content)).digest(),
                ordinal,
                record.file,
                record.line or 0,
            )
        )

    def _add_context(self, context: Context) -> list[Any]:
        """Adds the rows; returns what the digest of the document is taken over."""
        text = context.text
        ascii_only = text.isascii()
        first = parse_sentence_id(context.sentences[0].sentence_id).sentence
        spans = []
        at = at_byte = 0
        for number, sentence in enumerate(context.sentences, start=first):
            start, end = sentence.start, sentence.end
            if ascii_only:
                byte_start, byte_end = start, end
            else:
                byte_start = at_byte + len(text[at:start].encode())
                byte_end = byte_start + len(text[start:end].encode())
                at, at_byte = end, byte_end
            self.sentences.append((number, start, end, byte_start, byte_end))
            spans.append((start, end))
        self.sentence_offsets.append(len(self.sentences))
        number = parse_context_id(context.context_id).context
        self.contexts.append((number, context.section or "", text))
        return [number, context.section, text, first, spans]

    def batch(self) -> pa.RecordBatch:
        sentences = _struct(self.sentences, SENTENCE)
        contexts = _struct(self.contexts, CONTEXT, _lists(self.sentence_offsets, sentences))
        columns = _arrays(self.documents, [one.type for one in SHARD][:-1])
        columns.append(_lists(self.context_offsets, contexts))
        return pa.RecordBatch.from_arrays(columns, schema=SHARD)


def _arrays(rows: Sequence[tuple[Any, ...]], types: Sequence[pa.DataType]) -> list[pa.Array]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    return [_array(column, kind) for column, kind in zip(columns, types, strict=True)]


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array without nulls; ``pa.array`` would first import pandas, in every worker."""
    if pa.types.is_large_string(kind):
        texts = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(texts))]
    elif pa.types.is_fixed_size_binary(kind):
        buffers = [None, pa.py_buffer(b"".join(values))]
    else:
        buffers = [None, pa.py_buffer(np.array(values, kind.to_pandas_dtype()))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _struct(rows: Sequence[tuple[Any, ...]], kind: pa.StructType, *last: pa.Array) -> pa.StructArray:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    arrays = _arrays(rows, [one.type for one in fields[: len(fields) - len(last)]])
    return pa.StructArray.from_arrays([*arrays, *last], fields=fields)


def _lists(offsets: list[int], values: pa.Array) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(_array(offsets, pa.int64()), values)


def write_shard(path: Path, records: Sequence[Record]) -> Counts:
    """Parse the records of a batch and write them, those that are no documents listed beside them."""
    columns = _Columns()
    skipped = []
    for ordinal, record in enumerate(records):
        try:
            document = parse(record.raw)
        except BadDocument as error:
            skipped.append(Skipped(ordinal, record.file, record.line, error.document_id, str(error)))
        else:
            columns.add(document, ordinal, record)
    counts = Counts(len(columns.documents), len(columns.sentences), len(skipped))
    notes = {
        "counts": orjson.dumps(asdict(counts)),
        "skipped": orjson.dumps([asdict(one) for one in skipped]),
    }
    with (
        replacing(path) as temporary,
        temporary.open("wb") as sink,
        pa.ipc.new_file(sink, SHARD.with_metadata(notes)) as writer,
    ):
        writer.write_batch(columns.batch())
    return counts


class Shard:
    """A written shard, memory-mapped."""

    def __init__(self, path: Path) -> None:
        self._reader = pa.ipc.open_file(pa.memory_map(str(path)))
        self._notes = self._reader.schema.metadata

    @property
    def counts(self) -> Counts:
        return Counts(**orjson.loads(self._notes[b"counts"]))

    @property
    def skipped(self) -> list[Skipped]:
        return [Skipped(**one) for one in orjson.loads(self._notes[b"skipped"])]

    @property
    def batch(self) -> pa.RecordBatch:
        return self._reader.get_batch(0)
