"""Documents before they have sentences and ids, and how they get them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from epicqa.corpus.model import Context, Document, Sentence
from epicqa.corpus.sentences import split
from epicqa.corpus.sources.base import BadDocument, checked_id, checked_metadata
from epicqa.ids import ContextId, SentenceId

MAX_SENTENCES = 15
MAX_CHARACTERS = 1000

# Control characters but tab and line feed, halves of surrogate pairs, and what is no character at all.
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_LAST_SPACE = re.compile(r".*\s", re.DOTALL)


class NoText(BadDocument):
    """A draft whose paragraphs are all blank."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A piece of text that passages may not leave.

    Attributes:
        text: as its source has it.
        section: the heading it stands under, of nested ones all, joined by `` - ``.
        sentences: spans in ``text`` where its source marked them, code points, end exclusive; else None.
    """

    text: str
    section: str | None = None
    sentences: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What a source knows of a document.

    Attributes:
        paragraphs: in reading order; blank ones are dropped later.
        title, url: None where there is none.
        document_id: the source's own id; None stands for one made of the content.
        metadata: further JSON values to keep. ``urls`` stands for all addresses, ``url`` being the first.
    """

    paragraphs: tuple[Paragraph, ...]
    title: str | None = None
    url: str | None = None
    document_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def clean(text: str) -> str:
    """A text with a space for each character that is none, trimmed; what else it holds stays as it is."""
    return _UNWANTED.sub(" ", text).strip()


def address(url: str | None) -> str | None:
    """A URL on one line, as documents and tables of ids hold it; None where there is none."""
    return " ".join(clean(url or "").split()) or None


def content_id(draft: Draft) -> str:
    """The hex SHA-1 of the paragraphs' texts in UTF-8, one after the other, as the track's pages have it."""
    digest = hashlib.sha1(usedforsecurity=False)
    for paragraph in draft.paragraphs:
        digest.update(clean(paragraph.text).encode())
    return digest.hexdigest()


def assemble(
    draft: Draft, *, max_sentences: int = MAX_SENTENCES, max_characters: int = MAX_CHARACTERS
) -> Document:
    """The document of a draft: a context a paragraph, split into sentences.

    A paragraph of more than ``max_sentences`` becomes several contexts of that many; a sentence of more than
    ``max_characters`` is cut at the last white space before, where it has one.

    Raises:
        BadDocument: there is no text (``NoText``), the id cannot stand in a run, metadata cannot be stored.
    """
    document_id = checked_id(content_id(draft) if draft.document_id is None else draft.document_id)
    try:
        contexts: list[Context] = []
        for paragraph in draft.paragraphs:
            text, spans = _spans(paragraph)
            cut = [piece for span in spans for piece in _cut(text, *span, max_characters)]
            section = clean(paragraph.section or "") or None
            for first in range(0, len(cut), max_sentences):
                context_id = ContextId(document_id, len(contexts))
                contexts.append(_context(context_id, section, text, cut[first : first + max_sentences]))
        if not contexts:
            raise NoText("no text")
        return Document(
            document_id=document_id,
            title=clean(draft.title or "") or None,
            url=address(draft.url),
            contexts=tuple(contexts),
            metadata=checked_metadata(draft.metadata),
        )
    except BadDocument as error:
        error.document_id = document_id
        raise


def document_json(document: Document) -> bytes:
    """One line of JSON in the track's form, with its line feed."""
    first = next((url for url in document.metadata.get("urls") or () if url.strip()), None)
    addresses = {} if document.url == first else {"url": document.url}
    value = {
        "document_id": document.document_id,
        "metadata": {"title": document.title, **addresses, **document.metadata},
        "contexts": [
            {
                "section": context.section,
                "context_id": context.context_id,
                "text": context.text,
                "sentences": [
                    {"sentence_id": one.sentence_id, "start": one.start, "end": one.end}
                    for one in context.sentences
                ],
            }
            for context in document.contexts
        ],
    }
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _spans(paragraph: Paragraph) -> tuple[str, list[tuple[int, int]]]:
    if paragraph.sentences is None:
        text = clean(paragraph.text)
        return text, split(text)
    # Marked spans hold only as long as nothing before them is trimmed.
    text = _UNWANTED.sub(" ", paragraph.text)
    trimmed = (_trim(text, *span) for span in paragraph.sentences)
    return text, [(start, end) for start, end in trimmed if start < end]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _cut(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """The pieces of a span, each at most ``limit`` characters, none of them blank, and trimmed."""
    while end - start > limit:
        # The character after the limit counts: it may be the white space itself.
        space = _LAST_SPACE.match(text, start + 1, start + limit + 1)
        at = space.end() if space else start + limit
        first, last = _trim(text, start, at)
        yield first, last
        start, _ = _trim(text, at, end)
    yield start, end


def _context(context_id: ContextId, section: str | None, text: str, spans: list[tuple[int, int]]) -> Context:
    first, last = spans[0][0], spans[-1][1]
    sentences = (
        Sentence(str(SentenceId(*context_id, number)), start - first, end - first)
        for number, (start, end) in enumerate(spans)
    )
    return Context(str(context_id), section, text[first:last], tuple(sentences))
