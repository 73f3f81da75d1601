"""The ideal ranking, by the beam search of DESIGN, "NDNS, exactly", or by a stronger search.

``beam``. Candidates: contexts in the order of first annotation; in each, spans by start, then end, from its
first to its last annotated sentence. At each rank every state of the beam, in order, is extended by every
span with a gain that it has not used; the 10 highest totals stay, ties in the order of generation. The best
of the last beam is the ideal. Measures that count seen nuggets again have a beam of width 1.

``best``. The same over spans that no other makes needless, with 100 states that all have seen something else,
and the best state of any rank wins. Never below the beam's ideal, which is a candidate, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.beam import Beam, Extensions, beam_search
from epicqa.measures.judgments import JudgedQuestion
from epicqa.measures.ndns import DISCOUNT, MAX_RANK, Variant
from epicqa.measures.spans import every_span, tight_spans, undominated

WIDTH = 10
BEST_WIDTH = 100


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
    return _trace(beam_search(Beam(question, variant, WIDTH), tight_spans(question), depth))


def _best(question: JudgedQuestion, variant: Variant, depth: int) -> Ideal:
    beam = _beam(question, variant, depth)
    if variant.seen_count:
        # What a span gains does not depend on the others: the greedy ranking is the optimum.
        return beam
    spans = undominated(question, tight_spans(question))
    steps = beam_search(Beam(question, variant, BEST_WIDTH, distinct=True), spans, depth)
    # A state that nothing extends drops out while others go on, so the best may end before the last rank.
    last = max(range(len(steps)), key=lambda rank: steps[rank].total[0], default=-1)
    found = _trace(steps[: last + 1])
    return found if found.dns > beam.dns else beam


SEARCHES: dict[str, Callable[[JudgedQuestion, Variant, int], Ideal]] = {"beam": _beam, "best": _best}


def _greedy(question: JudgedQuestion, variant: Variant, depth: int) -> Ideal:
    """The ranking by gain, where gains do not depend on what was seen."""
    spans = every_span(question)
    stating = spans.stop - spans.start
    nuggets = np.bitwise_count(spans.mask).sum(axis=1, dtype=np.int64)
    gain = variant.novelty(nuggets, spans.filler, np.zeros_like(stating), stating)
    order = np.argsort(-gain, kind="stable")[:depth]
    total = (gain[order] / DISCOUNT[: len(order)]).cumsum()
    return Ideal(
        float(total[-1]) if len(total) else 0.0,
        spans.context[order],
        spans.first[order],
        spans.last[order],
        gain[order],
    )


def _trace(steps: Sequence[Extensions]) -> Ideal:
    """The ranking that ends in the first state of the last rank."""
    rows = []
    at = np.zeros(1, dtype=np.int64)
    for step in reversed(steps):
        rows.append(step[at])
        at = rows[-1].state
    context, first, last, gain = (
        np.array([getattr(row, name)[0] for row in reversed(rows)], dtype=kind)
        for name, kind in (("context", np.int64), ("first", np.int64), ("last", np.int64), ("gain", float))
    )
    return Ideal(float(rows[0].total[0]) if rows else 0.0, context, first, last, gain)
