"""Peak resident memory of a whole build and a whole run, and what ``epicqa --help`` costs."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import psutil
from rich.table import Table

from benchmarks.options import parser, work_folder
from benchmarks.sides import console
from epicqa.files import remove_tree

EVERY_SECONDS = 0.1
GIB = 1 << 30
HEAVY = ("torch", "jnius", "faiss", "pyarrow", "transformers", "sentence_transformers")
"""What ``--help`` has no use for."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a command and the processes that it starts took.

    Attributes:
        wall, cpu: seconds.
        largest: bytes, the kernel's peak of the largest single process.
        together: bytes, the highest sum over all processes alive at a time, sampled; a page that two of them
            share or map counts twice, so this is no less than what is really resident.
    """

    wall: float
    cpu: float
    largest: int
    together: int


def measured(command: list[str], environment: dict[str, str]) -> Used:
    """Run a command to its end; stops when it fails."""
    with tempfile.TemporaryFile("w+b") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=output, stderr=subprocess.STDOUT
        )
        together = 0
        watched = psutil.Process(process.pid)
        while True:
            # wait4 reports the process and all that it has waited for itself.
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            together = max(together, _resident(watched))
            time.sleep(EVERY_SECONDS)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            shown = output.read()[-2000:].decode("utf-8", "replace")
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{shown}")
    largest = usage.ru_maxrss * 1024
    return Used(wall, usage.ru_utime + usage.ru_stime, largest, max(together, largest))


def _resident(process: psutil.Process) -> int:
    total = 0
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for one in family:
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def heavy_imports(arguments: list[str]) -> list[str]:
    """Which of the heavy packages a call of ``epicqa`` imports."""
    command = [sys.executable, "-X", "importtime", "-m", "epicqa", *arguments]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in told.splitlines()}
    return [name for name in HEAVY if name in imported]


def main() -> None:
    arguments = parser(__doc__ or "", repeats=5).parse_args()
    epicqa = [sys.executable, "-m", "epicqa"]
    with work_folder(arguments.work) as work:
        home = work / "bench-home"
        remove_tree(home)
        environment = {
            "EPICQA_HOME": str(home),
            "EPICQA_DATA": str(arguments.data / "epicqa" / "questions"),
        }
        helps = [measured([*epicqa, "--help"], environment) for _ in range(arguments.repeats)]
        heavy = heavy_imports(["--help"])
        source = str(arguments.data / "mini" / "expert.jsonl.xz")
        index = measured([*epicqa, "index", source, "--name", "bench", "--threads", "2"], environment)
        answer = "run --questions expert --task all --index bench --tag bench --threads 2"
        run = measured([*epicqa, *answer.split()], environment)
        remove_tree(home)

    table = Table(title="memory and start", title_justify="left")
    for heading in ("", "largest process, GiB", "together, GiB", "limit", "seconds", "CPU seconds"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = (("index mini/expert", index, "3 GiB"), ("run, 75 expert questions", run, "2 GiB"))
    for name, used, limit in rows:
        sizes = f"{used.largest / GIB:.2f}", f"{used.together / GIB:.2f}"
        table.add_row(name, *sizes, limit, f"{used.wall:.1f}", f"{used.cpu:.1f}")
    help_wall, help_cpu = (statistics.median(getattr(one, what) for one in helps) for what in ("wall", "cpu"))
    table.add_row("--help", "", "", "0.3 s CPU", f"{help_wall:.2f}", f"{help_cpu:.2f}")
    console.print(table)
    line = {
        "benchmark": "memory",
        "index_gib": [round(index.largest / GIB, 3), round(index.together / GIB, 3)],
        "run_gib": [round(run.largest / GIB, 3), round(run.together / GIB, 3)],
        "index_seconds": round(index.wall, 1),
        "run_seconds": round(run.wall, 1),
        "help_cpu_seconds": round(help_cpu, 3),
        "help_imports": heavy,
        "load": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(line), flush=True)
    if heavy:
        raise SystemExit(f"epicqa --help imports {', '.join(heavy)}")


if __name__ == "__main__":
    main()
