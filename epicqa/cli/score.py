"""``epicqa score``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.notices import warn

if TYPE_CHECKING:
    from epicqa.measures import Scores

MEAN = "MEAN"


@click.command("score")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--judgments",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Answer file with nuggets; else the one that the run's manifest names.",
)
@click.option(
    "--questions",
    type=click.Choice(["expert", "general", "all"]),
    help="Judged questions to score; else those of the kinds that occur in the run.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "tsv", "json"]), default="table", show_default=True
)
@click.pass_context
def score_command(
    context: click.Context, runs: tuple[Path, ...], judgments: Path | None, questions: str | None, form: str
) -> None:
    """Print exact, partial and relaxed NDNS of runs, by question and in the mean.

    Passages are taken by score, best first; equal scores by rank, then by line. A judged question without
    passages counts 0.
    """
    from epicqa.measures import read_judgments, score_run
    from epicqa.questions import of_kind
    from epicqa.runs import judgments_of, parse_run

    parsed = [parse_run(path) for path in runs]
    if unreadable := [problem for _, problems in parsed for problem in problems]:
        for problem in unreadable:
            click.echo(f"epicqa: {problem}", err=True)
        context.exit(2)
    answers = {}
    scores = []
    for run, _ in parsed:
        path = judgments or judgments_of(run.path)
        if path not in answers:
            answers[path] = read_judgments(path)
            warn(answers[path].warnings)
        chosen = of_kind(answers[path].questions, questions) if questions else None
        scores.append(score_run(run, answers[path], chosen))
        warn(scores[-1].warnings)
    click.echo({"table": _table, "tsv": _tsv, "json": _json}[form](scores), nl=False)


def _tsv(scores: list[Scores]) -> str:
    """Rows of tag, question id, measure, value; the means after all questions."""
    rows = [
        (one.tag, question_id, measure, repr(float(values[i])))
        for one in scores
        for i, question_id in enumerate(one.question_ids)
        for measure, values in one.values.items()
    ]
    rows += [(one.tag, MEAN, measure, repr(one.mean(measure))) for one in scores for measure in one.values]
    return "".join("\t".join(row) + "\n" for row in rows)


def _json(scores: list[Scores]) -> str:
    records = [
        {
            "tag": one.tag,
            "definition": one.definition,
            "questions": {
                question_id: {measure: float(values[i]) for measure, values in one.values.items()}
                for i, question_id in enumerate(one.question_ids)
            },
            "mean": {measure: one.mean(measure) for measure in one.values},
        }
        for one in scores
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _table(scores: list[Scores]) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    with console.capture() as captured:
        for one in scores:
            table = Table(
                "question",
                title=Text(f"{one.tag}: NDNS, {one.definition} definition"),
                title_justify="left",
            )
            for measure in one.values:
                table.add_column(measure, justify="right")
            for i, question_id in enumerate(one.question_ids):
                table.add_row(Text(question_id), *(f"{values[i]:.4f}" for values in one.values.values()))
            table.add_section()
            table.add_row(MEAN, *(f"{one.mean(measure):.4f}" for measure in one.values))
            console.print(table)
    return captured.get()
