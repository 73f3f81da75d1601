"""The public names."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

import epicqa


def test_every_public_name_is_there() -> None:
    for name in epicqa.__all__:
        assert getattr(epicqa, name) is not None
    assert set(epicqa.__all__) <= set(dir(epicqa))
    from epicqa import Config, EpicqaError, make_run  # noqa: F401

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = epicqa.nothing
    with pytest.raises(ImportError):
        from epicqa import nothing  # noqa: F401


def test_version_is_the_packages() -> None:
    assert epicqa.__version__ == metadata.version("epicqa")


def test_importing_costs_nothing() -> None:
    code = "import sys; before = set(sys.modules); import epicqa; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name for name in loaded if name.startswith("epicqa")} == {"epicqa"}
    assert not {"numpy", "torch", "click", "pyarrow"} & set(loaded)
