"""``epicqa ask``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epicqa.cli.options import answering
from epicqa.normal import printable

if TYPE_CHECKING:
    from epicqa.asking import Passage


@click.command("ask")
@click.argument("question")
@click.option("--query", default="", help="Keywords, if there are any.")
@click.option("--background", default="", help="What you seek, in a sentence or two.")
@click.option(
    "-n", "--passages", type=click.IntRange(1, 1000), default=5, show_default=True, help="Passages to show."
)
@click.option("--json", "as_json", is_flag=True, help="Print the passages as JSON.")
@answering
def ask_command(
    question: str,
    query: str,
    background: str,
    passages: int,
    as_json: bool,
    settings: dict[str, Any],
    config_file: Path | None,
    threads: int,
) -> None:
    """Show the best passages for a QUESTION: each in its context, with title, source and id."""
    from epicqa.asking import Asker
    from epicqa.cli.progress import steps
    from epicqa.config import load_config
    from epicqa.index.build import open_index
    from epicqa.running import default_index

    config = load_config(config_file, settings)
    with steps(transient=True) as progress:
        progress("finding passages", 0, None)
        asker = Asker(open_index(config.index or default_index()), config, threads=threads)
        found = asker.ask(question, query=query, background=background, passages=passages)
    for note in asker.notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        # ASCII, as a terminal would obey some control characters beyond it.
        click.echo(json.dumps([dataclasses.asdict(one) for one in found], indent=1))
    elif found:
        _show(found)
    else:
        click.echo("nothing found")


def _show(passages: list[Passage]) -> None:
    """Print passages for reading; texts are a collection's, so they are shown as text and nothing else."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for passage in passages:
        # A style given to Text itself would hold for all that is appended, too.
        head = Text().append(f"{passage.rank}. ", "bold")
        head.append(printable(passage.title or "(no title)"), "bold")
        if passage.section:
            head.append(f"  {printable(passage.section)}", "dim")
        context = Text().append(printable(passage.context[: passage.start]), "dim")
        context.append(printable(passage.text), "bold yellow")
        context.append(printable(passage.context[passage.end :]), "dim")
        place = (
            passage.first_id
            if passage.first_id == passage.last_id
            else f"{passage.first_id}:{passage.last_id}"
        )
        source = printable(f"{place}  {passage.url}" if passage.url else place)
        console.print(head)
        console.print(Padding(context, (0, 0, 0, 3)))
        console.print(Padding(Text(source, "cyan", overflow="fold"), (0, 0, 1, 3)))
