"""Collections as a source: documents that are there already, to be put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from epicqa.corpus.model import Document
from epicqa.corpus.sources import parse
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import Damaged, Member, TooLarge, members
from epicqa.corpus.sources.raw import BROKEN, TOO_LARGE, LeftOut, Piece, reason_of
from epicqa.corpus.sources.reading import WANTED, is_document_file
from epicqa.errors import EpicqaError
from epicqa.files import text_of
from epicqa.streams import plain_name


@dataclass(frozen=True, slots=True)
class Merge:
    """Documents of the track's form, or plain ones; their contexts, sentences and ids stay as they are."""

    @property
    def name(self) -> str:
        return "merge"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """A piece for each document, in the order of the inputs.

        Raises:
            EpicqaError: an input is missing, of another kind, or holds no document.
        """
        for source in inputs:
            nothing = True
            try:
                for member in members(source, is_document_file, WANTED):
                    for found in _of_member(member, limit):
                        nothing = False
                        yield found
            except Damaged as error:
                nothing = False
                yield LeftOut(text_of(source), BROKEN, reason_of(error, source))
            if nothing:
                raise EpicqaError(f"{source}: holds no documents, expected {WANTED}")

    def drafts(self, piece: Piece, limit: int) -> Iterator[Document | LeftOut]:
        try:
            yield parse(piece.raw)
        except BadDocument as error:
            yield LeftOut(piece.place, BROKEN, str(error), error.document_id)


def _of_member(member: Member, limit: int) -> Iterator[Piece | LeftOut]:
    try:
        if plain_name(member.name).endswith(".json"):
            yield Piece(member.file, member.read(limit))
            return
        for number, line in member.lines(limit):
            place = f"{member.file}:{number}"
            if line is None:
                yield LeftOut(place, TOO_LARGE, f"a line of more than {limit:,} bytes, see --max-file-size")
            else:
                yield Piece(place, line)
    except TooLarge as error:
        yield LeftOut(member.file, TOO_LARGE, f"{error}, see --max-file-size")
    except Damaged as error:
        yield LeftOut(member.file, BROKEN, reason_of(error, member.container))
