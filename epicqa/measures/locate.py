"""Where the passages of a run lie in a question's judgments, in the order in which a definition reads them.

``published``: by score as a number, descending, then rank, then line. A passage whose ends lie in two
contexts is in none.

``tac2020``: by the score's text, descending, then line, as the released script sorts them ("9.5" before
"10.2"). A passage is in the context of its first sentence, whatever the id of its last one says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.judgments import JudgedQuestion
from epicqa.measures.ndns import MAX_RANK, Placed
from epicqa.problems import Problem
from epicqa.runs.model import Passages, Run


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """A question's passages, best first, at most 1000.

    Attributes:
        position: int64[n], where each stands in the run's `Passages`.
        context: int64[n], position of its context among the judged ones, -1 for none of them.
        first, last: int64[n], numbers of its first and last sentence.
    """

    position: NDArray[np.int64]
    context: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @property
    def placed(self) -> Placed:
        """The ranking as `epicqa.measures.ndns` takes it."""
        return self.context, self.first, self.last


def locate_all(
    run: Run, judged: Sequence[JudgedQuestion], definition: str = "published"
) -> Iterator[Located | None]:
    """The passages of each question, None where the run has none for it."""
    code = {name: i for i, name in enumerate(run.contexts)}
    lookup = np.full(len(run.contexts), -1, dtype=np.int64)
    for question in judged:
        passages = run.questions.get(question.question_id)
        if passages is None:
            yield None
            continue
        # Most runs stand in the order wanted: slices then, as copies are most of the time that this takes.
        order: slice | NDArray[np.int64] = slice(MAX_RANK)
        if definition == "tac2020" and (by_text := _by_text(passages)) is not None:
            order = by_text[:MAX_RANK]
        known = [(code[name], i) for name, i in question.contexts.items() if name in code]
        for at, i in known:
            lookup[at] = i
        context = lookup[passages.first_context[order]]
        for at, _ in known:
            lookup[at] = -1
        if definition == "published":
            context[passages.first_context[order] != passages.last_context[order]] = -1
        position = np.arange(len(context)) if isinstance(order, slice) else order
        yield Located(position, context, passages.first_number[order], passages.last_number[order])


def _by_text(passages: Passages) -> NDArray[np.int64] | None:
    """The order by score's text, descending, then line; None where the passages stand so."""
    text = passages.score_text
    if (text[1:] < text[:-1]).all():
        # Fixed width, as epicqa writes it: sorting texts takes longer than all else.
        return None
    _, code = np.unique(text, return_inverse=True)
    return np.lexsort((passages.line, -code))


def locate(run: Run, judged: JudgedQuestion, definition: str = "published") -> Located | None:
    """The passages of one question, None where the run has none for it."""
    return next(locate_all(run, [judged], definition))


def overlaps(run: Run, judged: Sequence[JudgedQuestion], definition: str = "published") -> list[Problem]:
    """One warning of all passages in judged contexts that share a sentence with another of their question."""
    found = [
        (question, one)
        for question, one in zip(judged, locate_all(run, judged, definition), strict=True)
        if one is not None and len(one.position)
    ]
    if not found:
        return []
    located = [one for _, one in found]
    length = [len(one.context) for one in located]
    n_contexts = np.cumsum([0, *(len(question.contexts) for question, _ in found[:-1])])
    context, first, last = (
        np.concatenate([getattr(one, name) for one in located]) for name in ("context", "first", "last")
    )
    # A number for each judged context of each question; no sentence has a number of 31 bits.
    group = (np.repeat(n_contexts, length) + context) << 31
    inside = np.flatnonzero(context >= 0)
    inside = inside[np.argsort(group[inside] | first[inside])]
    # The furthest end so far, in this context: those of earlier contexts are lower.
    reached = np.maximum.accumulate(group[inside] | last[inside])
    shared = (group[inside] | first[inside])[1:] <= reached[:-1]
    if not shared.any():
        return []
    line = np.concatenate([run.questions[question.question_id].line[one.position] for question, one in found])
    lines = line[inside[1:][shared]]
    message = (
        f"{len(lines)} passages share sentences with another of their question, in judged contexts, from "
        "this line on, expected each sentence once; epicqa check lists all"
    )
    return [Problem(run.path, int(lines.min()), "overlaps", message, fatal=False)]
