"""SciFact's abstracts, ``{doc_id, title, abstract: [sentence], structured}``: one context, split as given.

A sentence's number is its place in ``abstract``, which is how rationales name it. White space around
sentences is dropped. A blank one, whose span would be none, stands as a dash, so that those after it keep
their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicqa.corpus.model import Context, Document, Sentence
from epicqa.corpus.sources.base import (
    BadDocument,
    Format,
    checked_id,
    checked_metadata,
    kind,
    need,
    optional_text,
)
from epicqa.ids import ContextId, SentenceId

SECTION = "Abstract"

_BLANK = "–"
_KEYS = ("doc_id", "title", "abstract")


def document(record: Mapping[str, Any]) -> Document:
    """Read one abstract; its id is its number's digits, keys without a meaning here are metadata."""
    number = need(record, "doc_id", int)
    if number < 0:
        raise BadDocument(f"'doc_id' must be a whole number from 0, not {number}")
    document_id = checked_id(str(number))
    try:
        return Document(
            document_id=document_id,
            title=optional_text(record, "title"),
            url=None,
            contexts=(_context(ContextId(document_id, 0), need(record, "abstract", list)),),
            metadata=checked_metadata({k: v for k, v in record.items() if k not in _KEYS}),
        )
    except BadDocument as error:
        error.document_id = document_id
        raise


def _context(context_id: ContextId, given: list[Any]) -> Context:
    for place, sentence in enumerate(given):
        if not isinstance(sentence, str):
            raise BadDocument(f"'abstract' must hold strings, not {kind(sentence)} (sentence {place})")
    texts = [sentence.strip() for sentence in given]
    if not any(texts):
        raise BadDocument("the abstract is empty")
    sentences = []
    start = 0
    for place, text in enumerate(texts):
        texts[place] = text = text or _BLANK
        sentences.append(Sentence(str(SentenceId(*context_id, place)), start, start + len(text)))
        start += len(text) + 1
    return Context(str(context_id), SECTION, " ".join(texts), tuple(sentences))


FORMAT = Format(
    "scifact",
    accepts=lambda record: (
        "doc_id" in record and "abstract" in record and "document_id" not in record and "id" not in record
    ),
    document=document,
)
