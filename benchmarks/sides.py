"""Two sides of one job, timed in turn in one process."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console(width=110)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each repeat: on the clock, and of CPU over all threads of this process, Java's too."""

    wall: list[float]
    cpu: list[float]


def in_turn(
    ours: Callable[[], object], peer: Callable[[], object], repeats: int, warm: int = 1
) -> tuple[Timing, Timing]:
    """Time both sides ``repeats`` times after ``warm`` untimed passes; which goes first alternates."""
    for _ in range(warm):
        ours()
        peer()
    timings = Timing([], []), Timing([], [])
    sides = list(zip((ours, peer), timings, strict=True))
    for repeat in range(repeats):
        for job, timing in sides if repeat % 2 == 0 else reversed(sides):
            wall, cpu = time.perf_counter(), time.process_time()
            job()
            timing.wall.append(time.perf_counter() - wall)
            timing.cpu.append(time.process_time() - cpu)
    return timings


def compare(name: str, ours: Timing, peer: Timing, peer_name: str, **facts: Any) -> None:
    """Print a table of both sides and one JSON line.

    The ratio is peer / ours on medians: above 1 ours is faster. ``load`` is the machine's load average of the
    last minute: well above what the benchmark itself uses, the figures are noisy and CPU seconds say more.
    """
    table = Table(title=name, title_justify="left")
    for heading in ("", "seconds (median)", "fastest", "slowest", "CPU seconds (median)"):
        table.add_column(heading, justify="left" if not heading else "right")
    for side, timing in (("epicqa", ours), (peer_name, peer)):
        wall = timing.wall
        figures = (statistics.median(wall), min(wall), max(wall), statistics.median(timing.cpu))
        table.add_row(side, *(f"{figure:.3f}" for figure in figures))
    wall_ratio = statistics.median(peer.wall) / statistics.median(ours.wall)
    cpu_ratio = statistics.median(peer.cpu) / statistics.median(ours.cpu)
    table.add_row("peer / epicqa", f"{wall_ratio:.2f}", "", "", f"{cpu_ratio:.2f}")
    console.print(table)
    line = {
        "benchmark": name,
        "ratio": round(wall_ratio, 3),
        "cpu_ratio": round(cpu_ratio, 3),
        **facts,
        "ours": {"wall": _rounded(ours.wall), "cpu": _rounded(ours.cpu)},
        "peer": {"wall": _rounded(peer.wall), "cpu": _rounded(peer.cpu)},
        "load": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(line), flush=True)


def _rounded(seconds: list[float]) -> list[float]:
    return [round(one, 3) for one in seconds]
