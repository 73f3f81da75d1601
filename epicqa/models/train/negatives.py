"""Hard negatives: texts that a search takes for answers and that are none, as far as the pairs tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.models.train.pairs import Pair

if TYPE_CHECKING:
    from epicqa.index.build import Index
    from epicqa.models.encoder import Encoder

RANKS = (3, 60)
"""Ranks to draw from: the first few of a search are often answers that nobody marked."""

COPY = 0.75
"""Jaccard similarity of two texts' words from which one is a copy of the other."""

_BLOCK = 256
# Looked at beyond the last rank, for what is dropped on the way.
_SPARE = 40


def with_negatives(
    pairs: Sequence[Pair],
    count: int,
    *,
    pool: Iterable[str] = (),
    index: Index | None = None,
    encoder: Encoder | None = None,
    titles: bool = False,
    ranks: tuple[int, int] = RANKS,
    seed: int = 1,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> list[Pair]:
    """The pairs, each with up to ``count`` negatives: those it brings first, then what a search finds for it.

    Without an index, the search is by the encoder's inner products over a pool: every positive and negative
    of the pairs, and ``pool``. With one, it is by BM25 and by the index's vectors, in turn. Left out are the
    positives of the same query and near copies of them; from what remains, negatives are drawn at random
    from the given ranks. The same pairs, pool or index and seed give the same negatives.

    Args:
        pairs: the pairs.
        count: negatives a pair; fewer where the search finds fewer.
        pool: further texts, such as the sentences around the positives.
        index: an open index to take sentences from instead.
        encoder: what makes vectors of the pool; None: ``static``.
        titles: give a sentence of the index as "title. sentence".
        ranks: first and last rank to draw from, counted from 1 without what is left out.
        seed: another one draws others.
        threads: for BM25.
        progress: called with how many pairs are done, and of how many.

    Raises:
        EpicqaError: ranks out of order, a seed below 0, or a pair is left without any negative.
    """
    first, last = ranks
    if not 1 <= first <= last:
        raise EpicqaError(f"ranks {first} to {last}, expected 1 or more, the first not above the last")
    if seed < 0:
        raise EpicqaError(f"seed {seed}, expected 0 or more")
    positives: defaultdict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        positives[pair.query].append(pair.positive)
    # The words of each positive, to tell copies by.
    words = {query: [_words(text) for text in dict.fromkeys(texts)] for query, texts in positives.items()}
    queries = list(positives)
    depth = last + _SPARE
    if index is None:
        found = _in_pool(queries, _texts(pairs, pool), depth, encoder)
    else:
        found = _in_index(queries, index, depth, titles, threads)
    candidates: dict[str, list[str]] = {}
    for done, (query, texts) in enumerate(found, start=1):
        kept = [text for text in dict.fromkeys(texts) if not _copies(_words(text), words[query])]
        # Of a small pool the last ranks are all there is.
        candidates[query] = kept[first - 1 : last] or kept
        if progress:
            progress(done, len(queries))
    return [
        _filled(pair, candidates[pair.query], count, np.random.default_rng([seed, place]))
        for place, pair in enumerate(pairs)
    ]


def _filled(pair: Pair, candidates: list[str], count: int, draw: np.random.Generator) -> Pair:
    given = list(dict.fromkeys(pair.negatives))[:count]
    others = [text for text in candidates if text not in given]
    wanted = min(count - len(given), len(others))
    chosen = sorted(draw.choice(len(others), wanted, replace=False).tolist()) if wanted else []
    if not given and not chosen:
        raise EpicqaError(
            f"no negatives for {pair.query[:60]!r}, expected some of its own, more pairs, or an index"
        )
    return replace(pair, negatives=(*given, *(others[place] for place in chosen)))


def _texts(pairs: Iterable[Pair], pool: Iterable[str]) -> list[str]:
    own = chain.from_iterable((pair.positive, *pair.negatives) for pair in pairs)
    return list(dict.fromkeys(chain(own, pool)))


def _in_pool(
    queries: list[str], texts: list[str], depth: int, encoder: Encoder | None
) -> Iterator[tuple[str, list[str]]]:
    """The nearest texts of each query, best first; equal ones in the pool's order."""
    if encoder is None:
        from epicqa.models.resolve import load_encoder

        encoder = load_encoder("static")
    vectors = encoder.encode(texts)
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        scores = np.round(encoder.encode_queries(block) @ vectors.T, 5)
        for query, row in zip(block, scores, strict=True):
            yield query, [texts[place] for place in _best(row, depth)]


def _best(scores: NDArray[np.float32], depth: int) -> list[int]:
    if depth < len(scores):
        least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        places = np.flatnonzero(scores >= least)
    else:
        places = np.arange(len(scores))
    order = np.argsort(-scores[places], kind="stable")
    found: list[int] = places[order][:depth].tolist()
    return found


def _in_index(
    queries: list[str], index: Index, depth: int, titles: bool, threads: int
) -> Iterator[tuple[str, list[str]]]:
    """Sentences by BM25 and, where the index has vectors, by these, in turn."""
    from epicqa.index.encode import titled
    from epicqa.retrieve.bm25 import bm25_search
    from epicqa.retrieve.dense import dense_search

    store = index.store
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        lists = [bm25_search(index.lucene, block, depth, k1=0.9, b=0.4, threads=threads)]
        if index.has_vectors:
            lists.append(dense_search(index.vectors, index.encoder, block, depth))
        for place, query in enumerate(block):
            turns = zip_longest(*(ranking[place].first.tolist() for ranking in lists))
            rows = dict.fromkeys(row for turn in turns for row in turn if row is not None)
            texts = []
            for row in list(rows)[:depth]:
                text = store.sentence_text(row)
                if titles:
                    text = titled(store.title(int(store.context_document[store.sentence_context[row]])), text)
                texts.append(text)
            yield query, texts


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _copies(words: frozenset[str], positives: list[frozenset[str]]) -> bool:
    """Whether a text is one of the positives, says nearly the same words, or lies in one or around one."""
    if not words:
        return True
    for positive in positives:
        common = len(words & positive)
        if common >= COPY * len(words | positive):
            return True
        # A short text may lie in a longer one by chance.
        if common == min(len(words), len(positive)) >= 4:
            return True
    return False
