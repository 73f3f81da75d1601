"""``epicqa collect``: one command a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from epicqa.cli.collecting import collecting, run_collect

_INPUTS: dict[str, Any] = {"nargs": -1, "required": True, "type": click.Path(path_type=Path)}


@click.group("collect")
def collect_command() -> None:
    """Make a collection of raw sources: documents in the track's JSON form, for epicqa index.

    \b
    epicqa collect cord19 2020-07-16/ -o papers
    epicqa collect pages saved-pages/ -o pages --url-ids ids.tsv
    epicqa collect news CC-NEWS-*.warc.gz -o news
    epicqa collect reddit submissions.zst comments.zst -o forum
    epicqa collect merge pages news forum -o general --duplicate-documents drop

    What cannot be used is left out and listed in report.tsv, near-duplicates in near-duplicates.tsv. The same
    inputs and options give the same collection; an interrupted command goes on when it is given again.
    """


@collect_command.command("cord19")
@click.argument("release", metavar="RELEASE", type=click.Path(path_type=Path))
@collecting()
def cord19_command(release: Path, settings: Any, engine: Any) -> None:
    """Papers of a CORD-19 RELEASE: its folder, or the .tar.gz or .zip of it.

    A context is a paragraph of the abstract or the body. PMC's parse is preferred over a PDF's; where the
    parse has no abstract, that of metadata.csv stands. The layouts of early 2020 are read, too.
    """
    from epicqa.corpus.sources.cord19 import Cord19

    run_collect(Cord19(), [release], settings, engine)


@collect_command.command("pages")
@click.argument("inputs", metavar="FILE...", **_INPUTS)
@click.option(
    "--url-ids",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Table of addresses and document ids, kept and added to; without one, ids are made of the text.",
)
@click.option(
    "--base-url", metavar="URL", help="Address that names of files are below, for pages that tell none."
)
@collecting()
def pages_command(inputs: tuple[Path, ...], base_url: str | None, settings: Any, engine: Any) -> None:
    """Pages of agencies: HTML, or XML of doc, title, text and sections; files, folders, .tar.gz, .zip.

    Headings become sections, nested ones joined by " - ". An id is the SHA-1 of the page's text, so it
    changes with it; --url-ids keeps it.
    """
    from epicqa.corpus.sources.pages import Pages

    run_collect(Pages(base=base_url), inputs, settings, engine)


@collect_command.command("news")
@click.argument("inputs", metavar="FILE...", **_INPUTS)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="NAME|any",
    help="Keep pages of hosts of this name or below it; may be repeated.  [default: gov and edu]",
)
@click.option(
    "--domains",
    "domains_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File of such names, one a line.",
)
@collecting(terms="covid", where="both")
def news_command(
    inputs: tuple[Path, ...],
    domains: tuple[str, ...],
    domains_file: Path | None,
    settings: Any,
    engine: Any,
) -> None:
    """News of a crawl: WARC, WET, or JSON of pages with sentences; files, folders, .tar.gz, .zip.

    A page stays where a term stands in its title and in its text, and its host is of the domains.
    """
    from epicqa.corpus.sources.news import News, read_domains

    chosen = (*domains, *(read_domains(domains_file) if domains_file else ())) or News().domains
    run_collect(News(domains=() if "any" in chosen else chosen), inputs, settings, engine)


@collect_command.command("reddit")
@click.argument("inputs", metavar="FILE...", **_INPUTS)
@click.option(
    "--subreddit",
    "subreddits",
    multiple=True,
    default=("askscience",),
    show_default=True,
    metavar="NAME|any",
    help="Keep its submissions; may be repeated.",
)
@click.option(
    "--flair",
    "flairs",
    multiple=True,
    default=("COVID-19",),
    show_default=True,
    metavar="TEXT|any",
    help="Keep submissions whose flair holds this; may be repeated.",
)
@click.option(
    "--max-comments",
    type=click.IntRange(0),
    default=30,
    show_default=True,
    help="Of a submission, in top order; 0 for all.",
)
@click.option("--keep-names", is_flag=True, help="Keep users' names in place of pseudonyms.")
@collecting()
def reddit_command(
    inputs: tuple[Path, ...],
    subreddits: tuple[str, ...],
    flairs: tuple[str, ...],
    max_comments: int,
    keep_names: bool,
    settings: Any,
    engine: Any,
) -> None:
    """Threads of Reddit: dumps of submissions and comments, .zst, .jsonl or .json.

    A context is the submission's text or a comment, its section telling who replies to whom. What was
    removed, or has a score of 0 or less, is left out with the replies to it.
    """
    from epicqa.corpus.sources.reddit import Reddit

    source = Reddit(
        subreddits=() if "any" in subreddits else subreddits,
        flairs=() if "any" in flairs else flairs,
        max_comments=max_comments,
        keep_names=keep_names,
    )
    run_collect(source, inputs, settings, engine)


@collect_command.command("merge")
@click.argument("inputs", metavar="COLLECTION...", **_INPUTS)
@collecting(splits=False)
def merge_command(inputs: tuple[Path, ...], settings: Any, engine: Any) -> None:
    """One collection of several, each document id once; the first stays.

    A COLLECTION is whatever epicqa index reads. Contexts, sentences and ids stay as they are.
    """
    from epicqa.corpus.sources.merge import Merge

    run_collect(Merge(), inputs, settings, engine)
