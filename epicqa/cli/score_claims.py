"""``epicqa score --task scifact`` and ``--task fever``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epicqa.cli.notices import warn
from epicqa.cli.scoring import drawn, put
from epicqa.cli.tasks import check_options
from epicqa.errors import EpicqaError
from epicqa.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epicqa.claims.scifact_scores import Spread
    from epicqa.claims.score_tables import Scores

_TASKS_OF = {"claims": ("scifact", "fever"), "corpus": ("scifact",), "bootstrap": ("scifact", "fever")}
_BOTH = {"runs", "task", "definition", "form", "output"}
_DEFINITIONS = {
    "epicqa": ("published", "tac2020"),
    "scifact": ("paper", "leaderboard"),
    "fever": ("shared-task", "by-id"),
}


def task_of(context: click.Context, task: str) -> str:
    """The definition to score by: the given one, or the task's first.

    Raises:
        EpicqaError: an option was given that the task has no use for.
    """
    given = check_options(
        context, task, lambda name: tuple(_DEFINITIONS) if name in _BOTH else _TASKS_OF.get(name, ("epicqa",))
    )
    known = _DEFINITIONS[task]
    definition = str(context.params["definition"]) if "definition" in given else known[0]
    if definition not in known:
        raise EpicqaError(
            f"--definition {definition} is none of --task {task}, expected {' or '.join(known)}"
        )
    return definition


def score_claim_files(
    paths: tuple[Path, ...],
    claims: Path | None,
    corpus: Path | None,
    definition: str,
    spread: bool,
    form: str,
    output: Path | None,
) -> None:
    """Score a file of predictions, or a pipeline's rationales with its labels, and put the scores."""
    from epicqa.claims.retrieval_scores import score_retrieval
    from epicqa.claims.scifact import (
        ABSTRACTS,
        LABELS,
        RATIONALES,
        merge_predictions,
        read_abstracts,
        read_claims,
        read_predictions,
    )
    from epicqa.claims.scifact_scores import bootstrap, score_claims

    if claims is None or corpus is None:
        missing = "--claims" if claims is None else "--corpus"
        raise EpicqaError(f"--task scifact needs the claims and their corpus, pass {missing} FILE")
    if len(paths) > 2:
        raise EpicqaError("three files or more, expected one of predictions, or rationales and labels")
    abstracts = read_abstracts(corpus)
    judged = read_claims(claims, abstracts)
    read = [read_predictions(path, judged, abstracts) for path in paths]
    predictions = read[0]
    if len(read) == 2:
        # In either order.
        read.sort(key=lambda one: one.shape != RATIONALES)
        if [one.shape for one in read] != [RATIONALES, LABELS]:
            shapes = " and ".join(one.shape for one in read)
            raise EpicqaError(f"two files, of {shapes}, expected one of rationales and one of labels")
        predictions = merge_predictions(*read)
    scores: Scores
    if predictions.shape == ABSTRACTS:
        scores = score_retrieval(predictions, judged, definition)
    else:
        scores = score_claims(predictions, judged, definition)
    if predictions.shape in (RATIONALES, LABELS):
        message = f"{predictions.shape} only, scored by {', '.join(scores.totals())}"
        warn([Problem(predictions.path, None, "shape", message, fatal=False)])
    if left := len(judged) - len(scores.claim_ids):
        message = f"{left} of {len(judged)} claims without a prediction, they do not count"
        warn([Problem(predictions.path, None, "missing", message, fatal=False)])
    spreads = bootstrap(scores) if spread else None
    name = " + ".join(one.path.name for one in read)
    put(_written(name, scores, spreads, form, output), output)


def score_fever_file(
    paths: tuple[Path, ...],
    claims: Path | None,
    definition: str,
    spread: bool,
    form: str,
    output: Path | None,
) -> None:
    """Score a file of FEVER's predictions, and put the scores."""
    from epicqa.claims.fever import LABELS, read_claims, read_predictions
    from epicqa.claims.fever_scores import score_fever
    from epicqa.claims.scifact_scores import bootstrap

    if claims is None:
        raise EpicqaError("--task fever needs the claims, pass --claims FILE")
    if len(paths) > 1:
        raise EpicqaError("two files or more, expected one of predictions")
    by_id = definition == "by-id"
    judged = read_claims(claims, distinct=by_id)
    predictions = read_predictions(paths[0], distinct=by_id)
    scores = score_fever(predictions, judged, definition)
    path = predictions.path
    odd = []
    if predictions.shape == LABELS:
        odd.append(Problem(path, None, "shape", f"labels only, scored by {', '.join(scores.names())}", False))
    ids = [one.claim_id for one in predictions.predictions]
    if by_id and (left := len(judged) - len(ids)):
        message = f"{left} of {len(judged)} claims without a prediction, they count as wrong"
        odd.append(Problem(path, None, "missing", message, False))
    if not by_id and (count := sum(a != b for a, b in zip(ids, scores.claim_ids, strict=True))):
        message = (
            f"{count} of {len(ids)} predictions have another id than the claim at their place, scored by "
            "place as the released scorer does, by-id goes by ids"
        )
        odd.append(Problem(path, None, "place", message, False))
    warn(odd)
    spreads = bootstrap(scores) if spread else None
    put(_written(path.name, scores, spreads, form, output), output)


def _written(
    name: str, scores: Scores, spreads: Mapping[str, Spread] | None, form: str, output: Path | None
) -> str:
    from epicqa.claims.score_tables import flat_table, score_record, score_table

    if form == "json":
        return json.dumps(score_record(name, scores, spreads), indent=1) + "\n"
    flat = flat_table(scores, spreads)
    if form == "tsv":
        return "".join(f"{row[0]}\t" + "\t".join(map(repr, row[1:])) + "\n" for row in flat.rows)
    return drawn([flat if form == "csv" else score_table(name, scores, spreads)], form, output)
