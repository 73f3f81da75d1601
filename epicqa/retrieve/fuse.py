"""Several rankings of sentences made one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from epicqa.ranking import Ranking

RRF_K = 60.0


def reciprocal_ranks(ranking: Ranking) -> NDArray[np.float64]:
    """1 / (60 + rank), ranks from 1 (Cormack, Clarke and Büttcher, SIGIR 2009)."""
    return 1.0 / (RRF_K + np.arange(1, len(ranking) + 1, dtype=np.float64))


def min_max(ranking: Ranking) -> NDArray[np.float64]:
    """Scores mapped linearly to 0 (the worst retrieved) to 1; all 1 where they do not differ."""
    score = ranking.score.astype(np.float64)
    if not len(score) or score.max() == score.min():
        return np.ones(len(score))
    return (score - score.min()) / (score.max() - score.min())


FUSIONS: dict[str, Callable[[Ranking], NDArray[np.float64]]] = {"rrf": reciprocal_ranks, "minmax": min_max}


def fuse(rankings: Sequence[Ranking], weights: Sequence[float], how: str) -> Ranking:
    """The weighted sum of rankings' points, by ``rrf`` or ``minmax``; a sentence not retrieved gets 0.

    Args:
        rankings: of single sentences.
        weights: one a ranking.
        how: a name in ``FUSIONS``.
    """
    rows = np.concatenate([ranking.first for ranking in rankings])
    points = np.concatenate(
        [weight * FUSIONS[how](ranking) for ranking, weight in zip(rankings, weights, strict=True)]
    )
    unique, place = np.unique(rows, return_inverse=True)
    total = np.bincount(place, points, minlength=len(unique))
    return Ranking.sort(unique, unique, total.astype(np.float32))
