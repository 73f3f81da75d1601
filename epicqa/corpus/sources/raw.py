"""What raw sources share: pieces that one process finds, and drafts that several make of them.

A raw source is a frozen dataclass of its options with a ``name`` and two methods (see ``RawSource``), in a
file of its own, and one command in ``epicqa/cli/collect.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from epicqa.corpus.drafts import Draft
from epicqa.corpus.model import Document
from epicqa.corpus.sources.members import Damaged, Member, TooLarge, members
from epicqa.errors import EpicqaError
from epicqa.files import text_of

BROKEN = "broken"
TOO_LARGE = "too large"
FILTERED = "filtered"
EMPTY = "no text"
DUPLICATE = "duplicate"

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Piece:
    """What one process read and another makes documents of.

    Attributes:
        place: for messages and reports: ``FILE``, ``ARCHIVE!MEMBER``, ``FILE:LINE`` or ``FILE record ID``.
        raw: bytes, as the source's own ``drafts`` expects them.
        about: what is known besides, such as an address.
        size: bytes of work behind it, where ``raw`` only names them; else its length.
    """

    place: str
    raw: bytes
    about: Mapping[str, str] = field(default_factory=dict)
    size: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that did not become a document, one line in the report.

    Attributes:
        place: as in `Piece`.
        kind: a constant of this module, by which like ones are counted; ``FILTERED`` ones are only counted.
        reason: one line: what is wrong, and what would be right.
        document_id: where it is known.
    """

    place: str
    kind: str
    reason: str
    document_id: str | None = None


class RawSource(Protocol):
    """A kind of raw source; pickled to worker processes, so it holds only plain values."""

    @property
    def name(self) -> str:
        """One word: ``cord19``, ``pages``, ..."""

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """What there is to read, in an order that the inputs alone decide; quick, since one process does it.

        Args:
            inputs: what the user named.
            scratch: a folder for files on the way; what an interrupted run left there is still there.
            limit: bytes, decompressed, that one file may have.

        Raises:
            EpicqaError: an input is missing or of another kind. Damage inside is a ``LeftOut``.
        """

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | Document | LeftOut]:
        """The documents of a piece; whatever is wrong with it is a ``LeftOut``."""


def read_members(
    source: Path,
    wanted: Callable[[str], bool],
    expected: str,
    read: Callable[[Member], Iterator[Found]],
    nothing: str = "holds nothing to collect",
) -> Iterator[Found | LeftOut]:
    """What ``read`` makes of each wanted file of an input (see `members`).

    A file that is damaged, or raises ``TooLarge``, ends with a ``LeftOut``; so does an archive where it is
    damaged.

    Raises:
        EpicqaError: the input is missing or of another kind, or there is no wanted file in it, which
            ``nothing`` says.
    """
    empty = True
    try:
        for member in members(source, wanted, expected):
            empty = False
            try:
                yield from read(member)
            except TooLarge as error:
                yield LeftOut(member.file, TOO_LARGE, f"{error}, see --max-file-size")
            except Damaged as error:
                yield LeftOut(member.file, BROKEN, reason_of(error, member.container))
    except Damaged as error:
        empty = False
        yield LeftOut(text_of(source), BROKEN, reason_of(error, source))
    if empty:
        raise EpicqaError(f"{source}: {nothing}, expected {expected}")


def whole_files(
    inputs: Sequence[Path], wanted: Callable[[str], bool], expected: str, limit: int
) -> Iterator[Piece | LeftOut]:
    """A piece for each wanted file of the inputs (see `members`), ``about`` holding its ``name``.

    A file that is damaged or longer than ``limit`` bytes is a ``LeftOut``; so is what follows damage in an
    archive.

    Raises:
        EpicqaError: an input is missing or of another kind, or there is no wanted file in it.
    """

    def whole(member: Member) -> Iterator[Piece]:
        yield Piece(member.file, member.read(limit), {"name": member.name})

    for source in inputs:
        yield from read_members(source, wanted, expected, whole)


def reason_of(error: Exception, path: Path) -> str:
    """A message without the path that begins it."""
    return str(error).removeprefix(f"{path}: ")
