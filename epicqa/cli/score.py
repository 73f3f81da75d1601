"""``epicqa score``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.notices import refuse_unreadable, warn
from epicqa.cli.score_claims import score_claim_files, score_fever_file, task_of
from epicqa.cli.scoring import (
    drawn,
    ideal_option,
    judgments_option,
    measures_option,
    put,
    qrels_option,
    questions_option,
    written,
)
from epicqa.errors import EpicqaError

if TYPE_CHECKING:
    from epicqa.measures.evaluate import Plan
    from epicqa.measures.judgments import Judgments
    from epicqa.measures.score import Scores
    from epicqa.problems import Problem
    from epicqa.runs.model import Run


@click.command("score")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--task",
    type=click.Choice(["epicqa", "scifact", "fever"]),
    default="epicqa",
    show_default=True,
    help="What the files answer: questions, or SciFact's or FEVER's claims.",
)
@judgments_option
@questions_option
@click.option(
    "--definition",
    type=click.Choice(["published", "tac2020", "paper", "leaderboard", "shared-task", "by-id"]),
    default="published",
    show_default="published; paper of scifact; shared-task of fever",
    help="NDNS as published, or to the last bit what the track's script computes. Of scifact: the paper's "
    "measures, or the leaderboard's. Of fever: the released scorer's, by position, or by claims' ids without "
    "its quirks.",
)
@ideal_option
@click.option(
    "--complete/--answered",
    default=True,
    show_default=True,
    help="A judged question without passages counts 0, or is left out of the mean.",
)
@measures_option
@qrels_option
@click.option(
    "--pools",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Contexts that were read for each question: adds the share of the first 20 passages judged.",
)
@click.option("--judged-only", is_flag=True, help="Score the run without what is outside the pools.")
@click.option(
    "--ideal-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the script's file of ideal scores (tac2020).",
)
@click.option(
    "--report",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a report there: HTML, plots, CSV, JSON, LaTeX.",
)
@click.option(
    "--claims", metavar="FILE", type=click.Path(path_type=Path), help="Claims with evidence (scifact, fever)."
)
@click.option("--corpus", metavar="FILE", type=click.Path(path_type=Path), help="Their abstracts (scifact).")
@click.option(
    "--bootstrap",
    is_flag=True,
    help="Add standard deviations and 95% intervals over claims (scifact, fever).",
)
@written
@click.pass_context
def score_command(
    context: click.Context,
    runs: tuple[Path, ...],
    task: str,
    judgments: Path | None,
    questions: str | None,
    definition: str,
    ideal: str,
    complete: bool,
    measures: tuple[str, ...],
    qrels: Path | None,
    pools: Path | None,
    judged_only: bool,
    ideal_file: Path | None,
    report: Path | None,
    claims: Path | None,
    corpus: Path | None,
    bootstrap: bool,
    form: str,
    output: Path | None,
) -> None:
    """Score runs by NDNS and other measures, by question and in the mean.

    \b
    epicqa score runs/mine.tsv --judgments answers.json
    epicqa score a.tsv b.tsv --definition tac2020 --format tsv
    epicqa score mine.tsv -m exact -m nDCG@10 -m 'RBP(rel=1)' --qrels qrels.txt
    epicqa score mine.jsonl --task scifact --claims claims_dev.jsonl --corpus corpus.jsonl
    epicqa score predictions.jsonl --task fever --claims paper_dev.jsonl

    Passages are taken by score as a number, best first; equal scores by rank, then by line. tac2020 takes
    them by the score's text, as the script does, equal texts by line. A question that the judgments have no
    nugget for is left out. Sentences outside a context's judged part are filler; a passage whose ends lie in
    two contexts gains nothing (tac2020: it is in the first one's). Numbers in ids may be padded or not. Runs
    and judgments may be compressed (.gz, .xz, .zst).

    With --task scifact, RUN is a file of predictions, or two: a pipeline's rationales, and its labels.
    With --task fever, it is one file of predictions; labels only are scored by label accuracy.
    """
    definition = task_of(context, task)
    if task == "scifact":
        score_claim_files(runs, claims, corpus, definition, bootstrap, form, output)
        return
    if task == "fever":
        score_fever_file(runs, claims, definition, bootstrap, form, output)
        return
    from epicqa.files import write_bytes
    from epicqa.measures.evaluate import plan_measures, score_documents_of
    from epicqa.measures.score_tables import ideal_file as ideal_text

    plan = plan_measures(measures, definition, ideal, complete, qrels)
    _check(plan, pools, judged_only, ideal_file, report)
    parsed: list[Run] = []
    runs_scored: list[Run] = []
    answers: list[Judgments] = []
    of_nuggets: list[Scores] = []
    if plan.names:
        parsed = refuse_unreadable(context, runs)
        runs_scored, answers, of_nuggets = _passages(parsed, judgments, plan, questions, pools, judged_only)
    of_documents: list[Scores] = []
    if qrels:
        of_documents, odd = score_documents_of(parsed or runs, qrels, plan, questions)
        warn(odd)
    scores = of_nuggets + of_documents
    # What is odd in the judgments is said once, not of every run.
    warn(dict.fromkeys(warning for one in scores for warning in one.warnings))
    if (ideal_file or report) and len(answers) > 1:
        raise EpicqaError("the runs' manifests name different judgments, pass --judgments FILE")
    if ideal_file:
        write_bytes(ideal_file, ideal_text(of_nuggets).encode())
    if report:
        page = _report(report, of_nuggets, runs_scored, answers[0], of_documents)
        click.echo(f"report: {page}", err=True)
    put(_written(scores, form, output), output)


def _check(
    plan: Plan, pools: Path | None, judged_only: bool, ideal_file: Path | None, report: Path | None
) -> None:
    from epicqa.measures.ndns import DEFINITIONS

    if judged_only and pools is None:
        raise EpicqaError("--judged-only needs to know what was judged, pass --pools FILE")
    if not plan.names and (option := "--pools" if pools else "--report" if report else ""):
        raise EpicqaError(f"{option} is for nugget measures, pass one such as -m exact")
    if report:
        from epicqa.measures.report import check_folder

        check_folder(report)
    if judged_only and plan.documents:
        raise EpicqaError(
            f"--judged-only is for nugget measures, expected one such as nDCG(judged_only=True)@10 "
            f"instead of {plan.documents[0]}"
        )
    if ideal_file and (plan.definition, plan.ideal) != ("tac2020", "beam"):
        raise EpicqaError("--ideal-file is the released script's, pass --definition tac2020 --ideal beam")
    if ideal_file and len(plan.ndns) < len(DEFINITIONS[plan.definition]):
        raise EpicqaError("--ideal-file holds all measures of tac2020, pass it without -m")


def _passages(
    runs: list[Run],
    judgments: Path | None,
    plan: Plan,
    questions: str | None,
    pools: Path | None,
    judged_only: bool,
) -> tuple[list[Run], list[Judgments], list[Scores]]:
    """The runs as they were scored, the judgments of all, the scores."""
    from epicqa.measures.evaluate import score_passages
    from epicqa.measures.judgments import read_judgments
    from epicqa.measures.pools import condensed, read_pools
    from epicqa.questions import of_kind
    from epicqa.runs.manifest import judgments_of

    answers: dict[Path, Judgments] = {}
    scored = []
    scores = []
    odd: list[Problem] = []
    for whole in runs:
        path = judgments or judgments_of(whole.path)
        if path not in answers:
            answers[path] = read_judgments(path)
            warn(answers[path].warnings)
        read = read_pools(pools, answers[path]) if pools else None
        run = whole
        if read and judged_only:
            run, without_pool = condensed(whole, read)
            odd += without_pool
        chosen = None if questions is None else of_kind(answers[path].questions, questions)
        before = whole if judged_only else None
        scores.append(score_passages(run, answers[path], plan, chosen, read, before))
        scored.append(run)
    warn(dict.fromkeys(odd))
    return scored, list(answers.values()), scores


def _report(
    folder: Path, scores: list[Scores], runs: list[Run], judgments: Judgments, of_documents: list[Scores]
) -> Path:
    from epicqa.measures.compare import compare
    from epicqa.measures.report import write_report
    from epicqa.measures.score_tables import score_tables

    alike = len({one.question_ids for one in scores}) == 1
    comparison = compare(scores) if len(scores) > 1 and alike else None
    return write_report(folder, scores, runs, judgments, comparison, score_tables(of_documents))


def _written(scores: list[Scores], form: str, output: Path | None) -> str:
    from epicqa.measures.score_tables import flat_table, score_records, score_rows, score_tables
    from epicqa.measures.tables import shown

    if form == "json":
        return json.dumps(score_records(scores), indent=1) + "\n"
    if form == "tsv":
        return "".join(
            f"{shown(tag)}\t{shown(name)}\t{measure}\t{value!r}\n"
            for tag, name, measure, value in score_rows(scores)
        )
    if form == "csv":
        return drawn([flat_table(scores)], form, output)
    return drawn(score_tables(scores), form, output)
