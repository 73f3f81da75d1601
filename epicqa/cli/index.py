"""``epicqa index``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from epicqa.index.build import Index


@click.command("index")
@click.argument("sources", metavar="[SOURCE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--name", help="Name of the index.  [default: default; sample for the sample]")
@click.option(
    "--dense",
    metavar="MODEL|none",
    default="static",
    show_default=True,
    help="Model for vectors: static, minilm, a path, package or hub name; or none.",
)
@click.option(
    "--vectors",
    type=click.Choice(["flat", "sq8", "ivf", "hnsw"]),
    help="Kind of vector index.  [default: flat below 100,000 sentences, else sq8]",
)
@click.option(
    "--titles/--no-titles",
    default=True,
    show_default=True,
    help="Whether a sentence's vector is of its document's title, too.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 2,
    help="Processes and threads to use.  [default: all cores]",
)
@click.option("--strict", is_flag=True, help="Stop at the first document that cannot be used.")
@click.option("--force", is_flag=True, help="Build again although nothing has changed.")
@click.option("--info", metavar="NAME", help="Tell what is in an index, and build nothing.")
@click.option("--list", "list_all", is_flag=True, help="Tell which indexes there are, and build nothing.")
@click.option("--verify", metavar="NAME", help="Compare every file of an index with its checksum.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def index_command(
    sources: tuple[Path, ...],
    name: str | None,
    dense: str,
    vectors: str | None,
    titles: bool,
    threads: int,
    strict: bool,
    force: bool,
    info: str | None,
    list_all: bool,
    verify: str | None,
    as_json: bool,
) -> None:
    """Build an index of documents in indexes/NAME; with no SOURCE, of the bundled sample.

    A SOURCE is a folder of EPIC-QA JSON files, a .json or .jsonl file of such documents, of plain
    {"id", "title", "text"}, of SciFact's abstracts or FEVER's wiki pages, as it is or as .gz, .xz or .zst,
    or a .tar.gz or .zip of them. Documents that cannot be used are skipped, counted, and listed in
    report.jsonl of the index's corpus.
    """
    if list_all:
        _list(as_json)
    elif info is not None:
        from epicqa.index.build import open_index

        _tell(open_index(info), as_json)
    elif verify is not None:
        from epicqa.index.build import verify_index

        _tell(verify_index(verify), as_json)
        if not as_json:
            click.echo("every file is the one that was built")
    else:
        from epicqa.cli.progress import steps
        from epicqa.index.build import BuildOptions, build_index

        options = BuildOptions(dense, vectors, titles, threads, strict, force)
        if name is None:
            name = "default" if sources else "sample"
        with steps() as progress:
            built = build_index(sources, name, options, progress)
        _tell(built, as_json)


def _list(as_json: bool) -> None:
    from epicqa.index.build import list_indexes

    names = list_indexes()
    if as_json:
        click.echo(json.dumps(names))
    else:
        for name in names:
            click.echo(name)


def _tell(index: Index, as_json: bool) -> None:
    manifest = index.manifest
    if as_json:
        shown = {key: value for key, value in manifest.items() if key not in ("files", "key", "format")}
        shown["bytes"] = sum(one["bytes"] for one in manifest["files"].values())
        click.echo(json.dumps({"name": index.name, **shown}, indent=1))
        return
    for key, value in _lines(index).items():
        click.echo(f"{click.style(f'{key:<12}', bold=True)} {value}")


def _lines(index: Index) -> dict[str, Any]:
    manifest = index.manifest
    size = sum(one["bytes"] for one in manifest["files"].values())
    lines: dict[str, Any] = {
        "index": f"{index.name} ({index.folder})",
        "sources": "the bundled sample" if manifest["sample"] else ", ".join(manifest["sources"]),
        "documents": f"{manifest['documents']:,}",
        "contexts": f"{manifest['contexts']:,}",
        "sentences": f"{manifest['sentences']:,}",
    }
    if manifest["skipped"]:
        lines["skipped"] = f"{manifest['skipped']:,}, see {index.folder / 'corpus' / 'report.jsonl'}"
    if dense := manifest["dense"]:
        recall = "" if dense["recall"] is None else f", recall {dense['recall']:.3f} of exact at depth 1000"
        lines["vectors"] = f"{dense['model']}, {dense['dimension']} numbers, {dense['kind']}{recall}"
    else:
        lines["vectors"] = "none"
    lines["size"] = f"{size / 1e6:,.1f} MB"
    lines["seconds"] = ", ".join(f"{step} {seconds:.1f}" for step, seconds in manifest["seconds"].items())
    lines["created"] = manifest["created"]
    lines["fingerprint"] = manifest["fingerprint"]
    return lines
