"""A number of bytes on the command line."""

from __future__ import annotations

import re
from typing import Any

import click


class Size(click.ParamType[int]):
    """A size such as 512K, 256M or 2G, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(r"([1-9]\d{0,8})([KMG]?)", str(value))
        if not found:
            self.fail(f"{value!r}, expected a size such as 512K, 256M or 2G", param, ctx)
        return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2]]
