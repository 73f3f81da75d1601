"""The blocks of a page (headings, paragraphs, lists, tables) in reading order, menus and forms left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epicqa.corpus.sources.html_folds import FOLD, HANDLE, HEADINGS, UNSEEN

if TYPE_CHECKING:
    from lxml.html import HtmlElement


@dataclass(frozen=True, slots=True)
class Block:
    """One heading, paragraph, list or table.

    Attributes:
        text: items of a list (``- item``), rows of a table (``a | b``) and what ``<br>`` parts are lines.
        level: 1 and up for a heading, 0 otherwise. A heading without text ends the sections of its level.
        element: where it begins.
        plain: a heading or paragraph outside cells, items, addresses and folds, which any extractor finds.
        linked: the share of its characters that are links, 0 to 1.
    """

    text: str
    level: int
    element: HtmlElement
    plain: bool
    linked: float


# Stand in the text until a block ends; no parser gives them as text.
_BREAK, _TERM, _CELL = "\x0b", "\x0c", "\x1f"
# Where words may be broken; not to be seen, and words are not found with it in them.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_INLINE = _names(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark nobr q ruby s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_NEVER = _names(
    "applet area aside audio base button canvas datalist dialog embed fieldset footer frame frameset head "
    "iframe input label legend link map math menu meta nav noframes noindex noscript object optgroup option "
    "param picture progress rp rt script select source style svg template textarea track video"
)
_ROLES = _names("alertdialog banner complementary contentinfo dialog menu menubar navigation search toolbar")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
# Ends of names in classes and ids; "social-distancing" is none of them.
_NAMED = re.compile(
    r"(?:^|[\s_-])(?:breadcrumbs?|cookies?[_-]?(?:banner|bar|consent|message|notice|popup)|newsletter|pager|"
    r"pagination|shar(?:e|ing)(?:[_-]?(?:bar|buttons?|icons?|links?|list|this|tools?))?|"
    r"skip(?:per)?(?:[_-]?(?:links?|menu|nav|to[\w-]*))|subscribe|tags|"
    r"social(?:[_-]?(?:bar|buttons?|icons?|links?|list|media|menu|nav|shar\w+))?)(?:\s|$)",
    re.IGNORECASE,
)
_LONGEST_HEADING = 300
_LONGEST_ITEM = 1000


def blocks(body: HtmlElement) -> list[Block]:
    """The blocks under an element on which `unfold` was at work."""
    from lxml.etree import iterwalk

    reader = _Reader(body)
    walk = iterwalk(body, events=("start", "end"))
    skipped: HtmlElement | None = None
    for event, element in walk:
        if element is body:
            reader.text(body.text if event == "start" else None)
        elif event == "start":
            if reader.is_furniture(element):
                walk.skip_subtree()
                skipped = element
            else:
                reader.start(element)
        elif skipped is not None and element is skipped:
            skipped = None
            reader.text(element.tail)
        else:
            reader.end(element)
    reader.flush()
    return reader.found


class _Reader:
    """Where the walk stands: the text of the block so far, and what it is in."""

    def __init__(self, body: HtmlElement) -> None:
        self.found: list[Block] = []
        self._sizes = _sizes(body)
        self._whole = self._sizes[body]
        tables = list(body.iter("table"))
        self._tabled = _above(tables)
        self._parted = _above([*tables, *body.iter(*HEADINGS), *body.xpath(f".//*[@{FOLD} or @{HANDLE}]")])
        self._pieces: list[str] = []
        self._linked = self._length = self._links = self._loose = self._pre = 0
        self._begun: HtmlElement = body
        # The heading, list or table that is read as one block, whatever blocks are in it.
        self._one: HtmlElement | None = None
        # The levels of the last heading, of the last handle, and the one below which headings in a fold go.
        self._level = self._handle = self._floor = 0
        self._outer: list[tuple[int, int, int]] = []

    def is_furniture(self, element: HtmlElement) -> bool:
        """Whether nothing under an element belongs to the page's own text."""
        tag, get = element.tag, element.get
        if tag in _NEVER:
            return True
        named = f"{get('class', '')} {get('id', '')}"
        if (
            get("role") in _ROLES
            or (tag == "figure" and element not in self._tabled)
            or (tag == "header" and not any(map(_is_content, element.iterancestors())))
            or (tag == "span" and UNSEEN.search(named))
        ):
            return True
        doubtful = (
            tag == "form"
            or get("aria-hidden") == "true"
            or get("hidden", "until-found") != "until-found"
            or _HIDDEN.search(get("style", ""))
            or (tag not in HEADINGS and _NAMED.search(named))
        )
        # Some systems put the whole page into a form, or hide it until a script or a dialog shows it.
        return bool(doubtful) and self._sizes[element] < self._whole / 2

    def start(self, element: HtmlElement) -> None:
        tag = element.tag
        if FOLD in element.attrib:
            self._outer.append((self._level, self._floor, self._handle))
            self._floor = self._level = self._level + 1
            self._handle = 0
        if self._one is None:
            self._start_outside(element)
        elif tag in ("li", "dt") and self._one.tag in ("ul", "ol", "dl"):
            self._pieces.append(f"{_BREAK}- ")
        elif tag == "dd":
            after = element.getprevious()
            self._pieces.append(_TERM if after is not None and after.tag == "dt" else " ")
        elif tag in ("td", "th"):
            self._pieces.append(_CELL)
        elif tag in ("tr", "caption"):
            self._pieces.append(_BREAK)
        elif tag not in _INLINE:
            self._pieces.append(" ")
        self._links += tag == "a"
        self._pre += tag == "pre"
        self.text(element.text)

    def _start_outside(self, element: HtmlElement) -> None:
        tag = element.tag
        if tag == "br":
            self._pieces.append(_BREAK)
        elif tag not in _INLINE:
            self.flush()
            self._begun = element
            self._loose += _is_loose(element)
            if self._is_heading(element) or (element not in self._parted and self._is_one(element)):
                self._one = element

    def end(self, element: HtmlElement) -> None:
        tag = element.tag
        self._links -= tag == "a"
        self._pre -= tag == "pre"
        if element is self._one:
            self.flush()
            self._one = None
            self._loose -= _is_loose(element)
        elif self._one is not None:
            if tag not in _INLINE:
                self._pieces.append(" ")
        elif tag not in _INLINE and tag != "br":
            self.flush()
            self._loose -= _is_loose(element)
        if FOLD in element.attrib:
            own = self._handle
            self._level, self._floor, self._handle = self._outer.pop()
            ends = own if tag == "details" else self._handle
            if ends:
                self.found.append(Block("", ends, element, False, 0.0))
                self._handle = 0
        self.text(element.tail)

    def text(self, text: str | None) -> None:
        if text:
            text = _INVISIBLE.sub("", text)
            length = len(text.strip())
            self._length += length
            self._linked += length if self._links else 0
            self._pieces.append(text.replace("\n", _BREAK) if self._pre and self._one is None else text)

    def flush(self) -> None:
        """End the block that has been read so far."""
        text = "".join(self._pieces)
        linked = self._linked / max(1, self._length)
        self._pieces.clear()
        self._linked = self._length = 0
        if not text.strip():
            return
        if self._one is not None and self._is_heading(self._one):
            heading = _flat(text)
            level = self._heading_level(self._one)
            plain = self._one.tag in HEADINGS and not self._loose
            # Some style whole paragraphs as headings.
            level = level if len(heading) <= _LONGEST_HEADING else 0
            self.found.append(Block(heading, level, self._one, plain, linked))
        elif self._one is not None:
            lines = _rows(text) if self._one.tag == "table" else _items(text)
            if lines:
                self.found.append(Block("\n".join(lines), 0, self._one, False, linked))
        else:
            for paragraph in _paragraphs(text):
                self.found.append(Block(paragraph, 0, self._begun, not self._loose, linked))

    def _is_heading(self, element: HtmlElement) -> bool:
        return element.tag in HEADINGS or HANDLE in element.attrib or element.tag == "dt"

    def _heading_level(self, element: HtmlElement) -> int:
        if element.tag in HEADINGS:
            level = max(int(element.tag[1]), self._floor + 1)
        else:
            level = self._floor if element.tag == "summary" else self._level + 1
        if HANDLE in element.attrib:
            self._handle = level
        elif element.tag in HEADINGS:
            self._level = level
        return level

    def _is_one(self, element: HtmlElement) -> bool:
        """Whether a list or table is one paragraph, and not a way of laying out a page."""
        tag = element.tag
        if tag in ("ul", "ol", "dl"):
            items = list(element.iterchildren("li", "dt", "dd"))
            asking = any(item.tag == "dt" and item.text_content().rstrip().endswith("?") for item in items)
            return not asking and all(self._sizes[item] <= _LONGEST_ITEM for item in items)
        if tag == "table" and element.get("role") not in ("presentation", "none"):
            rows = [[cell for cell in row if self._sizes.get(cell, 0)] for row in element.iter("tr")]
            sizes = [self._sizes[cell] for row in rows for cell in row]
            return sum(len(row) > 1 for row in rows) > 1 and max(sizes) <= _LONGEST_ITEM
        return False


def _sizes(body: HtmlElement) -> dict[HtmlElement, int]:
    """The characters of text in each element, white space around them left out."""
    sizes: dict[HtmlElement, int] = {}
    for element in reversed(list(body.iter())):
        size = sizes[element] = sizes.get(element, 0) + len((element.text or "").strip())
        parent = element.getparent()
        if element is not body and parent is not None:
            sizes[parent] = sizes.get(parent, 0) + size + len((element.tail or "").strip())
    return sizes


def _above(elements: list[HtmlElement]) -> set[HtmlElement]:
    """Whatever holds one of the elements."""
    found: set[HtmlElement] = set()
    for element in elements:
        for above in element.iterancestors():
            if above in found:
                break
            found.add(above)
    return found


def _is_content(element: HtmlElement) -> bool:
    return element.tag in ("main", "article", "section")


def _is_loose(element: HtmlElement) -> bool:
    return element.tag in ("td", "th", "li", "dt", "dd", "address") or FOLD in element.attrib


def _flat(text: str) -> str:
    return " ".join(text.split())


def _paragraphs(text: str) -> list[str]:
    """A text in lines; two line breaks in a row part paragraphs."""
    lines = [_flat(line) for line in text.split(_BREAK)]
    return [part.strip() for part in "\n".join(lines).split("\n\n") if part.strip()]


def _items(text: str) -> list[str]:
    return [item for line in text.split(_BREAK) if (item := _item(line)).strip("- ")]


def _item(line: str) -> str:
    """A line of a list; a term and what it means are parted by a colon."""
    item, *meanings = map(_flat, line.split(_TERM))
    for meaning in meanings:
        item += (" " if item[-1:] in ("", *"-:.,;!?") else ": ") + meaning
    return item


def _rows(text: str) -> list[str]:
    rows = ([_flat(cell) for cell in line.split(_CELL)] for line in text.split(_BREAK))
    return [" | ".join(filter(None, row)) for row in rows if any(row)]
