"""Passages: never overlapping, never across contexts, never too long, nothing lost."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa import sample
from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.rank.passages import JOIN, fill, grow, without_overlaps
from epicqa.ranking import Ranking


def stored(lengths: list[int]) -> Any:
    """What ``grow`` reads of a corpus, for contexts of so many sentences."""
    return SimpleNamespace(
        sentence_context=np.repeat(np.arange(len(lengths)), lengths).astype(np.int32),
        context_first=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


def spans(ranking: Ranking) -> list[tuple[int, int]]:
    return list(zip(ranking.first.tolist(), ranking.last.tolist(), strict=True))


def rows_of(ranking: Ranking) -> list[int]:
    return [row for first, last in spans(ranking) for row in range(first, last + 1)]


@st.composite
def retrieved(draw: st.DrawFn) -> tuple[Any, Ranking]:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    rows = draw(st.lists(st.integers(0, sum(lengths) - 1), unique=True))
    scores = draw(
        st.lists(
            st.sampled_from([-2.0, 0.0, 1.0, 1.1, 1.3, 2.0, 5.0]), min_size=len(rows), max_size=len(rows)
        )
    )
    array = np.array(rows, np.int64)
    return stored(lengths), Ranking.sort(array, array, np.array(scores))


@given(retrieved(), st.integers(1, 5))
def test_passages_grown_are_well_formed(case: tuple[Any, Ranking], most: int) -> None:
    store, sentences = case
    passages = grow(sentences, store, most)
    score = dict(zip(sentences.first.tolist(), sentences.score.tolist(), strict=True))
    # Every retrieved sentence is in one passage, and no other sentence is in any.
    assert sorted(rows_of(passages)) == sorted(score)
    assert all(before >= after for before, after in pairwise(passages.score.tolist()))
    for (first, last), best in zip(spans(passages), passages.score.tolist(), strict=True):
        assert 1 <= last - first + 1 <= most
        assert store.sentence_context[first] == store.sentence_context[last]
        inside = [score[row] for row in range(first, last + 1)]
        assert max(inside) == best
        assert min(inside) >= (best * JOIN if best > 0 else best) - 1e-6
    if len(sentences):
        assert passages.first[0] <= sentences.first[0] <= passages.last[0]


@given(retrieved())
def test_single_sentences_stay_as_they_are(case: tuple[Any, Ranking]) -> None:
    store, sentences = case
    assert grow(sentences, store, 1) is sentences


def test_the_better_neighbour_joins_first_and_the_weaker_not_at_all() -> None:
    rows = np.array([2, 1, 3, 0, 5, 6])
    ranking = Ranking.of_sentences(rows, np.array([10, 9, 8.5, 3, 2.9, 2.8], np.float32))
    assert spans(grow(ranking, stored([5, 4]), 2)) == [(1, 2), (3, 3), (0, 0), (5, 6)]
    assert spans(grow(ranking, stored([5, 4]), 5)) == [(1, 3), (0, 0), (5, 6)]
    # A context's end stops it.
    assert spans(grow(ranking, stored([2, 4, 3]), 5)) == [(2, 3), (1, 1), (0, 0), (5, 5), (6, 6)]


def test_equal_neighbours_join_from_the_lower_row() -> None:
    ranking = Ranking.of_sentences(np.array([2, 1, 3]), np.array([1, 0.9, 0.9]))
    assert spans(grow(ranking, stored([5]), 2)) == [(1, 2), (3, 3)]


def test_on_the_real_sample(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("sample") / "corpus"
    build_corpus([sample.documents_path()], folder, workers=1)
    store = CorpusStore.open(folder)
    order = np.random.default_rng(3).permutation(store.n_sentences)
    sentences = Ranking.of_sentences(order, np.linspace(9, 8, len(order)))
    passages = grow(sentences, store, 3)
    assert sorted(rows_of(passages)) == list(range(store.n_sentences))
    assert np.array_equal(store.sentence_context[passages.first], store.sentence_context[passages.last])


@st.composite
def overlapping(draw: st.DrawFn) -> Ranking:
    found = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=20))
    first = np.array([one[0] for one in found], np.int64)
    return Ranking(
        first, first + np.array([one[1] for one in found], np.int64), np.arange(len(found), 0.0, -1.0)
    )


@given(overlapping())
def test_overlaps_are_dropped_from_the_worse(passages: Ranking) -> None:
    kept: list[tuple[int, int]] = []
    for first, last in spans(passages):
        if all(last < other[0] or other[1] < first for other in kept):
            kept.append((first, last))
    clean = without_overlaps(passages)
    assert spans(clean) == kept
    assert np.all(np.diff(clean.score) < 0) and set(clean.score) <= set(passages.score)


@given(
    overlapping().map(without_overlaps),
    st.lists(st.integers(0, 60)),
    st.integers(0, 70),
    st.sampled_from([1.0, -3.5, 0.0, 1e6, -1e8, 3e-4]),
)
def test_filled_to_the_depth(passages: Ranking, rows: list[int], depth: int, level: float) -> None:
    passages = Ranking(passages.first, passages.last, passages.score + np.float32(level))
    filled = fill(passages, rows, depth)
    count = len(passages)
    assert spans(filled)[:count] == spans(passages)
    assert np.array_equal(filled.score[:count], passages.score)
    taken = set(rows_of(passages))
    fresh = [row for row in dict.fromkeys(rows) if row not in taken]
    assert spans(filled)[count:] == [(row, row) for row in fresh[: max(0, depth - count)]]
    assert np.all(np.diff(filled.score[max(0, count - 1) :].astype(np.float64)) < 0)


def test_filling_reads_no_more_rows_than_it_needs() -> None:
    rows = iter(range(100))
    assert len(fill(Ranking.of_sentences(np.array([0]), np.array([1])), rows, 5)) == 5
    assert next(rows) <= 6
    assert len(fill(Ranking.of_sentences(np.array([]), np.array([])), range(3), 1000)) == 3
