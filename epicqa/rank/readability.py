"""Whom a passage is written for, as far as its words tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

AUDIENCES = {"expert": -0.5, "general": 0.5}
"""Weight of plain words by audience."""


def plainness_scores(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """Minus the mean length of a passage's words, float64[n]: what readability formulas build on."""
    return np.array([-len("".join(text.split())) / max(1, len(text.split())) for text in texts])
