"""Paragraphs and their sections out of a parsed page: trafilatura says which text is the page's own."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING

from epicqa.corpus.drafts import Paragraph
from epicqa.corpus.sources.html_blocks import Block, blocks
from epicqa.corpus.sources.html_folds import unfold

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# Writing without spaces: each character is a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_RUN = 3
_ENOUGH = 0.5
_REGION = 0.9
_ALL_LINKS = 0.8
# The extractor takes time by elements times depth; no page that people wrote is near either bound.
_DEEPEST = 250
_MOST_ELEMENTS = 20_000
_MOST_HEADINGS = 12
# The extractor takes "banner", "expander" or "social-distancing" for what surrounds a page: inside <main>,
# only names that say so are left to it, and those by which it finds a story.
_TELLING = re.compile(
    r"related|promo|teaser|byline|author|comment|advert|(?:^|[\s_-])ads?(?:[\s_-]|$)|sponsor|outbrain|taboola|"
    r"newsletter|subscri|sidebar|most[-_]|more[-_]on|recirc|menu|nav|footer|tag[-_]?list|timestamp|hidden|"
    r"article|body|content|entry|post|primary|story|text",
    re.IGNORECASE,
)


def paragraphs(tree: HtmlElement, names: frozenset[str]) -> tuple[Paragraph, ...]:
    """The paragraphs of a page, which is changed on the way.

    The page is read as blocks; those are kept that trafilatura finds, and between them what it is known to
    lose: lists, tables, text in cells and in folded parts. Of a page of more than 20,000 elements, or of more
    than 250 one in the other, all blocks are kept.

    Args:
        tree: the whole document.
        names: in lower case, what a heading may repeat without being a section.
    """
    body = tree.find("body")
    if body is None:
        return ()
    unfold(body)
    read = blocks(body)
    text = _extracted(tree)
    if text is None:
        return tuple(_under_headings(read, names))
    words = _words(text)
    extracted = {run for length in range(1, _RUN + 1) for run in _runs(words, length)}
    matched = [block for block in read if _share(block, extracted) >= _ENOUGH]
    inside = set(_region(body, matched).iter())
    kept = set(map(id, matched))
    own: list[Block] = []
    told = False
    for block in reversed(read):
        # A heading goes with what it stands over.
        loose = told if block.level and block.plain else not block.plain
        if id(block) in kept or not block.text or (loose and block.element in inside):
            own.append(block)
            told = told if block.level else block.linked <= _ALL_LINKS
        elif not block.level:
            told = False
    return tuple(_under_headings(own[::-1], names))


def _under_headings(own: list[Block], names: frozenset[str]) -> Iterator[Paragraph]:
    headings: list[Block] = []
    previous = None
    for block in own:
        if block.level:
            headings = [above for above in headings if above.level < block.level]
            if block.text.casefold() in names:
                headings.clear()
            elif block.text and len(headings) < _MOST_HEADINGS:
                headings.append(block)
        elif block.linked <= _ALL_LINKS:
            yield Paragraph(block.text, " - ".join(above.text for above in headings) or None)
        elif headings and headings[-1] is previous:
            # The heading of a list of links says nothing about what comes after.
            headings.pop()
        previous = block


def _extracted(tree: HtmlElement) -> str | None:
    """What trafilatura takes for the page's own text; empty where there is none, None where it cannot say."""
    if _is_monstrous(tree):
        return None
    try:
        document = _extractor()(_for_extractor(tree), include_comments=False)
    except Exception:
        # Lists that nest deeply make it recur too deep, for one; no page may end a run.
        return None
    return "" if document is None else " ".join(document.body.itertext())


def _is_monstrous(tree: HtmlElement) -> bool:
    from lxml.etree import iterwalk

    depth = count = 0
    for event, _ in iterwalk(tree, events=("start", "end")):
        depth += 1 if event == "start" else -1
        count += event == "start"
        if depth > _DEEPEST or count > _MOST_ELEMENTS:
            return True
    return False


@cache
def _extractor():  # type: ignore[no-untyped-def]
    from trafilatura import bare_extraction

    # What it says of a page is about its own ways, not for a user.
    for name in ("trafilatura", "htmldate", "courlan", "justext"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return bare_extraction


def _for_extractor(tree: HtmlElement) -> HtmlElement:
    """A copy in which what the extractor is known to stumble over is smoothed."""
    tree = deepcopy(tree)
    for main in tree.xpath("//main | //*[@role='main']"):
        for element in main.iterdescendants():
            # It takes the first <article> for all of the page.
            if element.tag == "article":
                element.tag = "div"
            # It leaves dates out of sentences.
            if element.tag == "time":
                element.tag = "span"
            for name in ("class", "id"):
                if name in element.attrib and not _TELLING.search(element.get(name)):
                    del element.attrib[name]
    return tree


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(words: list[str], length: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[start:] for start in range(length)), strict=False))


def _share(block: Block, extracted: set[tuple[str, ...]]) -> float:
    """How much of a block is in the extracted text, 0 to 1, by runs of three words (of fewer if short)."""
    words = _words(block.text)
    runs = _runs(words, min(_RUN, len(words)))
    return sum(run in extracted for run in runs) / len(runs) if runs else 0.0


def _region(body: HtmlElement, matched: list[Block]) -> HtmlElement:
    """The smallest element, at most as small as ``<main>``, that holds nearly all of the matched blocks."""
    weights: dict[HtmlElement, int] = {}
    begun = {block.element for block in matched}
    for block in matched:
        for element in (block.element, *block.element.iterancestors()):
            weights[element] = weights.get(element, 0) + len(block.text)
    region = body
    while region.tag not in ("main", "article") and region.get("role") != "main":
        heavy = [child for child in region if weights.get(child, 0) >= _REGION * weights.get(body, 0) > 0]
        if not heavy or heavy[0] in begun:
            break
        region = heavy[0]
    return region
