"""FEVER's files: claims, and what systems predict.

All are JSON lines in UTF-8, plain or compressed (.gz, .xz, .zst); blank lines are passed over, keys that are
not named here, too. A sentence is the title of its Wikipedia page and its line there, from 0.

- claims: ``{"id", "label", "claim", "evidence": [[[annotation, evidence, page, line]]]}``: sets of sentences,
  each of which is enough for the label; test claims have ``id`` and ``claim`` only. Page and line are null
  where the label is NOT ENOUGH INFO.
- predictions: one of `SHAPES`.

Thorne et al., "FEVER: a large-scale dataset for Fact Extraction and VERification", NAACL 2018, and the data
set's documentation.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from epicqa.claims.records import Bad, as_list, as_number, as_text, records, shown
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS, check_output
from epicqa.corpus.sources.fever import TITLE_ESCAPES
from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.normal import normal

CONSIDERED = 5
"""As many sentences of a prediction count, the first ones; a submission has no more."""

FULL = "full"
LABELS = "labels"

SHAPES = {
    FULL: '{"id", "predicted_label", "predicted_evidence": [[page, line]]}',
    LABELS: '{"id", "predicted_label"}',
}
"""What a line of predictions looks like: the shared task's, and that of systems that label only."""

SPELLINGS = {SUPPORTS: "SUPPORTS", REFUTES: "REFUTES", NOINFO: "NOT ENOUGH INFO"}
"""Labels as FEVER's files have them."""

_LABELS = {spelling: label for label, spelling in SPELLINGS.items()}
_MEMBER = "predictions.jsonl"


class Sentence(NamedTuple):
    """A sentence: the title of its page, as its file spells it, and its line there, from 0."""

    page: str
    line: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim.

    Attributes:
        claim_id: its number.
        text: the claim, not empty.
        label: `SUPPORTS`, `REFUTES` or `NOINFO`; None, the file does not tell.
        evidence: sets of sentences; all of one of them, any of them, must be found. One at least, each with a
            sentence at least, where the label is `SUPPORTS` or `REFUTES`. A set's sentences may be repeated.
    """

    claim_id: int
    text: str
    label: str | None
    evidence: tuple[tuple[Sentence, ...], ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a system says of a claim.

    Attributes:
        claim_id: its number.
        label: `SUPPORTS`, `REFUTES` or `NOINFO`.
        evidence: sentences, best first, any number, repeated or not; None in files of labels only.
    """

    claim_id: int
    label: str
    evidence: tuple[Sentence, ...] | None


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions, in its order; its shape is a key of `SHAPES`, ``lines`` tell where each is."""

    path: Path
    shape: str
    predictions: tuple[Prediction, ...]
    lines: tuple[int, ...]


def title_key(page: str) -> str:
    """A title's form for comparison: two titles are of one page where their keys are equal.

    The rule: the escapes -LRB- -RRB- -LSB- -RSB- -LCB- -RCB- -COLON- become the characters they stand for,
    spaces become underscores, and what comes out is in Unicode's form NFC. Case counts.
    """
    if "-" in page:
        for escape, character in TITLE_ESCAPES.items():
            page = page.replace(escape, character)
    return normal("NFC", page.replace(" ", "_"))


def read_claims(path: Path, distinct: bool = True) -> tuple[Claim, ...]:
    """Read claims, in the file's order; either all lines tell the label, or none does.

    Args:
        path: the file.
        distinct: whether an id that occurs again is refused; gold without ids of its own has one for all.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line is not such an object, its claim has no
            text or was there before; the label is none; evidence is not as `Claim` has it.
    """
    claims: list[Claim] = []
    lines: dict[int, int] = {}
    for number, record in records(path, 'lines of {"id", "label", "claim", "evidence"}'):
        place = f"{path}:{number}"
        try:
            claim_id = as_number(record, "id")
            place = f"{place}: claim {claim_id}"
            _once(claim_id, number, lines, distinct)
            claim = _claim(claim_id, record)
            if claims and (claim.label is None) != (claims[0].label is None):
                wrong = "no 'label'" if claim.label is None else "a 'label'"
                raise Bad(f"{wrong}, expected it in all lines or in none")
        except Bad as bad:
            raise EpicqaError(f"{place}: {bad}") from None
        claims.append(claim)
    return tuple(claims)


def check_labelled(claims: Iterable[Claim]) -> None:
    """Refuse claims whose label is not known.

    Raises:
        EpicqaError: there is one.
    """
    if unknown := next((claim for claim in claims if claim.label is None), None):
        raise EpicqaError(f"claim {unknown.claim_id}: no label, expected claims with 'label' and 'evidence'")


def read_predictions(path: Path, distinct: bool = True) -> Predictions:
    """Read predictions, all lines of one of the shapes in `SHAPES`; labels in any case of letters.

    Args:
        path: the file.
        distinct: whether an id that occurs again is refused.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line has another shape, values of wrong types,
            a label that is none, or a claim that is repeated.
    """
    expected = "predictions, lines of " + " or ".join(SHAPES.values())
    found: list[Prediction] = []
    places: list[int] = []
    lines: dict[int, int] = {}
    shape = ""
    for number, record in records(path, expected):
        place = f"{path}:{number}"
        try:
            claim_id = as_number(record, "id")
            place = f"{place}: claim {claim_id}"
            this = FULL if "predicted_evidence" in record else LABELS
            shape = shape or this
            if this != shape:
                raise Bad(f"a line of {SHAPES[this]}, expected {SHAPES[shape]} as before")
            _once(claim_id, number, lines, distinct)
            label = _label(record, "predicted_label")
            evidence = None if shape == LABELS else _predicted(record["predicted_evidence"])
            found.append(Prediction(claim_id, label, evidence))
        except Bad as bad:
            raise EpicqaError(f"{place}: {bad}") from None
        places.append(number)
    return Predictions(path, shape, tuple(found), tuple(places))


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write predictions as the shared task takes them, in the given order, whole or not at all.

    Equal predictions give equal bytes; titles stand as they are given.

    Raises:
        EpicqaError: `path` is a folder, or asks for compression.
        ValueError: a prediction lacks evidence.
    """
    check_output(path, "predictions")
    write_bytes(path, _lines(predictions))


def write_submission(path: Path, predictions: Predictions, claims: Sequence[Claim]) -> None:
    """Pack predictions as the shared task takes them: a ZIP archive of ``predictions.jsonl`` alone.

    It has a line for each claim, in the claims' order, since the task's scorer goes by position. Equal
    predictions give equal bytes.

    Args:
        path: the archive, ``NAME.zip``.
        predictions: with evidence, in any order.
        claims: the task's, labelled or not.

    Raises:
        EpicqaError: the name is not such; there are labels only; a claim has no prediction, or is unknown or
            repeated; a prediction has more than five sentences. Nothing is written.
    """
    if path.is_dir() or path.suffix.lower() != ".zip":
        raise EpicqaError(f"{path}: {'a folder' if path.is_dir() else 'another name'}, expected NAME.zip")
    if predictions.shape != FULL:
        raise EpicqaError(f"{predictions.path}: {predictions.shape} only, expected lines of {SHAPES[FULL]}")
    known = {claim.claim_id for claim in claims}
    found: dict[int, Prediction] = {}
    for one, line in zip(predictions.predictions, predictions.lines, strict=True):
        place = f"{predictions.path}:{line}: claim {one.claim_id}"
        if one.claim_id not in known:
            raise EpicqaError(f"{place}: no such claim, expected one of the claims' file")
        if one.claim_id in found:
            raise EpicqaError(f"{place}: repeated, expected each claim once")
        if (count := len(one.evidence or ())) > CONSIDERED:
            raise EpicqaError(f"{place}: {count} sentences, expected at most {CONSIDERED}")
        found[one.claim_id] = one
    missing = [claim.claim_id for claim in claims if claim.claim_id not in found]
    if missing:
        others = f" (nor have {len(missing) - 1} others)" if missing[1:] else ""
        raise EpicqaError(
            f"{predictions.path}: claim {missing[0]}: it has no prediction{others}, "
            "expected one for each claim"
        )
    write_bytes(path, _archive(_lines(found[claim.claim_id] for claim in claims)))


def _archive(lines: bytes) -> bytes:
    """A ZIP archive without the time or the system it was made on."""
    packed = io.BytesIO()
    member = zipfile.ZipInfo(_MEMBER)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3
    member.external_attr = 0o100644 << 16
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, lines)
    return packed.getvalue()


def _lines(predictions: Iterable[Prediction]) -> bytes:
    lines = []
    for one in predictions:
        if one.evidence is None:
            raise ValueError(f"claim {one.claim_id}: evidence is missing")
        record = {
            "id": int(one.claim_id),
            "predicted_label": SPELLINGS[one.label],
            "predicted_evidence": [[page, int(line)] for page, line in one.evidence],
        }
        lines.append(json.dumps(record) + "\n")
    return "".join(lines).encode()


def _once(claim_id: int, number: int, lines: dict[int, int], distinct: bool) -> None:
    if lines.setdefault(claim_id, number) != number and distinct:
        raise Bad(f"also on line {lines[claim_id]}, expected each claim once")


def _claim(claim_id: int, record: dict[str, Any]) -> Claim:
    text = as_text(record.get("claim"), "'claim'").strip()
    if not text:
        raise Bad("no text, expected the claim")
    if "label" not in record:
        if record.get("evidence"):
            raise Bad("evidence without a label, expected 'label'")
        return Claim(claim_id, text, None, ())
    label = _label(record, "label")
    sets = as_list(record.get("evidence", []), "'evidence'", "a list of sets")
    evidence = [_gold(given, label == NOINFO) for given in sets]
    if label == NOINFO:
        evidence = [sentences for sentences in evidence if sentences]
    elif not evidence:
        raise Bad(f"no evidence, expected a set of sentences or more with {SPELLINGS[label]}")
    return Claim(claim_id, text, label, tuple(evidence))


def _gold(given: Any, empty: bool) -> tuple[Sentence, ...]:
    expected = "[annotation, evidence, page, line]"
    sentences = []
    for entry in as_list(given, "a set of evidence", f"a list of {expected}"):
        if not isinstance(entry, list) or len(entry) != 4:
            raise Bad(f"evidence {shown(entry)}, expected {expected}")
        if not (empty and (entry[2] is None or entry[3] is None)):
            sentences.append(_sentence(entry[2:], expected))
    if not (sentences or empty):
        raise Bad("a set of evidence without sentences, expected one or more")
    return tuple(sentences)


def _predicted(given: Any) -> tuple[Sentence, ...]:
    expected = "[page, line]"
    entries = as_list(given, "'predicted_evidence'", f"a list of {expected}")
    return tuple(_sentence(entry, expected) for entry in entries)


def _sentence(entry: Any, expected: str) -> Sentence:
    if not isinstance(entry, list) or len(entry) != 2:
        raise Bad(f"evidence {shown(entry)}, expected {expected}")
    page, line = entry
    if not as_text(page, "page"):
        raise Bad("an empty page, expected the title of one")
    return Sentence(page, as_number({"line": line}, "line"))


def _label(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    label = _LABELS.get(value.upper()) if isinstance(value, str) else None
    if label is None:
        wrong = f"{key!r} is {shown(value)}" if key in record else f"no {key!r}"
        raise Bad(f"{wrong}, expected {', '.join(list(_LABELS)[:-1])} or {list(_LABELS)[-1]}")
    return label
