"""News pages as JSON: ``{"WARC-Record-ID", "url", "title", "sentences"}``, a list of them or one a line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.base import BadDocument, kind, need, optional_text
from epicqa.corpus.sources.domains import host_of
from epicqa.corpus.sources.members import Damaged, Member
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece, reason_of
from epicqa.corpus.sources.warc import record_uuid

JSON = "json"
"""The form of such a piece."""

MIN_SENTENCES = 2
"""A page of fewer is left out, as the track's organisers did."""

_BLOCK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
# Of a text that goes on, only its last characters can be what the parser stumbles over: a word, an escape.
_TAIL = 16


class _Broken(Exception):
    """A list that cannot be read on."""


def json_pieces(member: Member, is_wanted: Callable[[str], bool], limit: int) -> Iterator[Piece | LeftOut]:
    """The pages of a ``.json`` (a list) or a ``.jsonl`` (one a line), in order; one or two are in memory at a time.

    Args:
        member: the file.
        is_wanted: says by its address whether a page is wanted; others are ``FILTERED``.
        limit: bytes that one page may have. In a list, what follows a page of several times that is not read.
    """
    number = 0
    is_list = not member.name.lower().split(".json")[-1].startswith("l")
    try:
        for number, raw in _items(member, limit) if is_list else member.lines(limit):
            place = f"{member.file} item {number}" if is_list else f"{member.file}:{number}"
            if raw is None:
                yield LeftOut(place, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size")
            elif is_wanted(_url(raw)):
                yield Piece(place, raw, {"form": JSON})
            else:
                yield LeftOut(place, FILTERED, "of another domain")
    except _Broken as error:
        yield LeftOut(f"{member.file} item {number + 1}", BROKEN, f"{error}; nothing after it was read")
    except Damaged as error:
        yield LeftOut(member.file, BROKEN, reason_of(error, member.container))
