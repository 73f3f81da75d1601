"""What a built index says of itself, and the check that its files are still the ones that were built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from epicqa.errors import EpicqaError
from epicqa.files import digest_of, sha256_of, write_bytes

FILE = "index.json"
VERSION = 1
_SEEN = "verified.json"


def logical_fingerprint(corpus: str, settings: dict[str, Any]) -> str:
    """The hex SHA-256 of an index's content: its corpus and how it was indexed, not its files' bytes."""
    return digest_of({"version": VERSION, "corpus": corpus, **settings})


def checksums(folder: Path) -> dict[str, dict[str, Any]]:
    """Size, time and SHA-256 of every file below a folder, by its relative path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        # Lucene's lock file is empty and comes and goes.
        if path.is_file() and path.name not in (FILE, _SEEN, "write.lock"):
            state = path.stat()
            found[path.relative_to(folder).as_posix()] = {
                "bytes": state.st_size,
                "mtime_ns": state.st_mtime_ns,
                "sha256": sha256_of(path),
            }
    return found


def write(folder: Path, content: dict[str, Any]) -> None:
    """Write a generation's manifest; that it is there says that the generation is whole."""
    whole = {"format": "epicqa index", "version": VERSION, **content, "files": checksums(folder)}
    whole["sha256"] = digest_of(whole)
    write_bytes(folder / FILE, orjson.dumps(whole, option=orjson.OPT_INDENT_2))


def read(folder: Path, name: str) -> dict[str, Any]:
    """The manifest of a generation.

    Raises:
        EpicqaError: it is damaged, or of another version of epicqa.
    """
    path = folder / FILE
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes())
        version = found["version"]
        whole = found.pop("sha256") == digest_of(found) and found["format"] == "epicqa index"
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        version, whole = VERSION, False
    if version != VERSION:
        raise EpicqaError(
            f"{path}: index {name!r} is of version {version}, this epicqa reads version {VERSION}; "
            "build it again with epicqa index --force"
        )
    if not whole:
        raise EpicqaError(f"{path}: damaged; build index {name!r} again with epicqa index --force")
    return found


def verify(folder: Path, manifest: dict[str, Any], name: str, *, fully: bool = False) -> None:
    """Check a generation's files: sizes always, checksums of those whose time has changed, or of all.

    Raises:
        EpicqaError: a file is missing or not the one that was built.
    """
    seen = _seen(folder)
    fresh = dict(seen)
    for relative, expected in manifest["files"].items():
        path = folder / relative
        again = f"build index {name!r} again with epicqa index --force"
        try:
            state = path.stat()
        except OSError:
            raise EpicqaError(f"{path}: missing; {again}") from None
        if state.st_size != expected["bytes"]:
            raise EpicqaError(
                f"{path}: damaged, {state.st_size} bytes instead of {expected['bytes']}; {again}"
            )
        known = state.st_mtime_ns in (expected["mtime_ns"], seen.get(relative))
        if (fully or not known) and sha256_of(path) != expected["sha256"]:
            raise EpicqaError(f"{path}: damaged, its checksum is not the one it was built with; {again}")
        if not known:
            fresh[relative] = state.st_mtime_ns
    if fresh != seen:
        try:
            write_bytes(folder / _SEEN, orjson.dumps(fresh))
        except OSError:
            # A copy on a read-only disk is checked at each opening.
            return


def _seen(folder: Path) -> dict[str, int]:
    """Times of files whose checksums were found right after the build, as in a copied index."""
    try:
        found = orjson.loads((folder / _SEEN).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
