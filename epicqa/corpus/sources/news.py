"""News pages of a crawl: WARC and WET files, and the JSON lists that were made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.domains import checked_domain, host_of, is_within, read_domains
from epicqa.corpus.sources.html import read_html
from epicqa.corpus.sources.http_body import http_body
from epicqa.corpus.sources.members import Member, TooLarge
from epicqa.corpus.sources.news_json import JSON, json_draft, json_pieces
from epicqa.corpus.sources.raw import BROKEN, EMPTY, TOO_LARGE, LeftOut, Piece, read_members
from epicqa.corpus.sources.warc import TEXT, warc_pieces
from epicqa.errors import EpicqaError
from epicqa.streams import plain_name

__all__ = ["News", "read_domains"]

_EXPECTED = ".warc, .wet, .json, .jsonl (plain, .gz, .xz or .zst), a .tar or .zip of them, or a folder"
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}(T[0-9:.]{1,20}Z?)?")
_ENDS = tuple(".!?:;…。！？")
_MIN_WORDS = 3


@dataclass(frozen=True, slots=True)
class News:
    """Pages by the record: a page's document id is its record's UUID.

    Attributes:
        domains: a page is taken when its host is one of these or lies below one; none means every page.

    Raises:
        EpicqaError: one of ``domains`` is none.
    """

    domains: tuple[str, ...] = ("gov", "edu")

    def __post_init__(self) -> None:
        self._domains()

    @property
    def name(self) -> str:
        return "news"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """A piece a page, one or two in memory at a time; ``limit`` is for each record, not for the file.

        Raises:
            EpicqaError: an input is missing or of another kind, or there is no wanted file in it.
        """
        domains = self._domains()

        def is_wanted(url: str) -> bool:
            return not domains or is_within(host_of(url), domains)

        def read(member: Member) -> Iterator[Piece | LeftOut]:
            pages = warc_pieces if _is_warc(plain_name(member.name)) else json_pieces
            return pages(member, is_wanted, limit)

        for source in inputs:
            yield from read_members(source, _is_news_file, _EXPECTED, read)

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | LeftOut]:
        """The one document of a piece."""
        form, document_id = piece.about.get("form"), piece.about.get("id")
        found: Draft | LeftOut
        try:
            if form == JSON:
                found = json_draft(piece)
            else:
                found = _text_draft(piece) if form == TEXT else _html_draft(piece, limit)
                if not found.paragraphs:
                    found = LeftOut(piece.place, EMPTY, "the page has no text", document_id)
        except TooLarge as error:
            found = LeftOut(piece.place, TOO_LARGE, f"{error}, see --max-file-size", document_id)
        except BadDocument as error:
            found = LeftOut(piece.place, BROKEN, str(error), document_id)
        yield found

    def _domains(self) -> frozenset[str]:
        try:
            return frozenset(map(checked_domain, self.domains))
        except ValueError as error:
            raise EpicqaError(str(error)) from None


def _is_warc(name: str) -> bool:
    return name.endswith((".warc", ".wet"))


def _is_news_file(name: str) -> bool:
    return _is_warc(name) or name.endswith((".json", ".jsonl"))


def _html_draft(piece: Piece, limit: int) -> Draft:
    about = piece.about
    raw = http_body(piece.raw, about.get("transfer", ""), about.get("coding", ""), limit)
    page = read_html(raw, declared=about.get("charset"), url=about.get("url"))
    return _draft(piece, page.title, page.paragraphs, page.metadata)


def _text_draft(piece: Piece) -> Draft:
    """The page of a WET record: its title, then a line for each block of text."""
    title, *lines = piece.raw.decode("utf-8-sig", "replace").split("\n")
    return _draft(piece, title, tuple(Paragraph(line.strip()) for line in lines if _is_text(line)), {})


def _is_text(line: str) -> bool:
    """Whether a line is more than an entry of a menu: it has three words, or a sentence's end."""
    return len(line.split()) >= _MIN_WORDS or line.rstrip().endswith(_ENDS)


def _draft(
    piece: Piece, title: str | None, paragraphs: tuple[Paragraph, ...], metadata: Mapping[str, str]
) -> Draft:
    url, recorded = piece.about.get("url"), piece.about.get("date", "")
    known = {
        "date": metadata.get("published") or (recorded if _DATE.fullmatch(recorded) else None),
        "host": host_of(url) if url else None,
    }
    return Draft(
        paragraphs=paragraphs,
        title=title,
        url=url,
        document_id=piece.about.get("id"),
        metadata={**metadata, **{key: value for key, value in known.items() if value}},
    )
