"""Hints for a data set that was unpacked to another place, or under other names, than it was published in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from epicqa import streams
from epicqa.files import is_hidden
from epicqa.problems import Problem
from epicqa.questions import TASKS

if TYPE_CHECKING:
    from epicqa.published import Part

PACKED = (".jsonl", ".tar", ".zip")
"""What names of files of many documents end with, without a compression's suffix."""


def entries(folder: Path) -> list[Path]:
    """What is in a folder, by name; nothing where it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if not is_hidden(path.name))
    except OSError:
        return []


def nearby(folder: Path, task: str, own: Collection[Path]) -> list[Path]:
    """What lies where the parts of a task may lie by mistake: in its folder, and a folder deeper.

    Args:
        folder: the data set's.
        task: ``ae`` or ``e2e``.
        own: the right places of all parts, which are not looked into.
    """
    inner = [path for path in entries(folder / task) if path.is_dir() and path not in own]
    outer = [path / task for path in entries(folder) if path.is_dir() and path not in own]
    found = [path for place in (folder / task, *inner, *outer) for path in entries(place)]
    return [path for path in found if path not in own]


def elsewhere(folder: Path, part: Part, near: Iterable[Path]) -> Iterator[Problem]:
    """Where a part that is missing seems to lie, of what is ``nearby``."""
    expected = folder / part.path
    if part.kind == "documents" and expected.is_dir():
        message = f"no documents in it, expected .json or .jsonl files, or {expected.name}.tar.gz beside it"
        yield Problem(expected, None, "empty", message, fatal=False)
    if path := next((path for path in near if _resembles(path, part)), None):
        message = f"looks like {part.path}, expected in {expected.parent} under that name"
        yield Problem(path, None, "misplaced", message, fatal=False)


def better(folder: Path, hints: Iterable[Problem]) -> str:
    """What to give instead of a folder that has no part in it."""
    if folder.absolute().name in TASKS:
        return f"expected the folder above, {folder.absolute().parent}"
    places = [hint.path.parent for hint in hints if hint.path]
    if place := next((one for one in places if one.name in TASKS and one.parent != folder), None):
        return f"expected {place.parent}, where {place.name}/ lies"
    return "expected ae/ and e2e/ with question files and collections"


def _resembles(path: Path, part: Part) -> bool:
    """Whether a path has a part's name, but for case, hyphens and a version behind, and is of its kind."""
    given = path.name.lower().replace("-", "_")
    name = part.path.partition("/")[2]
    if part.kind == "questions":
        return given.startswith(name.removesuffix(".json")) and path.is_file()
    if part.kind != "documents":
        return False
    called = path.name == part.archived or re.fullmatch(rf"{name}(?:[_.].*)?", given)
    return bool(called) and (path.is_dir() or streams.plain_name(given).endswith(PACKED))
