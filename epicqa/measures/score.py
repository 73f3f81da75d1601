"""Score a run against judgments."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.ideals import ideal_dns_of
from epicqa.measures.judgments import Judgments
from epicqa.measures.locate import locate_all
from epicqa.measures.ndns import DEFINITIONS, Placed, Variant, dns_of_all
from epicqa.measures.tables import shown
from epicqa.problems import Problem
from epicqa.questions import kind_of
from epicqa.runs.check import outline_problems
from epicqa.runs.model import Run

_NOTHING: Placed = (np.zeros(0, dtype=np.int64),) * 3


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Measures of a run.

    Attributes:
        tag: the run's.
        path: its file.
        definition: which definition the values follow.
        ideal: which search the ideal rankings come from.
        question_ids: the questions scored, in the judgments' order.
        values: measure -> float64[n_questions].
        ideals: NDNS measure -> float64[n_questions], DNS of the ideal ranking.
        warnings: what is wrong with the run, and what the scores leave out.
        notes: what to know about the figures, a sentence each.
    """

    tag: str
    path: Path
    definition: str
    ideal: str
    question_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    ideals: dict[str, NDArray[np.float64]]
    warnings: tuple[Problem, ...]
    notes: tuple[str, ...] = ()

    def mean(self, measure: str) -> float:
        """Mean over all questions scored; correctly rounded as in the released script, or added in order."""
        if self.definition == "tac2020":
            return statistics.mean(self.values[measure].tolist())
        return float(self.values[measure].cumsum()[-1] / len(self.question_ids))


def score_run(
    run: Run,
    judgments: Judgments,
    questions: Collection[str] | None = None,
    *,
    definition: str = "published",
    ideal: str = "beam",
    complete: bool = True,
    measures: Collection[str] | None = None,
) -> Scores:
    """NDNS of a run.

    Questions without a nugget that a sentence states are left out. Passages after the first 1000 of a
    question do not count. Ties: see `epicqa.measures.locate`.

    Args:
        run: the run.
        judgments: the nuggets.
        questions: ids to score; None means the judged questions of the kinds (expert, general) in the run.
        definition: ``published`` or ``tac2020``.
        ideal: ``beam`` or ``best``, see `epicqa.measures.ideal`.
        complete: a question that the run has no passages for counts 0; otherwise it is left out.
        measures: names of those to compute; None means all of the definition.

    Raises:
        EpicqaError: no question is left to score.
    """
    variants = [one for one in DEFINITIONS[definition] if measures is None or one.name in measures]
    warnings = [*run.notes, *(replace(problem, fatal=False) for problem in outline_problems(run))]
    scored, left_out = scored_questions(run, judgments, questions, complete)
    warnings += left_out
    judged = [judgments.questions[name] for name in scored]
    placed = [one.placed if one else _NOTHING for one in locate_all(run, judged, definition)]
    totals = dns_of_all(judged, placed, variants)
    best = _ideal_dns(judgments, scored, variants, ideal)
    notes: tuple[str, ...] = ()
    if ideal != "beam":
        notes = _above_beam(scored, variants, best, _ideal_dns(judgments, scored, variants, "beam"))
    names = [variant.name for variant in variants]
    return Scores(
        tag=run.tag,
        path=run.path,
        definition=definition,
        ideal=ideal,
        question_ids=tuple(scored),
        values=dict(zip(names, (totals / best).T, strict=True)),
        ideals=dict(zip(names, best.T, strict=True)),
        warnings=tuple(warnings),
        notes=notes,
    )


def _ideal_dns(
    judgments: Judgments, question_ids: Sequence[str], variants: Sequence[Variant], ideal: str
) -> NDArray[np.float64]:
    """float64[n_questions, n_variants]."""
    rows = ideal_dns_of(judgments, question_ids, variants, ideal)
    return np.array(rows).reshape(len(question_ids), len(variants))


def _above_beam(
    question_ids: Sequence[str],
    variants: Sequence[Variant],
    best: NDArray[np.float64],
    beam: NDArray[np.float64],
) -> tuple[str, ...]:
    """How far the ideal lies above the beam's, a sentence a measure."""
    above = 100 * (best / beam - 1)
    return tuple(
        f"{variant.name}: the ideal lies {above[:, i].mean():.2f}% above the beam's in the mean, "
        f"at most {above[:, i].max():.2f}% ({question_ids[int(above[:, i].argmax())]})."
        for i, variant in enumerate(variants)
    )


def run_names(scores: Sequence[Scores]) -> tuple[str, ...]:
    """What each run is called, all different: its tag; where two are the same, with file, path or number."""
    tags, files, paths = (
        [shown(text) for text in texts]
        for texts in (
            [one.tag for one in scores],
            [one.path.name for one in scores],
            [str(one.path) for one in scores],
        )
    )
    names = tags
    for ends in (files, paths, [f"{path}) ({i}" for i, path in enumerate(paths, 1)]):
        count = Counter(names)
        names = [
            f"{tag} ({end})" if count[name] > 1 else name
            for name, tag, end in zip(names, tags, ends, strict=True)
        ]
    return tuple(names)


def scored_questions(
    run: Run, judgments: Judgments, questions: Collection[str] | None = None, complete: bool = True
) -> tuple[list[str], list[Problem]]:
    """Which judged questions count for a run, in the judgments' order, and what is left out or counts 0.

    Arguments and errors as `score_run`.
    """
    warnings: list[Problem] = []
    if questions is None:
        kinds = {kind_of(question_id) for question_id in run.questions}
        wanted = [question_id for question_id in judgments.questions if kind_of(question_id) in kinds]
    else:
        wanted = [question_id for question_id in judgments.questions if question_id in questions]
    without_gold = [name for name in wanted if not len(judgments.questions[name].number)]
    scored = [name for name in wanted if len(judgments.questions[name].number)]
    if without_gold:
        message = f"no nuggets, left out: {', '.join(without_gold)}"
        warnings.append(Problem(judgments.path, None, "no-gold", message, fatal=False))
    if missing := [name for name in scored if name not in run.questions]:
        what = "counts 0" if complete else "left out"
        message = f"no passages, {what}: {', '.join(missing)}"
        warnings.append(Problem(run.path, None, "missing", message, fatal=False))
        if not complete:
            scored = [name for name in scored if name in run.questions]
    if not scored:
        raise EpicqaError(
            f"{run.path}: no question to score, expected some that {judgments.path} has nuggets for"
        )
    unjudged = [
        name
        for name in run.questions
        if name not in judgments.questions and (questions is None or name in questions)
    ]
    if unjudged:
        message = f"no judgments, left out: {', '.join(unjudged)}"
        warnings.append(Problem(run.path, None, "unjudged", message, fatal=False))
    return scored, warnings
