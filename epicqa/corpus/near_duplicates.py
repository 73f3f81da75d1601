"""Near-duplicate texts: MinHash signatures, and each row's earlier row that says almost the same.

A text is the set of its word 5-grams: runs of letters, digits and underscores of the NFKC form, lower case.
The library is datasketch: its permutations come from NumPy's frozen generator and its schemes keep their
values from release to release. Words and 5-grams are hashed here, by BLAKE2b and a polynomial, so that the
same text has the same signature in every process and on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from epicqa.normal import normal

PERMUTATIONS = 128
SHINGLE_WORDS = 5
MIN_WORDS = 8
"""A text of fewer words is too little to call a duplicate."""

NOTHING = np.uint32(0xFFFFFFFF)
"""Every value of the row of a text without a signature."""

FOUND_AT_THRESHOLD = 0.99
COMPARED = 8
"""Earlier rows that a row is compared with in one bucket, and similar ones that are remembered for it."""

_WORD = re.compile(r"\w+")
_WORDS_KNOWN = 1 << 17
_SHINGLES_AT_ONCE = 1 << 12
_ROWS_AT_ONCE = 1 << 12
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Rows = NDArray[np.int64]
Signatures = NDArray[np.uint32]


def signatures(texts: Sequence[str]) -> Signatures:
    """The signatures of texts: uint32[n, PERMUTATIONS].

    The share of equal values of two rows estimates the Jaccard similarity J of the two sets of 5-grams, with
    a standard error of sqrt(J (1 - J) / PERMUTATIONS) (Broder, 1997). A text of fewer than MIN_WORDS words
    has NOTHING in its whole row.
    """
    from datasketch import MinHash

    sketch = MinHash(PERMUTATIONS, seed=1, scheme="affine32", hashfunc=int)
    empty = sketch.hashvalues
    word_hash = lru_cache(_WORDS_KNOWN)(_word_hash)
    found = np.empty((len(texts), PERMUTATIONS), np.uint32)
    for row, text in enumerate(texts):
        words = _WORD.findall(normal("NFKC", text).lower())
        sketch.hashvalues = empty
        if len(words) >= MIN_WORDS:
            hashes = _shingles(np.fromiter(map(word_hash, words), np.uint64, len(words)))
            for low in range(0, len(hashes), _SHINGLES_AT_ONCE):
                sketch.update_batch(hashes[low : low + _SHINGLES_AT_ONCE].tolist())
        found[row] = sketch.hashvalues
    return found


def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def _shingles(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """32-bit hashes of every run of SHINGLE_WORDS words, as uint64, from 64-bit hashes of the words."""
    count = len(words) - SHINGLE_WORDS + 1
    found = words[:count].copy()
    for place in range(1, SHINGLE_WORDS):
        found *= _FACTOR
        found += words[place : place + count]
    return found >> np.uint64(32)


def groups(signatures: Signatures, threshold: float) -> tuple[Rows, NDArray[np.float32]]:
    """For each row the earlier row that it nearly repeats, if any.

    Rows are taken in order. One whose estimated similarity with an earlier *kept* row reaches the threshold
    is that row's near-duplicate (the lowest such row's); any other is kept. So each is as similar as promised
    to a row that stays when all near-duplicates are dropped, and chains of small changes do not run away.

    Rows are compared when a run of their values, a band, is equal (Leskovec, Rajaraman, Ullman, Mining of
    Massive Datasets, section 3.4). With s the similarity, b bands of r values find a pair with probability
    1 - (1 - s^r)^b: r is the largest that gives FOUND_AT_THRESHOLD at the threshold; above it finds more.
    Of the rows that share a band the first COMPARED stand for all; where there are more, those that share
    twice as many values are looked at by themselves, and so on. Copies of a signature count as one row.

    Args:
        signatures: uint32[n, PERMUTATIONS], as ``signatures`` gives them; may be memory-mapped.
        threshold: above 0, at most 1.

    Returns:
        ``first``: int64[n], the kept row that stands for the row, its own number if it is kept itself.
        ``similarity``: float32[n], the estimated similarity with that row; 1 for kept rows.

    Raises:
        ValueError: the threshold is out of range.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold {threshold}, expected above 0, at most 1")
    first = np.arange(len(signatures), dtype=np.int64)
    similarity = np.ones(len(signatures), np.float32)
    rows, copies, originals = _copies(signatures)
    _settle(signatures, _similar_pairs(signatures, rows, threshold), threshold, first, similarity)
    first[copies] = first[originals]
    similarity[copies] = similarity[originals]
    return first, similarity


def band_rows(threshold: float) -> int:
    """How many values make a band."""
    for rows in range(PERMUTATIONS, 1, -1):
        if 1 - (1 - threshold**rows) ** (PERMUTATIONS // rows) >= FOUND_AT_THRESHOLD:
            return rows
    return 1


def _copies(signatures: Signatures) -> tuple[Rows, Rows, Rows]:
    """Rows with a signature that no earlier row has, ascending; the other rows with one; their originals."""
    some = [np.empty(0, np.int64)]
    for low in range(0, len(signatures), _ROWS_AT_ONCE):
        part = signatures[low : low + _ROWS_AT_ONCE]
        some.append(low + np.flatnonzero((part != NOTHING).any(axis=1)))
    rows = np.concatenate(some)
    rows, starts = _buckets(signatures, rows, 0, PERMUTATIONS)
    copy = starts < np.arange(len(rows))
    # Equal keys are all but proof.
    copy[copy] = _similarities(signatures, rows[copy], rows[starts[copy]]) == 1
    return np.sort(rows[~copy]), rows[copy], rows[starts[copy]]


def _buckets(signatures: Signatures, rows: Rows, column: int, width: int) -> tuple[Rows, Rows]:
    """Rows in the order of what they hold in ``width`` columns from one on, the last followed by the first.

    Returns them, equal ones side by side and ascending, and for each the place where its equals start.
    """
    keys = np.zeros(len(rows), np.uint64)
    for low in range(0, len(rows), _ROWS_AT_ONCE):
        key, part = (array[low : low + _ROWS_AT_ONCE] for array in (keys, rows))
        for place in range(column, column + width):
            key ^= signatures[part, place % PERMUTATIONS]
            key *= _FACTOR
            key ^= key >> np.uint64(32)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.arange(len(rows), dtype=np.int64)
    starts[1:][keys[1:] == keys[:-1]] = 0
    return rows[order], np.maximum.accumulate(starts)


def _crowds(signatures: Signatures, rows: Rows, column: int, width: int) -> Iterator[tuple[Rows, Rows]]:
    """The buckets of a band, then those of its crowded ones by twice as many columns, and so on."""
    while len(rows) and width <= PERMUTATIONS:
        rows, starts = _buckets(signatures, rows, column, width)
        yield rows, starts
        sizes = np.bincount(starts, minlength=len(rows))
        rows = np.sort(rows[sizes[starts] > COMPARED + 1])
        width *= 2


def _similar_pairs(
    signatures: Signatures, rows: Rows, threshold: float
) -> tuple[Rows, Rows, NDArray[np.float64]]:
    """Rows that share a band and whose similarity reaches the threshold: later, earlier, similarity.

    In the order of both; for each later row at most the COMPARED lowest earlier ones.
    """
    size = max(len(signatures), 1)
    pairs, similar = np.empty(0, np.int64), np.empty(0)
    width = band_rows(threshold)
    for column in range(0, PERMUTATIONS - width + 1, width):
        for members, starts in _crowds(signatures, rows, column, width):
            place = np.arange(len(members)) - starts
            found, estimates = [pairs], [similar]
            for other in range(COMPARED):
                later = np.flatnonzero(place > other)
                new = members[later] * size + members[starts[later] + other]
                new = new[~np.isin(new, pairs, assume_unique=True)]
                estimated = _similarities(signatures, new // size, new % size)
                found.append(new[estimated >= threshold])
                estimates.append(estimated[estimated >= threshold])
            pairs, similar = _lowest(np.concatenate(found), np.concatenate(estimates), size)
    return pairs // size, pairs % size, similar


def _lowest(pairs: Rows, similar: NDArray[np.float64], size: int) -> tuple[Rows, NDArray[np.float64]]:
    """Pairs (later * size + earlier) in order, the first COMPARED of each later row."""
    order = np.argsort(pairs)
    pairs, similar = pairs[order], similar[order]
    owners = pairs // size
    few = np.ones(len(pairs), bool)
    few[COMPARED:] = owners[COMPARED:] != owners[:-COMPARED]
    return pairs[few], similar[few]


def _similarities(signatures: Signatures, left: Rows, right: Rows) -> NDArray[np.float64]:
    found = np.empty(len(left))
    for low in range(0, len(left), _ROWS_AT_ONCE):
        part = slice(low, low + _ROWS_AT_ONCE)
        found[part] = (signatures[left[part]] == signatures[right[part]]).mean(axis=1)
    return found


def _settle(
    signatures: Signatures,
    pairs: tuple[Rows, Rows, NDArray[np.float64]],
    threshold: float,
    first: Rows,
    similarity: NDArray[np.float32],
) -> None:
    """Write into ``first`` and ``similarity`` which rows are near-duplicates of which."""
    later, earlier, similar = pairs
    for row, low, count in zip(*np.unique(later, return_index=True, return_counts=True), strict=True):
        own = slice(low, low + count)
        known = dict(zip(earlier[own].tolist(), similar[own].tolist(), strict=True))
        # Whoever is like a near-duplicate may be like the row that stands for it.
        for kept in np.unique(first[earlier[own]]).tolist():
            if kept not in known:
                known[kept] = float((signatures[row] == signatures[kept]).mean())
            if known[kept] >= threshold:
                first[row], similarity[row] = kept, known[kept]
                break
