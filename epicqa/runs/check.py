"""Everything that is wrong with a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.problems import Problem
from epicqa.runs.manifest import read_manifest
from epicqa.runs.model import MAX_DEPTH, Passages, Run
from epicqa.runs.read import parse_run, row_of

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore


def check_run(
    path: Path,
    store: CorpusStore | None = None,
    questions: Collection[str] | None = None,
    depth: int = MAX_DEPTH,
) -> list[Problem]:
    """Everything that is wrong with a run file, in the order of its lines; then what concerns the whole.

    Args:
        path: the run file.
        store: the corpus whose sentences may be named; None leaves ids unchecked.
        questions: ids of the questions that were asked; None leaves them unchecked.
        depth: passages a question at most.

    Returns:
        Problems; those that are not ``fatal`` leave the run valid.

    Raises:
        EpicqaError: the file cannot be read, is not UTF-8, or is empty.
    """
    run, unreadable = parse_run(path)
    problems = [*unreadable, *run.notes, *structure_problems(run, depth), *_order(run)]
    if store is not None:
        problems += _unknown_sentences(run, store)
        problems += _short(run, store, questions, depth)
    if questions is not None:
        problems += _unknown_questions(run, questions)
        problems += _missing_questions(run, questions)
    return sorted(problems, key=lambda problem: float("inf") if problem.line is None else problem.line)


def check_runs(
    paths: Sequence[Path], index: str | None = None, questions: Collection[str] | None = None
) -> dict[Path, list[Problem]]:
    """`check_run` of each path on the index and the questions that its manifest names.

    Args:
        paths: run files.
        index: name of the index instead of the manifest's.
        questions: ids of the questions asked instead of the manifest's.

    Returns:
        Path -> problems. A file that is no run has that as its one problem; without its index a run's ids
        stay unchecked, and that is a fatal problem too.
    """
    opened: dict[str, Any] = {}
    found: dict[Path, list[Problem]] = {}
    for path in paths:
        try:
            found[path] = _check_with_manifest(path, index, questions, opened)
        except EpicqaError as error:
            found[path] = [Problem(None, None, "unreadable", str(error))]
    return found


def _check_with_manifest(
    path: Path, index: str | None, questions: Collection[str] | None, opened: dict[str, Any]
) -> list[Problem]:
    from epicqa.index.build import open_index

    manifest: dict[str, Any] = {}
    beyond: list[Problem] = []
    store = None
    try:
        manifest = read_manifest(path) or {}
        name = index or manifest.get("index")
        if not name:
            raise EpicqaError(f"{path}: index unknown (no manifest beside it names one), pass --index NAME")
        if name not in opened:
            opened[name] = open_index(name)
        store = opened[name].store
        made_on = manifest.get("index_fingerprint")
        if made_on and made_on != opened[name].fingerprint:
            message = (
                f"made on an index with fingerprint {made_on}, index {name} has {opened[name].fingerprint}"
            )
            beyond.append(Problem(path, None, "index", message, fatal=False))
    except EpicqaError as error:
        beyond.append(Problem(None, None, "index", str(error)))
    if questions is None:
        questions = manifest.get("questions", {}).get("ids")
    if questions is None:
        message = "questions unknown (no manifest beside it names them), not checked; pass --questions"
        beyond.append(Problem(path, None, "questions", message, fatal=False))
    return [*check_run(path, store, questions), *beyond]


def structure_problems(run: Run, depth: int = MAX_DEPTH) -> Iterator[Problem]:
    """What a run shows to be wrong by itself: tags, depth, spans across contexts, overlaps."""
    yield from outline_problems(run, depth)
    for question_id, passages in run.questions.items():
        yield from _overlaps(run, question_id, passages)


def outline_problems(run: Run, depth: int = MAX_DEPTH) -> Iterator[Problem]:
    """The same without overlaps, of which there can be as many as passages."""
    for tag, (line, count) in list(run.tags.items())[1:]:
        message = f"run tag {tag!r} here and on {count} lines in all, expected {run.tag!r} throughout"
        yield Problem(run.path, line, "tags", message)
    for question_id, passages in run.questions.items():
        if len(passages) > depth:
            line = int(np.sort(passages.line)[depth])
            message = f"{question_id}: {len(passages)} passages, expected at most {depth}"
            yield Problem(run.path, line, "depth", message)
        across = passages.first_context != passages.last_context
        for i in np.flatnonzero(across).tolist() if across.any() else ():
            name = ":".join(run.sentence_ids(passages, i))
            message = f"{name} spans contexts, expected both ends in one context"
            yield Problem(run.path, int(passages.line[i]), "span", message)


def _overlaps(run: Run, question_id: str, passages: Passages) -> Iterator[Problem]:
    """Each passage that shares a sentence with one on an earlier line of its question."""
    whole = np.flatnonzero(passages.first_context == passages.last_context)
    order = whole[np.lexsort((passages.first_number[whole], passages.first_context[whole]))]
    context, start, stop = (
        column[order] for column in (passages.first_context, passages.first_number, passages.last_number)
    )
    # Where any two of a context overlap, two that are neighbours by start do.
    neighbours = (context[1:] == context[:-1]) & (start[1:] <= stop[:-1])
    for crowded in np.unique(context[1:][neighbours]):
        group = order[context == crowded]
        group = group[np.argsort(passages.line[group])]
        first, last = passages.first_number[group], passages.last_number[group]
        for i in range(1, len(group)):
            equal = np.flatnonzero((first[:i] == first[i]) & (last[:i] == last[i]))
            shared = equal if len(equal) else np.flatnonzero((first[:i] <= last[i]) & (last[:i] >= first[i]))
            if len(shared):
                kind = "repeats" if len(equal) else "overlaps"
                name = ":".join(run.sentence_ids(passages, group[i]))
                other = passages.line[group[shared[0]]]
                message = f"{name} {kind} line {other} of {question_id}, expected each sentence once"
                yield Problem(run.path, int(passages.line[group[i]]), kind, message)


def _order(run: Run) -> Iterator[Problem]:
    for question_id, passages in run.questions.items():
        falls = np.flatnonzero(np.diff(passages.rank) <= 0)
        if len(falls):
            at = falls[0] + 1
            message = (
                f"{question_id}: rank {passages.rank[at]} comes {at + 1}. by score, "
                "expected ranks to follow scores; scores decide"
            )
            yield Problem(run.path, int(passages.line[at]), "ranks", message, fatal=False)
        by_text = np.sort(passages.score_text)[::-1]
        differs = np.flatnonzero(by_text != passages.score_text)
        if len(differs):
            message = (
                f"{question_id}: scores sorted as text give another order (the track's released script "
                "sorts them so), expected a fixed width"
            )
            yield Problem(run.path, int(passages.line[differs[0]]), "text-order", message, fatal=False)


def _unknown_sentences(run: Run, store: CorpusStore) -> Iterator[Problem]:
    known: dict[str, bool] = {}
    for passages in run.questions.values():
        for i in range(len(passages)):
            for sentence_id in dict.fromkeys(run.sentence_ids(passages, i)):
                if sentence_id not in known:
                    known[sentence_id] = row_of(store, sentence_id) is not None
                if not known[sentence_id]:
                    message = f"unknown sentence {sentence_id}, expected one of the index"
                    yield Problem(run.path, int(passages.line[i]), "unknown", message)


def _short(run: Run, store: CorpusStore, questions: Collection[str] | None, depth: int) -> Iterator[Problem]:
    for question_id, passages in run.questions.items():
        if len(passages) >= depth or (questions is not None and question_id not in questions):
            continue
        covered: set[int] = set()
        for i in np.flatnonzero(passages.first_context == passages.last_context).tolist():
            first, last = (row_of(store, sentence_id) for sentence_id in run.sentence_ids(passages, i))
            if first is not None and last is not None:
                covered.update(range(first, last + 1))
        could = min(depth, len(passages) + store.n_sentences - len(covered))
        if could > len(passages):
            message = f"{question_id}: {len(passages)} passages, the index could give {could}"
            yield Problem(run.path, None, "short", message, fatal=False)


def _unknown_questions(run: Run, questions: Collection[str]) -> Iterator[Problem]:
    for question_id, passages in run.questions.items():
        if question_id not in questions:
            message = (
                f"unknown question {question_id} ({len(passages)} lines), "
                f"expected one of the {len(questions)} questions asked"
            )
            yield Problem(run.path, int(passages.line.min()), "question", message)


def _missing_questions(run: Run, questions: Collection[str]) -> Iterator[Problem]:
    missing = [question_id for question_id in questions if question_id not in run.questions]
    if missing:
        message = f"no passages for {len(missing)} of {len(questions)} questions: {', '.join(missing)}"
        yield Problem(run.path, None, "missing", message, fatal=False)
