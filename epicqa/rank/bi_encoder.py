"""Scores of a bi-encoder: the cosine of a question's vector and a passage's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epicqa.models.encoder import Encoder
from epicqa.models.precision import native_precision


def bi_encoder_scores(
    encoder: Encoder, question: str, texts: Sequence[str], kept: dict[str, NDArray[np.float32]]
) -> NDArray[np.float64]:
    """Cosines, float64[n].

    Args:
        encoder: makes the vectors.
        question: the question.
        texts: passages.
        kept: gets the vector of each text, float32[d], of length 1, for what compares passages afterwards.
    """
    with native_precision():
        vectors = encoder.encode(texts)
    kept.update(zip(texts, vectors, strict=True))
    query = encoder.encode_queries([question])[0]
    return vectors.astype(np.float64) @ query.astype(np.float64)
