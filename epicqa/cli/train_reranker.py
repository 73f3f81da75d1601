"""``epicqa train reranker``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from epicqa.cli.duration import Duration


@click.command("reranker")
@click.argument("pairs", metavar="PAIRS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the model.")
@click.option(
    "--base", default="minilm", show_default=True, help="Encoder to start from: path, package, hub."
)
@click.option(
    "--index",
    "index_name",
    metavar="NAME",
    help="Take negatives from this index.  [default: the pairs' texts]",
)
@click.option("--titles", is_flag=True, help='Take them as "title. sentence", as the pairs have it.')
@click.option(
    "--negatives",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    help="Hard negatives a query and step.",
)
@click.option(
    "--loss", type=click.Choice(["listwise", "margin"]), default="listwise", show_default=True, help="Loss."
)
@click.option("--epochs", type=int, default=1, show_default=True, help="Passes over the pairs.")
@click.option("--max-steps", type=int, help="Steps at most.  [default: no limit]")
@click.option("--budget", type=Duration(), help="Time at most: 90s, 60m, 1.5h.  [default: no limit]")
@click.option("--batch-size", type=int, default=16, show_default=True, help="Queries a step.")
@click.option(
    "--max-length", type=int, default=192, show_default=True, help="Tokens of question and passage."
)
@click.option("--learning-rate", type=float, default=5e-5, show_default=True, help="At its peak.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Of order, draws and dropout."
)
@click.option(
    "--held-out", type=float, default=0.1, show_default=True, help="Share of the groups to validate on."
)
@click.option("--teacher", metavar="MODEL", help="Cross-encoder to learn the scores of.")
@click.option("--threads", type=click.IntRange(1), help="Threads to train with.  [default: all cores]")
@click.option(
    "--sources",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='For the model card, JSON: {"file name": {"source": ..., "licence": ...}}.',
)
def reranker_command(
    pairs: tuple[Path, ...],
    out: Path,
    index_name: str | None,
    titles: bool,
    negatives: int,
    held_out: float,
    seed: int,
    threads: int | None,
    budget: float | None,
    batch_size: int,
    sources: Path | None,
    **settings: Any,
) -> None:
    """Train a cross-encoder on pairs of questions and answers: JSONL, a {"query", "positive"} a line.

    "negatives" of a pair are used; what is missing is found by search. "group" keeps what belongs together
    (an article's pairs) on one side of training and validation. Interrupted, the same command goes on where
    it stopped. The model is used with epicqa run --reranker DIR.
    """
    from epicqa.cli.progress import steps
    from epicqa.models.train.negatives import with_negatives
    from epicqa.models.train.pairs import read_pairs, split
    from epicqa.models.train.reranker import HELD_OUT, MINED, train_reranker
    from epicqa.models.train.schedule import some_of
    from epicqa.models.train.static import read_sources

    listed = read_sources(sources, pairs)
    index = None
    if index_name is not None:
        from epicqa.index.build import open_index

        index = open_index(index_name)
    with steps() as progress:
        mined = with_negatives(
            read_pairs(pairs),
            MINED * negatives,
            index=index,
            titles=titles,
            seed=seed,
            threads=threads or 2,
            progress=lambda done, total: progress("finding negatives", done, total),
        )
        trained_on, held = split(mined, held_out, seed)
        made = train_reranker(
            trained_on,
            out,
            held_out=some_of(held, HELD_OUT, seed),
            negatives_per_query=negatives,
            budget_seconds=budget,
            batch=batch_size,
            seed=seed,
            threads=threads,
            notes=[f"{one.source}: {one.licence} (SHA-256 `{one.sha256}`)" for one in listed],
            command=shlex.join(["epicqa", *sys.argv[1:]]),
            progress=progress,
            **settings,
        )
    for line in made.lines():
        click.echo(line)
