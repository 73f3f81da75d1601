"""FEVER's system part by part: ``python -m benchmarks.quality.fever [FOLDER]``.

Prints Markdown tables, or all figures as JSON: how much evidence each row of retrieval finds; then, for each
model, FEVER's measures where premises are read one at a time or five at once, of five sentences, of entire
articles, and of five sentences that hold the evidence. Rows are those of Malon, "Team Papelo: Transformer
Networks at FEVER", FEVER workshop 2018.

FOLDER holds ``claims.jsonl`` and ``wiki-pages``, as FEVER has them. Without it, it is a small Wikipedia that
is made up (`benchmarks.quality.small_wiki`): its figures are a self-test and say nothing of FEVER.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.ablation_table import to_markdown
from benchmarks.quality.claims import machine
from benchmarks.quality.small_wiki import FOLDER
from epicqa.claims.fever import FULL, Claim, Predictions, check_labelled, read_claims
from epicqa.claims.fever_examples import gold_premises, with_gold
from epicqa.claims.fever_scores import (
    DEFINITIONS,
    F1,
    FEVER_SCORE,
    LABEL_ACCURACY,
    PRECISION,
    RECALL,
    FeverScores,
    score_fever,
)
from epicqa.claims.fever_system import predict
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.pages import PAGES, ROWS, Premise, Wiki, evidence_recall, premises, spacy_entities
from epicqa.claims.scifact_scores import RESAMPLES, Spread, bootstrap, share
from epicqa.claims.score_tables import score_record
from epicqa.claims.system import MODEL
from epicqa.collection_index import Collection, open_collection
from epicqa.errors import EpicqaError
from epicqa.index.build import Index
from epicqa.measures.tables import Cell, Column, Table

Found = Mapping[int, tuple[Premise, ...]]

NARROW = "five sentences"
ARTICLES = "entire articles"
ORACLE = "five sentences with the evidence"

ONE = "one at a time"
FIVE = "five at once"

SETTINGS = ((NARROW, ONE), (NARROW, FIVE), (ARTICLES, ONE), (ORACLE, ONE), (ORACLE, FIVE))
"""Premises, and how they are read."""

MADE_UP = (
    "The Wikipedia is a small one that is made up: its figures are a self-test and say nothing of FEVER."
)

_ROW_OF = {NARROW: "+ films", ARTICLES: "entire articles"}
_COLUMNS = (
    ("FEVER score", FEVER_SCORE),
    ("label accuracy", LABEL_ACCURACY),
    ("evidence P", PRECISION),
    ("evidence R", RECALL),
    ("evidence F1", F1),
)


@dataclass(frozen=True, slots=True, eq=False)
class RecallScores:
    """Counts int64[n_claims, 1, 2]: whether a claim's evidence was found, and whether it has any."""

    counts: NDArray[np.int64]

    def names(self) -> list[str]:
        return [RECALL]

    def figures(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[k, 1, 2] -> float64[k, 1]."""
        return share(sums[..., 0], sums[..., 1])


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of a model in a setting."""

    system: str
    premises: str
    reading: str
    scores: FeverScores
    spreads: Mapping[str, Spread]


def recall_scores(claims: Sequence[Claim], found: Found) -> RecallScores:
    """`evidence_recall`, claim by claim."""
    each = (evidence_recall([claim], found) for claim in claims)
    return RecallScores(np.array([[[one.found, one.total]] for one in each], dtype=np.int64))


def oracle_premises(claims: Sequence[Claim], index: Index, narrow: Found) -> dict[int, tuple[Premise, ...]]:
    """The five retrieved sentences with the evidence among them; claims without evidence have the five."""
    wiki = Wiki(index)
    return {claim.claim_id: with_gold(gold_premises(wiki, claim), narrow[claim.claim_id]) for claim in claims}


def judged(
    name: str,
    model: ClaimModel,
    claims: Sequence[Claim],
    found: Mapping[str, Found],
    definition: str,
    told: Callable[[str], None],
) -> list[Row]:
    """A model in all `SETTINGS`.

    Raises:
        EpicqaError: as `predict`.
    """
    rows = []
    for which, reading in SETTINGS:
        began = time.monotonic()

        def those(
            asked: Sequence[Claim], there: Found = found[which]
        ) -> list[tuple[int, tuple[Premise, ...]]]:
            return [(claim.claim_id, there[claim.claim_id]) for claim in asked]

        made = tuple(predict(claims, those, model, together=reading == FIVE))
        lines = tuple(range(1, len(made) + 1))
        scores = score_fever(Predictions(Path(name), FULL, made, lines), claims, definition)
        rows.append(Row(name, which, reading, scores, bootstrap(scores)))
        told(f"{name}, {which}, {reading}: {time.monotonic() - began:.0f} s")
    return rows


def retrieval_table(spreads: Mapping[str, tuple[float, Spread]], count: int, note: str) -> Table:
    """A row a row of `ROWS`, in percent."""
    return Table(
        f"Evidence found, of {count} claims that have any, percent",
        (Column("retrieval"), Column("evidence recall"), Column("95% interval")),
        tuple((name, *_cells(value, spread)) for name, (value, spread) in spreads.items()),
        (_INTERVALS, *([note] if note else [])),
    )


def score_table(rows: Sequence[Row], definition: str, note: str) -> Table:
    """A row a model and setting, in percent but for kappa."""
    headings = ["system", "premises", "read", *(heading for heading, _ in _COLUMNS), "kappa of labels"]
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        values = row.scores.values()
        figures = (" ".join(_cells(values[name], row.spreads[name])) for _, name in _COLUMNS)
        cells.append((row.system, row.premises, row.reading, *figures, f"{row.scores.label_kappa:.2f}"))
    return Table(
        f"FEVER, {len(rows[0].scores.claim_ids)} claims, {definition} definition, percent",
        tuple(map(Column, headings)),
        tuple(cells),
        (_INTERVALS, *([note] if note else [])),
        tuple(at for at in range(1, len(rows)) if rows[at].system != rows[at - 1].system),
    )


_INTERVALS = f"Intervals of 95%: {RESAMPLES:,} resamples of the claims."


def _cells(value: float, spread: Spread) -> tuple[str, str]:
    return f"{100 * value:.1f}", f"[{100 * spread.low:.1f}, {100 * spread.high:.1f}]"


def record(row: Row) -> dict[str, Any]:
    """A row as JSON holds it."""
    told = score_record(row.system, row.scores, row.spreads)
    return {"system": row.system, "premises": row.premises, "read": row.reading, **told}


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "folder", nargs="?", type=Path, default=FOLDER, help="claims and pages (%(default)s)"
    )
    options.add_argument(
        "--model",
        action="append",
        metavar="[NAME=]MODEL",
        help=f"a joint or label model; again for more; none: retrieval alone ({MODEL})",
    )
    options.add_argument(
        "--index", default="small-wiki", help="the pages' own index, built if needed (%(default)s)"
    )
    options.add_argument(
        "--pages", type=int, default=PAGES, help="pages found by a claim's words (%(default)s)"
    )
    options.add_argument("--definition", choices=DEFINITIONS, default=DEFINITIONS[0], help="(%(default)s)")
    options.add_argument("--threads", type=int, default=2, help="threads for searching (%(default)s)")
    options.add_argument("--format", choices=("markdown", "json"), default="markdown", help="(%(default)s)")
    try:
        print(report(options.parse_args(arguments), lambda line: print(line, file=sys.stderr)), end="")
    except EpicqaError as error:
        raise SystemExit(str(error)) from None


def report(given: argparse.Namespace, told: Callable[[str], None]) -> str:
    """Measure everything; ``told`` gets a line when a step is done.

    Raises:
        EpicqaError: data or a model is missing or wrong.
    """
    claims = read_claims(given.folder / "claims.jsonl")
    check_labelled(claims)
    models: dict[str, ClaimModel] = {}
    for one in given.model or [MODEL]:
        name, mark, place = one.rpartition("=")
        name = name if mark else Path(place).name
        if name in models:
            raise EpicqaError(f"two models named {name!r}, expected NAME=MODEL with different names")
        if place != "none":
            models[name] = load_claim_model(place)
    pages = Collection(given.index, (given.folder / "wiki-pages",), dense="none")
    index, notes = open_collection(pages, threads=given.threads)
    named, note = spacy_entities()
    for line in [*notes, *([note] if note else [])]:
        told(line)
    found: dict[str, Found] = {}
    recalls: dict[str, tuple[float, Spread]] = {}
    for row, parts in ROWS.items():
        found[row] = premises(claims, index, parts, pages=given.pages, named=named, threads=given.threads)
        counted = recall_scores(claims, found[row])
        sums = counted.counts.sum(axis=0, dtype=np.float64)[None]
        recalls[row] = float(counted.figures(sums)[0, 0]), bootstrap(counted)[RECALL]
    read = {which: found[row] for which, row in _ROW_OF.items()}
    read[ORACLE] = oracle_premises(claims, index, read[NARROW])
    rows = [
        row
        for name, model in models.items()
        for row in judged(name, model, claims, read, given.definition, told)
    ]
    made_up = MADE_UP if given.folder.resolve() == FOLDER.resolve() else ""
    if given.format == "json":
        whole = {
            "resamples": RESAMPLES,
            "machine": machine(),
            "note": made_up or None,
            "retrieval": [
                {"row": row, "parts": asdict(ROWS[row]), RECALL: value, "bootstrap": asdict(spread)}
                for row, (value, spread) in recalls.items()
            ],
            "claims": [record(row) for row in rows],
        }
        return json.dumps(whole, indent=1) + "\n"
    total = evidence_recall(claims, {}).total
    tables = [retrieval_table(recalls, total, made_up)]
    if rows:
        tables.append(score_table(rows, given.definition, made_up))
    return "\n".join(map(to_markdown, tables))


if __name__ == "__main__":
    main()
