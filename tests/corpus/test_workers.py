"""Calls in worker processes. The functions are the standard library's: processes must find them."""

import itertools
import math
import multiprocessing
import operator
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.workers import Call, in_order
from epicqa.errors import EpicqaError


def counted(calls: Iterator[Call], asked: list[int]) -> Iterator[Call]:
    """The calls, and how many were asked for."""
    for number, call in enumerate(calls, 1):
        asked[0] = number
        yield call


def in_turn(*calls: Call) -> Iterator[Call]:
    """So many calls and no end."""
    yield from calls
    yield from ((operator.neg, (number,)) for number in itertools.count())


@given(st.lists(st.integers()), st.integers(-1, 1))
def test_in_this_process(numbers: list[int], workers: int) -> None:
    assert list(in_order([(operator.neg, (one,)) for one in numbers], workers)) == [-one for one in numbers]


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_of_one_call_or_none_no_process_is_started(workers: int) -> None:
    assert list(in_order([], workers)) == []
    assert list(in_order([(os.getpid, ())], workers)) == [os.getpid()]


def test_one_worker_is_asked_for_what_comes_next() -> None:
    asked = [0]
    with closing(in_order(counted(in_turn(), asked), 1)) as results:
        for number in range(10):
            assert next(results) == -number
            assert asked[0] == max(number + 1, 2)


def test_results_come_in_the_order_of_calls_whichever_is_done_first() -> None:
    # The first takes longest; a pause is a call, too.
    pauses = [(time.sleep, (0.3,)), *[(operator.neg, (number,)) for number in range(60)]]
    asked, found = [0], []
    for number, result in enumerate(in_order(counted(iter(pauses), asked), 2)):
        assert asked[0] <= number + 6
        found.append(result)
    assert found == [None, *(-number for number in range(60))]
    pids = set(in_order([(os.getpid, ())] * 6, 2))
    assert os.getpid() not in pids and len(pids) <= 2
    assert not multiprocessing.active_children()


def test_an_error_of_a_call_comes_in_its_turn_and_ends_all() -> None:
    asked, found = [0], []
    with pytest.raises(ValueError, match="math domain error"):
        for result in in_order(counted(in_turn((operator.neg, (7,)), (math.sqrt, (-1,))), asked), 2):
            found.append(result)
    assert found == [-7]
    assert asked[0] <= 2 + 6
    assert not multiprocessing.active_children()


def test_an_error_of_whoever_finds_the_calls() -> None:
    def calls() -> Iterator[Call]:
        yield from [(operator.neg, (number,)) for number in range(8)]
        raise EpicqaError("nothing more")

    for workers in (1, 2):
        found = []
        with pytest.raises(EpicqaError, match="nothing more"):
            for result in in_order(calls(), workers):
                found.append(result)
        assert found == [-number for number in range(8)][: len(found)]
        assert not multiprocessing.active_children()


def test_a_process_that_dies_is_one_line() -> None:
    with pytest.raises(EpicqaError, match=r"^a worker process ended early: out of memory, or .*$") as error:
        list(in_order([(os._exit, (1,)), (operator.neg, (1,)), (operator.neg, (2,))], 2))
    assert "\n" not in str(error.value)
    assert not multiprocessing.active_children()


def test_closing_early_waits_for_what_was_begun_and_drops_the_rest(tmp_path: Path) -> None:
    def calls() -> Iterator[Call]:
        yield operator.neg, (1,)
        for number in itertools.count():
            yield time.sleep, (0.05,)
            yield Path.touch, (tmp_path / str(number),)

    results = in_order(calls(), 2)
    assert next(results) == -1
    results.close()
    assert not multiprocessing.active_children()
    made = sorted(tmp_path.iterdir())
    time.sleep(0.2)
    assert sorted(tmp_path.iterdir()) == made and len(made) <= 6
    with pytest.raises(StopIteration):
        next(results)
