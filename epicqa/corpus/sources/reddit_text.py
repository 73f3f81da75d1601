"""Reddit's markdown reduced to plain text.

CommonMark with tables and strike-through, and what Reddit adds to it: spoilers, superscripts, headings
without a space, emotes. Raw HTML is text there, and so it is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LENGTH = 40_000
"""Characters that Reddit lets a text have; markdown is not looked for in longer ones."""

_MAX_NESTING = 60
_MAX_QUOTES = 5

_ESCAPED = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
_ENTITY = re.compile("&(?:amp|lt|gt);")

# Control characters, and characters that are none: Unicode keeps these for use inside a program.
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_INVISIBLE = re.compile("[\u200b\u2060\ufeff]")
# Stand for characters that must come out as they are: of addresses, and of what was escaped or is code.
_PROTECTED = {"_": "\ufdd0", "*": "\ufdd1", "~": "\ufdd2", "^": "\ufdd3"}
_PROTECT = str.maketrans(_PROTECTED)
_RESTORE = str.maketrans({stand_in: character for character, stand_in in _PROTECTED.items()})

_ADDRESS = re.compile(r"(?<![\w<])https?://[^\s<>]*[^\s<>_*~.,;:!?)\]}'\"\\|]")
_ESCAPE_IN_ADDRESS = re.compile(r"\\(?=[_*~])")
_QUOTES = re.compile(rf"^(?:[ \t]*>){{{_MAX_QUOTES + 1},}}(?!!)", re.MULTILINE)
_SPOILER_LINE = re.compile(r"^((?:[ \t]*>)*?[ \t]*)>!", re.MULTILINE)
_HEADING = re.compile(r"^( {0,3}#{2,6})(?=[^#\s])", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")

# After a word or a bracket a caret is a power or a charge, which plain text also writes so.
_SMALL_GROUP = re.compile(r"(?<![\w)\]^])\^+\(([^()]*)\)")
_SMALL_WORD = re.compile(r"(?<![\w)\]^])\^+(?=[^\s^])")
_LANGUAGE = re.compile(r"[\w+#.-]*")
_SPACES = re.compile(r"[ \t\u00a0]+")
_LINE_ENDS = re.compile(r" ?\n ?")
_EMOTES = ("gif", "img")


def unescape(text: str) -> str:
    """A text as it was written: dumps and the API escape ``&``, ``<`` and ``>``, and those alone, once."""
    return _ENTITY.sub(lambda found: _ESCAPED[found[0]], text)


def plain(markdown: str) -> str:
    """The text of a post or comment without its markdown.

    Blocks are joined by a blank line, so are the rows of a table (``a | b``); items of a list are lines that
    begin with ``- `` or ``1. ``. Of a quote, a heading, a spoiler, code and a link the text stays, of an
    image its description; rules go. ``^(small print)`` loses its mark, ``10^6`` keeps it. What is longer than
    ``MAX_LENGTH`` characters, or nested deeper than anyone writes, stays as it stands.
    """
    text = _UNWANTED.sub(" ", markdown.replace("\r\n", "\n").replace("\r", "\n"))
    if len(text) > MAX_LENGTH:
        return text.strip()
    source = _HEADING.sub(r"\1 ", _QUOTES.sub(">" * _MAX_QUOTES, _without_spoilers(text)))
    tokens = _parser().parse(_ADDRESS.sub(_protected_address, source))
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return text.strip()
    return "".join(_blocks(tokens)).translate(_RESTORE).strip()


def _protected_address(found: re.Match[str]) -> str:
    return _ESCAPE_IN_ADDRESS.sub("", found[0]).translate(_PROTECT)


def _without_spoilers(text: str) -> str:
    """A text without ``>!`` and ``!<`` around parts of a paragraph, and without ``>!`` before lines."""
    if ">!" not in text:
        return text
    kept: list[str] = []
    at, blank = 0, -1
    while (start := text.find(">!", at)) >= 0 and (end := text.find("!<", start + 2)) >= 0:
        if blank < start:
            found = _BLANK_LINE.search(text, start)
            blank = found.start() if found else len(text)
        if end < blank:
            kept += [text[at:start], text[start + 2 : end]]
            at = end + 2
        else:
            kept.append(text[at : start + 2])
            at = start + 2
    return _SPOILER_LINE.sub(r"\1> ", "".join(kept) + text[at:])


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    # Escaped characters are tokens of their own until text_join.
    return parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline", "text_join"])


def _blocks(tokens: list[Token]) -> Iterator[str]:
    """The texts of blocks, each after what parts it from the one before."""
    lists: list[tuple[str, int]] = []  # of each open list what follows its numbers, and its next number
    mark = ""  # of the item whose first block comes next
    fresh = True  # whether that is the first item of an outermost list
    cells: list[str] | None = None
    for token in tokens:
        text = ""
        match token.type:
            case "bullet_list_open":
                fresh = fresh or not lists
                lists.append(("", 0))
            case "ordered_list_open":
                fresh = fresh or not lists
                start = token.attrGet("start")
                lists.append((token.markup, 1 if start is None else int(start)))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "list_item_open":
                delimiter, number = lists[-1]
                mark += f"{number}{delimiter} " if delimiter else "- "
                lists[-1] = (delimiter, number + 1)
            case "list_item_close":
                mark = ""
            case "tr_open":
                cells = []
            case "tr_close":
                # Splitters end a sentence at a blank line, and rows are none of each other's.
                text, cells = " | ".join(cells or []).strip(" |"), None
            case "inline":
                text = _inline(token.children or [])
                if cells is not None:
                    cells.append(text)
                    text = ""
            case "code_block" | "fence":
                # What stands behind a fence is a language, unless the fence was meant to open a line of code.
                opening = (
                    "" if token.content.strip() and _LANGUAGE.fullmatch(token.info.strip()) else token.info
                )
                text = f"{opening}\n{token.content}".strip("\n").translate(_PROTECT)
        if text:
            yield ("\n" if mark and not fresh else "\n\n") + mark + text
            mark, fresh = "", False


def _inline(tokens: list[Token]) -> str:
    text = "".join(map(_text, tokens))
    if "^" in text:
        # Inner groups first, as often as anyone nests them.
        for _ in range(3):
            text = _SMALL_GROUP.sub(r"\1", text)
        text = _SMALL_WORD.sub("", text)
    return _LINE_ENDS.sub("\n", _SPACES.sub(" ", _INVISIBLE.sub("", text))).strip()


def _text(token: Token) -> str:
    match token.type:
        case "text":
            return token.content
        case "text_special" | "code_inline":
            return token.content.translate(_PROTECT)
        case "image":
            described = "".join(map(_text, token.children or []))
            return "" if described in _EMOTES else described
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
    return ""
