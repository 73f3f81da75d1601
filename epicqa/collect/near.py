"""Near-duplicates in a collection: over all its documents, then over their contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicqa.collect.parts import Entry
from epicqa.collect.settings import Settings
from epicqa.ids import ContextId

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Near:
    """A document or context that nearly repeats an earlier one.

    Attributes:
        what: ``document`` or ``context``.
        found, of: ids of the later and of the earlier.
        similarity: estimated Jaccard similarity of their word 5-grams.
        dropped: whether the later is left out.
    """

    what: str
    found: str
    of: str
    similarity: float
    dropped: bool


def find_near(
    stems: Sequence[Path], entries: Sequence[Entry], keep: Mask, settings: Settings, scratch: Path
) -> tuple[list[Near], Mask, Mask]:
    """Find near-duplicates among the documents that are kept, and among the contexts of what is left.

    Contexts of documents that are near-duplicates themselves are looked at only where they would be dropped.

    Args:
        stems: the parts, with signatures.
        entries: their documents.
        keep: bool[documents], which are in the collection.
        scratch: a file for the signatures, which are read from disk.

    Returns:
        Near-duplicates; bool[documents], which stay; bool[contexts of all documents], which stay.
    """
    from epicqa.corpus.near_duplicates import groups, union

    counts = np.array([len(one.contexts) for one in entries], dtype=np.int64)
    owner = np.repeat(np.arange(len(entries)), counts)
    signatures = _gathered(stems, scratch)
    near: list[Near] = []
    stay = keep.copy()
    compared = keep.copy()
    if settings.duplicate_documents != "off":
        drop = settings.duplicate_documents == "drop"
        rows = np.flatnonzero(keep)
        whole = union(signatures[keep[owner]], counts[keep]) if len(rows) else signatures[:0]
        for later, earlier, similarity in _pairs(rows, *groups(whole, settings.similarity)):
            found, of = entries[later].document_id, entries[earlier].document_id
            near.append(Near("document", found, of, similarity, drop))
            compared[later] = False
            stay[later] = not drop
    contexts = stay[owner]
    if settings.duplicate_contexts != "off":
        drop = settings.duplicate_contexts == "drop"
        rows = np.flatnonzero(contexts if drop else compared[owner])
        ids = _context_ids(entries, counts)
        for later, earlier, similarity in _pairs(rows, *groups(signatures[rows], settings.similarity)):
            near.append(Near("context", ids(later), ids(earlier), similarity, drop))
            contexts[later] = not drop
    return near, stay, contexts


def _gathered(stems: Sequence[Path], scratch: Path) -> Any:
    """The signatures of all contexts, in one array on disk."""
    parts = [np.load(stem.with_suffix(".npy"), mmap_mode="r") for stem in stems]
    first = parts[0]
    shape = (sum(map(len, parts)), first.shape[1])
    every = np.lib.format.open_memmap(scratch, "w+", first.dtype, shape) if shape[0] else first
    at = 0
    for part in parts:
        every[at : at + len(part)] = part
        at += len(part)
    return every


def _pairs(
    rows: NDArray[np.int64], first: NDArray[np.int64], similarity: NDArray[np.float32]
) -> Iterator[tuple[int, int, float]]:
    for later in np.flatnonzero(first != np.arange(len(first))):
        yield int(rows[later]), int(rows[first[later]]), float(similarity[later])


def _context_ids(entries: Sequence[Entry], counts: NDArray[np.int64]) -> Any:
    ends = np.cumsum(counts)

    def context_id(row: int) -> str:
        document = int(np.searchsorted(ends, row, side="right"))
        entry = entries[document]
        return str(ContextId(entry.document_id, entry.contexts[row - int(ends[document] - counts[document])]))

    return context_id
