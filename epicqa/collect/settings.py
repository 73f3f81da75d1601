"""How to collect, whatever the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epicqa.collect.terms import Where
from epicqa.corpus.drafts import MAX_CHARACTERS, MAX_SENTENCES
from epicqa.errors import EpicqaError

Handling = Literal["off", "report", "drop"]
"""What is done about near-duplicates."""

MAX_FILE_SIZE = 256 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """What becomes of what a source gives.

    Attributes:
        terms: a document must hold one of these; empty keeps all.
        where: where it must stand.
        max_sentences: of a context; longer paragraphs become several.
        max_characters: of a sentence; longer ones are cut at white space.
        max_file_size: bytes, decompressed, of one input file or record; larger ones are left out.
        jsonl: one file of all documents in place of one each.
        duplicate_documents, duplicate_contexts: what is done about near-duplicates.
        similarity: Jaccard similarity, above 0, at most 1, from which on two texts are near-duplicates.

    Raises:
        EpicqaError: the similarity is out of range.
    """

    terms: tuple[str, ...] = ()
    where: Where = "any"
    max_sentences: int = MAX_SENTENCES
    max_characters: int = MAX_CHARACTERS
    max_file_size: int = MAX_FILE_SIZE
    jsonl: bool = False
    duplicate_documents: Handling = "report"
    duplicate_contexts: Handling = "report"
    similarity: float = 0.9

    def __post_init__(self) -> None:
        # NaN is in no range.
        if not 0 < self.similarity <= 1:
            raise EpicqaError(f"similarity {self.similarity}, expected a number above 0, at most 1")

    @property
    def compares(self) -> bool:
        """Whether near-duplicates are looked for."""
        return (self.duplicate_documents, self.duplicate_contexts) != ("off", "off")
