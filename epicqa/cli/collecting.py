"""What the commands of ``epicqa collect`` share."""

from __future__ import annotations

import functools
import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epicqa.cli.size import Size

if TYPE_CHECKING:
    from epicqa.collect import Collected, Settings
    from epicqa.corpus.sources.raw import RawSource

_HANDLINGS = click.Choice(["off", "report", "drop"])
_OUTPUT = (
    click.option(
        *("-o", "--output", "out"),
        metavar="DIR",
        required=True,
        type=click.Path(path_type=Path),
        help="Collection to make; one that is there is replaced when the new one is whole.",
    ),
    click.option("--jsonl", is_flag=True, help="Write one documents.jsonl in place of a file a document."),
)
_SENTENCES = (
    click.option(
        "--max-sentences",
        type=click.IntRange(1),
        default=15,
        show_default=True,
        help="Of a context; longer paragraphs become several.",
    ),
    click.option(
        "--max-characters",
        type=click.IntRange(20),
        default=1000,
        show_default=True,
        help="Of a sentence; longer ones are cut at a space.",
    ),
)
_WORK = (
    click.option(
        "--duplicate-documents",
        type=_HANDLINGS,
        default="report",
        show_default=True,
        help="What to do about documents that nearly repeat an earlier one.",
    ),
    click.option(
        "--duplicate-contexts",
        type=_HANDLINGS,
        default="report",
        show_default=True,
        help="The same of single contexts.",
    ),
    click.option(
        "--similarity",
        type=click.FloatRange(0.5, 1),
        default=0.9,
        show_default=True,
        help="Jaccard similarity of word 5-grams from which on two texts are near-duplicates.",
    ),
    click.option(
        "--max-file-size",
        type=Size(),
        default="256M",
        show_default=True,
        help="Largest input file or record, decompressed; larger ones are left out.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1),
        default=lambda: os.cpu_count() or 2,
        help="Processes to use; they do not change the result.  [default: all cores]",
    ),
    click.option("--force", is_flag=True, help="Collect again although nothing has changed."),
    click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON."),
)


def _filter(terms: str, where: str) -> tuple[Callable[..., Any], ...]:
    return (
        click.option(
            "--terms",
            metavar="covid|FILE|none",
            default=terms,
            show_default=True,
            help="Keep only documents with a term of the epidemic: the published ones, or a file's.",
        ),
        click.option(
            "--where",
            type=click.Choice(["any", "title", "text", "both"]),
            default=where,
            show_default=True,
            help="Where a term must stand: in one of title and text, in that one, or in both.",
        ),
    )


_ENGINE = ("out", "url_ids", "threads", "force", "as_json")


def collecting(terms: str = "none", where: str = "any", *, splits: bool = True) -> Callable[..., Any]:
    """The options of every source; the command gets ``settings`` and ``engine``, its own options besides.

    Args:
        terms: what ``--terms`` is by default.
        where: what ``--where`` is by default.
        splits: whether the source's texts are split here.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapped(**given: Any) -> Any:
            engine = {name: given.pop(name) for name in _ENGINE if name in given}
            settings = _settings(
                given.pop("terms"),
                given.pop("where"),
                {name: given.pop(name) for name in _SETTINGS if name in given},
            )
            return command(settings=settings, engine=engine, **given)

        decorated: Callable[..., Any] = wrapped
        options = (*_OUTPUT, *_filter(terms, where), *(_SENTENCES if splits else ()), *_WORK)
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


_SETTINGS = (
    "jsonl",
    "max_sentences",
    "max_characters",
    "max_file_size",
    "duplicate_documents",
    "duplicate_contexts",
    "similarity",
)


def _settings(terms: str, where: str, others: Mapping[str, Any]) -> Settings:
    from epicqa.collect import Settings
    from epicqa.collect.terms import covid_terms, read_terms

    chosen: tuple[str, ...] = ()
    if terms != "none":
        chosen = covid_terms() if terms == "covid" else read_terms(Path(terms))
    return Settings(terms=chosen, where=where, **others)  # type: ignore[arg-type]


def run_collect(
    source: RawSource, inputs: Sequence[Path], settings: Settings, engine: Mapping[str, Any]
) -> None:
    """Collect, with progress, and tell what came of it."""
    from epicqa.cli.progress import steps
    from epicqa.collect import collect

    with steps() as progress:
        done = collect(
            source,
            inputs,
            engine["out"],
            settings,
            url_ids=engine.get("url_ids"),
            workers=engine["threads"],
            force=engine["force"],
            progress=progress,
        )
    if engine["as_json"]:
        click.echo(json.dumps({**asdict(done), "out": str(engine["out"])}, indent=1))
        return
    for key, value in _lines(done, engine["out"]):
        click.echo(f"{click.style(f'{key:<16}', bold=True)} {value}")


def _lines(done: Collected, out: Path) -> list[tuple[str, str]]:
    from epicqa.collect.layout import NEAR_DUPLICATES, REPORT
    from epicqa.corpus.sources.raw import FILTERED

    lines = [("collection", str(out))]
    lines += [(name, f"{getattr(done, name):,}") for name in ("documents", "contexts", "sentences")]
    if done.left_out:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in done.left_out.items())
        where = f"; see {out / REPORT}" if set(done.left_out) - {FILTERED} else ""
        lines.append(("left out", counts + where))
    if done.near_duplicates:
        counts = ", ".join(
            f"{_counted(count, what)}{' dropped' if done.dropped.get(what) else ''}"
            for what, count in done.near_duplicates.items()
        )
        lines.append(("near-duplicates", f"{counts}; see {out / NEAR_DUPLICATES}"))
    return [*lines, ("next", f"epicqa index {shlex.quote(str(out))} --name NAME")]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
