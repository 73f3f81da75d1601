"""Batches of texts of like length, so that little of them is padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

TOKENS = {"cpu": 2048, "cuda": 32768}
"""Of one pass through a network, padding included, by device: what a CPU's cache and a GPU's memory like."""


def slabs(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Parts of an order by falling length, each within ``tokens`` when padded, or of one.

    Args:
        order: places in ``lengths``, the longest first.
        lengths: tokens of each text.
        tokens: of a part at most.
    """
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield list(order[start : start + size])
        start += size
