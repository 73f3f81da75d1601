"""A model in training: its weights, its optimizer, a step of it, and what a checkpoint keeps of them."""

from __future__ import annotations

from typing import Any

import torch

from epicqa.models.precision import best_precision

WEIGHT_DECAY = 0.01
"""AdamW's, of all but biases and layer norms."""

CLIP = 1.0
"""The norm that gradients are clipped at."""

# What AdamW knows of a parameter; a step whose loss does not depend on it is none of its own.
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Learner:
    """A model with the optimizer that trains it.

    Attributes:
        model: on the device.
        device: ``cuda`` where there is one, else ``cpu``.
        precision: of a pass through the network, for ``epicqa.models.precision.autocast_for``.
        optimizer: AdamW.
        scaler: of the loss, where the precision is float16.
    """

    def __init__(self, model: torch.nn.Module, learning_rate: float) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.precision = best_precision(self.device)
        # A loaded model is of its library's class, whose methods its task calls.
        self.model: Any = model.to(self.device)
        named = dict(model.named_parameters())
        self._parameters = named
        self.optimizer = torch.optim.AdamW(
            [
                {
                    "params": [one for name, one in named.items() if not _undecayed(name)],
                    "weight_decay": WEIGHT_DECAY,
                },
                {"params": [one for name, one in named.items() if _undecayed(name)], "weight_decay": 0.0},
            ],
            lr=learning_rate,
        )
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.precision == "float16")

    def ready(self, seed: int, step: int) -> None:
        """Training mode, with dropout's random numbers of that step: a resumed training draws the same."""
        torch.manual_seed(seed * 1_000_003 + step)
        self.model.train()

    def learn(self, loss: torch.Tensor, rate: float) -> float:
        """One step of the optimizer down a scalar loss, at that learning rate; the loss as a number."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return float(loss.detach())

    def weights(self) -> dict[str, torch.Tensor]:
        """The model's tensors by name, on the CPU: where the model is there, its own memory and no copies."""
        return {name: one.detach().cpu().contiguous() for name, one in self.model.state_dict().items()}

    def tensors(self) -> dict[str, torch.Tensor]:
        """What ``put_back`` needs: weights under ``model.``, the optimizer's moments under their names."""
        tensors = {f"model.{name}": one for name, one in self.weights().items()}
        for name, one in self._parameters.items():
            for kind in _MOMENTS:
                if kind in self.optimizer.state.get(one, {}):
                    tensors[f"{kind}.{name}"] = self.optimizer.state[one][kind].cpu().contiguous()
        return tensors

    def put_back(self, tensors: dict[str, torch.Tensor], step: int) -> None:
        """Weights and moments as they were after that step."""
        self.model.load_state_dict(
            {name.removeprefix("model."): one for name, one in tensors.items() if name.startswith("model.")}
        )
        for name, one in self._parameters.items():
            if f"exp_avg.{name}" in tensors:
                self.optimizer.state[one] = {
                    "exp_avg": tensors[f"exp_avg.{name}"].to(self.device),
                    "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].to(self.device),
                    # Checkpoints of older versions have none.
                    "step": tensors.get(f"step.{name}", torch.tensor(float(step))),
                }


def _undecayed(name: str) -> bool:
    return name.endswith("bias") or "layernorm" in name.lower()
