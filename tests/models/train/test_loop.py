"""The loop of a training, with a line to fit as the model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.models.train.checkpoint import BEST, CURVE, LOG, load_best
from epicqa.models.train.learner import Learner
from epicqa.models.train.loop import Progress, Run, decayed


class Line:
    """A task: fit y = 2 x + 1 by points with some dropout; judged by minus the distance, far below -1."""

    def __init__(self, steps: int = 12, judged: Sequence[float] | None = (), peak: float = 0.1) -> None:
        self.wanted = steps
        self.judged = judged
        self.peak = peak
        self.loads = 0
        self.validations = 0
        self.load()

    def load(self) -> None:
        torch.manual_seed(3)
        self.learner = Learner(torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(4, 1)), self.peak)
        self.loads += 1

    def steps(self) -> int:
        return self.wanted

    def rate(self, step: int, total: int) -> float:
        return decayed(step, total, self.peak, 0.25)

    def learn(self, step: int, rate: float) -> tuple[float, int]:
        x = torch.randn(8, 4, generator=torch.Generator().manual_seed(step)).to(self.learner.device)
        self.learner.ready(1, step)
        return self.learner.learn(((self.learner.model(x) - 2 * x[:, :1] - 1) ** 2).mean(), rate), 8

    def judge(self, progress: Progress | None) -> float | None:
        if self.judged is None:
            return None
        self.validations += 1
        return self.judged[self.validations - 1] if self.judged else -100.0 + self.validations


def run_of(task: Line, work: Path, progress: Progress | None = None, **settings: Any) -> Run[Line]:
    work.mkdir(exist_ok=True)
    given = {"budget_seconds": None, "evaluations": 3, "measure": "closeness", "unit": "points"}
    return Run(task, work, progress, **(given | settings))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def copied(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: one.clone() for name, one in learner.weights().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_logs_carry_the_task_s_words(tmp_path: Path) -> None:
    run = run_of(Line(), tmp_path)
    run.go(5)
    log = lines(tmp_path / LOG)
    assert [line["step"] for line in log] == list(range(1, 13))
    assert set(log[0]) == {"step", "loss", "learning_rate", "points_a_second", "seconds"}
    assert log[-1]["loss"] < log[0]["loss"]
    assert run.curve == [(0, -99.0), (4, -98.0), (8, -97.0), (12, -96.0)]
    assert [(line["step"], line["closeness"]) for line in lines(tmp_path / CURVE)] == run.curve
    assert (run.state.step, run.state.seen, run.state.best_step, run.state.best) == (12, 96, 12, -96.0)


class Stopped(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("at", [1, 5, 8, 11])
def test_resumed_equals_uninterrupted(tmp_path: Path, at: int) -> None:
    def stop(step: str, done: int, total: int | None) -> None:
        if done == at:
            raise Stopped

    whole = run_of(Line(), tmp_path / "whole")
    whole.go(5)
    with pytest.raises(Stopped):
        run_of(Line(), tmp_path / "part", stop).go(5)
    begun: list[int] = []
    part = run_of(Line(), tmp_path / "part", lambda step, done, total: begun.append(done))
    part.go(5)
    # The step at which it was stopped had not reached its checkpoint.
    assert begun[0] == (at - 1) // 5 * 5 + 1
    assert same(part.task.learner.tensors(), whole.task.learner.tensors())
    for name in (LOG, CURVE):
        steps = [[line["step"] for line in lines(run.work / name)] for run in (part, whole)]
        assert steps[0] == steps[1]


def test_the_best_weights_are_kept_not_the_first_nor_the_last(tmp_path: Path) -> None:
    # Before training it is best of all, but nothing would have been trained.
    run = run_of(Line(judged=(-1.5, -9.0, -3.0, -3.0)), tmp_path)
    run.go(100)
    assert (run.state.best_step, run.state.best) == (8, -3.0)
    last = copied(run.task.learner)
    load_best(tmp_path, run.task.learner)
    assert not same(last, run.task.learner.weights())


def test_with_nothing_held_out_the_last_weights_are_kept(tmp_path: Path) -> None:
    run = run_of(Line(judged=None), tmp_path)
    run.go(100)
    last = copied(run.task.learner)
    assert run.curve == [] and run.state.best_step == 12 and (tmp_path / BEST).is_file()
    load_best(tmp_path, run.task.learner)
    assert same(last, run.task.learner.weights())


def test_a_rehearsal_leaves_no_trace(tmp_path: Path) -> None:
    runs = [
        run_of(Line(), tmp_path / name, budget_seconds=budget)
        for name, budget in (("free", None), ("bound", 60.0))
    ]
    for run in runs:
        run.go(100)
    assert [run.task.loads for run in runs] == [1, 2]
    assert same(runs[0].task.learner.tensors(), runs[1].task.learner.tensors())
    assert runs[1].state.seen == 96


def test_a_budget_too_small_makes_one_step(tmp_path: Path) -> None:
    run = run_of(Line(), tmp_path, budget_seconds=1e-6)
    run.go(100)
    assert run.state.step == run.state.total == 1


def test_a_loss_that_is_no_number_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        EpicqaError, match=r"^step \d+: the loss is (nan|inf), expected a lower learning rate$"
    ):
        run_of(Line(steps=60, peak=1e30), tmp_path).go(100)


@given(
    total=st.integers(1, 500),
    peak=st.floats(1e-6, 1e-2),
    warmup=st.floats(0, 0.9),
)
def test_the_rate_rises_to_the_peak_and_falls(total: int, peak: float, warmup: float) -> None:
    rates = [decayed(step, total, peak, warmup) for step in range(total)]
    top = max(1, round(warmup * total)) - 1
    assert rates[top] == max(rates) and math.isclose(max(rates), peak)
    assert rates[:top] == sorted(rates[:top]) and rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0
