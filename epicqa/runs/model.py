"""What a run file holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.problems import Problem

MAX_DEPTH = 1000
"""Passages a question that the track takes."""


class RunError(EpicqaError):
    """A run that cannot be read: the message is its first problem and the number of others."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = problems


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """One question's passages, best first: score descending, then rank, then line.

    Attributes:
        line: int64[n], line in the file, from 1.
        rank: int64[n], as written.
        score: float64[n], finite.
        score_text: bytes[n], the score as written.
        first_context, last_context: int64[n], positions in the run's ``contexts``; they differ where a
            passage spans contexts.
        first_number, last_number: int64[n], numbers of the first and last sentence.
    """

    line: NDArray[np.int64]
    rank: NDArray[np.int64]
    score: NDArray[np.float64]
    score_text: NDArray[np.bytes_]
    first_context: NDArray[np.int64]
    last_context: NDArray[np.int64]
    first_number: NDArray[np.int64]
    last_number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run: its tag, and question id -> passages in the order of first appearance.

    ``contexts`` are canonical context ids; ``tags`` maps every tag to the line where it first stands and
    the number of its lines, the run's own first. ``notes`` is what was odd, but not wrong.
    """

    path: Path
    tag: str
    contexts: tuple[str, ...]
    questions: dict[str, Passages]
    tags: dict[str, tuple[int, int]]
    notes: tuple[Problem, ...] = ()

    def sentence_ids(self, passages: Passages, position: int) -> tuple[str, str]:
        """The ids of a passage's first and last sentence, canonical."""
        first = self.contexts[passages.first_context[position]]
        last = self.contexts[passages.last_context[position]]
        return (
            f"{first}-S{passages.first_number[position]:03d}",
            f"{last}-S{passages.last_number[position]:03d}",
        )
