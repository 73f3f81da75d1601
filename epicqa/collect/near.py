"""Near-duplicates in a collection: over all its documents, then over their contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicqa.collect.parts import CONTEXTS, DOCUMENTS, Entry
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
        scratch: a folder for the signatures, which are read from disk.

    Returns:
        Near-duplicates; bool[documents], which stay; bool[contexts of all documents], which stay.
    """
    counts = np.array([len(one.contexts) for one in entries], dtype=np.int64)
    owner = np.repeat(np.arange(len(entries)), counts)
    near: list[Near] = []
    stay = keep.copy()
    compared = keep.copy()
    if settings.duplicate_documents != "off":
        drop = settings.duplicate_documents == "drop"
        signatures = _gathered(stems, DOCUMENTS, scratch)
        for later, earlier, similarity in _pairs(signatures, keep, settings.similarity):
            found, of = entries[later].document_id, entries[earlier].document_id
            near.append(Near("document", found, of, similarity, drop))
            compared[later] = False
            stay[later] = not drop
    contexts = stay[owner]
    if settings.duplicate_contexts != "off":
        drop = settings.duplicate_contexts == "drop"
        ids = _context_ids(entries, counts)
        signatures = _gathered(stems, CONTEXTS, scratch)
        among = contexts.copy() if drop else compared[owner]
        for later, earlier, similarity in _pairs(signatures, among, settings.similarity):
            near.append(Near("context", ids(later), ids(earlier), similarity, drop))
            contexts[later] = not drop
    return near, stay, contexts


def _gathered(stems: Sequence[Path], suffix: str, scratch: Path) -> Any:
    """The signatures of all parts, in one array on disk."""
    parts = [np.load(stem.with_suffix(suffix), mmap_mode="r") for stem in stems]
    shape = (sum(map(len, parts)), parts[0].shape[1])
    every = np.lib.format.open_memmap(scratch / f"all{suffix}", "w+", parts[0].dtype, shape)
    at = 0
    for part in parts:
        every[at : at + len(part)] = part
        at += len(part)
    return every


def _pairs(signatures: Any, among: Mask, threshold: float) -> Iterator[tuple[int, int, float]]:
    """Rows that nearly repeat an earlier one, that one, and the similarity; the others' signatures go."""
    from epicqa.corpus.near_duplicates import NOTHING, groups

    signatures[~among] = NOTHING
    first, similarity = groups(signatures, threshold)
    for later in np.flatnonzero(first != np.arange(len(first))):
        yield int(later), int(first[later]), float(similarity[later])


def _context_ids(entries: Sequence[Entry], counts: NDArray[np.int64]) -> Callable[[int], str]:
    ends = np.cumsum(counts)

    def context_id(row: int) -> str:
        document = int(np.searchsorted(ends, row, side="right"))
        entry = entries[document]
        return str(ContextId(entry.document_id, entry.contexts[row - int(ends[document] - counts[document])]))

    return context_id
