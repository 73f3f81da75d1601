"""Which documents are about the epidemic: by whole words in title and text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from epicqa.errors import EpicqaError
from epicqa.jsonfiles import read_text
from epicqa.normal import normal

Where = Literal["any", "title", "text", "both"]
"""Where a term must stand: in the title or the text, or in one of them, or in both."""
WHERES: tuple[str, ...] = get_args(Where)


def covid_terms() -> tuple[str, ...]:
    """The published terms for COVID-19."""
    return _terms((files("epicqa.collect") / "covid_terms.txt").read_text("utf-8"))


def read_terms(path: Path) -> tuple[str, ...]:
    """Terms of a file, one a line; what follows ``#`` is a comment.

    A term in lower case is found in any case, one with a capital letter only as it stands.

    Raises:
        EpicqaError: the file cannot be read, is not UTF-8, or holds no term.
    """
    terms = _terms(read_text(path))
    if not terms:
        raise EpicqaError(f"{path}: holds no term, expected one a line")
    return terms


def matches(title: str | None, texts: Iterable[str], terms: Sequence[str], where: Where) -> bool:
    """Whether a document's title and texts hold a term where one must stand; without terms, True."""
    if not terms:
        return True
    pattern = _pattern(tuple(terms))
    in_title = _found(pattern, title or "")
    if where == "title" or (where == "any" and in_title) or (where == "both" and not in_title):
        return in_title
    return any(_found(pattern, text) for text in texts)


def _found(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(normal("NFC", text)) is not None


def _terms(text: str) -> tuple[str, ...]:
    lines = (line.partition("#")[0].split() for line in normal("NFC", text).splitlines())
    return tuple(dict.fromkeys(" ".join(words) for words in lines if words))


@lru_cache(maxsize=4)
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(_branch, terms))})(?!\w)")


def _branch(term: str) -> str:
    words = r"[\s-]+".join(map(re.escape, term.split()))
    return f"(?i:{words})" if term == term.lower() else words
