"""Plain documents, ``{id, title?, text, url?}``: paragraphs become contexts, split into sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from epicqa.corpus.model import Context, Document, Sentence
from epicqa.corpus.sentences import split
from epicqa.corpus.sources.base import (
    BadDocument,
    Format,
    checked_id,
    checked_metadata,
    need,
    optional_text,
)
from epicqa.ids import ContextId, SentenceId

_BLANK_LINES = re.compile(r"\n\s*\n")
_KEYS = ("id", "title", "text", "url")


def document(record: Mapping[str, Any]) -> Document:
    """Read one plain document; an integer ``id`` is taken as its digits, other keys are metadata."""
    given = record["id"]
    document_id = checked_id(str(given) if type(given) is int else need(record, "id", str))
    try:
        paragraphs = [part for part in map(str.strip, _BLANK_LINES.split(need(record, "text", str))) if part]
        if not paragraphs:
            raise BadDocument("the text is empty")
        return Document(
            document_id=document_id,
            title=optional_text(record, "title"),
            url=optional_text(record, "url"),
            contexts=tuple(_context(ContextId(document_id, i), part) for i, part in enumerate(paragraphs)),
            metadata=checked_metadata({k: v for k, v in record.items() if k not in _KEYS}),
        )
    except BadDocument as error:
        error.document_id = document_id
        raise


def _context(context_id: ContextId, text: str) -> Context:
    sentences = (
        Sentence(str(SentenceId(*context_id, number)), start, end)
        for number, (start, end) in enumerate(split(text))
    )
    return Context(str(context_id), None, text, tuple(sentences))


FORMAT = Format(
    "plain",
    accepts=lambda record: "id" in record and "document_id" not in record and "contexts" not in record,
    document=document,
)
