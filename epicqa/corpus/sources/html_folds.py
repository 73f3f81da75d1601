"""Folded parts of a page (accordions, tabs, ``<details>``) laid open: extractors skip what is hidden."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement

FOLD = "data-epicqa-fold"
"""Marks what a handle opens; its own text is left out of the heading levels around it."""

HANDLE = "data-epicqa-handle"
"""Marks the handle: the heading of what it opens."""

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
UNSEEN = re.compile(r"(?:^|[\s_-])(?:sr|screen-?reader|visually-?hidden)(?:$|[\s_-])", re.IGNORECASE)
"""Finds in a class that an element is there for screen readers alone."""

_LONGEST_HANDLE = 300
_BLOCKS = ("p", "ul", "ol", "dl", "table", "details", "form", "nav")
_HOLDERS = ("body", "main", "section", "ul", "ol")
_PANELS = ("div", "section", "dd", "p", "ul", "ol", "article")
_NAMED = re.compile(
    r"(?:accordion|faq|expander|collaps\w*|toggle|fold)s?[\w-]*"
    r"(?:title|trigger|link|header|heading|question|button|label|toggle)",
    re.IGNORECASE,
)
_NO_TEXT = {"svg", "script", "style", "noscript", "template"}
_MENUS = {"navigation", "menu", "menubar", "banner", "search", "dialog", "contentinfo"}
_MENU_TAGS = {"nav", "footer", "select"}
_HIDING = ("hidden", "aria-hidden", "style", "class", "id", "role")
_MOSTLY = 0.8


def unfold(tree: HtmlElement) -> None:
    """Lay the folded parts of a page open, in place.

    What opens a part becomes its heading (`HANDLE`); the part loses what hides it (`FOLD`). Menus stay.
    """
    panels = {element.get("id"): element for element in tree.xpath(".//*[@id]")}
    done: set[HtmlElement] = set()
    for element in list(tree.iter()):
        if element.tag == "details":
            _reveal(element)
            for part in element:
                _show(part)
        elif element.tag == "summary":
            _make_handle(element)
        elif element.get("role") == "tabpanel":
            _reveal(element)
        elif _opens(element) and _is_short(element) and not done.intersection(element.iterancestors()):
            panel = _panel(element, panels)
            if panel is not None and not _is_menu(element, panel):
                done.add(element)
                _reveal(panel)
                _make_handle(element)
    for element in tree.xpath(".//*[@role='heading' or contains(@class, 'h')]"):
        _make_heading(element)


def _make_heading(element: HtmlElement) -> None:
    """A heading of what only acts as one, by its role, or looks like one, by a class ``h1`` to ``h6``."""
    if element.get("role") == "heading":
        name = f"h{element.get('aria-level')}"
    elif element.tag in ("div", "p"):
        name = next((name for name in element.get("class", "").split() if name in HEADINGS), "")
    else:
        return
    inside = next(element.iterancestors(*HEADINGS), None)
    if name in HEADINGS and inside is None and _is_short(element) and not list(element.iter(*HEADINGS)):
        element.tag = name


def _is_short(element: HtmlElement) -> bool:
    """Whether it could be a heading: a line of text, nothing that holds paragraphs."""
    blocks = (inner for inner in element.iter(*_BLOCKS) if inner is not element)
    return next(blocks, None) is None and len(element.text_content()) <= _LONGEST_HANDLE


def _opens(element: HtmlElement) -> bool:
    get = element.get
    if get("aria-expanded") or "collapse" in (get("data-toggle"), get("data-bs-toggle")):
        return True
    return element.tag not in _HOLDERS and bool(_NAMED.search(get("class", "")))


def _panel(handle: HtmlElement, panels: dict[str | None, HtmlElement]) -> HtmlElement | None:
    """What a handle opens: what it names by id, else what comes after it or after what it is alone in."""
    for name in ("aria-controls", "data-target", "data-bs-target", "href"):
        target = panels.get(handle.get(name, "").removeprefix("#") or None)
        if target is not None and target is not handle and target not in handle.iterancestors():
            return target
    holder = handle
    for _ in range(3):
        after = holder.getnext()
        if after is not None:
            # What holds other handles is a whole accordion, and this one opens all of it.
            return after if after.tag in _PANELS and not any(map(_opens, after.iter())) else None
        above = holder.getparent()
        if above is None or above.tag in ("body", "main", "article"):
            return None
        holder = above
    return None


def _is_menu(handle: HtmlElement, panel: HtmlElement) -> bool:
    for element in (handle, *handle.iterancestors()):
        if element.tag in _MENU_TAGS or element.get("role") in _MENUS:
            return True
    linked = sum(len(link.text_content().strip()) for link in panel.iter("a"))
    return linked > _MOSTLY * len(panel.text_content().strip())


def _reveal(panel: HtmlElement) -> None:
    _show(panel)
    panel.set(FOLD, "")


def _show(element: HtmlElement) -> None:
    for name in _HIDING:
        element.attrib.pop(name, None)


def _make_handle(element: HtmlElement) -> None:
    """Only its text stays, unless it is, holds or stands in a heading, which then does."""
    headings = (*element.iterancestors(*HEADINGS), *element.iter(*HEADINGS))
    if headings:
        _plain(headings[0])
        headings[0].set(HANDLE, "")
    elif _is_short(element):
        element.tag = "summary" if element.tag == "summary" else "div"
        _plain(element)
        element.set(HANDLE, "")


def _plain(element: HtmlElement) -> None:
    for inner in list(element.iterdescendants()):
        unseen = inner.get("aria-hidden") == "true" or UNSEEN.search(inner.get("class", ""))
        if unseen or inner.tag in _NO_TEXT:
            inner.drop_tree()
        else:
            inner.attrib.clear()
            inner.tag = "span"
    element.attrib.clear()
