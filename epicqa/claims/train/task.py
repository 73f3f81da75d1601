"""A claim model in training: its loss on a step's examples, its validation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from epicqa.claims.encoding import ClaimInput, Window, windows_of
from epicqa.claims.examples import Example
from epicqa.claims.model import ClaimModel, Reading, shown
from epicqa.claims.network import (
    LABEL_ORDER,
    Kind,
    Network,
    Settings,
    batches_of,
    longest_of,
    open_network,
)
from epicqa.claims.scifact import NOINFO
from epicqa.claims.train.recipe import Recipe
from epicqa.errors import EpicqaError
from epicqa.models.batches import TOKENS
from epicqa.models.precision import autocast_for
from epicqa.models.train.learner import Learner
from epicqa.models.train.loop import Progress


class ClaimTask:
    """What the loop trains: network and optimizer, the examples, those held out."""

    learner: Learner

    def __init__(
        self, recipe: Recipe, base: Path, examples: Sequence[Example], held_out: Sequence[Example]
    ) -> None:
        """Load the base.

        Raises:
            EpicqaError: it cannot be loaded, or a claim is too long for it.
        """
        self.recipe = recipe
        self.base = base
        self.examples = examples
        self.held_out = held_out
        self.load()
        # Before the first step, not at the step that meets it.
        claims = dict.fromkeys(shown(one, recipe.reads).claim for one in (*examples, *held_out))
        windows_of(self.tokenizer, [ClaimInput(claim, ()) for claim in claims], self.settings.max_length)

    def load(self) -> None:
        """The network as it is before the first step."""
        torch.manual_seed(self.recipe.seed)
        network, self.tokenizer, _ = open_network(self.base)
        # The random numbers of dropped attention take a CPU longer than attention itself.
        for module in network.encoder.modules():
            if hasattr(module, "attention_head_size") and hasattr(module, "dropout"):
                module.dropout.p = 0.0
        longest = longest_of(network.encoder, self.recipe.max_length)
        self.settings = Settings(
            self.recipe.kind, self.recipe.reads, min(longest, self.tokenizer.model_max_length)
        )
        self.learner = Learner(network, self.recipe.learning_rate)

    @property
    def network(self) -> Network:
        """The network, as it is."""
        network: Network = self.learner.model
        return network

    def steps(self) -> int:
        """Steps, the budget of time aside."""
        return self.recipe.steps(len(self.examples))

    def rate(self, step: int, total: int) -> float:
        """The learning rate of a step."""
        return self.recipe.rate(step, total)

    def learn(self, step: int, rate: float) -> tuple[float, int]:
        """One step of the optimizer: its loss, and how many examples it saw."""
        _, places = self.recipe.places(len(self.examples), step)
        self.learner.ready(self.recipe.seed, step)
        loss = self._loss([self.examples[place] for place in places])
        return self.learner.learn(loss, rate), len(places)

    def judge(self, progress: Progress | None) -> float | None:
        """What `score` says of the held-out examples; None without any.

        Raises:
            EpicqaError: what the network says of one is no finite number.
        """
        if not self.held_out:
            return None
        readings = self.read(self.held_out, progress)
        for one in readings:
            for told in (one.sentences, one.labels):
                if told is not None and not np.isfinite(told).all():
                    raise EpicqaError(
                        "validation: probabilities are no numbers, expected a lower learning rate"
                    )
        return score(self.held_out, readings)

    def read(self, examples: Sequence[Example], progress: Progress | None = None) -> list[Reading]:
        """What the network, as it is, says of examples."""
        model = ClaimModel(self.recipe.base, self.settings, self.network.eval(), self.tokenizer)
        return model.read(
            [ClaimInput(one.claim, one.sentences) for one in examples],
            progress and (lambda done, total: progress("validating", done, total)),
        )

    def _loss(self, examples: Sequence[Example]) -> torch.Tensor:
        """The mean cross-entropy of the labels, and by its weight that of the sentences."""
        windows = windows_of(
            self.tokenizer,
            [shown(one, self.recipe.reads) for one in examples],
            self.settings.max_length,
        )
        learner = self.learner
        of_labels, of_sentences = [], []
        with autocast_for(learner.device, learner.precision):
            for places in batches_of(windows, TOKENS[learner.device]):
                batch = [windows[place] for place in places]
                logits, labels = self.network(batch, self.tokenizer.pad_token_id)
                for row, window in enumerate(batch):
                    label, rationale = wanted(examples[window.source], window, self.recipe.kind)
                    if label is not None:
                        target = torch.tensor(LABEL_ORDER.index(label), device=labels.device)
                        of_labels.append(torch.nn.functional.cross_entropy(labels[row], target))
                    if rationale:
                        flags = torch.tensor(rationale, device=logits.device, dtype=torch.float32)
                        of_sentences.append(
                            torch.nn.functional.binary_cross_entropy_with_logits(
                                logits[row, : len(rationale)], flags, reduction="none"
                            )
                        )
        # Where nothing teaches there is a gradient all the same, of zeros.
        last: Any = self.network.label_head[-1]
        loss = last.bias.sum() * 0.0
        if of_labels:
            loss = loss + torch.stack(of_labels).mean()
        if of_sentences:
            loss = loss + self.recipe.sentence_weight * torch.cat(of_sentences).mean()
        return loss


def wanted(example: Example, window: Window, kind: Kind) -> tuple[str | None, tuple[bool, ...]]:
    """The label that a window should have, None where it teaches none; its sentences' flags, likewise empty.

    Of an example that takes several windows only those with a sentence of its rationale have its label.
    """
    flags = example.rationale or ()
    here = tuple(flags[window.sentences.start : window.sentences.stop])
    label = example.label
    if label != NOINFO and any(flags) and not any(here):
        label = None
    return (label if kind != "rationale" else None), (here if kind != "label" else ())


def score(examples: Sequence[Example], readings: Sequence[Reading]) -> float:
    """How good readings are, 0 to 1, whatever the thresholds: the mean of what the model's kind has of both.

    Of labels the macro F1 of the likeliest; of sentences the average precision, over all of them together.
    """
    from sklearn.metrics import average_precision_score, f1_score

    parts = []
    labelled = [
        (LABEL_ORDER.index(one.label), int(read.labels.argmax()))
        for one, read in zip(examples, readings, strict=True)
        if one.label is not None and read.labels is not None
    ]
    if labelled:
        right, told = zip(*labelled, strict=True)
        parts.append(float(f1_score(right, told, labels=[0, 1, 2], average="macro", zero_division=0.0)))
    flagged = [
        (flag, probability)
        for one, read in zip(examples, readings, strict=True)
        if one.rationale is not None and read.sentences is not None
        for flag, probability in zip(one.rationale, read.sentences.tolist(), strict=True)
    ]
    if any(flag for flag, _ in flagged):
        flags, probabilities = zip(*flagged, strict=True)
        parts.append(float(average_precision_score(flags, probabilities)))
    return round(float(np.mean(parts)), 5) if parts else 0.0
