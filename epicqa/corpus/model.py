"""What a collection is made of: documents, contexts, sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Sentence:
    """A span of a context's text: character (code point) offsets, ``end`` exclusive."""

    sentence_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Context:
    """A paragraph, post or answer; passages never leave it."""

    context_id: str
    section: str | None
    text: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A paper, page or thread; ``metadata`` keeps what its source said beyond title and address."""

    document_id: str
    title: str | None
    url: str | None
    contexts: tuple[Context, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
