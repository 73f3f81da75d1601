"""Sentences of the test sets and the training data: the library's own, so that neither moves with epicqa."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise


def split(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences as ``sentencex`` ends them: code points, end exclusive, trimmed, none blank."""
    import sentencex

    # Only the ends are taken, so that whatever the splitter says no character falls between two spans.
    ends = [found["end_index"] for found in sentencex.get_sentence_boundaries("en", text)]
    return trimmed(text, pairwise(accumulate([0, *ends, len(text)], max)))


def trimmed(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans without white space at their ends, those of nothing else left out."""
    found = []
    for start, end in spans:
        piece = text[start:end]
        if bare := piece.strip():
            start += len(piece) - len(piece.lstrip())
            found.append((start, start + len(bare)))
    return found
