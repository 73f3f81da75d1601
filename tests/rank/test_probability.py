"""A logistic curve over standardised scores, against the curve written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.rank.probability import HEAD, INTERCEPT, SLOPE, probabilities
from epicqa.ranking import Ranking


def ranked(scores: list[float]) -> Ranking:
    return Ranking.of_sentences(np.arange(len(scores)), np.array(sorted(scores, reverse=True)))


def plain(scores: list[float]) -> list[float]:
    """By the mean and the deviation of the first ones."""
    head = scores[:HEAD]
    mean = math.fsum(head) / len(head)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in head) / len(head))
    z = [(one - mean) / spread if head[0] > head[-1] else 0.0 for one in scores]
    return [1 / (1 + math.exp(-(INTERCEPT + SLOPE * one))) for one in z]


@given(st.lists(st.sampled_from([-7.0, 0.0, 0.1, 1 / 3, 2.0, 50.0]), min_size=1, max_size=20))
def test_equal_to_the_curve_written_out(scores: list[float]) -> None:
    ranking = ranked(scores)
    found = probabilities(ranking)
    assert found.dtype == np.float64 and found.shape == (len(scores),)
    assert found == pytest.approx(plain(ranking.score.tolist()), rel=1e-9)
    assert np.all(np.diff(found) <= 0) and np.all((found > 0) & (found < 1))


@pytest.mark.parametrize("count", [HEAD - 1, HEAD, HEAD + 1, 5 * HEAD])
def test_the_first_ones_set_the_measure(count: int) -> None:
    scores = np.sort(np.random.default_rng(count).normal(size=count))[::-1]
    ranking = ranked(scores.tolist())
    found = probabilities(ranking)
    assert found == pytest.approx(plain(ranking.score.tolist()), rel=1e-9)
    # What lies below changes nothing above.
    assert np.array_equal(found[:HEAD], probabilities(ranking[:HEAD]))


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=20), st.sampled_from([-64, 0, 8, 1024]))
def test_only_differences_of_scores_count(scores: list[int], shift: int) -> None:
    moved = ranked([4.0 * (one + shift) for one in scores])
    assert probabilities(moved) == pytest.approx(probabilities(ranked(scores)), rel=1e-9)


@pytest.mark.parametrize("scores", [[3.0], [0.1] * 7, [0.0] * 500, [-1e8] * 3])
def test_equal_scores_are_the_mean(scores: list[float]) -> None:
    mean = 1 / (1 + math.exp(-INTERCEPT))
    assert probabilities(ranked(scores)).tolist() == pytest.approx([mean] * len(scores), rel=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_passages() -> None:
    assert probabilities(ranked([])).shape == (0,)


@pytest.mark.filterwarnings("error")
def test_far_below_the_others_is_no_chance_at_all() -> None:
    head = (1 + np.linspace(1e-3, 0, HEAD)).tolist()
    assert probabilities(ranked([*head, -50.0]))[-1] == 0
