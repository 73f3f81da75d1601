"""``epicqa run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from epicqa.cli.options import answering


@click.command("run")
@click.option("--questions", metavar="expert|general|all|FILE", help="What to answer.  [default: expert]")
@click.option("--tag", help="Run tag.  [default: INDEX-QUESTIONS]")
@click.option("--output", type=click.Path(path_type=Path), help="Run file.  [default: runs/TAG.tsv]")
@click.option("--depth", type=int, help="Passages a question, at most 1000.  [default: 1000]")
@click.option(
    "--data",
    metavar="DIR",
    help="Track's folder that expert, general and their documents come from; else EPICQA_DATA, the sample.",
)
@click.option("--task", type=click.Choice(["ae", "e2e", "all"]), help="Part of it.  [default: ae]")
@click.option("--judgments", metavar="FILE", help="Answer file to note for epicqa score.")
@click.option("--description", help="A line on the run, for epicqa submit.")
@click.option(
    "--from", "source_run", metavar="RUN", help="Rerank and diversify this run instead of searching."
)
@answering
def run_command(
    tag: str | None,
    output: Path | None,
    settings: dict[str, Any],
    config_file: Path | None,
    threads: int,
    **others: Any,
) -> None:
    """Answer questions and write a TAC run, with its manifest (.json) beside it.

    The same index, questions and settings give the same file, byte for byte; --config MANIFEST repeats one.

    Without --index, and with documents in --data (such as DIR/e2e/cord19), the index is that of the
    questions' own collection, such as e2e-expert, and is built first where it is not there: see epicqa data
    check.
    """
    from epicqa.cli.progress import steps
    from epicqa.config import load_config
    from epicqa.running import make_run

    config = load_config(config_file, {**settings, **others})
    repeat = config_file if config_file and config_file.suffix == ".json" else None
    with steps() as progress:
        made = make_run(
            config,
            tag=tag,
            output=output,
            repeat=repeat,
            threads=threads,
            progress=lambda done, total: progress("answering questions", done, total),
            building=progress,
        )
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{made.path}: {made.passages:,} passages for {made.questions} questions")
