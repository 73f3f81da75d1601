"""Figures of the ablation with their intervals, as tables for a terminal and for Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.collections import Collection
from epicqa.config import Config, as_dict
from epicqa.measures.pools import JUDGED
from epicqa.measures.score import Scores
from epicqa.measures.significance import paired_bootstrap
from epicqa.measures.tables import Cell, Column, Table, shown

BASELINE = "fields"
"""The row that all are compared with: plain BM25 with all that a question says."""

RESAMPLES = 10_000

INTERVALS = (
    "95% intervals by the bootstrap over questions (BCa). Differences are of means, in percent of the other "
    "row's; their intervals are of the paired differences."
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        name: one word.
        label: what the stage is called.
        config: how its runs are made.
        over: the row that it is compared with besides the baseline, empty: none.
        apart: it stands below the line, not on the way to the default.
    """

    name: str
    label: str
    config: Config
    over: str = ""
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and the 95% interval around it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Result:
    """What the rows came to on one set.

    Attributes:
        collection: the set.
        rows: those that were run.
        scores: of each row, by its name; the same questions and measures.
        sentences: in the set's index.
        fingerprint: of the index.
    """

    collection: Collection
    rows: tuple[Row, ...]
    scores: dict[str, Scores]
    sentences: int
    fingerprint: str

    @property
    def question_ids(self) -> tuple[str, ...]:
        return self._first.question_ids

    @property
    def measures(self) -> tuple[str, ...]:
        """The main one first."""
        return tuple(self._first.values)

    @property
    def _first(self) -> Scores:
        return next(iter(self.scores.values()))

    def values(self, row: str) -> NDArray[np.float64]:
        """float64[n_measures, n_questions]."""
        return np.stack([self.scores[row].values[measure] for measure in self.measures])

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Rows that are compared, and with what: all with the baseline, then some with another."""
        there = [
            *((row.name, BASELINE) for row in self.rows),
            *((row.name, row.over) for row in self.rows if row.over),
        ]
        return tuple((row, other) for row, other in there if other in self.scores and row != other)

    @cached_property
    def means(self) -> dict[tuple[str, str], Estimate]:
        """By row and measure."""
        ends = paired_bootstrap([self.values(row.name) for row in self.rows], resamples=RESAMPLES)
        return {
            (row.name, measure): Estimate(self.scores[row.name].mean(measure), *ends[i, j].tolist())
            for i, row in enumerate(self.rows)
            for j, measure in enumerate(self.measures)
        }

    @cached_property
    def gains(self) -> dict[tuple[str, str, str], Estimate]:
        """Percent by row, the other row and measure; none where the other's mean is 0."""
        if not self.pairs:
            return {}
        ends = paired_bootstrap(
            [self.values(row) - self.values(other) for row, other in self.pairs], resamples=RESAMPLES
        )
        found = {}
        for i, (row, other) in enumerate(self.pairs):
            for j, measure in enumerate(self.measures):
                base = self.scores[other].mean(measure)
                if base:
                    gain = self.scores[row].mean(measure) - base
                    numbers = (100 * one / base for one in (gain, *ends[i, j].tolist()))
                    found[row, other, measure] = Estimate(*numbers)
        return found


def tables(results: Sequence[Result]) -> list[Table]:
    """The main measures of all sets side by side, then each set that has more than those."""
    found = []
    if len(results) > 1:
        main = [(one, one.measures[0], f"{one.collection.name} {one.measures[0]}") for one in results]
        seen = (f"{one.collection.name}: {one.collection.seen}" for one in results)
        found += _pair("All sets, main measure", main, (INTERVALS, *seen))
    for one in results:
        if len(results) == 1 or len(one.measures) > 1:
            title = f"{one.collection.name}: {len(one.question_ids)} questions, {one.sentences:,} sentences"
            every = [(one, measure, measure) for measure in one.measures]
            found += _pair(title, every, (INTERVALS, one.collection.seen) if len(results) == 1 else ())
    return found


def _pair(title: str, columns: Sequence[tuple[Result, str, str]], notes: tuple[str, ...]) -> list[Table]:
    """Means, and differences where there are any; a column is a result, a measure and a heading."""
    first = columns[0][0]
    labels = {row.name: row.label for row in first.rows}
    names = [row.name for row in first.rows]
    apart = [i for i, row in enumerate(first.rows) if row.apart]
    means = _table(
        title,
        columns,
        [
            (labels[name], [_mean(one.means.get((name, measure))) for one, measure, _ in columns])
            for name in names
        ],
        tuple(apart[:1]),
        () if first.pairs else notes,
    )
    if not first.pairs:
        return [means]
    # What the judgments reach to is no quality.
    compared = [column for column in columns if column[1] != JUDGED]
    lines = []
    for name, other in first.pairs:
        label = labels[name] if other == BASELINE else f"{labels[name]} / {labels[other]}"
        cells = [_gain(one.gains.get((name, other, measure))) for one, measure, _ in compared]
        lines.append((label, cells))
    plain = [name for name, other in first.pairs if other == BASELINE]
    below = [i for i, name in enumerate(plain) if name in {first.rows[j].name for j in apart}]
    return [
        means,
        _table(
            f"{title}: % over {labels.get(BASELINE, BASELINE)}, or over the row after the slash",
            compared,
            lines,
            (*below[:1], len(plain)),
            notes,
        ),
    ]


def _table(
    title: str,
    columns: Sequence[tuple[Result, str, str]],
    lines: Sequence[tuple[str, list[str | None]]],
    sections: tuple[int, ...],
    notes: tuple[str, ...],
) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple((label, *cells) for label, cells in lines)
    return Table(title, (Column("row"), *(Column(name) for *_, name in columns)), rows, notes, sections)


def _mean(found: Estimate | None) -> str | None:
    if found is None:
        return None
    return f"{found.value:.3f} ({found.low:.2f}-{found.high:.2f})".replace("0.", ".")


def _gain(found: Estimate | None) -> str | None:
    return None if found is None else f"{found.value:+.1f} ({found.low:+.0f}, {found.high:+.0f})"


def to_markdown(table: Table) -> str:
    """Title, table and notes in Markdown; an empty row stands for a rule."""
    lines = [f"**{table.title}**", "", _line([column.heading for column in table.columns])]
    lines.append("|---" * len(table.columns) + "|")
    for at, row in enumerate(table.rows):
        if at and at in table.sections:
            lines.append(_line([""] * len(row)))
        lines.append(_line([shown(cell) for cell in row]))
    for note in table.notes:
        lines += ["", note]
    return "".join(f"{line}\n" for line in lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def record(results: Sequence[Result]) -> dict[str, Any]:
    """Everything as JSON holds it: means, differences, and the values of every question."""
    return {
        "intervals": INTERVALS,
        "resamples": RESAMPLES,
        "rows": {
            row.name: {"label": row.label, "over": row.over, "config": as_dict(row.config)}
            for row in results[0].rows
        },
        "sets": {one.collection.name: _set_record(one) for one in results},
    }


def _set_record(one: Result) -> dict[str, Any]:
    return {
        "seen": one.collection.seen,
        "sentences": one.sentences,
        "index_fingerprint": one.fingerprint,
        "questions": list(one.question_ids),
        "rows": {
            row.name: {
                "run": str(one.scores[row.name].path),
                "measures": {
                    measure: {
                        **_ends(one.means[row.name, measure]),
                        "values": one.scores[row.name].values[measure].tolist(),
                    }
                    for measure in one.measures
                },
                "percent_over": {
                    other: {
                        measure: _ends(one.gains[name, other, measure])
                        for measure in one.measures
                        if (name, other, measure) in one.gains
                    }
                    for name, other in one.pairs
                    if name == row.name
                },
            }
            for row in one.rows
        },
    }


def _ends(found: Estimate) -> dict[str, float]:
    return {"mean": found.value, "low": found.low, "high": found.high}
