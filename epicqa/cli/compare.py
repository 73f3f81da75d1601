"""``epicqa compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.notices import refuse_unreadable, warn
from epicqa.cli.scoring import (
    definition_option,
    drawn,
    ideal_option,
    judgments_option,
    measures_option,
    put,
    qrels_option,
    questions_option,
    written,
)

if TYPE_CHECKING:
    from epicqa.measures.compare import Comparison
    from epicqa.runs.model import Run


@click.command("compare")
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Run to compare every other with, given or not among them; else every pair is compared.",
)
@judgments_option
@questions_option
@definition_option
@ideal_option
@measures_option
@qrels_option
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
@written
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
    from epicqa.measures import read_judgments
    from epicqa.measures.compare import common_judgments, compare, joined_runs, score_together
    from epicqa.measures.evaluate import plan_measures, score_documents_of

    paths, position = joined_runs(runs, baseline)
    plan = plan_measures(measures, definition, ideal, qrels=qrels)
    parsed: list[Run] = []
    groups = []
    if plan.names:
        parsed = refuse_unreadable(context, paths)
        answers = read_judgments(judgments or common_judgments(paths))
        warn(answers.warnings)
        groups.append(score_together(parsed, answers, plan, questions))
    if qrels:
        found, odd = score_documents_of(parsed or paths, qrels, plan, questions)
        warn(odd)
        groups.append(found)
    # What is odd in the judgments is said of every run.
    warn(dict.fromkeys(warning for scores in groups for one in scores for warning in one.warnings))
    comparisons = [
        compare(scores, position, confidence=confidence, resamples=resamples, seed=seed) for scores in groups
    ]
    put(_written(comparisons, form, per_question, output), output)


def _written(comparisons: list[Comparison], form: str, per_question: bool, output: Path | None) -> str:
    from epicqa.measures.comparison_tables import (
        comparison_record,
        comparison_tables,
        contrasts_table,
        question_tables,
        values_table,
    )
    from epicqa.measures.tables import joined

    if form == "json":
        records = [comparison_record(one, per_question=per_question) for one in comparisons]
        return json.dumps(records, indent=1) + "\n"
    if form in ("tsv", "csv"):
        flat = values_table if per_question else contrasts_table
        return drawn([joined([flat(one) for one in comparisons])], form, output)
    tables = []
    for one in comparisons:
        tables += comparison_tables(one) + (question_tables(one) if per_question else [])
    return drawn(tables, form, output)
