"""From sentences to passages: runs of sentences in one context that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from epicqa.corpus.store import CorpusStore
from epicqa.ranking import Ranking, gap_below

LIFT = 1.5
"""How much likelier a sentence is to answer where its neighbour does; more joins sentences that lose."""


def grow(sentences: Ranking, store: CorpusStore, most: int, chance: Mapping[int, float]) -> Ranking:
    """Passages of 1 to ``most`` sentences around ranked sentences, none overlapping, by expected gain.

    The best sentence that no passage holds yet begins one. A neighbour in its context joins where it adds
    more expected gain of NDNS, discounted by 1 / log2(rank + 1), at this rank than it would earn at its own;
    of two, the one that adds more. A passage keeps its best sentence's place and score.

    Args:
        sentences: single sentences, best first.
        store: their corpus.
        most: sentences a passage at most; 1 returns the sentences as they are.
        chance: row -> probability that the sentence states a nugget; those without one join nothing.
    """
    if most <= 1:
        return sentences
    rank = {row: place for place, row in enumerate(sentences.first.tolist(), start=1)}
    taken: set[int] = set()
    kept: list[tuple[int, int, float]] = []
    for row, score in zip(sentences.first.tolist(), sentences.score.tolist(), strict=True):
        if row in taken:
            continue
        context = store.sentence_context[row]
        low, high = int(store.context_first[context]), int(store.context_first[context + 1]) - 1
        first = last = row
        inside = [chance.get(row, 0.0)]
        here = 1 / math.log2(len(kept) + 2)
        while last - first + 1 < most:
            worth = {}
            for at in (first - 1, last + 1):
                if low <= at <= high and at in rank and at in chance and at not in taken:
                    likely = min(1.0, LIFT * chance[at])
                    added = expected_gain([*inside, likely]) - expected_gain(inside)
                    worth[at] = added * here - chance[at] / math.log2(rank[at] + 1)
            if not worth or max(worth.values()) <= 0:
                break
            at = max(worth, key=lambda one: (worth[one], -one))
            first, last = min(first, at), max(last, at)
            inside.append(min(1.0, LIFT * chance[at]))
        taken.update(range(first, last + 1))
        kept.append((first, last, score))
    return _ranking(kept)


def expected_gain(chances: Sequence[float]) -> float:
    """The mean of n (n + 1) / (n + s) over s sentences that state a new nugget each with these chances.

    That is the gain of NDNS exact (see ``measures.ndns``) of a passage in which n sentences of s are new and
    no sentence states two nuggets.
    """
    spread = np.ones(1)
    for one in chances:
        spread = np.convolve(spread, [1 - one, one])
    nuggets = np.arange(1, len(spread))
    return float((spread[1:] * nuggets * (nuggets + 1) / (nuggets + len(chances))).sum())


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
    score = lowest - gap_below(lowest) * np.arange(1, len(more) + 1)
    return Ranking(
        np.concatenate([passages.first, more]),
        np.concatenate([passages.last, more]),
        np.concatenate([passages.score, score.astype(np.float32)]),
    )


def _ranking(kept: list[tuple[int, int, float]]) -> Ranking:
    first, last, score = zip(*kept, strict=True) if kept else ((), (), ())
    return Ranking(np.array(first, np.int64), np.array(last, np.int64), np.array(score, np.float32))
