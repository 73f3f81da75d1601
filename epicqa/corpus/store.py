"""The built corpus, read only: Arrow files memory-mapped, text by row or by id in microseconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from epicqa.corpus import layout
from epicqa.corpus.shards import id_hash
from epicqa.errors import EpicqaError
from epicqa.ids import parse_sentence_id

_CHUNK = 8192


class _Texts:
    """A text column; ``str`` of a slice of a memory view costs a fraction of an Arrow scalar."""

    __slots__ = ("_data", "_offsets", "offsets")

    def __init__(self, array: pa.LargeStringArray) -> None:
        self.offsets = layout.offsets(array)
        self._offsets = self.offsets.data
        self._data = memoryview(array.buffers()[2] or b"")

    def __getitem__(self, row: int) -> str:
        if row < 0:
            raise IndexError(row)
        return str(self._data[self._offsets[row] : self._offsets[row + 1]], "utf-8")

    def slice(self, row: int, start: int, end: int) -> str:
        """The text of bytes start..end-1 of a row."""
        first = self._offsets[row]
        return str(self._data[first + start : first + end], "utf-8")

    def slices(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[str]:
        """Texts of byte ranges of the whole column."""
        data = self._data
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield str(data[start:end], "utf-8")


class CorpusStore:
    """A corpus folder made by ``build_corpus``; rows are in collection order.

    Attributes:
        folder: where it lies.
        fingerprint: hex SHA-256 of the content.
        n_documents, n_contexts, n_sentences: row counts.
        sentence_context: int32[n_sentences], the context of each sentence.
        sentence_number: int32[n_sentences], the number after ``-S``.
        sentence_start, sentence_end: int32[n_sentences], code points into the context's text, end exclusive.
        context_document: int32[n_contexts], the document of each context.
        context_number: int32[n_contexts], the number after ``-C``.
        context_first: int64[n_contexts + 1], first sentence of each context; the last element is n_sentences.
        document_first: int64[n_documents + 1], first context of each document; the last is n_contexts.
    """

    def __init__(self, folder: Path) -> None:
        """Use ``open``."""
        self.folder = folder
        summary = layout.read_summary(folder)
        documents, contexts, sentences = (_table(folder, name, summary) for name in layout.TABLES)
        self.fingerprint: str = summary["fingerprint"]
        self.n_documents: int = documents.num_rows
        self.n_contexts: int = contexts.num_rows
        self.n_sentences: int = sentences.num_rows

        self.sentence_context: NDArray[np.int32] = layout.numbers(sentences["context"])
        self.sentence_number: NDArray[np.int32] = layout.numbers(sentences["number"])
        self.sentence_start: NDArray[np.int32] = layout.numbers(sentences["start"])
        self.sentence_end: NDArray[np.int32] = layout.numbers(sentences["end"])
        self.context_document: NDArray[np.int32] = layout.numbers(contexts["document"])
        self.context_number: NDArray[np.int32] = layout.numbers(contexts["number"])
        self.context_first = layout.offsets(contexts["sentences"])
        self.document_first = layout.offsets(documents["contexts"])

        self._byte_start: NDArray[np.int32] = layout.numbers(sentences["byte_start"])
        self._byte_end: NDArray[np.int32] = layout.numbers(sentences["byte_end"])
        self._ids = _Texts(documents["document_id"])
        self._titles = _Texts(documents["title"])
        self._urls = _Texts(documents["url"])
        self._metadata = _Texts(documents["metadata"])
        self._sections = _Texts(contexts["section"])
        self._texts = _Texts(contexts["text"])

        # An item of a memory view is a plain int, several times cheaper than one of an array.
        self._v_context = self.sentence_context.data
        self._v_number = self.sentence_number.data
        self._v_byte_start = self._byte_start.data
        self._v_byte_end = self._byte_end.data
        self._v_document = self.context_document.data
        self._v_context_number = self.context_number.data
        self._v_context_first = self.context_first.data
        self._v_document_first = self.document_first.data
        self._v_hash = layout.numbers(documents["sorted_hash"]).data
        self._v_hash_row = layout.numbers(documents["sorted_row"]).data

    @classmethod
    def open(cls, folder: Path) -> CorpusStore:
        """Open a corpus folder; no column is read.

        Raises:
            EpicqaError: a file is missing, cut short or damaged, or of another version.
        """
        return cls(Path(folder))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)

    def sentence_text(self, row: int) -> str:
        """The text of a sentence."""
        if row < 0:
            raise IndexError(row)
        return self._texts.slice(self._v_context[row], self._v_byte_start[row], self._v_byte_end[row])

    def sentence_id(self, row: int) -> str:
        """``DOCUMENT-C000-S000``."""
        if row < 0:
            raise IndexError(row)
        context = self._v_context[row]
        document_id = self._ids[self._v_document[context]]
        return f"{document_id}-C{self._v_context_number[context]:03d}-S{self._v_number[row]:03d}"

    def row(self, sentence_id: str) -> int:
        """The row of a sentence; numbers padded otherwise (``-C00012``) mean the same sentence.

        Raises:
            KeyError: no such sentence.
            ValueError: not of the form ``DOCUMENT-C000-S000``.
        """
        document_id, context_number, sentence_number = parse_sentence_id(sentence_id)
        document = self.document_row(document_id)
        numbers = self._v_context_number
        low, high = self._v_document_first[document], self._v_document_first[document + 1]
        context = bisect_left(numbers, context_number, low, high)
        if context < high and numbers[context] == context_number:
            first = self._v_context_first[context]
            # Sentence numbers are consecutive in a context.
            row: int = first + sentence_number - self._v_number[first]
            if first <= row < self._v_context_first[context + 1]:
                return row
        raise KeyError(sentence_id)

    def document_row(self, document_id: str) -> int:
        """The row of a document.

        Raises:
            KeyError: no such document.
        """
        hashes = self._v_hash
        wanted = id_hash(document_id)
        at = bisect_left(hashes, wanted)
        while at < self.n_documents and hashes[at] == wanted:
            row: int = self._v_hash_row[at]
            if self._ids[row] == document_id:
                return row
            at += 1
        raise KeyError(document_id)

    def document_id(self, document: int) -> str:
        return self._ids[document]

    def title(self, document: int) -> str | None:
        return self._titles[document] or None

    def url(self, document: int) -> str | None:
        return self._urls[document] or None

    def metadata(self, document: int) -> dict[str, Any]:
        """What the source said beyond title and url."""
        found: dict[str, Any] = orjson.loads(self._metadata[document])
        return found

    def section(self, context: int) -> str | None:
        return self._sections[context] or None

    def context_text(self, context: int) -> str:
        return self._texts[context]

    def iter_sentences(self, start: int, stop: int) -> Iterator[str]:
        """The texts of rows start..stop-1, streaming."""
        for low, high in self._chunks(start, stop):
            first = self._texts.offsets[self.sentence_context[low:high]]
            yield from self._texts.slices(
                first + self._byte_start[low:high], first + self._byte_end[low:high]
            )

    def iter_titled(self, start: int, stop: int) -> Iterator[tuple[str | None, str]]:
        """The document's title and the sentence's text of rows start..stop-1, streaming."""
        texts = self.iter_sentences(start, stop)
        previous, title = -1, None
        for low, high in self._chunks(start, stop):
            for document in self.context_document[self.sentence_context[low:high]].tolist():
                if document != previous:
                    previous, title = document, self.title(document)
                yield title, next(texts)

    def _chunks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        if not 0 <= start <= stop <= self.n_sentences:
            raise IndexError(f"rows {start} to {stop} of {self.n_sentences}")
        for low in range(start, stop, _CHUNK):
            yield low, min(low + _CHUNK, stop)


def _table(folder: Path, name: str, summary: dict[str, Any]) -> pa.RecordBatch:
    path = layout.table_path(folder, name)
    try:
        size, expected = path.stat().st_size, summary["bytes"][name]
        if size != expected:
            raise EpicqaError(f"{path}: damaged, {size} bytes instead of {expected}; build the corpus again")
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        if batch.schema != layout.TABLES[name] or batch.num_rows != summary[name]:
            raise EpicqaError(
                f"{path}: not the table that {layout.SUMMARY} speaks of; build the corpus again"
            )
    except FileNotFoundError:
        raise EpicqaError(f"{path}: missing; build the corpus again") from None
    except (OSError, pa.ArrowException, KeyError, TypeError, IndexError) as error:
        raise EpicqaError(
            f"{path}: damaged ({' '.join(str(error).split())}); build the corpus again"
        ) from None
    return batch
