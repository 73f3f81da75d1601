"""The number format that a device multiplies fastest, and the block that multiplies in it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

Precision = Literal["bfloat16", "float16", "float32"]


def best_precision(device: str) -> Precision:
    """bfloat16 where the processor multiplies it natively; else float16 on a CUDA GPU, float32 elsewhere.

    Args:
        device: as PyTorch writes it, with or without a number: ``cpu``, ``cuda:0``.
    """
    import torch

    kind = torch.device(device).type
    if kind == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    if kind == "cpu" and getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)():
        return "bfloat16"
    return "float32"


def autocast_for(device: str, precision: Precision) -> AbstractContextManager[Any]:
    """A block in which a network's products are computed in that format; its weights stay as they are.

    One block around many batches is faster than one a batch: weights are converted once a block.

    Args:
        device: as PyTorch writes it, with or without a number.
        precision: nothing is changed for ``float32``.
    """
    if precision == "float32":
        return nullcontext()
    import torch

    return torch.autocast(torch.device(device).type, getattr(torch, precision))


def native() -> Precision:
    """The best precision of the device that networks are put on."""
    return best_precision(_device())


def native_precision() -> AbstractContextManager[Any]:
    """A block in which networks compute in it."""
    return autocast_for(_device(), native())


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
