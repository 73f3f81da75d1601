"""Train a claim model: rationale, label or joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

from epicqa.claims.examples import Example, fingerprint
from epicqa.claims.network import Kind, Reads
from epicqa.claims.train.recipe import Recipe
from epicqa.claims.train.result import TrainedClaims, finish, restored
from epicqa.claims.train.task import ClaimTask
from epicqa.errors import EpicqaError
from epicqa.files import digest_of
from epicqa.models.places import fingerprint as model_fingerprint
from epicqa.models.places import resolve
from epicqa.models.train.folder import WORK, at_work, result_in
from epicqa.models.train.loop import Progress, Run
from epicqa.models.train.schedule import at_least

HELD_OUT = 600
"""Held-out examples to validate on at most."""


def train(
    kind: Kind,
    examples: Sequence[Example],
    out: Path,
    *,
    held_out: Sequence[Example] = (),
    reads: Reads = "both",
    base: str = "minilm",
    epochs: int = 1,
    max_steps: int | None = None,
    budget_seconds: float | None = None,
    batch: int = 16,
    max_length: int = 512,
    learning_rate: float = 5e-5,
    warmup: float = 0.1,
    sentence_weight: float = 5.0,
    seed: int = 1,
    threads: int | None = None,
    checkpoint_every: int = 25,
    evaluations: int = 4,
    notes: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> TrainedClaims:
    """Train a claim model and write its folder, which `epicqa.claims.model.load_claim_model` takes.

    The same call goes on where an interrupted one stopped, and comes to the same weights as one that was not
    interrupted, on the same machine and threads. A call after the end does nothing.

    The loss is the mean cross-entropy of labels, and by its weight that of sentences (Wadden et al. 2022,
    "MultiVerS", section 3.3, has the same sum); each kind has its part only. Training on other claims first
    and on the claims in question after is two calls, the second with the first's folder as base.

    Args:
        kind: see `epicqa.claims.network.Settings`.
        examples: claims, sentences, and what is right of them.
        out: the folder.
        held_out: examples to choose the best weights by, and then the thresholds; without any, the last
            weights are kept and thresholds are a half.
        reads: what the model is given: ``claim`` and ``sentences`` are for studies of what a label can be
            told by.
        base: an encoder or a claim model, by a name that ``places.resolve`` knows.
        epochs: passes over the examples.
        max_steps: a limit on steps.
        budget_seconds: a limit on time: a few steps and one validation are timed, and as many steps planned
            as fit.
        batch: examples a step.
        max_length: tokens of claim and sentences together; what is longer is read in parts.
        learning_rate: at its peak.
        warmup: share of the steps over which it rises.
        sentence_weight: of the sentences' part of the loss.
        seed: of weights that the base lacks, dropout, order.
        threads: of PyTorch; None: all cores.
        checkpoint_every: steps between two checkpoints; a kill loses those after the last.
        evaluations: validations on the way, evenly spaced, the last at the end.
        notes: lines on the data and their licences, for the model card.
        command: the command that makes the model, for the card.
        progress: told how far it is.

    Raises:
        EpicqaError: a setting out of range, nothing to learn of, a model that cannot be loaded, a claim too
            long, or a folder that holds something else.
    """
    recipe = Recipe(
        epochs=epochs,
        max_steps=max_steps,
        budget_seconds=budget_seconds,
        batch=batch,
        learning_rate=learning_rate,
        warmup=warmup,
        seed=seed,
        evaluations=evaluations,
        kind=kind,
        reads=reads,
        base=base,
        max_length=max_length,
        sentence_weight=sentence_weight,
    )
    _check(recipe, examples, checkpoint_every)
    folder = resolve(base)
    key = digest_of(
        {
            **asdict(recipe),
            "base": model_fingerprint(folder),
            "examples": fingerprint(examples),
            "held_out": fingerprint(held_out),
        }
    )
    if made := result_in(out, key, partial(restored, out)):
        return made
    run = Run(
        ClaimTask(recipe, folder, examples, held_out),
        out / WORK,
        progress,
        budget_seconds=budget_seconds,
        evaluations=evaluations,
        measure="score",
        unit="examples",
    )
    with at_work(out, key, threads):
        run.go(checkpoint_every)
        return finish(run, out, notes, command)


def _check(recipe: Recipe, examples: Sequence[Example], checkpoint_every: int) -> None:
    for name, value, known in (("kind", recipe.kind, Kind), ("reads", recipe.reads, Reads)):
        if value not in get_args(known):
            raise EpicqaError(f"unknown {name} {value!r}, expected one of {', '.join(get_args(known))}")
    if recipe.reads != "both" and recipe.kind != "label":
        raise EpicqaError(f"reads {recipe.reads}: for the kind label only, expected both for {recipe.kind}")
    at_least({"max_length": (recipe.max_length, 16), "checkpoint_every": (checkpoint_every, 1)})
    recipe.check()
    if not recipe.sentence_weight >= 0:
        raise EpicqaError(f"sentence weight {recipe.sentence_weight:g}, expected 0 or more")
    teaching = any(
        (one.label is not None and recipe.kind != "rationale") or (one.rationale and recipe.kind != "label")
        for one in examples
    )
    if not teaching:
        raise EpicqaError(f"no examples that a {recipe.kind} model learns from, expected one or more")
