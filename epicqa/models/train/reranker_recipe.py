"""What decides a trained reranker's weights, and what follows from it for each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epicqa.models.train.losses import Loss
from epicqa.models.train.pairs import Pair
from epicqa.models.train.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Recipe(Schedule):
    """What decides the weights, threads and machine aside: ``train_reranker`` says what each is."""

    base: str
    teacher: str | None
    negatives: int
    loss: Loss
    max_length: int

    def lists(self, pairs: Sequence[Pair], step: int) -> list[tuple[str, list[str]]]:
        """Each query of a step with its positive and some of its negatives, drawn by seed and epoch."""
        epoch, places = self.places(len(pairs), step)
        lists = []
        for place in places:
            pair = pairs[place]
            draw = np.random.default_rng([self.seed, epoch, place])
            count = min(self.negatives, len(pair.negatives))
            chosen = np.sort(draw.choice(len(pair.negatives), count, replace=False)).tolist()
            lists.append((pair.query, [pair.positive, *(pair.negatives[one] for one in chosen)]))
        return lists
