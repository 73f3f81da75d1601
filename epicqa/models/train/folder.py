"""The folder of a model that is trained in sittings: whose it is, who is at work in it, and what comes out.

A training goes: ``result_in``, and if there is none yet, a ``Run``, its ``go`` inside ``at_work``, and
``publish``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, sweep, write_bytes
from epicqa.models.train.checkpoint import BEST, CHECKPOINT

WORK = "training"
"""The folder in a model's folder that holds its log, its curve, and what a resumed training needs."""

RESULT = "result.json"
"""What a training that ended came to, in its work folder."""

_KEY = "key.json"
_CONFIG = "config.json"

Result = TypeVar("Result")


def result_in(out: Path, key: str, read: Callable[[dict[str, Any]], Result]) -> Result | None:
    """What the training of that key came to if it has ended in the folder; None if there is work to do.

    Args:
        out: the model's folder; it may be missing.
        key: digest of all that decides the weights.
        read: makes the result of what ``publish`` was given.

    Raises:
        EpicqaError: the folder holds something else, another training's or none's; or the result is damaged.
    """
    _check_folder(out, key)
    path = out / WORK / RESULT
    if not ((out / _CONFIG).is_file() and path.is_file()):
        return None
    try:
        return read(json.loads(path.read_bytes()))
    except (ValueError, KeyError, TypeError):
        raise EpicqaError(f"{path}: damaged, expected what the training wrote") from None


@contextmanager
def at_work(out: Path, key: str, threads: int | None) -> Iterator[None]:
    """A block that trains in the folder, alone, with that many threads of PyTorch; None: all cores.

    The work folder is made and marked as this key's. Left-overs of a killed process are swept away.

    Raises:
        EpicqaError: another process is at work there.
    """
    import torch
    from filelock import FileLock, Timeout

    work = out / WORK
    work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(work / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise EpicqaError(f"{out}: is being trained by another process; wait for it to end") from None
    before = torch.get_num_threads()
    torch.set_num_threads(threads or os.cpu_count() or 1)
    try:
        sweep(work)
        write_bytes(work / _KEY, json.dumps({"key": key}).encode() + b"\n")
        yield
    finally:
        torch.set_num_threads(before)
        lock.release()


def publish(out: Path, made: Path, result: Mapping[str, Any]) -> None:
    """Move a model's files to its folder, ``config.json``, which makes it one, last, and keep the result.

    Checkpoint and best weights are removed then.

    Args:
        out: the model's folder.
        made: a folder in its work folder with the model's files; it is removed.
        result: what the training came to, as JSON can hold it.
    """
    work = out / WORK
    for path in sorted(made.iterdir()):
        if path.name != _CONFIG:
            path.replace(out / path.name)
    write_bytes(work / RESULT, json.dumps(result).encode() + b"\n")
    write_bytes(out / _CONFIG, (made / _CONFIG).read_bytes())
    remove_tree(made)
    for name in (CHECKPOINT, BEST):
        (work / name).unlink(missing_ok=True)


def _check_folder(out: Path, key: str) -> None:
    """No other training's folder is touched, and none that is no training's."""
    path = out / WORK / _KEY
    if path.is_file():
        try:
            known = json.loads(path.read_bytes())["key"]
        except (ValueError, KeyError, TypeError):
            known = None
        if known != key:
            raise EpicqaError(
                f"{out}: holds a training with other pairs, models or settings, expected an empty folder, or "
                "the same command again to go on with it"
            )
    elif out.is_dir() and any(out.iterdir()):
        raise EpicqaError(f"{out}: not empty and no training of this kind, expected an empty folder")
