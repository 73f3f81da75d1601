"""Train a cross-encoder that reranks: a question and a passage in, one number out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

from epicqa.errors import EpicqaError
from epicqa.files import digest_of
from epicqa.models.places import fingerprint as model_fingerprint
from epicqa.models.places import resolve
from epicqa.models.train.folder import WORK, at_work, result_in
from epicqa.models.train.loop import Progress, Run
from epicqa.models.train.losses import Loss
from epicqa.models.train.pairs import Pair, fingerprint
from epicqa.models.train.reranker_recipe import Recipe
from epicqa.models.train.reranker_result import Trained, finish, restored
from epicqa.models.train.reranker_task import RerankerTask
from epicqa.models.train.schedule import at_least

MINED = 3
"""Negatives to have ready for each that a step uses, so that epochs differ."""

HELD_OUT = 200
"""Held-out pairs to validate on at most."""


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
    if made := result_in(out, key, partial(restored, out)):
        return made
    run = Run(
        RerankerTask(recipe, folder, pairs, held_out),
        out / WORK,
        progress,
        budget_seconds=budget_seconds,
        evaluations=evaluations,
        measure="mrr",
        unit="pairs",
    )
    with at_work(out, key, threads):
        run.go(checkpoint_every)
        return finish(run, out, notes, command)


def _check(recipe: Recipe, pairs: Sequence[Pair], held_out: Sequence[Pair], checkpoint_every: int) -> None:
    if recipe.loss not in get_args(Loss):
        raise EpicqaError(f"unknown loss {recipe.loss!r}, expected one of {', '.join(get_args(Loss))}")
    at_least(
        {
            "negatives_per_query": (recipe.negatives, 1),
            "max_length": (recipe.max_length, 8),
            "checkpoint_every": (checkpoint_every, 1),
        }
    )
    recipe.check()
    if not pairs:
        raise EpicqaError("no pairs to train on, expected one or more")
    for pair in (*pairs, *held_out):
        if not pair.negatives:
            raise EpicqaError(f"the pair of {pair.query[:60]!r} has no negatives, expected one or more")
