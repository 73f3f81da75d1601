"""What sources share: the record, the format, and the checks that every format makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from epicqa.corpus.model import Document
from epicqa.normal import is_unicode


class BadDocument(ValueError):
    """A record that is no document: the message is the reason, ``document_id`` is set where it is known."""

    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """The bytes of one document and where they stand.

    Attributes:
        raw: the JSON text, undecoded.
        file: the path as given; inside an archive ``ARCHIVE!MEMBER``.
        line: 1-based line of a ``.jsonl``; None where the whole file is the document.
    """

    raw: bytes
    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """One shape of JSON document: ``accepts`` looks at keys only, ``document`` raises ``BadDocument``."""

    name: str
    accepts: Callable[[Mapping[str, Any]], bool]
    document: Callable[[Mapping[str, Any]], Document]


_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def kind(value: object) -> str:
    """The JSON name of a value's type, with its article."""
    return _KINDS[type(value)]


def need(record: Mapping[str, Any], key: str, wanted: type, where: str = "") -> Any:
    """A key that must be there and of exactly that type (a boolean is no integer)."""
    if key not in record:
        raise BadDocument(f"{where}missing key {key!r}")
    value = record[key]
    if type(value) is not wanted:
        raise BadDocument(f"{where}{key!r} must be {_KINDS[wanted]}, not {kind(value)}")
    return value


def optional_text(record: Mapping[str, Any], key: str, where: str = "") -> str | None:
    """A text that may be missing, null or blank: all three are None."""
    if record.get(key) is None:
        return None
    text: str = need(record, key, str, where)
    return text if text.strip() else None


def checked_id(document_id: str) -> str:
    """A document id that sentence ids and run files can carry.

    Raises:
        BadDocument: it is empty, holds white space, which separates the columns of a run, or is not Unicode.
    """
    if not document_id:
        raise BadDocument("the document id is empty")
    if not is_unicode(document_id):
        raise BadDocument(f"document id {document_id!r} holds half a character, which no file can hold")
    if any(map(str.isspace, document_id)):
        raise BadDocument(f"document id {document_id!r} holds white space, which no run file can carry")
    return document_id


def checked_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Metadata that can be written again as JSON (what is nested too deeply cannot)."""
    try:
        # As deep as it lies in a document.
        orjson.dumps([metadata])
    except TypeError as error:
        raise BadDocument(f"metadata cannot be stored: {error}") from None
    return metadata
