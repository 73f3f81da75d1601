"""Files out of a path: a folder's, an archive's, read member by member and never unpacked, or itself."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from epicqa import streams
from epicqa.errors import EpicqaError
from epicqa.files import text_of

ERRORS = (*streams.ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""What reading a member's stream may raise."""


class Damaged(EpicqaError):
    """A file or archive that is there and cannot be read on: damaged, or cut short."""


class TooLarge(ValueError):
    """More bytes than allowed."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file, open until the next is asked for.

    Attributes:
        name: its path below what was given, with ``/``; of a single file its name.
        file: for messages: the path as given, inside an archive ``ARCHIVE!MEMBER``; Unicode.
        container: the file on disk that holds it.
        stream: its bytes, decompressed; reading may raise one of ``ERRORS``.
    """

    name: str
    file: str
    container: Path
    stream: IO[bytes]

    def read(self, limit: int) -> bytes:
        """The whole of it.

        Raises:
            Damaged: it cannot be read.
            TooLarge: it is, decompressed, longer than ``limit`` bytes.
        """
        data = self._guarded(self.stream.read, limit + 1)
        if len(data) > limit:
            raise TooLarge(f"more than {limit:,} bytes")
        return data

    def lines(self, limit: int) -> Iterator[tuple[int, bytes | None]]:
        """Its lines that are not blank, with their numbers from 1; None where one is longer than ``limit``.

        Raises:
            Damaged: it cannot be read on.
        """
        number = 0
        while line := self._guarded(self.stream.readline, limit + 1):
            number += 1
            if len(line) > limit:
                while not line.endswith(b"\n") and (line := self._guarded(self.stream.readline, 1 << 20)):
                    pass
                yield number, None
            elif line.strip():
                yield number, line

    def _guarded(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except ERRORS as error:
            raise damaged(self.container, error) from error


def damaged(path: Path, error: BaseException) -> Damaged:
    """What reading ``path`` raised, as one line."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return Damaged(f"{path}: cannot be read, damaged or cut short: {reason}")


def members(source: Path, wanted: Callable[[str], bool], expected: str) -> Iterator[Member]:
    """The wanted files of a source in its order: paths sorted in a folder, members as stored in an archive.

    Archives are ``.tar``, ``.tgz``, ``.tar`` compressed, and ``.zip``, read in place. Hidden files in folders
    and archives are passed over.

    Args:
        source: a folder, an archive or one wanted file.
        wanted: says by its name, lower case and without a compression's suffix, whether a file is wanted.
        expected: what is wanted, in words, for messages.

    Raises:
        EpicqaError: the source is missing or of another kind.
        Damaged: an archive cannot be read on.
    """
    if not source.exists():
        raise EpicqaError(f"{source}: no such file or folder")
    if source.is_dir():
        yield from _of_folder(source, wanted)
    elif source.name.lower().endswith(".zip"):
        yield from _guarded(source, _of_zip(source, wanted))
    elif streams.plain_name(source.name).endswith(".tar"):
        yield from _guarded(source, _of_tar(source, wanted))
    elif wanted(streams.plain_name(source.name)):
        yield from _of_file(source, source.name)
    else:
        raise EpicqaError(f"{source}: unknown kind of file, expected {expected}")


def _guarded(path: Path, found: Iterator[Member]) -> Iterator[Member]:
    try:
        yield from found
    except ERRORS as error:
        raise damaged(path, error) from error


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _of_folder(
    folder: Path, wanted: Callable[[str], bool], below: str = "", above: tuple[str, ...] = ()
) -> Iterator[Member]:
    try:
        real = os.path.realpath(folder)
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise EpicqaError(f"{folder}: cannot be read: {error.strerror}") from error
    if real in above:
        raise EpicqaError(f"{folder}: a link back to a folder that holds it")
    for entry in entries:
        if _is_hidden(entry.name):
            continue
        if entry.is_dir():
            yield from _of_folder(
                folder / entry.name, wanted, f"{below}{text_of(entry.name)}/", (*above, real)
            )
        elif wanted(streams.plain_name(entry.name)):
            yield from _of_file(folder / entry.name, below + text_of(entry.name))


def _of_file(path: Path, name: str) -> Iterator[Member]:
    try:
        raw = path.open("rb")
    except OSError as error:
        raise damaged(path, error) from error
    with raw:
        yield Member(text_of(name), text_of(path), path, streams.decompressed(raw, path.name))


def _of_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with path.open("rb") as raw:
        stream = _Tail(streams.decompressed(raw, path.name))
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                if member.isfile() and _is_wanted(member.name, wanted):
                    opened = archive.extractfile(member)
                    assert opened is not None
                    yield _member(path, member.name, opened)
        # tarfile takes a cut between members for the end, and never looks past the end. Reading on also
        # checks the stream's own end and checksum.
        if any(stream.last):
            raise tarfile.ReadError("the archive ends without its end mark")
        while rest := stream.read(1 << 20):
            if any(rest):
                raise tarfile.ReadError("there is more after the archive's end, perhaps a second archive")


class _Tail:
    """A stream that remembers the last tar block it gave: zeros where the archive is whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.last = b""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.last = (self.last + data)[-tarfile.BLOCKSIZE :]
        return data


def _of_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and _is_wanted(member.filename, wanted):
                with archive.open(member) as opened:
                    yield _member(path, member.filename, opened)


def _member(path: Path, name: str, stream: IO[bytes]) -> Member:
    return Member(text_of(name), text_of(f"{path}!{name}"), path, streams.decompressed(stream, name))


def _is_wanted(name: str, wanted: Callable[[str], bool]) -> bool:
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "..")]
    return wanted(streams.plain_name(name)) and not any(map(_is_hidden, parts))
