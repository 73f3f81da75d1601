"""The ideal ranking, by the beam search of DESIGN, "NDNS, exactly", or by a stronger search.

``beam``. Candidates: contexts in the order of first annotation; in each, spans by start, then end, from its
first to its last annotated sentence. At each rank every state of the beam, in order, is extended by every
span with a gain that it has not used; the 10 highest totals stay, ties in the order of generation. The best
of the last beam is the ideal. Measures that count seen nuggets again have a beam of width 1.

``best``. The same search over spans that no other makes needless, over states that differ in what was seen,
100 of them, and the best state of any rank wins; at least the beam's ideal, since that is a candidate, too.

What makes it fast: a gain never rises as more is seen. So the gain that a span had for the states of an
earlier rank bounds what it has now, and only spans whose bound reaches the 10th highest total are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.judgments import JudgedQuestion
from epicqa.measures.ndns import DISCOUNT, MAX_RANK, Variant
from epicqa.measures.spans import Spans, every_span, tight_spans, undominated

WIDTH = 10
BEST_WIDTH = 100
_FIRST = 512
_BLOCK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Ideal:
    """An ideal ranking.

    Attributes:
        dns: its DNS; 0 where no sentence states a nugget.
        context: int64[k], positions in the question's ``contexts``, best first.
        first, last: int64[k], numbers of each passage's first and last sentence, inclusive.
        gain: float64[k], NS of each.
    """

    dns: float
    context: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    gain: NDArray[np.float64]


def ideal_of(
    question: JudgedQuestion, variant: Variant, search: str = "beam", depth: int = MAX_RANK
) -> Ideal:
    """The ideal ranking of a question.

    Args:
        question: its judgments.
        variant: the measure.
        search: ``beam`` or ``best``.
        depth: passages at most, at most 1000.

    Raises:
        EpicqaError: the question has more than 2,000,000 candidate spans.
    """
    return SEARCHES[search](question, variant, depth)


def _beam(question: JudgedQuestion, variant: Variant, depth: int) -> Ideal:
    if variant.seen_count:
        return _greedy(question, variant, depth)
    return _search(question, tight_spans(question), variant, depth)


def _best(question: JudgedQuestion, variant: Variant, depth: int) -> Ideal:
    beam = _beam(question, variant, depth)
    if variant.seen_count:
        # What a span gains does not depend on the others: the greedy ranking is the optimum.
        return beam
    spans = undominated(question, tight_spans(question))
    found = _search(question, spans, variant, depth, width=BEST_WIDTH, distinct=True)
    return found if found.dns > beam.dns else beam


SEARCHES: dict[str, Callable[[JudgedQuestion, Variant, int], Ideal]] = {"beam": _beam, "best": _best}


def _greedy(question: JudgedQuestion, variant: Variant, depth: int) -> Ideal:
    """The ranking by gain, where gains do not depend on what was seen."""
    spans = every_span(question)
    stating = spans.stop - spans.start
    gain = variant.novelty(_count(spans.mask), spans.filler, stating * 0, stating)
    order = np.argsort(-gain, kind="stable")[:depth]
    gain = gain[order]
    total = (gain / DISCOUNT[: len(gain)]).cumsum()
    return Ideal(
        float(total[-1]) if len(total) else 0.0,
        spans.context[order],
        spans.first[order],
        spans.last[order],
        gain,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """What was added at one rank: columns of equal length, a row a state that stayed."""

    parent: NDArray[np.int64]
    context: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    gain: NDArray[np.float64]


def _search(
    question: JudgedQuestion,
    spans: Spans,
    variant: Variant,
    depth: int,
    width: int = WIDTH,
    distinct: bool = False,
) -> Ideal:
    """The best ranking that a beam of this width finds.

    With ``distinct``, states that have seen the same are one, fillers are never added to a span, and the best
    state of any rank wins instead of the last.
    """
    order = np.arange(len(spans))
    bound = np.full(len(spans), np.inf)
    totals = np.zeros(1)
    seen = np.zeros((1, question.mask.shape[1]), dtype=np.uint64)
    steps: list[_Step] = []
    best = (0.0, 0)
    for discount in DISCOUNT[:depth]:
        if 2 * np.count_nonzero(bound) < len(bound):
            alive = bound > 0
            spans, order, bound = spans[alive], order[alive], bound[alive]
        found = _extend(question, spans, order, bound, variant, totals, seen, discount, width, distinct)
        if found is None:
            break
        totals, seen, step = found
        steps.append(step)
        if not distinct or totals[0] > best[0]:
            best = (float(totals[0]), len(steps))
    return _trace(best[0], steps[: best[1]])


def _extend(
    question: JudgedQuestion,
    spans: Spans,
    order: NDArray[np.int64],
    bound: NDArray[np.float64],
    variant: Variant,
    totals: NDArray[np.float64],
    seen: NDArray[np.uint64],
    discount: float,
    width: int,
    distinct: bool,
) -> tuple[NDArray[np.float64], NDArray[np.uint64], _Step] | None:
    """The next beam, None where no state can be extended; ``bound`` is lowered where spans were evaluated."""
    kinds, kind = _distinct(seen)
    wanted = 4 * width if distinct else width
    state = chosen = np.zeros(0, dtype=np.int64)
    reached = gained = np.zeros(0)
    left = np.ones(len(spans), dtype=bool)
    block = np.arange(len(spans))
    if len(block) > _FIRST:
        block = np.argpartition(-bound, _FIRST)[:_FIRST]
    while len(block):
        left[block] = False
        gain = _gains(question, spans, block, kinds, variant)
        bound[block] = gain.max(axis=0)
        total = totals[:, None] + gain[kind] / discount
        rows, columns = np.nonzero(gain[kind] > 0)
        state = np.concatenate((state, rows))
        chosen = np.concatenate((chosen, block[columns]))
        reached = np.concatenate((reached, total[rows, columns]))
        gained = np.concatenate((gained, gain[kind[rows], columns]))
        best = _highest(reached, state, order[chosen], wanted)
        state, chosen, reached, gained = state[best], chosen[best], reached[best], gained[best]
        least = reached[-1] if len(reached) == wanted else -np.inf
        rest = np.flatnonzero(left & (bound > 0) & (totals.max() + bound / discount >= least))
        if len(rest) > _BLOCK:
            rest = rest[np.argpartition(-bound[rest], _BLOCK)[:_BLOCK]]
        block = rest
    if not len(state):
        return None
    first, last = spans.first[chosen], spans.last[chosen]
    if not distinct:
        wide = _widened(
            spans, chosen, variant, kinds[kind[state]], question, reached, totals[state], discount
        )
        if wide is not None:
            which, before, after, gain_wide, reached_wide = wide
            first = np.concatenate((first, first[which] - before))
            last = np.concatenate((last, last[which] + after))
            state, chosen = np.concatenate((state, state[which])), np.concatenate((chosen, chosen[which]))
            gained = np.concatenate((gained, gain_wide))
            reached = np.concatenate((reached, reached_wide))
            best = np.lexsort((last, first, spans.context[chosen], state, -reached))[:width]
            state, chosen, first, last = state[best], chosen[best], first[best], last[best]
            reached, gained = reached[best], gained[best]
    next_seen = seen[state] | spans.mask[chosen]
    if distinct:
        rows_seen: dict[bytes, int] = {}
        for i, row in enumerate(next_seen):
            rows_seen.setdefault(row.tobytes(), i)
        one = np.array(list(rows_seen.values()))[:width]
        state, chosen, first, last = state[one], chosen[one], first[one], last[one]
        reached, gained, next_seen = reached[one], gained[one], next_seen[one]
    return reached, next_seen, _Step(state, spans.context[chosen], first, last, gained)


def _widened(
    spans: Spans,
    chosen: NDArray[np.int64],
    variant: Variant,
    seen: NDArray[np.uint64],
    question: JudgedQuestion,
    reached: NDArray[np.float64],
    total: NDArray[np.float64],
    discount: float,
) -> tuple[NDArray[np.int64], ...] | None:
    """The chosen spans with filler added at their ends, as far as that can come among the ten highest.

    Returns:
        Position among the chosen, sentences added before and after, gain, total; None where nothing is added.
    """
    room = np.minimum(spans.before[chosen], WIDTH - 1) + np.minimum(spans.after[chosen], WIDTH - 1)
    open_ended = np.flatnonzero(room)
    if not len(open_ended):
        return None
    which, before, after = (
        np.array(column, dtype=np.int64)
        for column in zip(
            *(
                (i, left, right)
                for i in open_ended.tolist()
                for left in range(min(int(spans.before[chosen[i]]), WIDTH - 1) + 1)
                for right in range(min(int(spans.after[chosen[i]]), WIDTH - 1 - left) + 1)
                if left + right
            ),
            strict=True,
        )
    )
    span = chosen[which]
    nuggets, novel = _counts_of_each(question, spans, span, seen[which])
    stating = spans.stop[span] - spans.start[span]
    gain = variant.novelty(nuggets, spans.filler[span] + before + after, stating - novel, novel)
    wide_total = total[which] + gain / discount
    if len(reached) == WIDTH:
        able = wide_total >= reached[-1]
        if not able.any():
            return None
        which, before, after, gain, wide_total = (
            column[able] for column in (which, before, after, gain, wide_total)
        )
    return which, before, after, gain, wide_total


def _gains(
    question: JudgedQuestion,
    spans: Spans,
    block: NDArray[np.int64],
    seen: NDArray[np.uint64],
    variant: Variant,
) -> NDArray[np.float64]:
    """float64[states, spans of the block]."""
    unseen = ~seen[:, None]
    nuggets = _count(spans.mask[block] & unseen)
    start, stating = spans.start[block], (spans.stop - spans.start)[block]
    offset = np.cumsum(stating) - stating
    sentence = np.repeat(start - offset, stating) + np.arange(stating.sum())
    states_new = (question.mask[sentence] & unseen).any(axis=2)
    novel = np.add.reduceat(states_new, offset, axis=1, dtype=np.int64)
    return variant.novelty(nuggets, spans.filler[block], stating - novel, novel)


def _counts_of_each(
    question: JudgedQuestion, spans: Spans, span: NDArray[np.int64], seen: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """New nuggets and novel sentences of spans, each for a state of its own: seen is uint64[n, words]."""
    start, stating = spans.start[span], spans.stop[span] - spans.start[span]
    offset = np.cumsum(stating) - stating
    sentence = np.repeat(start - offset, stating) + np.arange(stating.sum())
    states_new = (question.mask[sentence] & ~np.repeat(seen, stating, axis=0)).any(axis=1)
    return _count(spans.mask[span] & ~seen), np.add.reduceat(states_new, offset, dtype=np.int64)


def _count(mask: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Bits set, over the last axis."""
    count: NDArray[np.int64] = np.bitwise_count(mask).sum(axis=-1, dtype=np.int64)
    return count


def _distinct(seen: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The different rows, and which of them each row is."""
    known: dict[bytes, int] = {}
    kind = np.array([known.setdefault(row.tobytes(), len(known)) for row in seen])
    first = np.array([int(np.flatnonzero(kind == i)[0]) for i in range(len(known))])
    return seen[first], kind


def _highest(
    reached: NDArray[np.float64], state: NDArray[np.int64], order: NDArray[np.int64], count: int
) -> NDArray[np.int64]:
    """Positions of the highest totals, best first, ties in the order of generation."""
    among = np.arange(len(reached))
    if len(reached) > count:
        among = np.flatnonzero(reached >= np.partition(reached, -count)[-count])
    return among[np.lexsort((order[among], state[among], -reached[among]))[:count]]


def _trace(total: float, steps: list[_Step]) -> Ideal:
    """The ranking that ends in the first state of the last step."""
    rows = []
    at = 0
    for step in reversed(steps):
        rows.append((int(step.context[at]), int(step.first[at]), int(step.last[at]), float(step.gain[at])))
        at = int(step.parent[at])
    rows.reverse()
    context, first, last, gain = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Ideal(
        total,
        np.array(context, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(last, dtype=np.int64),
        np.array(gain, dtype=np.float64),
    )
