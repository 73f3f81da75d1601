"""Passages with vectors, as orders of diversity get them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from epicqa.ranking import Ranking

Unit = Callable[[NDArray], NDArray[np.float32]]
Candidates = Callable[..., tuple[Ranking, NDArray[np.float32]]]


@pytest.fixture(scope="session")
def unit() -> Unit:
    """Vectors of length 1."""
    return lambda array: (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def candidates(unit: Unit) -> Candidates:
    """Passages with falling scores, some equal, and vectors, some equal."""

    def make(
        count: int, seed: int, dimension: int = 8, distinct: int | None = None
    ) -> tuple[Ranking, NDArray[np.float32]]:
        random = np.random.default_rng(seed)
        score = np.sort(random.integers(0, count, count))[::-1].astype(np.float32)
        vectors = unit(random.normal(size=(distinct or count, dimension)))
        chosen = vectors[random.integers(0, len(vectors), count)] if distinct else vectors
        first = random.permutation(count) * 10
        return Ranking(first, first + random.integers(0, 3, count), score), chosen

    return make
