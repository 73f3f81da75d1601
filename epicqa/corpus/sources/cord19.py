"""CORD-19 releases: papers out of a table of metadata and parses of their full texts."""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.base import BadDocument, kind, need, optional_text
from epicqa.corpus.sources.cord19_release import EXPECTED, Parse, Release, Wanted, cell, cells, open_release
from epicqa.corpus.sources.members import TooLarge
from epicqa.corpus.sources.raw import BROKEN, EMPTY, TOO_LARGE, LeftOut, Piece
from epicqa.corpus.sources.table import Table, open_table
from epicqa.errors import EpicqaError

_ABSTRACT = "Abstract"
_IDS = ("cord_uid", "sha", "pmcid", "doi")
_AS_THEY_ARE = ("publish_time", "journal", "license", "doi")
_KEPT = ("title", "abstract", "authors", "url", "pubmed_id", "pmcid", *_AS_THEY_ARE)

# Ids name files and stand in runs.
_NOT_IN_IDS = re.compile(r"[^0-9A-Za-z._-]+")
_NOT_IN_WORDS = re.compile(r"[\W_]+")
_RESOLVER = re.compile(r"^(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cord19:
    """Releases of CORD-19, unpacked or packed, of every layout that there was.

    Rows of one id make one paper, where its first row stands: of each cell the first that is not blank
    counts, and the parses of all. The full text is that of the first parse that has one, those of PMC before
    those of PDFs; captions and back matter are left out.
    """

    @property
    def name(self) -> str:
        return "cord19"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """A piece for each paper in the order of the tables, see `RawSource`."""
        for number, source in enumerate(inputs):
            release = yield from open_release(source, scratch / str(number), limit)
            table = open_table(release.metadata, release.shown, limit, EXPECTED)
            if not any(column in table.columns for column in _IDS):
                missing = f"none of the columns {', '.join(_IDS)}"
                raise EpicqaError(f"{release.shown}:1: {missing}, expected {EXPECTED}")
            yield from _papers(release, table)

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | LeftOut]:
        """The paper of a piece, with what is wrong with its parses, see `RawSource`."""
        paper = json.loads(piece.raw)
        row = paper["row"]
        used, text = "", _Text()
        for path, shown, name in paper["parses"]:
            try:
                found = _read(path, limit)
            except TooLarge as error:
                yield LeftOut(shown, TOO_LARGE, f"{error}, see --max-file-size", paper["id"])
            except (BadDocument, OSError) as error:
                yield LeftOut(shown, BROKEN, getattr(error, "strerror", None) or str(error), paper["id"])
            else:
                if found.body or (found.abstract and not used):
                    used, text = name, found
                if found.body:
                    break
        paragraphs = _paragraphs(text, row["abstract"])
        if not paragraphs:
            yield LeftOut(piece.place, EMPTY, "no abstract and no text of a parse", paper["id"])
            return
        urls = _urls(row)
        metadata = {"authors": row["authors"], "urls": urls}
        if used:
            metadata["full_text_path"] = used
        metadata.update((key, row[key]) for key in _AS_THEY_ARE if row[key])
        url = urls[0] if urls else None
        yield Draft(paragraphs, row["title"] or text.title, url, paper["id"], metadata)


@dataclass(frozen=True, slots=True)
class _Text:
    """What a parse holds, without blank paragraphs."""

    title: str | None = None
    abstract: tuple[Paragraph, ...] = ()
    body: tuple[Paragraph, ...] = ()


def _papers(release: Release, table: Table) -> Iterator[Piece | LeftOut]:
    repeated = _repeated(table)
    merged: set[int] = set()
    for row in table.rows():
        if isinstance(row, LeftOut):
            yield row
            continue
        if row.offset in merged:
            merged.remove(row.offset)
            continue
        place = f"{table.shown}:{row.line}"
        if not (own_id := _id(row.cells)):
            yield LeftOut(place, BROKEN, f"no id, expected one of {', '.join(_IDS)}")
            continue
        paper = _Paper()
        paper.add(row.cells, release)
        later = [at for at in repeated.get(hash(own_id), ()) if at > row.offset and at not in merged]
        for offset, others in zip(later, table.rows_at(later), strict=True):
            if _id(others) == own_id:
                paper.add(others, release)
                merged.add(offset)
        document_id = _NOT_IN_IDS.sub("_", own_id)
        parses, wrong = release.find((*paper.pmc, *paper.pdf))
        for what, reason in wrong:
            yield LeftOut(place, what, reason, document_id)
        yield _piece(place, document_id, paper.row, parses)


class _Paper:
    """What the rows of one id say together."""

    def __init__(self) -> None:
        self.row = dict.fromkeys(_KEPT, "")
        # In order, each once.
        self.pmc: dict[Wanted, None] = {}
        self.pdf: dict[Wanted, None] = {}

    def add(self, row: Mapping[str, str], release: Release) -> None:
        for key, text in self.row.items():
            self.row[key] = text or cell(row, key)
        pmc, pdf = release.wanted(row)
        self.pmc.update(dict.fromkeys(pmc))
        self.pdf.update(dict.fromkeys(pdf))


def _repeated(table: Table) -> dict[int, list[int]]:
    """The offsets of rows whose id has several, by the id's hash; 16 bytes a row on the way."""
    import numpy as np

    hashes, offsets = array("q"), array("q")
    for row in table.rows():
        if not isinstance(row, LeftOut) and (own_id := _id(row.cells)):
            hashes.append(hash(own_id))
            offsets.append(row.offset)
    keys = np.array(hashes, np.int64)
    values, counts = np.unique(keys, return_counts=True)
    found: dict[int, list[int]] = {}
    for number in np.flatnonzero(np.isin(keys, values[counts > 1])).tolist():
        found.setdefault(hashes[number], []).append(offsets[number])
    return found


def _id(row: Mapping[str, str]) -> str:
    """The paper's own id, else the first of the hashes, else the id at PMC, else the DOI."""
    hashes = cells(row, "sha")
    return cell(row, "cord_uid") or (hashes[0] if hashes else cell(row, "pmcid") or cell(row, "doi"))


def _piece(place: str, document_id: str, row: Mapping[str, str], parses: Sequence[Parse]) -> Piece:
    found = [(parse.path, parse.shown, parse.name) for parse in parses]
    # The library's own JSON: paths may hold bytes that are no UTF-8.
    raw = json.dumps({"id": document_id, "row": row, "parses": found})
    return Piece(place, raw.encode(), size=parses[0].size if parses else None)


def _read(path: str, limit: int) -> _Text:
    """The text of a parse.

    Raises:
        BadDocument: it is no parse.
        TooLarge: it has more than ``limit`` bytes.
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as handle:
        # Memory is taken for what is asked for, so not for the limit.
        data = handle.read(min(os.fstat(handle.fileno()).st_size, limit) + 1)
    if len(data) > limit:
        raise TooLarge(f"more than {limit:,} bytes")
    try:
        parse = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise BadDocument(f"broken JSON: {error}") from None
    if not isinstance(parse, dict):
        raise BadDocument(f"a parse must be a JSON object, not {kind(parse)}")
    about = parse.get("metadata")
    title = about.get("title") if isinstance(about, dict) else None
    abstract = _texts(parse, "abstract", _ABSTRACT) if parse.get("abstract") is not None else ()
    return _Text(title if isinstance(title, str) else None, abstract, _texts(parse, "body_text", None))


def _texts(parse: Mapping[str, Any], key: str, section: str | None) -> tuple[Paragraph, ...]:
    found = []
    for number, entry in enumerate(need(parse, key, list), start=1):
        where = f"{key!r}, entry {number}: "
        if not isinstance(entry, dict):
            raise BadDocument(f"{where}must be an object, not {kind(entry)}")
        text = need(entry, "text", str, where)
        if text.strip():
            found.append(Paragraph(text, optional_text(entry, "section", where) or section))
    return tuple(found)


def _paragraphs(text: _Text, abstract: str) -> tuple[Paragraph, ...]:
    """The parse's abstract, else the table's unless the body begins with it; then the body."""
    if text.abstract or not abstract or _begins_with(text.body, abstract):
        return text.abstract + text.body
    return (Paragraph(abstract, _ABSTRACT), *text.body)


def _begins_with(body: Iterable[Paragraph], abstract: str) -> bool:
    """Whether the first paragraphs are the abstract, but for case and what is neither letter nor digit."""
    wanted = _squashed(abstract)
    found = ""
    for paragraph in body:
        found += _squashed(paragraph.text)
        if len(found) >= len(wanted):
            return found == wanted
    return False


def _squashed(text: str) -> str:
    return _NOT_IN_WORDS.sub("", text).casefold().removeprefix("abstract")


def _urls(row: Mapping[str, str]) -> list[str]:
    """The table's addresses, else those that its ids have."""
    if given := [url for url in cells(row, "url") if url.startswith(("http://", "https://"))]:
        return given
    urls = []
    if doi := _RESOLVER.sub("", row["doi"], count=1):
        urls.append(f"https://doi.org/{quote(doi, safe='/:;()')}")
    if (pubmed := row["pubmed_id"].removesuffix(".0")).isdecimal():
        urls.append(f"https://www.ncbi.nlm.nih.gov/pubmed/{pubmed}/")
    if re.fullmatch(r"PMC[0-9]+", row["pmcid"]):
        urls.append(f"https://www.ncbi.nlm.nih.gov/pmc/articles/{row['pmcid']}/")
    return urls
