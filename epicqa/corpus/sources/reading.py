"""Records out of a SOURCE: a folder, a file, or an archive read member by member."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from epicqa import streams
from epicqa.corpus.sources.base import Record
from epicqa.corpus.sources.members import ERRORS, Member, damaged, members
from epicqa.errors import EpicqaError

WANTED = ".json, .jsonl (plain, .gz, .xz or .zst), .tar.gz, .tgz, .zip or a folder"


def is_document_file(name: str) -> bool:
    """Whether a file of this name (lower case, without a compression's suffix) holds documents."""
    return name.endswith((".json", ".jsonl"))


def records(source: Path) -> Iterator[Record]:
    """The records of a source in its order: paths sorted in a folder, members as stored in an archive.

    Blank lines of a ``.jsonl`` are no records. Hidden files and files of other kinds inside folders and
    archives are passed over.

    Raises:
        EpicqaError: the source is missing, of an unknown kind, damaged or cut short, or holds no record.
    """
    nothing = True
    for member in members(source, is_document_file, WANTED):
        for record in _of_member(member):
            nothing = False
            yield record
    if nothing:
        raise EpicqaError(f"{source}: holds no documents, expected .json or .jsonl (plain, .gz, .xz or .zst)")


def _of_member(member: Member) -> Iterator[Record]:
    try:
        if streams.plain_name(member.name).endswith(".json"):
            yield Record(member.stream.read(), member.file)
            return
        for number, line in enumerate(member.stream, start=1):
            if line.strip():
                yield Record(line, member.file, number)
    except ERRORS as error:
        raise damaged(member.container, error) from error
