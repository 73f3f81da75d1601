"""The index of a published collection: which questions need which, built when it is first asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.index.build import BuildOptions, Index, Progress, build_index, list_indexes, open_index
from epicqa.published import collections, place_of
from epicqa.questions import KINDS, TASKS


@dataclass(frozen=True, slots=True)
class Collection:
    """The documents that the questions of one task and kind are answered from.

    Attributes:
        name: of its index, such as ``e2e-expert``.
        sources: where the documents lie, in collection order.
        missing: parts of it that are not there, such as ``e2e/chqa``.
        dense: the model for vectors of an index that is not there yet, or ``none``.
    """

    name: str
    sources: tuple[Path, ...]
    missing: tuple[str, ...] = ()
    dense: str = "static"


def collection_of(config: Config) -> Collection | None:
    """The collection that a configuration asks for by its questions, in the data set's folder, ``data`` or
    EPICQA_DATA; None where it names an index or a question file, or where the folder holds no documents for
    them.

    Raises:
        EpicqaError: there are documents, but the questions are not of one task and kind.
    """
    folder = config.data or os.environ.get("EPICQA_DATA")
    if config.index or not folder or config.questions not in (*KINDS, "all"):
        return None
    tasks = TASKS if config.task == "all" else (config.task,)
    kinds = KINDS if config.questions == "all" else (config.questions,)
    there = {
        (task, kind): found
        for task in tasks
        for kind in kinds
        if (found := _collection(Path(folder), task, kind)) is not None
    }
    if not there:
        return None
    if len(tasks) * len(kinds) > 1:
        choices = ["--task ae or e2e"] * (len(tasks) > 1) + ["--questions expert or general"] * (
            len(kinds) > 1
        )
        raise EpicqaError(
            f"{folder}: questions of each task and kind have a collection of their own, expected "
            f"{' and '.join(choices)}, or --index NAME to ask one index all of them"
        )
    return there[tasks[0], kinds[0]]


def open_collection(
    collection: Collection, *, threads: int = 2, progress: Progress | None = None
) -> tuple[Index, list[str]]:
    """The index of a collection, and what it lacks, a line each.

    It is built first, or gone on with, where it is not that of the documents as they are now. One that is
    there keeps its model and kind of vectors; a new one has what ``epicqa index`` takes by default, but for
    the model, which is the collection's.

    Raises:
        EpicqaError: as ``build_index``.
    """
    name = collection.name
    index = build_index(collection.sources, name, _options(collection, threads), progress)
    notes = []
    if collection.missing:
        notes.append(
            f"index {name!r} lacks {', '.join(collection.missing)}; epicqa data check tells where it is from"
        )
    if skipped := index.manifest["skipped"]:
        report = index.folder / "corpus" / "report.jsonl"
        notes.append(f"index {name!r} lacks {skipped:,} documents that could not be used, see {report}")
    return index, notes


def _collection(folder: Path, task: str, kind: str) -> Collection | None:
    places = {part.path: place_of(folder, part) for part in collections(task, kind)}
    sources = tuple(place for place in places.values() if place)
    missing = tuple(path for path, place in places.items() if not place)
    return Collection(f"{task}-{kind}", sources, missing) if sources else None


def _options(collection: Collection, threads: int) -> BuildOptions:
    """Those that the index of that name was built with, else the defaults."""
    name, new = collection.name, BuildOptions(collection.dense, threads=threads)
    if name not in list_indexes():
        return new
    from epicqa.index.vectors import default_kind

    try:
        manifest = open_index(name).manifest
    except EpicqaError:
        # Damaged, or of another version: built anew.
        return new
    dense = manifest["dense"]
    if dense is None:
        return BuildOptions("none", threads=threads)
    vectors = None if dense["kind"] == default_kind(manifest["sentences"]) else dense["kind"]
    return BuildOptions(dense["model"], vectors, dense["titles"], threads)
