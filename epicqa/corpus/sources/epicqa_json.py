"""The track's own documents: ``document_id``, ``metadata``, ``contexts`` with sentence spans."""

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
from epicqa.ids import parse_context_id, parse_sentence_id


def document(record: Mapping[str, Any]) -> Document:
    """Read and check one document of the track.

    Context numbers ascend and sentence numbers are consecutive, so that a passage is a run of rows.
    """
    document_id = checked_id(need(record, "document_id", str))
    try:
        metadata = {} if record.get("metadata") is None else need(record, "metadata", dict)
        contexts = need(record, "contexts", list)
        if not contexts:
            raise BadDocument("'contexts' is empty: a document needs at least one")
        return Document(
            document_id=document_id,
            title=optional_text(metadata, "title", "metadata: "),
            url=_url(metadata),
            contexts=_contexts(document_id, contexts),
            metadata=checked_metadata(_rest(metadata)),
        )
    except BadDocument as error:
        error.document_id = document_id
        raise


def _url(metadata: Mapping[str, Any]) -> str | None:
    if (url := optional_text(metadata, "url", "metadata: ")) is not None:
        return url
    urls = [] if metadata.get("urls") is None else need(metadata, "urls", list, "metadata: ")
    for url in urls:
        if not isinstance(url, str):
            raise BadDocument(f"metadata: 'urls' must hold strings, not {kind(url)}")
    return next((url for url in urls if url.strip()), None)


def _rest(metadata: Mapping[str, Any]) -> dict[str, Any]:
    single = len(metadata.get("urls") or ()) < 2
    return {k: v for k, v in metadata.items() if k not in ("title", "url") and not (k == "urls" and single)}


def _contexts(document_id: str, contexts: list[Any]) -> tuple[Context, ...]:
    found = []
    previous = -1
    for position, context in enumerate(contexts):
        if not isinstance(context, dict):
            raise BadDocument(f"context {position + 1} must be an object, not {kind(context)}")
        context_id = need(context, "context_id", str, f"context {position + 1}: ")
        number = _context_number(document_id, context_id)
        if number <= previous:
            raise BadDocument(f"context {context_id}: its number must be above {previous}, the one before")
        previous = number
        where = f"context {context_id}: "
        text = need(context, "text", str, where)
        if not text.strip():
            raise BadDocument(f"{where}the text is empty")
        sentences = need(context, "sentences", list, where)
        if not sentences:
            raise BadDocument(f"{where}'sentences' is empty: a context needs at least one")
        section = optional_text(context, "section", where)
        found.append(Context(context_id, section, text, _sentences(context_id, text, sentences)))
    return tuple(found)


def _context_number(document_id: str, context_id: str) -> int:
    try:
        parsed = parse_context_id(context_id)
    except ValueError as error:
        raise BadDocument(str(error)) from None
    if parsed.document_id != document_id:
        raise BadDocument(f"context id {context_id!r} must begin with the document's id {document_id!r}")
    if str(parsed) != context_id:
        raise BadDocument(f"context id {context_id!r} is not canonical, expected {str(parsed)!r}")
    return parsed.context


def _sentences(context_id: str, text: str, sentences: list[Any]) -> tuple[Sentence, ...]:
    found = []
    previous_end = 0
    expected = ""
    number = -1
    for sentence in sentences:
        if type(sentence) is not dict:
            raise BadDocument(f"context {context_id}: a sentence must be an object, not {kind(sentence)}")
        sentence_id = need(sentence, "sentence_id", str, f"context {context_id}: ")
        if sentence_id != expected:
            number = _first_number(context_id, sentence_id, expected)
        number += 1
        expected = f"{context_id}-S{number:03d}"
        # The slow path only words the error: this loop runs once for every sentence of a collection.
        start: Any = sentence.get("start")
        end: Any = sentence.get("end")
        if (
            type(start) is not int
            or type(end) is not int
            or not previous_end <= start < end <= len(text)
            or text[start:end].isspace()
        ):
            _refuse(sentence, text, previous_end)
        previous_end = end
        found.append(Sentence(sentence_id, start, end))
    return tuple(found)


def _first_number(context_id: str, sentence_id: str, expected: str) -> int:
    """The number of a context's first sentence; any other id that is not the expected one is an error."""
    try:
        parsed = parse_sentence_id(sentence_id)
    except ValueError as error:
        raise BadDocument(str(error)) from None
    if str(parsed.context_id) != context_id or not sentence_id.startswith(context_id + "-S"):
        raise BadDocument(f"sentence id {sentence_id!r} must begin with its context's id {context_id!r}")
    if str(parsed) != sentence_id:
        raise BadDocument(f"sentence id {sentence_id!r} is not canonical, expected {str(parsed)!r}")
    if expected:
        raise BadDocument(
            f"sentence id {sentence_id!r} does not follow the one before, expected {expected!r}"
        )
    return parsed.sentence


def _refuse(sentence: Mapping[str, Any], text: str, previous_end: int) -> None:
    where = f"sentence {sentence['sentence_id']}: "
    start, end = need(sentence, "start", int, where), need(sentence, "end", int, where)
    if start < 0 or max(start, end) > len(text):
        raise BadDocument(f"{where}span {start}-{end} is outside the text of {len(text)} characters")
    if end < start:
        raise BadDocument(f"{where}end {end} is before start {start}")
    if start == end or text[start:end].isspace():
        raise BadDocument(f"{where}span {start}-{end} is blank")
    raise BadDocument(f"{where}start {start} overlaps the sentence before, which ends at {previous_end}")


FORMAT = Format("epicqa", accepts=lambda record: True, document=document)
