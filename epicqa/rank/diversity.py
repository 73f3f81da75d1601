"""Orders in which each passage says something new, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from epicqa.config import Config
from epicqa.rank.mmr import mmr
from epicqa.rank.novelty import novelty
from epicqa.ranking import Ranking

ORDERS: dict[str, Callable[[Config, Ranking, NDArray[np.float32], int], Ranking]] = {
    "mmr": lambda config, passages, vectors, depth: mmr(passages, vectors, config.mmr_weight, depth),
    "novelty": lambda config, passages, vectors, depth: novelty(passages, vectors, depth),
}
"""Of settings, passages, vectors float32[n, d] of length 1, and how many to return: passages in order."""


def passage_vectors(
    passages: Ranking, rows: NDArray[np.int64], vectors: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The mean direction of each passage's sentences, float32[n, d], of length 1.

    Args:
        passages: n passages.
        rows: int64[m], ascending: every sentence of every passage.
        vectors: float32[m, d], the vectors of ``rows``.
    """
    start = np.searchsorted(rows, passages.first)
    sums = np.zeros((len(passages), vectors.shape[1]))
    for offset in range(int((passages.last - passages.first).max(initial=-1)) + 1):
        inside = passages.first + offset <= passages.last
        sums[inside] += vectors[start[inside] + offset]
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(length > 0, length, 1)).astype(np.float32)
