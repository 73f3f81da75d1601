"""Title, address, dates and paragraphs of an HTML page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import dropwhile, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from epicqa.corpus.drafts import Paragraph
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.charsets import decode
from epicqa.corpus.sources.html_body import paragraphs
from epicqa.corpus.sources.html_folds import UNSEEN

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# What is no character in XML; a parser would put U+FFFD there, or end.
_NO_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_ELEMENT = re.compile(r"<[a-zA-Z!/?]")
_SAVED_FROM = re.compile(r"<!--\s*saved from url=\(\d+\)\s*(\S+)\s*-->")
_AFTER_BAR = re.compile(r"\s+(?:\||·|•|::|»)\s.*$")
_LAST_DASH = re.compile(r"^(.+)\s([-–—])\s(.+)$")
_DATE = re.compile(
    r"\s*(?:(?P<y1>\d{4})[-/]?(?P<m1>\d\d)[-/]?(?P<d1>\d\d)(?!\d)"
    r"|(?P<m2>[a-z]{3,9})\.? (?P<d2>\d{1,2}),? (?P<y2>\d{4})"
    r"|(?P<d3>\d{1,2}) (?P<m3>[a-z]{3,9})\.? (?P<y3>\d{4}))",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SIGNATURES = {
    b"%PDF-": "a PDF file",
    b"PK\x03\x04": "a zip archive or Office file",
    b"\x1f\x8b": "gzip data",
    b"\x89PNG": "a PNG image",
    b"GIF8": "a GIF image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xd0\xcf\x11\xe0": "an old Office file",
}
# A page with more has none that is its title.
_HEADINGS_READ = 20
_OF_HEADS = {"base", "link", "meta", "noscript", "object", "script", "style", "template", "title"}
_PUBLISHED = (
    "article:published_time",
    "datepublished",
    "dcterms.issued",
    "dcterms.created",
    "dc.date.issued",
    "dc.date.created",
    "dcterms.date",
    "dc.date",
    "citation_publication_date",
    "pubdate",
    "date",
)
_MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "dcterms.modified",
    "dc.date.modified",
    "last-modified",
    "cdc:last_updated",
    "cdc:last_reviewed",
)
_SITE = ("og:site_name",)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says.

    Attributes:
        title: without the name of its site; None where there is none.
        url: http or https; None where it is not known.
        paragraphs: in reading order, none blank; empty for a page without text of its own.
        metadata: what of ``published``, ``modified`` (``YYYY-MM-DD``), ``site`` and ``language`` is known.
    """

    title: str | None
    url: str | None
    paragraphs: tuple[Paragraph, ...]
    metadata: Mapping[str, str]


def read_html(raw: bytes, *, declared: str | None = None, url: str | None = None) -> Page:
    """A page out of the bytes of an HTML file.

    Menus, banners, forms, comments and lists of links are left out. Headings become sections, nested ones
    joined by `` - ``, but for the one that repeats the title. Folded parts (accordions, ``<details>``) are
    read like open ones, their handles being headings. Dates are those that the page states for machines, so
    that the same bytes give the same page on any day. Nothing is ever fetched.

    Args:
        raw: the file, undecoded (`decode` says how it is).
        declared: the ``charset`` of the HTTP header.
        url: the address; without it the page's own word is taken: its canonical link, ``og:url``, or the note
            that a browser leaves in a page it saves.

    Raises:
        BadDocument: the bytes are no page.
    """
    try:
        text = _text(raw, declared)
        saved = _SAVED_FROM.search(text[:4096])
        tree = _tree(_NO_CHARACTER.sub(" ", text))
        if tree is None:
            return Page(None, url, (), {})
        facts = _Facts.of(tree)
        title, names = _title(tree, facts)
        address = url or _address(tree, facts, saved[1] if saved else None)
        metadata = facts.metadata(tree)
        return Page(title, address, paragraphs(tree, names), metadata)
    except (MemoryError, RecursionError):
        raise BadDocument("too large or too deep to be read as HTML") from None


def _text(raw: bytes, declared: str | None) -> str:
    for signature, name in _SIGNATURES.items():
        if raw.startswith(signature):
            raise BadDocument(f"not an HTML page: it looks like {name}")
    text = decode(raw, declared)
    controls = len(_NO_CHARACTER.findall(text)) + text.count("\ufffd")
    if controls > len(text) / 10:
        raise BadDocument("not an HTML page: it looks like binary data")
    if text.strip() and not _ELEMENT.search(text):
        raise BadDocument("not an HTML page: there is no element in it")
    return text


def _tree(text: str) -> HtmlElement | None:
    """The parsed page, at most 2,048 elements deep; None where nothing is in it."""
    from lxml import etree
    from lxml.html import HTMLParser, document_fromstring

    parser = HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=True
    )
    try:
        tree = document_fromstring(text.encode(), parser=parser)
    except etree.ParserError:
        return None
    # Where tags are left out, the parser takes elements that came with HTML 5 for a part of the head.
    head = tree.find("head")
    strays = [] if head is None else list(dropwhile(lambda child: child.tag in _OF_HEADS, head))
    if strays:
        body = tree.find("body")
        if body is None:
            body = etree.SubElement(tree, "body")
        body[:0] = strays
    return tree


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a page says of itself for machines: by lower-case name of ``<meta>`` or of JSON-LD key."""

    values: Mapping[str, str]

    @classmethod
    def of(cls, tree: HtmlElement) -> _Facts:
        values: dict[str, str] = {}
        for meta in tree.iter("meta"):
            name = meta.get("property") or meta.get("name") or meta.get("itemprop") or meta.get("http-equiv")
            if name and (content := _flat(meta.get("content") or "")):
                values.setdefault(name.strip().lower(), content)
        for script in tree.iter("script"):
            if script.get("type") == "application/ld+json":
                for key, value in _dates_of_json(script.text or ""):
                    values.setdefault(key, value)
        return cls(values)

    def first(self, names: tuple[str, ...]) -> str | None:
        return next((self.values[name] for name in names if name in self.values), None)

    def date(self, names: tuple[str, ...]) -> str | None:
        found = (_iso_date(self.values.get(name, "")) for name in names)
        return next(filter(None, found), None)

    def metadata(self, tree: HtmlElement) -> dict[str, str]:
        language = tree.get("lang") or tree.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
        known = {
            "published": self.date(_PUBLISHED),
            "modified": self.date(_MODIFIED),
            "site": self.first(_SITE),
            "language": language.strip() if _LANGUAGE.fullmatch(language.strip()) else None,
        }
        return {key: value for key, value in known.items() if value}


def _iso_date(text: str) -> str | None:
    """``YYYY-MM-DD`` of a text that begins with a whole date, in digits or English."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (next(filter(None, map(match.group, (f"{p}1", f"{p}2", f"{p}3")))) for p in "ymd")
    try:
        number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


def _dates_of_json(text: str) -> Iterator[tuple[str, str]]:
    try:
        found: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    for value in found:
        if isinstance(value, list):
            found.extend(value)
        elif isinstance(value, dict):
            for key in ("datePublished", "dateModified"):
                if isinstance(value.get(key), str):
                    yield key.lower(), value[key]
            found.extend(value[key] for key in ("@graph", "mainEntity") if key in value)


def _title(tree: HtmlElement, facts: _Facts) -> tuple[str | None, frozenset[str]]:
    """The title, and all that a heading may repeat, in lower case."""
    site = facts.first(_SITE) or ""
    element = tree.find(".//head/title")
    whole = _flat(element.text_content()) if element is not None else ""
    offered = facts.values.get("og:title", "")
    shared, own = _without_site(offered, site), _without_site(whole, site)
    headings = [heading for h1 in islice(tree.iter("h1"), _HEADINGS_READ) if (heading := _flat(_seen(h1)))]
    # A logo is often the only <h1>.
    told = [heading for heading in headings if heading != site and not whole.endswith(f" {heading}")]
    title = (told[0] if len(told) == 1 else None) or shared or own or next(iter(headings), None)
    return title, frozenset(name.casefold() for name in (title, shared, offered, whole, own) if name)


def _without_site(title: str, site: str) -> str:
    """A title without the site's name after ``|`` and the like, after a dash if shorter than the rest."""
    title = _AFTER_BAR.sub("", title)
    start, dash, end = next(iter(_LAST_DASH.findall(title)), (title, "", ""))
    if dash and (end == site or len(end.split()) < len(start.split())):
        return start
    return title


def _seen(element: HtmlElement) -> str:
    """The text that is not for screen readers alone."""
    unseen = {inner for inner in element.iterdescendants() if UNSEEN.search(inner.get("class") or "")}
    return "".join(
        text for text in element.xpath(".//text()") if not (text.is_text and text.getparent() in unseen)
    )


def _address(tree: HtmlElement, facts: _Facts, saved: str | None) -> str | None:
    links = [
        link.get("href") or "" for link in tree.iter("link") if "canonical" in (link.get("rel") or "").split()
    ]
    base = tree.find(".//base[@href]")
    beside = [saved or "", facts.values.get("og:url", ""), base.get("href") if base is not None else ""]
    return next(filter(None, (_absolute(one, beside) for one in [*links, beside[1], beside[0]])), None)


def _absolute(url: str, beside: list[str]) -> str | None:
    """An http address; a relative one joined to the first absolute one beside it."""
    for base in ("", *beside):
        try:
            whole = urljoin(base.strip(), url.strip())
            if url.strip() and urlsplit(whole).scheme in ("http", "https") and urlsplit(whole).hostname:
                return whole
        except ValueError:
            continue
    return None


def _flat(text: str) -> str:
    return " ".join(text.split())
