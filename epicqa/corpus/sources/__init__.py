"""Where documents come from: files and archives give records, a format makes each a document.

A new format is one file here and one line in ``FORMATS``. What ``epicqa collect`` reads (releases, pages,
news, forums) are raw sources, see ``raw``.
"""

from __future__ import annotations

import codecs
from typing import Any

import orjson

from epicqa.corpus.model import Document
from epicqa.corpus.sources import epicqa_json, fever, plain, scifact
from epicqa.corpus.sources.base import BadDocument, Format, Record, kind
from epicqa.corpus.sources.reading import records

__all__ = ["FORMATS", "BadDocument", "Format", "Record", "parse", "records"]

# The first that accepts a record reads it; the last accepts whatever is left and says what it misses.
FORMATS: tuple[Format, ...] = (fever.FORMAT, plain.FORMAT, scifact.FORMAT, epicqa_json.FORMAT)


def parse(raw: bytes) -> Document:
    """The document in one JSON record.

    Raises:
        BadDocument: a ``ValueError``; one line says what is wrong, ``document_id`` is set where known.
    """
    record = _load(raw)
    return next(known for known in FORMATS if known.accepts(record)).document(record)


def _load(raw: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(raw.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        try:
            raw.decode()
        except UnicodeDecodeError as bad:
            raise BadDocument(f"not UTF-8: byte 0x{raw[bad.start]:02x} at offset {bad.start}") from None
        raise BadDocument(f"broken JSON: {error}") from None
    if not isinstance(record, dict):
        raise BadDocument(f"a document must be a JSON object, not {kind(record)}")
    return record
