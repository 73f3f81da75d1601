"""Collections out of raw sources: CORD-19 releases, agency pages, news, Reddit."""

from __future__ import annotations

from epicqa.collect.job import collect
from epicqa.collect.layout import Collected
from epicqa.collect.settings import Settings

__all__ = ["Collected", "Settings", "collect"]
