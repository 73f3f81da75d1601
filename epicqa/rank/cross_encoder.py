"""Scores of a cross-encoder: question and passage go through the network together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError

if TYPE_CHECKING:
    from epicqa.models.backends import Loaded

BATCH = 32


def cross_encoder_scores(
    loaded: Loaded, question: str, texts: Sequence[str], batch_size: int = BATCH
) -> NDArray[np.float64]:
    """Logits of texts for a question, float64[n]; texts of like length share a batch.

    Raises:
        EpicqaError: the model does not give one finite score a pair.
    """
    import torch

    from epicqa.models.quiet import quiet

    order = np.argsort([-len(text) for text in texts], kind="stable")
    with quiet(), loaded.autocast():
        # Logits: a sigmoid would round most of a long tail to one value.
        found = loaded.model.predict(
            [(question, texts[place]) for place in order],
            batch_size=batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
        )
    found = np.asarray(found, dtype=np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.shape != (len(texts),):
        raise EpicqaError(f"reranker gives scores of shape {found.shape[1:]} a pair, expected one number")
    if not np.isfinite(found).all():
        raise EpicqaError("reranker gives a score that is not finite, expected numbers")
    out = np.empty(len(texts))
    out[order] = found
    return out
