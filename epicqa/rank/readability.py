"""Whom a passage is written for, as far as its words tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

AUDIENCES = {"expert": -0.5, "general": 0.5}
"""Weight of plain words by audience."""

# Letters of a word as most are: a text without words is neither plain nor hard.
_WORD = 6


def plainness_scores(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Minus the mean length of a passage's words, float64[n]: what readability formulas build on."""
    lengths = [[len(word) for word in text.split()] or [_WORD] for text in texts]
    return np.array([-sum(own) / len(own) for own in lengths])
