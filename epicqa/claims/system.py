"""From a claim and abstracts to evidence: one model selects rationales, one labels, or one does both.

Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.encoding import ClaimInput
from epicqa.claims.model import ClaimModel, Reading
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.retrieval import Retrieved, check_judged
from epicqa.claims.scifact import (
    NOINFO,
    RATIONALES,
    REFUTES,
    SHAPES,
    SUPPORTS,
    Abstract,
    Claim,
    PredictedEvidence,
    Prediction,
    read_predictions,
)
from epicqa.errors import EpicqaError

MODEL = "claims"
"""The joint model that is used where none is named."""

LabelInput = Literal["abstract", "rationale"]
Selection = tuple[int, ...]
"""Sentences of an abstract, best first: measures look at the first three."""

Rationales = dict[int, dict[int, Selection]]
"""Claim -> abstract -> its selected sentences."""

# Claims that are read at once: enough to sort windows by length, few enough for memory.
_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the models say of a claim and an abstract.

    Attributes:
        label: `SUPPORTS`, `NOINFO` or `REFUTES`.
        probabilities: float64[3], of `epicqa.claims.network.LABEL_ORDER`, as the labeller has them; `NOINFO`
            for sure where it was given nothing to read.
        sentences: the rationale, best first.
        scores: float64[n]: of each sentence, the probability that it is a rationale's; None where rationales
            were given.
    """

    label: str
    probabilities: NDArray[np.float64]
    sentences: Selection
    scores: NDArray[np.float64] | None


def select(scores: NDArray[np.float64], threshold: float, most: int | None = None) -> Selection:
    """Sentences of probabilities above a threshold, the most probable first, equal ones by place.

    Args:
        scores: float64[n].
        threshold: 0 to 1.
        most: sentences at most; None: no limit.
    """
    order = np.argsort(-scores, kind="stable")
    return tuple(order[scores[order] > threshold][:most].tolist())


def label_of(probabilities: NDArray[np.float64], evidence_threshold: float) -> str:
    """`NOINFO` unless 1 - P(`NOINFO`) is above the threshold, else the likelier of the other two labels.

    Args:
        probabilities: float64[3], of `LABEL_ORDER`.
        evidence_threshold: 0 to 1.
    """
    supports, none, refutes = probabilities.tolist()
    if 1 - none <= evidence_threshold:
        return NOINFO
    return SUPPORTS if supports >= refutes else REFUTES


def check_models(selector: ClaimModel | None, labeller: ClaimModel) -> None:
    """Refuse models that cannot do their step.

    Raises:
        EpicqaError: a selector that labels only, or a labeller that selects only.
    """
    for model, wrong, step, right in (
        (selector, "label", "selects rationales", "rationale"),
        (labeller, "rationale", "labels", "label"),
    ):
        if model is not None and model.settings.kind == wrong:
            raise EpicqaError(
                f"{model.name}: a {wrong} model, expected one that {step}: of kind {right} or joint"
            )


def verify(
    inputs: Sequence[ClaimInput],
    selector: ClaimModel | None,
    labeller: ClaimModel,
    *,
    rationales: Sequence[Selection] | None = None,
    label_input: LabelInput | None = None,
    threshold: float | None = None,
    evidence_threshold: float | None = None,
    most: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """Select rationales, then label: `NOINFO` where none is selected, else as `label_of`.

    One joint model for both steps, the same object, reads whole abstracts once.

    Args:
        inputs: claims, each with all sentences of an abstract.
        selector: selects; None only where rationales are given.
        labeller: labels.
        rationales: of each input, sentences that are taken instead of selecting any.
        label_input: what the labeller reads of an abstract: all of it, or the rationale in the abstract's
            order. None: what its kind was trained on, all of it for a joint model, else the rationale.
        threshold: of `select`; None: the selector's own.
        evidence_threshold: of `label_of`; None: the labeller's own.
        most: of `select`.
        progress: called with how much is done, and of how much.

    Raises:
        EpicqaError: a model is of the wrong kind; a claim is too long.
        ValueError: there is neither a selector, nor are rationales given.
    """
    check_models(selector, labeller)
    if label_input is None:
        label_input = "abstract" if labeller.settings.kind == "joint" else "rationale"
    if evidence_threshold is None:
        evidence_threshold = labeller.settings.evidence_threshold
    once = rationales is None and selector is labeller and label_input == "abstract"
    stages = 2 if rationales is None and not once else 1
    readings: list[Reading] = []
    if rationales is None:
        if selector is None:
            raise ValueError("expected a selector or rationales")
        if threshold is None:
            threshold = selector.settings.threshold
        readings = selector.read(inputs, _stage(progress, 0, stages))
        rationales = [select(_there(one.sentences), threshold, most) for one in readings]
    scores = [one.sentences for one in readings] if readings else [None] * len(inputs)
    if once:
        labels = [_there(one.labels) for one in readings]
    else:
        labels = _labelled(inputs, rationales, labeller, label_input, _stage(progress, stages - 1, stages))
    return [
        Verdict(label_of(one, evidence_threshold) if selected else NOINFO, one, selected, probabilities)
        for one, selected, probabilities in zip(labels, rationales, scores, strict=True)
    ]


def predictions(
    claims: Sequence[Claim],
    abstracts: Mapping[int, Abstract],
    retrieved: Retrieved,
    selector: ClaimModel | None,
    labeller: ClaimModel,
    *,
    rationales: Rationales | None = None,
    label_input: LabelInput | None = None,
    threshold: float | None = None,
    evidence_threshold: float | None = None,
    most: int | None = None,
    done: Mapping[int, Prediction] | None = None,
    note: Callable[[Sequence[Prediction]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Prediction]:
    """Verify each claim by its retrieved abstracts; what is `NOINFO` is left out.

    Args:
        claims: what to verify.
        abstracts: the corpus.
        retrieved: of each claim, the abstracts to read.
        selector: as of `verify`, as the others that it has.
        labeller: labels.
        rationales: of each claim and retrieved abstract, sentences that are taken instead of selecting any.
        label_input: what the labeller reads.
        threshold: of sentences.
        evidence_threshold: of abstracts.
        most: sentences of an abstract at most.
        done: predictions that an interrupted call had noted; batches that are among them are not read again.
        note: called with the predictions of each batch that was read.
        progress: called with the claims done and all there are.

    Returns:
        A prediction a claim, in the claims' order; its documents in the order retrieved.

    Raises:
        EpicqaError: as `verify`.
    """
    found: list[Prediction] = []
    for start in range(0, len(claims), _BATCH):
        batch = claims[start : start + _BATCH]
        if done is not None and all(claim.claim_id in done for claim in batch):
            found += [done[claim.claim_id] for claim in batch]
            continue
        pairs = [(claim, doc_id) for claim in batch for doc_id in retrieved[claim.claim_id]]
        verdicts = verify(
            [ClaimInput(claim.text, abstracts[doc_id].sentences) for claim, doc_id in pairs],
            selector,
            labeller,
            rationales=None
            if rationales is None
            else [rationales[claim.claim_id][doc_id] for claim, doc_id in pairs],
            label_input=label_input,
            threshold=threshold,
            evidence_threshold=evidence_threshold,
            most=most,
            progress=claims_done(progress, start, len(batch), len(claims)),
        )
        evidence: dict[int, dict[int, PredictedEvidence]] = {claim.claim_id: {} for claim in batch}
        for (claim, doc_id), one in zip(pairs, verdicts, strict=True):
            if one.label != NOINFO:
                evidence[claim.claim_id][doc_id] = PredictedEvidence(one.label, one.sentences)
        made = [Prediction(claim_id, by_document) for claim_id, by_document in evidence.items()]
        found += made
        if note:
            note(made)
        if progress:
            progress(len(found), len(claims))
    return found


def claims_done(
    progress: Callable[[int, int], None] | None, start: int, size: int, claims: int
) -> Callable[[int, int], None] | None:
    """Progress by claim of a batch's share of work.

    Args:
        progress: called with the claims done and all there are.
        start: claims before the batch.
        size: claims in it.
        claims: all there are.
    """
    if progress is None:
        return None
    return lambda done, total: progress(start + size * done // total, claims)


def oracle_rationales(claims: Sequence[Claim], retrieved: Retrieved) -> Rationales:
    """All sentences of all gold rationales of each gold abstract, in its order; none of another abstract.

    The paper's pipeline with rationales of the oracle (its Table 4).

    Raises:
        EpicqaError: the evidence is not known.
    """
    check_judged(claims)
    return {
        claim.claim_id: {
            doc_id: tuple(
                sorted({place for one in claim.evidence.get(doc_id, ()) for place in one.sentences})
            )
            for doc_id in retrieved[claim.claim_id]
        }
        for claim in claims
    }


def read_rationales(
    path: Path, claims: Sequence[Claim], abstracts: Mapping[int, Abstract], retrieved: Retrieved
) -> Rationales:
    """The sentences that a file of the shape `RATIONALES` has of each retrieved abstract, in its order.

    Raises:
        EpicqaError: as `epicqa.claims.scifact.read_predictions`; it has another shape, or lacks a retrieved
            abstract: one of no rationale is there with an empty list.
    """
    read = read_predictions(path, claims, abstracts)
    if read.shape != RATIONALES:
        raise EpicqaError(f"{path}: {read.shape}, expected lines of {SHAPES[RATIONALES]}")
    told = {one.claim_id: one.evidence for one in read.predictions}
    found: Rationales = {}
    for claim in claims:
        evidence = told.get(claim.claim_id, {})
        for doc_id in retrieved[claim.claim_id]:
            if doc_id not in evidence:
                raise EpicqaError(
                    f"{path}: claim {claim.claim_id}: document {doc_id} is not there, expected a list of "
                    "sentences of each abstract that is read"
                )
        found[claim.claim_id] = {
            doc_id: evidence[doc_id].sentences or () for doc_id in retrieved[claim.claim_id]
        }
    return found


def _labelled(
    inputs: Sequence[ClaimInput],
    rationales: Sequence[Selection],
    labeller: ClaimModel,
    label_input: LabelInput,
    progress: Callable[[int, int], None] | None,
) -> list[NDArray[np.float64]]:
    """float64[3] an input; those without a rationale are not read."""
    asked = [place for place, selected in enumerate(rationales) if selected]
    given = [inputs[place] for place in asked]
    if label_input == "rationale":
        given = [
            replace(one, sentences=tuple(one.sentences[at] for at in sorted(rationales[place])))
            for place, one in zip(asked, given, strict=True)
        ]
    found = [np.array([float(label == NOINFO) for label in LABEL_ORDER]) for _ in inputs]
    for place, reading in zip(asked, labeller.read(given, progress), strict=True):
        found[place] = _there(reading.labels)
    return found


def _there(read: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """What a model of the right kind says."""
    assert read is not None
    return read


def _stage(
    progress: Callable[[int, int], None] | None, stage: int, stages: int
) -> Callable[[int, int], None] | None:
    """Progress of one of several stages, each taken as an equal part of the work."""
    if progress is None:
        return None
    return lambda done, total: progress(stage * total + done, stages * total)
