"""``epicqa claims retrieve``, and what other commands need to find abstracts as it does."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epicqa.errors import EpicqaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epicqa.claims.retrieval import Retrieved
    from epicqa.claims.scifact import Abstract, Claim
    from epicqa.index.build import Progress

METHODS = ("search", "tfidf", "oracle")

claims_option = click.option(
    "--claims", metavar="FILE", required=True, type=click.Path(path_type=Path), help="What to look for."
)
output_option = click.option(
    "-o", "--output", metavar="FILE", required=True, type=click.Path(path_type=Path), help="Write there."
)
config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file of settings to search with, as of epicqa run.  [default: nothing reranks]",
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 2,
    help="Threads for searching; they do not change the result.  [default: all cores]",
)
_SEARCHING = (
    click.option(
        "-k",
        type=click.IntRange(1, 1000),
        help="Abstracts of a claim.  [default: 3; of an oracle or a file all]",
    ),
    click.option(
        "--index", metavar="NAME", help="Index of the corpus to search.  [default: scifact, built if needed]"
    ),
    config_option,
    threads_option,
)


@dataclass(frozen=True, slots=True)
class Searching:
    """How to find abstracts; None is what was not given."""

    k: int | None
    index: str | None
    config_file: Path | None
    threads: int

    def check(self, option: str, method: str) -> None:
        """Refuse settings that a method has no use for; ``option`` is what chooses it.

        Raises:
            EpicqaError: one was given.
        """
        for name, value, methods, useless in (
            ("--index", self.index, "search", method != "search"),
            ("--config", self.config_file, "search", method != "search"),
            ("-k", self.k, "search or tfidf", method == "oracle"),
        ):
            if value is not None and useless:
                raise EpicqaError(f"{name} is for {option} {methods}, expected none with {method}")

    def find(
        self,
        method: str,
        corpus: Path,
        abstracts: Mapping[int, Abstract],
        claims: Sequence[Claim],
        progress: Progress,
        cited: bool,
    ) -> tuple[Retrieved, list[str]]:
        """Abstracts by claim, and notes; ``cited`` is of the oracle."""
        from epicqa.claims.retrieval import CONFIG, K, oracle, search_corpus, tfidf
        from epicqa.config import load_config

        if method == "oracle":
            return oracle(claims, cited), []
        k = self.k or K
        if method == "tfidf":
            return tfidf(abstracts, claims, k), []
        config = load_config(self.config_file, {"index": self.index}, CONFIG)
        return search_corpus(corpus, abstracts, claims, k, config, threads=self.threads, progress=progress)


def searching(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `Searching`; the command gets it as ``searching``."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any,
        k: int | None,
        index: str | None,
        config_file: Path | None,
        threads: int,
        **others: Any,
    ) -> Any:
        return command(*arguments, searching=Searching(k, index, config_file, threads), **others)

    decorated: Callable[..., Any] = wrapped
    for option in reversed(_SEARCHING):
        decorated = option(decorated)
    return decorated


@click.command("retrieve")
@claims_option
@click.option(
    "--corpus",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="Abstracts to look in.",
)
@output_option
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="search",
    show_default=True,
    help="As questions are answered; by TF-IDF as in SciFact's paper; or the gold evidence.",
)
@click.option(
    "--cited", is_flag=True, help="With oracle: of claims without evidence the abstracts they cite."
)
@searching
def retrieve_command(
    claims: Path, corpus: Path, output: Path, method: str, cited: bool, searching: Searching
) -> None:
    """Find the abstracts that may support or refute each claim.

    \b
    epicqa claims retrieve --claims claims_dev.jsonl --corpus corpus.jsonl -o found.jsonl
    epicqa score found.jsonl --task scifact --claims claims_dev.jsonl --corpus corpus.jsonl

    Writes a line of {"claim_id", "doc_ids"} a claim, best abstract first. A claim is searched for as a
    question; an abstract is as good as its best sentence. Sentences are neither reranked nor put in an order
    of diversity unless --config says so.
    """
    from epicqa.claims.retrieval import write_retrieved
    from epicqa.claims.scifact import check_output, read_abstracts, read_claims
    from epicqa.cli.progress import steps

    searching.check("--method", method)
    if cited and method != "oracle":
        raise EpicqaError(f"--cited is for --method oracle, expected none with {method}")
    check_output(output, "abstracts")
    abstracts = read_abstracts(corpus)
    asked = read_claims(claims, abstracts)
    with steps() as progress:
        found, notes = searching.find(method, corpus, abstracts, asked, progress, cited)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    write_retrieved(output, found)
    count = sum(map(len, found.values()))
    click.echo(f"{output}: {count:,} abstracts for {len(found):,} claims")
