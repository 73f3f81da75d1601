"""Beam search over the spans of a question, fast because a gain never rises as more is seen.

So the gain that a span had for the states of an earlier rank bounds what it has now, and at each rank only
spans whose bound reaches the totals that stay are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.judgments import JudgedQuestion
from epicqa.measures.ndns import DISCOUNT, Variant
from epicqa.measures.spans import Spans

_FIRST = 512
"""Spans of the highest bounds, evaluated before it is known how far to look."""

_CELLS = 200_000
"""Words of bits that are looked at in one go, times the sentences of a span: this bounds memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Extensions:
    """States of a beam, each extended by a span: columns of equal length.

    Attributes:
        state: int64[n], the state before, by its position in the beam.
        span: int64[n], position among the spans of that rank.
        context, first, last: int64[n], the passage added.
        gain, total: float64[n], what it gains, and the discounted sum with it.
    """

    state: NDArray[np.int64]
    span: NDArray[np.int64]
    context: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    gain: NDArray[np.float64]
    total: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, chosen: NDArray[np.generic]) -> Extensions:
        return Extensions(*(getattr(self, name)[chosen] for name in self.__slots__))

    def __add__(self, other: Extensions) -> Extensions:
        return Extensions(
            *(np.concatenate((getattr(self, name), getattr(other, name))) for name in self.__slots__)
        )

    def highest(self, count: int) -> Extensions:
        """The highest totals, best first, ties in the order of generation: by state, then by span."""
        among = np.arange(len(self))
        if len(self) > count:
            among = np.flatnonzero(self.total >= np.partition(self.total, -count)[-count])
        keys = (self.last, self.first, self.context, self.state, -self.total)
        return self[among[np.lexsort(tuple(key[among] for key in keys))[:count]]]


@dataclass(frozen=True, slots=True, eq=False)
class Beam:
    """How to search.

    Attributes:
        question, variant: what a passage gains.
        width: states that stay at each rank.
        distinct: states that have seen the same are one, and no filler is added to the ends of spans.
    """

    question: JudgedQuestion
    variant: Variant
    width: int
    distinct: bool = False


def beam_search(beam: Beam, spans: Spans, depth: int) -> list[Extensions]:
    """The states that stayed at each rank, best first, until none can be extended.

    Args:
        beam: how to search.
        spans: tight ones, see `epicqa.measures.spans`; filler at their ends is thought of here.
        depth: ranks at most.
    """
    bound = np.full(len(spans), np.inf)
    total = np.zeros(1)
    seen = np.zeros((1, beam.question.mask.shape[1]), dtype=np.uint64)
    steps = []
    for discount in DISCOUNT[:depth].tolist():
        alive = bound > 0
        if 2 * np.count_nonzero(alive) < len(bound):
            spans, bound = spans[alive], bound[alive]
        found = _extend(beam, spans, bound, total, seen, discount)
        if not len(found):
            break
        seen = seen[found.state] | spans.mask[found.span]
        if beam.distinct:
            first_of = {row.tobytes(): i for i, row in reversed(list(enumerate(seen)))}
            one = np.sort(np.fromiter(first_of.values(), dtype=np.int64))[: beam.width]
            found, seen = found[one], seen[one]
        total = found.total
        steps.append(found)
    return steps


def _extend(
    beam: Beam,
    spans: Spans,
    bound: NDArray[np.float64],
    total: NDArray[np.float64],
    seen: NDArray[np.uint64],
    discount: float,
) -> Extensions:
    """The best extensions of all states; ``bound`` is lowered where spans were evaluated."""
    kinds, kind = _distinct(seen)
    # States that turn out to be one leave room for others.
    count = 4 * beam.width if beam.distinct else beam.width
    found = Extensions(*(np.zeros(0, dtype=np.int64),) * 5, *(np.zeros(0),) * 2)
    left = np.ones(len(spans), dtype=bool)
    most = max(_FIRST, _CELLS // kinds.size)
    block = np.arange(len(spans))
    if len(block) > _FIRST:
        block = np.argpartition(-bound, _FIRST)[:_FIRST]
    while len(block):
        left[block] = False
        gain = _gains(beam, spans, block, kinds)
        bound[block] = gain.max(axis=0)
        state, column = np.nonzero((gain > 0)[kind])
        gained, span = gain[kind[state], column], block[column]
        found += Extensions(
            state,
            span,
            spans.context[span],
            spans.first[span],
            spans.last[span],
            gained,
            total[state] + gained / discount,
        )
        found = found.highest(count)
        least = found.total[-1] if len(found) == count else -np.inf
        block = np.flatnonzero(left & (bound > 0) & (total.max() + bound / discount >= least))
        if len(block) > most:
            block = block[np.argpartition(-bound[block], most)[:most]]
    if beam.distinct:
        return found
    # What filler at the ends makes of a span never comes before the span itself: those found are enough.
    wide = _widened(beam, spans, found, total, kinds[kind[found.state]], discount)
    return (found + wide).highest(beam.width) if len(wide) else found


def _widened(
    beam: Beam,
    spans: Spans,
    found: Extensions,
    total: NDArray[np.float64],
    seen: NDArray[np.uint64],
    discount: float,
) -> Extensions:
    """The same extensions with filler added at the ends of their spans; ``seen`` has a row for each."""
    # The best of them come first, and each has as many before it as it has fillers.
    most = beam.width - 1
    before, after = (np.minimum(side[found.span], most) for side in (spans.before, spans.after))
    ways = [
        (i, left, right)
        for i in np.flatnonzero(before + after).tolist()
        for left in range(int(before[i]) + 1)
        for right in range(min(int(after[i]), most - left) + 1)
        if left + right
    ]
    which, left, right = np.array(ways, dtype=np.int64).reshape(-1, 3).T
    base = found[which]
    nuggets, novel, stating = _counts(beam.question, spans, base.span, seen[which][:, None])
    filler = spans.filler[base.span] + left + right
    gain = beam.variant.novelty(nuggets[:, 0], filler, stating - novel[:, 0], novel[:, 0])
    return Extensions(
        base.state,
        base.span,
        base.context,
        base.first - left,
        base.last + right,
        gain,
        total[base.state] + gain / discount,
    )


def _gains(
    beam: Beam, spans: Spans, block: NDArray[np.int64], seen: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """What each span of a block gains in each state: float64[states, spans]."""
    nuggets, novel, stating = _counts(beam.question, spans, block, seen[None])
    filler = spans.filler[block][:, None]
    return beam.variant.novelty(nuggets, filler, stating[:, None] - novel, novel).T


def _counts(
    question: JudgedQuestion, spans: Spans, chosen: NDArray[np.int64], seen: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """New nuggets and novel sentences of n spans, int64[n, states]; and int64[n], sentences with nuggets.

    ``seen`` is uint64[n, states, words], or uint64[1, states, words] for all spans.
    """
    start, stating = spans.start[chosen], (spans.stop - spans.start)[chosen]
    offset = np.cumsum(stating) - stating
    sentence = np.repeat(start - offset, stating) + np.arange(stating.sum())
    unseen = ~seen
    unseen_there = unseen if len(unseen) == 1 else np.repeat(unseen, stating, axis=0)
    new = (question.mask[sentence][:, None] & unseen_there).any(axis=2)
    # reduceat wants at least one span.
    novel = np.add.reduceat(new, offset, axis=0, dtype=np.int64) if len(chosen) else np.zeros((0, 1), int)
    nuggets = np.bitwise_count(spans.mask[chosen][:, None] & unseen).sum(axis=2, dtype=np.int64)
    return nuggets, novel, stating


def _distinct(seen: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The different rows, and which of them each row is."""
    known: dict[bytes, int] = {}
    kind = np.array([known.setdefault(row.tobytes(), len(known)) for row in seen])
    return np.frombuffer(b"".join(known), dtype=np.uint64).reshape(-1, seen.shape[1]), kind
