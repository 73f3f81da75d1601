"""``epicqa claims verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.claims_fever import OPTIONS, TASKS, WikiSearch, task_option, verify_fever, wiki_options
from epicqa.cli.claims_retrieve import config_option, threads_option
from epicqa.cli.tasks import check_options
from epicqa.errors import EpicqaError
from epicqa.normal import printable

if TYPE_CHECKING:
    from epicqa.claims.verifying import LabelledAbstract, Verified


_SCIFACT = ("k", "config_file")


@click.command("verify")
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@task_option
@click.option(
    "--claims-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Verify the claims of a text file, too, one a line.",
)
@click.option(
    "--index", metavar="NAME", help="Index to search.  [default: default, or sample; of fever: fever]"
)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Search these abstracts instead, in their own index, scifact, which is built if needed; of fever "
    "these pages of Wikipedia, a file or a folder, in fever.",
)
@click.option(
    "-k", type=click.IntRange(1, 100), default=3, show_default=True, help="Abstracts of a claim to read."
)
@click.option("--model", metavar="NAME", help="Joint model; of fever one that labels.  [default: claims]")
@click.option("--all", "show_all", is_flag=True, help="Show what says too little, too.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For reading, or an object a claim, a line each, with all that was read.",
)
@config_option
@threads_option
@wiki_options
@click.pass_context
def verify_command(
    context: click.Context,
    texts: tuple[str, ...],
    task: str,
    claims_file: Path | None,
    index: str | None,
    corpus: Path | None,
    k: int,
    model: str | None,
    show_all: bool,
    form: str,
    config_file: Path | None,
    threads: int,
    wiki: WikiSearch,
) -> None:
    """Show abstracts that support or refute a claim, each by the sentences that do.

    \b
    epicqa claims verify "Cats are carriers of SARS-CoV-2."
    epicqa claims verify --claims-file claims.txt --index papers --format json
    epicqa claims verify --task fever "The Eiffel Tower stands in Rome." --corpus wiki-pages

    Of a document its abstract is read, or where it has none its beginning. With --task fever, all sentences
    of the pages found are read, one at a time, and those shown that the claim's label rests on. For research
    only: a model's labels may be wrong, and none of this is medical advice.
    """
    from epicqa.claims.model import load_claim_model
    from epicqa.claims.retrieval import CONFIG, INDEX, settled
    from epicqa.claims.system import MODEL
    from epicqa.claims.verifying import NOTE, as_record, check_claims, read_claim_lines, verify_claims
    from epicqa.cli.progress import steps
    from epicqa.collection_index import Collection, open_collection
    from epicqa.config import load_config
    from epicqa.index.build import open_index
    from epicqa.running import default_index

    check_options(
        context,
        task,
        lambda name: ("fever",) if name in OPTIONS else ("scifact",) if name in _SCIFACT else TASKS,
    )
    if index is not None and corpus is not None:
        raise EpicqaError("--index and --corpus both say where to search, expected one of them")
    claims = [*texts, *(read_claim_lines(claims_file) if claims_file else ())]
    if not claims:
        raise EpicqaError("no claim, expected a TEXT or --claims-file FILE")
    if task == "fever":
        verify_fever(claims, index, corpus, model, wiki, threads, show_all, form)
        return
    config = load_config(config_file, {"index": index}, CONFIG)
    with steps(transient=True) as progress:
        progress("loading the model", 0, None)
        loaded = load_claim_model(model or MODEL)
        check_claims(claims, loaded)
        notes: list[str] = []
        if corpus is None:
            opened = open_index(config.index or default_index())
        else:
            opened, notes = open_collection(Collection(INDEX, (corpus,)), threads=threads, progress=progress)
        config, given_up = settled(config, opened)
        found = verify_claims(opened, claims, loaded, k, config, threads=threads, progress=progress)
    for note in notes + given_up:
        click.echo(f"note: {note}", err=True)
    if form == "json":
        for one in found:
            # ASCII, as a terminal would obey some control characters beyond it.
            click.echo(json.dumps(as_record(one, opened)))
        return
    for one in found:
        _show(one, show_all)
    click.echo(NOTE)


def _show(verified: Verified, show_all: bool) -> None:
    """Print a claim's evidence for reading; texts are others', so they are shown as text and nothing else."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from epicqa.claims.scifact import NOINFO
    from epicqa.claims.verifying import summary

    console = Console(highlight=False)
    console.print(Text(printable(verified.claim), "bold"))
    console.print(Padding(Text(summary(verified)), (0, 0, 1, 0)))
    for abstract in verified.abstracts:
        if abstract.label == NOINFO and not show_all:
            continue
        head = Text().append(f"{abstract.label} {abstract.probabilities[abstract.label]:.2f}", "bold yellow")
        head.append(f"  {printable(abstract.title or '(no title)')}", "bold")
        console.print(head)
        if abstract.rationale:
            console.print(Padding(Text(printable(abstract.rationale)), (0, 0, 0, 3)))
        console.print(Padding(Text(_source(abstract), "cyan", overflow="fold"), (0, 0, 1, 3)))


def _source(abstract: LabelledAbstract) -> str:
    from epicqa.claims.parts import BEGINNING

    parts = [abstract.document_id, abstract.url or ""]
    if abstract.part == BEGINNING:
        parts.append("(no abstract: its beginning was read)")
    return printable("  ".join(part for part in parts if part))
