"""The answer file: nuggets of each question and the sentences that state them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.files import digest_of
from epicqa.ids import parse_sentence_id
from epicqa.jsonfiles import read_json
from epicqa.normal import is_unicode
from epicqa.problems import Problem
from epicqa.questions import is_word

_SHAPE = "a JSON list of objects with question_id, nuggets, annotations"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuestion:
    """One question's annotated sentences, by context.

    Attributes:
        question_id: the question.
        nuggets: nugget id -> text; the position is the nugget's bit.
        contexts: context id -> position, those with a nugget, in the order of first annotation. Ids are
            canonical.
        context_first: int64[n_contexts + 1], a context's first sentence below.
        context_range: int64[n_contexts, 2], numbers of a context's first and last annotated sentence; an
            annotation without nuggets counts here, and nowhere else.
        number: int64[n], numbers of the sentences that state a nugget, ascending in each context.
        mask: uint64[n, words], the nuggets of each as bits: nugget i is bit i % 64 of word i // 64.
        fingerprint: the hex SHA-256 of all that scores depend on: not the nuggets' texts.
    """

    question_id: str
    nuggets: dict[str, str]
    contexts: dict[str, int]
    context_first: NDArray[np.int64]
    context_range: NDArray[np.int64]
    number: NDArray[np.int64]
    mask: NDArray[np.uint64]
    fingerprint: str


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """An answer file: question id -> its judgments in the file's order, and what was odd in it."""

    path: Path
    questions: dict[str, JudgedQuestion]
    warnings: tuple[Problem, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The hex SHA-256 of all questions' fingerprints."""
        return digest_of([question.fingerprint for question in self.questions.values()])


def read_judgments(path: Path) -> Judgments:
    """Read an answer file, plain or compressed (.gz, .xz, .zst).

    A sentence annotated twice in a question has the nuggets of both; an annotation without nuggets makes no
    sentence relevant, but the spans of the ideal ranking may reach to it. Both are warned of.

    Raises:
        EpicqaError: not a JSON list, nothing in it, a missing or mistyped key, a malformed sentence id, a
            nugget id that the question does not define, a question or nugget id that occurs twice.
    """
    questions: dict[str, JudgedQuestion] = {}
    warnings: list[Problem] = []
    for number, raw in enumerate(read_json(path, list, _SHAPE), 1):
        question_id = _get(raw, "question_id", str, f"{path}: question {number}")
        if not is_word(question_id):
            raise EpicqaError(f"{path}: question {number}: id {question_id!r}, expected a word such as EQ001")
        place = f"{path}: {question_id}"
        if question_id in questions:
            raise EpicqaError(f"{place}: occurs twice, expected each question once")
        nuggets = _nuggets(raw, place)
        sentences: dict[str, dict[int, int]] = {}
        for sentence_id, bits in _annotations(raw, list(nuggets), place):
            if not bits:
                message = f"{question_id}: {sentence_id}: annotated with no nuggets, counts as filler"
                warnings.append(Problem(path, None, "no-nuggets", message, fatal=False))
            parsed = parse_sentence_id(sentence_id)
            context = sentences.setdefault(str(parsed.context_id), {})
            if parsed.sentence in context:
                message = f"{question_id}: {sentence_id}: annotated twice, the nuggets of both count"
                warnings.append(Problem(path, None, "annotated-twice", message, fatal=False))
            context[parsed.sentence] = context.get(parsed.sentence, 0) | bits
        questions[question_id] = pack_question(question_id, nuggets, sentences)
    if not questions:
        raise EpicqaError(f"{path}: no judgments, expected {_SHAPE}")
    return Judgments(path, questions, tuple(warnings))


def _get(raw: Any, key: str, kind: type, place: str) -> Any:
    if not isinstance(raw, dict):
        raise EpicqaError(f"{place}: not an object, expected one with {key!r}")
    if not isinstance(raw.get(key), kind):
        wrong = "missing" if key not in raw else "of another type"
        raise EpicqaError(
            f"{place}: {key!r} is {wrong}, expected a JSON {'list' if kind is list else 'string'}"
        )
    return raw[key]


def _nuggets(raw: dict[str, Any], place: str) -> dict[str, str]:
    nuggets: dict[str, str] = {}
    for number, nugget in enumerate(_get(raw, "nuggets", list, place), 1):
        nugget_id = _get(nugget, "nugget_id", str, f"{place}: nugget {number}")
        if not is_unicode(nugget_id):
            raise EpicqaError(f"{place}: nugget {number}: id {nugget_id!r}, expected Unicode text")
        if nugget_id in nuggets:
            raise EpicqaError(f"{place}: nugget {nugget_id} occurs twice, expected each nugget once")
        nuggets[nugget_id] = _get(nugget, "nugget", str, f"{place}: {nugget_id}")
    return nuggets


def _annotations(raw: dict[str, Any], nuggets: list[str], place: str) -> Iterator[tuple[str, int]]:
    """Sentence ids as written, each with its nuggets as the bits of one whole number."""
    bit = {nugget_id: 1 << i for i, nugget_id in enumerate(nuggets)}
    for number, annotation in enumerate(_get(raw, "annotations", list, place), 1):
        sentence_id = _get(annotation, "sentence_id", str, f"{place}: annotation {number}")
        try:
            parse_sentence_id(sentence_id)
        except ValueError as error:
            raise EpicqaError(f"{place}: annotation {number}: {error}") from None
        bits = 0
        for nugget_id in _get(annotation, "nugget_ids", list, f"{place}: {sentence_id}"):
            if not isinstance(nugget_id, str) or nugget_id not in bit:
                raise EpicqaError(
                    f"{place}: {sentence_id}: unknown nugget {nugget_id!r}, expected one of the question's"
                )
            bits |= bit[nugget_id]
        yield sentence_id, bits


def pack_question(
    question_id: str, nuggets: dict[str, str], sentences: dict[str, dict[int, int]]
) -> JudgedQuestion:
    """A judged question out of plain values.

    Args:
        question_id: the question.
        nuggets: nugget id -> text.
        sentences: canonical context id -> number of each annotated sentence -> its nuggets as the bits of one
            whole number, by position in ``nuggets``; contexts in the order of first annotation.
    """
    words = max(1, -(-len(nuggets) // 64))
    contexts: dict[str, int] = {}
    reach: list[tuple[int, int]] = []
    number: list[int] = []
    masks: list[bytes] = []
    context_first = [0]
    for context_id, annotated in sentences.items():
        stating = sorted(sentence for sentence, bits in annotated.items() if bits)
        if not stating:
            continue
        contexts[context_id] = len(contexts)
        reach.append((min(annotated), max(annotated)))
        number += stating
        masks += [annotated[sentence].to_bytes(words * 8, "little") for sentence in stating]
        context_first.append(len(number))
    columns = (
        np.array(context_first, dtype=np.int64),
        np.array(reach, dtype=np.int64).reshape(-1, 2),
        np.array(number, dtype=np.int64),
        np.frombuffer(b"".join(masks), dtype="<u8").astype(np.uint64).reshape(len(number), words),
    )
    digest = hashlib.sha256(json.dumps([question_id, *contexts]).encode())
    for column in columns:
        digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    return JudgedQuestion(question_id, nuggets, contexts, *columns, digest.hexdigest())


def nugget_bits(mask: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Masks as flags: bool[n, count] out of uint64[n, words], a column a nugget."""
    octets = np.ascontiguousarray(mask.astype("<u8")).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :count]
    return bits.astype(np.bool_)
