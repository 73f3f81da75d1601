"""``epicqa claims``."""

from __future__ import annotations

import click

from epicqa.cli.claims_predict import predict_command
from epicqa.cli.claims_retrieve import retrieve_command
from epicqa.cli.claims_train import train_command
from epicqa.cli.claims_verify import verify_command


@click.group("claims")
def claims_command() -> None:
    """Verify claims by the abstracts of papers (SciFact), or by pages of Wikipedia (FEVER)."""


claims_command.add_command(retrieve_command)
claims_command.add_command(predict_command)
claims_command.add_command(train_command)
claims_command.add_command(verify_command)
