"""What the training of a reranker comes to: the model's folder, and the figures that are kept beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, sha256_of, write_bytes
from epicqa.models.quiet import quiet
from epicqa.models.train.reranker_card import card_of
from epicqa.models.train.reranker_checkpoint import BEST, CHECKPOINT
from epicqa.models.train.reranker_run import Run

RESULT = "result.json"
"""The ``Trained`` of a training that ended, in its work folder."""


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


def finish(run: Run, out: Path, notes: Sequence[str], command: str) -> Trained:
    """Write the model's folder from the best weights; ``config.json``, which makes it one, comes last."""
    from safetensors.torch import load_file

    state = run.state
    run.network.model.load_state_dict(load_file(run.work / BEST))
    made = run.work / "model"
    remove_tree(made)
    with quiet():
        run.network.model.half().cpu().save_pretrained(made)
        run.network.tokenizer.save_pretrained(made)
    config = json.loads((made / "config.json").read_bytes())
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    trained = Trained(
        out, state.step, state.total, state.seen, state.seconds, state.best_step, tuple(run.curve)
    )
    card = card_of(run, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    for path in sorted(made.iterdir()):
        if path.name != "config.json":
            path.replace(out / path.name)
    write_bytes(run.work / RESULT, json.dumps(asdict(trained) | {"folder": None}).encode() + b"\n")
    write_bytes(out / "config.json", json.dumps(config, indent=2).encode() + b"\n")
    remove_tree(made)
    for name in (CHECKPOINT, BEST):
        (run.work / name).unlink(missing_ok=True)
    return trained


def read_result(out: Path, work: Path) -> Trained:
    """What an earlier call came to.

    Raises:
        EpicqaError: the file is damaged.
    """
    try:
        found = json.loads((work / RESULT).read_bytes())
        curve = tuple((int(step), float(mrr)) for step, mrr in found.pop("curve"))
        return Trained(**{**found, "folder": out, "curve": curve})
    except (ValueError, KeyError, TypeError):
        raise EpicqaError(f"{work / RESULT}: damaged, expected what the training wrote") from None
