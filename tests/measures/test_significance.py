"""Intervals and tests against scipy, plain references and what must hold of any differences."""

import tracemalloc
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from epicqa.errors import EpicqaError
from epicqa.measures.significance import holm, is_exact, paired_bootstrap, randomisation_test

RESAMPLES = 2000

values = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=30)


def differences(n: int, seed: int = 7) -> np.ndarray:
    # Skewed, as per-question differences are.
    return np.random.default_rng(seed).gamma(0.5, 0.2, n) - 0.06


def less(pair: list[tuple[float, float]]) -> np.ndarray:
    return np.array([a - b for a, b in pair])


# The bootstrap.


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_interval_is_scipys_of_the_same_draws(confidence: float) -> None:
    difference = differences(25)
    drawn = np.random.default_rng(3).integers(0, 25, size=(5000, 25))
    reference = stats.bootstrap(
        (difference,),
        np.mean,
        n_resamples=0,
        bootstrap_result=SimpleNamespace(bootstrap_distribution=difference[drawn].mean(axis=1)),
        confidence_level=confidence,
        method="BCa",
    ).confidence_interval
    assert paired_bootstrap(difference, confidence, 5000, 3) == pytest.approx(tuple(reference), abs=1e-12)


def test_interval_is_near_scipys_of_other_draws() -> None:
    difference = differences(40)
    reference = stats.bootstrap((difference,), np.mean, n_resamples=20_000, method="BCa", rng=1)
    assert paired_bootstrap(difference) == pytest.approx(tuple(reference.confidence_interval), abs=2e-3)


def test_interval_covers_as_often_as_it_says() -> None:
    samples = np.random.default_rng(5).normal(0.1, 1, size=(600, 30))
    low, high = paired_bootstrap(samples, 0.9, 1000).T
    assert 0.85 < np.mean((low < 0.1) & (high > 0.1)) < 0.93


@settings(max_examples=300, deadline=None)
@given(pairs, st.integers(0, 9))
def test_any_interval(pair: list[tuple[float, float]], seed: int) -> None:
    difference = less(pair)
    low, high = paired_bootstrap(difference, 0.95, RESAMPLES, seed)
    assert difference.min() - 1e-12 <= low <= difference.mean() + 1e-12
    assert difference.mean() - 1e-12 <= high <= difference.max() + 1e-12
    swapped = paired_bootstrap(-difference, 0.95, RESAMPLES, seed)
    assert swapped == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize("difference", [[0.0], [0.0] * 30, [0.3], [0.1] * 7, [1e-300, 2e-300]])
def test_interval_without_spread(difference: list[float]) -> None:
    low, high = paired_bootstrap(difference, resamples=RESAMPLES)
    assert low == pytest.approx(np.mean(difference), abs=1e-15)
    assert high == pytest.approx(np.mean(difference), abs=1e-15)


@pytest.mark.parametrize("resamples", [1, 2, 3])
def test_few_resamples_and_wide_intervals(resamples: int) -> None:
    for confidence in (1e-6, 0.5, 1 - 1e-15):
        for at in (0, 1):
            difference = np.zeros(200)
            difference[0] = (-1) ** at
            assert np.isfinite(paired_bootstrap(difference, confidence, resamples)).all()


# The randomisation test.


@pytest.mark.parametrize("n", [2, 3, 8, 12])
def test_exact_is_scipys(n: int) -> None:
    difference = differences(n, n)
    reference = stats.permutation_test(
        (difference, np.zeros(n)),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert is_exact(n, 2**n)
    assert randomisation_test(difference, 2**n) == pytest.approx(reference.pvalue, abs=1e-15)


def test_drawn_is_near_scipys() -> None:
    difference = differences(40)
    reference = stats.permutation_test(
        (difference, np.zeros(40)),
        lambda a, b, axis: (a - b).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=50_000,
        rng=1,
    )
    assert not is_exact(40)
    assert 0.001 < reference.pvalue < 0.9
    assert randomisation_test(difference) == pytest.approx(reference.pvalue, abs=0.01)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=9))
def test_exact_against_a_plain_reference(pair: list[tuple[float, float]]) -> None:
    difference = less(pair)
    sums = [
        sum(sign * one for sign, one in zip(signs, difference, strict=True))
        for signs in product((1, -1), repeat=len(pair))
    ]
    # Sums that are equal but for rounding are equal.
    least = abs(difference.sum()) - 1e-12 * np.abs(difference).sum()
    extreme = sum(abs(one) >= least for one in sums)
    assert randomisation_test(difference, RESAMPLES) == pytest.approx(extreme / len(sums))


@settings(max_examples=300, deadline=None)
@given(pairs, st.integers(0, 9), st.integers(1, RESAMPLES))
def test_any_p(pair: list[tuple[float, float]], seed: int, resamples: int) -> None:
    p = float(randomisation_test(less(pair), resamples, seed))
    assert 0 < p <= 1
    assert randomisation_test(-less(pair), resamples, seed) == p


def test_p_of_nothing_and_of_much() -> None:
    assert randomisation_test([0.0] * 30) == 1
    assert randomisation_test([0.0]) == 1
    assert randomisation_test([0.4]) == 1
    assert randomisation_test([0.4] * 10) == 2 / 2**10
    assert randomisation_test([0.4] * 20, 2**20) == 2 / 2**20
    assert randomisation_test([0.4] * 60) == 1 / 100_001


def test_p_is_uniform_where_runs_do_not_differ() -> None:
    samples = np.random.default_rng(5).normal(size=(2000, 20))
    assert np.mean(randomisation_test(samples, 1000) <= 0.05) == pytest.approx(0.05, abs=0.015)


# Holm.


def plain_holm(p_values: list[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for position, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - position) * p_values[i]))
        adjusted[i] = highest
    return adjusted


def test_holm_of_a_known_case() -> None:
    # By hand: 4 * .005, 3 * .01, 2 * .03, then .06 again as 1 * .04 is below it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]).tolist() == []
    assert holm([0.2]) == 0.2


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert adjusted == pytest.approx(plain_holm(p_values))
    assert np.all(adjusted >= p_values)
    assert np.all(adjusted <= 1)
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(adjusted[order]) >= 0)


# All of them.


def test_same_alone_and_in_company() -> None:
    many = np.random.default_rng(1).normal(0.05, 0.3, size=(2, 40, 25))
    intervals, p = paired_bootstrap(many, 0.95, 500_000, 4), randomisation_test(many, 30_000, 4)
    assert (intervals.shape, p.shape) == ((2, 40, 2), (2, 40))
    assert intervals[1, 39] == pytest.approx(paired_bootstrap(many[1, 39], 0.95, 500_000, 4), abs=1e-13)
    assert p[1, 39] == randomisation_test(many[1, 39], 30_000, 4)
    assert p[1, 39] != randomisation_test(many[1, 39], 30_000, 5)


def test_memory_is_bounded() -> None:
    difference = differences(1000)
    tracemalloc.start()
    try:
        paired_bootstrap(difference)
        randomisation_test(difference)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: paired_bootstrap([]), "no differences to test"),
        (lambda: randomisation_test(0.5), "no differences to test"),
        (lambda: paired_bootstrap([0.1, np.nan]), "not a finite number"),
        (lambda: randomisation_test([np.inf]), "not a finite number"),
        (lambda: paired_bootstrap([0.1], 1.0), "confidence 1.0, expected a number between 0 and 1"),
        (lambda: randomisation_test([0.1], 0), "0 resamples, expected 1 or more"),
        (lambda: holm([0.5, np.nan]), "outside 0 to 1"),
    ],
)
def test_bad_input(call: object, said: str) -> None:
    with pytest.raises(EpicqaError, match=said):
        call()  # type: ignore[operator]
