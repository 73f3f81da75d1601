"""Pages in WARC and WET files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import Damaged, Member
from epicqa.corpus.sources.raw import BROKEN, FILTERED, TOO_LARGE, LeftOut, Piece, reason_of
from epicqa.corpus.sources.warc_records import MAX_HEADERS, Record, Stream, headers_of, warc_records

if TYPE_CHECKING:
    from warcio.statusandheaders import StatusAndHeaders

HTML, TEXT = "html", "text"
"""The forms of page that a piece may hold."""

_RECORD_ID = re.compile(
    r"<?urn:uuid:(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})>?", re.ASCII | re.IGNORECASE
)
_HTTP_END = re.compile(rb"\n\r?\n")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';,]+)""", re.ASCII | re.IGNORECASE)
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_TYPES = {"response": ("application/http", ""), "resource": _HTML_TYPES, "conversion": ("text/plain",)}
"""Types of records, and of what is in them, that hold a page."""


def record_uuid(given: str) -> str:
    """The UUID of a record id, ``urn:uuid:…``, with ``<>`` about it or without.

    Raises:
        BadDocument: it is something else.
    """
    if not (found := _RECORD_ID.fullmatch(given.strip())):
        raise BadDocument(f"the record id is {given[:80]!r}, expected urn:uuid: and a UUID")
    return found["id"]


def warc_pieces(member: Member, is_wanted: Callable[[str], bool], limit: int) -> Iterator[Piece | LeftOut]:
    """The pages of a WARC or WET file, in its order; only one is in memory at a time.

    Taken are ``response`` records that were answered with 200 and HTML, ``resource`` records of HTML and
    ``conversion`` records of plain text; all others are passed over. ``raw`` of a piece is the body as it was
    sent. ``about`` holds ``form`` (``HTML`` or ``TEXT``), ``id`` (the record's UUID) and, where known,
    ``url``, ``date``, ``charset`` and what `http_body` needs, ``transfer`` and ``coding``.

    Args:
        member: the file.
        is_wanted: says by its address whether a page is wanted. Others are ``FILTERED``, and not read.
        limit: bytes that one page may have.
    """
    stream = Stream(member)
    try:
        for record in warc_records(stream):
            if isinstance(record, LeftOut):
                yield record
            elif (found := _found(record, member.file, is_wanted, limit)) is not None:
                yield found
    except Damaged as error:
        yield LeftOut(f"{member.file} byte {stream.at}", BROKEN, reason_of(error, member.container))


def _found(record: Record, file: str, is_wanted: Callable[[str], bool], limit: int) -> Piece | LeftOut | None:
    """What a record comes to; None for one that is passed over, or that the file does not hold whole."""
    kind, declared = record.get("WARC-Type").lower(), record.get("Content-Type")
    if _media_type(declared) not in _TYPES.get(kind, ()):
        return None
    # Some crawlers write <> about it.
    url = record.get("WARC-Target-URI").removeprefix("<").removesuffix(">")
    if not is_wanted(url):
        return LeftOut(record.place, FILTERED, "of another domain")
    try:
        document_id = record_uuid(record.get("WARC-Record-ID"))
        opened = _opened(record) if kind == "response" else (b"", None)
    except BadDocument as error:
        return LeftOut(record.place, BROKEN, str(error))
    if opened is None:
        return None
    raw, http = opened
    form = TEXT if kind == "conversion" else HTML
    about = {"form": form, "id": document_id, "url": url, "date": record.get("WARC-Date")}
    if http is not None:
        declared = http.get_header("Content-Type") or record.get("WARC-Identified-Payload-Type")
        if http.get_statuscode() != "200" or _media_type(declared) not in _HTML_TYPES:
            return None
        about["transfer"] = http.get_header("Transfer-Encoding", "")
        about["coding"] = http.get_header("Content-Encoding", "")
    place = f"{file} record {document_id}"
    if len(raw) + record.left > limit:
        return LeftOut(place, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size", document_id)
    raw += record.read(record.left)
    if record.left:
        return None
    if charset := _CHARSET.search(declared):
        about["charset"] = charset[1]
    return Piece(place, raw, {key: value for key, value in about.items() if value})


def _opened(record: Record) -> tuple[bytes, StatusAndHeaders] | None:
    """What was read of a response's body, and its headers; None where the file does not go as far.

    Raises:
        BadDocument: the headers have no end.
    """
    raw = record.read(MAX_HEADERS)
    if end := _HTTP_END.search(raw):
        return raw[end.end() :], headers_of(raw[: end.end()])
    if record.left and len(raw) < MAX_HEADERS:
        return None
    raise BadDocument(f"no end of HTTP headers in the first {len(raw):,} bytes")


def _media_type(declared: str) -> str:
    return declared.partition(";")[0].strip().lower()
