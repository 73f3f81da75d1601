"""Scores of claims as tables for reading, and as rows and records for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epicqa.claims.fever_scores import LABEL_KAPPA, FeverScores
from epicqa.claims.retrieval_scores import RetrievalScores
from epicqa.claims.scifact_scores import ClaimScores, Spread
from epicqa.measures.tables import Cell, Column, Table

Scores = ClaimScores | RetrievalScores | FeverScores

_SPREAD = ("deviation", "low", "high")


def flat_table(scores: Scores, spreads: Mapping[str, Spread] | None = None) -> Table:
    """For programs: a row a figure, with its spread where there is one."""
    keys = ("measure", "value", *(_SPREAD if spreads else ()))
    rows: list[tuple[Cell, ...]] = []
    for name, value in scores.values().items():
        rows.append((name, value, *(getattr(spreads[name], key) for key in _SPREAD if spreads)))
    return Table("Scores", tuple(map(Column, keys)), tuple(rows))


def score_table(name: str, scores: Scores, spreads: Mapping[str, Spread] | None = None) -> Table:
    """For reading: a row a measure; a row a figure where there are spreads; FEVER's kappa in the last."""
    title = f"{name}: {_TASKS[_task(scores)]}, {scores.definition} definition, {len(scores.claim_ids)} claims"
    if spreads:
        flat = flat_table(scores, spreads)
        spread_columns = (
            Column("measure"),
            Column("value", form=".4f"),
            Column("deviation", "st. dev.", ".4f"),
            Column("low", "2.5%", ".4f"),
            Column("high", "97.5%", ".4f"),
        )
        note = "Standard deviation and interval: bootstrap over claims."
        return Table(title, spread_columns, flat.rows + _kappa(scores, len(spread_columns)), (note,))
    values = scores.values()
    figures = _FIGURES if isinstance(scores, ClaimScores) else {"value": ""}
    totals = scores.totals()
    counted = _counted(scores)
    columns = (
        Column("measure"),
        *(Column(key, form=".4f") for key in figures),
        # Of FEVER's precision a sum of shares, which a plain number would show to the last bit.
        *(Column(key, form=".8g" if isinstance(scores, FeverScores) else "") for key in counted),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            measure,
            *(values[f"{measure}{figure}"] for figure in figures.values()),
            # FEVER's F1 counts nothing of its own.
            *totals.get(measure, (None,) * len(counted)),
        )
        for measure in (totals if isinstance(scores, ClaimScores) else values)
    )
    return Table(title, columns, rows + _kappa(scores, len(columns)))


def score_record(name: str, scores: Scores, spreads: Mapping[str, Spread] | None = None) -> dict[str, Any]:
    """A JSON object: what was scored and how, values, counts, spreads."""
    record: dict[str, Any] = {
        "task": _task(scores),
        "predictions": name,
        "definition": scores.definition,
        "claims": len(scores.claim_ids),
        "values": scores.values(),
        "counts": {
            measure: dict(zip(_counted(scores), counts, strict=True))
            for measure, counts in scores.totals().items()
        },
    }
    if isinstance(scores, FeverScores):
        record[LABEL_KAPPA] = scores.label_kappa
    if spreads:
        record["bootstrap"] = {
            one: {key: getattr(spread, key) for key in _SPREAD} for one, spread in spreads.items()
        }
    return record


_TASKS = {"scifact": "SciFact", "fever": "FEVER"}
_FIGURES = {"precision": "_p", "recall": "_r", "F1": "_f1"}


def _kappa(scores: Scores, columns: int) -> tuple[tuple[Cell, ...], ...]:
    """The row of FEVER's kappa, which is none of its measures, and counts nothing."""
    if not isinstance(scores, FeverScores):
        return ()
    return ((LABEL_KAPPA, scores.label_kappa, *(None,) * (columns - 2)),)


def _task(scores: Scores) -> str:
    return "fever" if isinstance(scores, FeverScores) else "scifact"


def _counted(scores: Scores) -> tuple[str, ...]:
    return ("right", "predicted", "gold") if isinstance(scores, ClaimScores) else ("right", "of")
