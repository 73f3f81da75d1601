"""DNS of the ideal ranking, by the beam search of DESIGN, "NDNS, exactly".

Candidates: contexts in the order of first annotation; in each, spans by start, then end, between its first
and last annotated sentence. At each rank every state, in order, is extended by every span with a gain; the
10 highest totals stay, ties in the order of generation. The best of the last beam is the ideal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.judgments import JudgedQuestion
from epicqa.measures.ndns import DISCOUNT, Variant

WIDTH = 10
MAX_SPANS = 2_000_000


@dataclass(frozen=True, slots=True)
class _Spans:
    """Candidates in order, over the sentences (judged or not) from a context's first to its last judged one.

    Attributes:
        sentence: uint64[m, words], nuggets of each sentence.
        start, stop: int64[n], the sentences of each span, ``stop`` exclusive.
        mask: uint64[n, words], the nuggets of each span.
        judged: int64[n], how many of its sentences are judged.
    """

    sentence: NDArray[np.uint64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    mask: NDArray[np.uint64]
    judged: NDArray[np.int64]


@lru_cache(maxsize=4096)
def ideal_dns(question: JudgedQuestion, variant: Variant) -> float:
    """DNS of the ideal ranking; 0 where no sentence states a nugget. Remembered while the program runs.

    Raises:
        EpicqaError: a context's judged sentences lie so far apart that its spans cannot be enumerated.
    """
    spans = _spans(question)
    totals = np.zeros(1)
    seen = np.zeros((1, question.mask.shape[1]), dtype=np.uint64)
    for discount in DISCOUNT:
        kept: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        for total, state in zip(totals, seen, strict=True):
            unseen = ~state
            new = spans.mask & unseen
            nuggets = np.bitwise_count(new).sum(axis=1, dtype=np.int64)
            gaining = np.flatnonzero(nuggets)
            novel = _between(_any(spans.sentence & unseen), spans.start[gaining], spans.stop[gaining])
            judged = spans.judged[gaining]
            filler = spans.stop[gaining] - spans.start[gaining] - judged
            gain = variant.novelty(nuggets[gaining], filler, judged - novel, novel) / discount
            best = _highest(total + gain)
            kept.append((total + gain[best], gaining[best]))
        parent = np.repeat(np.arange(len(kept)), [len(span) for _, span in kept])
        if len(parent) == 0:
            break
        # The ten highest of each state hold the ten highest of all, still in the order of generation.
        reached = np.concatenate([total for total, _ in kept])
        chosen = np.concatenate([span for _, span in kept])
        generated = np.lexsort((chosen, parent))
        best = generated[_highest(reached[generated])]
        totals, seen = reached[best], seen[parent[best]] | spans.mask[chosen[best]]
    return float(totals[0])


def _highest(totals: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the highest totals, best first, ties in order."""
    if len(totals) > WIDTH:
        among = np.flatnonzero(totals >= np.partition(totals, -WIDTH)[-WIDTH])
    else:
        among = np.arange(len(totals))
    return among[np.argsort(-totals[among], kind="stable")[:WIDTH]]


def _any(mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which rows have a bit set."""
    found: NDArray[np.bool_] = np.bitwise_or.reduce(mask, axis=1) != 0
    return found


def _between(
    flags: NDArray[np.bool_], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many flags are set in each half-open range."""
    before = np.concatenate(([0], np.cumsum(flags)))
    return before[stop] - before[start]


def _spans(question: JudgedQuestion) -> _Spans:
    words = question.mask.shape[1]
    sentences = [np.zeros((0, words), dtype=np.uint64)]
    starts = [np.zeros(0, dtype=np.int64)]
    stops = [np.zeros(0, dtype=np.int64)]
    masks = [np.zeros((0, words), dtype=np.uint64)]
    base = n_spans = 0
    for context_id, i in question.contexts.items():
        of_context = slice(question.context_first[i], question.context_first[i + 1])
        number = question.number[of_context] - question.number[of_context][0]
        length = int(number[-1]) + 1
        n_spans += length * (length + 1) // 2
        if n_spans > MAX_SPANS:
            raise EpicqaError(
                f"{question.question_id}: judged sentences of {context_id} lie {length} apart, "
                f"expected at most {MAX_SPANS} spans between judged sentences"
            )
        sentence = np.zeros((length, words), dtype=np.uint64)
        sentence[number] = question.mask[of_context]
        start, stop = np.triu_indices(length)
        sentences.append(sentence)
        starts.append(base + start)
        stops.append(base + stop + 1)
        masks += [np.bitwise_or.accumulate(sentence[at:], axis=0) for at in range(length)]
        base += length
    sentence, start, stop = np.concatenate(sentences), np.concatenate(starts), np.concatenate(stops)
    return _Spans(sentence, start, stop, np.concatenate(masks), _between(_any(sentence), start, stop))
