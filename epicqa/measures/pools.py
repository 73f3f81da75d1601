"""Pools: the contexts that somebody read for a question. What lies outside is not bad, but never judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.ids import parse_context_id
from epicqa.jsonfiles import read_json
from epicqa.measures.judgments import Judgments
from epicqa.measures.locate import locate_all
from epicqa.problems import Problem
from epicqa.runs.model import Passages, Run

_SHAPE = "a JSON object of question id -> list of context ids"

JUDGED_DEPTH = 20
JUDGED = f"judged@{JUDGED_DEPTH}"


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The pool of each question: its contexts' canonical ids."""

    path: Path
    questions: dict[str, frozenset[str]]


def read_pools(path: Path, judgments: Judgments) -> Pools:
    """Read a pool file, plain or compressed; contexts that the judgments annotate are in the pool, too.

    Raises:
        EpicqaError: the file is not a JSON object of lists of context ids, or one of these is malformed.
    """
    questions = {}
    for question_id, contexts in read_json(path, dict, _SHAPE).items():
        if not isinstance(contexts, list):
            raise EpicqaError(f"{path}: {question_id}: a {type(contexts).__name__}, expected {_SHAPE}")
        ids = set()
        for number, context_id in enumerate(contexts, 1):
            try:
                ids.add(str(parse_context_id(context_id if isinstance(context_id, str) else "")))
            except ValueError as error:
                raise EpicqaError(f"{path}: {question_id}: context {number}: {error}") from None
        questions[question_id] = frozenset(ids)
    for question_id, judged in judgments.questions.items():
        if question_id in questions:
            questions[question_id] |= judged.contexts.keys()
    return Pools(path, questions)


def judged_share(
    run: Run, judgments: Judgments, question_ids: Sequence[str], pools: Pools, definition: str = "published"
) -> NDArray[np.float64]:
    """judged@20: which part of a question's first 20 passages is in its pool.

    A ranking of fewer passages is taken as it is; without passages, or without a pool, the share is 0. The
    measure is that of the TREC-COVID leaderboards, for passages. Ties: as the definition's.

    Returns:
        float64[n_questions], 0 to 1.
    """
    share = np.zeros(len(question_ids))
    judged = [judgments.questions[name] for name in question_ids]
    for i, located in enumerate(locate_all(run, judged, definition)):
        pool = pools.questions.get(question_ids[i])
        if located is not None and pool is not None:
            first = located.position[:JUDGED_DEPTH]
            contexts = run.questions[question_ids[i]].first_context[first].tolist()
            share[i] = np.mean([run.contexts[context] in pool for context in contexts])
    return share


def condensed(run: Run, pools: Pools) -> tuple[Run, list[Problem]]:
    """The run without passages outside the pools, ranks closed up; questions without a pool stay whole.

    A passage is where its first sentence is.

    Sakai, "Alternatives to Bpref", SIGIR 2007: condensed lists.
    """
    code = {name: i for i, name in enumerate(run.contexts)}
    questions: dict[str, Passages] = {}
    without = []
    for question_id, passages in run.questions.items():
        pool = pools.questions.get(question_id)
        if pool is None:
            without.append(question_id)
            questions[question_id] = passages
            continue
        kept = np.isin(passages.first_context, [code[name] for name in pool & code.keys()])
        # A question of which nothing is left stays, and counts 0.
        questions[question_id] = Passages(
            **{name: getattr(passages, name)[kept] for name in Passages.__slots__}
        )
    warnings = []
    if without:
        message = f"no pool, not condensed: {', '.join(without)}"
        warnings.append(Problem(pools.path, None, "no-pool", message, fatal=False))
    return replace(run, questions=questions), warnings
