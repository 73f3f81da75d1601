"""Maximal marginal relevance: passages that answer, each unlike those before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epicqa.ranking import Ranking

DECIMALS = 5


def mmr(passages: Ranking, vectors: NDArray[np.float32], diversity: float, depth: int) -> Ranking:
    """Passages in the order of greedy maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

    At each rank the passage with the highest ``(1 - diversity) * relevance - diversity * similarity`` comes
    next, similarity being the largest inner product with a passage above it, 0 at least, so that values fall.
    Relevance is the score mapped to 0..1 over the candidates. Similarities are rounded to 1e-5, so that
    threads do not matter; equal values go to the passage that came first.

    Args:
        passages: candidates, best first.
        vectors: float32[n, d], of length 1, one a passage.
        diversity: 0 (order unchanged) to 1.
        depth: passages to return.

    Returns:
        Up to ``depth`` passages; the scores are the values above, falling.
    """
    count = min(depth, len(passages))
    if not count:
        return passages[:0]
    exact = vectors.astype(np.float64)
    similarity = np.round(exact @ exact.T, DECIMALS)
    score = passages.score.astype(np.float64)
    spread = score.max() - score.min()
    relevance = (score - score.min()) / spread if spread else np.ones(len(score))
    value = (1 - diversity) * relevance
    nearest = np.zeros(len(passages))
    order = np.empty(count, dtype=np.int64)
    reached = np.empty(count)
    marginal = value.copy()
    for rank in range(count):
        best = int(marginal.argmax())
        order[rank], reached[rank] = best, marginal[best]
        np.maximum(nearest, similarity[best], out=nearest)
        np.subtract(value, diversity * nearest, out=marginal)
        marginal[order[: rank + 1]] = -np.inf
    return Ranking(passages.first[order], passages.last[order], reached.astype(np.float32))
