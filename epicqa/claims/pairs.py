"""Files of pairs as FEVER's relatives have them: a claim, a sentence, and what that says of the claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from epicqa.claims.examples import Example, together
from epicqa.claims.records import Bad, as_list, as_text, record_of, shown
from epicqa.claims.scifact import LABELS_BY_SPELLING, NOINFO
from epicqa.corpus.sources.fever import TEXT_TOKENS
from epicqa.corpus.sources.members import members
from epicqa.errors import EpicqaError
from epicqa.streams import plain_name

SHAPES = (
    '{"claim", "evidence", "label"}',
    '{"claim", "evidences": [{"evidence", "evidence_label"}]}',
)
"""What a line looks like; ``evidence_sentence`` and ``gold_label`` are other names of the first's values."""

_EXPECTED = "lines of " + " or ".join(SHAPES)
_LABELS = {**LABELS_BY_SPELLING, "NOT ENOUGH INFO": NOINFO}
_NAMED = "SUPPORTS, REFUTES or NOT ENOUGH INFO"
_EVIDENCE = ("evidence", "evidence_sentence")
_LABEL = ("label", "gold_label", "evidence_label")
_IDS = ("unique_id", "claim_id", "id")

# The longest line, and all lines of a file together: few bytes of an archive may hold any number.
_LONGEST = 1 << 20
_MOST = 1 << 30

# Of symmetric FEVER: FEVER's id, then which of the three mirrored pairs.
_MIRRORED = re.compile(r"([0-9]+)000000[0-9]")


def read_claim_pairs(paths: Iterable[Path]) -> list[Example]:
    """The pairs of files, in order: an `Example` each, its sentence a rationale unless `NOINFO`.

    Files are JSON lines in UTF-8, plain, compressed (.gz, .xz, .zst), or the one ``.jsonl`` of a ``.zip`` or
    ``.tar``; blank lines are passed over, keys that are not named here, too. `SHAPES` are those of VitaminC
    (Schuster et al., NAACL 2021), symmetric FEVER (Schuster et al., EMNLP 2019) and Climate-FEVER (Diggelmann
    et al., 2020). Labels are spelled as FEVER or SciFact has them.

    Brackets and quotation marks that a tokenizer spelled out (``-LRB-``, two backticks) are put back, white
    space becomes one space, and nothing else changes: a space before a comma means nothing to most models.

    Pairs belong together that share a Wikipedia page (``page``), without one a case (``case_id``) or an id,
    mirrored ones of symmetric FEVER that of the pair they were made of; and those of the same claim, in all
    the files.

    Raises:
        EpicqaError: a file cannot be read, has no pairs or far too many bytes; an archive has no ``.jsonl``
            or several; a line is no pair (the message has file, line, id and reason).
    """
    examples: list[Example] = []
    keys: list[list[tuple[str, str]]] = []
    for path in paths:
        before = len(examples)
        for place, line in _lines(path):
            for example, key in _pairs(line, place):
                examples.append(example)
                keys.append([key, ("claim", example.claim)])
        if len(examples) == before:
            raise EpicqaError(f"{path}: no pairs, expected {_EXPECTED}")
    if not examples:
        raise EpicqaError("no files of pairs, expected one or more")
    return [
        replace(example, group=" ".join(keys[first][0]))
        for example, first in zip(examples, together(keys), strict=True)
    ]


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Places, for messages, and lines that are not blank."""
    if path.is_dir():
        raise EpicqaError(f"{path}: a folder, expected a file of pairs")
    archive = plain_name(path.name).endswith((".zip", ".tar"))

    def wanted(name: str) -> bool:
        return not archive or name.endswith(".jsonl")

    if (count := sum(1 for _ in members(path, wanted, _EXPECTED))) != 1:
        raise EpicqaError(f"{path}: {count} files of .jsonl, expected one")
    left = _MOST
    for member in members(path, wanted, _EXPECTED):
        for number, line in member.lines(_LONGEST):
            place = f"{member.file}:{number}"
            if line is None:
                raise EpicqaError(f"{place}: more than {_LONGEST:,} bytes, expected {_EXPECTED}")
            left -= len(line)
            if left < 0:
                raise EpicqaError(f"{place}: more than {_MOST:,} bytes before it, expected fewer in one file")
            yield place, line


def _pairs(line: bytes, place: str) -> Iterator[tuple[Example, tuple[str, str]]]:
    """The examples of a line, their groups not yet known, and what they belong together by."""
    record = record_of(line, place, _EXPECTED)
    try:
        if (name := next((name for name in _IDS if name in record), None)) is not None:
            place = f"{place}: {name} {shown(record[name])}"
        claim = _words(record.get("claim"), "'claim'")
        key = _key(record, claim)
        if "evidences" not in record:
            yield _example(claim, record), key
            return
        evidences = as_list(record["evidences"], "'evidences'", f"a list as in {SHAPES[1]}")
        for count, evidence in enumerate(evidences, 1):
            if not isinstance(evidence, dict):
                raise Bad(f"evidence {count} is {shown(evidence)}, expected an object")
            yield _example(claim, evidence, f"evidence {count}: "), key
    except Bad as bad:
        raise EpicqaError(f"{place}: {bad}") from None


def _example(claim: str, record: dict[str, Any], where: str = "") -> Example:
    name, given = _either(record, _EVIDENCE, where)
    sentence = _words(given, f"{where}{name!r}")
    name, given = _either(record, _LABEL, where)
    label = _LABELS.get(given) if isinstance(given, str) else None
    if label is None:
        raise Bad(f"{where}{name!r} is {shown(given)}, expected {_NAMED}")
    return Example(claim, (sentence,), label, (label != NOINFO,), "")


def _either(record: dict[str, Any], names: tuple[str, ...], where: str) -> tuple[str, Any]:
    """The value that has one of these names, or several of them."""
    found = [(name, record[name]) for name in names if name in record]
    if not found:
        raise Bad(f"{where}no {names[0]!r}, expected {_EXPECTED}")
    first, value = found[0]
    for name, other in found[1:]:
        if other != value:
            raise Bad(f"{where}{first!r} and {name!r} differ, expected one value")
    return first, value


def _key(record: dict[str, Any], claim: str) -> tuple[str, str]:
    for name in ("page", "case_id", "claim_id", "id"):
        value = record.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Bad(f"{name!r} is {shown(value)}, expected text or a number")
        text = as_text(str(value), f"{name!r}")
        mirrored = _MIRRORED.fullmatch(text) if name == "id" else None
        return name, mirrored[1] if mirrored else text
    return "claim", claim


def _words(value: Any, what: str) -> str:
    text = " ".join(TEXT_TOKENS.get(token, token) for token in as_text(value, what).split())
    if not text:
        raise Bad(f"{what} has no text, expected some")
    return text
