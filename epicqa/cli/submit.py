"""``epicqa submit``."""

from __future__ import annotations

from pathlib import Path

import click

from epicqa.cli.notices import warn


def _descriptions(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    parted = {}
    for one in given:
        tag, equals, text = one.partition("=")
        if not equals or tag in parted:
            raise click.BadParameter(f"{one!r}, expected TAG=TEXT, each tag once")
        parted[tag] = text
    return parted


@click.command("submit")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--team", metavar="NAME", required=True, help="The team; names the archive.")
@click.option(
    "--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="A new or an empty folder."
)
@click.option("--index", metavar="NAME", help="Index to check against; else the one that a manifest names.")
@click.option(
    "--description",
    "descriptions",
    metavar="TAG=TEXT",
    multiple=True,
    callback=_descriptions,
    help="What a run does, in a line; else what its manifest says.",
)
@click.pass_context
def submit_command(
    context: click.Context,
    runs: tuple[Path, ...],
    team: str,
    out: Path,
    index: str | None,
    descriptions: dict[str, str],
) -> None:
    """Check runs and pack them as a TAC batch.

    DIR gets one file a run, SUBMISSION.json and TEAM.tar.gz with all of these. An invalid batch is refused
    with every reason and status 2, and nothing is written.
    """
    from epicqa.runs.package import make_batch

    archive, problems = make_batch(runs, team, out, index, descriptions)
    warn(problem for problem in problems if not problem.fatal)
    if archive is None:
        for problem in problems:
            if problem.fatal:
                click.echo(str(problem))
        context.exit(2)
    click.echo(str(archive))
