"""Directions of passages against a plain loop, and the orders by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.config import Config, Diversity
from epicqa.rank.diversity import ORDERS, passage_vectors
from epicqa.rank.mmr import mmr
from epicqa.rank.novelty import novelty
from epicqa.ranking import Ranking


@given(count=st.integers(0, 12), seed=st.integers(0, 10**6))
def test_passage_vectors_equal_to_a_loop(unit: Callable, count: int, seed: int) -> None:
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


def test_an_order_for_every_name_but_none() -> None:
    assert set(ORDERS) == set(get_args(Diversity)) - {"none"}


def test_orders_follow_the_settings(candidates: Callable) -> None:
    passages, vectors = candidates(30, 1, 3)
    found = {}
    for name, order in ORDERS.items():
        for weight in (0.1, 0.9):
            found[name, weight] = order(Config(mmr_weight=weight), passages, vectors, 7).first.tolist()
    for weight in (0.1, 0.9):
        assert found["mmr", weight] == mmr(passages, vectors, weight, 7).first.tolist()
        assert found["novelty", weight] == novelty(passages, vectors, 7).first.tolist()
    assert len(set(map(tuple, found.values()))) == 3
