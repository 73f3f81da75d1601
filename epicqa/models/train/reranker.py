"""Train a cross-encoder that reranks: a question and a passage in, one number out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from epicqa.errors import EpicqaError
from epicqa.files import digest_of, sweep, write_bytes
from epicqa.models.places import fingerprint as model_fingerprint
from epicqa.models.places import resolve
from epicqa.models.train.losses import Loss
from epicqa.models.train.pairs import Pair, fingerprint
from epicqa.models.train.reranker_recipe import Recipe
from epicqa.models.train.reranker_result import RESULT, Trained, finish, read_result
from epicqa.models.train.reranker_run import Progress, Run

WORK = "training"
"""The folder in a model's folder that holds its log, its curve, and what a resumed training needs."""

MINED = 3
"""Negatives to have ready for each that a step uses, so that epochs differ."""

HELD_OUT = 200
"""Held-out pairs to validate on at most."""

_KEY = "key.json"


def train_reranker(
    pairs: Sequence[Pair],
    out: Path,
    *,
    held_out: Sequence[Pair] = (),
    base: str = "minilm",
    negatives_per_query: int = 7,
    loss: Loss = "listwise",
    epochs: int = 1,
    max_steps: int | None = None,
    budget_seconds: float | None = None,
    batch: int = 16,
    max_length: int = 192,
    learning_rate: float = 5e-5,
    warmup: float = 0.1,
    seed: int = 1,
    threads: int | None = None,
    teacher: str | None = None,
    checkpoint_every: int = 25,
    evaluations: int = 8,
    notes: Sequence[str] = (),
    command: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train a cross-encoder with one logit and write it as a sentence-transformers ``CrossEncoder`` folder.

    The same call goes on where an interrupted one stopped, and comes to the same weights as one that was not
    interrupted, on the same machine and threads. A call after the end does nothing.

    Losses, for a query's positive p and negatives n with scores s (and a teacher's scores t):
    ``listwise``: -log softmax(s)[p], or the cross-entropy with softmax(t) (ListNet, Cao et al. 2007, section
    4); ``margin``: the mean of max(0, 1 - (s_p - s_n)), or of ((t_p - t_n) - (s_p - s_n))^2 (Margin-MSE,
    Hofstätter et al. 2020, section 3).

    Args:
        pairs: with negatives each, see ``negatives.with_negatives``; each epoch draws some of them.
        out: the folder.
        held_out: pairs whose positive is ranked among all its negatives to choose the best weights; without
            any, the last are kept.
        base: any encoder by a name that ``places.resolve`` knows.
        negatives_per_query: negatives in a step's list.
        loss: see above.
        epochs: passes over the pairs.
        max_steps: a limit on steps.
        budget_seconds: a limit on time: a few steps and one validation are timed, and as many steps planned
            as fit.
        batch: queries a step.
        max_length: tokens of question and passage together.
        learning_rate: at its peak.
        warmup: share of the steps over which it rises.
        seed: of weights that the base lacks, dropout, order and draws.
        threads: of PyTorch; None: all cores.
        teacher: a cross-encoder to learn the scores of.
        checkpoint_every: steps between two checkpoints; a kill loses those after the last.
        evaluations: validations on the way, evenly spaced, the last at the end.
        notes: lines on the data and their licences, for the model card.
        command: the command that makes the model, for the card.
        progress: told how far it is.

    Raises:
        EpicqaError: a setting out of range, a pair without negatives, a model that cannot be loaded, or a
            folder that holds something else.
    """
    recipe = Recipe(
        base=base,
        teacher=teacher,
        negatives=negatives_per_query,
        loss=loss,
        epochs=epochs,
        max_steps=max_steps,
        budget_seconds=budget_seconds,
        batch=batch,
        max_length=max_length,
        learning_rate=learning_rate,
        warmup=warmup,
        seed=seed,
        evaluations=evaluations,
    )
    _check(recipe, pairs, held_out, checkpoint_every)
    folder = resolve(base)
    key = digest_of(
        {
            **asdict(recipe),
            "base": model_fingerprint(folder),
            "teacher": teacher and model_fingerprint(resolve(teacher, "cross-encoder")),
            "pairs": fingerprint(pairs),
            "held_out": fingerprint(held_out),
        }
    )
    _check_folder(out, key)
    work = out / WORK
    if (out / "config.json").is_file() and (work / RESULT).is_file():
        return read_result(out, work)
    from filelock import FileLock, Timeout

    before = torch.get_num_threads()
    torch.set_num_threads(threads or os.cpu_count() or 1)
    try:
        run = Run(recipe, folder, pairs, held_out, work, progress)
        work.mkdir(parents=True, exist_ok=True)
        with FileLock(work / ".lock", timeout=0):
            sweep(work)
            write_bytes(work / _KEY, json.dumps({"key": key}).encode() + b"\n")
            run.go(checkpoint_every)
            return finish(run, out, notes, command)
    except Timeout:
        raise EpicqaError(f"{out}: is being trained by another process; wait for it to end") from None
    finally:
        torch.set_num_threads(before)


def some_of(pairs: Sequence[Pair], most: int, seed: int) -> list[Pair]:
    """At most that many pairs, drawn by seed, in their order."""
    if len(pairs) <= most:
        return list(pairs)
    chosen = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
    return [pairs[place] for place in np.sort(chosen).tolist()]


def _check(recipe: Recipe, pairs: Sequence[Pair], held_out: Sequence[Pair], checkpoint_every: int) -> None:
    if recipe.loss not in get_args(Loss):
        raise EpicqaError(f"unknown loss {recipe.loss!r}, expected one of {', '.join(get_args(Loss))}")
    least = {
        "negatives_per_query": (recipe.negatives, 1),
        "epochs": (recipe.epochs, 1),
        "max_steps": (1 if recipe.max_steps is None else recipe.max_steps, 1),
        "batch": (recipe.batch, 1),
        "max_length": (recipe.max_length, 8),
        "checkpoint_every": (checkpoint_every, 1),
        "evaluations": (recipe.evaluations, 1),
        "seed": (recipe.seed, 0),
    }
    for name, (value, low) in least.items():
        if value < low:
            raise EpicqaError(f"{name} is {value}, expected {low} or more")
    if not 0 < recipe.learning_rate < 1 or not 0 <= recipe.warmup < 1:
        raise EpicqaError(
            f"learning rate {recipe.learning_rate:g}, warm-up {recipe.warmup:g}, expected above 0 and from 0 "
            "on, both below 1"
        )
    if recipe.budget_seconds is not None and not recipe.budget_seconds > 0:
        raise EpicqaError(f"budget of {recipe.budget_seconds:g} seconds, expected more than 0")
    if not pairs:
        raise EpicqaError("no pairs to train on, expected one or more")
    for pair in (*pairs, *held_out):
        if not pair.negatives:
            raise EpicqaError(f"the pair of {pair.query[:60]!r} has no negatives, expected one or more")


def _check_folder(out: Path, key: str) -> None:
    """No other training's folder is touched, and none that is no training's."""
    path = out / WORK / _KEY
    if path.is_file():
        try:
            known = json.loads(path.read_bytes())["key"]
        except (ValueError, KeyError, TypeError):
            known = None
        if known != key:
            raise EpicqaError(
                f"{out}: holds a training with other pairs, models or settings, expected an empty folder, or "
                "the same command again to go on with it"
            )
    elif out.is_dir() and any(out.iterdir()):
        raise EpicqaError(f"{out}: not empty and no training of this kind, expected an empty folder")
