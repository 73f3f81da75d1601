"""What a training in sittings comes to, and what every model's card says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from epicqa.models.places import fingerprint
from epicqa.models.train.learner import CLIP, WEIGHT_DECAY, Learner
from epicqa.models.train.loop import AnyTask, Run
from epicqa.models.train.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a training came to.

    Attributes:
        folder: the model's.
        steps: made, of those planned.
        planned: steps that the learning rate's schedule was made for.
        seen: items gone through.
        seconds: of training and validation, over all its sittings.
        best_step: the step whose weights were kept.
        curve: (step, measure) of each validation; the first is before training. Empty where nothing is held
            out.
    """

    folder: Path
    steps: int
    planned: int
    seen: int
    seconds: float
    best_step: int
    curve: tuple[tuple[int, float], ...]

    def told(self, items: str, measure: str, pace: str = "") -> list[str]:
        """What a person wants to know, a sentence a line.

        Args:
            items: what was gone through, a plural.
            measure: what the curve is of, and on what.
            pace: what is said behind the time.
        """
        told = [
            f"{self.folder}: step {self.best_step:,} of {self.steps:,}, {self.seen:,} {items} in "
            f"{self.seconds / 60:.1f} minutes{pace}"
        ]
        if self.steps < self.planned:
            told.append(f"the budget ended before the {self.planned:,} steps that were planned")
        if not self.curve:
            return told
        values = dict(self.curve)
        before, after = self.curve[0][1], values[self.best_step]
        told.append(f"{measure} {after:.3f}, before training {before:.3f}")
        if after <= before:
            told.append("it is no better than before training: more or other data, or more time, are needed")
        elif self.curve[-1][1] < after:
            told.append(f"later steps were worse: {self.curve[-1][1]:.3f} at the end")
        return told


def outcome_of(run: Run[AnyTask], out: Path) -> dict[str, Any]:
    """The values of an `Outcome` of a run that ended, by name."""
    state = run.state
    return {
        "folder": out,
        "steps": state.step,
        "planned": state.total,
        "seen": state.seen,
        "seconds": state.seconds,
        "best_step": state.best_step,
        "curve": tuple(run.curve),
    }


def restored(out: Path, found: Mapping[str, Any]) -> dict[str, Any]:
    """The same of what was kept as JSON; errors of a damaged record are Python's."""
    curve = tuple((int(step), float(value)) for step, value in found["curve"])
    return {**found, "folder": out, "curve": curve}


def card_values(
    recipe: Schedule,
    base: str,
    folder: Path,
    learner: Learner,
    outcome: Outcome,
    weights: str,
    notes: Sequence[str],
    command: str,
) -> dict[str, Any]:
    """What every card says, by the names that its text has for them.

    Args:
        recipe: how it was trained.
        base: the name of the model that it started from.
        folder: that model's.
        learner: what was trained.
        outcome: what it came to.
        weights: SHA-256 of the model's weights.
        notes: lines on the data and their licences.
        command: the command that makes the model; empty: none is shown.
    """
    machine = "a GPU" if learner.device == "cuda" else f"{torch.get_num_threads()} CPU thread(s)"
    return {
        "name": outcome.folder.resolve().name,
        "base": "sentence-transformers/all-MiniLM-L6-v2" if base == "minilm" else base,
        "license": "license: apache-2.0\n" if base == "minilm" else "",
        "base_fingerprint": fingerprint(folder),
        "command": "\n```\n{}\n```\n".format(command.replace("`", "'")) if command else "",
        "steps": outcome.steps,
        "planned": outcome.planned,
        "batch": recipe.batch,
        "seen": outcome.seen,
        "minutes": outcome.seconds / 60,
        "machine": f"{machine}, {learner.precision}",
        "learning_rate": recipe.learning_rate,
        "warmup": recipe.warmup,
        "decay": WEIGHT_DECAY,
        "clip": CLIP,
        "seed": recipe.seed,
        "weights": weights,
        "notes": "\n".join(f"- {' '.join(note.split())}" for note in notes) or "The caller named none.",
    }


def curve_rows(outcome: Outcome, measure: str) -> list[str]:
    """A Markdown table of the curve."""
    return [
        f"| step | {measure} |",
        "|---|---|",
        *(f"| {step:,} | {value:.4f} |" for step, value in outcome.curve),
    ]
