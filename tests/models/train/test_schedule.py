"""Settings of steps, and batches by length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.models.batches import slabs
from epicqa.models.train.schedule import Schedule, at_least

SCHEDULE = Schedule(
    epochs=2,
    max_steps=None,
    budget_seconds=None,
    batch=3,
    learning_rate=1e-3,
    warmup=0.1,
    seed=1,
    evaluations=4,
)


@given(items=st.integers(1, 40), batch=st.integers(1, 50), seed=st.integers(0, 9))
def test_each_item_comes_once_an_epoch(items: int, batch: int, seed: int) -> None:
    schedule = replace(SCHEDULE, batch=batch, seed=seed)
    seen: dict[int, list[int]] = {0: [], 1: []}
    for step in range(schedule.steps(items)):
        epoch, places = schedule.places(items, step)
        assert 1 <= len(places) <= batch
        seen[epoch] += places
    assert all(sorted(places) == list(range(items)) for places in seen.values())


def test_epochs_and_seeds_have_their_own_order() -> None:
    wide = replace(SCHEDULE, batch=30)
    orders = [wide.places(30, 0)[1], wide.places(30, 1)[1], replace(wide, seed=2).places(30, 0)[1]]
    assert len({tuple(order) for order in orders}) == 3


def test_steps_are_limited() -> None:
    assert SCHEDULE.steps(7) == 6
    assert replace(SCHEDULE, max_steps=4).steps(7) == 4
    assert replace(SCHEDULE, max_steps=9).steps(7) == 6


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"epochs": 0}, "epochs is 0, expected 1 or more"),
        ({"max_steps": 0}, "max_steps is 0, expected 1 or more"),
        ({"batch": 0}, "batch is 0, expected 1 or more"),
        ({"evaluations": 0}, "evaluations is 0, expected 1 or more"),
        ({"seed": -1}, "seed is -1, expected 0 or more"),
        ({"learning_rate": 1.0}, "learning rate 1,"),
        ({"learning_rate": float("nan")}, "learning rate nan,"),
        ({"warmup": -0.1}, "warm-up -0.1,"),
        ({"budget_seconds": float("nan")}, "budget of nan seconds"),
    ],
)
def test_settings_out_of_range_are_one_line(change: dict[str, Any], said: str) -> None:
    SCHEDULE.check()
    with pytest.raises(EpicqaError) as error:
        replace(SCHEDULE, **change).check()
    assert said in str(error.value) and "\n" not in str(error.value)


def test_at_least_names_the_setting() -> None:
    at_least({"one": (1, 1), "two": (9, 8)})
    with pytest.raises(EpicqaError, match="two is 7, expected 8 or more"):
        at_least({"one": (1, 1), "two": (7, 8)})


@given(lengths=st.lists(st.integers(0, 60), max_size=40), tokens=st.integers(1, 200))
def test_slabs_keep_the_order_and_the_limit(lengths: list[int], tokens: int) -> None:
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    parts = list(slabs(order, lengths, tokens))
    assert [place for part in parts for place in part] == order
    for part in parts:
        padded = len(part) * max(lengths[place] for place in part)
        assert len(part) == 1 or padded <= tokens
