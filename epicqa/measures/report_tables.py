"""What a report says, as tables: of runs and of the ideal rankings, over the questions scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from epicqa.measures.ideals import ideals_of
from epicqa.measures.judgments import JudgedQuestion, Judgments, nugget_bits
from epicqa.measures.locate import Located, locate_all
from epicqa.measures.ndns import DEFINITIONS, MAX_RANK, Variant, gains
from epicqa.measures.nuggets import first_ranks
from epicqa.measures.score import Scores, run_names
from epicqa.measures.tables import Cell, Column, Table
from epicqa.runs.model import Run

_RANKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
# The least length of each class of passages.
_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 25)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a ranking of each question finds.

    Attributes:
        share: float64[1000], mean over the questions of the share of nuggets found up to each rank.
        first: question id -> nugget id -> rank of the first passage that states it.
        depth: the longest ranking.
        passages: int64[classes of length], passages of each length.
        stating: int64[classes of length], those that state a nugget.
        gain: float64[classes of length], the sum of what they gain.
    """

    share: NDArray[np.float64]
    first: dict[str, dict[str, int | None]]
    depth: int
    passages: NDArray[np.int64]
    stating: NDArray[np.int64]
    gain: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What a report is made of.

    Attributes:
        names: of the runs, all different.
        scores, runs: in the same order.
        judgments: the nuggets.
        questions: ids of all questions scored, in the judgments' order.
        measures: of all scores.
        measure: the one that plots show.
        variant: the measure of gains.
        found: of each run.
        ideal: of the ideal rankings.
    """

    names: tuple[str, ...]
    scores: tuple[Scores, ...]
    runs: tuple[Run, ...]
    judgments: Judgments
    questions: tuple[str, ...]
    measures: tuple[str, ...]
    measure: str
    variant: Variant
    found: tuple[Found, ...]
    ideal: Found

    @property
    def depth(self) -> int:
        return max(*(one.depth for one in self.found), self.ideal.depth)

    @property
    def n_lengths(self) -> int:
        """Classes of length up to the last that has passages."""
        return int(np.flatnonzero(sum(one.passages for one in self.found)).max(initial=0)) + 1


def gathered(scores: Sequence[Scores], runs: Sequence[Run], judgments: Judgments) -> Material:
    head = scores[0]
    scored = {question_id for one in scores for question_id in one.question_ids}
    questions = tuple(question_id for question_id in judgments.questions if question_id in scored)
    measures = tuple(dict.fromkeys(measure for one in scores for measure in one.values))
    variants = {variant.name: variant for variant in DEFINITIONS[head.definition]}
    measure = next((measure for measure in measures if measure in variants), measures[0])
    variant = variants.get(measure, DEFINITIONS[head.definition][0])
    ideals = ideals_of(judgments, questions, [variant], head.ideal)
    best = [Located(np.arange(len(one.gain)), one.context, one.first, one.last) for (one,) in ideals]
    found = []
    for one, run in zip(scores, runs, strict=True):
        judged = [judgments.questions[question_id] for question_id in one.question_ids]
        found.append(_found_by(judged, locate_all(run, judged, head.definition), variant, run))
    return Material(
        run_names(scores),
        tuple(scores),
        tuple(runs),
        judgments,
        questions,
        measures,
        measure,
        variant,
        tuple(found),
        _found_by([judgments.questions[name] for name in questions], best, variant),
    )


def _found_by(
    judged: Sequence[JudgedQuestion],
    rankings: Iterator[Located | None] | Sequence[Located],
    variant: Variant,
    run: Run | None = None,
) -> Found:
    """What rankings find; passages of the run that span contexts have no length."""
    share = np.zeros(MAX_RANK)
    first: dict[str, dict[str, int | None]] = {}
    passages, stating = np.zeros((2, len(_LENGTHS)), dtype=np.int64)
    gained = np.zeros(len(_LENGTHS))
    depth = 0
    for question, located in zip(judged, rankings, strict=True):
        if located is None:
            first[question.question_id] = dict.fromkeys(question.nuggets)
            continue
        found = gains(question, *located.placed, [variant])
        stated = np.bitwise_count(np.bitwise_or.reduce(question.mask, axis=0)).sum()
        new = np.bitwise_count(found.new).sum(axis=1)
        share += np.bincount(found.rank, weights=new, minlength=MAX_RANK).cumsum() / stated
        first[question.question_id] = first_ranks(question, *located.placed)
        depth = max(depth, len(located.position))
        whole = located.first <= located.last
        if run is not None:
            of_run = run.questions[question.question_id]
            whole &= (of_run.first_context == of_run.last_context)[located.position]
        size = np.searchsorted(_LENGTHS, located.last - located.first + 1, side="right") - 1
        passages += np.bincount(size[whole], minlength=len(_LENGTHS))
        states = found.rank[whole[found.rank]]
        stating += np.bincount(size[states], minlength=len(_LENGTHS))
        gain = found.gain[0, whole[found.rank]]
        gained += np.bincount(size[states], weights=gain, minlength=len(_LENGTHS))
    return Found(share / len(judged), first, depth, passages, stating, gained)


def called(material: Material, measure: str) -> str:
    """A measure as people say it."""
    ours = measure in material.scores[0].ideals and not measure.startswith("ndcg")
    return f"NDNS {measure}" if ours else measure


def length_labels() -> list[str]:
    labels = []
    for low, after in pairwise(_LENGTHS):
        labels.append(str(low) if after == low + 1 else f"{low}-{after - 1}")
    return [*labels, f"{_LENGTHS[-1]}+"]


def values_of(one: Scores, measure: str, questions: Sequence[str]) -> list[float]:
    """A run's values of questions, NaN where it has none."""
    if measure not in one.values:
        return [np.nan] * len(questions)
    values = dict(zip(one.question_ids, one.values[measure].tolist(), strict=True))
    return [values.get(question_id, np.nan) for question_id in questions]


def means(material: Material) -> Table:
    columns = (
        Column("run"),
        Column("questions"),
        *(
            Column(measure, called(material, measure), ".4f", "highest" if len(material.runs) > 1 else "")
            for measure in material.measures
        ),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            len(one.question_ids),
            *(one.mean(measure) if measure in one.values else None for measure in material.measures),
        )
        for name, one in zip(material.names, material.scores, strict=True)
    ]
    return Table("Means over questions", columns, tuple(rows), label="means")


def per_question(material: Material) -> Table:
    """For other programs: a row a question and run."""
    columns = (
        Column("question"),
        Column("run"),
        *(Column(measure, form=".4f", best="highest") for measure in material.measures),
    )
    values = [
        [values_of(one, measure, material.questions) for measure in material.measures]
        for one in material.scores
    ]
    rows: list[tuple[Cell, ...]] = []
    sections = []
    for at, question_id in enumerate(material.questions):
        sections.append(len(rows))
        for name, one, of_run in zip(material.names, material.scores, values, strict=True):
            if question_id in one.question_ids:
                rows.append((question_id, name, *(row[at] for row in of_run)))
    return Table("Scores by question", columns, tuple(rows), sections=tuple(sections), label="per-question")


def matrix(material: Material, measure: str) -> Table:
    """For reading: a row a question, a column a run, and the means."""
    columns = (
        Column("question"),
        *(Column(f"run{i}", name, ".4f") for i, name in enumerate(material.names, 1)),
    )
    values = np.array([values_of(one, measure, material.questions) for one in material.scores]).T
    rows: list[tuple[Cell, ...]] = [
        (question_id, *row.tolist()) for question_id, row in zip(material.questions, values, strict=True)
    ]
    means = [one.mean(measure) if measure in one.values else None for one in material.scores]
    rows.append(("mean", *means))
    return Table(called(material, measure), columns, tuple(rows), sections=(len(rows) - 1,))


def first_rank_table(material: Material) -> Table:
    """A row a nugget that some sentence states, with the rank of the first passage that does."""
    columns = (
        Column("question"),
        Column("nugget"),
        Column("text"),
        *(Column(f"rank:{name}", name, best="lowest") for name in material.names),
        Column("ideal"),
    )
    rows: list[tuple[Cell, ...]] = []
    sections = []
    for question_id in material.questions:
        sections.append(len(rows))
        rows += [(question_id, *row) for row in nuggets_of(material, question_id).rows]
    return Table(
        "First rank of each nugget",
        columns,
        tuple(rows),
        sections=tuple(sections),
        label="nuggets-first-rank",
    )


def nuggets_of(material: Material, question_id: str) -> Table:
    """A question's nuggets that some sentence states, titled with how many were found."""
    question = material.judgments.questions[question_id]
    bits = np.logical_or.reduce(nugget_bits(question.mask, len(question.nuggets)), axis=0)
    rankings = [one.first.get(question_id, {}) for one in (*material.found, material.ideal)]
    rows: list[tuple[Cell, ...]] = [
        (nugget_id, text, *(ranks.get(nugget_id) for ranks in rankings))
        for (nugget_id, text), bit in zip(question.nuggets.items(), bits.tolist(), strict=True)
        if bit
    ]
    counts = [sum(row[2 + i] is not None for row in rows) for i in range(len(material.names))]
    title = f"{question_id}: {', '.join(map(str, counts))} of {len(rows)} nuggets found"
    columns = (
        Column("nugget"),
        Column("text"),
        *(Column(f"run{i}", name) for i, name in enumerate(material.names, 1)),
        Column("ideal"),
    )
    return Table(title, columns, tuple(rows))


def discovery(material: Material) -> Table:
    columns = (
        Column("rank"),
        *(Column(f"share:{name}", name, ".4f", "highest") for name in material.names),
        Column("ideal", form=".4f"),
    )
    ranks = [rank for rank in _RANKS if rank <= material.depth]
    rows: list[tuple[Cell, ...]] = [
        (rank, *(float(one.share[rank - 1]) for one in (*material.found, material.ideal))) for rank in ranks
    ]
    return Table("Mean share of nuggets found up to a rank", columns, tuple(rows), label="discovery")


def by_length(material: Material) -> Table:
    columns = (
        Column("run"),
        Column("sentences"),
        Column("passages"),
        Column("stating", "stating a nugget"),
        Column("gain", "their mean gain", ".4f"),
    )
    rows: list[tuple[Cell, ...]] = []
    sections = []
    for name, one in zip(material.names, material.found, strict=True):
        sections.append(len(rows))
        for i, label in enumerate(length_labels()[: material.n_lengths]):
            stating = int(one.stating[i])
            mean = float(one.gain[i]) / stating if stating else None
            rows.append((name, label, int(one.passages[i]), stating, mean))
    return Table(
        f"Gain ({material.variant.name}) by length of passage",
        columns,
        tuple(rows),
        sections=tuple(sections),
        label="gain-by-length",
    )
