"""Warnings and refusals on the standard error stream, a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.problems import Problem

if TYPE_CHECKING:
    from epicqa.runs.model import Run

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


def refuse_unreadable(context: click.Context, paths: Iterable[Path]) -> list[Run]:
    """Runs without a line that cannot be read; else every such line of all runs is told, and the end is 2."""
    from epicqa.runs.read import parse_run

    parsed = [parse_run(path) for path in paths]
    if problems := [problem for _, of_run in parsed for problem in of_run]:
        for problem in problems:
            click.echo(f"epicqa: {problem}", err=True)
        context.exit(2)
    return [run for run, _ in parsed]
