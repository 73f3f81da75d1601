"""``epicqa data``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epicqa.cli.notices import warn
from epicqa.errors import EpicqaError

if TYPE_CHECKING:
    from epicqa.published import Found


@click.group("data")
def data_command() -> None:
    """Look after the data set as the track published it."""


@data_command.command("check")
@click.argument(
    "folder", metavar="[DIR]", required=False, envvar="EPICQA_DATA", type=click.Path(path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_context
def check_command(context: click.Context, folder: Path | None, as_json: bool) -> None:
    """Tell what of the track's data set is in DIR (else EPICQA_DATA), and where the rest is obtained.

    \b
    DIR/ae/    preliminary   expert_questions.json general_questions.json cord19/ general/
    DIR/e2e/   primary       expert_questions.json general_questions.json cord19/
                             ask_science/ ccns_trec/ chqa/

    A collection is a folder, or lies beside it as .jsonl (also .gz, .xz, .zst), .tar.gz or .zip. Answer files
    and document judgments lie beside the question files, under any name. Counts are compared with the
    published ones.

    Status 0: some questions can be asked, as their file and collections are there, and all that is there is
    as published; 1: not so; 2: there is nothing of the data set in DIR.
    """
    from epicqa.cli.progress import steps
    from epicqa.published import answerable, check, holds

    if folder is None:
        raise EpicqaError("the data set's folder is not given, expected DIR or EPICQA_DATA")
    with steps(transient=True) as progress:
        found = check(folder, lambda done: progress("counting documents", done, None))
    commands = _commands(folder, found, answerable(found))
    if as_json:
        record = {"data": str(folder), "parts": [_record(one) for one in found], "commands": commands}
        click.echo(json.dumps(record, indent=1))
    else:
        _tell(folder, found, commands)
    context.exit(0 if holds(found) else 1)


def _record(one: Found) -> dict[str, Any]:
    return {
        "part": one.part.name,
        "what": one.part.what,
        "kind": one.part.kind,
        "found": one.count,
        "published": one.part.published,
        "state": one.state,
        "files": [str(path) for path in one.files],
        "obtained": one.part.obtained,
        "problems": [{"message": str(problem), "fatal": problem.fatal} for problem in one.problems],
    }


def _tell(folder: Path, found: Sequence[Found], commands: list[str]) -> None:
    from epicqa.cli.scoring import drawn
    from epicqa.measures.tables import Column, Table, shown

    columns = (Column("part"), Column("found", form=","), Column("published", form=","), Column("state"))
    rows = tuple((one.part.name, one.count, one.part.published, one.state) for one in found)
    sections = tuple(at for at, one in enumerate(found) if at and one.part.task != found[at - 1].part.task)
    click.echo(drawn([Table(f"EPIC-QA in {folder}", columns, rows, sections=sections)], "table", None))
    problems = [problem for one in found for problem in one.problems]
    for problem in problems:
        if problem.fatal:
            click.echo(shown(str(problem)))
    warn(problem for problem in problems if not problem.fatal)
    if missing := [one.part for one in found if not one.files]:
        click.echo("Missing, and where it is obtained:")
        for part in missing:
            click.echo(f"  {part.name} ({part.what}): {part.obtained}")
    if commands:
        click.echo("To go on with:")
        for command in commands:
            click.echo(f"  {shown(command)}")


def _commands(folder: Path, found: Sequence[Found], asked: Sequence[tuple[str, str]]) -> list[str]:
    """What builds the index of questions that can be asked, answers them, and scores the answers."""
    from epicqa.files import runs_folder

    commands = []
    for task, kind in asked:
        mine = [one for one in found if one.part.task == task]
        places = [
            str(path)
            for one in mine
            if (one.part.kind, one.part.asked) == ("documents", kind)
            for path in one.files
        ]
        answers = [path for one in mine if one.part.kind == "answers" for path in one.files]
        commands.append(shlex.join(["epicqa", "index", *places, "--name", f"{task}-{kind}"]))
        commands.append(
            shlex.join(["epicqa", "run", "--data", str(folder), "--task", task, "--questions", kind])
        )
        run = str(runs_folder() / f"{task}-{kind}.tsv")
        commands += [shlex.join(["epicqa", "score", run, "--judgments", str(path)]) for path in answers[:1]]
    return commands
