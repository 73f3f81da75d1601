"""Silence for libraries that write progress bars and advice to stderr."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOGGERS = ("huggingface_hub", "sentence_transformers", "transformers", "torch")


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, warnings or log lines below errors from the model libraries inside the block."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    hub_bars = not are_progress_bars_disabled()
    bars: Any = None
    if "transformers" in sys.modules:
        bars = importlib.import_module("transformers.utils.logging")
    model_bars = bars is not None and bars.is_progress_bar_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        disable_progress_bars()
        if bars is not None:
            bars.disable_progress_bar()
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)
            if hub_bars:
                enable_progress_bars()
            if bars is not None and model_bars:
                bars.enable_progress_bar()
