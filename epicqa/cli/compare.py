"""``epicqa compare``."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.notices import refuse_unreadable, warn

if TYPE_CHECKING:
    from epicqa.measures.compare import Comparison


@click.command("compare")
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Run to compare every other with, given or not among them; else every pair is compared.",
)
@click.option(
    "--judgments",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Answer file with nuggets; else the one that the runs' manifests name.",
)
@click.option(
    "--questions",
    type=click.Choice(["expert", "general", "all"]),
    help="Judged questions to compare on; else those of the kinds that occur in any of the runs.",
)
@click.option(
    "--definition",
    type=click.Choice(["published", "tac2020"]),
    default="published",
    show_default=True,
    help="NDNS as published, or as the track's script computes it.",
)
@click.option(
    "--ideal",
    type=click.Choice(["beam", "best"]),
    default="beam",
    show_default=True,
    help="Ideal ranking: the track's beam, or the best that a stronger search finds.",
)
@click.option(
    "-m",
    "--measure",
    "measures",
    metavar="MEASURE",
    multiple=True,
    help="Measure to compare by instead of the definition's, as for epicqa score.",
)
@click.option(
    "--qrels",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TREC-style document judgments; passages are collapsed to documents, the first one wins.",
)
@click.option(
    "--resamples",
    type=click.IntRange(100, 1_000_000),
    default=100_000,
    show_default=True,
    help="Of the bootstrap and the randomisation test.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Coverage of the intervals.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random draws.")
@click.option(
    "--per-question", is_flag=True, help="Values of every question, too; tsv and csv hold them only."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "tsv", "csv", "json", "latex"]),
    default="table",
    show_default=True,
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there.")
@click.pass_context
def compare_command(
    context: click.Context,
    runs: tuple[Path, ...],
    baseline: Path | None,
    judgments: Path | None,
    questions: str | None,
    definition: str,
    ideal: str,
    measures: tuple[str, ...],
    qrels: Path | None,
    resamples: int,
    confidence: float,
    seed: int,
    per_question: bool,
    form: str,
    output: Path | None,
) -> None:
    """Compare runs by NDNS or other measures: means, differences with intervals, tests, wins and losses.

    \b
    epicqa compare new.tsv old.tsv --judgments answers.json
    epicqa compare a.tsv b.tsv c.tsv --baseline base.tsv -m exact -m StRecall@20
    epicqa compare a.tsv b.tsv -m nDCG@10 --qrels qrels.txt

    All runs are scored on the same judged questions; one that a run has no passages for counts 0.

    Interval of a mean difference: paired bootstrap over questions, bias-corrected and accelerated (BCa).
    p: two-sided paired randomisation test, exact where there are no more ways of swapping than --resamples;
    Holm's correction over the comparisons made, in each measure apart. A question whose values differ by at
    most 1e-9 is a tie.

    Passages of a run are taken by score, best first; equal scores by rank, then by line (tac2020: by the
    score's text, then by line).
    """
    from epicqa.files import write_bytes
    from epicqa.measures import read_judgments
    from epicqa.measures.compare import common_judgments, compare, joined_runs, score_together
    from epicqa.measures.evaluate import plan_measures, score_documents_of

    paths, position = joined_runs(runs, baseline)
    plan = plan_measures(measures, definition, ideal, qrels=qrels)
    groups = []
    if plan.names:
        parsed = refuse_unreadable(context, paths)
        answers = read_judgments(judgments or common_judgments(paths))
        warn(answers.warnings)
        groups.append(score_together(parsed, answers, plan, questions))
    if qrels:
        found, odd = score_documents_of(paths, qrels, plan, questions)
        warn(odd)
        groups.append(found)
    # What is odd in the judgments is said of every run.
    warn(dict.fromkeys(warning for scores in groups for one in scores for warning in one.warnings))
    comparisons = [
        compare(scores, position, confidence=confidence, resamples=resamples, seed=seed) for scores in groups
    ]
    text = _written(comparisons, form, per_question, to_terminal=output is None and sys.stdout.isatty())
    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode("utf-8", "backslashreplace"))


def _written(comparisons: list[Comparison], form: str, per_question: bool, *, to_terminal: bool) -> str:
    from epicqa.measures.comparison_tables import (
        comparison_record,
        comparison_tables,
        contrasts_table,
        question_tables,
        values_table,
    )
    from epicqa.measures.tables import joined, render

    if form == "json":
        records = [comparison_record(one, per_question=per_question) for one in comparisons]
        return json.dumps(records, indent=1) + "\n"
    if form in ("tsv", "csv"):
        flat = values_table if per_question else contrasts_table
        return render([joined([flat(one) for one in comparisons])], form)
    tables = []
    for one in comparisons:
        tables += comparison_tables(one) + (question_tables(one) if per_question else [])
    width = shutil.get_terminal_size().columns if to_terminal else None
    return render(tables, form, width=width, styled=to_terminal)
