"""``epicqa check``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from epicqa.cli.notices import warn


@click.command("check")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--index", metavar="NAME", help="Index to check against; else the one that the manifest names.")
@click.option(
    "--questions",
    metavar="expert|general|all|FILE",
    help="Questions that were asked; else those that the manifest names.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Track's folder that expert, general, all are read from; else EPICQA_DATA, the sample.",
)
@click.option(
    "--task", type=click.Choice(["ae", "e2e", "all"]), default="ae", show_default=True, help="Part of --data."
)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON.")
@click.pass_context
def check_command(
    context: click.Context,
    runs: tuple[Path, ...],
    index: str | None,
    questions: str | None,
    data: Path | None,
    task: str,
    as_json: bool,
) -> None:
    """Validate runs against their index: every problem with its file and line.

    Status 0: all are valid; 2: some are not. Warnings leave a run valid.
    """
    from epicqa.questions import find_questions
    from epicqa.runs import check_runs

    asked = (
        [question.question_id for question in find_questions(questions, data, task)] if questions else None
    )
    found = check_runs(runs, index, asked)
    valid = {path: not any(problem.fatal for problem in problems) for path, problems in found.items()}
    if as_json:
        records = [
            {
                "run": str(path),
                "valid": valid[path],
                "problems": [
                    {"line": one.line, "kind": one.kind, "message": one.message, "fatal": one.fatal}
                    for one in problems
                ],
            }
            for path, problems in found.items()
        ]
        click.echo(json.dumps(records, indent=1, ensure_ascii=False))
    else:
        for path, problems in found.items():
            warn(problem for problem in problems if not problem.fatal)
            fatal = [problem for problem in problems if problem.fatal]
            for problem in fatal:
                click.echo(str(problem))
            click.echo(f"{path}: " + (f"invalid, {len(fatal)} problems" if fatal else "valid"))
    context.exit(0 if all(valid.values()) else 2)
