"""What a packed CORD-19 release holds, unpacked once, and nowhere but below the folder given."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from epicqa import streams
from epicqa.corpus.sources.members import Damaged, Member, damaged, members, tar_files
from epicqa.corpus.sources.raw import BROKEN, TOO_LARGE, LeftOut, reason_of
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, text_of

PARTS = (
    "document_parses",
    "comm_use_subset",
    "noncomm_use_subset",
    "custom_license",
    "pmc_custom_license",
    "biorxiv_medrxiv",
    "arxiv",
)
"""Folders of parses: the later releases' one, and the subsets of those before."""

UNSAFE = "unsafe path"

_REPORT = ".unpacked.jsonl"
# Text shrinks to a tenth at most; what grows a hundredfold is made to fill disks.
_TIMES = 100
_LEAST_ON_DISK = 4096
# What a name alone can cause, when a file is made; any other failure is the disk's.
_BAD_NAME = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST)


def is_archive(name: str) -> bool:
    """Whether a file of this name is read as an archive."""
    return name.lower().endswith(".zip") or streams.plain_name(name).endswith(".tar")


def is_metadata(name: str) -> bool:
    """Whether a file of this name, lower case, is the table of a release."""
    return name == "metadata.csv" or (name.startswith("all_sources_metadata") and name.endswith(".csv"))


def is_packed_part(name: str) -> bool:
    """Whether a file of this name, lower case and without a compression's suffix, is a part, packed."""
    return name.removesuffix(".tar").removesuffix(".zip") in PARTS and name.endswith((".tar", ".zip"))


def unpacked(archive: Path, folder: Path, limit: int) -> Iterator[LeftOut]:
    """Unpack parses and metadata, also of packed parts inside, unless that is done; yields what was left out.

    ``folder`` is there once all of it is, and belongs to this archive. An archive may unpack to ``limit``
    bytes and a hundred times its own size, a parse to ``limit`` bytes.

    Raises:
        EpicqaError: the disk is full or not writable.
    """
    known = archive.stat()
    mark = {"size": known.st_size, "mtime_ns": known.st_mtime_ns, "limit": limit}
    try:
        if not _is_done(folder, mark):
            remove_tree(folder)
            half = folder.with_name(f"{folder.name}.part")
            remove_tree(half)
            half.mkdir(parents=True)
            with (half / _REPORT).open("wb") as report:
                report.write(orjson.dumps(mark, option=orjson.OPT_APPEND_NEWLINE))
                for left in _unpack(archive, half, limit, _Budget(limit + _TIMES * known.st_size)):
                    report.write(orjson.dumps(asdict(left), option=orjson.OPT_APPEND_NEWLINE))
            half.replace(folder)
        with (folder / _REPORT).open("rb") as report:
            next(report)
            for line in report:
                yield LeftOut(**orjson.loads(line))
    except OSError as error:
        raise EpicqaError(f"{folder}: cannot be written: {error.strerror}") from error


def _is_done(folder: Path, mark: dict[str, int]) -> bool:
    try:
        with (folder / _REPORT).open("rb") as report:
            return bool(orjson.loads(report.readline()) == mark)
    except (OSError, ValueError):
        return False


class _Budget:
    """How much may still be written."""

    def __init__(self, size: int) -> None:
        self.size = self.left = size

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _Exhausted(
                f"unpacks to more than {self.size:,} bytes, {_TIMES} times its size; the rest is left out"
            )


class _Exhausted(Exception):
    """A budget was not enough."""


def _unpack(archive: Path, folder: Path, limit: int, budget: _Budget) -> Iterator[LeftOut]:
    try:
        for member in members(archive, _is_wanted, "a packed CORD-19 release"):
            try:
                name = member.name.lower()
                if is_packed_part(streams.plain_name(name.rpartition("/")[2])):
                    for inner in _inside(member):
                        yield from _store(inner, folder, limit, budget)
                elif name.endswith((".json", ".csv")):
                    yield from _store(member, folder, limit, budget)
            except Damaged as error:
                yield LeftOut(member.file, BROKEN, reason_of(error, member.container))
    except Damaged as error:
        yield LeftOut(text_of(archive), BROKEN, reason_of(error, archive))
    except _Exhausted as error:
        yield LeftOut(text_of(archive), TOO_LARGE, str(error))


def _is_wanted(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.endswith(".json") or is_metadata(last) or (is_packed_part(last) and last.endswith(".tar"))


def _inside(member: Member) -> Iterator[Member]:
    """The parses of an archive in an archive, which belong where that lies."""
    above = member.name.rpartition("/")[0]
    try:
        for given, opened in tar_files(member.stream, lambda name: name.lower().endswith(".json")):
            inner = text_of(given)
            name = f"{above}/{inner}" if above and not inner.startswith("/") else inner
            yield Member(name, f"{member.file}!{inner}", member.container, opened)
    except Exception as error:  # the library raises whatever a made-up header leads it to
        raise damaged(member.container, error) from error


def _store(member: Member, folder: Path, limit: int, budget: _Budget) -> Iterator[LeftOut]:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or "\0" in member.name:
        yield LeftOut(member.file, UNSAFE, "leads out of the archive, expected a path below it")
        return
    budget.spend(_LEAST_ON_DISK)
    path = folder.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.open("wb")
    except OSError as error:
        if error.errno not in _BAD_NAME:
            raise
        yield LeftOut(member.file, UNSAFE, f"cannot be the name of a file: {error.strerror}")
        return
    size = 0
    whole = False
    try:
        with written:
            for chunk in _chunks(member):
                size += len(chunk)
                if size > limit and path.suffix.lower() != ".csv":
                    yield LeftOut(member.file, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size")
                    return
                budget.spend(len(chunk))
                written.write(chunk)
        whole = True
    finally:
        if not whole:
            path.unlink()


def _chunks(member: Member) -> Iterator[bytes]:
    while True:
        try:
            chunk = member.stream.read(1 << 20)
        except Exception as error:  # as above
            raise damaged(member.container, error) from error
        if not chunk:
            return
        yield chunk
