"""The records of a WARC file, one by one, whatever the file holds.

warcio reads their headers. Its own iterator is not used: it takes a cut file for the end, writes to the
terminal, and reads lines of any length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import ERRORS, Damaged, Member, damaged
from epicqa.corpus.sources.raw import BROKEN, LeftOut

if TYPE_CHECKING:
    from warcio.statusandheaders import StatusAndHeaders

MAX_HEADERS = 1 << 18
"""Bytes that the headers of a record, or of the response in it, may have."""

_BLOCK = 1 << 16
_FIRST_LINE = re.compile(rb"WARC/[01]\.[0-9]+\s*")
_NUMBER = re.compile(r"[0-9]{1,18}")


class Stream:
    """A member's bytes; ``at`` is how many were read. Reading may raise ``Damaged``."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.at = 0
        self._damage: Damaged | None = None

    def read(self, size: int) -> bytes:
        """So many bytes; fewer only at the end, or before damage, which is raised the next time."""
        blocks = []
        while size and not self._damage:
            try:
                # What was read before damage comes out of this one only.
                block: bytes = self.member.stream.read1(size)  # type: ignore[attr-defined]
            except ERRORS as error:
                self._damage = damaged(self.member.container, error)
                break
            if not block:
                break
            blocks.append(block)
            size -= len(block)
        data = b"".join(blocks)
        if self._damage and not data:
            raise self._damage
        self.at += len(data)
        return data

    def readline(self, size: int) -> bytes:
        """A line, or so many bytes of it; empty at the end."""
        if self._damage:
            raise self._damage
        try:
            line = self.member.stream.readline(size)
        except ERRORS as error:
            raise damaged(self.member.container, error) from error
        self.at += len(line)
        return line


@dataclass(slots=True)
class Record:
    """A record, good until the next is asked for.

    Attributes:
        place: the file and, in bytes of its decompressed form, where in it.
        length: bytes of the block, as the headers have it.
        left: bytes of the block that were not read yet.
    """

    place: str
    length: int
    left: int
    _headers: StatusAndHeaders
    _stream: Stream

    def get(self, name: str) -> str:
        """A header; empty where there is none."""
        value: str = self._headers.get_header(name, "")
        return value.strip()

    def read(self, size: int) -> bytes:
        """So many bytes of the block; fewer where the block ends, or the file (then some are ``left``)."""
        data = self._stream.read(min(size, self.left))
        self.left -= len(data)
        return data


def headers_of(block: bytes) -> StatusAndHeaders:
    """The first line and the headers in a block of bytes."""
    from warcio.statusandheaders import StatusAndHeadersParser

    return StatusAndHeadersParser([], verify=False).parse(BytesIO(block))


def warc_records(stream: Stream) -> Iterator[Record | LeftOut]:
    """The records of a file in its order; what is not read of a block is skipped, and never in memory.

    What stands between records, a record without a length, and one that the file does not hold whole (which
    was given out by then) are a ``LeftOut`` each; what can be read after them is read.

    Raises:
        Damaged: the file cannot be read on.
    """
    file = stream.member.file
    line = _next_line(stream)
    if not line:
        yield LeftOut(file, BROKEN, "holds no record, expected a WARC file")
    while line:
        place = f"{file} byte {stream.at - len(line)}"
        try:
            record = _record(stream, line, place)
        except BadDocument as error:
            yield LeftOut(place, BROKEN, str(error))
            line = _next_record(stream)
            continue
        yield record
        while record.left and record.read(_BLOCK):
            pass
        if record.left:
            there = record.length - record.left
            yield LeftOut(place, BROKEN, f"the file ends after {there:,} of its {record.length:,} bytes")
        line = _next_line(stream)


def _next_line(stream: Stream) -> bytes:
    """The next line that is not blank; empty at the end."""
    while (line := stream.readline(_BLOCK)) and not line.strip():
        pass
    return line


def _next_record(stream: Stream) -> bytes:
    """The next line that begins a record, whatever stands before it; empty at the end."""
    fresh = True
    while line := stream.readline(_BLOCK):
        if fresh and _FIRST_LINE.fullmatch(line):
            break
        fresh = line.endswith(b"\n")
    return line


def _record(stream: Stream, line: bytes, place: str) -> Record:
    """The record that begins with a line.

    Raises:
        BadDocument: there is none.
    """
    if not _FIRST_LINE.fullmatch(line):
        raise BadDocument("no record begins here, expected WARC/1.0 or WARC/1.1; went on at the next")
    start = stream.at - len(line)
    lines = [line]
    while line.strip():
        if not (line := stream.readline(_BLOCK)):
            raise BadDocument("the file is cut short, in the headers of a record")
        if stream.at - start > MAX_HEADERS:
            raise BadDocument(f"the headers of a record are longer than {MAX_HEADERS:,} bytes")
        lines.append(line)
    headers = headers_of(b"".join(lines))
    given = headers.get_header("Content-Length", "").strip()
    if not _NUMBER.fullmatch(given):
        raise BadDocument(f"the Content-Length of a record is {given[:80]!r}, expected a number of bytes")
    return Record(place, int(given), int(given), headers, stream)
