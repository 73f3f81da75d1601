"""Maximal marginal relevance against a plain loop, and the same order for any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.rank.mmr import DECIMALS, mmr
from epicqa.ranking import Ranking


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
    count=st.integers(1, 25),
    seed=st.integers(0, 10**6),
    diversity=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]),
    depth=st.integers(1, 30),
    repeats=st.booleans(),
)
def test_equal_to_a_plain_loop(
    candidates: Callable, count: int, seed: int, diversity: float, depth: int, repeats: bool
) -> None:
    passages, vectors = candidates(count, seed, distinct=max(1, count // 3) if repeats else None)
    found = mmr(passages, vectors, diversity, depth)
    order = plain(passages, vectors, diversity, depth)
    assert found.first.tolist() == passages.first[order].tolist()
    assert found.last.tolist() == passages.last[order].tolist()
    assert np.all(np.diff(found.score) <= 0)


@given(count=st.integers(0, 40), seed=st.integers(0, 10**6), depth=st.integers(0, 50))
def test_no_diversity_keeps_the_order(candidates: Callable, count: int, seed: int, depth: int) -> None:
    passages, vectors = candidates(count, seed)
    found = mmr(passages, vectors, 0.0, depth)
    assert found.first.tolist() == passages.first[:depth].tolist()


@given(count=st.integers(1, 25), seed=st.integers(0, 10**6), depth=st.integers(0, 25))
def test_fewer_are_the_beginning_of_more(candidates: Callable, count: int, seed: int, depth: int) -> None:
    passages, vectors = candidates(count, seed, distinct=max(1, count // 2))
    whole, part = (mmr(passages, vectors, 0.3, some) for some in (count, depth))
    assert sorted(whole.first.tolist()) == sorted(passages.first.tolist())
    assert part.first.tolist() == whole.first[:depth].tolist()
    assert part.score.tolist() == whole.score[:depth].tolist()


def test_a_repetition_comes_last(unit: Callable) -> None:
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    passages = Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2.9, 2]))
    assert mmr(passages, vectors, 0.5, 3).first.tolist() == [1, 3, 2]
    assert mmr(passages, vectors, 0.0, 3).first.tolist() == [1, 2, 3]
    assert mmr(passages, vectors, 0.5, 2).first.tolist() == [1, 3]


def test_opposite_directions_do_not_make_scores_rise(unit: Callable) -> None:
    vectors = unit(np.array([[1, 0], [-1, 0], [-1, 0.1]]))
    found = mmr(Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2.9, 2])), vectors, 0.8, 3)
    assert found.first.tolist() == [1, 2, 3] and np.all(np.diff(found.score) < 0)


def test_equal_scores_and_single_passages(unit: Callable) -> None:
    passages = Ranking.of_sentences(np.array([4, 2, 9]), np.array([1, 1, 1]))
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    assert mmr(passages, vectors, 0.3, 10).first.tolist() == [4, 9, 2]
    assert mmr(passages[:1], vectors[:1], 0.3, 10).first.tolist() == [4]
    assert len(mmr(passages[:0], vectors[:0], 0.3, 10)) == 0
    assert len(mmr(passages, vectors, 0.3, 0)) == 0


def test_vectors_of_texts_without_tokens_repeat_nothing() -> None:
    passages = Ranking.of_sentences(np.array([4, 2, 9]), np.array([3, 2, 1]))
    assert mmr(passages, np.zeros((3, 2), np.float32), 0.9, 3).first.tolist() == [4, 2, 9]


THREADS = """
import numpy as np
from epicqa.rank.diversity import passage_vectors
from epicqa.rank.mmr import mmr
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
