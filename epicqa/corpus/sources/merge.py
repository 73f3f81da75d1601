"""Collections as a source: documents that are there already, to be put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from epicqa.corpus.model import Document
from epicqa.corpus.sources import parse
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.members import Member
from epicqa.corpus.sources.raw import BROKEN, TOO_LARGE, LeftOut, Piece, read_members
from epicqa.corpus.sources.reading import WANTED, is_document_file
from epicqa.errors import EpicqaError
from epicqa.streams import plain_name

_NOTHING = "holds no documents"


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
        read = partial(_of_member, limit=limit)
        for source in inputs:
            nothing = True
            for found in read_members(source, is_document_file, WANTED, read, _NOTHING):
                nothing = False
                yield found
            if nothing:
                raise EpicqaError(f"{source}: {_NOTHING}, expected {WANTED}")

    def drafts(self, piece: Piece, limit: int) -> Iterator[Document | LeftOut]:
        try:
            yield parse(piece.raw)
        except BadDocument as error:
            yield LeftOut(piece.place, BROKEN, str(error), error.document_id)


def _of_member(member: Member, limit: int) -> Iterator[Piece | LeftOut]:
    if plain_name(member.name).endswith(".json"):
        yield Piece(member.file, member.read(limit))
        return
    for number, line in member.lines(limit):
        place = f"{member.file}:{number}"
        if line is None:
            yield LeftOut(place, TOO_LARGE, f"a line of more than {limit:,} bytes, see --max-file-size")
        else:
            yield Piece(place, line)
