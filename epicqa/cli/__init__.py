"""The command line: one thin file a verb."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from epicqa import __version__
from epicqa.errors import EpicqaError
from epicqa.normal import printable

VERBS = (
    *("index", "collect", "data", "run", "score", "compare", "explain", "measures", "ask", "check"),
    *("submit", "train", "eval", "claims"),
)


class _Verbs(click.Group):
    """Verbs are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"epicqa.cli.{cmd_name}"), f"{cmd_name}_command")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever reads has read enough; what is left in the buffer has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="epicqa")
def cli() -> None:
    """Answer questions about an epidemic with short passages from its literature, each saying something new.

    \b
    epicqa index                         build an index; with no source, of the bundled sample
    epicqa ask "how long does the virus survive on steel?"
    epicqa collect cord19 DIR -o OUT     make a collection from raw sources: papers, pages, news, Reddit
    epicqa data check DIR                see what of the track's data set is there, and where the rest is
    epicqa run --questions expert        answer a whole set of questions and write a TAC run
    epicqa score runs/sample-expert.tsv  score a run with NDNS
    epicqa compare A.tsv B.tsv           see which run is better, how sure that is, and where
    epicqa explain RUN --question EQ001  see passage by passage what was new to it
    epicqa measures                      what the measures are
    epicqa claims verify "..."           show abstracts that support or refute a scientific claim
    epicqa claims predict ...            label a file of claims with rationales (SciFact)

    indexes/ and runs/ lie in the current folder, or under EPICQA_HOME; caches under EPICQA_CACHE.
    Exit status: 0 done, 1 interrupted or something expected did not hold, 2 bad input.

    Completion: eval "$(_EPICQA_COMPLETE=bash_source epicqa)", or zsh_source, or fish_source.
    """


def main() -> None:
    """Run the command line; errors of the user's become one line and status 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where the terminal's encoding lacks a character, its code is better than a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = cli.main(prog_name="epicqa", standalone_mode=False)
    except EpicqaError as error:
        _fail(str(error), 2)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted; the same command goes on where it stopped", 1)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            _fail(
                "the disk is full; make room and run the same command again, it goes on where it stopped", 2
            )
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", 2)
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> None:
    click.echo(f"epicqa: {' '.join(printable(message).split())}", err=True)
    sys.exit(status)
