"""From scores to the probability that a passage answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from epicqa.rank.blend import standardised
from epicqa.ranking import Ranking

INTERCEPT, SLOPE = -3.9, 1.3
"""Of the logistic curve over standardised scores, fitted by ``benchmarks.quality.calibration``."""

HEAD = 400
"""Passages whose scores are standardised together; those below are measured by their mean and deviation."""


def probabilities(passages: Ranking) -> NDArray[np.float64]:
    """P(a passage states a nugget), float64[n], by a logistic curve over its standardised score (Platt 1999).

    Args:
        passages: best first.
    """
    if not len(passages):
        return np.zeros(0)
    score = passages.score.astype(np.float64)
    head = score[:HEAD]
    spread = head.std()
    z = (score - head.mean()) / spread if standardised(head).any() else np.zeros(len(score))
    found: NDArray[np.float64] = expit(INTERCEPT + SLOPE * z)
    return found
