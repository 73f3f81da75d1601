"""Where a CORD-19 release has its table and its parses, in the layouts of 2020 to 2022."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epicqa import streams
from epicqa.corpus.sources.raw import BROKEN, LeftOut
from epicqa.corpus.sources.unpack import PARTS, UNSAFE, is_archive, is_metadata, is_packed_part, unpacked
from epicqa.errors import EpicqaError
from epicqa.files import text_of

EXPECTED = "a CORD-19 release: metadata.csv beside document_parses or the subsets, or a .tar.gz or .zip of it"

MISSING = "missing file"

_KNOWN_FOLDERS = 1000


@dataclass(frozen=True, slots=True)
class Root:
    """A folder, real and absolute, that a release's paths begin in; ``shown`` begins them in messages."""

    folder: Path
    shown: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """A parse that a row speaks of.

    Attributes:
        shown: how messages name it.
        names: paths below a root where it may be, the likeliest first.
        expected: whether the row says that it is there.
    """

    shown: str
    names: tuple[str, ...]
    expected: bool


@dataclass(frozen=True, slots=True)
class Parse:
    """A parse that is there.

    Attributes:
        path: absolute.
        shown: how messages name it.
        name: its path in the release.
        size: bytes.
    """

    path: str
    shown: str
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Release:
    """What lies where.

    Attributes:
        metadata, shown: the table, and how messages name it.
        roots: the release's folder, and one for each part that had to be unpacked.
        pdf, pmc: folders of parses below the roots.
    """

    metadata: Path
    shown: str
    roots: tuple[Root, ...]
    pdf: tuple[str, ...]
    pmc: tuple[str, ...]
    _inside: dict[tuple[Path, Path], bool] = field(default_factory=dict, compare=False, repr=False)

    def wanted(self, row: Mapping[str, str]) -> tuple[list[Wanted], list[Wanted]]:
        """The parses that a row speaks of: those of PMC, and those of PDFs.

        Tables since May 2020 hold paths, those before the PDFs' hashes and the id at PMC.
        """
        if "pdf_json_files" in row or "pmc_json_files" in row:
            pmc, pdf = (cells(row, f"{kind}_json_files") for kind in ("pmc", "pdf"))
            return [_listed(name) for name in pmc], [_listed(name) for name in pdf]
        says = [cell(row, name) for name in ("has_pdf_parse", "has_full_text") if name in row]
        has_pdf = not says or says[0].lower() == "true"
        has_pmc = cell(row, "has_pmc_xml_parse").lower() == "true"
        subset = cell(row, "full_text_file")
        return (
            [_searched(f"{name}.xml.json", self.pmc, subset, has_pmc) for name in cells(row, "pmcid")],
            [_searched(f"{name}.json", self.pdf, subset, has_pdf) for name in cells(row, "sha")],
        )

    def find(self, wanted: Iterable[Wanted]) -> tuple[list[Parse], list[tuple[str, str]]]:
        """The parses that are there, in the order given, and a kind and a reason for what is wrong."""
        found: dict[str, Parse] = {}
        wrong: list[tuple[str, str]] = []
        missing: list[str] = []
        for one in wanted:
            try:
                parse = self._first(one.names)
            except _Refused as refused:
                wrong.append((refused.kind, f"{_quoted(one.shown)} {refused}"))
                continue
            if parse is not None:
                found.setdefault(parse.path, parse)
            elif one.expected:
                missing.append(one.shown)
        if missing:
            more = f", nor are {len(missing) - 1} more" if len(missing) > 1 else ""
            wrong.append((MISSING, f"{_quoted(missing[0])} is not in the release{more}"))
        return list(found.values()), wrong

    def _first(self, names: Iterable[str]) -> Parse | None:
        for name in names:
            if name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise _Refused(UNSAFE, "leads out of the release, expected a path below its folder")
            for root in self.roots:
                if (parse := self._at(root, name)) is not None:
                    return parse
        return None

    def _at(self, root: Root, name: str) -> Parse | None:
        path = root.folder / name
        try:
            is_link = stat.S_ISLNK(path.lstat().st_mode)
            found = path.stat()
            if not self._is_inside(root.folder, path.parent) or (
                is_link and not _leads_inside(root.folder, path)
            ):
                raise _Refused(UNSAFE, "is behind a link that leads out of the release")
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise _Refused(BROKEN, "is no file")
        return Parse(str(path), f"{root.shown}{name}", name, found.st_size)

    def _is_inside(self, root: Path, folder: Path) -> bool:
        """Asked once a folder: a release has few, unless its table is made to have many."""
        if (known := self._inside.get((root, folder))) is None:
            if len(self._inside) >= _KNOWN_FOLDERS:
                self._inside.clear()
            known = self._inside[root, folder] = _leads_inside(root, folder)
        return known


class _Refused(Exception):
    """A path that is not opened: a kind as in `LeftOut`, and what the path does."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def open_release(source: Path, scratch: Path, limit: int) -> Generator[LeftOut, None, Release]:
    """Find the table and the parses of a release, and unpack what is packed into folders in ``scratch``.

    Yields what was left out of archives.

    Raises:
        EpicqaError: the source is missing or no release.
    """
    if not source.exists():
        raise EpicqaError(f"{source}: no such file or folder, expected {EXPECTED}")
    damage = ""
    if source.is_dir():
        top, shown = source, f"{text_of(source)}/"
    elif is_archive(source.name):
        top, shown = scratch / "release", f"{text_of(source)}!"
        for left in unpacked(source, top, limit):
            if left.place == text_of(source):
                damage = f"; {left.reason}"
            yield left
    else:
        raise EpicqaError(f"{source}: unknown kind of file, expected {EXPECTED}")
    metadata = _metadata(source, top, damage)
    below = "".join(f"{text_of(part)}/" for part in metadata.parent.relative_to(top).parts)
    roots = [Root(metadata.parent.resolve(), shown + below)]
    for archive in _entries(metadata.parent):
        name = streams.plain_name(archive.name)
        is_packed = is_packed_part(name) and archive.is_file()
        if is_packed and not (metadata.parent / name.rpartition(".")[0]).is_dir():
            folder = scratch / archive.name
            yield from unpacked(archive, folder, limit)
            roots.append(Root(folder.resolve(), f"{text_of(archive)}!"))
    pdf, pmc = _folders(roots)
    return Release(metadata, f"{shown}{below}{text_of(metadata.name)}", tuple(roots), pdf, pmc)


def cell(row: Mapping[str, str], column: str) -> str:
    """A cell, trimmed; empty where there is no such column."""
    return row.get(column, "").strip()


def cells(row: Mapping[str, str], column: str) -> list[str]:
    """The parts of a cell that holds several, divided by semicolons."""
    return [part for part in map(str.strip, row.get(column, "").split(";")) if part]


def _metadata(source: Path, top: Path, damage: str) -> Path:
    """The table in a folder, or in the one folder below that has one."""
    if (own := _table_in(top)) is not None:
        return own
    tables = [table for below in _entries(top) if below.is_dir() and (table := _table_in(below))]
    if len(tables) > 1:
        names = ", ".join(text_of(table.parent.name) for table in tables)
        raise EpicqaError(f"{source}: several releases ({names}), expected one")
    if not tables:
        raise EpicqaError(f"{source}: no metadata.csv in it{damage}, expected {EXPECTED}")
    return tables[0]


def _table_in(folder: Path) -> Path | None:
    # Of the dated names of the first releases the last is the latest.
    found = [path for path in _entries(folder) if is_metadata(path.name.lower()) and path.is_file()]
    plain = [path for path in found if path.name.lower() == "metadata.csv"]
    return next(iter(plain or reversed(found)), None)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise EpicqaError(f"{folder}: cannot be read: {error.strerror}, expected {EXPECTED}") from None


def _folders(roots: Iterable[Root]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders of the PDFs' parses, and of PMC's: below a part's own, or a part's of the same name in it."""
    pdf, pmc = [], []
    for part in PARTS:
        for folder in (part, f"{part}/{part}"):
            there = {name for name in ("", "/pdf_json", "/pmc_json") if _is_there(roots, folder + name)}
            if "/pdf_json" in there:
                pdf.append(f"{folder}/pdf_json")
            if "/pmc_json" in there:
                pmc.append(f"{folder}/pmc_json")
            if there == {""}:
                pdf.append(folder)
    return tuple(pdf), tuple(pmc)


def _is_there(roots: Iterable[Root], folder: str) -> bool:
    return any((root.folder / folder).is_dir() for root in roots)


def _listed(name: str) -> Wanted:
    # Archives of the subsets held each below its own name once more, which the table does not say.
    first = name.partition("/")[0]
    return Wanted(name, (name, f"{first}/{name}") if first in PARTS else (name,), expected=True)


def _searched(name: str, folders: Iterable[str], subset: str, expected: bool) -> Wanted:
    likely = sorted(folders, key=lambda folder: folder.partition("/")[0] != subset)
    return Wanted(name, tuple(f"{folder}/{name}" for folder in likely), expected)


def _leads_inside(root: Path, path: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}...")
