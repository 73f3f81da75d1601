"""Where things lie on disk, and how they get there whole."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError


def home() -> Path:
    """The folder that holds ``indexes/`` and ``runs/``: ``EPICQA_HOME``, else the current one."""
    return Path(os.environ.get("EPICQA_HOME") or ".")


def indexes_folder() -> Path:
    return home() / "indexes"


def runs_folder() -> Path:
    return home() / "runs"


def cache_folder() -> Path:
    """The folder for caches: ``EPICQA_CACHE``, else ``$XDG_CACHE_HOME/epicqa``, else ``~/.cache/epicqa``."""
    if given := os.environ.get("EPICQA_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "epicqa"


def text_of(path: str | Path) -> str:
    """A path that JSON and reports can hold, also where its name is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def state_of(path: Path, wanted: Callable[[str], bool]) -> list[str]:
    """What tells whether a file or folder has changed: its place, and a digest of names, sizes and times.

    Args:
        path: it is there.
        wanted: says by its name whether a file below a folder counts. Hidden ones never do, linked ones do.
    """
    digest = hashlib.sha256()
    for one in sorted(map(Path, files_below(path, wanted))) if path.is_dir() else [path]:
        try:
            state = one.stat()
        except FileNotFoundError:
            # A link that leads nowhere: whoever reads it will say so.
            state = one.lstat()
        digest.update(os.fsencode(one.relative_to(path)))
        digest.update(f"\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return [text_of(path.resolve()), digest.hexdigest()]


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is passed over wherever folders and archives are read."""
    return name.startswith(".") or name == "__MACOSX"


def files_below(folder: Path, wanted: Callable[[str], bool]) -> Iterator[str]:
    """The wanted files of a folder and those in it, hidden ones left out, links followed, in any order.

    Raises:
        OSError: a folder cannot be read, or there is none.
    """

    def refuse(error: OSError) -> None:
        raise error

    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=refuse):
        real = os.path.realpath(place)
        folders[:] = [] if real in seen else [name for name in folders if not is_hidden(name)]
        for name in [] if real in seen else names:
            if not is_hidden(name) and wanted(name):
                yield f"{place}{os.sep}{name}"
        seen.add(real)


def sync_folder(path: Path) -> None:
    """Make renames in a folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write a file under; it becomes ``path`` when the block ends well.

    The file is synced before the rename. When the block raises, the temporary file is removed and
    whatever stood at ``path`` stays. Where ``path`` is a link, what it leads to is replaced.

    Raises:
        EpicqaError: there is a folder at ``path``.
    """
    path = path.resolve() if path.is_symlink() else path
    if not path.name or path.is_dir():
        raise EpicqaError(f"{path}: Is a directory, expected the name of a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what ``replacing`` left in a folder when it was killed; nobody else may write there now."""
    for left in folder.glob(".*.tmp"):
        left.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a whole small file at once, or leave the old one; a pipe or a device is written to."""
    if path.exists() and not path.is_file() and not path.is_dir():
        path.write_bytes(data)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def sha256_of(path: Path) -> str:
    """The hex SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def digest_of(content: Any) -> str:
    """The hex SHA-256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def remove_tree(path: Path) -> None:
    """Remove a folder; already gone is fine."""
    shutil.rmtree(path, ignore_errors=True)
