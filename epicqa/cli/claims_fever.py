"""``epicqa claims predict`` and ``verify`` with ``--task fever``."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epicqa.errors import EpicqaError
from epicqa.normal import printable

if TYPE_CHECKING:
    from epicqa.claims.fever_system import Verdict
    from epicqa.claims.pages import Named, Parts
    from epicqa.index.build import Index, Progress

TASKS = ("scifact", "fever")

task_option = click.option(
    "--task",
    type=click.Choice(TASKS),
    default="scifact",
    show_default=True,
    help="SciFact's claims and abstracts, or FEVER's claims and pages of Wikipedia.",
)
_WIKI = (
    click.option(
        "--titles/--no-titles",
        default=True,
        show_default=True,
        help="Of fever: a page's title counts as text of its sentences.",
    ),
    click.option(
        "--entities/--no-entities",
        default=True,
        show_default=True,
        help="Of fever: pages are read that named entities and capitalised phrases of a claim name.",
    ),
    click.option(
        "--films/--no-films",
        default=True,
        show_default=True,
        help="Of fever: 'X (film)' is read where 'X' is.",
    ),
    click.option(
        "--articles/--no-articles",
        default=True,
        show_default=True,
        help="Of fever: pages are read whole, or five sentences.",
    ),
    click.option(
        "--pages",
        type=click.IntRange(1, 100),
        default=5,
        show_default=True,
        help="Of fever: pages of a claim that are found by its words.",
    ),
)

OPTIONS = ("titles", "entities", "films", "articles", "pages")
"""Parameters that are FEVER's alone."""


@dataclass(frozen=True, slots=True)
class WikiSearch:
    """How to find sentences of Wikipedia: `epicqa.claims.pages.Parts`, and pages found by a claim's words."""

    titles: bool
    entities: bool
    films: bool
    articles: bool
    pages: int

    def parts(self) -> Parts:
        from epicqa.claims.pages import Parts

        return Parts(self.titles, self.entities, self.films, self.articles)

    def named(self) -> tuple[Named | None, list[str]]:
        """What tells named entities, if they count, and what the user should know."""
        from epicqa.claims.pages import spacy_entities

        if not self.entities:
            return None, []
        named, note = spacy_entities()
        return named, [note] if note else []


def wiki_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `WikiSearch`; the command gets it as ``wiki``."""

    @functools.wraps(command)
    def wrapped(
        *arguments: Any, titles: bool, entities: bool, films: bool, articles: bool, pages: int, **others: Any
    ) -> Any:
        return command(*arguments, wiki=WikiSearch(titles, entities, films, articles, pages), **others)

    decorated: Callable[..., Any] = wrapped
    for option in reversed(_WIKI):
        decorated = option(decorated)
    return decorated


def predict_fever(
    claims: Path,
    output: Path,
    index: str | None,
    corpus: Path | None,
    model: str | None,
    wiki: WikiSearch,
    threads: int,
) -> None:
    """Predict each claim's label and evidence, and write what the shared task asks for."""
    from epicqa.claims.fever import SPELLINGS, read_claims, write_predictions
    from epicqa.claims.fever_system import predict
    from epicqa.claims.journal import FEVER, ClaimJournal
    from epicqa.claims.model import load_claim_model
    from epicqa.claims.pages import each_premises
    from epicqa.claims.scifact import check_output
    from epicqa.claims.system import MODEL
    from epicqa.claims.verifying import check_claims
    from epicqa.cli.progress import steps
    from epicqa.models.places import fingerprint, resolve

    if index is not None and corpus is not None:
        raise EpicqaError("--index and --corpus both say where to search, expected one of them")
    check_output(output, "predictions")
    asked = read_claims(claims)
    loaded = load_claim_model(model or MODEL)
    check_claims([claim.text for claim in asked], loaded, selects=False)
    named, notes = wiki.named()
    with steps() as progress:
        opened, lacking = _open_wiki(index, corpus, threads, progress)
        decided_by = (opened.fingerprint, asdict(wiki), notes, fingerprint(resolve(loaded.name)))
        journal = ClaimJournal(FEVER, asked, *decided_by)
        made = list(
            predict(
                asked,
                lambda left: each_premises(
                    left, opened, wiki.parts(), pages=wiki.pages, named=named, threads=threads
                ),
                loaded,
                done=journal.done,
                note=journal.note,
                progress=lambda done, total: progress("verifying claims", done, total),
            )
        )
    for note in lacking + notes:
        click.echo(f"note: {note}", err=True)
    write_predictions(output, made)
    journal.remove()
    labels = [one.label for one in made]
    counts = ", ".join(f"{labels.count(label):,} {spelling}" for label, spelling in SPELLINGS.items())
    click.echo(f"{output}: {len(made):,} claims: {counts}")


def verify_fever(
    claims: Sequence[str],
    index: str | None,
    corpus: Path | None,
    model: str | None,
    wiki: WikiSearch,
    threads: int,
    show_all: bool,
    form: str,
) -> None:
    """Show what Wikipedia's sentences say of claims."""
    from itertools import islice

    from epicqa.claims.fever import Claim
    from epicqa.claims.fever_system import as_record, verdicts
    from epicqa.claims.model import load_claim_model
    from epicqa.claims.pages import each_premises
    from epicqa.claims.system import MODEL
    from epicqa.claims.verifying import NOTE, check_claims
    from epicqa.cli.progress import steps

    named, notes = wiki.named()
    with steps(transient=True) as progress:
        progress("loading the model", 0, None)
        loaded = load_claim_model(model or MODEL)
        check_claims(claims, loaded, selects=False)
        opened, lacking = _open_wiki(index, corpus, threads, progress)
        asked = [Claim(place, text.strip(), None, ()) for place, text in enumerate(claims)]
        premises = each_premises(asked, opened, wiki.parts(), pages=wiki.pages, named=named, threads=threads)
        found: list[Verdict] = []
        for claim in asked:
            found += verdicts([claim], islice(premises, 1), loaded)
            progress("verifying claims", len(found), len(asked))
    for note in lacking + notes:
        click.echo(f"note: {note}", err=True)
    for claim, one in zip(asked, found, strict=True):
        if form == "json":
            # ASCII, as a terminal would obey some control characters beyond it.
            click.echo(json.dumps(as_record(claim.text, opened.name, one)))
        else:
            _show(claim.text, one, show_all)
    if form != "json":
        click.echo(NOTE)


def _open_wiki(
    index: str | None, corpus: Path | None, threads: int, progress: Progress
) -> tuple[Index, list[str]]:
    """An index of FEVER's pages, built first if they are given and it is not there, and what it lacks."""
    from epicqa.claims.pages import INDEX
    from epicqa.collection_index import Collection, open_collection
    from epicqa.index.build import open_index

    if corpus is None:
        return open_index(index or INDEX), []
    # Pages are found by words alone.
    collection = Collection(INDEX, (corpus,), dense="none")
    return open_collection(collection, threads=threads, progress=progress)


def _show(claim: str, verdict: Verdict, show_all: bool) -> None:
    """Print a claim's evidence for reading; texts are others', so they are shown as text and nothing else."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from epicqa.claims.fever import SPELLINGS
    from epicqa.claims.fever_system import summary

    console = Console(highlight=False)
    console.print(Text(printable(claim), "bold"))
    console.print(Padding(Text(summary(verdict)), (0, 0, 1, 0)))
    others = [place for place in range(len(verdict.premises)) if place not in verdict.evidence]
    for place in (*verdict.evidence, *(others if show_all else ())):
        premise = verdict.premises[place]
        label = verdict.label_of(place)
        head = Text().append(f"{SPELLINGS[label]} {verdict.probabilities[place].max():.2f}", "bold yellow")
        head.append(f"  {printable(premise.text)}")
        console.print(head)
        source = f"{premise.sentence.page}  line {premise.sentence.line}"
        console.print(Padding(Text(printable(source), "cyan", overflow="fold"), (0, 0, 1, 3)))
