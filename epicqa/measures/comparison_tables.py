"""A comparison of runs as tables for reading, as flat tables and as a record for programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicqa.measures.compare import TIE, Comparison, Contrast
from epicqa.measures.evaluate import DOCUMENTS
from epicqa.measures.ndns import PUBLISHED
from epicqa.measures.significance import is_exact
from epicqa.measures.tables import Cell, Column, Table


def comparison_tables(comparison: Comparison) -> list[Table]:
    """For reading: with a baseline, a table a measure; else one of means, then one of pairs a measure."""
    tables = [] if comparison.baseline is not None else [_means(comparison)]
    return tables + [_contrasts_of(comparison, measure) for measure in comparison.values]


def contrasts_table(comparison: Comparison) -> Table:
    """For other programs: every contrast as a row, with both means."""
    keys = ("measure", "run", "against", "mean", "mean_against", "difference", "low", "high")
    rows = [
        (
            one.measure,
            comparison.names[one.run],
            comparison.names[one.against],
            comparison.scores[one.run].mean(one.measure),
            comparison.scores[one.against].mean(one.measure),
            *(one.difference, one.low, one.high, one.p, one.p_holm, one.wins, one.ties, one.losses),
        )
        for one in comparison.contrasts
    ]
    columns = tuple(Column(key) for key in (*keys, "p", "p_holm", "wins", "ties", "losses"))
    return Table("Runs compared", columns, tuple(rows), _notes(comparison))


def question_tables(comparison: Comparison) -> list[Table]:
    """For reading: a table a measure of each question's values, a column a run, the best of them marked."""
    tables = []
    columns = (
        Column("question"),
        *(Column(f"run{i}", name, ".4f") for i, name in enumerate(comparison.names, 1)),
        Column("best"),
    )
    for measure, values in comparison.values.items():
        rows: list[tuple[Cell, ...]] = []
        for i, question_id in enumerate(comparison.question_ids):
            best = np.flatnonzero(values[:, i] >= values[:, i].max() - TIE)
            leader = comparison.names[best[0]] if len(best) == 1 else None
            rows.append((question_id, *values[:, i].tolist(), leader))
        title = f"{_called(measure)} by question, {_reading(comparison)}"
        tables.append(Table(title, columns, tuple(rows), label=f"questions-{measure}"))
    return tables


def values_table(comparison: Comparison) -> Table:
    """For other programs: a row a measure, question and run."""
    rows = [
        (measure, question_id, name, float(values[run, i]))
        for measure, values in comparison.values.items()
        for i, question_id in enumerate(comparison.question_ids)
        for run, name in enumerate(comparison.names)
    ]
    columns = tuple(Column(key) for key in ("measure", "question", "run", "value"))
    return Table("Values by question", columns, tuple(rows))


def comparison_record(comparison: Comparison, *, per_question: bool = False) -> dict[str, Any]:
    """The comparison as a JSON object; with ``per_question`` the runs have their values, too."""
    runs = []
    for i, (name, one) in enumerate(zip(comparison.names, comparison.scores, strict=True)):
        record: dict[str, Any] = {"name": name, "tag": one.tag, "path": str(one.path)}
        record["mean"] = {measure: one.mean(measure) for measure in comparison.values}
        if per_question:
            record["questions"] = {
                question_id: {measure: float(of[i, at]) for measure, of in comparison.values.items()}
                for at, question_id in enumerate(comparison.question_ids)
            }
        runs.append(record)
    baseline = comparison.baseline
    return {
        "definition": comparison.definition,
        "ideal": comparison.ideal,
        "questions": list(comparison.question_ids),
        "baseline": None if baseline is None else comparison.names[baseline],
        "confidence": comparison.confidence,
        "resamples": comparison.resamples,
        "seed": comparison.seed,
        "runs": runs,
        "contrasts": contrasts_table(comparison).records(),
        "notes": list(_notes(comparison)),
    }


def _means(comparison: Comparison) -> Table:
    columns = (
        Column("run"),
        *(Column(measure, form=".4f", best="highest") for measure in comparison.values),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(one.mean(measure) for measure in comparison.values))
        for name, one in zip(comparison.names, comparison.scores, strict=True)
    )
    title = f"Means, {_reading(comparison)}"
    return Table(title, columns, rows, (_counted(comparison),), label="means")


def _contrasts_of(comparison: Comparison, measure: str) -> Table:
    percent = f"{100 * comparison.confidence:g}%"
    tested = (
        Column("difference", "diff.", "+.4f"),
        Column("low", f"{percent} low", "+.4f"),
        Column("high", f"{percent} high", "+.4f"),
        Column("p", form="p"),
        Column("p_holm", "p (Holm)", "p"),
        Column("wins", "W/T/L"),
    )
    found = [one for one in comparison.contrasts if one.measure == measure]
    notes = _notes(comparison)
    what = f"{_called(measure)}, {_reading(comparison)}"
    if comparison.baseline is None:
        columns: tuple[Column, ...] = (Column("run"), Column("against"), *tested)
        rows = [(comparison.names[one.run], comparison.names[one.against], *_cells(one)) for one in found]
        return Table(f"{what}: every pair of runs", columns, tuple(rows), notes, label=f"pairs-{measure}")
    columns = (Column("run"), Column("mean", form=".4f", best="highest"), *tested)
    cells = {one.run: _cells(one) for one in found}
    nothing: tuple[Cell, ...] = (None,) * len(tested)
    order = [comparison.baseline, *cells]
    against = [
        (comparison.names[run], comparison.scores[run].mean(measure), *cells.get(run, nothing))
        for run in order
    ]
    name = comparison.names[comparison.baseline]
    return Table(f"{what}: runs against {name}", columns, tuple(against), notes, label=f"compare-{measure}")


def _cells(one: Contrast) -> tuple[Cell, ...]:
    outcome = f"{one.wins}/{one.ties}/{one.losses}"
    return one.difference, one.low, one.high, one.p, one.p_holm, outcome


def _reading(comparison: Comparison) -> str:
    if comparison.definition == DOCUMENTS:
        return "documents, by their first passages"
    return f"{comparison.definition} definition"


def _called(measure: str) -> str:
    return f"NDNS {measure}" if measure in {variant.name for variant in PUBLISHED} else measure


def _count(comparison: Comparison) -> str:
    count = len(comparison.question_ids)
    return f"{count} question{'s' if count > 1 else ''}"


def _counted(comparison: Comparison) -> str:
    ideals = {
        "beam": ", NDNS normalised by the beam's ideal",
        "best": ", NDNS normalised by the best ideal found",
    }
    return f"{_count(comparison)}{ideals.get(comparison.ideal, '')}; one missing from a run counts 0."


def _notes(comparison: Comparison) -> tuple[str, ...]:
    """What the figures are."""
    count = len(comparison.question_ids)
    drawn = f"{comparison.resamples} resamples, seed {comparison.seed}"
    ways = f"all {2**count} swaps" if is_exact(count, comparison.resamples) else drawn
    tests = len(comparison.contrasts) // len(comparison.values)
    notes = [
        _counted(comparison),
        f"{100 * comparison.confidence:g}% interval of the difference: BCa bootstrap of questions, {drawn}.",
        f"p: two-sided paired randomisation test, {ways}; Holm: adjusted for {tests} "
        f"test{'s' if tests > 1 else ''} of the measure.",
        f"W/T/L: questions won, tied (difference at most {TIE:.0e}), lost.".replace("e-0", "e-"),
    ]
    # A test of few questions cannot come out, however large the difference.
    if (least := 2.0 ** (1 - count)) > 1 - comparison.confidence:
        notes.append(f"With {_count(comparison)} no p is below {least:g}.")
    return tuple(notes)
