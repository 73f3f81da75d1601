"""``epicqa submit``."""

from __future__ import annotations

from pathlib import Path

import click

from epicqa.cli.notices import warn
from epicqa.errors import EpicqaError


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
@click.option(
    "--task",
    type=click.Choice(["epicqa", "fever"]),
    default="epicqa",
    show_default=True,
    help="What the files answer: questions, or FEVER's claims.",
)
@click.option("--team", metavar="NAME", help="The team; names the archive (epicqa, which needs it).")
@click.option(
    "-o",
    "--out",
    metavar="DIR|FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="A new or an empty folder; of fever the archive, NAME.zip.",
)
@click.option(
    "--claims", metavar="FILE", type=click.Path(path_type=Path), help="The claims (fever, which needs it)."
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
    task: str,
    team: str | None,
    out: Path,
    claims: Path | None,
    index: str | None,
    descriptions: dict[str, str],
) -> None:
    """Check runs and pack them as a TAC batch, or FEVER's predictions as its shared task takes them.

    \b
    epicqa submit a.tsv b.tsv --team us --out batch
    epicqa submit predictions.jsonl --task fever --claims test.jsonl -o us.zip

    DIR gets one file a run, SUBMISSION.json and TEAM.tar.gz with all of these. An invalid batch is refused
    with every reason and status 2, and nothing is written.

    With --task fever, RUN is one file of predictions. NAME.zip gets predictions.jsonl alone: a line for each
    claim, in the order of the claims' file, with at most five sentences.
    """
    if task == "fever":
        given = {"--team": team, "--index": index, "--description": descriptions}
        if option := next((option for option, value in given.items() if value), ""):
            raise EpicqaError(f"{option} is for --task epicqa, expected none with --task fever")
        _submit_fever(runs, claims, out)
        return
    if team is None:
        raise click.UsageError("Missing option '--team'.", context)
    if claims:
        raise EpicqaError("--claims is for --task fever, expected none with --task epicqa")
    from epicqa.runs.package import make_batch

    archive, problems = make_batch(runs, team, out, index, descriptions)
    warn(problem for problem in problems if not problem.fatal)
    if archive is None:
        for problem in problems:
            if problem.fatal:
                click.echo(str(problem))
        context.exit(2)
    click.echo(str(archive))


def _submit_fever(paths: tuple[Path, ...], claims: Path | None, archive: Path) -> None:
    from epicqa.claims.fever import read_claims, read_predictions, write_submission

    if claims is None:
        raise EpicqaError("--task fever needs the claims, pass --claims FILE")
    if len(paths) > 1:
        raise EpicqaError("two files or more, expected one of predictions")
    write_submission(archive, read_predictions(paths[0]), read_claims(claims))
    click.echo(str(archive))
