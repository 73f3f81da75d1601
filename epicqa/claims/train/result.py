"""What the training of a claim model comes to: the model's folder, and the figures kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epicqa.claims.network import Settings, save_network
from epicqa.claims.train.card import card_of
from epicqa.claims.train.task import ClaimTask
from epicqa.claims.train.tuning import tune
from epicqa.files import remove_tree, sha256_of, write_bytes
from epicqa.models.train.checkpoint import load_best
from epicqa.models.train.folder import publish
from epicqa.models.train.loop import Run


@dataclass(frozen=True, slots=True)
class TrainedClaims:
    """What a training came to.

    Attributes:
        folder: the model's.
        steps: made, of those planned.
        planned: steps that the learning rate's schedule was made for.
        seen: examples gone through.
        seconds: of training and validation, over all its sittings.
        best_step: the step whose weights were kept.
        curve: (step, `epicqa.claims.train.task.score`) of each validation; the first is before training.
            Empty without held-out examples.
        settings: the model's, with its thresholds.
    """

    folder: Path
    steps: int
    planned: int
    seen: int
    seconds: float
    best_step: int
    curve: tuple[tuple[int, float], ...]
    settings: Settings

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        told = [
            f"{self.folder}: step {self.best_step:,} of {self.steps:,}, {self.seen:,} examples in "
            f"{self.seconds / 60:.1f} minutes ({self.seconds / max(1, self.steps):.2f} seconds a step)"
        ]
        if self.steps < self.planned:
            told.append(f"the budget ended before the {self.planned:,} steps that were planned")
        if not self.curve:
            return [*told, "no examples were held out: how good it is, is not known; thresholds are 0.5"]
        values = dict(self.curve)
        before, after = self.curve[0][1], values[self.best_step]
        told.append(f"score on held-out claims {after:.3f}, before training {before:.3f}")
        if after <= before:
            told.append("it is no better than before training: more or other data, or more time, are needed")
        elif self.curve[-1][1] < after:
            told.append(f"later steps were worse: {self.curve[-1][1]:.3f} at the end")
        chosen = []
        if self.settings.kind != "label":
            chosen.append(f"{self.settings.threshold:g} of sentences")
        if self.settings.kind != "rationale":
            chosen.append(f"{self.settings.evidence_threshold:g} of evidence")
        return [*told, f"thresholds chosen on them: {', '.join(chosen)}"]


def finish(run: Run[ClaimTask], out: Path, notes: Sequence[str], command: str) -> TrainedClaims:
    """Write the model's folder from the best weights, with thresholds chosen on what was held out."""
    state, task = run.state, run.task
    load_best(run.work, task.learner)
    # What is published is float16: thresholds are those of the weights that users load.
    task.network.half().float()
    settings = (
        tune(task.settings, task.held_out, task.read(task.held_out)) if task.held_out else task.settings
    )
    made = run.work / "model"
    remove_tree(made)
    save_network(made, task.network, task.tokenizer, settings)
    trained = TrainedClaims(
        out, state.step, state.total, state.seen, state.seconds, state.best_step, tuple(run.curve), settings
    )
    card = card_of(task, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    publish(out, made, asdict(trained) | {"folder": None})
    return trained


def restored(out: Path, found: Mapping[str, Any]) -> TrainedClaims:
    """What an earlier call came to, of what ``finish`` kept; errors of a damaged record are Python's."""
    curve = tuple((int(step), float(value)) for step, value in found["curve"])
    settings = Settings(**found["settings"])
    return TrainedClaims(**{**found, "folder": out, "curve": curve, "settings": settings})
