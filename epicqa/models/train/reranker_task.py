"""A reranker in training: a pass through its network, the loss of a step, and its validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from epicqa.errors import EpicqaError
from epicqa.models.batches import TOKENS, slabs
from epicqa.models.precision import autocast_for
from epicqa.models.quiet import quiet
from epicqa.models.train.learner import Learner
from epicqa.models.train.loop import Progress
from epicqa.models.train.losses import loss_of
from epicqa.models.train.pairs import Pair
from epicqa.models.train.reranker_recipe import Recipe


class RerankerTask:
    """An encoder with one logit, its tokenizer, the pairs, and the teacher it learns from, if any."""

    learner: Learner

    def __init__(self, recipe: Recipe, base: Path, pairs: Sequence[Pair], held_out: Sequence[Pair]) -> None:
        """Load the teacher and the base.

        Raises:
            EpicqaError: one of them cannot be loaded.
        """
        self.recipe = recipe
        self.base = base
        self.pairs = pairs
        self.held_out = held_out
        self.teacher: Any = None
        if recipe.teacher is not None:
            from epicqa.models.resolve import load_cross_encoder

            self.teacher = load_cross_encoder(recipe.teacher)
        self.load()

    def load(self) -> None:
        """The network as it is before the first step."""
        with quiet():
            from transformers import AutoModelForSequenceClassification, AutoTokenizer

            with quiet():
                torch.manual_seed(self.recipe.seed)
                try:
                    self.tokenizer: Any = AutoTokenizer.from_pretrained(str(self.base), local_files_only=True)
                    model: Any = AutoModelForSequenceClassification.from_pretrained(
                        str(self.base),
                        num_labels=1,
                        local_files_only=True,
                        trust_remote_code=False,
                        use_safetensors=True,
                        dtype=torch.float32,
                    )
                except Exception as error:  # whatever a foreign folder provokes in the library
                    line = next(iter(str(error).splitlines()), "") or type(error).__name__
                    raise EpicqaError(
                        f"{self.base}: cannot be trained ({line}), expected an encoder"
                    ) from None
        longest = getattr(model.config, "max_position_embeddings", self.recipe.max_length)
        self.tokenizer.model_max_length = min(
            self.recipe.max_length, longest, self.tokenizer.model_max_length
        )
        self.learner = Learner(model, self.recipe.learning_rate)

    def steps(self) -> int:
        """Steps, the budget of time aside."""
        return self.recipe.steps(len(self.pairs))

    def rate(self, step: int, total: int) -> float:
        """The learning rate of a step."""
        return self.recipe.rate(step, total)

    def learn(self, step: int, rate: float) -> tuple[float, int]:
        """One step of the optimizer: its loss, and how many question-passage pairs it went through."""
        lists = self.recipe.lists(self.pairs, step)
        queries = [query for query, texts in lists for _ in texts]
        texts = [text for _, texts in lists for text in texts]
        self.learner.ready(self.recipe.seed, step)
        scores = _ragged(self.logits(queries, texts), lists)
        taught = None
        if self.teacher is not None:
            taught = _ragged(self._taught(queries, texts), lists)
        return self.learner.learn(loss_of(self.recipe.loss, scores, taught), rate), len(texts)

    def judge(self, progress: Progress | None) -> float | None:
        """The mean of 1 / rank of the held-out positives, each among its negatives; ties count against it."""
        if not self.held_out:
            return None
        self.learner.model.eval()
        ranks = []
        with torch.inference_mode():
            for start in range(0, len(self.held_out), 64):
                some = self.held_out[start : start + 64]
                queries = [pair.query for pair in some for _ in range(1 + len(pair.negatives))]
                texts = [text for pair in some for text in (pair.positive, *pair.negatives)]
                scores = self.logits(queries, texts).cpu()
                for one in torch.split(scores, [1 + len(pair.negatives) for pair in some]):
                    ranks.append(1 + int((one[1:] >= one[0]).sum()))
                if progress:
                    progress("validating", min(start + 64, len(self.held_out)), len(self.held_out))
        return round(float(np.mean(1 / np.array(ranks))), 5)

    def logits(self, queries: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        """float32[n]; pairs go through the network sorted by length, so that little is padding."""
        encoded = self.tokenizer(list(queries), list(texts), truncation=True, verbose=False)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        device = self.learner.device
        parts = []
        for some in slabs(order, lengths, TOKENS[device]):
            chosen = {name: [values[place] for place in some] for name, values in encoded.items()}
            batch = self.tokenizer.pad(chosen, return_tensors="pt").to(device)
            with autocast_for(device, self.learner.precision):
                parts.append(self.learner.model(**batch).logits[:, 0].float())
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back.to(device)]

    def _taught(self, queries: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        with quiet():
            found = self.teacher.predict(
                list(zip(queries, texts, strict=True)),
                batch_size=32,
                show_progress_bar=False,
                activation_fn=torch.nn.Identity(),
                convert_to_tensor=True,
            )
        if found.shape not in {(len(texts),), (len(texts), 1)}:
            raise EpicqaError(f"teacher {self.recipe.teacher!r} gives no single score a pair, expected one")
        return found.reshape(-1).float().to(self.learner.device)


def _ragged(scores: torch.Tensor, lists: Sequence[tuple[str, list[str]]]) -> torch.Tensor:
    """float32[queries, longest list]; column 0 is the positive's, -inf where a list is shorter."""
    parts = torch.split(scores, [len(texts) for _, texts in lists])
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=-math.inf)
