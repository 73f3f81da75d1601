"""What of a document is read for a claim: its abstract, or where it has none its beginning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore

ABSTRACT = "abstract"
BEGINNING = "beginning"

MOST_OF_BEGINNING = 20
"""Sentences of a document that are read where it has no abstract: as many as a long abstract has."""

# Papers' parses have "Abstract: ...", "Abstract Background" and "A B S T R A C T", too, but an abstract is
# neither a "Graphical abstract" nor "Abstracts".
_SECTION = re.compile(r"\W*a ?b ?s ?t ?r ?a ?c ?t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Sentences of a document: `ABSTRACT` or `BEGINNING`, and int64[n], their rows, ascending."""

    name: str
    rows: NDArray[np.int64]


def part_of(store: CorpusStore, document: int) -> Part:
    """All contexts whose section is an abstract's, else the first `MOST_OF_BEGINNING` sentences.

    A document's title is no part of it: a title has no context of its own.

    Args:
        store: the collection.
        document: a row of it.
    """
    contexts = range(*store.document_first[document : document + 2].tolist())
    rows = [_rows(store, one) for one in contexts if _SECTION.match(store.section(one) or "")]
    if any(map(len, rows)):
        return Part(ABSTRACT, np.concatenate(rows))
    first, end = store.context_first[[contexts.start, contexts.stop]].tolist()
    return Part(BEGINNING, np.arange(first, min(end, first + MOST_OF_BEGINNING)))


def _rows(store: CorpusStore, context: int) -> NDArray[np.int64]:
    return np.arange(*store.context_first[context : context + 2])
