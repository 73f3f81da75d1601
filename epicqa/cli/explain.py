"""``epicqa explain``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.scoring import definition_option, ideal_option, judgments_option

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore


@click.command("explain")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--question", metavar="ID", required=True, help="The question, such as EQ001.")
@judgments_option
@click.option(
    "--measure",
    type=click.Choice(["exact", "partial", "relaxed", "ndcg-exact", "ndcg"]),
    default="exact",
    show_default=True,
    help="The last two are measures of tac2020 only.",
)
@definition_option
@ideal_option
@click.option(
    "--depth", type=click.IntRange(1, 1000), default=20, show_default=True, help="Ranks to go through."
)
@click.option("--all", "every", is_flag=True, help="Show passages that gain nothing, too.")
@click.option("--index", metavar="NAME", help="Index with the texts; else the one that the manifest names.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def explain_command(
    run: Path,
    question: str,
    judgments: Path | None,
    measure: str,
    definition: str,
    ideal: str,
    depth: int,
    every: bool,
    index: str | None,
    as_json: bool,
) -> None:
    """Show why a RUN scores what it scores on one question, passage by passage.

    Of each passage: which sentences are novel, redundant, filler; its new nuggets; gain, discount, NDNS up to
    there; and what the ideal ranking has at that rank. Then the nuggets that were never found.

    Passages are taken by score, best first; equal scores by rank, then by line (tac2020: by the score's text,
    then by line).
    """
    from epicqa.errors import EpicqaError
    from epicqa.measures import read_judgments
    from epicqa.measures.explain import explain, variant_of
    from epicqa.measures.explanation import explanation_record, explanation_text
    from epicqa.measures.ideals import ideals_of
    from epicqa.runs import judgments_of, read_run

    variant = variant_of(definition, measure)
    parsed = read_run(run)
    answers = read_judgments(judgments or judgments_of(run))
    if question not in answers.questions:
        raise EpicqaError(
            f"{answers.path}: no question {question!r}, expected one of {_few(answers.questions)}"
        )
    ((best,),) = ideals_of(answers, [question], [variant], ideal)
    found = explain(
        parsed,
        answers.questions[question],
        definition=definition,
        measure=measure,
        ideal=best,
        depth=depth,
    )
    store = _store(run, index) if found.in_run else None
    if not found.in_run:
        click.echo(f"note: {run}: no passages for {question}, so it scores 0; this is the ideal", err=True)
    if as_json:
        # ASCII, as a terminal would obey some control characters beyond it.
        click.echo(json.dumps(explanation_record(found, ideal, store), indent=1))
    else:
        # Whether to use colours is settled already.
        click.echo(explanation_text(found, ideal, store, every), nl=False, color=True)


def _few(names: Iterable[str], most: int = 5) -> str:
    from epicqa.measures.tables import shown

    listed = [shown(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _store(run: Path, index: str | None) -> CorpusStore | None:
    """The texts, from the index asked for or the manifest's; a note where the latter cannot be had."""
    from epicqa.errors import EpicqaError
    from epicqa.index.build import open_index
    from epicqa.runs import read_manifest

    if index:
        return open_index(index).store
    try:
        manifest = read_manifest(run) or {}
        if not manifest.get("index"):
            raise EpicqaError("no manifest beside the run names an index")
        opened = open_index(manifest["index"])
    except EpicqaError as error:
        click.echo(f"note: ids without their texts, pass --index NAME to see them ({error})", err=True)
        return None
    if manifest.get("index_fingerprint") not in (None, opened.fingerprint):
        click.echo(
            f"note: index {opened.name!r} is not the one that the run was made on, texts may differ", err=True
        )
    return opened.store
