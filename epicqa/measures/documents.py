"""Document measures of a run, by their ir-measures names, from TREC-style judgments.

Formula, source and range of each measure are ir-measures' own: https://ir-measur.es/en/latest/measures.html.
It hands AP, nDCG, P, R, Bpref and most others to trec_eval, RBP and its kin to cwl_eval, ERR to gdeval; all
of these are from 0 to 1 but the counts (NumQ, NumRel, NumRet). Grades of 1 and more are relevant unless
``rel`` says otherwise, those below 0 never are.

Ties: a document's place is that of its first passage, by score as a number, descending, then rank, then line.
trec_eval breaks ties by document name and rounds scores to 32 bits, so it is handed whole scores that fall by
1 from rank to rank.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.ids import parse_passage_id
from epicqa.measures.irm import NDNS, NuggetRecall, calculate, quiet
from epicqa.measures.ndns import MAX_RANK
from epicqa.measures.nuggets import DIVERSITY, is_nugget_measure
from epicqa.measures.qrels import MAX_GRADE, Qrels, fields_of, lines_of, named_as
from epicqa.problems import Problem
from epicqa.questions import kind_of
from epicqa.runs.model import Run, RunError
from epicqa.runs.read import read_run, written_score

COLUMNS = "topic Q0 document rank score tag"

MAX_CUTOFF = 1_000_000
MAX_NDEVAL_CUTOFF = 20
"""Ranks that pyndeval computes."""
MAX_GDEVAL_GRADE = 4
"""Grades that gdeval takes."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_MAX_NAME = 200
_EXAMPLES = ("{}@10", "{}", "{}(rel=1)", "{}(max_rel=2)@10", "{}(max_rel=2)", "{}@0.1")


@dataclass(frozen=True, slots=True, eq=False)
class DocumentRun:
    """A ranking of documents for each question.

    Attributes:
        tag: the run's.
        path: its file.
        questions: question or topic id -> document ids, best first, each once.
        warnings: what was odd in the file.
    """

    tag: str
    path: Path
    questions: dict[str, tuple[str, ...]]
    warnings: tuple[Problem, ...] = ()


class DocumentScores(NamedTuple):
    """Document measures of a run.

    ``question_ids`` in the judgments' order; ``values`` maps a measure's name, as ``str`` gives it, to
    float64[n_questions]; ``warnings`` are the run's own, then say what is left out or counts 0.
    """

    question_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    warnings: tuple[Problem, ...]


def collapse(run: Run) -> DocumentRun:
    """A run's documents in the order of their first passages.

    Passages are taken by score, then rank, then line; those after the first 1000 of a question do not count.
    A passage whose ends lie in two documents is of the first end's.
    """
    document_of: dict[str, int] = {}
    # Documents may hold "-C" themselves; canonical context ids end in their own.
    code = np.array(
        [document_of.setdefault(name.rpartition("-C")[0], len(document_of)) for name in run.contexts],
        dtype=np.int64,
    )
    names = list(document_of)
    questions = {}
    for question_id, passages in run.questions.items():
        documents = code[passages.first_context[:MAX_RANK]]
        first = np.sort(np.unique(documents, return_index=True)[1])
        questions[question_id] = tuple(names[i] for i in documents[first].tolist())
    return DocumentRun(run.tag, run.path, questions)


def read_document_run(path: Path) -> DocumentRun:
    """Read a TREC run of documents, plain or compressed (.gz, .xz, .zst).

    Documents are taken by score as a number, descending, then rank, then line. A document that a topic has
    more than once counts where it stands first in that order, and is warned of. White space of any length
    parts the columns; blank lines, CRLF and a byte order mark are passed over.

    Raises:
        RunError: a line has another number of columns than six, a rank that is not a whole number or a score
            that is not a finite number; all such lines are in its ``problems``.
        EpicqaError: the file cannot be read, is damaged, not UTF-8 or empty.
    """
    problems: list[Problem] = []
    rows: dict[str, list[tuple[float, int, int, str]]] = {}
    tags: dict[str, int] = {}
    for number, line in lines_of(path, f"lines of {COLUMNS}"):
        fields = fields_of(line)
        if len(fields) != 6:
            message = f"{len(fields)} columns, expected 6: {COLUMNS}"
            problems.append(Problem(path, number, "columns", message))
            continue
        topic, _, document, rank, score_text, tag = fields
        score = written_score(score_text.encode())
        if not math.isfinite(score):
            message = f"score {score_text!r}, expected a finite number"
            problems.append(Problem(path, number, "score", message))
        elif not _INTEGER.fullmatch(rank):
            problems.append(Problem(path, number, "rank", f"rank {rank!r}, expected a whole number"))
        else:
            tags.setdefault(tag, number)
            rows.setdefault(topic, []).append((-score, int(rank), number, document))
    if problems:
        raise RunError(tuple(problems))
    run_tag = next(iter(tags))
    warnings = [
        Problem(path, number, "tags", f"run tag {tag!r}, expected {run_tag!r} throughout", fatal=False)
        for tag, number in list(tags.items())[1:]
    ]
    questions = {}
    for topic, found in rows.items():
        documents: dict[str, int] = {}
        for _, _, number, document in sorted(found):
            line_of_first = documents.setdefault(document, number)
            if line_of_first != number:
                message = f"{document} of topic {topic} repeats line {line_of_first}, the better one counts"
                warnings.append(Problem(path, number, "repeats", message, fatal=False))
        questions[topic] = tuple(documents)
    return DocumentRun(run_tag, path, questions, tuple(warnings))


def document_run(path: Path) -> DocumentRun:
    """Read a run of documents, or one of passages (if any of its first 100 lines has one) and collapse it.

    Raises:
        EpicqaError: as `read_document_run` or `epicqa.runs.read_run`.
    """
    for _, line in lines_of(path, f"lines of {COLUMNS}")[:100]:
        try:
            parse_passage_id("".join(fields_of(line)[2:3]))
        except ValueError:
            continue
        return collapse(read_run(path))
    return read_document_run(path)


def score_documents(
    run: DocumentRun,
    qrels: Qrels,
    measures: Sequence[Measure],
    questions: Collection[str] | None = None,
    *,
    complete: bool = True,
) -> DocumentScores:
    """Document measures of a run, by question.

    TREC-COVID's topics go by the run's question ids where `epicqa.measures.qrels.named_as` knows how.

    Args:
        run: the ranking.
        qrels: the judgments.
        measures: what to compute, see `parse_measures`; none of those for which `is_nugget_measure` holds.
        questions: ids to score; None means the judged questions of the kinds (expert, general, neither) in
            the run.
        complete: a judged question that the run has no documents for counts 0; otherwise it is left out.

    Raises:
        EpicqaError: no question is left to score; a measure is one of nuggets, or cannot be computed.
    """
    for measure in measures:
        if is_nugget_measure(measure):
            raise EpicqaError(f"{measure}: computed from nuggets, expected a measure of documents")
    named = named_as(qrels, run.questions)
    topics = named.topics
    scored, warnings = _scored_topics(run, named, questions, complete)
    warnings = [*run.warnings, *named.warnings[len(qrels.warnings) :], *warnings]
    highest = max(grade for question_id in scored for grade in topics[question_id].values())
    for measure in measures:
        if highest > MAX_GDEVAL_GRADE and _is_gdeval(measure):
            raise EpicqaError(
                f"{measure}: gdeval computes it for grades up to {MAX_GDEVAL_GRADE}, {qrels.path} has "
                f"{highest}, expected another measure"
            )
    # gdeval takes whole numbers for topics only.
    number_of = {question_id: str(i) for i, question_id in enumerate(scored, 1)}
    judged = {number_of[question_id]: topics[question_id] for question_id in scored}
    ranked = {
        number_of[question_id]: {
            document: float(len(run.questions[question_id]) - rank)
            for rank, document in enumerate(run.questions[question_id])
        }
        for question_id in scored
        if question_id in run.questions
    }
    values = {}
    for measure in measures:
        # One at a time, so that no measure's parameters leak into another's.
        found = calculate([measure], judged, ranked)
        values[str(measure)] = np.array(
            [found.get((measure, number), measure.DEFAULT) for number in judged], dtype=np.float64
        )
    return DocumentScores(tuple(scored), values, tuple(warnings))


def parse_measures(names: Sequence[str]) -> list[Measure]:
    """Measures by their ir-measures names, such as ``nDCG@10``, ``AP``, ``RBP(rel=1,p=0.5)``.

    Each is tried on a tiny ranking, so that a measure that is returned can be computed. Equal measures are
    returned once.

    Raises:
        EpicqaError: a name is unknown or malformed, lacks a parameter, has one too many or of a wrong kind or
            size, or nothing that is installed computes it; the message gives an example of what would do.
    """
    return list(dict.fromkeys(_parse_measure(name) for name in names))


def _parse_measure(name: str) -> Measure:
    try:
        with quiet():
            measure = ir_measures.parse_measure(name.strip()) if len(name) <= _MAX_NAME else None
    # Malformed text gives NameError, ValueError, TypeError, AssertionError and what Python's parser raises.
    except Exception:
        measure = None
    base = str(measure.NAME) if measure is not None else re.split(r"\W", name.strip(), maxsplit=1)[0]
    if base not in ir_measures.measures.registry:
        raise EpicqaError(
            f"unknown measure {_shown(name)}, expected one of ir-measures such as {_like(base)}"
        )
    wrong = "not of the form Name(parameter=value)@cutoff" if measure is None else _wrong(measure)
    if measure is None or wrong:
        raise EpicqaError(f"measure {_shown(name)}: {wrong}, expected one such as {_example(base)}")
    return measure


def _wrong(measure: Measure) -> str | None:
    """What is wrong with a measure's parameters, None where it can be computed."""
    for key, value in measure.params.items():
        if key not in measure.SUPPORTED_PARAMS:
            return f"no parameter {key!r} (it has {', '.join(measure.SUPPORTED_PARAMS)})"
        if reason := _wrong_value(measure, key, value):
            return f"{key} = {value!r}, {reason}"
    for key, info in measure.SUPPORTED_PARAMS.items():
        # pyndeval needs a cutoff though ir-measures does not say so.
        needed = info.required or (key == "cutoff" and measure.NAME in DIVERSITY)
        if needed and key not in measure.params:
            return f"{key} is missing"
        if key in measure.params and not info.validate(measure.params[key]):
            return f"{key} = {measure.params[key]!r} is not one of its values"
    if measure.NAME in DIVERSITY and (measure["rel"] != 1 or measure.params.get("judged_only")):
        return "nuggets have no grades and no sentence is judged without one, so no rel and no judged_only"
    # Two nuggets of one document, or one that is relevant: enough for any measure to show that it works.
    qrels = [ir_measures.Qrel("1", "a", 1, iteration) for iteration in "12"[: 1 + is_nugget_measure(measure)]]
    try:
        with quiet():
            if not ir_measures.DefaultPipeline.supports(measure):
                return "nothing installed computes it with these parameters"
            if measure.NAME not in (NDNS.NAME, NuggetRecall.NAME):
                list(ir_measures.iter_calc([measure], qrels, [ir_measures.ScoredDoc("1", "b", 1.0)]))
    # Providers raise whatever they come across.
    except Exception as error:
        return f"cannot be computed ({' '.join(str(error).split()) or type(error).__name__})"
    return None


def _wrong_value(measure: Measure, key: str, value: Any) -> str | None:
    """Why a parameter's value is wrong; the C code behind some measures would stop the program."""
    dtype = measure.SUPPORTED_PARAMS[key].dtype
    if dtype is int:
        least, most = (1, _most_ranks(measure)) if key == "cutoff" else (0, MAX_GRADE)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            return f"not a whole number from {least} to {most}"
    elif dtype is float:
        highest = 1.0 if key in ("p", "alpha", "recall") else 1000.0
        if not isinstance(value, float) or not 0 <= value <= highest:
            return f"not a number with a decimal point from 0.0 to {highest}"
    elif dtype is dict:
        numbers = [*value.keys(), *value.values()] if isinstance(value, dict) else [None]
        if not all(isinstance(one, int) and 0 <= one <= MAX_GRADE for one in numbers):
            return f"not whole numbers from 0 to {MAX_GRADE} by grade"
    elif dtype is not None and not isinstance(value, dtype):
        return f"not a {dtype.__name__}"
    return None


def _most_ranks(measure: Measure) -> int:
    if measure.NAME in DIVERSITY:
        return MAX_NDEVAL_CUTOFF
    return MAX_RANK if measure.NAME in (NDNS.NAME, NuggetRecall.NAME) else MAX_CUTOFF


def _is_gdeval(measure: Measure) -> bool:
    return measure.NAME == "ERR" or measure.params.get("dcg") == "exp-log2"


def _like(base: str) -> str:
    """A measure whose name is like the given one, else well-known ones."""
    known: dict[str, str] = {}
    for name, measure in ir_measures.measures.registry.items():
        known.setdefault(name.lower(), measure.NAME)
    # trec_eval writes ndcg_cut_10 and P_10.
    for text in (base.lower(), base.lower().partition("_")[0]):
        if close := difflib.get_close_matches(text, known, n=1):
            return _example(known[close[0]])
    return "nDCG@10, AP or RBP(rel=1)"


def _example(base: str) -> str:
    """A way to write a known measure that can be computed."""
    for form in _EXAMPLES:
        with quiet():
            try:
                measure = ir_measures.parse_measure(form.format(base))
                measure.validate_params()
            except (ValueError, NameError, AssertionError):
                continue
        if _wrong(measure) is None:
            return form.format(base)
    return "nDCG@10"


def _shown(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME else f"{name[:40]}...")


def _scored_topics(
    run: DocumentRun,
    qrels: Qrels,
    questions: Collection[str] | None,
    complete: bool,
) -> tuple[list[str], list[Problem]]:
    """Which judged questions count, in the judgments' order, and what is left out or counts 0."""
    topics = qrels.topics
    kinds = {kind_of(question_id) for question_id in run.questions}
    scored = [
        topic for topic in topics if (kind_of(topic) in kinds if questions is None else topic in questions)
    ]
    warnings = []
    if missing := [topic for topic in scored if topic not in run.questions]:
        what = "counts 0" if complete else "left out"
        message = f"no documents, {what}: {', '.join(missing)}"
        warnings.append(Problem(run.path, None, "missing", message, fatal=False))
        if not complete:
            scored = [topic for topic in scored if topic in run.questions]
    if not any(topic in run.questions for topic in scored):
        raise EpicqaError(
            f"{run.path}: no question to score, expected some that {qrels.path} has judgments for"
        )
    if irrelevant := [topic for topic in scored if max(topics[topic].values()) < 1]:
        message = f"no relevant document, counts as trec_eval counts it: {', '.join(irrelevant)}"
        warnings.append(Problem(qrels.path, None, "no-gold", message, fatal=False))
    unjudged = [
        question_id
        for question_id in run.questions
        if question_id not in topics and (questions is None or question_id in questions)
    ]
    if unjudged:
        message = f"no judgments, left out: {', '.join(unjudged)}"
        warnings.append(Problem(run.path, None, "unjudged", message, fatal=False))
    return scored, warnings
