"""News pages as JSON: ``{"WARC-Record-ID", "url", "title", "sentences"}``, a list of them or one a line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from itertools import count

import orjson

from epicqa import streams
from epicqa.corpus.drafts import Draft, Paragraph, clean
from epicqa.corpus.sources.base import BadDocument, kind, need, optional_text
from epicqa.corpus.sources.domains import host_of
from epicqa.corpus.sources.members import Damaged, Member, TooLarge
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece, reason_of
from epicqa.corpus.sources.warc import record_uuid
from epicqa.corpus.sources.warc_records import Stream

JSON = "json"
"""The form of these pieces."""

MIN_SENTENCES = 2
"""A page of fewer is left out, as the track's organisers did."""

_BLOCK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
# Where more is to come, the parser stumbles over the last characters only: half a word, half an escape.
_TAIL = 16


def json_pieces(member: Member, is_wanted: Callable[[str], bool], limit: int) -> Iterator[Piece | LeftOut]:
    """The pages of a ``.json`` (a list) or a ``.jsonl`` (one a line), in its order, undecoded.

    The file may be of any length. Of a list, what follows a broken item is not read, nor what follows one of
    twice ``limit`` bytes or more.

    Args:
        member: the file.
        is_wanted: says by its address whether a page is wanted; others are ``FILTERED``.
        limit: bytes that one page may have.
    """
    lines = streams.plain_name(member.name).endswith(".jsonl")
    separator, number = (":", 0) if lines else (" item ", 0)
    try:
        for number, raw in member.lines(limit) if lines else _items(Stream(member), limit):
            place = f"{member.file}{separator}{number}"
            if raw is None:
                yield LeftOut(place, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size")
            elif (url := _url(raw)) is None or is_wanted(url):
                yield Piece(place, raw, {"form": JSON})
            else:
                yield LeftOut(place, FILTERED, "of another domain")
    except (BadDocument, TooLarge, Damaged) as error:
        place = f"{member.file}{separator}{number + 1}"
        if isinstance(error, Damaged):
            yield LeftOut(place, BROKEN, reason_of(error, member.container))
        elif isinstance(error, TooLarge):
            yield LeftOut(place, TOO_LARGE, f"{error}, see --max-file-size; what follows was not read")
        else:
            yield LeftOut(place, BROKEN, f"{error}; what follows was not read")


def json_draft(piece: Piece) -> Draft | LeftOut:
    """The document of a page: one paragraph of its sentences, joined by spaces.

    Raises:
        BadDocument: it is not of the form.
    """
    try:
        page = orjson.loads(piece.raw.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"broken JSON: {error}") from None
    if not isinstance(page, dict):
        raise BadDocument(f"a page must be a JSON object, not {kind(page)}")
    document_id = record_uuid(need(page, "WARC-Record-ID", str))
    url: str = need(page, "url", str)
    title = optional_text(page, "title")
    given = need(page, "sentences", list)
    for one in given:
        if not isinstance(one, str):
            raise BadDocument(f"'sentences' must hold strings, not {kind(one)}")
    sentences = [one for one in given if clean(one)]
    if title is None:
        return LeftOut(piece.place, EMPTY, "the page has no title", document_id)
    if len(sentences) < MIN_SENTENCES:
        reason = f"the page has fewer than {MIN_SENTENCES} sentences"
        return LeftOut(piece.place, EMPTY, reason, document_id)
    spans = []
    at = 0
    for one in sentences:
        spans.append((at, at + len(one)))
        at += len(one) + 1
    host = host_of(url)
    return Draft(
        paragraphs=(Paragraph(" ".join(sentences), sentences=tuple(spans)),),
        title=title,
        url=url,
        document_id=document_id,
        metadata={"host": host} if host else {},
    )


def _url(raw: bytes) -> str | None:
    """The address of a page, if it is one."""
    try:
        page = orjson.loads(raw.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError:
        return None
    url = page.get("url") if isinstance(page, dict) else None
    return url if isinstance(url, str) else None


def _items(stream: Stream, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """The items of a JSON list, with their numbers from 1; None for one longer than ``limit``.

    Raises:
        BadDocument: it is no list, or an item is no JSON.
        TooLarge: an item is much longer than ``limit``.
        Damaged: it cannot be read on.
    """
    buffer = _Buffer(stream)
    if buffer.next() != "[":
        raise BadDocument("not JSON in UTF-8 that begins with '[', expected a list of pages")
    buffer.at += 1
    for number in count(1):
        if number == 1 and buffer.next() == "]":
            break
        yield number, buffer.item(limit)
        if (after := buffer.next()) not in ("]", ","):
            raise BadDocument("broken JSON: expected ',' or ']' before it")
        if after == "]":
            break
        buffer.at += 1
        buffer.next()
    buffer.at += 1
    if buffer.next():
        raise BadDocument("there is more after the list's end")


class _Buffer:
    """A part of a JSON file; ``at`` is how far it was dealt with.

    It is text in Latin-1: a character a byte, so that nothing can be wrong with it, or be cut in two.
    """

    def __init__(self, stream: Stream) -> None:
        # Only an item's end is taken from here, so its numbers need not be made.
        self._decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
        self._stream = stream
        self._text = ""
        self._ended = False
        self.at = 0
        self._more()
        if self._text.startswith(codecs.BOM_UTF8.decode("latin-1")):
            self.at = len(codecs.BOM_UTF8)

    def next(self) -> str:
        """Go to the next character that is no space; empty at the end."""
        while True:
            self.at = _SPACE.match(self._text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self._text) or self._ended:
                return self._text[self.at : self.at + 1]
            self._more()

    def item(self, limit: int) -> bytes | None:
        """The item that begins here, and go behind it; None for one longer than ``limit``.

        Raises:
            BadDocument: it is no JSON.
            TooLarge: it has no end within twice ``limit`` or more.
        """
        while True:
            try:
                end = self._decode(self._text, self.at)[1]
            except RecursionError:
                raise BadDocument("broken JSON: nested too deeply") from None
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _TAIL
                if self._ended or not cut:
                    raise BadDocument(f"broken JSON: {error.msg}") from None
            else:
                # A number may go on.
                if end < len(self._text) or self._ended or self._text[end - 1] in '}]"':
                    break
            if len(self._text) - self.at > limit:
                raise TooLarge(f"more than {limit:,} bytes")
            self._more()
        start, self.at = self.at, end
        return self._text[start:end].encode("latin-1") if end - start <= limit else None

    def _more(self) -> None:
        """Read as much again as is waiting, so that an item parsed anew each time costs twice at most."""
        block = self._stream.read(max(_BLOCK, len(self._text) - self.at))
        self._text = self._text[self.at :] + block.decode("latin-1")
        self._ended = not block
        self.at = 0
