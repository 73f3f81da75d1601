"""Pages in the track's XML form: ``doc`` with ``title``, ``text``, ``summary`` and nested ``sections``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from epicqa.corpus.drafts import Paragraph
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.html import Page

if TYPE_CHECKING:
    from lxml.etree import _Element

_XML = "{http://www.w3.org/XML/1998/namespace}"
_TEXTS = ("text", "summary")
_KEPT = ("source", "date", "language")
# Elements within a text that end a word, which the text around them may not say by white space.
_PARTS = ("br", "dd", "div", "dt", "item", "li", "list", "ol", "p", "para", "row", "table", "td", "tr", "ul")
_LONGEST_SECTION = 1000
# The parser's own name for bytes; the line is in the message already.
_PLACE = re.compile(r" \(<string>, line \d+\)$")


def read_xml(raw: bytes) -> Page:
    """A page out of the bytes of an XML file, in the encoding that it declares.

    The root ``doc`` has the address in ``url``, else ``id``. A section's name is the titles of the sections
    around it and its own, joined by `` - `` (1,000 characters at most). A section's own ``text`` and
    ``summary`` come first, whatever markup is in them, then the sections in it, directly or in ``sections``.
    Runs of white space are one space, but under ``xml:space="preserve"``.

    Raises:
        BadDocument: not well-formed, of another root, or with entities, which are never read.
    """
    root = _parsed(raw)
    if _name(root) != "doc":
        raise BadDocument(f"an XML file of <{_name(root)}>, expected <doc>")
    known = {key: _flat(root.get(key, "")) for key in _KEPT}
    known["language"] = known["language"] or _flat(root.get(f"{_XML}lang", ""))
    return Page(
        title=_title(root),
        url=_flat(root.get("url", "")) or _flat(root.get("id", "")) or None,
        paragraphs=tuple(_paragraphs(root, None)),
        metadata={key: value for key, value in known.items() if value},
    )


def _parsed(raw: bytes) -> _Element:
    from lxml import etree

    # The parser's own bounds stay in force: 256 elements deep, 10 million characters a text.
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(raw, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise BadDocument(f"broken XML: {_PLACE.sub('', _flat(str(error)))}") from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and next(iter(dtd.iterentities()), None) is not None:
        raise BadDocument("defines entities, which are not read")
    for entity in root.iter(etree.Entity):
        raise BadDocument(f"names the entity {entity.text}, which is not read; expected the character itself")
    return root


def _paragraphs(holder: _Element, section: str | None) -> Iterator[Paragraph]:
    """The texts of the document or of a section, then those of the sections in it."""
    for child in holder:
        if _name(child) in _TEXTS and (text := _text(child)):
            yield Paragraph(text, section)
    for inner in _sections(holder):
        titles = [title for title in (section, _title(inner)) if title]
        yield from _paragraphs(inner, " - ".join(titles)[:_LONGEST_SECTION] or None)


def _sections(holder: _Element) -> Iterator[_Element]:
    for child in holder:
        if _name(child) == "section":
            yield child
        elif _name(child) == "sections":
            yield from (inner for inner in child if _name(inner) == "section")


def _title(holder: _Element) -> str | None:
    return next((_flat(_all_text(child)) or None for child in holder if _name(child) == "title"), None)


def _text(element: _Element) -> str:
    spaces = (above.get(f"{_XML}space") for above in (element, *element.iterancestors()))
    kept = next(filter(None, spaces), "default") == "preserve"
    text = _all_text(element)
    return text.strip() if kept else _flat(text)


def _all_text(element: _Element) -> str:
    from lxml.etree import iterwalk

    pieces = []
    for event, inner in iterwalk(element, events=("start", "end")):
        if inner is not element and _name(inner) in _PARTS:
            pieces.append(" ")
        if event == "start":
            pieces.append(inner.text or "")
        elif inner is not element:
            pieces.append(inner.tail or "")
    return "".join(pieces)


def _name(element: _Element) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _flat(text: str) -> str:
    return " ".join(text.split())
