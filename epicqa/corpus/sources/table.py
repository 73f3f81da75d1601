"""CSV files row by row, each with its place; a broken row costs only itself."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from epicqa.corpus.sources.members import TooLarge
from epicqa.corpus.sources.raw import BROKEN, TOO_LARGE, LeftOut
from epicqa.errors import EpicqaError


@dataclass(frozen=True, slots=True)
class Row:
    """A row of as many cells as there are columns.

    Attributes:
        line: 1-based line that it begins on.
        offset: byte that it begins at.
        cells: by column; of columns with one name the first. As they are, with white space around.
    """

    line: int
    offset: int
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file whose first row was read.

    Attributes:
        path: where it lies.
        shown: its path for messages.
        limit: bytes that one row may have.
        columns: names, trimmed.
        line, offset: where the second row begins.
    """

    path: Path
    shown: str
    limit: int
    columns: tuple[str, ...]
    line: int
    offset: int

    def rows(self) -> Iterator[Row | LeftOut]:
        """All rows but the first, without blank lines; one that is no row of this table is a ``LeftOut``."""
        with self.path.open("rb") as handle:
            handle.seek(self.offset)
            lines = _Lines(handle, self.limit, self.line, self.offset)
            for line, offset, cells in _records(lines):
                if isinstance(cells, Exception):
                    kind = TOO_LARGE if isinstance(cells, TooLarge) else BROKEN
                    yield LeftOut(f"{self.shown}:{line}", kind, f"row left out: {cells}")
                elif len(cells) != len(self.columns):
                    reason = f"row left out: {len(cells)} columns, expected {len(self.columns)}"
                    yield LeftOut(f"{self.shown}:{line}", BROKEN, reason)
                else:
                    yield Row(line, offset, self._by_name(cells))

    def rows_at(self, offsets: Sequence[int]) -> Iterator[dict[str, str]]:
        """The cells of rows that ``rows`` gave before, by their offsets."""
        with self.path.open("rb") as handle:
            for offset in offsets:
                handle.seek(offset)
                _, _, cells = next(_records(_Lines(handle, self.limit, 0, offset)))
                if isinstance(cells, list) and len(cells) == len(self.columns):
                    yield self._by_name(cells)

    def _by_name(self, cells: list[str]) -> dict[str, str]:
        named: dict[str, str] = {}
        for name, cell in zip(self.columns, cells, strict=True):
            named.setdefault(name, cell)
        return named


def open_table(path: Path, shown: str, limit: int, expected: str) -> Table:
    """Read the first row of a UTF-8 file, with or without a byte order mark.

    Raises:
        EpicqaError: the file cannot be read, or its first row is none; ``expected`` says what is.
    """
    # The module knows no limit per reader, and its own is below the longest real abstracts.
    csv.field_size_limit(max(csv.field_size_limit(), limit))
    try:
        with path.open("rb") as handle:
            start = len(codecs.BOM_UTF8) if handle.read(3) == codecs.BOM_UTF8 else 0
            handle.seek(start)
            lines = _Lines(handle, limit, 1, start)
            _, _, cells = next(_records(lines), (1, 0, []))
    except OSError as error:
        raise EpicqaError(f"{shown}: {error.strerror}, expected {expected}") from None
    if isinstance(cells, Exception):
        raise EpicqaError(f"{shown}:1: {cells}, expected {expected}")
    return Table(path, shown, limit, tuple(map(str.strip, cells)), lines.line, lines.offset)


def _records(lines: _Lines) -> Iterator[tuple[int, int, list[str] | Exception]]:
    """Line, offset and cells of each record, or what is wrong with it."""
    reader = csv.reader(lines, strict=True)
    while True:
        line, offset = lines.line, lines.offset
        lines.begin()
        cells: list[str] | Exception
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, TooLarge) as error:
            cells = error
        if lines.problem is not None:
            cells = ValueError(lines.problem)
        if cells:
            yield line, offset, cells


class _Lines:
    """The lines of a file as text, for a reader that puts them together to records.

    Attributes:
        line, offset: of the next one, 1-based and in bytes.
        problem: why a line since ``begin`` is no text; it is given nonetheless, so that its quotes count.
    """

    def __init__(self, handle: IO[bytes], limit: int, line: int, offset: int) -> None:
        self.line, self.offset = line, offset
        self._handle, self._limit = handle, limit
        self.begin()

    def begin(self) -> None:
        """A record begins."""
        self.problem: str | None = None
        self._end = self.offset + self._limit

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        raw = self._handle.readline(self._limit + 1)
        if not raw:
            raise StopIteration
        self.line += 1
        self.offset += len(raw)
        if self.offset > self._end:
            while not raw.endswith(b"\n") and (raw := self._handle.readline(1 << 20)):
                self.offset += len(raw)
            raise TooLarge(f"more than {self._limit:,} bytes, see --max-file-size")
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            place = f"line {self.line - 1}, byte {error.start + 1}"
            self.problem = self.problem or f"not UTF-8: 0x{raw[error.start]:02x} at {place}"
            return raw.decode("utf-8", "replace")
