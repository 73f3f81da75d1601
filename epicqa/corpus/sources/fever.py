"""FEVER's Wikipedia pages, ``{id, text, lines}``, as the files wiki-001.jsonl and on have them.

``id`` is the page's title; ``lines`` has a line a sentence, ``number TAB sentence TAB anchor TAB title ...``,
in which an anchor may hold a line feed. A sentence's number is its line's, which is how evidence names it. A
blank line, or a number that is left out, parts paragraphs, so that a context is a run of lines that follow
each other: the second paragraph of a page may begin with ``-C001-S004``. Links and ``text``, which is the
sentences again, are not kept.

Thorne et al., "FEVER: a large-scale dataset for Fact Extraction and VERification", NAACL 2018, and the data
set's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from epicqa.corpus.model import Context, Document, Sentence
from epicqa.corpus.sources.base import BadDocument, Format, checked_id, checked_metadata, need
from epicqa.ids import ContextId, SentenceId
from epicqa.normal import normal

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""What FEVER's tokenizer made of brackets, in titles and in text."""

TITLE_ESCAPES = {**BRACKETS, "-COLON-": ":"}
"""What titles have for brackets and colons."""

TEXT_TOKENS = {**BRACKETS, "``": '"', "''": '"'}
"""What sentences have for brackets and quotation marks."""

_KEYS = frozenset(("id", "text", "lines"))
_OTHERS = frozenset(("title", "url", "document_id", "contexts"))

# White space, which ids cannot hold, and the sign of the escape.
_UNSAFE = re.compile(r"[\s%]")
_NUMBERED = re.compile(r"(0|[1-9][0-9]{0,8})\t")


def page_id(page: str) -> str:
    """The document id of a page: its title as the file has it, white space and ``%`` as ``%20`` and so on."""
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), page)


def page_of(document_id: str) -> str:
    """The page of a document id, as its file spells it."""
    return unquote(document_id, errors="strict")


def page_title(page: str) -> str:
    """A page's title as people write it: brackets, colons and spaces put back, in Unicode's form NFC."""
    if "-" in page:
        for escape, character in TITLE_ESCAPES.items():
            page = page.replace(escape, character)
    return normal("NFC", " ".join(page.replace("_", " ").split()))


def document(record: Mapping[str, Any]) -> Document:
    """Read one page; brackets and quotation marks that a tokenizer spelled out are put back, text is NFC."""
    page = need(record, "id", str)
    if not page:
        raise BadDocument("the page has no title ('id' is empty)")
    document_id = checked_id(page_id(page))
    try:
        sentences = _sentences(need(record, "lines", str))
        if not sentences:
            raise BadDocument("the page is empty")
        # Lines that follow each other have one difference of number and place.
        runs = groupby(enumerate(sentences), lambda item: item[1][0] - item[0])
        return Document(
            document_id=document_id,
            title=page_title(page) or None,
            url=None,
            contexts=tuple(
                _context(ContextId(document_id, number), [sentence for _, sentence in run])
                for number, (_, run) in enumerate(runs)
            ),
            metadata=checked_metadata({k: v for k, v in record.items() if k not in _KEYS}),
        )
    except BadDocument as error:
        told = BadDocument(f"page {page!r:.80}: {error}")
        told.document_id = document_id
        raise told from None


def _sentences(lines: str) -> list[tuple[int, str]]:
    """Numbers, ascending, and texts of the lines that are not blank."""
    found = []
    for number, line in _numbered(lines):
        sentence = line.split("\t", 2)[1]
        if text := " ".join(TEXT_TOKENS.get(token, token) for token in sentence.split()):
            found.append((number, normal("NFC", text)))
    return found


def _numbered(lines: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, ascending; what an anchor's line feed cut off is joined again."""
    if not lines.strip():
        return
    cut = lines.split("\n")
    numbers = [int(found[1]) if (found := _NUMBERED.match(line)) else None for line in cut]
    if numbers[0] is None:
        raise BadDocument("'lines' must begin with a number and a tab, as in '0\\tThe first sentence .'")
    last = {number: at for at, number in enumerate(numbers) if number is not None}
    number, began = numbers[0], 0
    for at in range(1, len(cut)):
        other = numbers[at]
        # "1984 TAB" may also be cut off an anchor: then the number that should come is still to come.
        if other is None or other <= number or (other > number + 1 and last.get(number + 1, 0) > at):
            continue
        yield number, "\n".join(cut[began:at])
        number, began = other, at
    yield number, "\n".join(cut[began:])


def _context(context_id: ContextId, lines: list[tuple[int, str]]) -> Context:
    sentences = []
    start = 0
    for number, text in lines:
        sentences.append(Sentence(str(SentenceId(*context_id, number)), start, start + len(text)))
        start += len(text) + 1
    return Context(str(context_id), None, " ".join(text for _, text in lines), tuple(sentences))


FORMAT = Format(
    "fever",
    accepts=lambda record: record.keys() >= _KEYS and _OTHERS.isdisjoint(record),
    document=document,
)
