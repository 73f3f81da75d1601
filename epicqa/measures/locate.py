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
        if definition == "tac2020":
            position = _by_text(passages)[:MAX_RANK]
        else:
            position = np.arange(min(len(passages), MAX_RANK))
        known = {code[name]: i for name, i in question.contexts.items() if name in code}
        codes = np.fromiter(known, dtype=np.int64, count=len(known))
        lookup[codes] = np.fromiter(known.values(), dtype=np.int64, count=len(known))
        context = lookup[passages.first_context[position]]
        lookup[codes] = -1
        if definition == "published":
            context[(passages.first_context != passages.last_context)[position]] = -1
        yield Located(position, context, passages.first_number[position], passages.last_number[position])


def _by_text(passages: Passages) -> NDArray[np.int64]:
    text = passages.score_text
    if (text[1:] < text[:-1]).all():
        # Fixed width, as epicqa writes it: sorting texts takes longer than all else.
        return np.arange(len(text))
    _, code = np.unique(text, return_inverse=True)
    return np.lexsort((passages.line, -code))


def locate(run: Run, judged: JudgedQuestion, definition: str = "published") -> Located | None:
    """The passages of one question, None where the run has none for it."""
    return next(locate_all(run, [judged], definition))
