"""Passages scored again by a cross-encoder, within a budget of depth or time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.ranking import Ranking

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

DECIMALS = 5
# Batches between two looks at the clock; inside, passages are batched by length.
_BATCHES = 4
_GAP = 1e-3


def rerank(
    ranking: Ranking,
    question: str,
    texts: Callable[[int, int], str],
    model: CrossEncoder,
    *,
    depth: int,
    batch_size: int = 32,
    seconds: float | None = None,
) -> tuple[Ranking, int]:
    """Score the first passages again and sort them by the new scores; the rest follow as they were.

    Passages go to the model in windows of four batches in rank order, budget or not, so that a replay with
    the depth that a clock budget reached makes the same batches and the same scores.

    Args:
        ranking: passages, best first.
        question: what the passages are scored against.
        texts: a passage's text by its first and last row.
        depth: passages to score.
        batch_size: pairs at once.
        seconds: stop before the window that would start after this time.

    Returns:
        The ranking and the depth reached. New scores are logits rounded to 1e-5, ties to the lower row; the
        others are shifted to lie below them.

    Raises:
        EpicqaError: the model does not give one finite score a pair.
    """
    began = time.monotonic()
    depth = min(depth, len(ranking))
    window = _BATCHES * batch_size
    scores = np.zeros(depth, dtype=np.float64)
    reached = 0
    while reached < depth and (seconds is None or time.monotonic() - began < seconds):
        stop = min(reached + window, depth)
        pairs = [
            (question, texts(int(ranking.first[place]), int(ranking.last[place])))
            for place in range(reached, stop)
        ]
        scores[reached:stop] = _predict(model, pairs, batch_size)
        reached = stop
    if not reached:
        return ranking, 0
    head = Ranking.sort(ranking.first[:reached], ranking.last[:reached], scores[:reached])
    rest = ranking[reached:]
    below = rest.score.astype(np.float64)
    if len(rest):
        below += float(head.score[-1]) - _GAP - below.max()
    return (
        Ranking(
            np.concatenate([head.first, rest.first]),
            np.concatenate([head.last, rest.last]),
            np.concatenate([head.score, below.astype(np.float32)]),
        ),
        reached,
    )


def _predict(model: CrossEncoder, pairs: list[tuple[str, str]], batch_size: int) -> np.ndarray:
    import torch

    from epicqa.models.quiet import quiet

    order = np.argsort([-len(text) for _, text in pairs], kind="stable")
    with quiet():
        # Logits: a sigmoid would round most of a long tail to one value.
        found = model.predict(
            [pairs[place] for place in order],
            batch_size=batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
        )
    found = np.asarray(found, dtype=np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (len(pairs),):
        raise EpicqaError(f"reranker gives scores of shape {found.shape[1:]} a pair, expected one number")
    if not np.isfinite(found).all():
        raise EpicqaError("reranker gives a score that is not finite, expected numbers")
    out = np.empty(len(pairs))
    out[order] = np.round(found, DECIMALS)
    return out
