"""What decides a trained claim model's weights."""

from __future__ import annotations

from dataclasses import dataclass

from epicqa.claims.network import Kind, Reads
from epicqa.models.train.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Recipe(Schedule):
    """What decides the weights, threads and machine aside: ``trainer.train`` says what each setting is."""

    kind: Kind
    reads: Reads
    base: str
    max_length: int
    sentence_weight: float
