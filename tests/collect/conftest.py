"""Raw sources to collect from."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The class ``Lines`` of ``line_source.py``, in a place from which worker processes can import it."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    found: Callable[..., Any] = import_module("line_source").Lines
    return found


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes JSON values to a file, one a line."""

    def write_lines(name: str, *values: Any) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(value) + "\n" for value in values))
        return path

    return write_lines
