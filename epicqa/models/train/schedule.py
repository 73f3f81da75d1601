"""The settings of steps that all trainings in sittings share, and what follows from them for each step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.models.train.loop import decayed

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a model is trained and how fast; a model's recipe is one with more settings.

    Attributes:
        epochs: passes over the items.
        max_steps: a limit on steps; None: none.
        budget_seconds: a limit on time; None: none.
        batch: items a step.
        learning_rate: at its peak.
        warmup: share of the steps over which it rises.
        seed: of order and draws.
        evaluations: validations on the way.
    """

    epochs: int
    max_steps: int | None
    budget_seconds: float | None
    batch: int
    learning_rate: float
    warmup: float
    seed: int
    evaluations: int

    def check(self) -> None:
        """Look whether all is in range.

        Raises:
            EpicqaError: a setting is out of its range.
        """
        at_least(
            {
                "epochs": (self.epochs, 1),
                "max_steps": (1 if self.max_steps is None else self.max_steps, 1),
                "batch": (self.batch, 1),
                "evaluations": (self.evaluations, 1),
                "seed": (self.seed, 0),
            }
        )
        if not 0 < self.learning_rate < 1 or not 0 <= self.warmup < 1:
            raise EpicqaError(
                f"learning rate {self.learning_rate:g}, warm-up {self.warmup:g}, expected above 0 and from 0 "
                "on, both below 1"
            )
        if self.budget_seconds is not None and not self.budget_seconds > 0:
            raise EpicqaError(f"budget of {self.budget_seconds:g} seconds, expected more than 0")

    def steps(self, items: int) -> int:
        """Steps for that many items, the budget of time aside."""
        total = self.epochs * math.ceil(items / self.batch)
        return min(total, self.max_steps or total)

    def rate(self, step: int, total: int) -> float:
        """The learning rate of a step: linear warm-up to the peak, then linear decay to zero."""
        return decayed(step, total, self.learning_rate, self.warmup)

    def places(self, items: int, step: int) -> tuple[int, list[int]]:
        """The epoch of a step, counted from 0, and the places of its items: each epoch has its own order."""
        epoch, within = divmod(step, math.ceil(items / self.batch))
        order = np.random.default_rng([self.seed, epoch]).permutation(items)
        return epoch, order[within * self.batch : (within + 1) * self.batch].tolist()


def some_of(items: Sequence[Item], most: int, seed: int) -> list[Item]:
    """At most that many items, drawn by seed, in their order."""
    if len(items) <= most:
        return list(items)
    chosen = np.random.default_rng(seed).choice(len(items), most, replace=False)
    return [items[place] for place in np.sort(chosen).tolist()]


def at_least(settings: Mapping[str, tuple[int, int]]) -> None:
    """Look whether each setting, by name, is as high as its least value, the second number.

    Raises:
        EpicqaError: one is lower.
    """
    for name, (value, least) in settings.items():
        if value < least:
            raise EpicqaError(f"{name} is {value}, expected {least} or more")
