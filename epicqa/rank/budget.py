"""A time for reranking, spent on the questions evenly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Budget:
    """How deep each question may be reranked, so that all of them end in time.

    The depth follows from the pace so far: no question is cut short while it is scored, so that a replay with
    the depths that were reached makes the same batches and the same scores.
    """

    def __init__(self, seconds: float, questions: int) -> None:
        self._left = seconds
        self._questions = questions
        self._passages = 0
        self._spent = 0.0

    @property
    def timed(self) -> bool:
        """Whether the pace is known."""
        return self._passages > 0

    def depth(self, most: int) -> int:
        """Passages of the next question, up to ``most``: what its part of the time left is enough for."""
        part = self._left / max(1, self._questions)
        self._questions -= 1
        if not self.timed:
            return most if part > 0 else 0
        return int(min(most, part * self._passages / max(self._spent, 1e-9)))

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Time that is spent, on whatever it is."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._left = max(0.0, self._left - (time.monotonic() - began))

    @contextmanager
    def scoring(self, passages: int) -> Iterator[None]:
        """Time that is spent on scoring so many passages, which the pace is known by."""
        began = time.monotonic()
        with self.spending():
            yield
        self._passages += passages
        self._spent += time.monotonic() - began
