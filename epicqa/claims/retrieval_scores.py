"""Measures of abstract retrieval: hit-one, hit-all, and recall of gold abstracts.

A claim is a hit-one where one of its gold evidence abstracts, at least, is retrieved; a hit-all where all of
them are. A claim without evidence is both, whatever is retrieved for it. Both are shares of the claims that
count. Recall is over the gold abstracts of all of them together.

The published evaluation code has the first two: allenai/scifact, ``abstract_retrieval/evaluate.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.scifact import ABSTRACTS, SHAPES, Claim, Predictions
from epicqa.claims.scifact_scores import counted_claims, share
from epicqa.errors import EpicqaError

HIT_ONE = "abstract_hit_one"
HIT_ALL = "abstract_hit_all"
RECALL = "abstract_recall"
RETRIEVAL_MEASURES = (HIT_ONE, HIT_ALL, RECALL)


@dataclass(frozen=True, slots=True, eq=False)
class RetrievalScores:
    """Counts of one file of retrieved abstracts.

    Attributes:
        definition: ``paper`` or ``leaderboard``, see `epicqa.claims.scifact_scores.DEFINITIONS`; here they
            differ in the claims that count only.
        claim_ids: the claims that count.
        counts: int64[n_claims, 3, 2]: of each of `RETRIEVAL_MEASURES` how many were right, and of how many.
    """

    definition: str
    claim_ids: tuple[int, ...]
    counts: NDArray[np.int64]

    def totals(self) -> dict[str, tuple[int, int]]:
        """Measure -> how many were right, and of how many, in all claims."""
        sums = self.counts.sum(axis=0).tolist()
        return {measure: tuple(sums[i]) for i, measure in enumerate(RETRIEVAL_MEASURES)}

    def values(self) -> dict[str, float]:
        """Measure -> its value, 0 to 1."""
        figures = self.figures(self.counts.sum(axis=0, dtype=np.float64)[None])
        return dict(zip(self.names(), figures[0].tolist(), strict=True))

    def names(self) -> list[str]:
        """The keys of `values`."""
        return list(RETRIEVAL_MEASURES)

    def figures(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[k, 3, 2] of right, and of how many -> float64[k, 3]."""
        return share(sums[..., 0], sums[..., 1])


def score_retrieval(
    predictions: Predictions, claims: Sequence[Claim], definition: str = "paper", k: int | None = None
) -> RetrievalScores:
    """Score retrieved abstracts.

    Args:
        predictions: of the shape abstracts.
        claims: with their evidence.
        definition: ``paper``: a claim without a prediction does not count; ``leaderboard``: every claim needs
            one.
        k: how many abstracts of a claim count, the first ones; None: all.

    Raises:
        EpicqaError: predictions of another shape, or as `epicqa.claims.scifact_scores.counted_claims`.
    """
    if predictions.shape != ABSTRACTS:
        raise EpicqaError(f"{predictions.path}: {predictions.shape}, expected lines of {SHAPES[ABSTRACTS]}")
    counted = counted_claims(predictions, claims, definition)
    retrieved = {one.claim_id: list(one.evidence)[:k] for one in predictions.predictions}
    counts = np.zeros((len(counted), len(RETRIEVAL_MEASURES), 2), dtype=np.int64)
    for i, claim in enumerate(counted):
        gold = len(claim.evidence)
        right = len(claim.evidence.keys() & set(retrieved[claim.claim_id]))
        counts[i] = [right > 0 or not gold, 1], [right == gold, 1], [right, gold]
    return RetrievalScores(definition, tuple(claim.claim_id for claim in counted), counts)
