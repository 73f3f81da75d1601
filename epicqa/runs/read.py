"""Read a run file."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.ids import parse_passage_id, parse_sentence_id
from epicqa.problems import Problem
from epicqa.ranking import Ranking
from epicqa.runs.model import Passages, Run, RunError

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore

COLUMNS = "question_id Q0 first_id:last_id rank score run_tag"

# The usual shape, whose documents hold no ':'; ids.parse_passage_id reads the rest.
_PASSAGE = re.compile(rb"([^\s:]+-C[0-9]{3,9})-S([0-9]{3,9}):([^\s:]+-C[0-9]{3,9})-S([0-9]{3,9})")
# Beyond what a ranking's float32 holds lies infinity, of which no stage can make an order.
_MOST_SCORE = 1e38
_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")


def read_run(path: Path) -> Run:
    """Read a run file; white space of any length parts its columns, blank lines are passed over.

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
    lines = _lines(path)
    problems: list[Problem] = []
    contexts = _Contexts()
    rows: defaultdict[bytes, list[tuple[int, int, float, bytes, int, int, int, int]]] = defaultdict(list)
    tags: dict[bytes, list[int]] = {}
    for number, line in enumerate(lines, 1):
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
            first_context, first, last_context, last = contexts.parse(passage)
        except ValueError as error:
            problems.append(Problem(path, number, "malformed", str(error)))
        else:
            if first_context == last_context and last < first:
                message = f"{passage.decode()} ends before it starts, expected the first sentence first"
                problems.append(Problem(path, number, "order", message))
        if not _INTEGER.fullmatch(rank_text):
            message = f"rank {rank_text.decode()!r}, expected a whole number"
            problems.append(Problem(path, number, "rank", message))
        score = _score(score_text)
        if not math.isfinite(score):
            message = f"score {score_text.decode()!r}, expected a finite number"
            problems.append(Problem(path, number, "score", message))
        seen = tags.setdefault(tag, [number, 0])
        seen[1] += 1
        if len(problems) == wrong:
            rows[question].append(
                (number, int(rank_text), score, score_text, first_context, last_context, first, last)
            )
    if not tags and not problems:
        raise EpicqaError(f"{path}: empty, expected lines of {COLUMNS}")
    run = Run(
        path=path,
        tag=next(iter(tags)).decode() if tags else "",
        contexts=tuple(contexts.names),
        questions={question.decode(): _passages(found) for question, found in rows.items()},
        tags={tag.decode(): (first_line, count) for tag, (first_line, count) in tags.items()},
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


class _Contexts:
    """Gives every context id a number; different spellings of one context get the same."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._by_name: dict[str, int] = {}
        self._by_text: dict[bytes, int] = {}

    def parse(self, passage: bytes) -> tuple[int, int, int, int]:
        """First context and sentence number, last context and sentence number."""
        if found := _PASSAGE.fullmatch(passage):
            first, first_number, last, last_number = found.groups()
            return self._code(first), int(first_number), self._code(last), int(last_number)
        ends = parse_passage_id(passage.decode())
        first_code, last_code = (self._named(str(end.context_id)) for end in ends)
        return first_code, ends.first.sentence, last_code, ends.last.sentence

    def _code(self, text: bytes) -> int:
        code = self._by_text.get(text)
        if code is None:
            name = str(parse_sentence_id(f"{text.decode()}-S000").context_id)
            code = self._by_text[text] = self._named(name)
        return code

    def _named(self, name: str) -> int:
        code = self._by_name.setdefault(name, len(self.names))
        if code == len(self.names):
            self.names.append(name)
        return code


def _lines(path: Path) -> list[bytes]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EpicqaError(f"{path}: {error.strerror}, expected a run file") from None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EpicqaError(f"{path}:{line}: not UTF-8, expected lines of {COLUMNS}") from None
    # Bytes part at ASCII white space only, so no odd character of an id splits a column.
    return data.removeprefix(b"\xef\xbb\xbf").split(b"\n")


def _score(text: bytes) -> float:
    """The number written, or NaN; Python would also take digits grouped by underscores."""
    try:
        return math.nan if b"_" in text else float(text)
    except ValueError:
        return math.nan


def _passages(rows: list[tuple[int, int, float, bytes, int, int, int, int]]) -> Passages:
    line, rank, score, score_text, first_context, last_context, first, last = zip(*rows, strict=True)
    columns: dict[str, NDArray[Any]] = {
        "line": np.array(line, dtype=np.int64),
        "rank": np.array(rank, dtype=np.int64),
        "score": np.array(score, dtype=np.float64),
        "score_text": np.array(score_text, dtype=np.bytes_),
        "first_context": np.array(first_context, dtype=np.int32),
        "last_context": np.array(last_context, dtype=np.int32),
        "first_number": np.array(first, dtype=np.int64),
        "last_number": np.array(last, dtype=np.int64),
    }
    order = np.lexsort((columns["line"], columns["rank"], -columns["score"]))
    return Passages(**{name: column[order] for name, column in columns.items()})
