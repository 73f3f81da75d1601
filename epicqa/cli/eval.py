"""``epicqa eval``."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("eval")
@click.argument("experiments", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.pass_context
def eval_command(context: click.Context, experiments: tuple[Path, ...], as_json: bool) -> None:
    """Repeat experiments and tell which scores have moved.

    A FILE is an experiment in TOML, as in eval/: commands, inputs with fingerprints, expected scores. One
    whose inputs are not there is left out. Status 1: a score moved or an input is another file.
    """
    from epicqa.experiments import perform, read_experiment

    outcomes = []
    for one in [read_experiment(path) for path in experiments]:
        outcomes.append(perform(one))
        if not as_json:
            outcome = outcomes[-1]
            shown = "  ".join(f"{name} {value:.4f}" for name, value in outcome.measured.items())
            why = f" ({outcome.why})" if outcome.why else ""
            click.echo(f"{one.path.name}: {outcome.status}{why}  {shown}".rstrip())
    if as_json:
        records = [
            {
                "experiment": str(one.experiment.path),
                "status": one.status,
                "why": one.why,
                "measured": one.measured,
                "expected": one.experiment.expected,
            }
            for one in outcomes
        ]
        click.echo(json.dumps(records, indent=1))
    context.exit(int(any(one.status in ("moved", "inputs differ") for one in outcomes)))
