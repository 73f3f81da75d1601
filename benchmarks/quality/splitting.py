"""Sentences of the test sets and the training data: the library's own, so that neither moves with epicqa."""

from __future__ import annotations


def split(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences as ``sentencex`` ends them: code points, end exclusive, trimmed, none blank."""
    import sentencex

    spans = []
    previous = 0
    # Only the ends are taken, so that whatever the splitter says no character falls between two spans.
    for end in [*(found["end_index"] for found in sentencex.get_sentence_boundaries("en", text)), len(text)]:
        piece = text[previous:end]
        if bare := piece.strip():
            start = previous + len(piece) - len(piece.lstrip())
            spans.append((start, start + len(bare)))
        previous = max(previous, end)
    return spans
