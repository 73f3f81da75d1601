"""Candidate passages of the ideal ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.judgments import JudgedQuestion

MAX_SPANS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans that begin and end with a sentence that states a nugget, contexts in order, then start, then end.

    Attributes:
        context: int64[n], positions in the question's ``contexts``.
        first, last: int64[n], numbers of the first and last sentence.
        start, stop: int64[n], its sentences in the question's ``number`` and ``mask``, ``stop`` exclusive.
        mask: uint64[n, words], its nuggets as bits.
        filler: int64[n], its sentences without nuggets.
        before, after: int64[n], sentences without nuggets that could be added at either end, up to the next
            sentence with nuggets or the end of the context's annotated part.
    """

    context: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    mask: NDArray[np.uint64]
    filler: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.context)

    def __getitem__(self, chosen: NDArray[np.generic]) -> Spans:
        return Spans(*(getattr(self, name)[chosen] for name in self.__slots__))


def tight_spans(question: JudgedQuestion) -> Spans:
    """All spans between two sentences with nuggets of one context.

    Raises:
        EpicqaError: there are more than 2,000,000 of them.
    """
    size = np.diff(question.context_first)
    _limit(question, int((size * (size + 1) // 2).sum()))
    context = np.repeat(np.arange(len(size)), size)
    start, last = [], []
    masks = []
    reach = np.arange(len(context))
    mask = question.mask
    while len(reach):
        # Spans of one more sentence: those of one less, and the sentence after them in the same context.
        start.append(reach)
        last.append(np.full(len(reach), len(start) - 1))
        masks.append(mask)
        longer = reach + len(start)
        inside = longer < len(context)
        inside[inside] = context[longer[inside]] == context[reach[inside]]
        reach, mask = reach[inside], mask[inside] | question.mask[longer[inside]]
    starts, lasts = np.concatenate([*start, reach]), np.concatenate([*last, reach])
    order = np.lexsort((lasts, starts))
    begin, length = starts[order], lasts[order] + 1
    end = begin + length - 1

    low, high = question.context_range[:, 0], question.context_range[:, 1]
    before = question.number - low[context]
    before[1:] = np.where(
        context[1:] == context[:-1], question.number[1:] - question.number[:-1] - 1, before[1:]
    )
    after = high[context] - question.number
    after[:-1] = np.where(context[1:] == context[:-1], before[1:], after[:-1])
    first, final = question.number[begin], question.number[end]
    return Spans(
        context=context[begin],
        first=first,
        last=final,
        start=begin,
        stop=end + 1,
        mask=np.concatenate([*masks, mask])[order],
        filler=final - first + 1 - length,
        before=before[begin],
        after=after[end],
    )


def undominated(question: JudgedQuestion, spans: Spans) -> Spans:
    """Those of `tight_spans` without one inside them that has the same nuggets.

    The inner one has no more sentences of any kind, whatever was seen, so it never gains less.
    """
    keep = np.ones(len(spans), dtype=bool)
    # In order of start and end, the span with one sentence less at its end is the one before.
    longer = np.flatnonzero(spans.stop - spans.start > 1)
    keep[longer] &= (spans.mask[longer] != spans.mask[longer - 1]).any(axis=1)
    size = np.diff(question.context_first)
    # A start has as many spans as there are sentences from it to its context's end.
    ends = np.repeat(question.context_first[1:], size)
    spans_before = np.concatenate(([0], np.cumsum(ends - np.arange(len(ends)))))
    inner = spans_before[spans.start[longer] + 1] + spans.stop[longer] - spans.start[longer] - 2
    keep[longer] &= (spans.mask[longer] != spans.mask[inner]).any(axis=1)
    return spans[keep]


def every_span(question: JudgedQuestion) -> Spans:
    """All spans with a nugget between a context's first and last annotated sentence.

    Raises:
        EpicqaError: there are more than 2,000,000 of them.
    """
    tight = tight_spans(question)
    ways = (tight.before + 1) * (tight.after + 1)
    _limit(question, int(ways.sum()))
    owner = np.repeat(np.arange(len(tight)), ways)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(ways) - ways, ways)
    left, right = np.divmod(number, tight.after[owner] + 1)
    wide = tight[owner]
    first, last = wide.first - left, wide.last + right
    order = np.lexsort((last, first, wide.context))
    return Spans(
        wide.context, first, last, wide.start, wide.stop, wide.mask, wide.filler + left + right, left, right
    )[order]


def _limit(question: JudgedQuestion, count: int) -> None:
    if count > MAX_SPANS:
        raise EpicqaError(
            f"{question.question_id}: {count} spans between annotated sentences, "
            f"expected at most {MAX_SPANS} (sentences annotated in one context lie far apart)"
        )
