"""Warnings on the standard error stream, a line each, repeats of one kind cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click

from epicqa.problems import Problem

CAP = 10


def warn(problems: Iterable[Problem]) -> None:
    """Print the first ten problems of each kind as warnings, then how many more there are."""
    seen: Counter[str] = Counter()
    for problem in problems:
        seen[problem.kind] += 1
        if seen[problem.kind] <= CAP:
            click.echo(f"warning: {problem}", err=True)
    for kind, count in seen.items():
        if count > CAP:
            click.echo(f"warning: {count - CAP} more of this kind ({kind})", err=True)
