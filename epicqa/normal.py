"""Texts that nobody vouches for: what files can hold, normal forms, what a terminal may be shown."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

_PIECE = 256


def normal(form: Literal["NFC", "NFKC"], text: str) -> str:
    """A text's normal form, in time linear in its length; what stands across a 256th character is missed."""
    if text.isascii():
        return text
    # A long run of combining marks takes the square of its length.
    pieces = (text[low : low + _PIECE] for low in range(0, len(text), _PIECE))
    return "".join(unicodedata.normalize(form, piece) for piece in pieces)


def printable(text: str) -> str:
    """A text with a space for each character that a terminal would obey, or that has no shape."""
    return "".join(char if char.isprintable() else " " for char in text)


def is_unicode(text: str) -> bool:
    """Whether a text is free of halves of surrogate pairs, which JSON can hold and no file in UTF-8."""
    return not re.search("[\ud800-\udfff]", text)
