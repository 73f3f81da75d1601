"""Maximal marginal relevance against a plain loop, and the same order for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.rank.diversity import DECIMALS, mmr, passage_vectors
from epicqa.ranking import Ranking


def unit(array: NDArray) -> NDArray[np.float32]:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def candidates(
    count: int, seed: int, dimension: int = 8, distinct: int | None = None
) -> tuple[Ranking, NDArray]:
    """Passages with falling scores, some equal, and vectors, some equal."""
    random = np.random.default_rng(seed)
    score = np.sort(random.integers(0, count, count))[::-1].astype(np.float32)
    vectors = unit(random.normal(size=(distinct or count, dimension)))
    chosen = vectors[random.integers(0, len(vectors), count)] if distinct else vectors
    first = random.permutation(count) * 10
    return Ranking(first, first + random.integers(0, 3, count), score), chosen


def plain(passages: Ranking, vectors: NDArray, diversity: float, depth: int) -> list[int]:
    """Greedy, one value at a time."""
    score = [float(one) for one in passages.score]
    spread = max(score) - min(score)
    order: list[int] = []
    while len(order) < min(depth, len(score)):
        values = {}
        for one in range(len(score)):
            if one in order:
                continue
            relevance = (score[one] - min(score)) / spread if spread else 1.0
            nearest = max(
                (
                    round(float(vectors[one].astype(float) @ vectors[other].astype(float)), DECIMALS)
                    for other in order
                ),
                default=0.0,
            )
            values[one] = (1 - diversity) * relevance - diversity * max(0.0, nearest)
        order.append(max(values, key=lambda one: (values[one], -one)))
    return order


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 25),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]),
    st.integers(1, 30),
    st.booleans(),
)
def test_equal_to_a_plain_loop(count: int, seed: int, diversity: float, depth: int, repeats: bool) -> None:
    passages, vectors = candidates(count, seed, distinct=max(1, count // 3) if repeats else None)
    found = mmr(passages, vectors, diversity, depth)
    order = plain(passages, vectors, diversity, depth)
    assert found.first.tolist() == passages.first[order].tolist()
    assert found.last.tolist() == passages.last[order].tolist()
    assert np.all(np.diff(found.score) <= 0)


@given(st.integers(0, 40), st.integers(0, 10**6), st.integers(0, 50))
def test_no_diversity_keeps_the_order(count: int, seed: int, depth: int) -> None:
    passages, vectors = candidates(count, seed)
    found = mmr(passages, vectors, 0.0, depth)
    assert found.first.tolist() == passages.first[:depth].tolist()


def test_a_repetition_comes_last() -> None:
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    passages = Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2.9, 2]))
    assert mmr(passages, vectors, 0.5, 3).first.tolist() == [1, 3, 2]
    assert mmr(passages, vectors, 0.0, 3).first.tolist() == [1, 2, 3]
    assert mmr(passages, vectors, 0.5, 2).first.tolist() == [1, 3]


def test_opposite_directions_do_not_make_scores_rise() -> None:
    vectors = unit(np.array([[1, 0], [-1, 0], [-1, 0.1]]))
    found = mmr(Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2.9, 2])), vectors, 0.8, 3)
    assert found.first.tolist() == [1, 2, 3] and np.all(np.diff(found.score) < 0)


def test_equal_scores_and_single_passages() -> None:
    passages = Ranking.of_sentences(np.array([4, 2, 9]), np.array([1, 1, 1]))
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    assert mmr(passages, vectors, 0.3, 10).first.tolist() == [4, 9, 2]
    assert mmr(passages[:1], vectors[:1], 0.3, 10).first.tolist() == [4]
    assert len(mmr(passages[:0], vectors[:0], 0.3, 10)) == 0


@given(st.integers(0, 12), st.integers(0, 10**6))
def test_passage_vectors_equal_to_a_loop(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    first = random.permutation(count) * 5
    passages = Ranking(first, first + random.integers(0, 4, count), np.zeros(count))
    rows = np.array(
        sorted({row for a, b in zip(passages.first, passages.last, strict=True) for row in range(a, b + 1)}),
        np.int64,
    )
    vectors = unit(random.normal(size=(len(rows), 6))) if len(rows) else np.zeros((0, 6), np.float32)
    found = passage_vectors(passages, rows, vectors)
    assert found.shape == (count, 6) and found.dtype == np.float32
    of_row = dict(zip(rows.tolist(), vectors, strict=True))
    for one, a, b in zip(found, passages.first.tolist(), passages.last.tolist(), strict=True):
        total = sum(of_row[row].astype(np.float64) for row in range(a, b + 1))
        assert one == pytest.approx(total / np.linalg.norm(total), abs=1e-6)


def test_vectors_that_cancel_stay_zero() -> None:
    passages = Ranking(np.array([0]), np.array([1]), np.array([1.0]))
    found = passage_vectors(passages, np.array([0, 1]), np.array([[1, 0], [-1, 0]], np.float32))
    assert found.tolist() == [[0, 0]]


THREADS = """
import numpy as np
from epicqa.rank.diversity import mmr, passage_vectors
from epicqa.ranking import Ranking
random = np.random.default_rng(5)
vectors = random.normal(size=(3000, 256))
vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
first = np.arange(0, 3000, 3)
passages = Ranking(first, first + random.integers(0, 3, 1000), np.sort(random.random(1000))[::-1])
found = mmr(passages, passage_vectors(passages, np.arange(3000), vectors), 0.3, 1000)
print(found.first.tolist(), found.score.tobytes().hex())
"""


def test_the_same_for_one_thread_and_two() -> None:
    found = set()
    for threads in ("1", "2"):
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, "-c", THREADS]
        found.add(
            subprocess.run(command, env={**os.environ, **limits}, check=True, capture_output=True).stdout
        )
    assert len(found) == 1 and found.pop().startswith(b"[0, ")
