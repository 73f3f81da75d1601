"""WARC and WET files: the records that hold a page, read one by one, and the pages in them.

Headers and chunks are read by warcio. Its own iterator is not used: it takes a cut file for the end, prints to
the terminal, and reads lines of any length.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import ERRORS, Damaged, Member, TooLarge, damaged
from epicqa.corpus.sources.raw import BROKEN, FILTERED, TOO_LARGE, LeftOut, Piece, reason_of

if TYPE_CHECKING:
    from warcio.statusandheaders import StatusAndHeaders

HTML, TEXT = "html", "text"
"""The forms of page that a piece may hold."""

_MAX_HEADERS = 1 << 18
_BLOCK = 1 << 16
_FIRST_LINE = re.compile(rb"WARC/[01]\.[0-9]+\s*")
_LENGTH = re.compile(r"[0-9]{1,18}")
_RECORD_ID = re.compile(
    r"<?urn:uuid:(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})>?", re.ASCII | re.IGNORECASE
)
_HTTP_END = re.compile(rb"\n\r?\n")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.ASCII | re.IGNORECASE)
# What may stand before the first tag: byte order marks, white space, the zeros of UTF-16.
_BEFORE_TAGS = b"\xef\xbb\xbf\xfe\xff\x00 \t\r\n"


def record_uuid(given: str) -> str:
    """The UUID of a record id, ``urn:uuid:…``, with ``<>`` about it or without.

    Raises:
        BadDocument: it is something else.
    """
    if not (found := _RECORD_ID.fullmatch(given.strip())):
        raise BadDocument(f"record id {given[:80]!r}, expected urn:uuid: and a UUID")
    return found["id"]


def warc_pieces(member: Member, is_wanted: Callable[[str], bool], limit: int) -> Iterator[Piece | LeftOut]:
    """The pages of a WARC or WET file, in its order; only one is in memory at a time.

    Taken are ``response`` records that were answered with 200 and HTML, ``resource`` records of HTML and
    ``conversion`` records of plain text; all others are passed over. ``about`` of a piece holds ``form`` (``HTML``
    or ``TEXT``), ``id`` (the record's UUID), ``url``, ``date`` and, where known, ``charset``, ``transfer`` and
    ``coding``; ``raw`` is the body as it was sent (see `http_body`).

    Args:
        member: the file.
        is_wanted: says by its address whether a page is wanted; others are ``FILTERED``, their bodies skipped.
        limit: bytes that one record may have.
    """
    stream = _Stream(member)
    try:
        yield from _pieces(stream, is_wanted, limit)
    except Damaged as error:
        yield LeftOut(f"{member.file} byte {stream.at}", BROKEN, reason_of(error, member.container))


def http_body(raw: bytes, transfer: str, coding: str, limit: int) -> bytes:
    """A body as its sender wrote it, out of one as it was sent.

    Some crawlers store bodies decoded and leave the headers as they were, so what cannot be decoded and begins
    with a tag is taken as it is. One that is cut short is taken as far as it goes.

    Args:
        raw: the body.
        transfer, coding: what ``Transfer-Encoding`` and ``Content-Encoding`` said; empty where they were not there.
        limit: bytes that it may have in the end.

    Raises:
        BadDocument: it cannot be decoded.
        TooLarge: it is longer than ``limit``.
    """
    from warcio.bufferedreaders import ChunkedDataReader

    if "chunked" in transfer.lower():
        raw = ChunkedDataReader(BytesIO(raw)).read()
    for name in reversed(coding.lower().split(",")):
        if (name := name.strip()) not in ("", "identity", "none"):
            try:
                raw = _decoded(raw, name, limit + 1)
            except (ValueError, zlib.error) as error:
                if raw.lstrip(_BEFORE_TAGS).startswith(b"<"):
                    break
                raise BadDocument(f"the body cannot be decoded: {error}") from None
    if len(raw) > limit:
        raise TooLarge(f"more than {limit:,} bytes")
    return raw


class _Stream:
    """A member's bytes; ``at`` is how many were read."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self.file = member.file
        self.at = 0

    def read(self, size: int) -> bytes:
        return self._guarded(self._member.stream.read, size)

    def readline(self, size: int) -> bytes:
        return self._guarded(self._member.stream.readline, size)

    def _guarded(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            data = read(size)
        except ERRORS as error:
            raise damaged(self._member.container, error) from error
        self.at += len(data)
        return data


@dataclass(slots=True)
class _Record:
    """A record's headers, and its block as far as it was not read yet."""

    place: str
    headers: StatusAndHeaders
    stream: _Stream
    length: int
    left: int

    def get(self, name: str) -> str:
        value: str = self.headers.get_header(name, "")
        return value.strip()

    def read(self, size: int) -> bytes:
        """At most so many bytes; fewer only where the block, or the file, ends."""
        data = self.stream.read(min(size, self.left))
        self.left -= len(data)
        return data

    def skip(self) -> bool:
        """Read to its end; whether it was there."""
        while self.left and self.read(_BLOCK):
            pass
        return not self.left


def _pieces(stream: _Stream, is_wanted: Callable[[str], bool], limit: int) -> Iterator[Piece | LeftOut]:
    line = _next_line(stream)
    if not line:
        yield LeftOut(stream.file, BROKEN, "holds no record, expected a WARC file")
    while line:
        start = stream.at - len(line)
        found = _record(stream, line, f"{stream.file} byte {start}")
        if isinstance(found, LeftOut):
            yield found
            line = _next_record(stream)
            continue
        if (piece := _piece(found, is_wanted, limit)) is not None:
            yield piece
        if not found.skip():
            got = found.length - found.left
            yield LeftOut(found.place, BROKEN, f"the file is cut short: {got:,} of {found.length:,} bytes")
            return
        line = _next_line(stream)


def _next_line(stream: _Stream) -> bytes:
    """The next line that is not blank; empty at the end."""
    while (line := stream.readline(_BLOCK)) and not line.strip():
        pass
    return line


def _next_record(stream: _Stream) -> bytes:
    """The next line that begins a record, whatever stands before it; empty at the end."""
    fresh = True
    while line := stream.readline(_BLOCK):
        if fresh and _FIRST_LINE.fullmatch(line):
            return line
        fresh = line.endswith(b"\n")
    return b""


def _record(stream: _Stream, line: bytes, place: str) -> _Record | LeftOut:
    from warcio.statusandheaders import StatusAndHeadersParser

    if not _FIRST_LINE.fullmatch(line):
        return LeftOut(place, BROKEN, "no record begins here, expected WARC/1.0 or WARC/1.1; went on at the next")
    lines = [line]
    size = len(line)
    while line.strip():
        line = stream.readline(_BLOCK)
        size += len(line)
        if not line:
            return LeftOut(place, BROKEN, "the file is cut short, in the headers of a record")
        if size > _MAX_HEADERS:
            return LeftOut(place, BROKEN, f"the record's headers are longer than {_MAX_HEADERS:,} bytes")
        lines.append(line)
    headers = StatusAndHeadersParser([], verify=False).parse(BytesIO(b"".join(lines)))
    given = headers.get_header("Content-Length", "").strip()
    if not _LENGTH.fullmatch(given):
        return LeftOut(place, BROKEN, f"the record's Content-Length is {given[:80]!r}, expected a number of bytes")
    return _Record(place, headers, stream, int(given), int(given))


def _piece(record: _Record, is_wanted: Callable[[str], bool], limit: int) -> Piece | LeftOut | None:
    """What a record comes to; None for one that is passed over or, as its caller will see, cut short."""
    kind = record.get("WARC-Type").lower()
    declared = record.get("Content-Type")
    if not (
        kind == "response"
        or (kind == "resource" and _is_html(declared))
        or (kind == "conversion" and _media_type(declared) == "text/plain")
    ):
        return None
    # Some crawlers write <> about it.
    url = record.get("WARC-Target-URI").removeprefix("<").removesuffix(">")
    if not is_wanted(url):
        return LeftOut(record.place, FILTERED, "of another domain")
    try:
        document_id = record_uuid(record.get("WARC-Record-ID"))
    except BadDocument as error:
        return LeftOut(record.place, BROKEN, str(error))
    place = f"{record.stream.file} record {document_id}"
    about = {"form": TEXT if kind == "conversion" else HTML, "id": document_id, "url": url}
    about["date"] = record.get("WARC-Date")
    raw = b""
    if kind == "response":
        if not url.lower().startswith(("http:", "https:")):
            return None
        raw = record.read(_MAX_HEADERS)
        if record.left and len(raw) < _MAX_HEADERS:
            return None
        if not (end := _HTTP_END.search(raw)):
            return LeftOut(place, BROKEN, f"its HTTP headers do not end within {_MAX_HEADERS:,} bytes", document_id)
        http = _http(raw[: end.end()])
        declared = http.get_header("Content-Type") or record.get("WARC-Identified-Payload-Type")
        if http.get_statuscode() != "200" or not _is_html(declared):
            return None
        raw = raw[end.end() :]
        about["transfer"] = http.get_header("Transfer-Encoding", "")
        about["coding"] = http.get_header("Content-Encoding", "")
    if len(raw) + record.left > limit:
        return LeftOut(place, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size", document_id)
    raw += record.read(record.left)
    if record.left:
        return None
    if charset := _CHARSET.search(declared):
        about["charset"] = charset[1]
    return Piece(place, raw, {key: value for key, value in about.items() if value})


def _http(block: bytes) -> StatusAndHeaders:
    from warcio.statusandheaders import StatusAndHeadersParser

    return StatusAndHeadersParser([], verify=False).parse(BytesIO(block))


def _media_type(declared: str) -> str:
    return declared.partition(";")[0].strip().lower()


def _is_html(declared: str) -> bool:
    return _media_type(declared) in ("text/html", "application/xhtml+xml")


def _decoded(raw: bytes, name: str, size: int) -> bytes:
    """At most the first ``size`` bytes of a body of this ``Content-Encoding``."""
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(raw, size)
    if name == "deflate":
        # Some servers send it without the header that it should have.
        try:
            return zlib.decompressobj().decompress(raw, size)
        except zlib.error:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, size)
    if name == "br":
        return _brotli(raw, size)
    raise ValueError(f"Content-Encoding {name[:40]!r} is unknown, expected gzip, deflate or br")


def _brotli(raw: bytes, size: int) -> bytes:
    try:
        import brotli
    except ImportError:
        raise ValueError("Content-Encoding br needs the package brotli") from None
    decoder = brotli.Decompressor()
    found = b""
    try:
        while len(found) < size:
            more = decoder.process(b"" if found else raw, output_buffer_limit=size - len(found))
            if not more:
                break
            found += more
    except brotli.error as error:
        raise ValueError(f"brotli: {error}") from None
    return found
