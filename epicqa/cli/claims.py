"""``epicqa claims``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.errors import EpicqaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epicqa.claims.retrieval import Retrieved
    from epicqa.claims.scifact import Abstract, Claim

INDEX = "scifact"


@click.group("claims")
def claims_command() -> None:
    """Verify scientific claims by the abstracts of papers (SciFact)."""


@claims_command.command("retrieve")
@click.option(
    "--claims", metavar="FILE", required=True, type=click.Path(path_type=Path), help="What to look for."
)
@click.option(
    "--corpus", metavar="FILE", required=True, type=click.Path(path_type=Path), help="Abstracts to look in."
)
@click.option(
    "--method",
    type=click.Choice(["search", "tfidf", "oracle"]),
    default="search",
    show_default=True,
    help="As questions are answered; by TF-IDF as in SciFact's paper; or the gold evidence.",
)
@click.option(
    "-k", type=click.IntRange(1, 1000), help="Abstracts of a claim; oracle gives all gold ones.  [default: 3]"
)
@click.option(
    "--index", metavar="NAME", help=f"Index of the corpus to search.  [default: {INDEX}, built if needed]"
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file of settings to search with, as of epicqa run.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 2,
    help="Threads for searching; they do not change the result.  [default: all cores]",
)
@click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="Write there."
)
def retrieve_command(
    claims: Path,
    corpus: Path,
    method: str,
    k: int | None,
    index: str | None,
    config_file: Path | None,
    threads: int,
    output: Path,
) -> None:
    """Find the abstracts that may support or refute each claim.

    \b
    epicqa claims retrieve --claims claims_dev.jsonl --corpus corpus.jsonl -o found.jsonl
    epicqa score found.jsonl --task scifact --claims claims_dev.jsonl --corpus corpus.jsonl

    Writes a line of {"claim_id", "doc_ids"} a claim, best abstract first. A claim is searched for as a
    question; an abstract is as good as its best sentence. Sentences are not put in an order of diversity
    unless --config names one.
    """
    from epicqa.claims.retrieval import K, check_output, oracle, tfidf, write_retrieved
    from epicqa.claims.scifact import read_abstracts, read_claims

    for option, value, of in (
        ("--index", index, ("search",)),
        ("--config", config_file, ("search",)),
        ("-k", k, ("search", "tfidf")),
    ):
        if value is not None and method not in of:
            raise EpicqaError(f"{option} is for --method {' or '.join(of)}, expected none with {method}")
    check_output(output)
    abstracts = read_abstracts(corpus)
    asked = read_claims(claims, abstracts)
    if method == "oracle":
        found = oracle(asked)
    elif method == "tfidf":
        found = tfidf(abstracts, asked, k or K)
    else:
        found = _searched(abstracts, asked, corpus, index, config_file, k or K, threads)
    write_retrieved(output, found)
    count = sum(map(len, found.values()))
    click.echo(f"{output}: {count:,} abstracts for {len(found):,} claims")


def _searched(
    abstracts: Mapping[int, Abstract],
    claims: Sequence[Claim],
    corpus: Path,
    name: str | None,
    config_file: Path | None,
    k: int,
    threads: int,
) -> Retrieved:
    """Search the index of that name, else the corpus's own, which is built first where it is not there."""
    from epicqa.claims.retrieval import lacking, search
    from epicqa.cli.progress import steps
    from epicqa.collection_index import Collection, open_collection
    from epicqa.config import load_config
    from epicqa.index.build import open_index
    from epicqa.pipeline import settle

    config = load_config(config_file, {"index": name})
    with steps() as progress:
        notes: list[str] = []
        if config.index:
            index = open_index(config.index)
        else:
            index, notes = open_collection(Collection(INDEX, (corpus,)), threads=threads, progress=progress)
        if (missing := lacking(index, abstracts)) and config.index:
            notes.append(f"index {index.name!r} lacks {missing:,} abstracts of {corpus}")
        notes += settle(config, index)[1]
        found = search(
            index,
            claims,
            k,
            config,
            threads=threads,
            progress=lambda done, total: progress("finding abstracts", done, total),
        )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    return found
