"""Sentences by the inner product of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from epicqa.errors import EpicqaError
from epicqa.index.vectors import VectorIndex
from epicqa.models.encoder import Encoder
from epicqa.ranking import Ranking


def dense_search(index: VectorIndex, encoder: Encoder, texts: Sequence[str], depth: int) -> list[Ranking]:
    """The ``depth`` best single sentences for each text; equal scores go to the lower row.

    Raises:
        EpicqaError: the index was built with a model of another dimension.
    """
    if encoder.dimension != index.dimension:
        raise EpicqaError(
            f"model {encoder.name!r} gives {encoder.dimension} numbers a vector and the index holds "
            f"{index.dimension}, expected the model that the index was built with"
        )
    found = index.search(encoder.encode_queries(texts), depth)
    return [Ranking.of_sentences(rows, scores) for rows, scores in found]
