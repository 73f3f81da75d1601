"""What decides a trained reranker's weights, and what follows from it for each step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epicqa.models.train.losses import Loss
from epicqa.models.train.pairs import Pair


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides the weights, threads and machine aside: ``train_reranker`` says what each is."""

    base: str
    teacher: str | None
    negatives: int
    loss: Loss
    epochs: int
    max_steps: int | None
    budget_seconds: float | None
    batch: int
    max_length: int
    learning_rate: float
    warmup: float
    seed: int
    evaluations: int

    def steps(self, pairs: int) -> int:
        """Steps for that many pairs, the budget of time aside."""
        total = self.epochs * math.ceil(pairs / self.batch)
        return min(total, self.max_steps or total)

    def rate(self, step: int, total: int) -> float:
        """Linear warm-up to the peak, then linear decay to zero."""
        warm = max(1, round(self.warmup * total))
        rising = (step + 1) / warm
        falling = (total - step) / max(1, total - warm)
        return self.learning_rate * min(1.0, rising, falling)

    def lists(self, pairs: Sequence[Pair], step: int) -> list[tuple[str, list[str]]]:
        """Each query of a step with its positive and some of its negatives, drawn by seed and epoch."""
        epoch, within = divmod(step, math.ceil(len(pairs) / self.batch))
        order = np.random.default_rng([self.seed, epoch]).permutation(len(pairs))
        lists = []
        for place in order[within * self.batch : (within + 1) * self.batch].tolist():
            pair = pairs[place]
            draw = np.random.default_rng([self.seed, epoch, place])
            count = min(self.negatives, len(pair.negatives))
            chosen = np.sort(draw.choice(len(pair.negatives), count, replace=False)).tolist()
            lists.append((pair.query, [pair.positive, *(pair.negatives[one] for one in chosen)]))
        return lists
