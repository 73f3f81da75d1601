"""Every measure that is asked for, of one run: NDNS, other nugget measures, document measures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from epicqa.errors import EpicqaError
from epicqa.measures.judgments import Judgments
from epicqa.measures.locate import overlaps
from epicqa.measures.ndns import DEFINITIONS
from epicqa.measures.pools import JUDGED, Pools, judged_share
from epicqa.measures.score import Scores, score_run
from epicqa.problems import Problem
from epicqa.questions import of_kind
from epicqa.runs.model import Run

if TYPE_CHECKING:
    from ir_measures import Measure


DOCUMENTS = "documents"
"""The definition that scores of documents name."""

CONDENSED = "Passages outside the pools are left out (condensed ranking)."


@dataclass(frozen=True, slots=True)
class Plan:
    """What to compute.

    Attributes:
        definition, ideal, complete: as `score_run`.
        names: measures of the definition and nugget measures, as they are shown, in order.
        ndns: those of the definition.
        nuggets: those from `epicqa.measures.nuggets`.
        documents: those from document judgments.
    """

    definition: str
    ideal: str
    complete: bool
    names: tuple[str, ...]
    ndns: tuple[str, ...]
    nuggets: tuple[Measure, ...]
    documents: tuple[Measure, ...]


def plan_measures(
    names: Sequence[str],
    definition: str = "published",
    ideal: str = "beam",
    complete: bool = True,
    qrels: Path | None = None,
) -> Plan:
    """Sort measures by what computes them.

    Args:
        names: of the definition's measures (exact, ...) or of ir-measures; none means the definition's.
        definition, ideal, complete: as `score_run`.
        qrels: where document judgments are, None where there are none.

    Raises:
        EpicqaError: an unknown measure, a document measure without document judgments, or these without it.
    """
    own = [variant.name for variant in DEFINITIONS[definition]]
    every = {variant.name for variants in DEFINITIONS.values() for variant in variants}
    chosen: dict[str, Measure | None] = {}
    for name in names or own:
        if name in own:
            chosen[name] = None
        elif name in every:
            raise EpicqaError(
                f"measure {name}: not of the {definition} definition, expected one of {', '.join(own)}"
            )
        else:
            # Imported where it is needed: ir-measures and what it brings take half a second.
            from epicqa.measures.documents import parse_measures

            (measure,) = parse_measures([name])
            chosen[str(measure)] = measure
    nuggets, documents = _parted([measure for measure in chosen.values() if measure is not None])
    if documents and qrels is None:
        raise EpicqaError(f"measure {documents[0]}: computed from document judgments, pass --qrels FILE")
    if qrels is not None and not documents:
        raise EpicqaError(f"{qrels}: no measure needs document judgments, pass one such as -m nDCG@10")
    return Plan(
        definition,
        ideal,
        complete,
        names=tuple(name for name, measure in chosen.items() if measure not in documents),
        ndns=tuple(name for name, measure in chosen.items() if measure is None),
        nuggets=nuggets,
        documents=documents,
    )


def _parted(measures: Sequence[Measure]) -> tuple[tuple[Measure, ...], tuple[Measure, ...]]:
    """Those of nuggets, those of documents."""
    if not measures:
        return (), ()
    from epicqa.measures.nuggets import is_nugget_measure

    return (
        tuple(measure for measure in measures if is_nugget_measure(measure)),
        tuple(measure for measure in measures if not is_nugget_measure(measure)),
    )


def score_passages(
    run: Run,
    judgments: Judgments,
    plan: Plan,
    questions: Collection[str] | None = None,
    pools: Pools | None = None,
    whole: Run | None = None,
) -> Scores:
    """The plan's nugget measures of a run, and how much of it was judged where there are pools.

    Args:
        run: the run.
        judgments: the nuggets.
        plan: what to compute.
        questions: ids to score; None means the judged questions of the kinds (expert, general) in the run.
        pools: what was read for each question.
        whole: the run before it was condensed, of which the share judged is told; None means ``run``.

    Raises:
        EpicqaError: as `score_run`.
    """
    scores = score_run(
        run,
        judgments,
        questions,
        definition=plan.definition,
        ideal=plan.ideal,
        complete=plan.complete,
        measures=plan.ndns,
    )
    values = dict(scores.values)
    if plan.nuggets:
        from epicqa.measures.nuggets import score_nuggets

        values |= score_nuggets(run, judgments, plan.nuggets, scores.question_ids).values
    values = {name: values[name] for name in plan.names}
    if pools is not None:
        values[JUDGED] = judged_share(whole or run, judgments, scores.question_ids, pools, plan.definition)
    notes = scores.notes if whole is None else (*scores.notes, CONDENSED)
    judged = [judgments.questions[name] for name in scores.question_ids]
    warnings = (*scores.warnings, *overlaps(run, judged, plan.definition))
    return replace(scores, values=values, notes=notes, warnings=warnings)


def score_documents_of(
    runs: Sequence[Path | Run], qrels: Path, plan: Plan, kind: str | None = None
) -> tuple[list[Scores], tuple[Problem, ...]]:
    """The plan's document measures of runs, of passages or of documents; and what is odd in the judgments.

    Args:
        runs: run files; or runs of passages that are read already.
        qrels: document judgments.
        plan: what to compute.
        kind: ``expert``, ``general`` or ``all``; None means the judged questions of the kinds in each run.

    Raises:
        EpicqaError: a file cannot be read; or as `epicqa.measures.documents.score_documents`.
    """
    from epicqa.measures.documents import collapse, document_run, score_documents
    from epicqa.measures.qrels import named_as, read_qrels

    judged = read_qrels(qrels)
    scores = []
    for one in runs:
        run = collapse(one) if isinstance(one, Run) else document_run(one)
        questions = None if kind is None else of_kind(named_as(judged, run.questions).topics, kind)
        found = score_documents(run, judged, plan.documents, questions, complete=plan.complete)
        scores.append(
            Scores(
                tag=run.tag,
                path=run.path,
                definition=DOCUMENTS,
                ideal="",
                question_ids=found.question_ids,
                values=found.values,
                ideals={},
                warnings=found.warnings,
            )
        )
    return scores, judged.warnings
