"""Progress of long work, on the standard error stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def steps(transient: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """Bars, one a step: call what this gives with a step's name, how much is done, and of how much.

    Only a terminal shows them: elsewhere the error stream holds nothing but lines to act on.

    Args:
        transient: take them away at the end.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    shown = console.is_terminal
    with Progress(*columns, console=console, disable=not shown, transient=transient) as bars:
        known: dict[str, TaskID] = {}

        def told(step: str, done: int, total: int | None) -> None:
            if step not in known:
                for before in known.values():
                    bars.update(before, total=max(1, bars.tasks[before].completed))
                known[step] = bars.add_task(step, total=total)
            bars.update(known[step], completed=done, total=total)

        yield told
        for task in bars.tasks:
            bars.update(task.id, total=max(1, task.completed), completed=max(1, task.completed))
