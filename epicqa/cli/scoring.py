"""Options and output that the verbs about scores share."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from epicqa.measures.tables import Table

_Command = TypeVar("_Command", bound=Callable[..., object])

judgments_option = click.option(
    "--judgments",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Answer file with nuggets; else the one that the run's manifest names.",
)
questions_option = click.option(
    "--questions",
    type=click.Choice(["expert", "general", "all"]),
    help="Judged questions that count: ids that begin with E, with C, or all; else the kinds in the runs.",
)
definition_option = click.option(
    "--definition",
    type=click.Choice(["published", "tac2020"]),
    default="published",
    show_default=True,
    help="NDNS as published, or to the last bit what the track's script computes.",
)
ideal_option = click.option(
    "--ideal",
    type=click.Choice(["beam", "best"]),
    default="beam",
    show_default=True,
    help="Ideal ranking: the track's beam of width 10, or the best that a stronger search finds.",
)
qrels_option = click.option(
    "--qrels",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TREC-style document judgments; passages are collapsed to documents, the first one wins.",
)
measures_option = click.option(
    "-m",
    "--measure",
    "measures",
    metavar="MEASURE",
    multiple=True,
    help="Measure instead of the definition's: one of those, or any of ir-measures, such as alpha_nDCG@20 "
    "(nuggets) or nDCG@10 (documents). See epicqa measures.",
)
_FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "tsv", "csv", "json", "latex"]),
    default="table",
    show_default=True,
)
_OUTPUT = click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there.")


def written(command: _Command) -> _Command:
    """The options ``form`` and ``output``."""
    return _FORMAT(_OUTPUT(command))


def drawn(tables: Sequence[Table], form: str, output: Path | None) -> str:
    """Tables as text; where a terminal is going to show them, as wide as it is, and in its bold type."""
    from epicqa.measures.tables import render

    terminal = output is None and sys.stdout.isatty()
    return render(
        tables, form, width=shutil.get_terminal_size().columns if terminal else None, styled=terminal
    )


def put(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file, whole or not at all."""
    from epicqa.files import write_bytes

    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode("utf-8", "backslashreplace"))
