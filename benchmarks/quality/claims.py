"""How well claims are verified, SciFact dev: ``python -m benchmarks.quality.claims [DATA]``.

Prints Markdown tables, or all figures as JSON: SciFact's measures by setting, ours beside those that others
publish; what is retrieved; and, with ``--latency``, how long a claim takes. The index is that of
``epicqa claims retrieve``, built if needed. Outputs of another system that the data hold are scored, too.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import DATA
from benchmarks.quality.ablation_table import to_markdown
from epicqa.claims.encoding import ClaimInput
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.retrieval import INDEX, K, Retrieved, oracle, search, tfidf
from epicqa.claims.retrieval_scores import HIT_ALL, HIT_ONE, RECALL, RetrievalScores, score_retrieval
from epicqa.claims.scifact import (
    ABSTRACTS,
    FULL,
    LABELS,
    RATIONALES,
    Abstract,
    Claim,
    PredictedEvidence,
    Prediction,
    Predictions,
    merge_predictions,
    read_abstracts,
    read_claims,
    read_predictions,
)
from epicqa.claims.scifact_scores import (
    DEFINITIONS,
    LABEL_ONLY,
    LABEL_RATIONALE,
    RESAMPLES,
    SELECTION_LABEL,
    SELECTION_ONLY,
    ClaimScores,
    Spread,
    bootstrap,
    score_claims,
)
from epicqa.claims.score_tables import score_record
from epicqa.claims.system import MODEL, LabelInput, check_models, oracle_rationales, predictions, verify
from epicqa.collection_index import Collection, open_collection
from epicqa.errors import EpicqaError
from epicqa.index.build import Index
from epicqa.measures.tables import Cell, Column, Table

GIVEN = "oracle abstracts and rationales"
ORACLE = "oracle abstracts"
TFIDF = "open, TF-IDF"
SEARCH = "open, search"
OTHER = "open, as the system found them"
SETTINGS = (GIVEN, ORACLE, TFIDF, SEARCH, OTHER)
"""What is given, in the order of the table; in the open ones the first three abstracts are read."""


_WARM = 3
_COLUMNS = (
    ("selection-only P", SELECTION_ONLY, "p"),
    ("selection-only R", SELECTION_ONLY, "r"),
    ("selection-only F1", SELECTION_ONLY, "f1"),
    ("selection+label F1", SELECTION_LABEL, "f1"),
    ("label-only F1", LABEL_ONLY, "f1"),
    ("label+rationale P", LABEL_RATIONALE, "p"),
    ("label+rationale R", LABEL_RATIONALE, "r"),
    ("label+rationale F1", LABEL_RATIONALE, "f1"),
)


@dataclass(frozen=True, slots=True)
class System:
    """Models under a name; without a selector they only label what an oracle selects."""

    name: str
    selector: ClaimModel | None
    labeller: ClaimModel
    label_input: LabelInput | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of a system in a setting.

    Attributes:
        setting: one of `SETTINGS`.
        system: its name.
        values: figure -> 0 to 1; what a source does not tell is not there.
        spreads: of figures that were measured here.
        source: where others publish them, empty: measured here.
        scores: what was measured here.
    """

    setting: str
    system: str
    values: Mapping[str, float]
    spreads: Mapping[str, Spread]
    source: str = ""
    scores: ClaimScores | RetrievalScores | None = None


def _figures(p: Sequence[float], r: Sequence[float], f1: Sequence[float]) -> dict[str, float]:
    """Values as the published code prints them: a row a figure, a column a measure."""
    measures = (SELECTION_ONLY, SELECTION_LABEL, LABEL_ONLY, LABEL_RATIONALE)
    return {
        f"{measure}_{figure}": value
        for figure, values in (("p", p), ("r", r), ("f1", f1))
        for measure, value in zip(measures, values, strict=True)
    }


def _two(selection_label: float, label_rationale: float) -> dict[str, float]:
    return {f"{SELECTION_LABEL}_f1": selection_label, f"{LABEL_RATIONALE}_f1": label_rationale}


_PAPER = (
    "Wadden et al., EMNLP 2020 (we take it to be dev, where its models, run again, come to 0.1 point more)"
)
_RERUN = "dev, github.com/chizo4/SciFCheX, results"
PUBLISHED = (
    Row(
        ORACLE,
        "VeriSci, run again",
        _figures(
            p=(0.794118, 0.713235, 0.909677, 0.851613),
            r=(0.590164, 0.530055, 0.674641, 0.631579),
            f1=(0.677116, 0.608150, 0.774725, 0.725275),
        ),
        {},
        f"{_RERUN}/pipeline/PIPE_EVAL_VERISCI_ORACLE_DEV.txt",
    ),
    Row(TFIDF, "VeriSci, zero-shot", _two(0.284, 0.384), {}, _PAPER),
    Row(TFIDF, "VeriSci", _two(0.426, 0.485), {}, _PAPER),
    Row(
        TFIDF,
        "VeriSci, run again",
        _figures(
            p=(0.526316, 0.470395, 0.556180, 0.528090),
            r=(0.437158, 0.390710, 0.473684, 0.449761),
            f1=(0.477612, 0.426866, 0.511628, 0.485788),
        ),
        {},
        f"{_RERUN}/pipeline/PIPE_EVAL_VERISCI_TFIDF_DEV.txt",
    ),
)
"""What others publish; the runs are of the paper's own models on dev, by somebody else."""

PUBLISHED_RETRIEVAL = (
    Row(
        TFIDF,
        "VeriSci, run again",
        {HIT_ONE: 0.846667, HIT_ALL: 0.833333, RECALL: 0.693780},
        {},
        f"{_RERUN}/abstract_retrieval/AR_EVAL_TFIDF_DEV.txt",
    ),
)


@dataclass(frozen=True, slots=True)
class Dev:
    """The claims, their corpus, and how they are scored."""

    claims: tuple[Claim, ...]
    abstracts: Mapping[int, Abstract]
    definition: str

    def row(self, setting: str, name: str, made: Predictions) -> Row:
        """Score predictions of whole evidence, or of abstracts."""
        scores: ClaimScores | RetrievalScores
        if made.shape == ABSTRACTS:
            scores = score_retrieval(made, self.claims, self.definition, K)
        else:
            scores = score_claims(made, self.claims, self.definition)
        return Row(setting, name, scores.values(), bootstrap(scores), scores=scores)


def read_dev(data: Path, definition: str) -> Dev:
    """SciFact's dev claims with their corpus.

    Raises:
        EpicqaError: as `read_abstracts` and `read_claims`.
    """
    abstracts = read_abstracts(data / "scifact" / "corpus.jsonl.gz")
    return Dev(read_claims(data / "scifact" / "claims_dev.jsonl", abstracts), abstracts, definition)


def system_of(given: str, name: str = "", label_input: LabelInput | None = None) -> System:
    """Load ``MODEL``, a joint one or one that labels, or ``SELECTOR,LABELLER``; ``NAME=`` before it names it.

    Raises:
        EpicqaError: as `load_claim_model` and `check_models`.
    """
    before, mark, places = given.rpartition("=")
    first, _, second = places.partition(",")
    labeller = load_claim_model(second or first)
    selector = None
    if second:
        selector = load_claim_model(first)
    elif labeller.settings.kind == "joint" and labeller.settings.reads != "claim":
        selector = labeller
    check_models(selector, labeller)
    return System(name or (before if mark else Path(places).name), selector, labeller, label_input)


def verified(
    system: System, dev: Dev, retrieved: Mapping[str, Retrieved], told: Callable[[str], None]
) -> list[Row]:
    """A system in every setting that it can do: one that cannot select rationales needs them given."""
    rows = []
    for setting, found in retrieved.items():
        if system.selector is None and setting != GIVEN:
            continue
        began = time.monotonic()
        made = predictions(
            dev.claims,
            dev.abstracts,
            found,
            system.selector,
            system.labeller,
            rationales=oracle_rationales(dev.claims, found) if setting == GIVEN else None,
            label_input=system.label_input,
        )
        told(f"{system.name}, {setting}: {time.monotonic() - began:.0f} s")
        rows.append(dev.row(setting, system.name, Predictions(Path(system.name), FULL, tuple(made))))
    return rows


def others(dev: Dev, folder: Path) -> tuple[list[Row], list[Row]]:
    """Another system's outputs: each selection of rationales with each labelling, and retrieved abstracts.

    Raises:
        EpicqaError: as `read_predictions` and `merge_predictions`.
    """
    read = [read_predictions(path, dev.claims, dev.abstracts) for path in sorted(folder.glob("*.jsonl"))]
    whole = [
        dev.row(OTHER, f"{rationales.path.stem} + {labels.path.stem}", merge_predictions(rationales, labels))
        for rationales in read
        if rationales.shape == RATIONALES
        for labels in read
        if labels.shape == LABELS
    ]
    return whole, [dev.row(OTHER, one.path.stem, one) for one in read if one.shape == ABSTRACTS]


def as_predictions(found: Retrieved, name: str) -> Predictions:
    """Retrieved abstracts as a file of them is read."""
    nothing = PredictedEvidence(None, None)
    made = (Prediction(claim_id, dict.fromkeys(documents, nothing)) for claim_id, documents in found.items())
    return Predictions(Path(name), ABSTRACTS, tuple(made))


def latencies(system: System, dev: Dev, index: Index, claims: int, threads: int) -> list[float]:
    """Seconds of each of the first claims, searching and reading three abstracts, after some untimed."""
    seconds = []
    for number, claim in enumerate((*dev.claims[:_WARM], *dev.claims[:claims])):
        began = time.perf_counter()
        found = search(index, [claim], K, threads=threads)[claim.claim_id]
        inputs = [ClaimInput(claim.text, dev.abstracts[doc_id].sentences) for doc_id in found]
        verify(inputs, system.selector, system.labeller, label_input=system.label_input)
        if number >= _WARM:
            seconds.append(time.perf_counter() - began)
    return seconds


def score_table(rows: Sequence[Row], dev: Dev) -> Table:
    """A row a setting and system, in percent; F1 with its standard deviation where it was measured here."""
    ordered = sorted(rows, key=lambda row: SETTINGS.index(row.setting))
    names = [f"{measure}_{figure}" for _, measure, figure in _COLUMNS]
    title = f"SciFact dev, {len(dev.claims)} claims, {dev.definition} definition, percent"
    headings = ["abstracts", "system", *(heading for heading, _, _ in _COLUMNS)]
    return Table(
        title,
        tuple(map(Column, headings)),
        tuple((row.setting, row.system, *_cells(row, names)) for row in ordered),
        (_note(), _sources(ordered)),
        tuple(at for at in range(1, len(ordered)) if ordered[at].setting != ordered[at - 1].setting),
    )


def retrieval_table(rows: Sequence[Row], dev: Dev) -> Table:
    """A row a way to retrieve, in percent."""
    return Table(
        f"Abstracts retrieved, the first {K}, of {len(dev.claims)} claims, percent",
        tuple(map(Column, ("abstracts", "system", "hit-one", "hit-all", "recall"))),
        tuple((row.setting, row.system, *_cells(row, [HIT_ONE, HIT_ALL, RECALL])) for row in rows),
        (_note(), _sources(rows)),
    )


def latency_table(seconds: Mapping[str, Sequence[float]]) -> Table:
    """A row a system."""
    return Table(
        "Seconds a claim, warm: searching and reading three abstracts",
        tuple(map(Column, ("system", "claims", "median", "95th percentile", "slowest"))),
        tuple(
            (name, len(some), *(f"{figure:.2f}" for figure in np.quantile(some, [0.5, 0.95, 1])))
            for name, some in seconds.items()
        ),
        (machine(),),
    )


def machine() -> str:
    """What it ran on; above a load of its cores others were at work."""
    return f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}."


def _cells(row: Row, names: Sequence[str]) -> list[Cell]:
    return [_cell(row, name) for name in names]


def _cell(row: Row, name: str) -> Cell:
    if name not in row.values:
        return None
    value = f"{100 * row.values[name]:.1f}"
    # Of precision and recall the deviation is in the JSON: tables would get too wide.
    if name in row.spreads and not name.endswith(("_p", "_r")):
        value += f" ± {100 * row.spreads[name].deviation:.1f}"
    return value


def _note() -> str:
    return f"± is the standard deviation over {RESAMPLES:,} resamples of the claims."


def _sources(rows: Sequence[Row]) -> str:
    systems: dict[str, list[str]] = {}
    for row in rows:
        if row.source:
            systems.setdefault(row.source, []).append(f"{row.system} ({row.setting})")
    told = "; ".join(f"{', '.join(some)}: {source}" for source, some in systems.items())
    return f"Not measured here: {told}."


def record(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as JSON holds them: what was measured here with its counts, deviations and intervals."""
    return [
        {
            "setting": row.setting,
            "system": row.system,
            **(
                {"source": row.source, "values": dict(row.values)}
                if row.scores is None
                else score_record(row.system, row.scores, row.spreads)
            ),
        }
        for row in rows
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    options.add_argument(
        "--model",
        action="append",
        metavar="[NAME=]MODEL[,LABELLER]",
        help=f"a joint or label model, or one that selects and one that labels; again for more ({MODEL})",
    )
    options.add_argument(
        "--zero-shot", metavar="MODEL", help="a model that saw pairs only; it labels by the rationale"
    )
    options.add_argument("--definition", choices=DEFINITIONS, default=DEFINITIONS[0], help="(%(default)s)")
    options.add_argument(
        "--latency", type=int, default=0, metavar="N", help="time the first N claims (%(default)s)"
    )
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
    dev = read_dev(given.data, given.definition)
    systems = [system_of(one) for one in given.model or [MODEL]]
    if given.zero_shot:
        systems.append(system_of(given.zero_shot, "zero-shot", "rationale"))
    names = [system.name for system in systems]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise EpicqaError(f"two systems named {twice!r}, expected NAME=MODEL with different names")
    corpus = given.data / "scifact" / "corpus.jsonl.gz"
    index, notes = open_collection(Collection(INDEX, (corpus,)), threads=given.threads)
    began = time.monotonic()
    gold = oracle(dev.claims)
    retrieved = {
        GIVEN: gold,
        ORACLE: gold,
        TFIDF: tfidf(dev.abstracts, dev.claims),
        SEARCH: search(index, dev.claims, K, threads=given.threads),
    }
    for line in (*notes, f"retrieval: {time.monotonic() - began:.0f} s"):
        told(line)
    rows, found = others(dev, given.data / "scifact" / "systems")
    rows = [row for system in systems for row in verified(system, dev, retrieved, told)] + rows
    rows += PUBLISHED
    ours = [dev.row(way, "", as_predictions(retrieved[way], way)) for way in (TFIDF, SEARCH)]
    found = [*ours, *PUBLISHED_RETRIEVAL, *found]
    seconds = {
        system.name: latencies(system, dev, index, given.latency, given.threads)
        for system in systems
        if given.latency and system.selector
    }
    if given.format == "json":
        whole = {
            "resamples": RESAMPLES,
            "machine": machine(),
            "claims": record(rows),
            "retrieval": record(found),
            "seconds": seconds,
        }
        return json.dumps(whole, indent=1) + "\n"
    tables = [score_table(rows, dev), retrieval_table(found, dev)]
    if seconds:
        tables.append(latency_table(seconds))
    return "\n".join(map(to_markdown, tables))


if __name__ == "__main__":
    main()
