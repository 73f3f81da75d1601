"""The answer file: nuggets of each question and the sentences that state them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.ids import parse_sentence_id
from epicqa.jsonfiles import read_json
from epicqa.problems import Problem

_SHAPE = "a JSON list of objects with question_id, nuggets, annotations"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuestion:
    """One question's annotated sentences, by context.

    Attributes:
        question_id: the question.
        nuggets: nugget id -> text; the position is the nugget's bit.
        contexts: context id -> position, in the order of first annotation. Ids are canonical.
        context_first: int64[n_contexts + 1], a context's first annotated sentence below.
        number: int64[n], numbers of the annotated sentences, ascending in each context.
        mask: uint64[n, words], the nuggets of each as bits: nugget i is bit i % 64 of word i // 64.
    """

    question_id: str
    nuggets: dict[str, str]
    contexts: dict[str, int]
    context_first: NDArray[np.int64]
    number: NDArray[np.int64]
    mask: NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Judgments:
    """An answer file: question id -> its judgments in the file's order, and what was odd in it."""

    path: Path
    questions: dict[str, JudgedQuestion]
    warnings: tuple[Problem, ...] = ()


def read_judgments(path: Path) -> Judgments:
    """Read an answer file.

    A sentence annotated twice in a question has the nuggets of both; an annotation without nuggets counts
    as none. Both are warned of.

    Raises:
        EpicqaError: not a JSON list, nothing in it, a missing or mistyped key, a malformed sentence id, a
            nugget id that the question does not define, a question or nugget id that occurs twice.
    """
    questions: dict[str, JudgedQuestion] = {}
    warnings: list[Problem] = []
    for number, raw in enumerate(read_json(path, list, _SHAPE), 1):
        question_id = _get(raw, "question_id", str, f"{path}: question {number}")
        place = f"{path}: {question_id}"
        if question_id in questions:
            raise EpicqaError(f"{place}: occurs twice, expected each question once")
        nuggets = _nuggets(raw, place)
        sentences: dict[str, dict[int, int]] = {}
        for sentence_id, bits in _annotations(raw, list(nuggets), place):
            if not bits:
                message = f"{question_id}: {sentence_id}: annotated with no nuggets, counts as not annotated"
                warnings.append(Problem(path, None, "no-nuggets", message, fatal=False))
                continue
            parsed = parse_sentence_id(sentence_id)
            context = sentences.setdefault(str(parsed.context_id), {})
            if parsed.sentence in context:
                message = f"{question_id}: {sentence_id}: annotated twice, the nuggets of both count"
                warnings.append(Problem(path, None, "annotated-twice", message, fatal=False))
            context[parsed.sentence] = context.get(parsed.sentence, 0) | bits
        questions[question_id] = _pack(question_id, nuggets, sentences)
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


def _pack(question_id: str, nuggets: dict[str, str], sentences: dict[str, dict[int, int]]) -> JudgedQuestion:
    words = max(1, -(-len(nuggets) // 64))
    number: list[int] = []
    masks: list[bytes] = []
    context_first = [0]
    for context in sentences.values():
        for sentence in sorted(context):
            number.append(sentence)
            masks.append(context[sentence].to_bytes(words * 8, "little"))
        context_first.append(len(number))
    return JudgedQuestion(
        question_id,
        nuggets,
        {context_id: i for i, context_id in enumerate(sentences)},
        np.array(context_first, dtype=np.int64),
        np.array(number, dtype=np.int64),
        np.frombuffer(b"".join(masks), dtype="<u8").astype(np.uint64).reshape(len(number), words),
    )
