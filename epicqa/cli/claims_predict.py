"""``epicqa claims predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from epicqa.cli.claims_fever import OPTIONS, TASKS, WikiSearch, predict_fever, task_option, wiki_options
from epicqa.cli.claims_retrieve import METHODS, Searching, claims_option, output_option, searching
from epicqa.cli.tasks import check_options
from epicqa.errors import EpicqaError

_BOTH = ("task", "claims", "corpus", "output", "index", "threads", "model")


@click.command("predict")
@task_option
@claims_option
@click.option(
    "--corpus",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Abstracts to look in; of fever pages of Wikipedia, a file or a folder, in their own index, fever, "
    "which is built if needed.",
)
@output_option
@click.option(
    "--abstracts",
    "method",
    metavar=f"{'|'.join(METHODS)}|FILE",
    default="search",
    show_default=True,
    help="Abstracts to read: as of epicqa claims retrieve, or a file that it wrote.",
)
@click.option(
    "--cited/--no-cited",
    default=None,
    help="With oracle: of claims without evidence the abstracts they cite, or none.  [default: cited]",
)
@searching
@click.option(
    "--rationales",
    metavar="model|oracle|FILE",
    default="model",
    show_default=True,
    help='Rationales: a model\'s, the gold ones, or a file\'s: {"claim_id", "evidence": {document: '
    "[sentence]}} a line.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="Joint model, for both steps; of fever one that labels.  [default: claims]",
)
@click.option("--rationale-model", metavar="NAME", help="Model that selects rationales, instead of --model.")
@click.option("--label-model", metavar="NAME", help="Model that labels, instead of --model.")
@click.option(
    "--label-input",
    type=click.Choice(["abstract", "rationale"]),
    help="What is read to label.  [default: a joint model's is the abstract, another's the rationale]",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="Sentences of a higher probability are selected.  [default: the model's own]",
)
@click.option(
    "--evidence-threshold",
    type=click.FloatRange(0, 1),
    help="Abstracts of a higher probability are evidence.  [default: the model's own]",
)
@click.option(
    "--max-sentences",
    type=click.IntRange(1),
    help="Sentences of an abstract that are selected at most.  [default: no limit]",
)
@wiki_options
@click.pass_context
def predict_command(
    context: click.Context,
    task: str,
    claims: Path,
    corpus: Path | None,
    output: Path,
    method: str,
    cited: bool | None,
    searching: Searching,
    rationales: str,
    model: str | None,
    rationale_model: str | None,
    label_model: str | None,
    threshold: float | None,
    max_sentences: int | None,
    wiki: WikiSearch,
    **settings: Any,
) -> None:
    """Predict which abstracts support or refute each claim, and by which sentences.

    \b
    epicqa claims predict --claims claims_dev.jsonl --corpus corpus.jsonl -o predictions.jsonl
    epicqa score predictions.jsonl --task scifact --claims claims_dev.jsonl --corpus corpus.jsonl
    epicqa claims predict --task fever --claims paper_dev.jsonl --corpus wiki-pages -o predictions.jsonl
    epicqa score predictions.jsonl --task fever --claims paper_dev.jsonl

    Writes a line of {"id", "evidence": {document: {"sentences", "label"}}} a claim, as SciFact's leaderboard
    takes it, the most probable sentence first. Each step of SciFact's paper can be the oracle's: the paper's
    pipeline with oracle abstracts is --abstracts oracle --no-cited, with oracle rationales, too,
    --rationales oracle. Interrupted, the same command goes on where it stopped.

    With --task fever, a claim is held against each sentence of the pages found for it, one at a time: it is
    supported if any sentence supports it, else refuted if any refutes it, else there is not enough
    information. Writes a line of {"id", "predicted_label", "predicted_evidence": [[page, line]]} a claim.
    """
    check_options(
        context,
        task,
        lambda name: TASKS if name in _BOTH else ("fever",) if name in OPTIONS else ("scifact",),
    )
    if task == "fever":
        predict_fever(claims, output, searching.index, corpus, model, wiki, searching.threads)
        return
    if corpus is None:
        raise EpicqaError("--task scifact needs the abstracts, pass --corpus FILE")
    from epicqa.claims.journal import SCIFACT, ClaimJournal
    from epicqa.claims.model import load_claim_model
    from epicqa.claims.retrieval import check_judged, read_retrieved
    from epicqa.claims.scifact import check_output, read_abstracts, read_claims, write_predictions
    from epicqa.claims.system import MODEL, check_models, oracle_rationales, predictions, read_rationales
    from epicqa.cli.progress import steps
    from epicqa.files import sha256_of
    from epicqa.models.places import fingerprint, resolve

    searching.check("--abstracts", method)
    if cited is not None and method != "oracle":
        raise EpicqaError(f"--cited/--no-cited is for --abstracts oracle, expected none with {method}")
    for option, value in (
        ("--rationale-model", rationale_model),
        ("--threshold", threshold),
        ("--max-sentences", max_sentences),
    ):
        if value is not None and rationales != "model":
            raise EpicqaError(f"{option} is for --rationales model, expected none with {rationales}")
    _check_names(model, rationale_model, label_model, rationales == "model")
    check_output(output, "predictions")
    abstracts = read_abstracts(corpus)
    asked = read_claims(claims, abstracts)
    if "oracle" in (method, rationales):
        check_judged(asked)
    labeller = load_claim_model(label_model or model or MODEL)
    selector = None
    if rationales == "model":
        name = rationale_model or model or MODEL
        selector = labeller if name == labeller.name else load_claim_model(name)
    check_models(selector, labeller)
    with steps() as progress:
        notes: list[str] = []
        if method in METHODS:
            found, notes = searching.find(method, corpus, abstracts, asked, progress, cited is not False)
        else:
            found = read_retrieved(Path(method), asked, abstracts, searching.k)
        if rationales == "model":
            given = None
        elif rationales == "oracle":
            given = oracle_rationales(asked, found)
        else:
            given = read_rationales(Path(rationales), asked, abstracts, found)
        models = [fingerprint(resolve(one.name)) for one in (selector, labeller) if one]
        decided_by = (sha256_of(corpus), found, given, models, threshold, max_sentences, settings)
        journal = ClaimJournal(SCIFACT, asked, *decided_by)
        made = predictions(
            asked,
            abstracts,
            found,
            selector,
            labeller,
            rationales=given,
            threshold=threshold,
            most=max_sentences,
            done=journal.done,
            note=journal.note,
            progress=lambda done, total: progress("verifying claims", done, total),
            **settings,
        )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    write_predictions(output, made)
    journal.remove()
    count = sum(len(one.evidence) for one in made)
    told = sum(bool(one.evidence) for one in made)
    click.echo(f"{output}: {count:,} abstracts as evidence for {told:,} of {len(made):,} claims")


def _check_names(model: str | None, selector: str | None, labeller: str | None, selecting: bool) -> None:
    """Refuse names of models that leave open which is meant."""
    if model is not None and (selector is not None or labeller is not None):
        raise EpicqaError(
            "--model does both steps, expected it alone, or --rationale-model and --label-model"
        )
    if selecting and (selector is None) != (labeller is None):
        there, lacking = "--rationale-model", "--label-model"
        if selector is None:
            there, lacking = lacking, there
        raise EpicqaError(f"{there} does one step only, expected {lacking}, too, or --model for both")
