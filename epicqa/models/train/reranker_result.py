"""What the training of a reranker comes to: the model's folder, and the figures that are kept beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epicqa.files import remove_tree, sha256_of, write_bytes
from epicqa.models.quiet import quiet
from epicqa.models.train.checkpoint import load_best
from epicqa.models.train.folder import publish
from epicqa.models.train.loop import Run
from epicqa.models.train.reranker_card import card_of
from epicqa.models.train.reranker_task import RerankerTask


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to.

    Attributes:
        folder: the model's.
        steps: made, of those planned.
        planned: steps that the learning rate's schedule was made for.
        seen: question-passage pairs gone through.
        seconds: of training and validation, over all its sittings.
        best_step: the step whose weights were kept.
        curve: (step, MRR) of each validation; the first is before training. Empty without held-out pairs.
    """

    folder: Path
    steps: int
    planned: int
    seen: int
    seconds: float
    best_step: int
    curve: tuple[tuple[int, float], ...]

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        told = [
            f"{self.folder}: step {self.best_step:,} of {self.steps:,}, {self.seen:,} question-passage pairs "
            f"in {self.seconds / 60:.1f} minutes"
        ]
        if self.steps < self.planned:
            told.append(f"the budget ended before the {self.planned:,} steps that were planned")
        if not self.curve:
            return [*told, "no pairs were held out: how good it is, is not known"]
        mrr = dict(self.curve)
        before, after = self.curve[0][1], mrr[self.best_step]
        told.append(f"MRR on held-out groups {after:.3f}, before training {before:.3f}")
        if after <= before:
            told.append("it is no better than before training: more or other pairs, or more time, are needed")
        elif self.curve[-1][1] < after:
            told.append(f"later steps were worse: {self.curve[-1][1]:.3f} at the end")
        return told


def finish(run: Run[RerankerTask], out: Path, notes: Sequence[str], command: str) -> Trained:
    """Write the model's folder from the best weights, in float16."""
    state, task = run.state, run.task
    load_best(run.work, task.learner)
    made = run.work / "model"
    remove_tree(made)
    with quiet():
        task.learner.model.half().cpu().save_pretrained(made)
        task.tokenizer.save_pretrained(made)
    config = json.loads((made / "config.json").read_bytes())
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    write_bytes(made / "config.json", json.dumps(config, indent=2).encode() + b"\n")
    trained = Trained(
        out, state.step, state.total, state.seen, state.seconds, state.best_step, tuple(run.curve)
    )
    card = card_of(task, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    publish(out, made, asdict(trained) | {"folder": None})
    return trained


def restored(out: Path, found: Mapping[str, Any]) -> Trained:
    """What an earlier call came to, of what ``finish`` kept; errors of a damaged record are Python's."""
    curve = tuple((int(step), float(mrr)) for step, mrr in found["curve"])
    return Trained(**{**found, "folder": out, "curve": curve})
