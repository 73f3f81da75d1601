"""Fusion against loops over dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.ranking import Ranking
from epicqa.retrieve.fuse import FUSIONS, fuse


@st.composite
def rankings(draw: st.DrawFn) -> Ranking:
    rows = draw(st.lists(st.integers(0, 25), unique=True, max_size=15))
    scores = draw(
        st.lists(st.sampled_from([-3.0, 0.0, 0.5, 1.25, 7.0]), min_size=len(rows), max_size=len(rows))
    )
    return Ranking.sort(np.array(rows, np.int64), np.array(rows, np.int64), np.array(scores))


def plain(parts: list[Ranking], weights: list[float], how: str) -> list[tuple[int, np.float32]]:
    total: dict[int, float] = defaultdict(float)
    for ranking, weight in zip(parts, weights, strict=True):
        scores = [float(score) for score in ranking.score]
        for rank, (row, score) in enumerate(zip(ranking.first.tolist(), scores, strict=True), start=1):
            if how == "rrf":
                points = 1 / (60 + rank)
            elif max(scores) == min(scores):
                points = 1.0
            else:
                points = (score - min(scores)) / (max(scores) - min(scores))
            total[row] += weight * points
    rounded = {row: np.float32(points) for row, points in total.items()}
    return sorted(rounded.items(), key=lambda item: (-item[1], item[0]))


@pytest.mark.parametrize("how", sorted(FUSIONS))
@given(st.data())
def test_equal_to_loops(how: str, data: st.DataObject) -> None:
    parts = data.draw(st.lists(rankings(), min_size=1, max_size=4))
    weights = [data.draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])) for _ in parts]
    fused = fuse(parts, weights, how)
    assert list(zip(fused.first.tolist(), fused.score, strict=True)) == plain(parts, weights, how)
    assert np.array_equal(fused.first, fused.last)


def sentences(*rows: int, scores: list[float] | None = None) -> Ranking:
    return Ranking.of_sentences(np.array(rows), np.array(scores or range(len(rows), 0, -1), float))


def test_ties_go_to_the_lower_row() -> None:
    for how in FUSIONS:
        assert fuse([sentences(9, 4), sentences(4, 9)], [1, 1], how).first.tolist() == [4, 9]
    assert fuse([sentences(8, 2, 5, scores=[1, 1, 1])], [1], "minmax").first.tolist() == [2, 5, 8]


def test_weights_decide() -> None:
    parts = [sentences(1, 2, 3), sentences(3, 2, 1)]
    for how in FUSIONS:
        assert fuse(parts, [0.9, 0.1], how).first.tolist() == [1, 2, 3]
        assert fuse(parts, [0.1, 0.9], how).first.tolist() == [3, 2, 1]
        assert fuse(parts[:1], [1], how).first.tolist() == [1, 2, 3]


def test_nothing_found() -> None:
    for how in FUSIONS:
        assert len(fuse([sentences(), sentences()], [1, 1], how)) == 0
        assert fuse([sentences(), sentences(6, 2)], [1, 1], how).first.tolist() == [6, 2]
    assert fuse([sentences(7)], [1], "minmax").score.tolist() == [1]
