"""Signatures against exact sets of 5-grams, groups against the stated rule, one row after another."""

from __future__ import annotations

import lzma
import random
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.corpus.near_duplicates import (
    COMPARED,
    MIN_WORDS,
    NOTHING,
    PERMUTATIONS,
    band_rows,
    groups,
    signatures,
)
from epicqa.corpus.sources import parse

HANDS = "Wash your hands for twenty seconds, then dry them with a clean towel."
WORDS = [a + b + c for a in "bdfghklm" for b in "aeiou" for c in ("rat", "len", "mis")]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())
    return set(zip(*(words[at:] for at in range(5)), strict=False)) if len(words) >= MIN_WORDS else set()


def jaccard(left: set, right: set) -> float:
    return len(left & right) / len(left | right) if left and right else 0.0


def prose(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(words))


def edited(draw: random.Random, text: str, edits: int) -> str:
    """Single words replaced, left out or put in."""
    words = text.split()
    for _ in range(edits):
        at = draw.randrange(len(words) + 1)
        words[at : at + draw.randrange(2)] = [draw.choice(WORDS)] * draw.randrange(2)
    return " ".join(words)


def changed(row: NDArray[np.uint32], columns: int, seed: int) -> NDArray[np.uint32]:
    """A row that differs in so many columns."""
    numbers = np.random.default_rng(seed)
    row = row.copy()
    row[numbers.permutation(PERMUTATIONS)[:columns]] = numbers.integers(0, NOTHING, columns, np.uint32)
    return row


def some_row(seed: int = 0) -> NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, NOTHING, PERMUTATIONS, np.uint32)


def plain_groups(rows: NDArray[np.uint32], threshold: float) -> tuple[list[int], list[float]]:
    width = band_rows(threshold)
    bands = [slice(at, at + width) for at in range(0, PERMUTATIONS - width + 1, width)]
    first: list[int] = []
    similarity: list[float] = []
    for row, values in enumerate(rows):
        first.append(row)
        similarity.append(1.0)
        if (values == NOTHING).all():
            continue
        same = [other for other in range(row) if (rows[other] == values).all()]
        if same:
            first[row], similarity[row] = first[same[0]], similarity[same[0]]
            continue
        like = [
            other
            for other in range(row)
            if (rows[other] == values).mean() >= threshold
            and any((rows[other][band] == values[band]).all() for band in bands)
        ]
        for kept in sorted({first[other] for other in like}):
            estimated = float((rows[kept] == values).mean())
            if estimated >= threshold:
                first[row], similarity[row] = kept, estimated
                break
    return first, similarity


def test_signatures_never_change() -> None:
    """Signatures are kept between runs and made on several machines: a new library must not change them."""
    found = signatures([HANDS])
    assert (found.dtype, found.shape) == (np.uint32, (1, PERMUTATIONS))
    assert found[0, :5].tolist() == [154541028, 125946213, 574618737, 40120509, 157146610]


@pytest.mark.parametrize(
    "same",
    [
        HANDS.upper(),
        f"  {HANDS.replace(' ', chr(10))}",
        "“Wash your hands: for twenty seconds; then dry them with a clean towel!”",
        HANDS.replace("hands", "hands\ud800"),
    ],
)
def test_what_makes_no_difference(same: str) -> None:
    assert (signatures([HANDS]) == signatures([same])).all()


def test_compositions_and_ligatures_are_the_same_letters() -> None:
    text = "Les infirmières ont spécifié où et à qui les vaccins efficaces étaient réservés"
    others = [unicodedata.normalize("NFD", text), text.replace("fi", "\ufb01")]
    assert (signatures(others) == signatures([text])).all()


@pytest.mark.parametrize("short", ["", "...", "one two three four five six seven", "\ud800", "\u0301" * 3])
def test_short_texts_are_nobodys_duplicates(short: str) -> None:
    found = signatures([short, HANDS, short])
    assert (found[[0, 2]] == NOTHING).all() and (found[1] != NOTHING).all()
    first, similarity = groups(found, 0.5)
    assert first.tolist() == [0, 1, 2]
    assert similarity.tolist() == [1, 1, 1]


def test_nothing() -> None:
    none = signatures([])
    assert (none.dtype, none.shape) == (np.uint32, (0, PERMUTATIONS))
    first, similarity = groups(none, 0.8)
    assert (first.dtype, first.shape) == (np.int64, (0,))
    assert (similarity.dtype, similarity.shape) == (np.float32, (0,))


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan")])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(ValueError, match="expected above 0, at most 1"):
        groups(signatures([HANDS]), threshold)


@given(st.lists(st.text(alphabet="ab \n.é", max_size=60), max_size=6), st.integers(0, 6))
def test_parts_make_no_difference(texts: list[str], cut: int) -> None:
    parts = [signatures(texts[:cut]), signatures(texts[cut:])]
    assert (np.concatenate(parts) == signatures(texts)).all()


@settings(derandomize=True)
@given(st.integers(0, 2**32), st.integers(MIN_WORDS, 400), st.integers(0, 60))
def test_estimates_are_near_the_exact_similarity(seed: int, words: int, edits: int) -> None:
    draw = random.Random(seed)
    text = prose(draw, words)
    other = edited(draw, text, edits)
    left, right = signatures([text, other])
    if len(other.split()) >= MIN_WORDS:
        # More than four standard errors.
        assert (left == right).mean() == pytest.approx(jaccard(shingles(text), shingles(other)), abs=0.19)


def test_long_texts() -> None:
    draw = random.Random(1)
    text = prose(draw, 20_000)
    longer = f"{text} {prose(draw, 10_000)}"
    left, right = signatures([text, longer])
    assert (left == right).mean() == pytest.approx(2 / 3, abs=0.15)
    marks = "a" + "\u0301\u0316" * 500_000
    assert (signatures([f"{marks} {HANDS}"]) != NOTHING).all()


def test_similarity_of_documents() -> None:
    draw = random.Random(2)
    shared, one, other = ([prose(draw, 60) for _ in range(count)] for count in (8, 2, 2))
    texts = ["\n".join([*shared, *one]), "\n".join([*reversed(shared), *other])]
    left, right = signatures(texts)
    exact = jaccard(*map(shingles, texts))
    assert (left == right).mean() == pytest.approx(exact, abs=0.15)


def test_preprints_and_articles() -> None:
    """Papers of ten paragraphs; every fourth comes again, edited, with a paragraph less and one more."""
    draw = random.Random(3)
    preprints = [[prose(draw, 80) for _ in range(10)] for _ in range(40)]
    articles = [
        [prose(draw, 40), *(edited(draw, text, 1) for text in paper[:-1])] for paper in preprints[::4]
    ]
    papers = preprints + articles
    contexts = signatures([text for paper in papers for text in paper])
    first, similarity = groups(signatures(list(map("\n".join, papers))), 0.5)
    assert first.tolist() == [*range(40), *range(0, 40, 4)]
    assert (similarity[40:] < 1).all() and (similarity[40:] > 0.5).all()
    first, _ = groups(contexts, 0.7)
    expected = np.arange(len(contexts)).reshape(-1, 10)
    expected[40:, 1:] = expected[:40:4, :-1]
    assert first.tolist() == expected.ravel().tolist()


@st.composite
def families(draw: st.DrawFn) -> NDArray[np.uint32]:
    """Rows that come from one another by changes, and some without a signature."""
    rows = [some_row()]
    for _ in range(draw(st.integers(0, COMPARED))):
        if draw(st.integers(0, 9)) == 0:
            rows.append(np.full(PERMUTATIONS, NOTHING))
        else:
            parent = draw(st.sampled_from([one for one in rows if one[0] != NOTHING]))
            rows.append(changed(parent, draw(st.integers(0, 50)), seed=draw(st.integers(0, 3))))
    return np.array(rows)


@settings(max_examples=200)
@given(families(), st.sampled_from([0.3, 0.5, 0.7, 0.8, 0.9, 1.0]))
def test_groups_by_the_stated_rule(rows: NDArray[np.uint32], threshold: float) -> None:
    first, similarity = groups(rows, threshold)
    assert (first.tolist(), similarity.tolist()) == plain_groups(rows, threshold)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0.5, 0.8, 0.95]), st.integers(0, 40))
def test_every_row_is_as_similar_as_promised_to_a_kept_one(seed: int, threshold: float, most: int) -> None:
    numbers = np.random.default_rng(seed)
    rows = np.array(
        [changed(some_row(int(numbers.integers(5))), int(numbers.integers(most + 1)), n) for n in range(300)]
    )
    first, similarity = groups(rows, threshold)
    again = first < np.arange(len(rows))
    assert (first[first] == first).all() and (first <= np.arange(len(rows))).all()
    assert (similarity == (rows == rows[first]).mean(axis=1)).all()
    assert (similarity[again] >= threshold).all()


def test_chains_do_not_run_away() -> None:
    rows = np.tile(some_row(), (3, 1))
    rows[1, :20] += 1
    rows[2, :40] += 1
    first, similarity = groups(rows, 0.8)
    assert first.tolist() == [0, 0, 2]
    assert similarity.tolist() == [1, 108 / 128, 1]


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
def test_nearly_all_pairs_above_the_threshold_are_found(threshold: float) -> None:
    columns = int(PERMUTATIONS * (1 - threshold - 0.04))
    one = np.array([some_row(seed) for seed in range(500)])
    other = np.array([changed(row, columns, seed) for seed, row in enumerate(one)])
    first, _ = groups(np.concatenate([one, other]), threshold)
    assert (first[:500] == np.arange(500)).all()
    assert (first[500:] == np.arange(500)).mean() >= 0.97


def test_thousands_of_copies() -> None:
    rows = np.tile(some_row(), (20_000, 1))
    rows[7] = NOTHING
    first, similarity = groups(rows, 0.8)
    assert first.tolist() == [0] * 7 + [7] + [0] * 19_992
    assert (similarity == 1).all()


def test_thousands_of_variants() -> None:
    rows = np.array([changed(some_row(), seed % 8, seed) for seed in range(5_000)])
    first, _ = groups(rows, 0.85)
    assert (first == 0).all()


def test_groups_within_a_crowd() -> None:
    """A common core that fills the bands' buckets, and groups of five that have more in common."""
    kinds = np.array([changed(some_row(), 50, seed) for seed in range(400)])
    order = np.random.default_rng(1).permutation(2000) % 400
    rows = np.array([changed(kinds[kind], 6, seed) for seed, kind in enumerate(order)])
    first, _ = groups(rows, 0.8)
    lowest = {kind: row for row, kind in reversed(list(enumerate(order.tolist())))}
    assert np.mean(first == [lowest[kind] for kind in order.tolist()]) >= 0.97


def test_signatures_on_disk(tmp_path: Path) -> None:
    rows = np.array([changed(some_row(seed % 50), seed % 40, seed) for seed in range(500)])
    np.save(tmp_path / "rows.npy", rows)
    there = groups(np.load(tmp_path / "rows.npy", mmap_mode="r"), 0.8)
    here = groups(rows, 0.8)
    assert all((one == other).all() for one, other in zip(there, here, strict=True))
    assert all(type(one) is np.ndarray for one in there)


def test_real_contexts(shared: Path) -> None:
    with lzma.open(shared / "mini" / "expert.jsonl.xz") as lines:
        texts = [context.text for line in islice(lines, 120) for context in parse(line).contexts]
    first, similarity = groups(signatures(texts), 0.8)
    again = np.flatnonzero(first < np.arange(len(texts)))
    sets = [shingles(text) for text in texts]
    exact = np.array([jaccard(sets[row], sets[first[row]]) for row in again])
    assert len(again) > 20
    assert np.abs(similarity[again] - exact).max() < 0.15
    # Kept rows that repeat a kept row.
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    missed = 0
    for row in np.flatnonzero(first == np.arange(len(texts))).tolist():
        common = Counter(other for one in sets[row] for other in holders[one])
        missed += any(
            count >= 0.85 * (len(sets[row]) + len(sets[other]) - count) for other, count in common.items()
        )
        for one in sets[row]:
            holders[one].append(row)
    assert missed <= 0.03 * len(again)
