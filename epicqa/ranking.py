"""The type that every stage takes and returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages, best first, as rows of the corpus.

    Attributes:
        first: int64[n], row of a passage's first sentence.
        last: int64[n], row of its last sentence, inclusive, in the same context.
        score: float32[n], higher is better.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    score: NDArray[np.float32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", np.asarray(self.first, dtype=np.int64))
        object.__setattr__(self, "last", np.asarray(self.last, dtype=np.int64))
        object.__setattr__(self, "score", np.asarray(self.score, dtype=np.float32))
        if not self.first.shape == self.last.shape == self.score.shape or self.first.ndim != 1:
            raise ValueError("first, last and score must be one-dimensional and of equal length")

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, index: slice | NDArray[np.generic]) -> Ranking:
        return Ranking(self.first[index], self.last[index], self.score[index])

    @classmethod
    def of_sentences(cls, rows: NDArray[np.integer], score: NDArray[np.floating]) -> Ranking:
        """A ranking of single sentences, in the order given."""
        first = np.asarray(rows, dtype=np.int64)
        return cls(first, first, np.asarray(score, dtype=np.float32))

    @classmethod
    def sort(
        cls, first: NDArray[np.integer], last: NDArray[np.integer], score: NDArray[np.floating]
    ) -> Ranking:
        """Best first; equal scores go to the lower first row, then the lower last row."""
        order = np.lexsort((last, first, -np.asarray(score, dtype=np.float64)))
        return cls(
            first[order].astype(np.int64), last[order].astype(np.int64), score[order].astype(np.float32)
        )


def gap_below(score: float) -> float:
    """How far below a score the next one is put where only the order counts: float32 tells them apart."""
    return max(1e-3, float(np.spacing(np.float32(2 * abs(score)))))
