"""Passages ranked again by what several scorers say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from epicqa.ranking import Ranking, gap_below

Scorer = Callable[[str, Sequence[str]], NDArray[np.float64]]
"""Scores of texts for a question, float64[n]; only their differences count."""

WINDOW = 128
"""Passages that a scorer gets at once, in rank order; it may sort them by length."""

DECIMALS = 5


def rerank(
    ranking: Ranking,
    question: str,
    texts: Callable[[int, int], str],
    scorers: Sequence[tuple[float, Scorer]],
    depth: int,
    first_weight: float = 1.0,
) -> Ranking:
    """Sort the first passages by the weighted sum of their scores, standardised; the rest follow unchanged.

    A passage's score is ``first_weight * z(score) + sum of weight * z(scorer's)``, where z takes off the mean
    of these passages and divides by their standard deviation (z-score fusion: Fernández,
    Vallet and Castells, ECIR 2006).

    Args:
        ranking: passages, best first.
        question: what the passages are scored against.
        texts: a passage's text by its first and last row.
        scorers: weight and scorer each.
        depth: passages to score.
        first_weight: of the scores that the ranking comes with.

    Returns:
        The ranking. New scores are rounded to 1e-5, ties to the lower row; the others are shifted to lie
        below them.
    """
    head = ranking[:depth]
    if not len(head):
        return ranking
    passages = [
        texts(first, last) for first, last in zip(head.first.tolist(), head.last.tolist(), strict=True)
    ]
    total = first_weight * standardised(head.score)
    for weight, scorer in scorers:
        windows = (passages[start : start + WINDOW] for start in range(0, len(passages), WINDOW))
        total += weight * standardised(np.concatenate([scorer(question, some) for some in windows]))
    best = Ranking.sort(head.first, head.last, np.round(total, DECIMALS))
    return joined(best, ranking[depth:])


def standardised(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores less their mean, in standard deviations; all 0 where they do not differ."""
    exact = scores.astype(np.float64)
    exact -= exact.mean()
    spread = exact.std()
    # What rounding leaves of equal scores is no difference.
    return exact / spread if spread > 1e-9 * float(np.abs(scores).max()) else np.zeros(len(exact))


def joined(head: Ranking, rest: Ranking) -> Ranking:
    """Two rankings as one: the scores of ``rest`` are shifted to lie below those of ``head``."""
    if not len(head) or not len(rest):
        return head if len(head) else rest
    lowest = float(head.score[-1])
    below = rest.score.astype(np.float64)
    below += lowest - gap_below(lowest) - below.max()
    return Ranking(
        np.concatenate([head.first, rest.first]),
        np.concatenate([head.last, rest.last]),
        np.concatenate([head.score, below.astype(np.float32)]),
    )
