"""Normalised discounted novelty score (NDNS) of a ranking of passages, in both definitions.

EPIC-QA at TAC 2020, task guidelines, "Evaluation". For a passage at rank r, the nuggets of all earlier
passages being seen: a sentence is novel (carries a nugget not seen), redundant (only seen ones) or filler
(none); n_a counts the passage's nuggets not seen, and

    NS = n_a (n_a + 1) / (n_a + n_s), 0 where n_a = 0
    DNS = sum over ranks of NS / log2(r + 1)
    NDNS = DNS / DNS of the ideal ranking

The variants differ in n_s only. Those of ``tac2020`` are what the script computes that the track released,
two more measures among them in which n_a counts all nuggets of a passage, seen ones too.

NDNS is 0 or more; 1 is the ideal's, and since the ideal comes from a search it can be passed. How ties are
broken is the reader's matter: see `epicqa.measures.locate`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """One measure of a definition.

    Attributes:
        name: as users write it.
        label: as the track's released script writes it.
        definition: ``published`` or ``tac2020``.
        help: what n_s is, in words.
        size: n_s of sentence counts, ``size(filler, redundant, novel)``; it never falls when a sentence
            turns from novel to redundant while another stays novel, nor when filler is added.
        seen_count: n_a counts nuggets that were seen, too.
    """

    name: str
    label: str
    definition: str
    help: str
    size: Callable[[Counts, Counts, Counts], Counts]
    seen_count: bool = False

    def novelty(
        self, nuggets: Counts, filler: Counts, redundant: Counts, novel: Counts
    ) -> NDArray[np.float64]:
        """NS of passages: float64 from int64 counts, of one shape, of nuggets and of sentences by kind."""
        size = self.size(filler, redundant, novel)
        return nuggets * (nuggets + 1) / np.maximum(nuggets + size, 1)


def _every(filler: Counts, redundant: Counts, novel: Counts) -> Counts:
    return filler + redundant + novel


def _novel_once(filler: Counts, redundant: Counts, novel: Counts) -> Counts:
    return filler + redundant + np.minimum(novel, 1)


def _each_once(filler: Counts, redundant: Counts, novel: Counts) -> Counts:
    return filler + np.minimum(redundant, 1) + np.minimum(novel, 1)


def _not_redundant(filler: Counts, redundant: Counts, novel: Counts) -> Counts:
    return filler + np.minimum(novel, 1)


def _one(filler: Counts, redundant: Counts, novel: Counts) -> Counts:
    return np.ones_like(filler)


PUBLISHED = (
    Variant("exact", "NDNS-Exact", "published", "every sentence counts", _every),
    Variant("partial", "NDNS-Partial", "published", "novel sentences count as one", _novel_once),
    Variant(
        "relaxed",
        "NDNS-Relaxed",
        "published",
        "novel sentences count as one, redundant ones as one",
        _each_once,
    ),
)
"""The measures of the published definition."""

TAC2020 = (
    Variant("exact", "NDNS-Exact", "tac2020", "every sentence counts", _every),
    Variant(
        "partial",
        "NDNS-Partial",
        "tac2020",
        "novel sentences count as one, redundant ones not at all",
        _not_redundant,
    ),
    Variant("relaxed", "NDNS-Relaxed", "tac2020", "novel sentences count as one", _novel_once),
    Variant(
        "ndcg-exact",
        "NDCG-Exact",
        "tac2020",
        "every sentence counts; seen nuggets count again",
        _every,
        seen_count=True,
    ),
    Variant(
        "ndcg",
        "NDCG",
        "tac2020",
        "1, however long the passage; seen nuggets count again",
        _one,
        seen_count=True,
    ),
)
"""The measures of the script that the track released."""

DEFINITIONS = {"published": PUBLISHED, "tac2020": TAC2020}


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """What the passages of a ranking gain; those that state no nugget gain 0 and are not here.

    Attributes:
        rank: int64[m], ascending, from 0.
        new: uint64[m, words], nuggets not seen at earlier ranks, as bits.
        stated: uint64[m, words], all nuggets of the passage.
        novel, redundant, filler: int64[m], its sentences by kind.
        gain: float64[n_variants, m], NS.
    """

    rank: NDArray[np.int64]
    new: NDArray[np.uint64]
    stated: NDArray[np.uint64]
    novel: Counts
    redundant: Counts
    filler: Counts
    gain: NDArray[np.float64]


Placed = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]
"""A ranking, best first: positions in a question's ``contexts`` (-1 where a passage is in none of them), and
the numbers of each passage's first and last sentence, inclusive; [n] each."""


def gains(
    question: JudgedQuestion,
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
    variants: Sequence[Variant] = PUBLISHED,
    depth: int = MAX_RANK,
) -> Gains:
    """NS of each passage of a ranking, best first.

    Args:
        question: its judgments.
        context, first, last: the ranking, see `Placed`. A passage that leaves the annotated part of its
            context has filler there; one that ends before it starts gains nothing.
        variants: what to compute.
        depth: ranks that count, at most 1000.
    """
    found, _ = _gains_of_all([question], [(context, first, last)], variants, depth)
    return found


def dns(
    question: JudgedQuestion,
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
    variants: Sequence[Variant] = PUBLISHED,
    depth: int = MAX_RANK,
) -> NDArray[np.float64]:
    """DNS of a ranking: float64[n_variants]; discounted gains are added from rank 1 on. See `gains`."""
    total: NDArray[np.float64] = dns_of_all([question], [(context, first, last)], variants, depth)[0]
    return total


def dns_of_all(
    questions: Sequence[JudgedQuestion],
    rankings: Sequence[Placed],
    variants: Sequence[Variant] = PUBLISHED,
    depth: int = MAX_RANK,
) -> NDArray[np.float64]:
    """DNS of a ranking for each question: float64[n_questions, n_variants]. See `dns`."""
    found, bounds = _gains_of_all(questions, rankings, variants, depth)
    discounted = found.gain / DISCOUNT[found.rank]
    total = np.zeros((len(questions), len(variants)))
    for i, (start, stop) in enumerate(pairwise(bounds.tolist())):
        if stop > start:
            total[i] = discounted[:, start:stop].cumsum(axis=1)[:, -1]
    return total


def _gains_of_all(
    questions: Sequence[JudgedQuestion], rankings: Sequence[Placed], variants: Sequence[Variant], depth: int
) -> tuple[Gains, NDArray[np.int64]]:
    """The gains of all rankings, one after the other, and where each begins: int64[n_questions + 1]."""
    length = np.array([min(len(context), depth) for context, _, _ in rankings])
    owner = np.repeat(np.arange(len(rankings)), length)
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
    context, first, last = (
        np.concatenate([column[:depth] for column in columns]).astype(np.int64, copy=False)
        for columns in zip(*rankings, strict=True)
    )
    n_contexts = np.array([0, *(len(question.contexts) for question in questions)]).cumsum()
    inside = np.flatnonzero((context >= 0) & (first <= last))
    owner, rank, context, first, last = (part[inside] for part in (owner, rank, context, first, last))
    # One ascending key a sentence with nuggets; 2^32 is above any sentence number.
    sizes = np.concatenate([np.diff(question.context_first) for question in questions])
    number = np.concatenate([question.number for question in questions])
    key = np.repeat(np.arange(len(sizes)), sizes) << 32 | number
    base = (n_contexts[owner] + context) << 32
    start = np.searchsorted(key, base | first, side="left")
    stop = np.searchsorted(key, base | last, side="right")
    stating = np.flatnonzero(stop > start)
    owner, rank, start, judged = owner[stating], rank[stating], start[stating], (stop - start)[stating]
    filler = (last - first + 1)[stating] - judged
    bounds = np.searchsorted(owner, np.arange(len(questions) + 1))

    mask = _joined([question.mask for question in questions])
    if not len(rank):
        none = np.zeros((0, mask.shape[1]), dtype=np.uint64)
        return Gains(rank, none, none, judged, judged, filler, np.zeros((len(variants), 0))), bounds
    # reduceat takes an empty range for its first element: here every range has one.
    offset = np.cumsum(judged) - judged
    sentence = mask[np.repeat(start - offset, judged) + np.arange(judged.sum())]
    stated = np.bitwise_or.reduceat(sentence, offset, axis=0)
    seen = np.zeros_like(stated)
    for begin, end in pairwise(bounds.tolist()):
        if end - begin > 1:
            np.bitwise_or.accumulate(stated[begin : end - 1], axis=0, out=seen[begin + 1 : end])
    new = np.bitwise_and(stated, ~seen)
    has_novel = (sentence & ~np.repeat(seen, judged, axis=0)).any(axis=1)
    novel = np.add.reduceat(has_novel, offset, dtype=np.int64)
    count_new, count_all = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in (new, stated))
    gain = np.array(
        [
            variant.novelty(count_all if variant.seen_count else count_new, filler, judged - novel, novel)
            for variant in variants
        ]
    ).reshape(len(variants), len(rank))
    return Gains(rank, new, stated, novel, judged - novel, filler, gain), bounds


def _joined(masks: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Masks one below the other, as wide as the widest."""
    words = max(mask.shape[1] for mask in masks)
    joined = np.zeros((sum(map(len, masks)), words), dtype=np.uint64)
    at = 0
    for mask in masks:
        joined[at : at + len(mask), : mask.shape[1]] = mask
        at += len(mask)
    return joined
