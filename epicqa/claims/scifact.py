"""SciFact's files: claims, abstracts, and what systems predict.

All are JSON lines in UTF-8, plain or compressed (.gz, .xz, .zst); blank lines are passed over, keys that are
not named here, too. A sentence is its place in the abstract, from 0.

- claims: ``{"id", "claim", "cited_doc_ids", "evidence": {document: [{"sentences", "label"}]}}``; test claims
  have the first two only; HealthVer and COVID-Fact in this form call the third ``doc_ids``.
- abstracts: ``{"doc_id", "title", "abstract": [sentence], "structured"}``.
- predictions: one of `SHAPES`.

Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020, and the data set's documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicqa.claims.records import (
    Bad,
    as_list,
    as_number,
    as_object,
    as_text,
    is_number,
    records,
    shown,
)
from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.streams import SUFFIXES

SUPPORTS = "SUPPORTS"
REFUTES = "REFUTES"
NOINFO = "NOINFO"

# The files' spelling, then the paper's, then others that systems write.
_SPELLINGS = {
    SUPPORTS: ("SUPPORT", "SUPPORTS"),
    REFUTES: ("CONTRADICT", "REFUTES"),
    NOINFO: ("NOT_ENOUGH_INFO", "NOINFO", "NEI"),
}
LABELS_BY_SPELLING = {spelling: label for label, spellings in _SPELLINGS.items() for spelling in spellings}
"""All spellings of labels, in these files and in what systems write."""

FULL = "full"
RATIONALES = "rationales"
LABELS = "labels"
ABSTRACTS = "abstracts"

SHAPES = {
    FULL: '{"id", "evidence": {document: {"sentences", "label"}}}',
    RATIONALES: '{"claim_id", "evidence": {document: [sentence]}}',
    LABELS: '{"claim_id", "labels": {document: {"label"}}}',
    ABSTRACTS: '{"claim_id", "doc_ids": [document]}',
}
"""What a line of predictions looks like: the leaderboard's, and those of the pipeline's three steps."""

_KEYS = {
    ("id", "evidence"): FULL,
    ("claim_id", "evidence"): RATIONALES,
    ("claim_id", "labels"): LABELS,
    ("claim_id", "doc_ids"): ABSTRACTS,
}
_ID = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Rationale:
    """Sentences that together, and none of them without the others, justify a label.

    Attributes:
        sentences: places in the abstract, in the file's order, each once.
        label: `SUPPORTS` or `REFUTES`.
    """

    sentences: tuple[int, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim.

    Attributes:
        claim_id: its number.
        text: the claim, not empty.
        cited_doc_ids: abstracts cited by the sentence that the claim was made of, each once.
        evidence: document -> its rationales: at least one, all of one label, no sentence in two of them.
        judged: whether the file tells the evidence; else ``evidence`` is empty and says nothing.
    """

    claim_id: int
    text: str
    cited_doc_ids: tuple[int, ...]
    evidence: Mapping[int, tuple[Rationale, ...]]
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Abstract:
    """An abstract of the corpus; ``structured`` ones have headed parts."""

    doc_id: int
    title: str
    sentences: tuple[str, ...]
    structured: bool


@dataclass(frozen=True, slots=True)
class PredictedEvidence:
    """What a system says of an abstract; None is what its file does not tell.

    Attributes:
        label: `SUPPORTS`, `REFUTES` or, in files of labels only, `NOINFO`.
        sentences: places in the abstract, in the system's order, each once.
    """

    label: str | None
    sentences: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a system says of a claim: document -> evidence, in the system's order."""

    claim_id: int
    evidence: Mapping[int, PredictedEvidence]


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions: its shape is a key of `SHAPES`; each claim is there at most once."""

    path: Path
    shape: str
    predictions: tuple[Prediction, ...]


def read_abstracts(path: Path) -> dict[int, Abstract]:
    """Read a corpus: document -> abstract, in the file's order.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line is not such an object, or its document was
            there before.
    """
    expected = 'lines of {"doc_id", "title", "abstract": [sentence]}'
    abstracts: dict[int, Abstract] = {}
    lines: dict[int, int] = {}
    for number, record in records(path, expected):
        place = f"{path}:{number}"
        try:
            doc_id = as_number(record, "doc_id")
            place = f"{place}: document {doc_id}"
            if doc_id in lines:
                raise Bad(f"also on line {lines[doc_id]}, expected each document once")
            sentences = as_list(record.get("abstract"), "'abstract'", "a list of sentences")
            abstracts[doc_id] = Abstract(
                doc_id,
                as_text(record.get("title"), "'title'"),
                tuple(as_text(sentence, f"sentence {i}") for i, sentence in enumerate(sentences)),
                _flag(record.get("structured", False)),
            )
        except Bad as bad:
            raise EpicqaError(f"{place}: {bad}") from None
        lines[doc_id] = number
    return abstracts


def read_claims(path: Path, abstracts: Mapping[int, Abstract] | None = None) -> tuple[Claim, ...]:
    """Read claims, in the file's order; either all lines tell the evidence, or none does.

    Args:
        path: the file.
        abstracts: with them, documents and sentences must be theirs.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line is not such an object, its claim has no
            text or was there before; a document is unknown; rationales are not as `Claim` has them.
    """
    claims: dict[int, Claim] = {}
    lines: dict[int, int] = {}
    for number, record in records(path, 'lines of {"id", "claim", "evidence", "cited_doc_ids"}'):
        place = f"{path}:{number}"
        try:
            claim_id = as_number(record, "id")
            place = f"{place}: claim {claim_id}"
            if claim_id in lines:
                raise Bad(f"also on line {lines[claim_id]}, expected each claim once")
            claim = _claim(claim_id, record, abstracts)
            first = next(iter(claims.values()), claim)
            if claim.judged != first.judged:
                wrong = "has no 'evidence'" if first.judged else "has 'evidence'"
                raise Bad(f"{wrong}, expected it in all lines or in none")
        except Bad as bad:
            raise EpicqaError(f"{place}: {bad}") from None
        claims[claim_id] = claim
        lines[claim_id] = number
    return tuple(claims.values())


def read_predictions(
    path: Path, claims: Sequence[Claim] | None = None, abstracts: Mapping[int, Abstract] | None = None
) -> Predictions:
    """Read predictions of any of the shapes in `SHAPES`, all lines of one.

    Args:
        path: the file.
        claims: with them, predictions must be of theirs, and in their order; some may be left out.
        abstracts: with them, documents and sentences must be theirs.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line has another shape, values of wrong types,
            a label that is none (in full predictions `NOINFO`, too: such an abstract is left out there), a
            claim, document or sentence that is unknown or repeated, or a claim out of order.
    """
    expected = "predictions, lines of " + " or ".join(SHAPES.values())
    order = None if claims is None else {claim.claim_id: i for i, claim in enumerate(claims)}
    shape = ""
    found: dict[int, Prediction] = {}
    lines: dict[int, int] = {}
    last = None
    for number, record in records(path, expected):
        place = f"{path}:{number}"
        try:
            this = _shape(record, expected)
            claim_id = as_number(record, "id" if this == FULL else "claim_id")
            place = f"{place}: claim {claim_id}"
            shape = shape or this
            if this != shape:
                raise Bad(f"a line of {SHAPES[this]}, expected {SHAPES[shape]} as before")
            if claim_id in lines:
                raise Bad(f"also on line {lines[claim_id]}, expected each claim once")
            if order is not None:
                if claim_id not in order:
                    raise Bad("no such claim, expected one of the claims' file")
                if last is not None and order[claim_id] < order[last]:
                    raise Bad(f"stands after claim {last}, expected the order of the claims' file")
            found[claim_id] = Prediction(claim_id, _predicted(record, shape, abstracts))
        except Bad as bad:
            raise EpicqaError(f"{place}: {bad}") from None
        lines[claim_id] = number
        last = claim_id
    return Predictions(path, shape, tuple(found.values()))


def merge_predictions(rationales: Predictions, labels: Predictions) -> Predictions:
    """Full predictions of a pipeline's selected sentences and its labels; what is `NOINFO` is left out.

    Raises:
        EpicqaError: they are of other shapes, or of different claims or documents.
    """
    for one, shape in ((rationales, RATIONALES), (labels, LABELS)):
        if one.shape != shape:
            raise EpicqaError(f"{one.path}: {one.shape}, expected lines of {SHAPES[shape]}")
    labels_of = {one.claim_id: one.evidence for one in labels.predictions}
    if missing := labels_of.keys() ^ {one.claim_id for one in rationales.predictions}:
        raise EpicqaError(f"{labels.path}: claim {min(missing)}: not in both, expected {rationales.path}'s")
    merged = []
    for selected in rationales.predictions:
        said = labels_of[selected.claim_id]
        if differing := said.keys() ^ selected.evidence.keys():
            raise EpicqaError(
                f"{labels.path}: claim {selected.claim_id}: document {min(differing)} is not in both, "
                f"expected {rationales.path}'s"
            )
        evidence = {
            doc_id: PredictedEvidence(said[doc_id].label, one.sentences)
            for doc_id, one in selected.evidence.items()
            if said[doc_id].label != NOINFO
        }
        merged.append(Prediction(selected.claim_id, evidence))
    return Predictions(labels.path, FULL, tuple(merged))


def check_output(path: Path, content: str) -> None:
    """Refuse, before the work, a name that nothing will be written to.

    Args:
        path: the file.
        content: what it is to hold, in one word.

    Raises:
        EpicqaError: it is a folder, or asks for compression, which the leaderboard does not take.
    """
    if path.is_dir():
        raise EpicqaError(f"{path}: a folder, expected the name of a file to write")
    if path.name.lower().endswith(SUFFIXES):
        raise EpicqaError(f"{path}: {content} are written plain, expected a name such as {content}.jsonl")


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write predictions as the leaderboard takes them, in the given order, whole or not at all.

    Equal predictions give equal bytes: documents stand by number, sentences in the system's order. What is
    `NOINFO` is left out.

    Raises:
        EpicqaError: as `check_output`.
        ValueError: a prediction lacks labels or sentences.
    """
    check_output(path, "predictions")
    lines = []
    for prediction in predictions:
        evidence = {}
        for doc_id, one in sorted(prediction.evidence.items()):
            if one.label == NOINFO:
                continue
            if one.label is None or one.sentences is None:
                raise ValueError(f"claim {prediction.claim_id}: label or sentences of {doc_id} are missing")
            evidence[str(doc_id)] = {
                "sentences": [int(sentence) for sentence in one.sentences],
                "label": _SPELLINGS[one.label][0],
            }
        lines.append(json.dumps({"id": int(prediction.claim_id), "evidence": evidence}) + "\n")
    write_bytes(path, "".join(lines).encode())


def _claim(claim_id: int, record: dict[str, Any], abstracts: Mapping[int, Abstract] | None) -> Claim:
    text = as_text(record.get("claim"), "'claim'").strip()
    if not text:
        raise Bad("no text, expected the claim")
    cited_key = "cited_doc_ids" if "cited_doc_ids" in record else "doc_ids"
    cited = [
        _document(doc_id, abstracts)
        for doc_id in as_list(record.get(cited_key, []), f"{cited_key!r}", "a list of document numbers")
    ]
    evidence: dict[int, tuple[Rationale, ...]] = {}
    for key, rationales in as_object(record.get("evidence", {}), "'evidence'").items():
        doc_id = _document_key(key, abstracts)
        place = f"document {doc_id}"
        found: list[Rationale] = []
        for entry in as_list(rationales, place, "a list of rationales"):
            parts = as_object(entry, f"{place}: a rationale")
            sentences = _sentences(parts.get("sentences"), doc_id, abstracts)
            label = _label(parts.get("label"), place, (SUPPORTS, REFUTES))
            if not sentences:
                raise Bad(f"{place}: a rationale without sentences, expected one or more")
            if found and label != found[0].label:
                raise Bad(f"{place}: rationales of both labels, expected one label for a claim and abstract")
            if again := set(sentences).intersection(*[{s for one in found for s in one.sentences}]):
                raise Bad(f"{place}: sentence {min(again)} is in two rationales, expected each in one")
            found.append(Rationale(sentences, label))
        if not found:
            raise Bad(f"{place}: no rationale, expected one or more")
        evidence[doc_id] = tuple(found)
    return Claim(claim_id, text, tuple(dict.fromkeys(cited)), evidence, "evidence" in record)


def _shape(record: dict[str, Any], expected: str) -> str:
    shapes = [shape for keys, shape in _KEYS.items() if all(key in record for key in keys)]
    if len(shapes) != 1:
        keys = ", ".join(map(shown, list(record)[:8])) or "nothing"
        raise Bad(f"an object of {keys}, expected {expected}")
    return shapes[0]


def _predicted(
    record: dict[str, Any], shape: str, abstracts: Mapping[int, Abstract] | None
) -> dict[int, PredictedEvidence]:
    evidence: dict[int, PredictedEvidence] = {}
    if shape == ABSTRACTS:
        for given in as_list(record["doc_ids"], "'doc_ids'", "a list of document numbers"):
            doc_id = _document(given, abstracts)
            if doc_id in evidence:
                raise Bad(f"document {doc_id} is repeated, expected each once")
            evidence[doc_id] = PredictedEvidence(None, None)
        return evidence
    name = "labels" if shape == LABELS else "evidence"
    for key, value in as_object(record[name], f"'{name}'").items():
        doc_id = _document_key(key, abstracts)
        place = f"document {doc_id}"
        if shape == RATIONALES:
            evidence[doc_id] = PredictedEvidence(None, _sentences(value, doc_id, abstracts))
            continue
        parts = as_object(value, place)
        if shape == LABELS:
            allowed: tuple[str, ...] = (SUPPORTS, REFUTES, NOINFO)
            evidence[doc_id] = PredictedEvidence(_label(parts.get("label"), place, allowed), None)
        else:
            label = _label(parts.get("label"), place, (SUPPORTS, REFUTES))
            evidence[doc_id] = PredictedEvidence(label, _sentences(parts.get("sentences"), doc_id, abstracts))
    return evidence


def _document(value: Any, abstracts: Mapping[int, Abstract] | None) -> int:
    if not is_number(value):
        raise Bad(f"document {shown(value)}, expected a whole number from 0")
    if abstracts is not None and value not in abstracts:
        raise Bad(f"document {value} is unknown, expected one of the corpus")
    return value


def _document_key(key: str, abstracts: Mapping[int, Abstract] | None) -> int:
    return _document(int(key) if _ID.fullmatch(key) else key, abstracts)


def _sentences(value: Any, doc_id: int, abstracts: Mapping[int, Abstract] | None) -> tuple[int, ...]:
    place = f"document {doc_id}"
    seen: set[int] = set()
    given = as_list(value, f"{place}: 'sentences'", "a list of whole numbers from 0")
    for sentence in given:
        if not is_number(sentence):
            raise Bad(f"{place}: sentence {shown(sentence)}, expected a whole number from 0")
        if abstracts is not None and sentence >= (count := len(abstracts[doc_id].sentences)):
            raise Bad(f"{place}: sentence {sentence}, expected one of the {count} there, counted from 0")
        if sentence in seen:
            raise Bad(f"{place}: sentence {sentence} is repeated, expected each once")
        seen.add(sentence)
    return tuple(given)


def _label(value: Any, place: str, allowed: tuple[str, ...]) -> str:
    label = LABELS_BY_SPELLING.get(value) if isinstance(value, str) else None
    if label not in allowed:
        expected = " or ".join(spelling for one in allowed for spelling in _SPELLINGS[one][:2])
        raise Bad(f"{place}: label {shown(value)}, expected {expected}")
    return str(label)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Bad(f"'structured' is {shown(value)}, expected true or false")
    return value
