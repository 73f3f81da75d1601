"""The network of a reranker in training: its weights, its optimizer, and a pass through it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from epicqa.errors import EpicqaError
from epicqa.models.precision import autocast_for, best_precision
from epicqa.models.quiet import quiet
from epicqa.models.train.losses import loss_of
from epicqa.models.train.reranker_recipe import Recipe

WEIGHT_DECAY = 0.01
"""AdamW's, of all but biases and layer norms."""

CLIP = 1.0
"""The norm that gradients are clipped at."""

# Tokens of one pass through the network, padding included: what a CPU's cache and a GPU's memory like.
_TOKENS = {"cpu": 2048, "cuda": 32768}
_MOMENTS = ("exp_avg", "exp_avg_sq")


class Network:
    """An encoder with one logit, its tokenizer, its optimizer, and the teacher it learns from, if any."""

    def __init__(self, recipe: Recipe, base: Path) -> None:
        """Load the teacher and the base.

        Raises:
            EpicqaError: one of them cannot be loaded.
        """
        self.recipe = recipe
        self.base = base
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.precision = best_precision(self.device)
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
                    self.model: Any = AutoModelForSequenceClassification.from_pretrained(
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
        longest = getattr(self.model.config, "max_position_embeddings", self.recipe.max_length)
        self.tokenizer.model_max_length = min(
            self.recipe.max_length, longest, self.tokenizer.model_max_length
        )
        self.model.to(self.device)
        self.names, parameters = zip(*self.model.named_parameters(), strict=True)
        plain = [one for name, one in self.model.named_parameters() if _undecayed(name)]
        decayed = [one for name, one in self.model.named_parameters() if not _undecayed(name)]
        self.parameters: tuple[Any, ...] = parameters
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": WEIGHT_DECAY},
                {"params": plain, "weight_decay": 0.0},
            ],
            lr=self.recipe.learning_rate,
        )
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision == "float16")

    def learn(self, lists: Sequence[tuple[str, list[str]]], rate: float, step: int) -> float:
        """One step of the optimizer on queries with their texts, the positive first; its loss."""
        queries = [query for query, texts in lists for _ in texts]
        texts = [text for _, texts in lists for text in texts]
        torch.manual_seed(self.recipe.seed * 1_000_003 + step)
        self.model.train()
        scores = _ragged(self.logits(queries, texts), lists)
        taught = None
        if self.teacher is not None:
            taught = _ragged(self._taught(queries, texts), lists)
        loss = loss_of(self.recipe.loss, scores, taught)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return float(loss.detach())

    def logits(self, queries: Sequence[str], texts: Sequence[str]) -> torch.Tensor:
        """float32[n]; pairs go through the network sorted by length, so that little is padding."""
        encoded = self.tokenizer(list(queries), list(texts), truncation=True, verbose=False)
        lengths = [len(ids) for ids in encoded["input_ids"]]
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        parts = []
        for some in _slabs(order, lengths, _TOKENS[self.device]):
            chosen = {name: [values[place] for place in some] for name, values in encoded.items()}
            batch = self.tokenizer.pad(chosen, return_tensors="pt").to(self.device)
            with autocast_for(self.device, self.precision):
                parts.append(self.model(**batch).logits[:, 0].float())
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[back.to(self.device)]

    def weights(self) -> dict[str, torch.Tensor]:
        """The model's tensors by name, on the CPU."""
        return {name: one.detach().cpu().contiguous() for name, one in self.model.state_dict().items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """What ``put_back`` needs: weights under ``model.``, the optimizer's moments under their names."""
        tensors = {f"model.{name}": one for name, one in self.weights().items()}
        for name, one in zip(self.names, self.parameters, strict=True):
            for kind in _MOMENTS:
                if kind in self.optimizer.state.get(one, {}):
                    tensors[f"{kind}.{name}"] = self.optimizer.state[one][kind].cpu().contiguous()
        assert all(isinstance(one, torch.Tensor) for one in tensors.values())
        return tensors

    def put_back(self, tensors: dict[str, torch.Tensor], step: int) -> None:
        """Weights and moments as they were after that step."""
        self.model.load_state_dict(
            {name.removeprefix("model."): one for name, one in tensors.items() if name.startswith("model.")}
        )
        for name, one in zip(self.names, self.parameters, strict=True):
            if f"exp_avg.{name}" in tensors:
                moments = {kind: tensors[f"{kind}.{name}"].to(self.device) for kind in _MOMENTS}
                self.optimizer.state[one] = {"step": torch.tensor(float(step)), **moments}

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
        return found.reshape(-1).float().to(self.device)


def _undecayed(name: str) -> bool:
    return name.endswith("bias") or "layernorm" in name.lower()


def _slabs(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Parts of an order by falling length, each within ``tokens`` when padded, or of one."""
    start = 0
    while start < len(order):
        size = max(1, tokens // max(1, lengths[order[start]]))
        yield list(order[start : start + size])
        start += size


def _ragged(scores: torch.Tensor, lists: Sequence[tuple[str, list[str]]]) -> torch.Tensor:
    """float32[queries, longest list]; column 0 is the positive's, -inf where a list is shorter."""
    parts = torch.split(scores, [len(texts) for _, texts in lists])
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True, padding_value=-math.inf)
