"""Scoring next to a plain Python scorer: ideals, a rescore with ideals kept, one large question; and the cost
against contexts and nuggets, of reading a run, and in memory."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.options import parser, work_folder
from benchmarks.plain_scorer import (
    DEPTH,
    MEASURES,
    Contexts,
    Passage,
    add_annotation,
    plain_dns,
    plain_ideal,
    read_plain_judgments,
    read_plain_run,
)
from benchmarks.sides import compare, in_turn
from epicqa.measures import JudgedQuestion, read_judgments, score_run
from epicqa.measures.ideal import ideal_of
from epicqa.measures.judgments import pack_question
from epicqa.measures.ndns import DEFINITIONS, PUBLISHED, TAC2020
from epicqa.measures.spans import every_span, tight_spans
from epicqa.runs import read_run

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"


def main() -> None:
    arguments = parser(__doc__ or "", repeats=5).parse_args()
    with work_folder(arguments.work) as work:
        os.environ["EPICQA_CACHE"] = str(work / "cache")
        plain_ideals = check_golden()
        compare_ideals(plain_ideals)
        compare_large_question()
        judgments = GOLDEN / "synthetic_judgments.json"
        what = "24 questions, 3,191 passages"
        compare_rescore(GOLDEN / "synthetic_a.tsv", judgments, what, arguments.repeats)
        judgments, run = arguments.data / "mini" / "judgments.dev.json", work / "bench-run.tsv"
        write_run(run, judgments, arguments.data / "mini" / "pools.dev.json")
        compare_rescore(run, judgments, "27 questions x 1000 passages", arguments.repeats)
        show_curve()
        show_reading(work)
    peak = psutil.Process().memory_info()
    print(json.dumps({"benchmark": "scoring memory", "resident_mib_at_end": peak.rss >> 20}), flush=True)


def check_golden() -> dict[tuple[str, str, str], float]:
    """The plain scorer's ideals, after its scores and ours were found equal to the golden ones."""
    judgments = GOLDEN / "synthetic_judgments.json"
    plain = read_plain_judgments(judgments)
    labels = {variant.label: variant.name for variant in TAC2020}
    ideals: dict[tuple[str, str, str], float] = {}
    for definition in MEASURES:
        runs = {name: read_plain_run(GOLDEN / f"synthetic_{name}.tsv", definition) for name in "abc"}
        for name, kind in ((name, kind) for name in "abc" for kind in ("expert", "consumer")):
            for row in (GOLDEN / f"{definition}_{name}_{kind}.tsv").read_text("utf-8").splitlines():
                _, question_id, measure, value = row.split("\t")
                if question_id == "MEAN":
                    continue
                measure = labels.get(measure, measure)
                key = (definition, question_id, measure)
                if key not in ideals:
                    ideals[key] = plain_ideal(plain[question_id], definition, measure)
                spans = runs[name].get(question_id, [])
                got = plain_dns(plain[question_id], spans, definition, measure) / ideals[key]
                if abs(got - float(value)) > 1e-12:
                    raise SystemExit(
                        f"the plain scorer differs from golden: {name} {key}: {got}, not {value}"
                    )
    read = read_judgments(judgments)
    for definition, variants in DEFINITIONS.items():
        for question in read.questions.values():
            for variant in variants:
                ours, theirs = (
                    ideal_of(question, variant).dns,
                    ideals[definition, question.question_id, variant.name],
                )
                if ours != theirs and abs(ours - theirs) > 1e-12:
                    raise SystemExit(f"ideals differ: {definition} {question.question_id} {variant.name}")
    return ideals


def compare_ideals(expected: dict[tuple[str, str, str], float]) -> None:
    """Ideals of the 24 synthetic questions in the five measures of tac2020."""
    judgments = GOLDEN / "synthetic_judgments.json"
    ours = read_judgments(judgments).questions.values()
    plain = read_plain_judgments(judgments)

    def theirs() -> None:
        for contexts in plain.values():
            for measure in MEASURES["tac2020"]:
                plain_ideal(contexts, "tac2020", measure)

    timings = in_turn(lambda: [ideal_of(one, variant) for one in ours for variant in TAC2020], theirs, 1, 0)
    apart = max(
        abs(ideal_of(one, variant).dns - expected["tac2020", one.question_id, variant.name])
        for one in ours
        for variant in TAC2020
    )
    name = f"ideals of {len(ours)} questions in {len(TAC2020)} measures"
    compare(name, *timings, "plain Python", largest_difference=apart, wanted=100)


def random_question(contexts: int, nuggets: int, longest: int = 12) -> tuple[JudgedQuestion, Contexts]:
    """Judgments at random, some nuggets stated often and most seldom; in both scorers' forms."""
    draw = random.Random(contexts * 1000 + nuggets)
    weights = [1 / (i + 1) ** 0.7 for i in range(nuggets)]
    bits: dict[str, dict[int, int]] = {}
    plain: Contexts = {}
    for i in range(contexts):
        length = draw.randint(3, longest)
        for number in draw.sample(range(length), draw.randint(2, min(8, length))):
            stated = set(draw.choices(range(nuggets), weights, k=draw.choice([1, 1, 2, 3])))
            add_annotation(plain, f"d{i}-C000-S{number:03d}", (f"N{nugget}" for nugget in stated))
            bits.setdefault(f"d{i}-C000", {})[number] = sum(1 << nugget for nugget in stated)
    return pack_question("EQ001", {f"N{i}": "" for i in range(nuggets)}, bits), plain


def compare_large_question() -> None:
    """Three measures of one question of 300 contexts and about 11,000 spans."""
    question, plain = random_question(300, 40, longest=15)

    def ours() -> list[float]:
        return [ideal_of(question, variant).dns for variant in PUBLISHED]

    def theirs() -> list[float]:
        return [plain_ideal(plain, "published", variant.name) for variant in PUBLISHED]

    kept: list[list[float]] = []
    timings = in_turn(ours, lambda: kept.append(theirs()), 1, 0)
    apart = float(np.abs(np.array(ours()) - kept[0]).max())
    name = f"ideals of one question, 300 contexts, {len(every_span(question))} spans, 3 measures"
    compare(name, *timings, "plain Python", largest_difference=apart, wanted=100)
    if apart > 1e-9:
        raise SystemExit(f"ideals differ by {apart}")


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


def compare_rescore(path: Path, judgments: Path, what: str, repeats: int) -> None:
    """The five measures of tac2020, ideals known to both; with the run read, and to be read."""
    read, run = read_judgments(judgments), read_run(path)
    plain, passages = read_plain_judgments(judgments), read_plain_run(path, "tac2020")
    ideals = score_run(run, read, list(read.questions), definition="tac2020").ideals
    measures = MEASURES["tac2020"]
    best = {
        name: {measure: float(ideals[measure][i]) for measure in measures}
        for i, name in enumerate(read.questions)
    }

    def theirs(passages: dict[str, list[Passage]]) -> list[list[float]]:
        return [
            [plain_dns(plain[name], passages[name], "tac2020", one) / best[name][one] for one in measures]
            for name in best
        ]

    def ours() -> NDArray[np.float64]:
        values = score_run(run, read, list(read.questions), definition="tac2020").values
        return np.column_stack([values[measure] for measure in measures])

    apart = float(np.abs(ours() - np.array(theirs(passages))).max())
    timings = in_turn(ours, lambda: theirs(passages), 4 * repeats)
    compare(f"rescore of {what}, ideals kept", *timings, "plain Python", largest_difference=apart, wanted=20)
    timings = in_turn(
        lambda: score_run(read_run(path), read, list(read.questions), definition="tac2020"),
        lambda: theirs(read_plain_run(path, "tac2020")),
        2 * repeats,
    )
    compare("the same, reading the run", *timings, "plain Python")
    if apart:
        raise SystemExit(f"scores differ from the plain scorer's by {apart}")


def show_curve() -> None:
    """CPU seconds of the ideals of one question in the three published measures, by size."""
    for contexts, nuggets in (
        (30, 20),
        (100, 40),
        (300, 40),
        (300, 300),
        (1000, 100),
        (2500, 200),
        (5000, 300),
    ):
        question, _ = random_question(contexts, nuggets)
        seconds = {}
        for search in ("beam", "best"):
            start = time.process_time()
            for variant in PUBLISHED:
                ideal_of(question, variant, search)
            seconds[search] = round(time.process_time() - start, 3)
        record = {
            "contexts": contexts,
            "nuggets": nuggets,
            "spans": len(tight_spans(question)),
            "cpu": seconds,
        }
        memory = psutil.Process().memory_info().rss >> 20
        print(json.dumps({"benchmark": "ideals by size", **record, "resident_mib": memory}), flush=True)


def show_reading(work: Path) -> None:
    """CPU seconds to read a run of 150 questions x 1000 passages."""
    draw = random.Random(0)
    documents = [f"{draw.getrandbits(160):040x}" for _ in range(20_000)]
    path = work / "bench-long.tsv"
    with path.open("w", encoding="utf-8") as handle:
        for question in range(150):
            for rank in range(1, DEPTH + 1):
                context = f"{draw.choice(documents)}-C{draw.randrange(120):03d}"
                first = draw.randrange(12)
                passage = f"{context}-S{first:03d}:{context}-S{first + draw.randrange(3):03d}"
                score = f"{(DEPTH + 1 - rank) / DEPTH:.6f}"
                handle.write(f"EQ{question:03d}\tQ0\t{passage}\t{rank}\t{score}\tbench\n")
    timings = in_turn(lambda: read_run(path), lambda: read_plain_run(path, "published"), 5)
    path.unlink()
    compare("reading a run of 150 x 1000 passages", *timings, "plain Python, which checks nothing")


if __name__ == "__main__":
    main()
