"""Sentence, context and passage ids of the track: parse, format, compare.

A sentence id is ``DOCUMENT-C000-S000``. The document part may itself contain ``-`` (UUIDs), so ids
are split from the right. An id is canonical when its numbers are padded to exactly three digits or need
more; ids are read with any padding, since runs and judgments from elsewhere have it, and written canonically.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CONTEXT = re.compile(r"(?P<document>\S+)-C(?P<context>[0-9]{1,9})")
_SENTENCE = re.compile(r"(?P<document>\S+)-C(?P<context>[0-9]{1,9})-S(?P<sentence>[0-9]{1,9})")


class ContextId(NamedTuple):
    """A context's document and its number in it."""

    document_id: str
    context: int

    def __str__(self) -> str:
        return f"{self.document_id}-C{self.context:03d}"


class SentenceId(NamedTuple):
    """A sentence's document, its context's number, and its own number in the context.

    Ids compare as tuples: by document, then context, then sentence number.
    """

    document_id: str
    context: int
    sentence: int

    @property
    def context_id(self) -> ContextId:
        return ContextId(self.document_id, self.context)

    def __str__(self) -> str:
        return f"{self.document_id}-C{self.context:03d}-S{self.sentence:03d}"


class PassageId(NamedTuple):
    """First and last sentence (inclusive) of a passage, ``first:last`` in a run file."""

    first: SentenceId
    last: SentenceId

    def __str__(self) -> str:
        return f"{self.first}:{self.last}"


def parse_context_id(text: str) -> ContextId:
    """Read ``DOCUMENT-C000``.

    Raises:
        ValueError: the text is not of that form; the message says what would be.
    """
    found = _CONTEXT.fullmatch(text)
    if not found:
        raise ValueError(f"malformed context id {text!r}, expected DOCUMENT-C000")
    return ContextId(found["document"], int(found["context"]))


def parse_sentence_id(text: str) -> SentenceId:
    """Read ``DOCUMENT-C000-S000``.

    Raises:
        ValueError: the text is not of that form; the message says what would be.
    """
    found = _SENTENCE.fullmatch(text)
    if not found:
        raise ValueError(f"malformed sentence id {text!r}, expected DOCUMENT-C000-S000")
    return SentenceId(found["document"], int(found["context"]), int(found["sentence"]))


def parse_passage_id(text: str) -> PassageId:
    """Read ``FIRST:LAST``, two sentence ids; neither order nor context is checked here.

    Raises:
        ValueError: the text is not of that form; the message says what would be.
    """
    # A document id may hold ':', so the separator is the one between two whole sentence ids; where several
    # are, it is the one that leaves both in the same context.
    first_found = None
    for at in (i for i, char in enumerate(text) if char == ":"):
        if _SENTENCE.fullmatch(text, 0, at) and _SENTENCE.fullmatch(text, at + 1):
            found = PassageId(parse_sentence_id(text[:at]), parse_sentence_id(text[at + 1 :]))
            if found.first.context_id == found.last.context_id:
                return found
            first_found = first_found or found
    if first_found:
        return first_found
    raise ValueError(f"malformed passage {text!r}, expected FIRST-SENTENCE-ID:LAST-SENTENCE-ID")
