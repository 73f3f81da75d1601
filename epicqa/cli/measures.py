"""``epicqa measures``."""

from __future__ import annotations

import click


@click.command("measures")
@click.argument("names", metavar="[MEASURE...]", nargs=-1)
def measures_command(names: tuple[str, ...]) -> None:
    """Tell what measures are: formula, source, range, tie rule.

    \b
    epicqa measures                    all of them, a line each
    epicqa measures exact judged@20    what these are

    Names are those of epicqa score -m; judged@20 comes with --pools.
    """
    from epicqa.measures.catalog import described, listed

    if not names:
        click.echo(listed(), nl=False)
        return
    click.echo("\n".join(described(name) for name in names), nl=False)
