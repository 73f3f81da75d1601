"""FEVER's claims by what a model says of premises, each read by itself.

Malon, "Team Papelo: Transformer Networks at FEVER", FEVER workshop 2018, with any claim model that
labels as the model of entailment: a premise is ``[ Title ] sentence``, and what is said of a claim follows
from its premises' labels by `decide`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.encoding import ClaimInput
from epicqa.claims.fever import CONSIDERED, SPELLINGS, Claim, Prediction
from epicqa.claims.model import ClaimModel
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.pages import Premise
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.system import check_models, claims_done
from epicqa.claims.verifying import NOTE, check_claims
from epicqa.corpus.sources.fever import page_title

Find = Callable[[Sequence[Claim]], Iterable[tuple[int, Sequence[Premise]]]]
"""The premises of claims, by number and in their order, as `epicqa.claims.pages.each_premises` gives them."""

# Claims that are read at once: some 130 premises each, enough to sort by length, few enough for memory.
_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a model says of a claim.

    Attributes:
        claim_id: its number.
        label: `SUPPORTS`, `REFUTES` or `NOINFO`.
        premises: all that were read.
        probabilities: float64[n, 3]: of each premise those of `epicqa.claims.network.LABEL_ORDER`.
        evidence: places of premises, best first.
    """

    claim_id: int
    label: str
    premises: tuple[Premise, ...]
    probabilities: NDArray[np.float64]
    evidence: tuple[int, ...]

    def label_of(self, place: int) -> str:
        """A premise's own label: the likeliest, of equal ones the first of `LABEL_ORDER`."""
        return LABEL_ORDER[int(self.probabilities[place].argmax())]

    def prediction(self) -> Prediction:
        """What the shared task asks for."""
        return Prediction(
            self.claim_id, self.label, tuple(self.premises[place].sentence for place in self.evidence)
        )


def decide(probabilities: NDArray[np.float64]) -> tuple[str, tuple[int, ...]]:
    """The label of a claim, and its evidence, by the probabilities of its premises.

    A premise's own label is the likeliest, of equal ones the first of `LABEL_ORDER`. The claim is `SUPPORTS`
    where any premise is, else `REFUTES` where any is, else `NOINFO`. Evidence are the premises of the claim's
    label, the most probable first, equal ones in the given order, five at most; of `NOINFO` there is none.

    Args:
        probabilities: float64[n, 3], of `LABEL_ORDER`; n may be 0.

    Returns:
        The label, and places of premises.
    """
    own = probabilities.argmax(axis=1)
    for label in (SUPPORTS, REFUTES):
        column = LABEL_ORDER.index(label)
        places = np.flatnonzero(own == column)
        if len(places):
            order = np.argsort(-probabilities[places, column], kind="stable")[:CONSIDERED]
            return label, tuple(places[order].tolist())
    return NOINFO, ()


def predict(
    claims: Sequence[Claim],
    find: Find,
    model: ClaimModel,
    *,
    together: bool = False,
    done: Mapping[int, Prediction] | None = None,
    note: Callable[[Sequence[Prediction]], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Prediction]:
    """A prediction a claim, in the claims' order, made batch by batch.

    Args:
        claims: with different numbers; labelled or not.
        find: premises of claims; called once, with those that are to be read.
        model: one that labels.
        together: whether a claim's premises are read at once, as `verdicts` has it.
        done: predictions that an interrupted call had noted; batches that are among them are not read again.
        note: called with the predictions of each batch that was read.
        progress: called with the claims done and all there are.

    Raises:
        EpicqaError: at once: a claim cannot be read, as `epicqa.claims.verifying.check_claims`, or the model
            does not label; later: as ``find``.
    """
    check_claims([claim.text for claim in claims], model, selects=False)
    return _predict(claims, find, model, together, done or {}, note, progress)


def _predict(
    claims: Sequence[Claim],
    find: Find,
    model: ClaimModel,
    together: bool,
    done: Mapping[int, Prediction],
    note: Callable[[Sequence[Prediction]], None] | None,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Prediction]:
    batches = [claims[start : start + _BATCH] for start in range(0, len(claims), _BATCH)]
    left = [not all(claim.claim_id in done for claim in batch) for batch in batches]
    # One search for all, so that what it keeps of pages and words serves from batch to batch.
    found = iter(find([claim for batch, read in zip(batches, left, strict=True) if read for claim in batch]))
    start = 0
    for batch, read in zip(batches, left, strict=True):
        if read:
            told = claims_done(progress, start, len(batch), len(claims))
            those = verdicts(batch, islice(found, len(batch)), model, together=together, progress=told)
            made = [one.prediction() for one in those]
            if note:
                note(made)
        else:
            made = [done[claim.claim_id] for claim in batch]
        start += len(batch)
        if progress:
            progress(start, len(claims))
        yield from made


def verdicts(
    claims: Sequence[Claim],
    found: Iterable[tuple[int, Sequence[Premise]]],
    model: ClaimModel,
    *,
    together: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """What the model says of claims; their premises are read in one go, sorted by length.

    Args:
        claims: what to verify, few enough that the probabilities of all premises fit in memory.
        found: of each claim, in their order, its number and premises.
        model: one that labels.
        together: whether a claim's premises are one input, in the given order, so that all have the
            probabilities of the whole, and the first five are evidence.
        progress: called with how much is done, and of how much.

    Raises:
        EpicqaError: the model does not label; a claim is too long; as ``found``.
        ValueError: what is found is of other claims.
    """
    check_models(None, model)
    inputs: list[ClaimInput] = []
    premises: list[tuple[Premise, ...]] = []
    for claim, (claim_id, those) in zip(claims, found, strict=True):
        if claim_id != claim.claim_id:
            raise ValueError(f"premises of claim {claim_id}, expected those of {claim.claim_id}")
        premises.append(tuple(those))
        texts = [one.text for one in those]
        groups = [tuple(texts)] if together and texts else [(text,) for text in texts]
        inputs += [ClaimInput(claim.text, group) for group in groups]
    read = (one.labels for one in model.read(inputs, progress))
    made = []
    for claim, read_of in zip(claims, premises, strict=True):
        labels = np.array(list(islice(read, 1 if together and read_of else len(read_of))), dtype=np.float64)
        probabilities = np.broadcast_to(
            labels.reshape(-1, len(LABEL_ORDER)), (len(read_of), len(LABEL_ORDER))
        )
        label, evidence = decide(probabilities)
        made.append(Verdict(claim.claim_id, label, read_of, probabilities, evidence))
    return made


def summary(verdict: Verdict) -> str:
    """A claim's label, and how many of its premises say so, in a sentence."""
    total = len(verdict.premises)
    spelling = SPELLINGS[verdict.label]
    if not total:
        return f"{spelling}: no page was found."
    if verdict.label == NOINFO:
        return f"{spelling}: none of the {total} sentences read is enough to support or refute it."
    same = sum(verdict.label_of(place) == verdict.label for place in range(total))
    verb = "support" if verdict.label == SUPPORTS else "refute"
    return f"{spelling}: of {total} sentences read, {same} {verb}{'s' if same == 1 else ''} it."


def as_record(claim: str, index: str, verdict: Verdict) -> dict[str, Any]:
    """A claim and its premises for JSON; ``evidence`` is a premise's rank, from 1, None if it is none."""
    ranks = {place: rank for rank, place in enumerate(verdict.evidence, 1)}
    return {
        "claim": claim,
        "index": index,
        "label": SPELLINGS[verdict.label],
        "premises": [
            {
                "page": premise.sentence.page,
                "line": premise.sentence.line,
                "title": page_title(premise.sentence.page),
                "text": premise.text,
                "label": SPELLINGS[verdict.label_of(place)],
                "probabilities": dict(
                    zip(
                        map(SPELLINGS.__getitem__, LABEL_ORDER),
                        verdict.probabilities[place].tolist(),
                        strict=True,
                    )
                ),
                "evidence": ranks.get(place),
            }
            for place, premise in enumerate(verdict.premises)
        ],
        "note": NOTE,
    }
