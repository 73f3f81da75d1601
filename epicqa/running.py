"""A run as a job: questions in, run file and manifest out, going on where it was interrupted."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from epicqa import sample
from epicqa.config import Config, as_dict
from epicqa.errors import EpicqaError
from epicqa.files import cache_folder, runs_folder, sha256_of, write_bytes
from epicqa.index.build import Index, list_indexes, open_index, versions
from epicqa.jsonfiles import read_json
from epicqa.pipeline import Answer, Pipeline, settle
from epicqa.questions import KINDS, Question, question_files, read_questions
from epicqa.ranking import Ranking
from epicqa.runs import manifest_path, read_run, run_rankings, write_run
from epicqa.runs.manifest import VERSION


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What was written, and what the user should know of it."""

    path: Path
    manifest: Path
    questions: int
    passages: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    questions: tuple[Question, ...]
    files: tuple[Path, ...]
    of_sample: bool


def default_index() -> str:
    """``default``, or ``sample`` where only that was built."""
    there = list_indexes()
    return "sample" if "default" not in there and "sample" in there else "default"


def make_run(
    config: Config,
    *,
    tag: str | None = None,
    output: Path | None = None,
    repeat: Path | None = None,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> RunSummary:
    """Answer every question and write the run and, beside it, its manifest.

    Args:
        config: how to answer.
        tag: of the run; None: of the manifest to repeat, else made of index and questions.
        output: the run file; None: ``runs/TAG.tsv``.
        repeat: the manifest of the run to repeat, whose clock budgets are replayed.
        threads: for searching; the run does not depend on them.
        progress: called with the questions done and all there are.

    Raises:
        EpicqaError: bad configuration, index, questions or run to start from.
    """
    index = open_index(config.index or default_index())
    config, notes = settle(config, index)
    asked = _asked(config, index)
    before = read_json(repeat, dict, "the manifest of a run") if repeat else {}
    if before and before.get("index_fingerprint") != index.fingerprint:
        notes.append(f"index {index.name!r} is not the one of {repeat}: the run will differ")
    kinds = config.questions if config.questions in (*KINDS, "all") else Path(config.questions).stem
    tag = tag or before.get("tag") or re.sub(r"[^A-Za-z0-9_.-]", "_", f"{index.name}-{kinds}")[:24]
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", tag):
        raise EpicqaError(f"run tag {tag!r}, expected letters, digits and _ . -")
    path = output or runs_folder() / f"{tag}.tsv"
    if manifest_path(path) == path:
        raise EpicqaError(f"{path}: a run named .json would overwrite its manifest, expected another name")
    given = None
    if config.source_run:
        given = run_rankings(read_run(Path(config.source_run)), index.store)
        missing = [one.question_id for one in asked.questions if one.question_id not in given]
        if missing:
            notes.append(f"{config.source_run}: no passages for {', '.join(missing)}")
    began = time.monotonic()
    pipeline = Pipeline(index, config, threads=threads)
    reached = {str(key): int(value) for key, value in (before.get("reranked") or {}).items()}
    journal = _Journal(_key(config, index, asked, reached))
    answers: list[Answer] = []
    total = len(asked.questions)
    todo = [one for one in asked.questions if one.question_id not in journal.done]
    if progress:
        progress(total - len(todo), total)
    fresh = pipeline.answer(todo, given=given, reached=reached)
    for answer in _resumed(asked.questions, journal, fresh):
        answers.append(answer)
        if progress:
            progress(len(answers), total)
    rankings = {answer.question_id: answer.passages for answer in answers}
    write_run(path, tag, rankings, index.store)
    content = {
        "epicqa_manifest": VERSION,
        "tag": tag,
        "index": index.name,
        "index_fingerprint": index.fingerprint,
        "questions": {
            "choice": config.questions,
            "ids": [one.question_id for one in asked.questions],
            "files": [{"path": str(file), "sha256": sha256_of(file)} for file in asked.files],
        },
        "judgments": str(Path(config.judgments).absolute())
        if config.judgments
        else ("sample" if asked.of_sample else None),
        "config": as_dict(config),
        "dense": index.manifest["dense"],
        "reranked": {one.question_id: one.reranked for one in answers if one.reranked is not None} or None,
        "run_sha256": sha256_of(path),
        "versions": versions(),
        "seconds": round(time.monotonic() - began, 3),
    }
    write_bytes(manifest_path(path), orjson.dumps(content, option=orjson.OPT_INDENT_2))
    journal.remove()
    return RunSummary(
        path, manifest_path(path), len(answers), sum(len(one.passages) for one in answers), tuple(notes)
    )


def _asked(config: Config, index: Index) -> _Asked:
    """The questions of a configuration: of a file, of the official layout, or the sample's for the sample."""
    named = config.questions in (*KINDS, "all")
    data = Path(config.data) if config.data else None
    if named and data is None and index.manifest["sample"]:
        kinds = KINDS if config.questions == "all" else (config.questions,)
        files = tuple(sample.questions_path(kind) for kind in kinds)
        of_sample = True
    else:
        files = question_files(config.questions, data, config.task)
        of_sample = False
        if named and sample.questions_path("expert").parent == files[0].parent:
            raise EpicqaError(
                f"{config.questions} questions of which data set? Index {index.name!r} is not the sample: "
                "expected --data DIR, EPICQA_DATA, or a question file"
            )
    found: dict[str, Question] = {}
    for file in files:
        for question in read_questions(file):
            if question.question_id in found:
                raise EpicqaError(f"{file}: {question.question_id} is in the other question file, too")
            found[question.question_id] = question
    return _Asked(tuple(found.values()), files, of_sample)


def _key(config: Config, index: Index, asked: _Asked, reached: dict[str, int]) -> str:
    source = sha256_of(Path(config.source_run)) if config.source_run else None
    texts = [[one.question_id, one.question, one.query, one.background] for one in asked.questions]
    content = [as_dict(config), index.fingerprint, source, texts, reached, versions()]
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


def _resumed(questions: Sequence[Question], journal: _Journal, fresh: Iterator[Answer]) -> Iterator[Answer]:
    """Answers in the questions' order: those noted before an interruption, and fresh ones, noted now."""
    pending = next(fresh, None)
    for question in questions:
        if question.question_id in journal.done:
            yield journal.done[question.question_id]
        elif pending is not None and pending.question_id == question.question_id:
            journal.note(pending)
            yield pending
            pending = next(fresh, None)


class _Journal:
    """Answers of a run under way, a line each, so that an interrupted run goes on."""

    def __init__(self, key: str) -> None:
        self._path = cache_folder() / "runs" / f"{key}.jsonl"
        self.done: dict[str, Answer] = {}
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            lines = []
        for line in lines:
            try:
                noted = orjson.loads(line)
                passages = Ranking(
                    np.array(noted["first"]), np.array(noted["last"]), np.array(noted["score"], np.float32)
                )
            except (ValueError, KeyError, TypeError):
                # The line that a kill cut short.
                break
            self.done[noted["id"]] = Answer(noted["id"], passages, noted["reranked"])

    def note(self, answer: Answer) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content: dict[str, Any] = {
            "id": answer.question_id,
            "first": answer.passages.first,
            "last": answer.passages.last,
            "score": answer.passages.score,
            "reranked": answer.reranked,
        }
        with self._path.open("ab") as journal:
            journal.write(orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)
