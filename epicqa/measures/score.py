"""Score a run against judgments."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.ideal import ideal_dns
from epicqa.measures.judgments import JudgedQuestion, Judgments
from epicqa.measures.ndns import MAX_RANK, PUBLISHED, dns
from epicqa.problems import Problem
from epicqa.questions import kind_of
from epicqa.runs.check import structure_problems
from epicqa.runs.model import Passages, Run


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """NDNS of a run.

    Attributes:
        tag: the run's.
        definition: which definition the values follow.
        question_ids: the questions scored, in the judgments' order.
        values: measure -> float64[n_questions].
        warnings: what is wrong with the run, and what the scores leave out.
    """

    tag: str
    definition: str
    question_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    warnings: tuple[Problem, ...]

    def mean(self, measure: str) -> float:
        """Mean over all questions scored; they are added in order."""
        return float(self.values[measure].cumsum()[-1] / len(self.question_ids))


def score_run(run: Run, judgments: Judgments, questions: Collection[str] | None = None) -> Scores:
    """NDNS of a run in the published definition.

    A judged question that the run has no passages for counts 0. Questions without a nugget that a sentence
    states are left out. Passages after the first 1000 of a question do not count.

    Args:
        run: the run.
        judgments: the nuggets.
        questions: ids to score; None means the judged questions of the kinds (expert, general) in the run.

    Raises:
        EpicqaError: no question is left to score.
    """
    warnings = [replace(problem, fatal=False) for problem in structure_problems(run)]
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
    if not scored:
        raise EpicqaError(
            f"{run.path}: no question to score, expected some that {judgments.path} has nuggets for"
        )
    if missing := [name for name in scored if name not in run.questions]:
        message = f"no passages, counts 0: {', '.join(missing)}"
        warnings.append(Problem(run.path, None, "missing", message, fatal=False))
    unjudged = [
        name
        for name in run.questions
        if name not in judgments.questions and (questions is None or name in questions)
    ]
    if unjudged:
        message = f"no judgments, left out: {', '.join(unjudged)}"
        warnings.append(Problem(run.path, None, "unjudged", message, fatal=False))
    values = np.zeros((len(scored), len(PUBLISHED)))
    for i, name in enumerate(scored):
        judged = judgments.questions[name]
        if (passages := run.questions.get(name)) is not None:
            ideal = np.array([ideal_dns(judged, variant) for variant in PUBLISHED])
            values[i] = _dns_of(run, passages, judged) / ideal
    return Scores(
        tag=run.tag,
        definition="published",
        question_ids=tuple(scored),
        values={variant.name: values[:, i] for i, variant in enumerate(PUBLISHED)},
        warnings=tuple(warnings),
    )


def _dns_of(run: Run, passages: Passages, judged: JudgedQuestion) -> NDArray[np.float64]:
    judged_context = {
        code: judged.contexts.get(run.contexts[code], -1)
        for code in set(passages.first_context[:MAX_RANK].tolist())
    }
    context = np.array(
        [judged_context[code] for code in passages.first_context[:MAX_RANK].tolist()], dtype=np.int64
    )
    context[(passages.first_context != passages.last_context)[:MAX_RANK]] = -1
    return dns(judged, context, passages.first_number, passages.last_number)
