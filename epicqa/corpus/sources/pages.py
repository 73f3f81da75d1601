"""Web pages of agencies and the like: HTML as crawlers save it, or the track's XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from epicqa import streams
from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.charsets import decode
from epicqa.corpus.sources.html import Page, read_html
from epicqa.corpus.sources.raw import BROKEN, EMPTY, LeftOut, Piece, whole_files
from epicqa.corpus.sources.xml_pages import read_xml
from epicqa.errors import EpicqaError

_EXPECTED = ".html, .htm, .xhtml, .shtml, .xml (plain, .gz, .xz or .zst), .tar, .zip or a folder"
_SUFFIXES = {".html", ".htm", ".xhtml", ".shtml", ".xml"}
# Crawlers save what such addresses answer under the address's own name.
_PROGRAMS = {"", ".php", ".asp", ".aspx", ".jsp", ".cfm"}
_BEFORE_ROOT = re.compile(
    r"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>\s*)*", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(r"<([A-Za-z_][\w.:-]*)")
_IS_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body|title|meta)\b", re.IGNORECASE)
_LOOKED_AT = 1 << 14
# What is as long as this and comes twice is a menu or notice, not a short answer like any other.
_SAID_ONCE = 50


@dataclass(frozen=True, slots=True)
class Pages:
    """A page a file: HTML (`read_html`), or the track's XML (`read_xml`).

    Files without a suffix, and those named after programs (``.php`` and the like), are read where they begin
    like HTML or XML and reported as broken where not: nothing of a crawler's folder goes unseen. Files of
    other suffixes (pictures, styles, PDF) are passed over.

    Attributes:
        base: joined with a file's name below what was given, the address of pages that do not name their own;
            ``https://`` for the folders of hosts that ``wget -r`` writes. None leaves them without.
    """

    base: str | None = None

    @property
    def name(self) -> str:
        return "pages"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """See `RawSource.pieces`."""
        if self.base is not None and not re.match(r"https?://", self.base):
            raise EpicqaError(
                f"{self.base}: not a base address, expected one that begins with http:// or https://"
            )
        return whole_files(inputs, _is_page, _EXPECTED, limit)

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | LeftOut]:
        """See `RawSource.drafts`: one draft, whose paragraphs do not repeat each other."""
        name = piece.about["name"]
        try:
            page = _read(piece.raw, _suffix(streams.plain_name(name)))
        except BadDocument as error:
            yield LeftOut(piece.place, BROKEN, str(error))
            return
        paragraphs = tuple(_once(page.paragraphs))
        if not paragraphs:
            yield LeftOut(piece.place, EMPTY, "no text but menus and links")
            return
        url = page.url or (None if self.base is None else _address(self.base, name))
        yield Draft(paragraphs, title=page.title, url=url, metadata=page.metadata)


def _is_page(name: str) -> bool:
    return _suffix(name) in _SUFFIXES | _PROGRAMS


def _suffix(name: str) -> str:
    """The suffix of a file's name; what follows ``?`` is a query that a crawler kept."""
    return PurePosixPath(name.rpartition("/")[2].partition("?")[0]).suffix


def _read(raw: bytes, suffix: str) -> Page:
    beginning = decode(raw[:_LOOKED_AT]).lstrip("\ufeff")
    before = _BEFORE_ROOT.match(beginning)
    found = _ROOT.match(beginning, before.end() if before else 0)
    root = found[1] if found else ""
    if root.rpartition(":")[2] == "doc":
        return read_xml(raw)
    if (suffix == ".xml" or beginning.lstrip().startswith("<?xml")) and root.lower() != "html":
        raise BadDocument(f"an XML file of <{root}>, expected <doc> or <html>" if root else "not an XML file")
    if suffix in _PROGRAMS and not root and not _IS_HTML.search(beginning):
        raise BadDocument("not a page: there is no HTML in its first 16 KiB")
    return read_html(raw)


def _address(base: str, name: str) -> str:
    for suffix in streams.SUFFIXES:
        name = name.removesuffix(suffix)
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    return f"{base}{'' if base.endswith('/') else '/'}" + quote("/".join(parts), safe="/?&=;,:@+$!*'()~%")


def _once(paragraphs: Sequence[Paragraph]) -> Iterator[Paragraph]:
    seen = set()
    for paragraph in paragraphs:
        key = (None if len(paragraph.text) >= _SAID_ONCE else paragraph.section, paragraph.text)
        if key not in seen:
            seen.add(key)
            yield paragraph
