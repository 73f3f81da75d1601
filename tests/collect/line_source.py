"""A raw source for tests: files of JSON lines, each telling what comes of it. Worker processes import it."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.raw import LeftOut, Piece


@dataclass(frozen=True)
class Lines:
    """A line is a list of drafts, ``{"left_out": KIND}`` and ``{"raise": ERROR, "message": TEXT}``."""

    log: str = ""
    name: str = "lines"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        assert scratch.is_dir()
        for path in inputs:
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                yield Piece(f"{path.name}:{number}", line)

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | LeftOut]:
        if self.log:
            with Path(self.log).open("a") as log:
                log.write(f"{piece.place}\n")
        for one in json.loads(piece.raw):
            if "raise" in one:
                raise getattr(builtins, one["raise"])(one.get("message", ""))
            if "left_out" in one:
                yield LeftOut(piece.place, one["left_out"], one.get("reason", "so"), one.get("id"))
            else:
                paragraphs = tuple(Paragraph(text) for text in one["texts"])
                known = {key: one.get(key) for key in ("title", "url")}
                yield Draft(paragraphs, document_id=one.get("id"), metadata=one.get("metadata", {}), **known)
