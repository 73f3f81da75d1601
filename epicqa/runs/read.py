"""Read a run file."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.ids import parse_passage_id
from epicqa.problems import Problem
from epicqa.ranking import Ranking
from epicqa.runs.columns import Columns, regular_columns
from epicqa.runs.model import Passages, Run, RunError
from epicqa.streams import read_whole

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore

COLUMNS = "question_id Q0 first_id:last_id rank score run_tag"

_TYPES: dict[str, type] = {
    "line": np.int64,
    "question": np.int64,
    "tag": np.int64,
    "rank": np.int64,
    "score": np.float64,
    "score_text": np.bytes_,
    "first_context": np.int64,
    "last_context": np.int64,
    "first_number": np.int64,
    "last_number": np.int64,
}
# Beyond what a ranking's float32 holds lies infinity, of which no stage can make an order.
_MOST_SCORE = 1e38
_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")


def read_run(path: Path) -> Run:
    """Read a run file, plain or compressed (.gz, .xz, .zst).

    White space of any length parts its columns, lines may end in CRLF, blank lines are passed over.

    Raises:
        RunError: a line has a wrong number of columns, a malformed passage, an end before its start in one
            context, a rank that is not a whole number or a score that is not a finite number; all such lines
            are in its ``problems``.
        EpicqaError: the file cannot be read, is not UTF-8, or is empty.
    """
    run, problems = parse_run(path)
    if problems:
        raise RunError(problems)
    return run


def parse_run(path: Path) -> tuple[Run, tuple[Problem, ...]]:
    """A run without its unreadable lines, and what is wrong with those, in the file's order.

    Raises:
        EpicqaError: the file cannot be read, is not UTF-8, or is empty.
    """
    data = read_whole(path, f"a run file, lines of {COLUMNS}")
    data = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    columns = regular_columns(data)
    problems: list[Problem] = []
    notes: list[Problem] = []
    if columns is None:
        columns = _line_by_line(path, data, problems, notes)
    if not columns.tags:
        if not problems:
            raise EpicqaError(f"{path}: empty, expected lines of {COLUMNS}")
        return Run(path, "", (), {}, {}), tuple(problems)
    first_line = columns.line[np.unique(columns.tag, return_index=True)[1]]
    count = np.bincount(columns.tag)
    run = Run(
        path=path,
        tag=columns.tags[0],
        contexts=tuple(columns.contexts),
        questions=_questions(columns),
        tags={
            tag: (int(line), int(lines))
            for tag, line, lines in zip(columns.tags, first_line, count, strict=True)
        },
        notes=tuple(notes),
    )
    return run, tuple(problems)


def run_rankings(run: Run, store: CorpusStore) -> dict[str, Ranking]:
    """A run's passages as rows of a corpus: question id -> ranking, in the run's order.

    Raises:
        EpicqaError: a sentence is not in the corpus, or a passage spans contexts; file and line are named.
    """
    rankings = {}
    for question_id, passages in run.questions.items():
        ends = np.empty((len(passages), 2), dtype=np.int64)
        for i, line in enumerate(passages.line.tolist()):
            first, last = run.sentence_ids(passages, i)
            if passages.first_context[i] != passages.last_context[i]:
                message = f"{first}:{last} spans contexts, expected both ends in one context"
                raise EpicqaError(f"{run.path}:{line}: {message}")
            for end, sentence_id in enumerate((first, last)):
                row = ends[i, 0] if end and last == first else row_of(store, sentence_id)
                if row is None:
                    message = f"unknown sentence {sentence_id}, expected one of the index"
                    raise EpicqaError(f"{run.path}:{line}: {message}")
                ends[i, end] = row
        score = np.clip(passages.score, -_MOST_SCORE, _MOST_SCORE)
        rankings[question_id] = Ranking(ends[:, 0], ends[:, 1], score.astype(np.float32))
    return rankings


def row_of(store: CorpusStore, sentence_id: str) -> int | None:
    """The row of a well-formed sentence id, None where the corpus has no such sentence."""
    try:
        return store.row(sentence_id)
    except KeyError:
        return None


class _Names:
    """Gives every name a number, in the order of first appearance."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._known: dict[str, int] = {}

    def code(self, name: str) -> int:
        code = self._known.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code


def _line_by_line(path: Path, data: bytes, problems: list[Problem], notes: list[Problem]) -> Columns:
    """The readable lines; what is wrong is added to ``problems``, what is only odd to ``notes``."""
    questions, tags, contexts = _Names(), _Names(), _Names()
    rows: list[tuple[int, int, int, int, float, bytes, int, int, int, int]] = []
    odd_id = 0
    # Bytes part at ASCII white space only, so no odd character of an id splits a column.
    for number, line in enumerate(data.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 6:
            message = f"{len(fields)} columns, expected 6: {COLUMNS}"
            problems.append(Problem(path, number, "columns", message))
            continue
        question, _, passage, rank_text, score_text, tag = fields
        wrong = len(problems)
        try:
            first, last = parse_passage_id(passage.decode())
        except ValueError as error:
            problems.append(Problem(path, number, "malformed", str(error)))
        else:
            if first.context_id == last.context_id and last.sentence < first.sentence:
                message = f"{passage.decode()} ends before it starts, expected the first sentence first"
                problems.append(Problem(path, number, "order", message))
            if not odd_id and passage != f"{first}:{last}".encode():
                odd_id = number
        if not _INTEGER.fullmatch(rank_text):
            message = f"rank {_quoted(rank_text)}, expected a whole number"
            problems.append(Problem(path, number, "rank", message))
        score = written_score(score_text)
        if not math.isfinite(score):
            message = f"score {_quoted(score_text)}, expected a finite number"
            problems.append(Problem(path, number, "score", message))
        if len(problems) == wrong:
            first_context, last_context = (contexts.code(str(end.context_id)) for end in (first, last))
            rows.append(
                (
                    *(number, questions.code(question.decode()), tags.code(tag.decode())),
                    *(int(rank_text), score, score_text),
                    *(first_context, last_context, first.sentence, last.sentence),
                )
            )
    if odd_id:
        message = "numbers of an id not padded to three digits, read as if they were; other tools may not"
        notes.append(Problem(path, odd_id, "padding", message, fatal=False))
    columns = zip(*rows, strict=True) if rows else [()] * len(_TYPES)
    arrays: dict[str, NDArray[Any]] = {
        name: np.array(column, dtype=kind)
        for (name, kind), column in zip(_TYPES.items(), columns, strict=True)
    }
    return Columns(questions=questions.names, tags=tags.names, contexts=contexts.names, **arrays)


def _quoted(text: bytes) -> str:
    return repr(text.decode() if len(text) <= 40 else f"{text[:40].decode(errors='ignore')}...")


def written_score(text: bytes) -> float:
    """The number written, or NaN; Python would also take digits grouped by underscores."""
    try:
        return math.nan if b"_" in text else float(text)
    except ValueError:
        return math.nan


def _questions(columns: Columns) -> dict[str, Passages]:
    """Each question's passages, sorted."""
    found = {}
    by_question = np.argsort(columns.question, kind="stable")
    bounds = np.searchsorted(columns.question[by_question], np.arange(len(columns.questions) + 1))
    for name, start, stop in zip(columns.questions, bounds[:-1], bounds[1:], strict=True):
        of_question = by_question[start:stop]
        score, rank = columns.score[of_question], columns.rank[of_question]
        if not (score[1:] < score[:-1]).all():
            # Lines ascend already, so equal scores and ranks stay in their order.
            of_question = of_question[np.lexsort((rank, -score))]
        found[name] = Passages(
            **{column: getattr(columns, column)[of_question] for column in Passages.__slots__}
        )
    return found
