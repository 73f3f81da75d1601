"""FEVER's measures: FEVER score, label accuracy, and precision, recall and F1 of evidence.

Of a claim with the gold label l and the gold sets of sentences S1, S2, ..., and a prediction with the label p
and its first five sentences E:

- label accuracy: the share of all claims with p = l;
- FEVER score: the share of all claims with p = l and, where l is not NOT ENOUGH INFO, some whole Si in E;
- evidence recall: the share of claims with some whole Si in E, of those with evidence, whatever p is;
- evidence precision: the mean over claims with evidence of |E in any Si| / |E|, whatever p is;
- evidence F1: 2PR / (P + R) of these two, 0 where both are.

A claim with evidence is one whose gold label is SUPPORTS or REFUTES. Beside label accuracy stands Cohen's
kappa, which says how much of the agreement is not by chance, see `cohen_kappa`; it is none of the task's.

Thorne et al., "FEVER: a large-scale dataset for Fact Extraction and VERification", NAACL 2018, section 5, and
"The Fact Extraction and VERification (FEVER) Shared Task", 2018, section 2; what those leave open is as in
`DEFINITIONS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.fever import (
    CONSIDERED,
    LABELS,
    NOINFO,
    REFUTES,
    SUPPORTS,
    Claim,
    Prediction,
    Predictions,
    Sentence,
    title_key,
)
from epicqa.claims.scifact_scores import share
from epicqa.errors import EpicqaError

FEVER_SCORE = "fever_score"
LABEL_ACCURACY = "label_accuracy"
PRECISION = "evidence_precision"
RECALL = "evidence_recall"
F1 = "evidence_f1"
MEASURES = (FEVER_SCORE, LABEL_ACCURACY, PRECISION, RECALL, F1)

LABEL_KAPPA = "label_kappa"
"""What Cohen's kappa of the labels is called."""

DEFINITIONS = ("shared-task", "by-id")
"""``shared-task``: the released scorer's. The first prediction is the first claim's, and so on, whatever the
ids; there are as many as claims. A prediction without sentences has precision 1, as has a file of claims none
of which has evidence; a sentence predicted twice counts twice; titles are compared character by character.

``by-id``: a prediction is its id's claim's; a claim without one is wrong in all measures. A prediction
without sentences has precision 0, what divides by nothing is 0; a sentence predicted twice counts once;
titles are compared by `epicqa.claims.fever.title_key`."""

_COUNTED = MEASURES[:-1]
_LABELS = (SUPPORTS, REFUTES, NOINFO)
# A share of at most five sentences is a whole number of sixtieths, and sums of these are exact.
_PARTS = 60


@dataclass(frozen=True, slots=True, eq=False)
class FeverScores:
    """Counts of one file of predictions.

    Attributes:
        definition: one of `DEFINITIONS`.
        claim_ids: the claims, in the order of their file.
        measures: those of `MEASURES` that the file's shape allows: all, or label accuracy.
        counts: int64[n_claims, n_counted, 2]: of each measure but F1 how much was right, and of how much; of
            evidence precision in sixtieths of a claim.
        confusion: int64[4, 4]: claims by gold label and predicted label, in the order SUPPORTS, REFUTES,
            NOT ENOUGH INFO, none: a claim without a prediction has none.
    """

    definition: str
    claim_ids: tuple[int, ...]
    measures: tuple[str, ...]
    counts: NDArray[np.int64]
    confusion: NDArray[np.int64]

    @property
    def label_kappa(self) -> float:
        """`cohen_kappa` of gold and predicted labels."""
        return cohen_kappa(self.confusion)

    def totals(self) -> dict[str, tuple[int | float, int]]:
        """Measure but F1 -> how many claims were right, of how many; of precision the sum of shares."""
        sums = self.counts.sum(axis=0).tolist()
        totals: dict[str, tuple[int | float, int]] = {}
        for measure, (right, of) in zip(self._counted, sums, strict=True):
            totals[measure] = (right / _PARTS, of // _PARTS) if measure == PRECISION else (right, of)
        return totals

    def values(self) -> dict[str, float]:
        """Measure -> its value, 0 to 1, in the order of `MEASURES`."""
        figures = self.figures(self.counts.sum(axis=0, dtype=np.float64)[None])
        return dict(zip(self.names(), figures[0].tolist(), strict=True))

    def names(self) -> list[str]:
        """The keys of `values`."""
        return list(self.measures)

    def figures(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[k, n_counted, 2] of right, and of how much -> float64[k, n_measures]."""
        shares = share(sums[..., 0], sums[..., 1])
        if F1 not in self.measures:
            return shares
        precision, recall = (_COUNTED.index(measure) for measure in (PRECISION, RECALL))
        if self.definition == "shared-task":
            shares[sums[:, precision, 1] == 0, precision] = 1.0
        both = shares[:, precision] + shares[:, recall]
        f1 = share(2 * shares[:, precision] * shares[:, recall], both)
        return np.column_stack([shares, f1])

    @property
    def _counted(self) -> tuple[str, ...]:
        return tuple(measure for measure in self.measures if measure in _COUNTED)


def score_fever(
    predictions: Predictions, claims: Sequence[Claim], definition: str = "shared-task"
) -> FeverScores:
    """Score predictions; neither they nor the claims are changed.

    Args:
        predictions: with evidence, or labels only: these by label accuracy alone.
        claims: with their labels and evidence.
        definition: one of `DEFINITIONS`.

    Raises:
        EpicqaError: the claims' labels are not known; predictions are more or fewer than claims
            (``shared-task``), or one is of a claim that is unknown or repeated (``by-id``).
        KeyError: another definition.
    """
    by_id = {"shared-task": False, "by-id": True}[definition]
    if unknown := next((claim for claim in claims if claim.label is None), None):
        raise EpicqaError(
            f"{predictions.path}: claim {unknown.claim_id}: its label is not known, "
            "expected claims with 'label' and 'evidence'"
        )
    matched = _by_id(predictions, claims) if by_id else _by_position(predictions, claims)
    counts = np.zeros((len(claims), len(_COUNTED), 2), dtype=np.int64)
    confusion: NDArray[np.int64] = np.zeros((len(_LABELS) + 1,) * 2, dtype=np.int64)
    for i, (claim, prediction) in enumerate(zip(claims, matched, strict=True)):
        counts[i] = _counts(claim, prediction, by_id)
        confusion[_place(claim.label), _place(prediction.label if prediction else None)] += 1
    measures: tuple[str, ...] = MEASURES
    if predictions.shape == LABELS:
        measures = (LABEL_ACCURACY,)
        counts = counts[:, [_COUNTED.index(LABEL_ACCURACY)]]
    return FeverScores(definition, tuple(claim.claim_id for claim in claims), measures, counts, confusion)


def cohen_kappa(confusion: NDArray[np.int64]) -> float:
    """(p_o - p_e) / (1 - p_e), 0 where p_e is 1: all is of one label, and nothing tells chance apart.

    p_o is the share of items of which both say the same, p_e the sum over labels of the product of the shares
    that both have of them. Cohen, "A Coefficient of Agreement for Nominal Scales", Educational and
    Psychological Measurement 20(1), 1960.

    Args:
        confusion: int64[k, k]: items by what the one says and what the other says.
    """
    total = int(confusion.sum())
    # Whole numbers, so that equal shares are equal.
    chance = int(confusion.sum(axis=0) @ confusion.sum(axis=1))
    same = int(np.trace(confusion)) * total
    return (same - chance) / (total**2 - chance) if total**2 > chance else 0.0


def _place(label: str | None) -> int:
    return len(_LABELS) if label is None else _LABELS.index(label)


def _by_position(predictions: Predictions, claims: Sequence[Claim]) -> Sequence[Prediction]:
    given = len(predictions.predictions)
    if given != len(claims):
        raise EpicqaError(
            f"{predictions.path}: {given} predictions, expected {len(claims)}, one for each claim, as the "
            "definition shared-task requires; by-id takes fewer"
        )
    return predictions.predictions


def _by_id(predictions: Predictions, claims: Sequence[Claim]) -> Sequence[Prediction | None]:
    known = {claim.claim_id for claim in claims}
    if len(known) < len(claims):
        raise EpicqaError(f"{predictions.path}: claims of one id, expected different ones for by-id")
    found: dict[int, Prediction] = {}
    for one, line in zip(predictions.predictions, predictions.lines, strict=True):
        place = f"{predictions.path}:{line}: claim {one.claim_id}"
        if one.claim_id not in known:
            raise EpicqaError(f"{place}: no such claim, expected one of the claims' file")
        if one.claim_id in found:
            raise EpicqaError(f"{place}: repeated, expected each claim once")
        found[one.claim_id] = one
    return [found.get(claim.claim_id) for claim in claims]


def _counts(claim: Claim, prediction: Prediction | None, by_id: bool) -> list[tuple[int, int]]:
    """Of each measure but F1 how much is right, and of how much."""
    label = prediction is not None and prediction.label == claim.label
    if claim.label == NOINFO:
        return [(label, 1), (label, 1), (0, 0), (0, 0)]
    considered = ((prediction and prediction.evidence) or ())[:CONSIDERED]
    if by_id:
        considered = tuple({_keyed(sentence) for sentence in considered})
        sets = [{_keyed(sentence) for sentence in one} for one in claim.evidence]
    else:
        sets = [set(one) for one in claim.evidence]
    gold = set().union(*sets)
    found = any(one <= set(considered) for one in sets)
    right = sum(sentence in gold for sentence in considered)
    precision = _PARTS * right // len(considered) if considered else 0 if by_id else _PARTS
    return [(label and found, 1), (label, 1), (precision, _PARTS), (found, 1)]


def _keyed(sentence: Sentence) -> Sentence:
    return Sentence(title_key(sentence.page), sentence.line)
