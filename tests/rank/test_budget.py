"""Depths that a time is enough for, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.rank import budget as module
from epicqa.rank.budget import Budget


class Clock:
    """A clock in the place of the module's own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@contextmanager
def clocked() -> Iterator[Clock]:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
        yield clock


@pytest.fixture
def clock() -> Iterator[Clock]:
    with clocked() as clock:
        yield clock


def known(clock: Clock, budget: Budget, passages: int, seconds: float) -> None:
    """Let it know the pace."""
    with budget.scoring(passages):
        clock.now += seconds


def replay(clock: Clock, budget: Budget, paces: Sequence[float], most: int) -> tuple[list[int], list[float]]:
    """Depth and seconds of questions, the passages of each taking so long."""
    depths, spent = [], []
    for pace in paces:
        depths.append(budget.depth(most))
        known(clock, budget, depths[-1], depths[-1] * pace)
        spent.append(depths[-1] * pace)
    return depths, spent


@given(st.integers(1, 40), st.integers(0, 2000), st.sampled_from([1.0, 0.25, 1 / 64]), st.integers(1, 100))
def test_at_one_pace_depths_are_even_and_in_time(
    questions: int, passages: int, pace: float, most: int
) -> None:
    with clocked() as clock:
        budget = Budget((16 + passages) * pace, questions)
        known(clock, budget, 16, 16 * pace)
        depths, spent = replay(clock, budget, [pace] * questions, most)
    assert sum(spent) <= passages * pace
    assert max(depths) - min(depths) <= 1 and max(depths) <= most
    # All of it is used, unless nothing is left to score.
    assert sum(depths) == min(passages, most * questions)


@given(
    st.floats(0, 100),
    st.lists(st.floats(1e-3, 10), min_size=1, max_size=30),
    st.integers(1, 100),
    st.booleans(),
)
def test_at_any_pace_one_question_at_most_is_late(
    seconds: float, paces: list[float], most: int, probed: bool
) -> None:
    with clocked() as clock:
        budget = Budget(seconds, len(paces))
        probe = 16 * paces[0] if probed else 0.0
        if probed:
            known(clock, budget, 16, probe)
        depths, spent = replay(clock, budget, paces, most)
    used = probe
    for depth, one in zip(depths, spent, strict=True):
        assert 0 <= depth <= most
        # After the time is up none is scored, so that one at most ends late.
        assert depth == 0 or used <= seconds + 1e-9
        used += one
    assert used <= max(seconds, probe) + max(spent) + 1e-9


def test_what_a_question_leaves_is_shared(clock: Clock) -> None:
    budget = Budget(64.0 + 16.0, 4)
    known(clock, budget, 16, 16.0)
    assert budget.depth(1000) == 16
    # It has four passages only, at the same pace.
    known(clock, budget, 4, 4.0)
    assert replay(clock, budget, [1.0, 1.0, 1.0], 1000)[0] == [20, 20, 20]


def test_what_is_spent_besides_counts_and_is_no_pace(clock: Clock) -> None:
    budget = Budget(100.0, 2)
    with budget.spending():
        clock.now += 20.0
    assert not budget.timed
    known(clock, budget, 16, 16.0)
    assert budget.timed
    with budget.spending():
        clock.now += 4.0
    assert replay(clock, budget, [1.0, 1.0], 1000)[0] == [30, 30]


def test_the_pace_is_that_of_all_passages_so_far(clock: Clock) -> None:
    budget = Budget(1000.0, 5)
    known(clock, budget, 10, 10.0)
    known(clock, budget, 30, 190.0)
    # 800 seconds are left, 160 a question, 5 a passage.
    assert budget.depth(1000) == 32


def test_while_the_pace_is_unknown_all_are_scored(clock: Clock) -> None:
    budget = Budget(1e-9, 2)
    assert budget.depth(50) == 50
    # No passages tell no pace.
    known(clock, budget, 0, 0.0)
    assert not budget.timed and budget.depth(50) == 50


def test_no_time_is_no_depth(clock: Clock) -> None:
    assert Budget(0.0, 3).depth(50) == 0
    budget = Budget(5.0, 3)
    known(clock, budget, 1, 5.0)
    assert [budget.depth(50) for _ in range(3)] == [0, 0, 0]
    late = Budget(5.0, 1)
    known(clock, late, 1, 7.0)
    assert late.depth(50) == 0
    unknown = Budget(5.0, 1)
    with unknown.spending():
        clock.now += 6.0
    assert unknown.depth(50) == 0


def test_without_a_limit_all_are_scored(clock: Clock) -> None:
    budget = Budget(float("inf"), 3)
    assert budget.depth(200) == 200
    known(clock, budget, 200, 1e6)
    assert replay(clock, budget, [1e6, 1e6], 200)[0] == [200, 200]


def test_a_clock_too_coarse_to_tell_a_time(clock: Clock) -> None:
    budget = Budget(1.0, 2)
    known(clock, budget, 16, 0.0)
    assert budget.depth(200) == 200


def test_more_questions_than_were_announced(clock: Clock) -> None:
    budget = Budget(8.0, 1)
    known(clock, budget, 1, 1.0)
    assert replay(clock, budget, [1.0] * 3, 5)[0] == [5, 2, 0]


def test_an_error_passes_through_and_its_time_counts(clock: Clock) -> None:
    budget = Budget(10.0, 1)
    for block in (budget.spending(), budget.scoring(4)):
        with pytest.raises(KeyError), block:
            clock.now += 3.0
            raise KeyError
    assert not budget.timed
    known(clock, budget, 1, 1.0)
    assert budget.depth(50) == 3
