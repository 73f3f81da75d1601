"""The steps of a training: how many there will be, checkpoints and validation on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.models.train.checkpoint import (
    CURVE,
    LOG,
    State,
    note,
    restore_checkpoint,
    save_best,
    save_checkpoint,
)
from epicqa.models.train.learner import Learner

Progress = Callable[[str, int, int | None], None]

# Steps that are timed to see how many fit a budget, and the share of it that they may plan to use.
_REHEARSED = 4
_PLANNED = 0.95
# Beyond this share of the budget the clock ends a training whose plan was too bold.
_OVERRUN = 1.1


class Task(Protocol):
    """What is trained, on what; it comes loaded. A step does the same in every sitting of a training."""

    @property
    def learner(self) -> Learner:
        """The model with its optimizer."""

    def load(self) -> None:
        """Put everything back as it is before the first step, with a fresh learner."""

    def steps(self) -> int:
        """How many steps are wanted, the budget of time aside."""

    def rate(self, step: int, total: int) -> float:
        """The learning rate of a step, counted from 0, of so many."""

    def learn(self, step: int, rate: float) -> tuple[float, int]:
        """Make a step, counted from 0; its loss, and how many items it went through."""

    def judge(self, progress: Progress | None) -> float | None:
        """How good the weights are on what is held out, higher is better; None: nothing is held out."""


def decayed(step: int, total: int, peak: float, warmup: float) -> float:
    """The learning rate of a step, counted from 0: linear warm-up to the peak, then linear decay to zero.

    Args:
        step: of 0 to ``total`` - 1.
        total: steps of the training.
        peak: the highest rate.
        warmup: share of the steps over which it rises.
    """
    warm = max(1, round(warmup * total))
    rising = (step + 1) / warm
    falling = (total - step) / max(1, total - warm)
    return peak * min(1.0, rising, falling)


AnyTask = TypeVar("AnyTask", bound=Task)


class Run(Generic[AnyTask]):
    """A training under way.

    Attributes:
        task: what is trained.
        work: the folder of checkpoint, best weights and logs; it must be there before ``go``.
        state: where the training stands.
        curve: (step, measure) of each validation; the first is before training.
    """

    def __init__(
        self,
        task: AnyTask,
        work: Path,
        progress: Progress | None,
        *,
        budget_seconds: float | None,
        evaluations: int,
        measure: str,
        unit: str,
    ) -> None:
        """Start at step 0; nothing is read or written before ``go``.

        Args:
            task: what is trained.
            work: see above.
            progress: told how far it is.
            budget_seconds: a limit on time; None: none.
            evaluations: validations on the way, evenly spaced, the last at the end.
            measure: what ``task.judge`` tells, as the curve's file calls it.
            unit: what ``task.learn`` counts, a plural, as the log calls it.
        """
        self.task = task
        self.work = work
        self.state = State()
        self.curve: list[tuple[int, float]] = []
        self._progress = progress
        self._budget = budget_seconds
        self._evaluations = evaluations
        self._measure = measure
        self._unit = unit

    def go(self, checkpoint_every: int) -> None:
        """Train to the end, from the last checkpoint if there is one; the best weights are kept beside it.

        Raises:
            EpicqaError: a damaged checkpoint, or a loss that is no finite number.
        """
        if kept := restore_checkpoint(self.work, self.task.learner):
            self.state, self.curve = kept
        else:
            self._plan()
            save_checkpoint(self.work, self.task.learner, self.state, self.curve)
        state = self.state
        began = time.monotonic() - state.seconds
        sitting, seen = time.monotonic(), state.seen
        spacing = max(1, math.ceil(state.total / self._evaluations))
        limit = (self._budget or math.inf) * _OVERRUN
        while state.step < state.total and (state.seconds < limit or not state.step):
            rate = self.task.rate(state.step, state.total)
            state.loss = self._step(rate)
            state.seconds = time.monotonic() - began
            pace = (state.seen - seen) / max(1e-9, time.monotonic() - sitting)
            note(
                self.work / LOG,
                {
                    "step": state.step,
                    "loss": round(state.loss, 5),
                    "learning_rate": rate,
                    f"{self._unit}_a_second": round(pace, 1),
                    "seconds": round(state.seconds, 1),
                },
            )
            if self._progress:
                self._progress("training", state.step, state.total)
            last = state.step == state.total or state.seconds >= limit
            if last or state.step % spacing == 0:
                self._judge()
                state.seconds = time.monotonic() - began
            if last or state.step % checkpoint_every == 0:
                save_checkpoint(self.work, self.task.learner, state, self.curve)

    def _plan(self) -> None:
        """How many steps there will be; with a budget, as many as the pace of the first few lets fit."""
        state = self.state
        began = time.monotonic()
        for name in (LOG, CURVE):
            (self.work / name).unlink(missing_ok=True)
        state.total = self.task.steps()
        self._judge()
        if self._budget is None:
            state.seconds = time.monotonic() - began
            return
        judged = time.monotonic() - began
        wanted = state.total
        times = []
        for _ in range(min(_REHEARSED, wanted)):
            start = time.monotonic()
            self._step(0.0)
            times.append(time.monotonic() - start)
        # The first step pays for what the others find ready.
        pace = float(np.mean(times[1:] or times))
        spent = time.monotonic() - began
        left = self._budget * _PLANNED - spent - self._evaluations * judged
        self.state = State(seconds=spent, total=max(1, min(wanted, int(left / max(pace, 1e-9)))))
        # The rehearsal moved dropout's numbers and the optimizer; the weights stood still.
        self.task.load()

    def _step(self, rate: float) -> float:
        state = self.state
        loss, seen = self.task.learn(state.step, rate)
        if not math.isfinite(loss):
            raise EpicqaError(f"step {state.step + 1}: the loss is {loss}, expected a lower learning rate")
        state.step += 1
        state.seen += seen
        return loss

    def _judge(self) -> None:
        """Validate, and keep the weights if they are the best so far."""
        state = self.state
        value = self.task.judge(self._progress)
        if value is not None:
            self.curve.append((state.step, value))
            line = {"step": state.step, self._measure: value, "seconds": round(state.seconds, 1)}
            note(self.work / CURVE, line)
            if not state.step or (state.best_step and value <= state.best):
                return
            state.best, state.best_step = value, state.step
        # Without anything held out, the last weights are the best.
        elif state.step < state.total:
            return
        else:
            state.best_step = state.step
        save_best(self.work, self.task.learner)
