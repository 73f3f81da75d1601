"""Scoring a run of 1000 passages a question, next to the definition as plain Python loops."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import parser, work_folder
from benchmarks.sides import compare, in_turn
from epicqa.measures import read_judgments, score_run
from epicqa.measures.ideal import ideal_dns
from epicqa.measures.ndns import PUBLISHED
from epicqa.runs import read_run

DEPTH, WIDTH = 1000, 10
MEASURES = ("exact", "partial", "relaxed")

Sentences = dict[str, dict[int, set[str]]]
Span = tuple[str, int, int]


def write_run(path: Path, judgments: Path, pools: Path) -> None:
    """A valid run of passages from each question's pool and from contexts that nobody read, at random."""
    draw = random.Random(0)
    pool = json.loads(pools.read_bytes())
    lines = []
    for question in json.loads(judgments.read_bytes()):
        name = question["question_id"]
        passages = []
        for context in pool[name] + [f"unread-C{number:03d}" for number in range(200)]:
            first = 0
            while first < 12:
                last = first + draw.randrange(3)
                passages.append(f"{context}-S{first:03d}:{context}-S{last:03d}")
                first = last + 1
        for rank, passage in enumerate(draw.sample(passages, DEPTH), 1):
            lines.append(f"{name}\tQ0\t{passage}\t{rank}\t{(DEPTH + 1 - rank) / DEPTH:.6f}\tbench\n")
    path.write_text("".join(lines), "utf-8")


def plain_gain(sentences: Sentences, span: Span, seen: set[str]) -> tuple[list[float], set[str]]:
    """The gain of a span in each measure, and its new nuggets."""
    context, first, last = span
    new: set[str] = set()
    novel = redundant = filler = 0
    annotated = sentences.get(context, {})
    for number in range(first, last + 1):
        nuggets = annotated.get(number, set())
        unseen = nuggets - seen
        new |= unseen
        novel += bool(unseen)
        redundant += bool(nuggets) and not unseen
        filler += not nuggets
    sizes = (
        filler + redundant + novel,
        filler + redundant + min(novel, 1),
        filler + min(redundant, 1) + min(novel, 1),
    )
    count = len(new)
    return [count * (count + 1) / (count + size) if count else 0.0 for size in sizes], new


def plain_dns(sentences: Sentences, spans: list[Span]) -> list[float]:
    totals, seen = [0.0, 0.0, 0.0], set[str]()
    for rank, span in enumerate(spans[:DEPTH], 1):
        gains, new = plain_gain(sentences, span, seen)
        totals = [total + gain / math.log2(rank + 1) for total, gain in zip(totals, gains, strict=True)]
        seen |= new
    return totals


def plain_ideal(sentences: Sentences, measure: int) -> float:
    spans = [
        (context, first, last)
        for context, annotated in sentences.items()
        for first in range(min(annotated), max(annotated) + 1)
        for last in range(first, max(annotated) + 1)
    ]
    beam: list[tuple[float, set[str]]] = [(0.0, set())]
    for rank in range(1, DEPTH + 1):
        extended = []
        for total, seen in beam:
            for span in spans:
                gains, new = plain_gain(sentences, span, seen)
                if new:
                    extended.append((total + gains[measure] / math.log2(rank + 1), seen | new))
        if not extended:
            break
        beam = sorted(extended, key=lambda state: -state[0])[:WIDTH]
    return beam[0][0]


def plain_spans(run: Path) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for line in run.read_text("utf-8").splitlines():
        question_id, _, passage, *_ = line.split("\t")
        (context, first), (_, last) = (part.rsplit("-S", 1) for part in passage.split(":"))
        spans.setdefault(question_id, []).append((context, int(first), int(last)))
    return spans


def plain_judgments(path: Path) -> dict[str, Sentences]:
    found: dict[str, Sentences] = {}
    for question in json.loads(path.read_bytes()):
        sentences = found.setdefault(question["question_id"], {})
        for annotation in question["annotations"]:
            context, number = annotation["sentence_id"].rsplit("-S", 1)
            sentences.setdefault(context, {})[int(number)] = set(annotation["nugget_ids"])
    return found


def main() -> None:
    arguments = parser(__doc__ or "", repeats=5).parse_args()
    judgments = arguments.data / "mini" / "judgments.dev.json"
    with work_folder(arguments.work) as work:
        path = work / "bench-run.tsv"
        write_run(path, judgments, arguments.data / "mini" / "pools.dev.json")
        run, known = read_run(path), read_judgments(judgments)
        spans, sentences = plain_spans(path), plain_judgments(judgments)
        path.unlink()
    expected: dict[str, list[float]] = {}

    def ours() -> NDArray[np.float64]:
        values = score_run(run, known).values
        return np.column_stack([values[measure] for measure in MEASURES])

    def plain() -> list[list[float]]:
        return [
            [
                total / ideal
                for total, ideal in zip(plain_dns(sentences[name], spans[name]), best, strict=True)
            ]
            for name, best in expected.items()
        ]

    def our_ideals() -> None:
        ideal_dns.cache_clear()
        for question in known.questions.values():
            for variant in PUBLISHED:
                ideal_dns(question, variant)

    def plain_ideals() -> None:
        for name, judged in sentences.items():
            expected[name] = [plain_ideal(judged, measure) for measure in range(len(MEASURES))]

    # The plain beam takes seconds and nothing in it warms up.
    ideals = in_turn(our_ideals, plain_ideals, 2, warm=0)
    scored = in_turn(ours, plain, 4 * arguments.repeats)
    apart = float(np.abs(ours() - np.array(plain())).max())
    compare(f"ideal DNS of {len(sentences)} questions", *ideals, "plain loops")
    compare(
        f"NDNS of {len(sentences)} questions x {DEPTH} passages, read and ideals known",
        *scored,
        "plain loops",
        largest_difference=apart,
    )
    if apart > 1e-12:
        raise SystemExit(f"scores differ from the plain loops' by {apart}")


if __name__ == "__main__":
    main()
