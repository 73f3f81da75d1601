"""What constants are chosen by, on numbers that can be followed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.quality.calibration import SIGNALS, Asked, feedback, left_out, logistic, others_of


def asked(nuggets: list[int], rows: int) -> Asked:
    signals = {name: np.zeros(rows) for name in SIGNALS}
    return Asked(
        "Q",
        signals,
        np.eye(rows, dtype=np.float32),
        *(np.arange(rows) for _ in range(3)),
        plainness=np.zeros(rows),
        nuggets=nuggets,
        ideal=2.0,
    )


def test_ndns_of_single_sentences() -> None:
    one = asked([0b01, 0b01, 0b10, 0, 0b110], rows=3)
    assert one.answers.tolist() == [True, True, True]
    # At ranks 1, 3 and 5 a nugget each; those beyond the first keep their places.
    expected = (1 + 1 / np.log2(4) + 1 / np.log2(6)) / 2
    assert one.ndns(np.array([0, 1, 2])) == pytest.approx(expected)
    assert one.ndns(np.array([2, 0, 1])) == pytest.approx((1 + 1 / np.log2(3) + 1 / np.log2(6)) / 2)


def test_each_question_is_measured_by_the_choice_of_the_others() -> None:
    values = np.array([[0.9, 0.1, 0.1], [0.2, 0.5, 0.5]])
    assert left_out(values) == (pytest.approx((0.2 + 0.1 + 0.1) / 3), [1, 0, 0])


def test_others_of_a_group_and_feedback() -> None:
    assert others_of(np.array([1.0, 2, 6, 5]), np.array([7, 7, 7, 9])).tolist() == [4, 3.5, 1.5, 0]
    vectors = np.eye(3, dtype=np.float32)
    assert feedback(np.array([0.0, 3, 1]), vectors, 1).argmax() == 1


def test_the_curve_is_found_again() -> None:
    scores = np.random.default_rng(1).normal(size=20_000)
    answers = np.random.default_rng(2).random(20_000) < 1 / (1 + np.exp(-(-2 + 1.5 * scores)))
    intercept, slope = logistic(scores, answers)
    assert intercept == pytest.approx(-2, abs=0.1) and slope == pytest.approx(1.5, abs=0.1)
