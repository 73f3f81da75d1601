"""The folder of a training in sittings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from epicqa.errors import EpicqaError
from epicqa.models.train.checkpoint import BEST, CHECKPOINT
from epicqa.models.train.folder import RESULT, WORK, at_work, publish, result_in


def steps_of(found: dict[str, Any]) -> int:
    return int(found["steps"])


def made_in(out: Path, key: str = "k") -> None:
    """A training from beginning to end."""
    assert result_in(out, key, steps_of) is None
    with at_work(out, key, 1):
        for name in (CHECKPOINT, BEST):
            (out / WORK / name).write_bytes(b"x")
        made = out / WORK / "model"
        made.mkdir()
        (made / "weights").write_text("w")
        (made / "config.json").write_text("{}")
        publish(out, made, {"steps": 3})


def test_a_training_from_beginning_to_end(tmp_path: Path) -> None:
    out = tmp_path / "m"
    made_in(out)
    assert {path.name for path in out.iterdir()} == {"weights", "config.json", WORK}
    assert {path.name for path in (out / WORK).iterdir()} - {".lock"} == {"key.json", RESULT}
    assert result_in(out, "k", steps_of) == 3


def test_another_key_and_other_files_are_refused(tmp_path: Path) -> None:
    made_in(tmp_path / "m")
    with pytest.raises(EpicqaError, match="other pairs, models or settings"):
        result_in(tmp_path / "m", "other", steps_of)
    (tmp_path / "n").mkdir()
    assert result_in(tmp_path / "n", "k", steps_of) is None
    (tmp_path / "n/mine.txt").write_text("mine")
    with pytest.raises(EpicqaError, match="not empty"):
        result_in(tmp_path / "n", "k", steps_of)


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b'{"steps": null}'])
def test_a_damaged_result_is_one_line(tmp_path: Path, damage: bytes) -> None:
    made_in(tmp_path / "m")
    (tmp_path / "m" / WORK / RESULT).write_bytes(damage)
    with pytest.raises(EpicqaError, match=rf"^[^\n]*{RESULT}: damaged[^\n]*$"):
        result_in(tmp_path / "m", "k", steps_of)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        at_work(tmp_path / "m", "k", 1),
        pytest.raises(EpicqaError, match="by another process"),
        at_work(tmp_path / "m", "k", 1),
    ):
        pass
    with at_work(tmp_path / "m", "k", 1):
        pass


def test_threads_are_put_back_and_left_overs_swept(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    work = tmp_path / "m" / WORK
    work.mkdir(parents=True)
    (work / ".checkpoint.1.tmp").write_text("half")
    with pytest.raises(ZeroDivisionError), at_work(tmp_path / "m", "k", before + 1):
        assert torch.get_num_threads() == before + 1
        assert json.loads((work / "key.json").read_bytes()) == {"key": "k"}
        assert not list(work.glob("*.tmp"))
        raise ZeroDivisionError
    assert torch.get_num_threads() == before
