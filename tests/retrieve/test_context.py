"""Support by a sentence's context, against plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.ranking import Ranking
from epicqa.retrieve.context import support

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def store_of(sizes):
    first = np.cumsum([0, *sizes])
    return SimpleNamespace(sentence_context=np.repeat(np.arange(len(sizes)), sizes), context_first=first)


@given(SIZES, st.data())
def test_it_adds_the_weighted_mean_of_the_others(sizes, data):
    total = sum(sizes)
    rows = data.draw(st.lists(st.integers(0, total - 1), unique=True, min_size=1, max_size=total))
    scores = data.draw(st.lists(st.integers(0, 20), min_size=len(rows), max_size=len(rows)))
    weight = data.draw(st.sampled_from([0.25, 1.0]))
    ranking = Ranking.sort(np.array(rows), np.array(rows), np.array(scores, float))
    store = store_of(sizes)
    low, high = min(scores), max(scores)
    unit = {
        row: (score - low) / (high - low) if high > low else 1.0
        for row, score in zip(rows, scores, strict=True)
    }
    expected = {}
    for row in rows:
        context = store.sentence_context[row]
        others = [one for one in range(total) if store.sentence_context[one] == context and one != row]
        mean = sum(unit.get(one, 0.0) for one in others) / len(others) if others else 0.0
        expected[row] = unit[row] + weight * mean
    found = support(ranking, store, weight)
    assert sorted(found.first.tolist()) == sorted(rows)
    assert found.score.tolist() == pytest.approx([expected[row] for row in found.first.tolist()], abs=1e-6)
    pairs = list(zip((-found.score).tolist(), found.first.tolist(), strict=True))
    assert pairs == sorted(pairs)


def test_no_weight_or_no_sentences_changes_nothing():
    ranking = Ranking.of_sentences(np.array([3, 1]), np.array([2.0, 1.0]))
    assert support(ranking, store_of([5]), 0.0) is ranking
    empty = Ranking.of_sentences(np.array([], int), np.array([]))
    assert len(support(empty, store_of([5]), 0.4)) == 0


def test_a_context_that_answers_lifts_its_sentences():
    ranking = Ranking.of_sentences(np.array([0, 2, 1, 3]), np.array([1.0, 0.9, 0.89, 0.0]))
    assert support(ranking, store_of([1, 2, 1]), 0.4).first.tolist() == [2, 1, 0, 3]
