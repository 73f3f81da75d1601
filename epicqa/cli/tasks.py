"""Options of a command with ``--task`` that are some tasks' only."""

from __future__ import annotations

from collections.abc import Callable

import click

from epicqa.errors import EpicqaError


def check_options(
    context: click.Context, task: str, tasks_of: Callable[[str], tuple[str, ...]]
) -> dict[str, str]:
    """Refuse options that a task has no use for.

    Args:
        context: of the command.
        task: what was chosen.
        tasks_of: the tasks that have a use for an option, by its parameter's name.

    Returns:
        A parameter's name -> its option, of those that were given.

    Raises:
        EpicqaError: an option of other tasks was given.
    """
    given = {
        parameter.name: "/".join([parameter.opts[-1], *parameter.secondary_opts])
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) == click.core.ParameterSource.COMMANDLINE
    }
    for name, option in given.items():
        tasks = tasks_of(name)
        if task not in tasks:
            others = " or ".join(tasks)
            raise EpicqaError(f"{option} is for --task {others}, expected none with --task {task}")
    return given
