"""Records out of a SOURCE: a folder, a file, or an archive read member by member."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from epicqa import streams
from epicqa.corpus.sources.base import Record
from epicqa.errors import EpicqaError

_ERRORS = (*streams.ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
_WANTED = ".json, .jsonl (plain, .gz, .xz or .zst), .tar.gz, .tgz, .zip or a folder"


def records(source: Path) -> Iterator[Record]:
    """The records of a source in its order: paths sorted in a folder, members as stored in an archive.

    Blank lines of a ``.jsonl`` are no records. Hidden files and files of other kinds inside folders and
    archives are passed over.

    Raises:
        EpicqaError: the source is missing, of an unknown kind, damaged or cut short, or holds no record.
    """
    if not source.exists():
        raise EpicqaError(f"{source}: no such file or folder")
    if source.is_dir():
        found = _of_folder(source)
    elif source.name.lower().endswith(".zip"):
        found = _guarded(source, _of_zip(source))
    elif streams.plain_name(source.name).endswith(".tar"):
        found = _guarded(source, _of_tar(source))
    elif _is_document_file(source.name):
        found = _of_file(source)
    else:
        raise EpicqaError(f"{source}: unknown kind of file, expected {_WANTED}")
    nothing = True
    for record in found:
        nothing = False
        yield record
    if nothing:
        raise EpicqaError(f"{source}: holds no documents, expected .json or .jsonl (plain, .gz, .xz or .zst)")


def _is_document_file(name: str) -> bool:
    return streams.plain_name(name).endswith((".json", ".jsonl"))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _guarded(path: Path, found: Iterator[Record]) -> Iterator[Record]:
    """The same records, with whatever reading ``path`` raises as one line."""
    try:
        yield from found
    except _ERRORS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EpicqaError(f"{path}: cannot be read, damaged or cut short: {reason}") from error


def _of_folder(folder: Path, above: tuple[str, ...] = ()) -> Iterator[Record]:
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
            yield from _of_folder(folder / entry.name, (*above, real))
        elif _is_document_file(entry.name):
            yield from _of_file(folder / entry.name)


def _of_file(path: Path) -> Iterator[Record]:
    def found() -> Iterator[Record]:
        with path.open("rb") as stream:
            yield from _of_stream(stream, path.name, str(path))

    return _guarded(path, found())


def _of_tar(path: Path) -> Iterator[Record]:
    with path.open("rb") as raw:
        stream = _Tail(streams.decompressed(raw, path.name))
        with tarfile.open(fileobj=stream, mode="r|") as archive:  # type: ignore[call-overload]
            for member in archive:
                if member.isfile() and _is_document_member(member.name):
                    opened = archive.extractfile(member)
                    assert opened is not None
                    yield from _of_stream(opened, member.name, f"{path}!{member.name}")
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


def _of_zip(path: Path) -> Iterator[Record]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and _is_document_member(member.filename):
                with archive.open(member) as opened:
                    yield from _of_stream(opened, member.filename, f"{path}!{member.filename}")


def _is_document_member(name: str) -> bool:
    return _is_document_file(name) and not any(
        _is_hidden(part) for part in PurePosixPath(name).parts if part not in (".", "..")
    )


def _of_stream(stream: IO[bytes], name: str, file: str) -> Iterator[Record]:
    # A name that is not UTF-8 could not be written to the report.
    file = os.fsencode(file).decode("utf-8", "backslashreplace")
    plain = streams.decompressed(stream, name)
    if streams.plain_name(name).endswith(".json"):
        yield Record(plain.read(), file)
        return
    for number, line in enumerate(plain, start=1):
        if line.strip():
            yield Record(line, file, number)
