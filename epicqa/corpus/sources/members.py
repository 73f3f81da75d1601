"""Files out of a path: a folder's, an archive's, read member by member and never unpacked, or itself."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from epicqa import streams
from epicqa.errors import EpicqaError
from epicqa.files import is_hidden, text_of

ERRORS = (
    *(*streams.ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError),
    # Of headers that somebody made up.
    *(ValueError, IndexError),
)
"""What reading a member's stream may raise."""

_CHUNK = 1 << 20


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
        chunks: list[bytes] = []
        room = limit
        # In chunks: asked for the limit at once, a file takes that much memory, however short it is.
        while chunk := self._guarded(self.stream.read, min(_CHUNK, room + 1)):
            chunks.append(chunk)
            room -= len(chunk)
            if room < 0:
                raise TooLarge(f"more than {limit:,} bytes")
        return b"".join(chunks)

    def lines(self, limit: int) -> Iterator[tuple[int, bytes | None]]:
        """Its lines that are not blank, with their numbers from 1; None where one is longer than ``limit``.

        Raises:
            Damaged: it cannot be read on.
        """
        number = 0
        while line := self._guarded(self.stream.readline, limit + 1):
            number += 1
            if len(line) > limit:
                while not line.endswith(b"\n") and (line := self._guarded(self.stream.readline, _CHUNK)):
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
        if is_hidden(entry.name):
            continue
        if entry.is_dir():
            yield from _of_folder(
                folder / entry.name, wanted, f"{below}{text_of(entry.name)}/", (*above, real)
            )
        elif wanted(streams.plain_name(entry.name)) and not _is_special(entry):
            yield from _of_file(folder / entry.name, below + text_of(entry.name))


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Whether it is a pipe or a device, which may never end; a link that leads nowhere is told when read."""
    try:
        return not stat.S_ISREG(entry.stat().st_mode)
    except OSError:
        return False


def _of_file(path: Path, name: str) -> Iterator[Member]:
    try:
        raw: IO[bytes] = path.open("rb")
    except OSError as error:
        raw = _unreadable(error)
    with raw:
        yield Member(text_of(name), text_of(path), path, streams.decompressed(raw, path.name))


def _of_tar(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with path.open("rb") as raw:
        plain = streams.decompressed(raw, path.name)
        for name, opened in tar_files(plain, lambda name: _is_wanted(name, wanted)):
            yield _member(path, name, opened)
        # tarfile never looks past the end. Reading on also checks the stream's own end and checksum.
        while rest := plain.read(_CHUNK):
            if any(rest):
                raise tarfile.ReadError("there is more after the archive's end, perhaps a second archive")


def tar_files(stream: IO[bytes], wanted: Callable[[str], bool]) -> Iterator[tuple[str, IO[bytes]]]:
    """The names, as they stand there, and streams of an archive's wanted files; links and devices are none.

    What follows the archive's end mark is not read. Reading may raise one of ``ERRORS``.
    """
    with tarfile.open(fileobj=_Whole(stream), mode="r|") as archive:  # type: ignore[call-overload]
        while (member := archive.next()) is not None:
            # It would remember every file, hundreds of thousands of them.
            archive.members = []
            if member.isfile() and wanted(member.name):
                opened = archive.extractfile(member)
                assert opened is not None
                yield member.name, opened


class _Whole:
    """A stream that is an error to read past its end.

    ``tarfile`` takes a cut between files for the end, and skips what a header claims by reading as often as
    that takes, be there anything or not.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        if not (data := self._stream.read(size)):
            raise tarfile.ReadError("the archive ends without its end mark")
        return data


def _of_zip(path: Path, wanted: Callable[[str], bool]) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and _is_wanted(member.filename, wanted):
                with _opened(archive, member) as opened:
                    yield _member(path, member.filename, opened)


def _opened(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    # Of the other methods the library unpacks 4 KiB at once, to whatever that becomes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return _unreadable(NotImplementedError("neither stored nor deflated"))
    try:
        return archive.open(member)
    except ERRORS as error:
        return _unreadable(error)


class _Unreadable(io.RawIOBase):
    """A file that could not be opened, so that only who reads it minds."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def readable(self) -> bool:
        return True

    def readinto(self, target: object) -> int:
        raise self._error


def _unreadable(error: BaseException) -> IO[bytes]:
    return io.BufferedReader(_Unreadable(error))


def _member(path: Path, name: str, stream: IO[bytes]) -> Member:
    return Member(text_of(name), text_of(f"{path}!{name}"), path, streams.decompressed(stream, name))


def _is_wanted(name: str, wanted: Callable[[str], bool]) -> bool:
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "..")]
    return wanted(streams.plain_name(name)) and not any(map(is_hidden, parts))
