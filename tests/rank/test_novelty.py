"""Selection by expected gain against a plain double loop, and the same order for any number of threads."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit

from epicqa.rank.mmr import DECIMALS
from epicqa.rank.novelty import HALF, STEEPNESS, novelty
from epicqa.rank.probability import probabilities
from epicqa.ranking import Ranking


def news(one: NDArray, other: NDArray) -> float:
    """P(a passage does not repeat another)."""
    cosine = round(float(one.astype(float) @ other.astype(float)), DECIMALS)
    return float(expit(-STEEPNESS * (cosine - HALF)))


def plain(passages: Ranking, vectors: NDArray, depth: int) -> tuple[list[int], list[float]]:
    """Places and gains: P(it answers) times P(it repeats none of those chosen), each from scratch."""
    answers = probabilities(passages).tolist()
    order: list[int] = []
    reached: list[float] = []
    while len(order) < min(depth, len(passages)):
        best, most = -1, -1.0
        for one, gain in enumerate(answers):
            for other in order:
                gain *= news(vectors[one], vectors[other])
            if one not in order and gain > most:
                best, most = one, gain
        order.append(best)
        reached.append(most)
    return order, reached


@settings(deadline=None, max_examples=60)
@given(
    count=st.integers(1, 20),
    seed=st.integers(0, 10**6),
    dimension=st.integers(2, 8),
    depth=st.integers(1, 25),
    repeated=st.booleans(),
)
def test_equal_to_a_plain_loop(
    candidates: Callable, count: int, seed: int, dimension: int, depth: int, repeated: bool
) -> None:
    passages, vectors = candidates(count, seed, dimension, max(1, count // 3) if repeated else None)
    found = novelty(passages, vectors, depth)
    order, reached = plain(passages, vectors, depth)
    assert found.first.tolist() == passages.first[order].tolist()
    assert found.last.tolist() == passages.last[order].tolist()
    assert found.score == pytest.approx(reached, rel=1e-6)
    assert np.all(np.diff(found.score) <= 0)


@given(count=st.integers(1, 25), seed=st.integers(0, 10**6), depth=st.integers(0, 25))
def test_fewer_are_the_beginning_of_more(candidates: Callable, count: int, seed: int, depth: int) -> None:
    passages, vectors = candidates(count, seed, distinct=max(1, count // 2))
    whole, part = (novelty(passages, vectors, some) for some in (count, depth))
    assert sorted(whole.first.tolist()) == sorted(passages.first.tolist())
    assert part.first.tolist() == whole.first[:depth].tolist()
    assert part.score.tolist() == whole.score[:depth].tolist()


def test_a_repetition_comes_last(unit: Callable) -> None:
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    passages = Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2.9, 2.8]))
    assert novelty(passages, vectors, 3).first.tolist() == [1, 3, 2]
    assert novelty(passages, vectors, 2).first.tolist() == [1, 3]


def test_passages_that_have_nothing_in_common_keep_their_order() -> None:
    score = np.linspace(9, 1, 30)
    passages = Ranking.of_sentences(np.arange(30)[::-1], score)
    found = novelty(passages, np.eye(30, dtype=np.float32), 30)
    assert found.first.tolist() == passages.first.tolist()
    # So do texts without tokens.
    nothing = np.zeros((30, 4), np.float32)
    assert novelty(passages, nothing, 30).first.tolist() == passages.first.tolist()


def test_at_the_half_a_passage_keeps_half_of_its_gain() -> None:
    vectors = np.array([[1, 0], [HALF, math.sqrt(1 - HALF**2)]], np.float32)
    passages = Ranking.of_sentences(np.array([5, 6]), np.array([1.0, 1.0]))
    first, second = novelty(passages, vectors, 2).score.tolist()
    assert second == pytest.approx(first / 2, rel=1e-3)


def test_equal_scores_and_a_single_passage(unit: Callable) -> None:
    passages = Ranking.of_sentences(np.array([4, 2, 9]), np.array([1, 1, 1]))
    vectors = unit(np.array([[1, 0], [1, 0], [0, 1]]))
    assert novelty(passages, vectors, 10).first.tolist() == [4, 9, 2]
    assert novelty(passages[:1], vectors[:1], 10).first.tolist() == [4]
    assert len(novelty(passages, vectors, 0)) == 0


def test_no_passages() -> None:
    none = Ranking.of_sentences(np.array([], np.int64), np.array([]))
    assert len(novelty(none, np.zeros((0, 3), np.float32), 5)) == 0


def test_hundreds_of_copies_are_each_returned_once() -> None:
    count = 600
    passages = Ranking.of_sentences(np.arange(count), np.linspace(9, 1, count))
    vectors = np.tile(np.array([1, 0], np.float32), (count, 1))
    assert novelty(passages, vectors, count).first.tolist() == list(range(count))


THREADS = """
import numpy as np
from epicqa.rank.novelty import novelty
from epicqa.ranking import Ranking
random = np.random.default_rng(5)
vectors = random.normal(size=(50, 384)).repeat(20, axis=0) + 0.25 * random.normal(size=(1000, 384))
vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
passages = Ranking.of_sentences(random.permutation(1000), np.sort(random.random(1000))[::-1])
found = novelty(passages, vectors, 1000)
print(found.first.tolist() != passages.first.tolist(), found.first.tolist(), found.score.tobytes().hex())
"""


def test_the_same_for_one_thread_and_two() -> None:
    found = set()
    for threads in ("1", "2"):
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        command = [sys.executable, "-c", THREADS]
        found.add(
            subprocess.run(command, env={**os.environ, **limits}, check=True, capture_output=True).stdout
        )
    assert len(found) == 1 and found.pop().startswith(b"True [")
