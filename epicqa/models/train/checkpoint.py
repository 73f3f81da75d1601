"""What a training keeps on disk on its way: a checkpoint, the best weights, and its logs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError
from epicqa.files import replacing, write_bytes
from epicqa.models.train.learner import Learner

CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"

LOG = "log.jsonl"
"""A line a step."""

CURVE = "curve.jsonl"
"""A line a validation."""


@dataclass
class State:
    """Where a training stands; with the weights and the optimizer's moments it is a checkpoint."""

    step: int = 0
    total: int = 0
    seen: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best: float = -1.0
    loss: float = 0.0
    scaler: dict[str, Any] | None = None


def save_checkpoint(work: Path, learner: Learner, state: State, curve: list[tuple[int, float]]) -> None:
    """Weights, moments and state in one file, under a temporary name first."""
    from safetensors.torch import save_file

    tensors = learner.tensors()
    state.scaler = learner.scaler.state_dict() or None
    content = json.dumps({"state": asdict(state), "curve": curve})
    with replacing(work / CHECKPOINT) as temporary:
        save_file(tensors, temporary, {"training": content})


def restore_checkpoint(work: Path, learner: Learner) -> tuple[State, list[tuple[int, float]]] | None:
    """Put the learner back as the checkpoint has it; the state and the curve, or None without a checkpoint.

    Raises:
        EpicqaError: the checkpoint is damaged.
    """
    from safetensors import SafetensorError, safe_open

    path = work / CHECKPOINT
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as kept:
            content = json.loads(kept.metadata()["training"])
            tensors = {name: kept.get_tensor(name) for name in kept.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise EpicqaError(f"{path}: damaged ({error}), expected a checkpoint; remove it") from None
    state = State(**content["state"])
    learner.put_back(tensors, state.step)
    if state.scaler:
        learner.scaler.load_state_dict(state.scaler)
    for name in (LOG, CURVE):
        _cut(work / name, state.step)
    return state, [(int(step), float(value)) for step, value in content["curve"]]


def save_best(work: Path, learner: Learner) -> None:
    """The weights as they are, as the best so far."""
    from safetensors.torch import save

    write_bytes(work / BEST, save(learner.weights()))


def load_best(work: Path, learner: Learner) -> None:
    """Put the best weights into the model."""
    from safetensors.torch import load_file

    learner.model.load_state_dict(load_file(work / BEST))


def note(path: Path, line: dict[str, Any]) -> None:
    """Add a line to a log."""
    with path.open("ab") as log:
        log.write(json.dumps(line).encode() + b"\n")


def _cut(path: Path, step: int) -> None:
    """Drop the lines of steps that will be made again, and one that a kill cut short."""
    kept = []
    for line in path.read_bytes().splitlines() if path.is_file() else []:
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + b"\n")
        except (ValueError, KeyError, TypeError):
            continue
    write_bytes(path, b"".join(kept))
