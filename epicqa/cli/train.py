"""``epicqa train``."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from epicqa.models.train.static import Trained

_ELSEWHERE = {"reranker": "epicqa.cli.train_reranker"}


class _Trainers(click.Group):
    """Trainers of other files are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _ELSEWHERE:
            command: click.Command = getattr(import_module(_ELSEWHERE[cmd_name]), f"{cmd_name}_command")
            return command
        return super().get_command(ctx, cmd_name)


@click.group("train", cls=_Trainers)
def train_command() -> None:
    """Train models on pairs of a question and a text that answers it.

    Pairs are JSONL files, plain or as .gz, .xz or .zst, an object a line: {"query": ..., "positive": ...},
    and if there are any "negatives": [texts that do not answer] and "group": what must not be parted between
    training and testing, such as an article's id.
    """


@train_command.command("static")
@click.argument("pairs", metavar="PAIRS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Folder to make.")
@click.option(
    "--base",
    metavar="MODEL",
    default="static",
    show_default=True,
    help="Static-embedding model to start from: static, a path, package or hub name.",
)
@click.option("--epochs", type=click.IntRange(1), help="Passes over the pairs.  [default: 10]")
@click.option("--batch-size", type=click.IntRange(2), help="Pairs a step.  [default: 256]")
@click.option("--learning-rate", type=float, help="Adam's, at its highest.  [default: 0.01]")
@click.option(
    "--teacher",
    metavar="MODEL",
    help="Model whose likeness of texts is learnt, too, such as minilm; it reads every text once.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of order and split.")
@click.option(
    "--held-out",
    metavar="SHARE",
    type=click.FloatRange(0, 0.9),
    default=0.1,
    show_default=True,
    help="Share of the groups that is not trained on but measured on; 0 for all to be trained on.",
)
@click.option(
    "--sources",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help='For the model card, JSON: {"file name": {"source": ..., "licence": ...}}.',
)
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Of PyTorch.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def static_command(
    pairs: tuple[Path, ...],
    out: Path,
    base: str,
    epochs: int | None,
    batch_size: int | None,
    learning_rate: float | None,
    teacher: str | None,
    seed: int,
    held_out: float,
    sources: Path | None,
    threads: int,
    as_json: bool,
) -> None:
    """Train a static-embedding model, for epicqa index --dense DIR.

    Makes DIR: weights, tokenizer, a model card, and in training/ the loss of every step and the recipe. Ends
    with MRR and recall@100 of base and trained model on the questions held out, over the texts of all pairs.
    Interrupted, the same command goes on; the same pairs, options and number of threads give the same bytes.
    """
    from epicqa.cli.progress import steps
    from epicqa.models.train.pairs import read_pairs, split
    from epicqa.models.train.static import Recipe, read_sources, train_static

    flags: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "teacher": teacher,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    recipe = replace(Recipe(base=base, seed=seed), **given)
    train, held = split(read_pairs(pairs), held_out, seed)
    with steps() as progress:
        trained = train_static(
            train,
            out,
            recipe,
            held=held,
            sources=read_sources(sources, pairs),
            command=shlex.join(["epicqa", *sys.argv[1:]]),
            threads=threads,
            progress=progress,
        )
    _tell(trained, as_json)


def _tell(trained: Trained, as_json: bool) -> None:
    from epicqa.models.train.static import DEPTH

    measured = {"base": trained.base, "trained": trained.trained}
    if as_json:
        record = {
            "model": str(trained.folder),
            "pairs": trained.pairs,
            "held_out": trained.held,
            **{
                name: {"mrr": found.mrr, f"recall@{DEPTH}": found.mean_recall}
                for name, found in measured.items()
                if found
            },
        }
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(f"{trained.folder}: trained on {trained.pairs:,} pairs, {trained.held:,} held out")
    for name, found in measured.items():
        if found:
            click.echo(f"{name:<8} MRR {found.mrr:.3f}  recall@{DEPTH} {found.mean_recall:.3f}")
