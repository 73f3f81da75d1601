"""A part of a collection: some pieces made into documents by a worker, and what the join needs to know.

A part is ``STEM.jsonl`` (its documents), signatures of them and of their contexts, and, written last,
``STEM.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
import orjson

from epicqa.collect.settings import Settings
from epicqa.collect.terms import matches
from epicqa.collect.url_ids import cached_url_ids
from epicqa.corpus.drafts import Draft, NoText, address, assemble, document_json
from epicqa.corpus.model import Document
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, LeftOut, Piece, RawSource
from epicqa.files import replacing, write_bytes
from epicqa.ids import parse_context_id

DOCUMENTS, CONTEXTS = ".documents.npy", ".contexts.npy"
"""What the stems of signatures end with."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A document of a part.

    Attributes:
        document_id, url: its own.
        place: where it was read.
        contexts: the numbers of its contexts.
        sentences: how many it has.
    """

    document_id: str
    url: str | None
    place: str
    contexts: Sequence[int]
    sentences: int


@dataclass(frozen=True, slots=True)
class Part:
    """What a part holds besides its documents.

    Attributes:
        entries: its documents, in order.
        left_out: what did not become one, but for the filtered.
        filtered: how many were.
    """

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]
    filtered: int


def write_part(
    stem: Path,
    pieces: Sequence[Piece | LeftOut],
    source: RawSource,
    settings: Settings,
    url_ids: Path | None,
) -> Part:
    """Make documents of pieces and write the part; its files are there when this returns, or none counts."""
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    texts: list[str] = []
    wholes: list[str] = []
    with replacing(stem.with_suffix(".jsonl")) as temporary, temporary.open("wb") as sink:
        for found, place in _documents(pieces, source, settings, cached_url_ids(url_ids)):
            if isinstance(found, LeftOut):
                left_out.append(_storable(found))
                continue
            line = document_json(found)
            sink.write(line)
            sentences = sum(len(context.sentences) for context in found.contexts)
            numbers = [parse_context_id(context.context_id).context for context in found.contexts]
            entries.append(Entry(found.document_id, found.url, place, numbers, sentences))
            of_contexts = [context.text for context in found.contexts]
            texts += of_contexts
            wholes.append("\n".join(of_contexts))
    if settings.compares:
        from epicqa.corpus.near_duplicates import signatures

        for suffix, some in ((CONTEXTS, texts), (DOCUMENTS, wholes)):
            with replacing(stem.with_suffix(suffix)) as temporary, temporary.open("wb") as sink:
                np.save(sink, signatures(some))
    kinds = Counter(one.kind for one in left_out)
    part = Part(tuple(entries), tuple(one for one in left_out if one.kind != FILTERED), kinds[FILTERED])
    content = {
        "entries": [astuple(one) for one in part.entries],
        "left_out": [astuple(one) for one in part.left_out],
        "filtered": part.filtered,
    }
    write_bytes(stem.with_suffix(".json"), orjson.dumps(content))
    return part


def read_part(stem: Path) -> Part | None:
    """The part of that stem; None if it is not there, or was not finished."""
    try:
        content = orjson.loads(stem.with_suffix(".json").read_bytes())
        return Part(
            tuple(Entry(*one) for one in content["entries"]),
            tuple(LeftOut(*one) for one in content["left_out"]),
            content["filtered"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _storable(one: LeftOut) -> LeftOut:
    """The same, without halves of surrogate pairs, which no file can hold."""
    return LeftOut(*(text and text.encode("utf-8", "backslashreplace").decode() for text in astuple(one)))


def _documents(
    pieces: Sequence[Piece | LeftOut], source: RawSource, settings: Settings, ids: Mapping[str, str]
) -> Iterator[tuple[Document | LeftOut, str]]:
    for piece in pieces:
        if isinstance(piece, LeftOut):
            yield piece, piece.place
            continue
        try:
            for found in source.drafts(piece, settings.max_file_size):
                yield _finished(found, piece.place, settings, ids), piece.place
        except Exception as error:  # whatever a file holds, the others are read
            reason = f"cannot be read: {type(error).__name__}: {error}"
            yield LeftOut(piece.place, BROKEN, reason), piece.place


def _finished(
    found: Draft | Document | LeftOut, place: str, settings: Settings, ids: Mapping[str, str]
) -> Document | LeftOut:
    if isinstance(found, LeftOut):
        return found
    texts = found.contexts if isinstance(found, Document) else found.paragraphs
    if not matches(found.title, (one.text for one in texts), settings.terms, settings.where):
        return LeftOut(place, FILTERED, "none of the terms")
    if isinstance(found, Document):
        return found
    if found.document_id is None and found.url is not None:
        found = replace(found, document_id=ids.get(address(found.url) or ""))
    try:
        return assemble(found, max_sentences=settings.max_sentences, max_characters=settings.max_characters)
    except BadDocument as error:
        kind = EMPTY if isinstance(error, NoText) else BROKEN
        return LeftOut(place, kind, str(error), error.document_id)
