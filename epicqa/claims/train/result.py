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
from epicqa.models.train import outcome
from epicqa.models.train.checkpoint import load_best
from epicqa.models.train.folder import publish
from epicqa.models.train.loop import Run
from epicqa.models.train.outcome import Outcome, outcome_of


@dataclass(frozen=True, slots=True)
class TrainedClaims(Outcome):
    """What a training came to; its curve is of `epicqa.claims.train.task.score`, its items are examples.

    Attributes:
        settings: the model's, with its thresholds.
    """

    settings: Settings

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        pace = f" ({self.seconds / max(1, self.steps):.2f} seconds a step)"
        told = self.told("examples", "score on held-out claims", pace)
        if not self.curve:
            return [*told, "no examples were held out: how good it is, is not known; thresholds are 0.5"]
        chosen = []
        if self.settings.kind != "label":
            chosen.append(f"{self.settings.threshold:g} of sentences")
        if self.settings.kind != "rationale":
            chosen.append(f"{self.settings.evidence_threshold:g} of evidence")
        return [*told, f"thresholds chosen on them: {', '.join(chosen)}"]


def finish(run: Run[ClaimTask], out: Path, notes: Sequence[str], command: str) -> TrainedClaims:
    """Write the model's folder from the best weights, with thresholds chosen on what was held out."""
    task = run.task
    load_best(run.work, task.learner)
    # What is published is float16: thresholds are those of the weights that users load.
    task.network.half().float()
    settings = (
        tune(task.settings, task.held_out, task.read(task.held_out)) if task.held_out else task.settings
    )
    made = run.work / "model"
    remove_tree(made)
    save_network(made, task.network, task.tokenizer, settings)
    trained = TrainedClaims(**outcome_of(run, out), settings=settings)
    card = card_of(task, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    publish(out, made, asdict(trained) | {"folder": None})
    return trained


def restored(out: Path, found: Mapping[str, Any]) -> TrainedClaims:
    """What an earlier call came to, of what ``finish`` kept; errors of a damaged record are Python's."""
    kept = outcome.restored(out, found)
    return TrainedClaims(**{**kept, "settings": Settings(**found["settings"])})
