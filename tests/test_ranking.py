"""The ranking type: dtypes, shapes, order."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.ranking import Ranking

ENTRIES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.floats(-2, 2, width=16)), max_size=30)


def test_lists_become_arrays_of_the_stated_types() -> None:
    ranking = Ranking([3, 1], [4, 1], [2, 1.5])  # type: ignore[arg-type]
    assert (ranking.first.dtype, ranking.last.dtype, ranking.score.dtype) == (np.int64, np.int64, np.float32)
    assert len(ranking) == 2 and len(Ranking([], [], [])) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [([1], [1, 2], [1]), ([1], [1], []), ([[1]], [[1]], [[1]]), (1, 1, 1)])
def test_shapes_must_agree(wrong) -> None:
    with pytest.raises(ValueError, match="equal length"):
        Ranking(*wrong)


def test_slices_and_masks() -> None:
    ranking = Ranking.of_sentences(np.array([5, 3, 9], np.int32), np.array([3.0, 2.0, 1.0]))
    assert ranking[:2].first.tolist() == ranking[:2].last.tolist() == [5, 3]
    assert ranking[np.array([True, False, True])].score.tolist() == [3, 1]
    assert ranking[np.array([2, 0])].first.tolist() == [9, 5]
    assert pickle.loads(pickle.dumps(ranking)).first.tolist() == [5, 3, 9]


@given(ENTRIES)
def test_sorted_best_first_then_by_first_then_by_last(entries: list[tuple[int, int, float]]) -> None:
    first = np.array([one[0] for one in entries], np.int32)
    last = first + np.array([one[1] for one in entries], np.int32)
    score = np.array([one[2] for one in entries], np.float64)
    ranking = Ranking.sort(first, last, score)
    expected = sorted(zip((-score).tolist(), first.tolist(), last.tolist(), strict=True))
    assert list(
        zip((-ranking.score).tolist(), ranking.first.tolist(), ranking.last.tolist(), strict=True)
    ) == (expected)
    assert ranking.first.dtype == np.int64 and ranking.score.dtype == np.float32
