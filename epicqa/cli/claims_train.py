"""``epicqa claims train``."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from epicqa.cli.duration import Duration
from epicqa.errors import EpicqaError


@click.command("train")
@click.argument("kind", metavar="rationale|label|joint", type=click.Choice(["rationale", "label", "joint"]))
@click.option(
    "--claims",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="SciFact-shaped claims with evidence, each with its --corpus, or FEVER's; may be repeated.",
)
@click.option(
    "--corpus", metavar="FILE", multiple=True, type=click.Path(path_type=Path), help="Their abstracts."
)
@click.option(
    "--pairs",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="FEVER-like pairs of a claim and a sentence (VitaminC, symmetric FEVER); may be repeated.",
)
@click.option(
    "--fever",
    "fever_set",
    type=click.Choice(["one", "title-one", "title-five", "title-five-oracle"]),
    help="--claims are FEVER's, without --corpus: learn from one sentence with each, alone or after its "
    "page's title, or from five, retrieved or with the evidence among them.",
)
@click.option("--index", metavar="NAME", help="Index of FEVER's pages.  [default: fever]")
@click.option("--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Folder to make.")
@click.option(
    "--base",
    metavar="MODEL",
    default="minilm",
    show_default=True,
    help="Encoder or claim model to start from: a path, package, hub name.",
)
@click.option(
    "--negatives",
    type=click.IntRange(0),
    help="Abstracts of other claims to read with each claim, the nearest by TF-IDF; for joint.  [default: 1]",
)
@click.option(
    "--reads",
    type=click.Choice(["both", "claim", "sentences"]),
    default="both",
    show_default=True,
    help="What a label model is given: for studies of what a label can be told by.",
)
@click.option("--epochs", type=int, default=1, show_default=True, help="Passes over the examples.")
@click.option("--max-steps", type=int, help="Steps at most.  [default: no limit]")
@click.option("--budget", type=Duration(), help="Time at most: 90s, 60m, 1.5h.  [default: no limit]")
@click.option("--batch-size", type=int, default=16, show_default=True, help="Examples a step.")
@click.option("--max-length", type=int, default=512, show_default=True, help="Tokens read at once.")
@click.option("--learning-rate", type=float, default=5e-5, show_default=True, help="At its peak.")
@click.option(
    "--sentence-weight", type=float, default=5.0, show_default=True, help="Of sentences in a joint loss."
)
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Of order, draws and dropout."
)
@click.option(
    "--held-out", type=float, default=0.1, show_default=True, help="Share of the claims to validate on."
)
@click.option("--threads", type=click.IntRange(1), help="Threads to train with.  [default: all cores]")
@click.option(
    "--sources",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='For the model card, JSON: {"file name": {"source": ..., "licence": ...}}.',
)
def train_command(
    kind: Any,
    claims: tuple[Path, ...],
    corpus: tuple[Path, ...],
    pairs: tuple[Path, ...],
    fever_set: str | None,
    index: str | None,
    out: Path,
    negatives: int | None,
    held_out: float,
    seed: int,
    budget: float | None,
    batch_size: int,
    sources: Path | None,
    **settings: Any,
) -> None:
    """Train a model that selects rationales, one that labels claims, or one that does both at once.

    \b
    epicqa claims train joint --pairs vitaminc.jsonl --out first
    epicqa claims train joint --claims claims_train.jsonl --corpus corpus.jsonl --base first --out second
    epicqa claims train label --fever title-one --claims train.jsonl --index fever --out entailment

    What belongs together (claims of the same cited abstracts, pairs of one page) is on one side of training
    and validation, by which the best weights and the thresholds are chosen. Interrupted, the same command
    goes on where it stopped. The model is used with epicqa claims predict --model DIR.
    """
    from epicqa.claims.examples import Example
    from epicqa.claims.pages import INDEX
    from epicqa.claims.train.data import fever_examples_of, training_data
    from epicqa.claims.train.trainer import HELD_OUT, train
    from epicqa.cli.progress import steps
    from epicqa.index.build import open_index
    from epicqa.models.train.schedule import some_of
    from epicqa.models.train.static import read_sources

    _check_fever(kind, claims, corpus, fever_set, index)
    if fever_set is None and len(claims) != len(corpus):
        raise EpicqaError(
            f"{len(claims)} --claims and {len(corpus)} --corpus, expected one --corpus for each --claims"
        )
    if not claims and not pairs:
        raise EpicqaError("nothing to train on, expected --claims with --corpus, or --pairs")
    if negatives is not None and (kind != "joint" or not corpus):
        raise EpicqaError("--negatives is for joint models of --claims, expected none without them")
    listed = read_sources(sources, [*claims, *corpus, *pairs])
    notes = [f"{one.source}: {one.licence} (SHA-256 `{one.sha256}`)" for one in listed]
    more: list[Example] = []
    if fever_set is not None:
        opened = open_index(index or INDEX)
        more, said = fever_examples_of(
            claims, opened, fever_set, threads=settings["threads"] or os.cpu_count() or 2, seed=seed
        )
        notes.append(f"pages of Wikipedia: the index {opened.name} (`{opened.fingerprint}`)")
        for line in said:
            click.echo(f"note: {line}", err=True)
    trained_on, held = training_data(
        kind,
        [] if fever_set else list(zip(claims, corpus, strict=True)),
        pairs,
        negatives=1 if negatives is None else negatives,
        share=held_out,
        seed=seed,
        more=more,
    )
    with steps() as progress:
        made = train(
            kind,
            trained_on,
            out,
            held_out=some_of(held, HELD_OUT, seed),
            budget_seconds=budget,
            batch=batch_size,
            seed=seed,
            notes=notes,
            command=shlex.join(["epicqa", *sys.argv[1:]]),
            progress=progress,
            **settings,
        )
    for line in made.lines():
        click.echo(line)


def _check_fever(
    kind: str, claims: tuple[Path, ...], corpus: tuple[Path, ...], fever_set: str | None, index: str | None
) -> None:
    """Refuse what does not go with ``--fever``, or without it."""
    if fever_set is None:
        if index is not None:
            raise EpicqaError("--index is for --fever, expected none without it")
        return
    if kind == "rationale":
        raise EpicqaError("--fever is for models that label, expected label or joint")
    if corpus:
        raise EpicqaError("--corpus is of SciFact-shaped claims, expected none with --fever")
    if not claims:
        raise EpicqaError("--fever needs FEVER's claims, pass --claims FILE")
