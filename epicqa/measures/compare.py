"""Runs compared on the same questions: means, intervals, tests, wins and losses."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.evaluate import Plan, score_passages
from epicqa.measures.judgments import Judgments
from epicqa.measures.score import Scores, run_names
from epicqa.measures.significance import (
    CONFIDENCE,
    RESAMPLES,
    holm,
    paired_bootstrap,
    randomisation_test,
)
from epicqa.questions import kind_of, of_kind
from epicqa.runs.manifest import judgments_of
from epicqa.runs.model import Run

TIE = 1e-9
"""Two values of a question that differ by no more are a tie."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """One run against another in one measure.

    Attributes:
        measure: the measure.
        run, against: positions in the comparison's runs.
        difference: mean of ``run`` less that of ``against``.
        low, high: ends of the difference's interval (`paired_bootstrap`).
        p: of the randomisation test.
        p_holm: p adjusted for all contrasts of the measure.
        wins, ties, losses: questions that ``run`` has the higher, the same (by `TIE`), the lower value in.
    """

    measure: str
    run: int
    against: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Runs compared.

    Attributes:
        names: what each run is called, all different: its tag, with the file where tags are the same.
        scores: the runs', in the order given.
        definition, ideal: which NDNS the values follow.
        question_ids: the questions, the same for all.
        values: measure -> float64[n_runs, n_questions].
        baseline: the run that every other is compared with; None, every pair is.
        contrasts: measure by measure; a pair's earlier run against the later one.
        confidence, resamples, seed: of intervals and tests.
    """

    names: tuple[str, ...]
    scores: tuple[Scores, ...]
    definition: str
    ideal: str
    question_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    baseline: int | None
    contrasts: tuple[Contrast, ...]
    confidence: float
    resamples: int
    seed: int


def joined_runs(runs: Sequence[Path], baseline: Path | None) -> tuple[list[Path], int | None]:
    """The runs to compare and the baseline's position among them; first, where it is not one of the runs.

    Raises:
        EpicqaError: one file given twice, or fewer than two runs.
    """
    seen: dict[Path, Path] = {}
    for path in runs:
        if (before := seen.setdefault(path.resolve(), path)) is not path:
            raise EpicqaError(f"{path}: given twice (as {before}), expected each run once")
    if baseline is not None and baseline.resolve() not in seen:
        runs, seen = [baseline, *runs], {baseline.resolve(): baseline} | seen
    if len(runs) < 2:
        raise EpicqaError(
            f"{runs[0] if runs else 'no run'}: nothing to compare with, expected two runs or more"
        )
    return list(runs), None if baseline is None else list(seen).index(baseline.resolve())


def common_judgments(runs: Sequence[Path]) -> Path:
    """The answer file that the manifests of all runs name.

    Raises:
        EpicqaError: as `judgments_of`, or they name different files.
    """
    named = [judgments_of(run) for run in runs]
    for run, path in zip(runs, named, strict=True):
        if path.resolve() != named[0].resolve():
            raise EpicqaError(
                f"{run}: its judgments are {path}, those of {runs[0]} {named[0]}, pass --judgments FILE"
            )
    return named[0]


def score_together(
    runs: Sequence[Run], judgments: Judgments, plan: Plan, kind: str | None = None
) -> list[Scores]:
    """The plan's nugget measures of runs over one set of questions.

    Args:
        runs: what to score.
        judgments: the nuggets.
        plan: what to compute.
        kind: ``expert``, ``general``, ``all``; None means the judged questions of the kinds in any run.

    Raises:
        EpicqaError: as `epicqa.measures.evaluate.score_passages`.
    """
    if kind is None:
        # Those without judgments among them, so that they are warned of.
        wanted = {question_id for run in runs for question_id in run.questions}
        kinds = {kind_of(question_id) for question_id in wanted}
        wanted |= {question_id for question_id in judgments.questions if kind_of(question_id) in kinds}
    else:
        wanted = set(of_kind(judgments.questions, kind))
    return [score_passages(run, judgments, plan, wanted) for run in runs]


def compare(
    scores: Sequence[Scores],
    baseline: int | None = None,
    measures: Collection[str] | None = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare runs question by question.

    With a baseline every other run is compared with it, else every pair is. P values are adjusted (`holm`)
    over these comparisons, in each measure apart.

    Args:
        scores: of two runs or more, over the same questions and in the same definition.
        baseline: position of a run.
        measures: some of the scores' measures, in the order wanted; None or empty, all.
        confidence, resamples, seed: as `paired_bootstrap` and `randomisation_test`.

    Raises:
        EpicqaError: fewer than two runs, runs of other questions or definitions, a measure that they lack.
    """
    if len(scores) < 2:
        raise EpicqaError(f"{len(scores)} run to compare, expected two or more")
    head = scores[0]
    for one in scores[1:]:
        _check_alike(head, one)
    if baseline is not None and not 0 <= baseline < len(scores):
        raise EpicqaError(f"baseline {baseline}, expected the position of one of {len(scores)} runs")
    chosen = tuple(dict.fromkeys(measures or head.values))
    if unknown := [measure for measure in chosen if measure not in head.values]:
        raise EpicqaError(
            f"measure {unknown[0]!r}, the {head.definition} definition has: {', '.join(head.values)}"
        )
    values = {measure: np.stack([_aligned(one, measure, head) for one in scores]) for measure in chosen}
    others = range(len(scores))
    if baseline is None:
        pairs = list(combinations(others, 2))
    else:
        pairs = [(run, baseline) for run in others if run != baseline]
    # All measures at once, as the draws are the same.
    differences = np.stack([values[m][run] - values[m][against] for m in chosen for run, against in pairs])
    intervals = paired_bootstrap(differences, confidence, resamples, seed)
    p_values = randomisation_test(differences, resamples, seed)
    adjusted = np.concatenate([holm(of_measure) for of_measure in p_values.reshape(len(chosen), -1)])
    contrasts = [
        Contrast(
            measure=measure,
            run=run,
            against=against,
            difference=float(differences[i].mean()),
            low=float(intervals[i, 0]),
            high=float(intervals[i, 1]),
            p=float(p_values[i]),
            p_holm=float(adjusted[i]),
            wins=int(np.count_nonzero(differences[i] > TIE)),
            ties=int(np.count_nonzero(np.abs(differences[i]) <= TIE)),
            losses=int(np.count_nonzero(differences[i] < -TIE)),
        )
        for i, (measure, (run, against)) in enumerate(product(chosen, pairs))
    ]
    return Comparison(
        names=run_names(scores),
        scores=tuple(scores),
        definition=head.definition,
        ideal=head.ideal,
        question_ids=head.question_ids,
        values=values,
        baseline=baseline,
        contrasts=tuple(contrasts),
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def _check_alike(head: Scores, one: Scores) -> None:
    for what in ("definition", "ideal"):
        if getattr(head, what) != getattr(one, what):
            raise EpicqaError(
                f"{one.path}: scored with {what} {getattr(one, what)!r}, {head.path} with "
                f"{getattr(head, what)!r}, expected the same for all runs"
            )
    if odd := set(head.question_ids) ^ set(one.question_ids):
        first = min(odd)
        has, lacks = (head, one) if first in head.question_ids else (one, head)
        raise EpicqaError(
            f"{lacks.path}: {first} is not scored, in {has.path} it is, "
            "expected the same questions for all runs"
        )
    if set(head.values) != set(one.values):
        raise EpicqaError(
            f"{one.path}: scored by {', '.join(one.values)}, {head.path} by {', '.join(head.values)}, "
            "expected the same measures for all runs"
        )


def _aligned(one: Scores, measure: str, head: Scores) -> NDArray[np.float64]:
    at = {question_id: i for i, question_id in enumerate(one.question_ids)}
    return one.values[measure][[at[question_id] for question_id in head.question_ids]]
