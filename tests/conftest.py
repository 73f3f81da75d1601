"""Fixtures for every test: where the real data lies, and a home of its own."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The real data beside the checkout. Missing, it fails under CI and is skipped elsewhere."""
    if not SHARED.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs the data in {SHARED}")
        pytest.skip(f"no real data in {SHARED}")
    return SHARED


@pytest.fixture(autouse=True)
def no_outer_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own EPICQA_ variables must not change what a test sees."""
    for name in [name for name in os.environ if name.startswith("EPICQA_")]:
        monkeypatch.delenv(name)
