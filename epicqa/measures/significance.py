"""Whether two runs differ: paired comparisons of per-question values.

A function draws questions or swaps once for all comparisons, from a generator of its own with the ``seed``;
so a comparison gives the same figures alone and in company. Draws are handled in parts, so memory does not
grow with questions times resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epicqa.errors import EpicqaError

RESAMPLES = 100_000
"""Resamples by default, as many as Smucker, Allan and Carterette take."""

CONFIDENCE = 0.95

_PART = 1 << 20
_KEPT = 1 << 24


def paired_bootstrap(
    differences: ArrayLike, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Interval of the mean difference by the bootstrap over questions, bias-corrected and accelerated (BCa).

    Efron, "Better bootstrap confidence intervals", JASA 82 (1987); Efron and Tibshirani, "An introduction to
    the bootstrap" (1993), 14.3. One question, or differences that are all the same, give no width.

    Args:
        differences: float64[..., n_questions], a run's values less another's.
        confidence: how much the interval covers, between 0 and 1.
        resamples: samples of n questions, drawn with replacement.
        seed: of the generator.

    Returns:
        float64[..., 2], lower and upper end.

    Raises:
        EpicqaError: no differences, one that is not finite, confidence or resamples out of range.
    """
    given = np.asarray(differences, dtype=np.float64)
    flat = _checked(given, resamples)
    if not 0 < confidence < 1:
        raise EpicqaError(f"confidence {confidence}, expected a number between 0 and 1")
    at_once = max(1, _KEPT // resamples)
    intervals = np.empty((len(flat), 2))
    for start in range(0, len(flat), at_once):
        block = flat[start : start + at_once]
        means = np.empty((len(block), resamples))
        done = 0
        for counts in _counts(flat.shape[1], resamples, seed):
            means[:, done : done + len(counts)] = (block @ counts.T) / flat.shape[1]
            done += len(counts)
        for i, difference in enumerate(block):
            intervals[start + i] = _interval(difference, means[i], confidence)
    return intervals.reshape(*given.shape[:-1], 2)


def randomisation_test(
    differences: ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> NDArray[np.float64]:
    """Two-sided p of the mean difference under swaps of the two runs, question by question.

    Smucker, Allan and Carterette, "A comparison of statistical significance tests for information retrieval
    evaluation", CIKM 2007. Where there are at most ``resamples`` ways of swapping, all are gone through; else
    p is (1 + as extreme) / (1 + drawn), so never 0 (Phipson and Smyth 2010).

    Args:
        differences: float64[..., n_questions], a run's values less another's.
        resamples: ways of swapping that are drawn.
        seed: of the generator.

    Returns:
        float64[...], above 0, at most 1.

    Raises:
        EpicqaError: no differences, one that is not finite, or a number of resamples out of range.
    """
    given = np.asarray(differences, dtype=np.float64)
    flat = _checked(given, resamples)
    exact = is_exact(flat.shape[1], resamples)
    total = flat.sum(axis=1)
    # Sums that differ by rounding only are equally extreme.
    observed = np.abs(total) - 1e-12 * np.abs(flat).sum(axis=1)
    extreme = np.zeros(len(flat), dtype=np.int64)
    drawn = 0
    for swapped in _every_swap(flat.shape[1]) if exact else _swaps(flat.shape[1], resamples, seed):
        extreme += np.count_nonzero(np.abs(total - 2 * (swapped @ flat.T)) >= observed, axis=0)
        drawn += len(swapped)
    p_values = extreme / drawn if exact else (extreme + 1) / (drawn + 1)
    return p_values.reshape(given.shape[:-1])


def is_exact(n_questions: int, resamples: int = RESAMPLES) -> bool:
    """Whether `randomisation_test` goes through all 2^n ways of swapping."""
    return 2**n_questions <= resamples


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """P values adjusted for testing all of them, so that below 0.05 means so for the family.

    The i-th smallest of m is multiplied by m - i + 1; none is below one that was smaller, none above 1. Holm,
    "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).

    Args:
        p_values: float64[m].

    Returns:
        float64[m], in the same order.

    Raises:
        EpicqaError: a value outside 0 to 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not np.all((p >= 0) & (p <= 1)):
        raise EpicqaError("p values outside 0 to 1, expected probabilities")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _checked(differences: NDArray[np.float64], resamples: int) -> NDArray[np.float64]:
    """The differences as rows."""
    if differences.ndim == 0 or differences.shape[-1] == 0:
        raise EpicqaError("no differences to test, expected those of one question or more")
    if not np.isfinite(differences).all():
        raise EpicqaError("a difference is not a finite number, expected values of questions scored for both")
    if resamples < 1:
        raise EpicqaError(f"{resamples} resamples, expected 1 or more")
    return differences.reshape(-1, differences.shape[-1])


def _interval(
    difference: NDArray[np.float64], means: NDArray[np.float64], confidence: float
) -> tuple[float, float]:
    mean = difference.mean()
    slack = 1e-12 * np.abs(difference).max()
    from_mean = difference - mean
    spread = float((from_mean**2).sum())
    if np.abs(from_mean).max() <= slack or spread == 0:
        return float(mean), float(mean)
    # Those at the mean count half.
    twice_below = int(np.count_nonzero(means < mean - slack) + np.count_nonzero(means <= mean + slack))
    normal = NormalDist()
    # Kept off 0 and 1, as a few resamples can all lie on one side.
    bias = normal.inv_cdf(min(max(twice_below, 1), 2 * len(means) - 1) / (2 * len(means)))
    # The jackknife's values of a mean are its distances from the mean, up to a factor that cancels.
    acceleration = float((from_mean**3).sum()) / (6 * spread**1.5)
    tail = normal.inv_cdf((1 - confidence) / 2)
    levels = []
    for end in (bias + tail, bias - tail):
        shrinking = 1 - acceleration * end
        # At 0 the level has reached its limit.
        levels.append(normal.cdf(bias + end / shrinking) if shrinking > 0 else float(end > 0))
    low, high = np.quantile(means, levels)
    return float(low), float(high)


def _counts(n_questions: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each question is in each bootstrap sample: float64[part, n_questions] until all are drawn."""
    generator = np.random.default_rng(seed)
    for rows in _parts(n_questions, resamples):
        drawn = generator.integers(0, n_questions, size=(rows, n_questions))
        drawn += np.arange(rows)[:, None] * n_questions
        counted = np.bincount(drawn.ravel(), minlength=rows * n_questions)
        yield counted.reshape(rows, n_questions).astype(np.float64)


def _swaps(n_questions: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Which questions are swapped, 1 or 0, each as likely: float64[part, n_questions] until all are drawn."""
    generator = np.random.default_rng(seed)
    for rows in _parts(n_questions, resamples):
        wide = -(-n_questions // 8)
        bits = np.frombuffer(generator.bytes(rows * wide), dtype=np.uint8).reshape(rows, wide)
        yield np.unpackbits(bits, axis=1, count=n_questions).astype(np.float64)


def _every_swap(n_questions: int) -> Iterator[NDArray[np.float64]]:
    """Every way of swapping with the last question left: swapping all others instead is as extreme."""
    every = 1 << (n_questions - 1)
    start = 0
    for rows in _parts(n_questions, every):
        number = np.arange(start, start + rows)[:, None]
        yield (number >> np.arange(n_questions) & 1).astype(np.float64)
        start += rows


def _parts(n_questions: int, resamples: int) -> Iterator[int]:
    """Numbers of rows, of about eight megabytes each."""
    most = max(1, _PART // n_questions)
    for start in range(0, resamples, most):
        yield min(most, resamples - start)
