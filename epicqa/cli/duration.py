"""A time on the command line."""

from __future__ import annotations

import re
from typing import Any

import click


class Duration(click.ParamType[float]):
    """A time such as 90s, 60m or 1.5h, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", str(value))
        if not found or float(found[1]) == 0:
            self.fail(f"{value!r}, expected a time such as 90s, 60m or 1.5h", param, ctx)
        return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
