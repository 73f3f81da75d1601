"""The body of an HTTP response, out of what a crawler kept of it."""

from __future__ import annotations

import zlib
from io import BytesIO

from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import TooLarge

# What may stand before the first tag: byte order marks, white space, the zeros of UTF-16.
_BEFORE_TAGS = b"\xef\xbb\xbf\xfe\xff\x00 \t\r\n"


def http_body(raw: bytes, transfer: str, coding: str, limit: int) -> bytes:
    """The page that was sent.

    Some crawlers store bodies decoded and leave the headers as they were (CommonCrawl news up to May 2019),
    so what cannot be decoded and begins with a tag is taken as it is. A body cut short is taken as far as it
    goes.

    Args:
        raw: the body as it was sent.
        transfer, coding: ``Transfer-Encoding`` and ``Content-Encoding``; empty where they were not there.
        limit: bytes that the page may have.

    Raises:
        BadDocument: it cannot be decoded.
        TooLarge: it is longer than ``limit``.
    """
    from warcio.bufferedreaders import ChunkedDataReader

    if "chunked" in transfer.lower():
        raw = ChunkedDataReader(BytesIO(raw)).read()
    for name in reversed(coding.lower().split(",")):
        try:
            raw = _decoded(raw, name.strip(), limit + 1)
        except (ValueError, zlib.error) as error:
            if raw.lstrip(_BEFORE_TAGS).startswith(b"<"):
                break
            raise BadDocument(f"the body cannot be decoded: {error}") from None
    if len(raw) > limit:
        raise TooLarge(f"more than {limit:,} bytes")
    return raw


def _decoded(raw: bytes, name: str, size: int) -> bytes:
    """At most the first ``size`` bytes of a body of this ``Content-Encoding``.

    Raises:
        ValueError, zlib.error: it is not of that.
    """
    if name in ("", "identity", "none"):
        return raw
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
    raise ValueError(f"Content-Encoding {name[:40]!r}, expected gzip, deflate or br")


def _brotli(raw: bytes, size: int) -> bytes:
    from brotli import Decompressor, error

    decoder = Decompressor()
    found: bytes = b""
    try:
        while len(found) < size and (more := decoder.process(raw, output_buffer_limit=size)):
            found += more
            raw = b""
    except error:
        raise ValueError("no brotli stream") from None
    return found
