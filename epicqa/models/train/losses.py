"""Losses of lists of passages, each the positive first."""

from __future__ import annotations

from typing import Literal

import torch

Loss = Literal["listwise", "margin"]


def loss_of(kind: str, scores: torch.Tensor, taught: torch.Tensor | None) -> torch.Tensor:
    """The mean loss of lists; both are float32[queries, list], the positive first, -inf for none."""
    there = torch.isfinite(scores)
    if kind == "listwise":
        logs = torch.log_softmax(scores, dim=1)
        if taught is None:
            return -logs[:, 0].mean()
        return -(torch.softmax(taught, dim=1) * logs.masked_fill(~there, 0.0)).sum(dim=1).mean()
    margins = (scores[:, :1] - scores)[:, 1:][there[:, 1:]]
    if taught is None:
        return torch.relu(1.0 - margins).mean()
    wanted = (taught[:, :1] - taught)[:, 1:][there[:, 1:]]
    return torch.nn.functional.mse_loss(margins, wanted)
