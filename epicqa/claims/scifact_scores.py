"""SciFact's measures: precision, recall and F1 over all claims together, and how sure they are.

Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020, section "Task evaluation"; the
rules that the paper leaves open are those of the published evaluation code:

- an abstract predicted with a label is right (label only) where it is a gold evidence abstract of the claim
  with that label; it is right with its rationale where, besides, a whole gold rationale lies within the
  sentences considered: the first ones in the system's order, as many as the definition says;
- a predicted sentence is right (selection only) where it belongs to a gold rationale all of which is
  predicted, and with its label where, besides, its abstract has the right label. No sentence is cut off here,
  as each one too many lowers precision;
- precision divides by all that was predicted, recall by all gold abstracts, or all sentences of all gold
  rationales, of the claims that count; what divides by nothing is 0. F1 is 2PR / (P + R) of those.

Abstracts with the label NOINFO are not predicted at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.scifact import (
    ABSTRACTS,
    FULL,
    LABELS,
    NOINFO,
    RATIONALES,
    SHAPES,
    Claim,
    Prediction,
    Predictions,
    Rationale,
)
from epicqa.errors import EpicqaError

SELECTION_ONLY = "sentence_selection_only"
SELECTION_LABEL = "sentence_selection_label"
LABEL_ONLY = "abstract_label_only"
LABEL_RATIONALE = "abstract_label_rationale"
MEASURES = (SELECTION_ONLY, SELECTION_LABEL, LABEL_ONLY, LABEL_RATIONALE)
FIGURES = ("p", "r", "f1")

DEFINITIONS = ("paper", "leaderboard")
"""``paper``: the first three sentences of an abstract are considered for its rationale; a claim without a
prediction does not count. ``leaderboard``: as many as the abstract's shortest gold rationale has, where that
is more than three; every claim needs a prediction."""

MEASURES_OF = {FULL: MEASURES, RATIONALES: (SELECTION_ONLY,), LABELS: (LABEL_ONLY,), ABSTRACTS: ()}
"""Shape of predictions -> what they can be scored by."""

RESAMPLES = 10_000
_CONSIDERED = 3
# Claims drawn at once: 16 MB of numbers.
_DRAWN = 1 << 21


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure varies over resamples: standard deviation, and the ends of a 95% interval."""

    deviation: float
    low: float
    high: float


class Counted(Protocol):
    """Counts by claim, and the figures that sums of them give."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64[n_claims, n_measures, n_counts]."""

    def names(self) -> list[str]:
        """What `figures` gives."""

    def figures(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[k, n_measures, n_counts] of sums -> float64[k, n_names]."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimScores:
    """Counts of one file of predictions.

    Attributes:
        definition: one of `DEFINITIONS`.
        claim_ids: the claims that count.
        measures: those of `MEASURES` that the file's shape allows.
        counts: int64[n_claims, n_measures, 3]: how many were right, predicted, gold.
    """

    definition: str
    claim_ids: tuple[int, ...]
    measures: tuple[str, ...]
    counts: NDArray[np.int64]

    def totals(self) -> dict[str, tuple[int, int, int]]:
        """Measure -> how many were right, predicted and gold in all claims."""
        sums = self.counts.sum(axis=0).tolist()
        return {measure: tuple(sums[i]) for i, measure in enumerate(self.measures)}

    def values(self) -> dict[str, float]:
        """Measure with ``_p``, ``_r`` or ``_f1`` -> its value, 0 to 1, in the order of `MEASURES`."""
        figures = self.figures(self.counts.sum(axis=0, dtype=np.float64)[None])
        return dict(zip(self.names(), figures[0].tolist(), strict=True))

    def names(self) -> list[str]:
        """The keys of `values`."""
        return [f"{measure}_{figure}" for measure in self.measures for figure in FIGURES]

    def figures(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[k, n_measures, 3] of right, predicted, gold -> float64[k, 3 n_measures] of P, R, F1."""
        right, predicted, gold = sums[..., 0], sums[..., 1], sums[..., 2]
        precision = share(right, predicted)
        recall = share(right, gold)
        f1 = share(2 * precision * recall, precision + recall)
        return np.stack([precision, recall, f1], axis=-1).reshape(len(sums), -1)


def score_claims(predictions: Predictions, claims: Sequence[Claim], definition: str = "paper") -> ClaimScores:
    """Score predictions by what their shape allows, see `MEASURES_OF`.

    Args:
        predictions: of any shape but abstracts only.
        claims: with their evidence.
        definition: one of `DEFINITIONS`.

    Raises:
        EpicqaError: the predictions are abstracts without labels or sentences, or of an unknown claim; the
            claims' evidence is not known; a claim has no prediction (``leaderboard``).
        KeyError: another definition.
    """
    longer = {"paper": False, "leaderboard": True}[definition]
    measures = MEASURES_OF[predictions.shape]
    if not measures:
        raise EpicqaError(
            f"{predictions.path}: retrieved abstracts, which no measure here scores, expected lines of "
            + " or ".join(SHAPES[shape] for shape, scored in MEASURES_OF.items() if scored)
        )
    counted = counted_claims(predictions, claims, definition)
    found = {one.claim_id: one for one in predictions.predictions}
    counts = np.zeros((len(counted), len(MEASURES), 3), dtype=np.int64)
    for i, claim in enumerate(counted):
        counts[i] = _counts(claim, found[claim.claim_id], longer)
    kept = [MEASURES.index(measure) for measure in measures]
    return ClaimScores(definition, tuple(claim.claim_id for claim in counted), measures, counts[:, kept])


def counted_claims(predictions: Predictions, claims: Sequence[Claim], definition: str) -> list[Claim]:
    """The claims that count: those with a prediction.

    Raises:
        EpicqaError: predictions of an unknown claim; the claims' evidence is not known; a claim has no
            prediction (``leaderboard``).
    """
    path = predictions.path
    if unknown := next((claim for claim in claims if not claim.judged), None):
        raise EpicqaError(
            f"{path}: claim {unknown.claim_id}: its evidence is not known, expected claims with 'evidence'"
        )
    found = {one.claim_id for one in predictions.predictions}
    if strange := found - {claim.claim_id for claim in claims}:
        raise EpicqaError(f"{path}: claim {min(strange)}: no such claim, expected one of the claims' file")
    counted = [claim for claim in claims if claim.claim_id in found]
    if definition == "leaderboard" and len(counted) < len(claims):
        missing = [claim.claim_id for claim in claims if claim.claim_id not in found]
        others = f" (nor have {len(missing) - 1} others)" if missing[1:] else ""
        raise EpicqaError(
            f"{path}: claim {missing[0]}: it has no prediction{others}, expected one for each claim, "
            "as the definition leaderboard requires"
        )
    return counted


def bootstrap(scores: Counted, resamples: int = RESAMPLES, seed: int = 0) -> dict[str, Spread]:
    """Draw as many claims as there are, with replacement, again and again, and score each draw.

    Claims are the units, since what is predicted for one of them hangs together; all measures see the same
    draws. The interval is between the 2.5th and the 97.5th percentile. Efron & Tibshirani, "An Introduction
    to the Bootstrap", 1993, chapters 6 and 13.

    Args:
        scores: counts by claim.
        resamples: how many draws, at least 2.
        seed: equal seeds give equal results.

    Returns:
        A name of the scores -> its spread.
    """
    n, *sizes = scores.counts.shape
    names = scores.names()
    rows = max(1, _DRAWN // max(n, 1))
    generator = np.random.default_rng(seed)
    flat = scores.counts.reshape(n, math.prod(sizes)).astype(np.float64)
    figures = np.empty((resamples, len(names)))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = generator.integers(max(n, 1), size=(size, n))
        # How often each claim was drawn; sums of whole numbers stay exact.
        drawn += np.arange(size)[:, None] * n
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        sums = (times.astype(np.float64) @ flat).reshape(size, *sizes)
        figures[start : start + size] = scores.figures(sums)
    deviation = figures.std(axis=0, ddof=1)
    low, high = np.quantile(figures, [0.025, 0.975], axis=0)
    return {name: Spread(float(deviation[i]), float(low[i]), float(high[i])) for i, name in enumerate(names)}


def share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Part by whole; what divides by nothing is 0."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _counts(claim: Claim, prediction: Prediction, longer: bool) -> list[list[int]]:
    """Of each of `MEASURES` how many are right, predicted, gold, whatever the shape allows."""
    gold: Mapping[int, tuple[Rationale, ...]] = claim.evidence
    right = dict.fromkeys(MEASURES, 0)
    sentences = abstracts = 0
    for doc_id, one in prediction.evidence.items():
        if one.label == NOINFO:
            continue
        selected = one.sentences or ()
        abstracts += 1
        sentences += len(selected)
        rationales = gold.get(doc_id, ())
        complete = sum(
            len(rationale.sentences) for rationale in rationales if set(rationale.sentences) <= set(selected)
        )
        right[SELECTION_ONLY] += complete
        if not rationales or one.label != rationales[0].label:
            continue
        right[SELECTION_LABEL] += complete
        right[LABEL_ONLY] += 1
        shortest = min(len(rationale.sentences) for rationale in rationales)
        considered = set(selected[: max(_CONSIDERED, shortest) if longer else _CONSIDERED])
        if any(set(rationale.sentences) <= considered for rationale in rationales):
            right[LABEL_RATIONALE] += 1
    gold_sentences = sum(len(one.sentences) for rationales in gold.values() for one in rationales)
    totals = {
        SELECTION_ONLY: (sentences, gold_sentences),
        SELECTION_LABEL: (sentences, gold_sentences),
        LABEL_ONLY: (abstracts, len(gold)),
        LABEL_RATIONALE: (abstracts, len(gold)),
    }
    return [[right[measure], *totals[measure]] for measure in MEASURES]
