"""Passages in the order of the gain that each is expected to add to those above it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from epicqa.rank.mmr import DECIMALS
from epicqa.rank.probability import probabilities
from epicqa.ranking import Ranking

HALF, STEEPNESS = 0.9, 30.0
"""Cosine at which a passage is as likely as not to repeat another, and how fast that changes around it.

Chosen by ``benchmarks.quality.calibration``; from .88 to .95 and 15 to 50 it hardly matters.
"""


def novelty(
    passages: Ranking,
    vectors: NDArray[np.float32],
    depth: int,
    half: float = HALF,
    steepness: float = STEEPNESS,
) -> Ranking:
    """Greedy selection by expected gain of NDNS: P(it answers) times P(nothing above says the same).

    For each passage, those nearly equivalent to it stand in for its nuggets: it repeats a passage above with
    probability ``1 / (1 + exp(-steepness * (cosine - half)))``, independently of the others, as in xQuAD's
    product over what was chosen (Santos, Macdonald and Ounis, WWW 2010, section 3.2). Whether the passage
    above answers does not matter: where a near copy of it answers, so does it. One pick takes time linear in
    the number of passages.

    Args:
        passages: candidates, best first.
        vectors: float32[n, d], of length 1, one a passage.
        depth: passages to return.
        half, steepness: of the curve above.

    Returns:
        Up to ``depth`` passages; the scores are expected gains, falling. Ties go to the passage that came
        first.
    """
    count = min(depth, len(passages))
    exact = vectors.astype(np.float64)
    gain = probabilities(passages)
    order = np.empty(count, dtype=np.int64)
    reached = np.empty(count)
    for rank in range(count):
        best = int(gain.argmax())
        order[rank], reached[rank] = best, gain[best]
        # Rounded, so that threads do not matter.
        cosine = np.round(exact @ exact[best], DECIMALS)
        gain *= expit(-steepness * (cosine - half))
        gain[order[: rank + 1]] = -np.inf
    return Ranking(passages.first[order], passages.last[order], reached.astype(np.float32))
