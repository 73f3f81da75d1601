"""Questions, and where the published question files lie."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from epicqa import sample
from epicqa.errors import EpicqaError
from epicqa.jsonfiles import read_json
from epicqa.normal import is_unicode

KINDS = ("expert", "general")
TASKS = ("ae", "e2e")
_INITIAL = {"E": "expert", "C": "general"}
_KEYS = ("question_id", "question", "query", "background")
_SHAPE = "a JSON list of objects with " + ", ".join(_KEYS)


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the track: the question itself, its keywords, and what the asker seeks."""

    question_id: str
    question: str
    query: str
    background: str


def is_word(text: str) -> bool:
    """Whether a text can be an id in a run: not empty, without white space, Unicode."""
    return is_unicode(text) and re.fullmatch(r"\S+", text) is not None


def kind_of(question_id: str) -> str | None:
    """``expert`` for ids that begin with E, ``general`` for C, as the track's script has it; else None."""
    return _INITIAL.get(question_id[:1])


def read_questions(path: Path) -> tuple[Question, ...]:
    """Read a question file, in the file's order; white space around texts is dropped.

    Raises:
        EpicqaError: the file is not a JSON list of questions, a key is missing or not text, an id or a
            question is empty, a text is not Unicode, an id holds white space or occurs twice.
    """
    found: dict[str, Question] = {}
    for number, raw in enumerate(read_json(path, list, _SHAPE), 1):
        place = f"{path}: question {number}"
        if not isinstance(raw, dict):
            raise EpicqaError(f"{place}: not an object, expected {_SHAPE}")
        for key in _KEYS:
            if not isinstance(raw.get(key), str):
                wrong = "missing" if key not in raw else "not text"
                raise EpicqaError(f"{place}: {key!r} is {wrong}, expected text")
        question = Question(*(raw[key].strip() for key in _KEYS))
        if not is_unicode(" ".join(raw[key] for key in _KEYS)):
            raise EpicqaError(f"{place}: half a surrogate pair, expected Unicode text")
        if not is_word(question.question_id):
            raise EpicqaError(
                f"{place}: question_id {question.question_id!r}, expected one word such as EQ001"
            )
        if not question.question:
            raise EpicqaError(f"{place}: {question.question_id} has an empty question, expected text")
        if question.question_id in found:
            raise EpicqaError(f"{place}: {question.question_id} occurs twice, expected each id once")
        found[question.question_id] = question
    if not found:
        raise EpicqaError(f"{path}: no questions, expected {_SHAPE}")
    return tuple(found.values())


def question_files(choice: str, data: Path | None = None, task: str = "ae") -> tuple[Path, ...]:
    """The files that ``expert``, ``general`` or ``all`` stands for; any other choice is a file itself.

    Args:
        choice: a kind, ``all``, or the path of a question file.
        data: a folder in the official layout; else ``EPICQA_DATA``; with neither, the bundled sample.
        task: the official layout's part, ``ae`` (preliminary) or ``e2e`` (primary), or ``all`` for both.
    """
    if choice not in (*KINDS, "all"):
        return (Path(choice),)
    folder = data or (Path(given) if (given := os.environ.get("EPICQA_DATA")) else None)
    kinds = KINDS if choice == "all" else (choice,)
    if folder is None:
        return tuple(sample.questions_path(kind) for kind in kinds)
    tasks = TASKS if task == "all" else (task,)
    return tuple(folder / one / f"{kind}_questions.json" for kind in kinds for one in tasks)


def join_questions(paths: Iterable[Path]) -> tuple[Question, ...]:
    """The questions of several files, in order.

    Raises:
        EpicqaError: as `read_questions`, or one id is in two files.
    """
    found: dict[str, Question] = {}
    for path in paths:
        for question in read_questions(path):
            if question.question_id in found:
                raise EpicqaError(f"{path}: {question.question_id} is in the other question file too")
            found[question.question_id] = question
    return tuple(found.values())


def find_questions(choice: str, data: Path | None = None, task: str = "ae") -> tuple[Question, ...]:
    """The questions of a choice (see `question_files`), expert before general; errors as `join_questions`."""
    return join_questions(question_files(choice, data, task))


def of_kind(question_ids: Iterable[str], choice: str) -> list[str]:
    """The ids that are ``expert`` or ``general``; with ``all``, every one."""
    return [question_id for question_id in question_ids if choice in ("all", kind_of(question_id))]
