"""Document judgments in the TREC shape: ``topic round document relevance``, a line each."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from epicqa.errors import EpicqaError
from epicqa.problems import Problem
from epicqa.streams import read_whole

COLUMNS = "topic round document relevance"

MAX_GRADE = 1000
"""Highest grade read; trec_eval keeps a counter for every grade up to the highest."""

_ROUND = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?|Q0")
_GRADE = re.compile(r"[+-]?[0-9]{1,9}")
# EPIC-QA asked 45 of TREC-COVID's 50 topics as its preliminary expert questions.
_SHARED_TOPIC = re.compile(r"[1-9]|[1-3][0-9]|4[0-5]")


@dataclass(frozen=True, slots=True, eq=False)
class Qrels:
    """Document judgments.

    Attributes:
        path: the file.
        topics: topic or question id -> document id -> grade, all in the file's order. Grades are from -1 up;
            1 and more are relevant.
        warnings: documents that were judged twice.
    """

    path: Path
    topics: dict[str, dict[str, int]]
    warnings: tuple[Problem, ...] = ()


def read_qrels(path: Path) -> Qrels:
    """Read document judgments, plain or compressed (.gz, .xz, .zst).

    White space of any length parts the four columns; blank lines, CRLF and a byte order mark are passed over.
    A round is a number such as 1 or 4.5 (``Q0`` is round 0). A document may be judged several times for a
    topic: with one grade it counts once, else the grade of the highest round counts; both are warned of.

    Raises:
        EpicqaError: the file cannot be read, is damaged, not UTF-8 or empty; a line has another number of
            columns, a round that is no number or a grade that is not a whole number from -1 to 1000; a
            document has two grades for a topic in one round.
    """
    judged: dict[tuple[str, str], tuple[float, int, int]] = {}
    again: dict[tuple[str, str], dict[float, tuple[int, int]]] = {}
    warnings = []
    for number, line in lines_of(path, f"lines of {COLUMNS}"):
        row = _row(line, f"{path}:{number}")
        topic, round_, document, grade = row
        first = judged.setdefault((topic, document), (round_, grade, number))
        if first[2] == number:
            continue
        # Nearly all documents are judged once, so rounds are only kept of those that are not.
        rounds = again.setdefault((topic, document), {first[0]: first[1:]})
        other, line_of_other = rounds.setdefault(round_, (grade, number))
        if other != grade:
            raise EpicqaError(
                f"{path}:{number}: {document} is {grade} for topic {topic}, and {other} on line "
                f"{line_of_other} in the same round, expected one grade a round"
            )
        warnings.append(_judged_again(path, number, topic, document, rounds, judged[topic, document]))
        highest = max(rounds)
        judged[topic, document] = (highest, *rounds[highest])
    topics: dict[str, dict[str, int]] = {}
    for (topic, document), (_, grade, _) in judged.items():
        topics.setdefault(topic, {})[document] = grade
    return Qrels(path, topics, tuple(warnings))


def named_as(qrels: Qrels, question_ids: Collection[str]) -> Qrels:
    """The judgments under the names that a run's questions have.

    TREC-COVID's topic nn, 1 to 45, is EPIC-QA's preliminary expert question EQ0nn. Where ``question_ids``
    has ids that begin with EQ and the judgments have none, the judgments' topics 1 to 45 become EQ001 to
    EQ045; their other topics, which EPIC-QA did not ask, are left out and warned of. Anywhere else nothing
    changes.
    """
    if any(topic.startswith("EQ") for topic in qrels.topics):
        return qrels
    if not any(question_id.startswith("EQ") for question_id in question_ids):
        return qrels
    shared = {f"EQ{int(topic):03d}": topic for topic in qrels.topics if _SHARED_TOPIC.fullmatch(topic)}
    warnings = list(qrels.warnings)
    if others := [topic for topic in qrels.topics if topic not in shared.values()]:
        message = f"no questions of EPIC-QA, left out: topics {', '.join(others)}"
        warnings.append(Problem(qrels.path, None, "unasked", message, fatal=False))
    topics = {question_id: qrels.topics[topic] for question_id, topic in shared.items()}
    return replace(qrels, topics=topics, warnings=tuple(warnings))


def lines_of(path: Path, expected: str) -> list[tuple[int, str]]:
    """The lines of a plain or compressed UTF-8 file that are not blank, each with its number, from 1.

    Args:
        path: the file; ``.gz``, ``.xz`` and ``.zst`` at the end of its name tell a compression.
        expected: what the file should hold, in words, for messages.

    Raises:
        EpicqaError: the file cannot be read, is damaged or cut short, not UTF-8, or holds nothing.
    """
    text = read_whole(path, f"a file with {expected}").decode()
    # Only "\n" ends a line: splitlines() would also break at characters that an id may hold.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise EpicqaError(f"{path}: empty, expected {expected}")
    return lines


def fields_of(line: str) -> list[str]:
    """A line's columns; only ASCII white space parts them, so no odd character of an id splits a column."""
    return [field.decode() for field in line.encode().split()]


def _row(line: str, place: str) -> tuple[str, float, str, int]:
    fields = fields_of(line)
    if len(fields) != 4:
        raise EpicqaError(f"{place}: {len(fields)} columns, expected 4: {COLUMNS}")
    topic, round_, document, grade = fields
    if not _ROUND.fullmatch(round_):
        raise EpicqaError(f"{place}: round {round_!r}, expected a number such as 1 or 4.5")
    if not _GRADE.fullmatch(grade) or not -1 <= int(grade) <= MAX_GRADE:
        raise EpicqaError(f"{place}: relevance {grade!r}, expected a whole number from -1 to {MAX_GRADE}")
    return topic, 0.0 if round_ == "Q0" else float(round_), document, int(grade)


def _judged_again(
    path: Path,
    number: int,
    topic: str,
    document: str,
    rounds: dict[float, tuple[int, int]],
    before: tuple[float, int, int],
) -> Problem:
    grades = {grade for grade, _ in rounds.values()}
    where = f"{document} is judged for topic {topic} here and on line {before[2]}"
    if len(grades) == 1:
        return Problem(path, number, "judged-twice", f"{where} with the same grade, counts once", fatal=False)
    highest = max(rounds)
    message = f"{where} with different grades, round {highest:g} counts: {rounds[highest][0]}"
    return Problem(path, number, "judged-twice", message, fatal=False)
