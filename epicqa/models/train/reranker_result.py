"""What the training of a reranker comes to: the model's folder, and the figures that are kept beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epicqa.files import remove_tree, sha256_of, write_bytes
from epicqa.models.quiet import quiet
from epicqa.models.train import outcome
from epicqa.models.train.checkpoint import load_best
from epicqa.models.train.folder import publish
from epicqa.models.train.loop import Run
from epicqa.models.train.outcome import Outcome, outcome_of
from epicqa.models.train.reranker_card import card_of
from epicqa.models.train.reranker_task import RerankerTask


@dataclass(frozen=True, slots=True)
class Trained(Outcome):
    """What a training came to; its curve is of MRR, its items are question-passage pairs."""

    def lines(self) -> list[str]:
        """What a person wants to know, a sentence a line."""
        told = self.told("question-passage pairs", "MRR on held-out groups")
        if not self.curve:
            told.append("no pairs were held out: how good it is, is not known")
        return told


def finish(run: Run[RerankerTask], out: Path, notes: Sequence[str], command: str) -> Trained:
    """Write the model's folder from the best weights, in float16."""
    task = run.task
    load_best(run.work, task.learner)
    made = run.work / "model"
    remove_tree(made)
    with quiet():
        task.learner.model.half().cpu().save_pretrained(made)
        task.tokenizer.save_pretrained(made)
    config = json.loads((made / "config.json").read_bytes())
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.linear.Identity"}
    write_bytes(made / "config.json", json.dumps(config, indent=2).encode() + b"\n")
    trained = Trained(**outcome_of(run, out))
    card = card_of(task, trained, sha256_of(made / "model.safetensors"), notes, command)
    write_bytes(out / "README.md", card.encode())
    publish(out, made, asdict(trained) | {"folder": None})
    return trained


def restored(out: Path, found: Mapping[str, Any]) -> Trained:
    """What an earlier call came to, of what ``finish`` kept; errors of a damaged record are Python's."""
    return Trained(**outcome.restored(out, found))
