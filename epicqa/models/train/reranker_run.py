"""The training of a reranker: how many steps there will be, the steps, and validation on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from epicqa.errors import EpicqaError
from epicqa.models.train.pairs import Pair
from epicqa.models.train.reranker_checkpoint import (
    CURVE,
    LOG,
    State,
    note,
    restore_checkpoint,
    save_best,
    save_checkpoint,
)
from epicqa.models.train.reranker_network import Network
from epicqa.models.train.reranker_recipe import Recipe

Progress = Callable[[str, int, int | None], None]

# Steps that are timed to see how many fit a budget, and the share of it that they may plan to use.
_REHEARSED = 4
_PLANNED = 0.95
# Beyond this share of the budget the clock ends a training whose plan was too bold.
_OVERRUN = 1.1


class Run:
    """A training under way: the network, the pairs, and where it stands."""

    def __init__(
        self,
        recipe: Recipe,
        base: Path,
        pairs: Sequence[Pair],
        held_out: Sequence[Pair],
        work: Path,
        progress: Progress | None,
    ) -> None:
        self.recipe = recipe
        self.pairs = pairs
        self.held_out = held_out
        self.work = work
        self.progress = progress
        self.state = State()
        self.curve: list[tuple[int, float]] = []
        self.network = Network(recipe, base)

    def go(self, checkpoint_every: int) -> None:
        """Train to the end, from the last checkpoint if there is one."""
        if kept := restore_checkpoint(self.work, self.network):
            self.state, self.curve = kept
        else:
            self._plan()
            save_checkpoint(self.work, self.network, self.state, self.curve)
        state = self.state
        began = time.monotonic() - state.seconds
        sitting, seen = time.monotonic(), state.seen
        spacing = max(1, math.ceil(state.total / self.recipe.evaluations))
        limit = (self.recipe.budget_seconds or math.inf) * _OVERRUN
        while state.step < state.total and (state.seconds < limit or not state.step):
            rate = self.recipe.rate(state.step, state.total)
            state.loss = self._step(rate)
            state.seconds = time.monotonic() - began
            pace = (state.seen - seen) / max(1e-9, time.monotonic() - sitting)
            note(
                self.work / LOG,
                {
                    "step": state.step,
                    "loss": round(state.loss, 5),
                    "learning_rate": rate,
                    "pairs_a_second": round(pace, 1),
                    "seconds": round(state.seconds, 1),
                },
            )
            if self.progress:
                self.progress("training", state.step, state.total)
            last = state.step == state.total or state.seconds >= limit
            if last or state.step % spacing == 0:
                self._judge()
                state.seconds = time.monotonic() - began
            if last or state.step % checkpoint_every == 0:
                save_checkpoint(self.work, self.network, state, self.curve)

    def _plan(self) -> None:
        """How many steps there will be; with a budget, as many as the pace of the first few lets fit."""
        recipe, state = self.recipe, self.state
        began = time.monotonic()
        for name in (LOG, CURVE):
            (self.work / name).unlink(missing_ok=True)
        state.total = recipe.steps(len(self.pairs))
        self._judge()
        if recipe.budget_seconds is None:
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
        left = recipe.budget_seconds * _PLANNED - spent - recipe.evaluations * judged
        self.state = State(seconds=spent, total=max(1, min(wanted, int(left / max(pace, 1e-9)))))
        # The rehearsal moved dropout's numbers and the optimizer; the weights stood still.
        self.network.load()

    def _step(self, rate: float) -> float:
        state = self.state
        lists = self.recipe.lists(self.pairs, state.step)
        loss = self.network.learn(lists, rate, state.step)
        if not math.isfinite(loss):
            raise EpicqaError(f"step {state.step + 1}: the loss is {loss}, expected a lower learning rate")
        state.step += 1
        state.seen += sum(len(texts) for _, texts in lists)
        return loss

    def _judge(self) -> None:
        """Validate, and keep the weights if they are the best so far."""
        state = self.state
        if self.held_out:
            mrr = self._mrr()
            self.curve.append((state.step, mrr))
            line = {"step": state.step, "mrr": mrr, "seconds": round(state.seconds, 1)}
            note(self.work / CURVE, line)
            if mrr <= state.best or not state.step:
                return
            state.best, state.best_step = mrr, state.step
        elif state.step < state.total:
            return
        else:
            state.best_step = state.step
        save_best(self.work, self.network)

    def _mrr(self) -> float:
        """The mean of 1 / rank of the held-out positives, each among its negatives; ties count against it."""
        self.network.model.eval()
        ranks = []
        with torch.inference_mode():
            for start in range(0, len(self.held_out), 64):
                some = self.held_out[start : start + 64]
                queries = [pair.query for pair in some for _ in range(1 + len(pair.negatives))]
                texts = [text for pair in some for text in (pair.positive, *pair.negatives)]
                scores = self.network.logits(queries, texts).cpu()
                for one in torch.split(scores, [1 + len(pair.negatives) for pair in some]):
                    ranks.append(1 + int((one[1:] >= one[0]).sum()))
                if self.progress:
                    self.progress("validating", min(start + 64, len(self.held_out)), len(self.held_out))
        return round(float(np.mean(1 / np.array(ranks))), 5)
