"""A run as a job: questions in, run file and manifest out, going on where it was interrupted."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epicqa import sample
from epicqa.collection_index import collection_of, open_collection
from epicqa.config import Config, as_dict
from epicqa.errors import EpicqaError
from epicqa.files import digest_of, runs_folder, sha256_of, write_bytes
from epicqa.index.build import Index, Progress, list_indexes, open_index, versions
from epicqa.journal import Journal
from epicqa.jsonfiles import read_json
from epicqa.models.places import BUILT_IN, fingerprint, resolve
from epicqa.pipeline import Answer, Pipeline, settle
from epicqa.questions import KINDS, Question, join_questions, question_files
from epicqa.ranking import Ranking
from epicqa.runs import manifest_path, read_manifest, read_run, run_rankings, write_run
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
    named: bool
    data: str | None

    @property
    def of_sample(self) -> bool:
        """Whether they are the sample's own, which has judgments for them."""
        return self.named and self.data is None


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
    building: Progress | None = None,
) -> RunSummary:
    """Answer every question and write the run and, beside it, its manifest.

    Where the configuration names no index, and its data set's folder holds the documents for its questions,
    their index is built first, if it is not there: see ``epicqa.collection_index``.

    Args:
        config: how to answer.
        tag: of the run; None: of the manifest to repeat, else made of index and questions.
        output: the run file; None: ``runs/TAG.tsv``.
        repeat: the manifest of the run to repeat, whose clock budgets are replayed.
        threads: for searching; the run does not depend on them.
        progress: called with the questions done and all there are.
        building: told how far each step of building the index is.

    Raises:
        EpicqaError: bad configuration, index, questions or run to start from.
    """
    before = _manifest(repeat) if repeat else {}
    collection = collection_of(config)
    if collection:
        asked = _asked(config, collection.name, of_sample=False)
        config = replace(config, index=collection.name)
    else:
        index = open_index(config.index or default_index())
        config, notes = settle(config, index)
        asked = _asked(config, index.name, of_sample=index.manifest["sample"])
    config = _placed(config, asked)
    tag = tag or before.get("tag") or _default_tag(config, asked)
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", tag):
        raise EpicqaError(f"run tag {tag!r}, expected letters, digits and _ . -")
    path = output or runs_folder() / f"{tag}.tsv"
    _check_output(path, config)
    if config.judgments and not Path(config.judgments).is_file():
        raise EpicqaError(f"{config.judgments}: no such file, expected judgments")
    if collection:
        # It may take hours, so what can be refused is refused before.
        for model, organization in (
            (config.bi_encoder, "sentence-transformers"),
            (config.reranker, "cross-encoder"),
        ):
            if model != "none":
                resolve(model, organization)
        index, lacking = open_collection(collection, threads=threads, progress=building)
        config, notes = settle(config, index)
        notes += lacking
    given = _given(config, index, asked, notes) if config.source_run else None
    began = time.monotonic()
    reached = _reached(repeat, before, config) if repeat else {}
    pipeline = Pipeline(index, config, threads=threads)
    inputs = _inputs(pipeline, asked)
    journal = Journal(_key(config, asked, inputs, reached))
    todo = [one for one in asked.questions if one.question_id not in journal.done]
    share = len(todo) / max(1, len(asked.questions))
    fresh = pipeline.answer(todo, given=given, reached=reached, share=share)
    answers: list[Answer] = []
    total = (
        len(asked.questions) if given is None else sum(one.question_id in given for one in asked.questions)
    )
    if progress:
        progress(0, total)
    for answer in _resumed(asked.questions, journal, fresh):
        answers.append(answer)
        if progress:
            progress(len(answers), total)
    if not any(len(answer.passages) for answer in answers):
        journal.remove()
        raise EpicqaError(f"{path}: not written, no passage was found for any question")
    write_run(path, tag, {answer.question_id: answer.passages for answer in answers}, index.store)
    content = {
        "epicqa_manifest": VERSION,
        "tag": tag,
        "index": index.name,
        **inputs,
        "judgments": config.judgments or ("sample" if asked.of_sample else None),
        "config": as_dict(config),
        "reranked": {one.question_id: one.reranked for one in answers if one.reranked is not None} or None,
        "run_sha256": sha256_of(path),
        "seconds": round(time.monotonic() - began, 3),
    }
    if repeat and (before["config"], before["tag"]) == (content["config"], tag):
        if before.get("run_sha256") != content["run_sha256"]:
            changed = ", ".join(name for name, value in inputs.items() if before.get(name) != value)
            notes.append(f"the run is not the one of {repeat}; what differs: {changed or 'nothing noted'}")
    elif before and before.get("index_fingerprint") != index.fingerprint:
        notes.append(f"index {index.name!r} is not the one of {repeat}")
    write_bytes(manifest_path(path), json.dumps(content, indent=2).encode())
    journal.remove()
    return RunSummary(
        path, manifest_path(path), len(answers), sum(len(one.passages) for one in answers), tuple(notes)
    )


def _asked(config: Config, index: str, of_sample: bool) -> _Asked:
    """The questions of a configuration: of a file, of the official layout, or the sample's for the sample.

    Args:
        config: which questions.
        index: name of the index to ask, for messages.
        of_sample: whether it is the sample's.
    """
    named = config.questions in (*KINDS, "all")
    folder = config.data or (os.environ.get("EPICQA_DATA") if named else None)
    of_sample = of_sample and named and not config.data
    if of_sample:
        kinds = KINDS if config.questions == "all" else (config.questions,)
        files = tuple(sample.questions_path(kind) for kind in kinds)
    elif named and not folder:
        raise EpicqaError(
            f"{config.questions} questions of which data set? Index {index!r} is not the sample: "
            "expected --data DIR, EPICQA_DATA, or a question file"
        )
    else:
        files = question_files(config.questions, Path(folder) if folder else None, config.task)
    return _Asked(join_questions(files), files, named, None if of_sample else folder)


def _placed(config: Config, asked: _Asked) -> Config:
    """The configuration with whole paths and the place of its questions, to be repeated from any folder."""

    def whole(path: str | None) -> str | None:
        return str(Path(path).absolute()) if path else None

    def placed(model: str) -> str:
        folder = model not in ("none", *BUILT_IN) and Path(model).is_dir()
        return str(Path(model).absolute()) if folder else model

    return replace(
        config,
        questions=config.questions if asked.named else str(whole(config.questions)),
        data=whole(asked.data),
        judgments=whole(config.judgments),
        reranker=placed(config.reranker),
        bi_encoder=placed(config.bi_encoder),
        source_run=whole(config.source_run),
    )


def _default_tag(config: Config, asked: _Asked) -> str:
    """Of index and questions, and of the part where that is not the first; as long as TAC takes at most."""
    end = config.questions if asked.named else Path(config.questions).stem
    if asked.named and asked.data and config.index == f"{config.task}-{config.questions}":
        # The index of these questions' own collection says it all.
        return config.index
    if asked.named and asked.data and config.task != "ae":
        end = f"{config.task}-{end}"
    end = re.sub(r"[^A-Za-z0-9_.-]", "_", end)[:16]
    return f"{str(config.index).lstrip('_')[: 23 - len(end)]}-{end}".lstrip("-")


def _check_output(path: Path, config: Config) -> None:
    """Refuse, before the work, a place that cannot be written or that holds what the run is made from."""
    manifest = manifest_path(path)
    if manifest == path:
        raise EpicqaError(f"{path}: a run named .json would overwrite its manifest, expected another name")
    if path.exists() and not path.is_file():
        raise EpicqaError(f"{path}: there and not a file, expected the name of a run file")
    folder = next(one for one in path.absolute().parents if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise EpicqaError(f"{path}: {folder} is not a folder that can be written, expected another --output")
    if manifest.exists():
        try:
            ours = "epicqa_manifest" in read_json(manifest, dict, "a manifest")
        except EpicqaError:
            ours = False
        if not ours:
            raise EpicqaError(
                f"{path}: its manifest would overwrite {manifest}, which is none; expected another --output"
            )
    source = Path(config.source_run).resolve() if config.source_run else None
    if source and manifest_path(source) == manifest_path(path.resolve()):
        raise EpicqaError(
            f"{path}: would overwrite the run it is made from, expected another --tag or --output"
        )


def _given(config: Config, index: Index, asked: _Asked, notes: list[str]) -> dict[str, Ranking]:
    """The passages to start from."""
    given = run_rankings(read_run(Path(str(config.source_run))), index.store)
    wanted = [one.question_id for one in asked.questions]
    if missing := [one for one in wanted if one not in given]:
        notes.append(f"{config.source_run}: no passages for {', '.join(missing)}")
    if beyond := [one for one in given if one not in set(wanted)]:
        notes.append(f"{config.source_run}: not asked and left out: {', '.join(beyond)}")
    return given


def _manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run to repeat."""
    found = read_manifest(path.with_suffix(".tsv"))
    if not found or "config" not in found or not isinstance(found.get("tag"), str):
        raise EpicqaError(f"{path}: not the manifest of a run, expected one that epicqa run writes")
    return found


def _reached(repeat: Path, before: dict[str, Any], config: Config) -> dict[str, int]:
    """How deep the clock let the reranker go in the run to repeat; other settings have it look anew."""
    names = ("reranker", "bi_encoder", "rerank_depth", "budget")
    if config.budget is None or any(before["config"].get(n) != getattr(config, n) for n in names):
        return {}
    found = before.get("reranked") or {}
    if not isinstance(found, dict) or not all(type(depth) is int and depth >= 0 for depth in found.values()):
        raise EpicqaError(f"{repeat}: 'reranked' is not a depth a question, expected what epicqa run writes")
    return found


def _inputs(pipeline: Pipeline, asked: _Asked) -> dict[str, Any]:
    """What a run is made from, with fingerprints; None where there is no such thing."""
    config, index = pipeline.config, pipeline.index
    return {
        "index_fingerprint": index.fingerprint,
        "questions": {
            "choice": config.questions,
            "ids": [one.question_id for one in asked.questions],
            "files": [{"path": str(file), "sha256": sha256_of(file)} for file in asked.files],
        },
        "dense": index.manifest["dense"],
        "bi_encoder": _model(config.bi_encoder, "sentence-transformers"),
        "reranker": _model(config.reranker, "cross-encoder"),
        "computed": pipeline.computed(),
        "source_run": sha256_of(Path(config.source_run)) if config.source_run else None,
        "versions": versions(),
    }


def _model(name: str, organization: str) -> str | None:
    return None if name == "none" else fingerprint(resolve(name, organization))


def _key(config: Config, asked: _Asked, inputs: dict[str, Any], reached: dict[str, int]) -> str:
    """The name of the journal: nothing that decides the answers may differ."""
    texts = [[one.question_id, one.question, one.query, one.background] for one in asked.questions]
    content = [as_dict(config), inputs, texts, reached]
    return digest_of(content)[:24]


def _resumed(questions: Sequence[Question], journal: Journal, fresh: Iterator[Answer]) -> Iterator[Answer]:
    """Answers in the questions' order: those noted before an interruption, and fresh ones, noted now."""
    pending = next(fresh, None)
    for question in questions:
        if question.question_id in journal.done:
            yield journal.done[question.question_id]
        elif pending is not None and pending.question_id == question.question_id:
            journal.note(pending)
            yield pending
            pending = next(fresh, None)
