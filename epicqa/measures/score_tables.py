"""Scores as tables for reading, as rows and records for programs, and as the released script's ideal file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epicqa.measures.evaluate import DOCUMENTS
from epicqa.measures.ndns import DEFINITIONS
from epicqa.measures.score import Scores, run_names
from epicqa.measures.tables import Cell, Column, Table

MEAN = "MEAN"


def score_tables(scores: Sequence[Scores]) -> list[Table]:
    """For reading: a table a run of its questions and means; for several runs one of all means."""
    tables = []
    for definition in dict.fromkeys(one.definition for one in scores):
        alike = [one for one in scores if one.definition == definition]
        names = run_names(alike)
        tables += [_questions(name, one) for name, one in zip(names, alike, strict=True)]
        if len(alike) > 1:
            tables.append(_means(names, alike))
    return tables


def flat_table(scores: Sequence[Scores]) -> Table:
    """For programs: a row a value, the means after all questions."""
    rows = tuple((*row[:3], row[3]) for row in score_rows(scores))
    return Table("Scores", tuple(map(Column, ("run", "question", "measure", "value"))), rows)


def score_rows(scores: Sequence[Scores]) -> list[tuple[str, str, str, float]]:
    """Tag, question id, measure, value; the means, with ``MEAN`` for a question, after all questions."""
    rows = [
        (one.tag, question_id, measure, float(values[i]))
        for one in scores
        for i, question_id in enumerate(one.question_ids)
        for measure, values in one.values.items()
    ]
    return rows + [(one.tag, MEAN, measure, one.mean(measure)) for one in scores for measure in one.values]


def score_records(scores: Sequence[Scores]) -> list[dict[str, Any]]:
    """A JSON object a run: values, means and ideals by question, and what they mean."""
    return [
        {
            "tag": one.tag,
            "run": str(one.path),
            "definition": one.definition,
            "ideal": one.ideal or None,
            "questions": {
                question_id: {measure: float(values[i]) for measure, values in one.values.items()}
                for i, question_id in enumerate(one.question_ids)
            },
            "mean": {measure: one.mean(measure) for measure in one.values},
            "ideal_dns": {
                question_id: {measure: float(values[i]) for measure, values in one.ideals.items()}
                for i, question_id in enumerate(one.question_ids)
                if one.ideals
            },
            "notes": list(one.notes),
        }
        for one in scores
    ]


def ideal_file(scores: Sequence[Scores]) -> str:
    """The released script's file of ideal scores: ``ideal``, question, measure, DNS, parted by tabs.

    Args:
        scores: of the definition ``tac2020``, all over the same judgments.
    """
    best: dict[str, list[str]] = {}
    for one in scores:
        # The script's own order of measures.
        variants = sorted(
            (variant for variant in DEFINITIONS[one.definition] if variant.name in one.ideals),
            key=lambda variant: ("partial", "relaxed", "exact", "ndcg-exact", "ndcg").index(variant.name),
        )
        for i, question_id in enumerate(one.question_ids):
            best[question_id] = [
                f"ideal\t{question_id}\t{variant.label}\t{float(one.ideals[variant.name][i])!r}\n"
                for variant in variants
            ]
    return "".join(line for lines in best.values() for line in lines)


def _questions(name: str, one: Scores) -> Table:
    columns = (Column("question"), *(Column(measure, form=".4f") for measure in one.values))
    rows: list[tuple[Cell, ...]] = [
        (question_id, *(float(values[i]) for values in one.values.values()))
        for i, question_id in enumerate(one.question_ids)
    ]
    rows.append((MEAN, *(one.mean(measure) for measure in one.values)))
    return Table(
        f"{name}: {_what(one)}",
        columns,
        tuple(rows),
        one.notes,
        sections=(len(rows) - 1,),
        label=f"scores-{name}",
    )


def _means(names: Sequence[str], scores: Sequence[Scores]) -> Table:
    columns = (
        Column("run"),
        Column("questions"),
        *(Column(measure, form=".4f", best="highest") for measure in scores[0].values),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, len(one.question_ids), *(one.mean(measure) for measure in one.values))
        for name, one in zip(names, scores, strict=True)
    )
    return Table(f"Means: {_what(scores[0])}", columns, rows, label=f"means-{scores[0].definition}")


def _what(one: Scores) -> str:
    if one.definition == DOCUMENTS:
        return "documents, by their first passages"
    ideal = "" if one.ideal == "beam" else f", ideal: {one.ideal}"
    return f"NDNS, {one.definition} definition{ideal}"
