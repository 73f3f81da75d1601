"""All benchmarks, one after the other, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.options import parser, work_folder

NAMES = ("search", "index", "scoring", "collect", "near_duplicates", "memory")


def main() -> None:
    arguments = parser(__doc__ or "", repeats=5).parse_args()
    failed = []
    with work_folder(arguments.work) as work:
        for name in NAMES:
            options = [str(arguments.data), "--work", str(work), "--repeats", str(arguments.repeats)]
            if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=False).returncode:
                failed.append(name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
