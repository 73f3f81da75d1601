"""From sentences to passages: runs of sentences in one context that do not overlap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from epicqa.corpus.store import CorpusStore
from epicqa.ranking import Ranking

JOIN = 0.8
"""A neighbour joins a passage when its score is at least this share of the best sentence's."""


def grow(sentences: Ranking, store: CorpusStore, most: int) -> Ranking:
    """Passages of 1 to ``most`` sentences around retrieved sentences, none overlapping.

    The best sentence that no passage holds yet begins one; then the better neighbour in its context joins,
    while it was retrieved, is free, and scores at least ``JOIN`` of the first. A passage scores as its best
    sentence: one more that states nothing new costs NDNS a third of the gain, so joining has to be earned.

    Args:
        sentences: single sentences, best first.
        store: their corpus.
        most: sentences a passage at most; 1 returns the sentences as they are.
    """
    if most <= 1:
        return sentences
    score = dict(zip(sentences.first.tolist(), sentences.score.tolist(), strict=True))
    taken: set[int] = set()
    kept: list[tuple[int, int, float]] = []
    for row, best in score.items():
        if row in taken:
            continue
        context = store.sentence_context[row]
        low, high = int(store.context_first[context]), int(store.context_first[context + 1]) - 1
        first = last = row
        enough = best * JOIN if best > 0 else best
        while last - first + 1 < most:
            free = [
                (score[at], at)
                for at in (first - 1, last + 1)
                if low <= at <= high and at in score and at not in taken and score[at] >= enough
            ]
            if not free:
                break
            at = max(free, key=lambda one: (one[0], -one[1]))[1]
            first, last = min(first, at), max(last, at)
        taken.update(range(first, last + 1))
        kept.append((first, last, best))
    return _ranking(kept)


def without_overlaps(passages: Ranking) -> Ranking:
    """The passages that share no sentence with a better one, in order."""
    taken: set[int] = set()
    kept = np.zeros(len(passages), dtype=bool)
    for place, (first, last) in enumerate(zip(passages.first.tolist(), passages.last.tolist(), strict=True)):
        rows = range(first, last + 1)
        if taken.isdisjoint(rows):
            kept[place] = True
            taken.update(rows)
    return passages[kept]


def fill(passages: Ranking, rows: Iterable[int], depth: int) -> Ranking:
    """Passages, then single sentences from ``rows`` that none of them holds, up to ``depth`` in all.

    The sentences' scores lie below the passages', falling.
    """
    missing = depth - len(passages)
    if missing <= 0:
        return passages
    taken = {
        row
        for first, last in zip(passages.first.tolist(), passages.last.tolist(), strict=True)
        for row in range(first, last + 1)
    }
    added: list[int] = []
    for row in rows:
        if len(added) == missing:
            break
        if row not in taken:
            taken.add(row)
            added.append(row)
    lowest = float(passages.score.min()) if len(passages) else 0.0
    more = np.array(added, dtype=np.int64)
    step = max(1e-3, float(np.spacing(np.float32(2 * abs(lowest)))))
    score = lowest - step * np.arange(1, len(more) + 1)
    return Ranking(
        np.concatenate([passages.first, more]),
        np.concatenate([passages.last, more]),
        np.concatenate([passages.score, score.astype(np.float32)]),
    )


def _ranking(kept: list[tuple[int, int, float]]) -> Ranking:
    first, last, score = zip(*kept, strict=True) if kept else ((), (), ())
    return Ranking(np.array(first, np.int64), np.array(last, np.int64), np.array(score, np.float32))
