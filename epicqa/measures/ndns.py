"""Normalised discounted novelty score (NDNS) of a ranking of passages, in its published definition.

EPIC-QA at TAC 2020, task guidelines, "Evaluation". For a passage at rank r, the nuggets of all earlier
passages being seen: a sentence is novel (carries a nugget not seen), redundant (only seen ones) or filler
(none); n_a counts the passage's nuggets not seen, and

    NS = n_a (n_a + 1) / (n_a + n_s), 0 where n_a = 0
    DNS = sum over ranks of NS / log2(r + 1)
    NDNS = DNS / DNS of the ideal ranking

The variants differ in n_s only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.judgments import JudgedQuestion

Counts = NDArray[np.int64]

MAX_RANK = 1000
"""Ranks that count, as in the track."""

DISCOUNT = np.array([math.log2(rank + 1) for rank in range(1, MAX_RANK + 1)])
"""float64[1000], log2(r + 1) at r - 1; from the C library, as NumPy's log2 differs between machines."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One reading of a passage's size: ``size(filler, redundant, novel)`` gives n_s of sentence counts."""

    name: str
    help: str
    size: Callable[[Counts, Counts, Counts], Counts]

    def novelty(
        self, nuggets: Counts, filler: Counts, redundant: Counts, novel: Counts
    ) -> NDArray[np.float64]:
        """NS of passages: float64[n] from int64[n] counts of new nuggets and of sentences by kind."""
        size = self.size(filler, redundant, novel)
        return nuggets * (nuggets + 1) / np.maximum(nuggets + size, 1)


EXACT = Variant(
    "exact",
    "every sentence counts",
    lambda filler, redundant, novel: filler + redundant + novel,
)
PARTIAL = Variant(
    "partial",
    "novel sentences count as one",
    lambda filler, redundant, novel: filler + redundant + np.minimum(novel, 1),
)
RELAXED = Variant(
    "relaxed",
    "novel sentences count as one, redundant ones too",
    lambda filler, redundant, novel: filler + np.minimum(redundant, 1) + np.minimum(novel, 1),
)

PUBLISHED = (EXACT, PARTIAL, RELAXED)
"""The measures of the published definition."""


def dns(
    question: JudgedQuestion,
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
    variants: tuple[Variant, ...] = PUBLISHED,
) -> NDArray[np.float64]:
    """DNS of a ranking.

    Args:
        question: its judgments.
        context: [n] positions in ``question.contexts``, -1 where a passage is in none of them.
        first, last: [n] numbers of the first and last sentence, inclusive.
        variants: what to compute.

    Returns:
        float64[len(variants)]; gains are added from rank 1 on. Ranks after 1000 do not count.
    """
    context, first, last = (np.asarray(part, dtype=np.int64)[:MAX_RANK] for part in (context, first, last))
    # One ascending key a judged sentence; 2^32 is above any sentence number.
    key = (
        np.repeat(np.arange(len(question.contexts)), np.diff(question.context_first)) << 32 | question.number
    )
    start = np.searchsorted(key, context << 32 | first, side="left")
    stop = np.searchsorted(key, context << 32 | last, side="right")
    rank = np.flatnonzero((context >= 0) & (stop > start))
    if len(rank) == 0:
        return np.zeros(len(variants))
    start, judged = start[rank], (stop - start)[rank]

    offset = np.cumsum(judged) - judged
    owner = np.repeat(np.arange(len(rank)), judged)
    sentence = np.arange(judged.sum()) - offset[owner] + start[owner]
    mask = question.mask[sentence]
    covered = np.bitwise_or.reduceat(mask, offset, axis=0)
    seen = np.zeros_like(covered)
    np.bitwise_or.accumulate(covered[:-1], axis=0, out=seen[1:])

    nuggets = np.bitwise_count(covered & ~seen).sum(axis=1, dtype=np.int64)
    novel = np.add.reduceat((mask & ~seen[owner]).any(axis=1).astype(np.int64), offset)
    filler = last[rank] - first[rank] + 1 - judged
    discount = DISCOUNT[rank]
    return np.array(
        [
            (variant.novelty(nuggets, filler, judged - novel, novel) / discount).cumsum()[-1]
            for variant in variants
        ]
    )
