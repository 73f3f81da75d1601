"""``epicqa collect cord19`` over a release of 3,592 real papers, next to a plain script."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.memory import GIB, measured
from benchmarks.options import parser, work_folder
from benchmarks.sides import console

PLAIN = """
import csv, json, sys
from pathlib import Path
import sentencex
release, out = map(Path, sys.argv[1:])
with (release / "metadata.csv").open(encoding="utf-8", newline="") as table, out.open("w") as sink:
    for row in csv.DictReader(table):
        paper = json.loads((release / row["pdf_json_files"]).read_text("utf-8"))
        texts = [one["text"] for one in paper["abstract"] + paper["body_text"]]
        spans = [
            [(one["start_index"], one["end_index"]) for one in sentencex.get_sentence_boundaries("en", text)]
            for text in texts
        ]
        sink.write(json.dumps([row["cord_uid"], row["title"], texts, spans]) + "\\n")
"""
"""The least of it: a release read, its paragraphs split, written; no checks, no workers, no resuming."""


def main() -> None:
    arguments = parser(__doc__ or "", repeats=1).parse_args()
    tool = arguments.data.parent / "tools" / "expand_cord19.py"
    with work_folder(arguments.work) as work:
        release = work / "release"
        if not (release / "metadata.csv").exists():
            subprocess.run([sys.executable, tool, release], check=True, stdout=subprocess.DEVNULL)
        papers = sum(1 for _ in (release / "document_parses" / "pdf_json").iterdir())
        (work / "plain.py").write_text(PLAIN, "utf-8")
        plain = [sys.executable, str(work / "plain.py"), str(release), str(work / "plain.jsonl")]
        collect = [sys.executable, "-m", "epicqa", "collect", "cord19", str(release)]
        sides = {
            "epicqa collect cord19": [*collect, "--force", "-o", str(work / "collected")],
            "- without near-duplicates": [
                *(*collect, "--force", "-o", str(work / "collected-quick")),
                *("--duplicate-documents", "off", "--duplicate-contexts", "off"),
            ],
            "plain script, one process": plain,
        }
        for _ in range(arguments.repeats):
            for name, command in sides.items():
                used = measured(command, {})
                line = {
                    "benchmark": name,
                    "papers": papers,
                    "papers_per_second": round(papers / used.wall, 1),
                    "papers_per_cpu_second": round(papers / used.cpu, 1),
                    "gib": round(used.together / GIB, 2),
                    "load": round(os.getloadavg()[0], 2),
                }
                console.print(f"{name}: {line['papers_per_second']} papers/s, {line['gib']} GiB")
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
