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
    _tell("warning", problems)


def refuse_unreadable(context: click.Context, paths: Iterable[Path]) -> list[Run]:
    """Runs of which every line can be read; else what is wrong with them is told, and the end is 2."""
    from epicqa.runs.read import parse_run

    parsed = [parse_run(path) for path in paths]
    if problems := [problem for _, of_run in parsed for problem in of_run]:
        _tell("epicqa", problems)
        context.exit(2)
    return [run for run, _ in parsed]


def _tell(who: str, problems: Iterable[Problem]) -> None:
    from epicqa.measures.tables import shown

    seen: Counter[str] = Counter()
    for problem in problems:
        seen[problem.kind] += 1
        if seen[problem.kind] <= CAP:
            # What a file says may hold what a terminal would obey.
            click.echo(f"{who}: {shown(str(problem))}", err=True)
    for kind, count in seen.items():
        if count > CAP:
            click.echo(f"{who}: {count - CAP} more of this kind ({kind})", err=True)
