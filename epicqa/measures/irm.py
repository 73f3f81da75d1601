"""NDNS and nugget recall as measures of ir-measures.

Importing this module registers both, and the provider ``epicqa`` that computes them::

    import ir_measures
    import epicqa.measures.irm

    ndns = ir_measures.parse_measure("NDNS(variant='exact')@1000")
    ir_measures.calc_aggregate([ndns], qrels, run)

Qrels have a row for each nugget of each sentence: ``doc_id`` is the sentence id, ``iteration`` the nugget id,
``relevance`` 1 or more. Relevance 0 is a sentence that was read and does not state the nugget; if it states
none, it only counts for how far the ideal's spans reach. Rows below 0 do not count. A context's place in the
ideal's order of candidates is that of its first row. A dict has no nugget ids: there, all sentences of a
question state one nugget.

Runs have a row for each passage: ``doc_id`` is ``FIRST:LAST``, two sentence ids. The highest score is best;
equal scores stay in the order of the rows.

A question without a row of relevance 1 or more is left out; one that the run has no rows for counts 0.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import ir_measures
import numpy as np
from ir_measures import Measure, Metric, Qrel, ScoredDoc, providers
from ir_measures.measures import ParamInfo, registry
from ir_measures.providers.base import Any as AnyValue
from ir_measures.providers.base import Choices
from ir_measures.util import QrelsConverter, RunConverter

from epicqa.errors import EpicqaError
from epicqa.ids import parse_passage_id, parse_sentence_id
from epicqa.measures.ideal import SEARCHES, ideal_of
from epicqa.measures.judgments import JudgedQuestion, Judgments, nugget_bits, pack_question
from epicqa.measures.locate import locate_all
from epicqa.measures.ndns import DEFINITIONS, MAX_RANK, Placed, Variant, dns
from epicqa.measures.nuggets import nugget_recall
from epicqa.runs.model import Run

_CUTOFF = {"dtype": int, "choices": range(1, MAX_RANK + 1), "default": MAX_RANK}


class _NDNS(Measure):
    """Normalised discounted novelty score: do passages say something new, early and in few sentences?

    Formula: ``DNS / DNS of the ideal ranking``, both to the cutoff; ``DNS = sum NS / log2(r + 1)`` over ranks
    r; ``NS = n_a (n_a + 1) / (n_a + n_s)``, n_a the passage's nuggets that no earlier passage states, n_s its
    size in sentences as the variant counts them (`epicqa.measures.ndns`).
    Source: EPIC-QA at TAC 2020, task guidelines, "Evaluation"; ``definition='tac2020'`` is what the script
    computes that the track released.
    Range: from 0; 1 is the ideal's, which comes from a search (``ideal='beam'`` or ``'best'``,
    `epicqa.measures.ideal`) and so can be passed.
    Ties: equal scores stay in the order of the run's rows. Scores are numbers here, so ``tac2020`` does not
    sort them as text as the script does; `run_rows` gives rows in the script's order.
    """

    __name__ = "NDNS"
    NAME = __name__
    PRETTY_NAME = "Normalised Discounted Novelty Score"
    SHORT_DESC = "The novelty of each passage for its length, discounted by rank and normalised by an ideal."
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": ParamInfo(**_CUTOFF, desc="ranks that count, of the run and of the ideal, at most 1000"),
        "variant": ParamInfo(
            dtype=str,
            choices=tuple(dict.fromkeys(one.name for some in DEFINITIONS.values() for one in some)),
            default="exact",
            desc="how a passage's size is counted; ndcg-exact and ndcg belong to tac2020",
        ),
        "definition": ParamInfo(
            dtype=str, choices=tuple(DEFINITIONS), default="published", desc="as published, or as released"
        ),
        "ideal": ParamInfo(
            dtype=str, choices=tuple(SEARCHES), default="beam", desc="the search for the ideal ranking"
        ),
    }


class _NuggetRecall(Measure):
    """Nugget recall: which part of the nuggets do the first passages state?

    Formula: distinct nuggets in the first k passages / nuggets that any annotated sentence states.
    Source: subtopic recall (Zhai, Cohen and Lafferty, SIGIR 2003, section 3.1), with passages as documents.
    Range: 0 to 1.
    Ties: equal scores stay in the order of the run's rows.
    """

    __name__ = "NuggetRecall"
    NAME = __name__
    PRETTY_NAME = "Nugget Recall at k"
    SHORT_DESC = "The part of the stated nuggets that the first k passages state."
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": ParamInfo(**_CUTOFF, desc="passages that count, at most 1000")
    }


NDNS = _NDNS()
NuggetRecall = _NuggetRecall()


def variant_of(measure: Measure) -> Variant:
    """The NDNS variant that a `NDNS` measure asks for, in its definition.

    Raises:
        EpicqaError: the definition has no such variant.
    """
    variants = DEFINITIONS[measure["definition"]]
    for variant in variants:
        if variant.name == measure["variant"]:
            return variant
    names = ", ".join(variant.name for variant in variants)
    raise EpicqaError(f"{measure}: no such variant in {measure['definition']}, expected one of {names}")


def qrel_rows(judgments: Judgments) -> Iterator[Qrel]:
    """The rows of an answer file; what they give is what `epicqa.measures.score_run` gives."""
    for question in judgments.questions.values():
        nuggets = list(question.nuggets)
        for context_id, i in question.contexts.items():
            of_context = slice(question.context_first[i], question.context_first[i + 1])
            numbers = question.number[of_context].tolist()
            states = nugget_bits(question.mask[of_context], len(nuggets))
            for number, flags in zip(numbers, states, strict=True):
                for nugget in np.flatnonzero(flags).tolist():
                    yield Qrel(question.question_id, f"{context_id}-S{number:03d}", 1, nuggets[nugget])
            # Annotated sentences that state nothing and lie further out than those that do.
            for number in question.context_range[i].tolist():
                if number not in (numbers[0], numbers[-1]):
                    yield Qrel(question.question_id, f"{context_id}-S{number:03d}", 0, nuggets[0])


def run_rows(run: Run, definition: str = "published") -> Iterator[ScoredDoc]:
    """The rows of a run, best first as the definition reads it; scores fall by 1 from rank to rank."""
    judged = [pack_question(question_id, {}, {}) for question_id in run.questions]
    for question, located in zip(judged, locate_all(run, judged, definition), strict=True):
        assert located is not None
        passages = run.questions[question.question_id]
        for rank, position in enumerate(located.position.tolist()):
            passage = ":".join(run.sentence_ids(passages, position))
            yield ScoredDoc(question.question_id, passage, float(MAX_RANK - rank))


class EpicqaProvider(providers.Provider):
    """Computes `NDNS` and `NuggetRecall` from sentences, nuggets and passages; see the module."""

    NAME = "epicqa"
    SUPPORTED_MEASURES = [  # noqa: RUF012
        *(
            _NDNS(
                cutoff=AnyValue(),
                variant=Choices(*(variant.name for variant in variants)),
                definition=Choices(definition),
                ideal=AnyValue(),
            )
            for definition, variants in DEFINITIONS.items()
        ),
        _NuggetRecall(cutoff=AnyValue()),
    ]

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> providers.Evaluator:
        return _Evaluator(list(measures), _questions(QrelsConverter(qrels).as_namedtuple_iter()))

    def qrel_inputs(self, measures: Iterable[Measure]) -> list[str]:
        return ["query_id", "doc_id", "relevance", "iteration"]


class _Evaluator(providers.Evaluator):
    def __init__(self, measures: Sequence[Measure], questions: Mapping[Any, JudgedQuestion]) -> None:
        super().__init__(measures, set(questions))
        self.questions = questions
        self._ideals: dict[tuple[Any, str], float] = {}

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        rows: dict[Any, list[tuple[float, str]]] = {}
        for row in RunConverter(run).as_namedtuple_iter():
            if row.query_id in self.questions:
                rows.setdefault(row.query_id, []).append((float(row.score), str(row.doc_id)))
        for query_id, scored in rows.items():
            if any(math.isnan(score) for score, _ in scored):
                raise EpicqaError(f"run rows of {query_id}: a score is not a number, expected numbers")
            scored.sort(key=lambda row: -row[0])
            passages = [passage for _, passage in scored[:MAX_RANK]]
            located = {
                definition: _columns(self.questions[query_id], passages, definition)
                for definition in DEFINITIONS
            }
            for measure in self.measures:
                yield Metric(query_id, measure, self._value(measure, query_id, located))

    def _value(self, measure: Measure, query_id: Any, located: Mapping[str, Placed]) -> float:
        question = self.questions[query_id]
        depth = measure["cutoff"]
        if measure.NAME == NuggetRecall.NAME:
            return nugget_recall(question, *located["published"], depth)
        variant = variant_of(measure)
        key = (query_id, str(measure))
        if key not in self._ideals:
            self._ideals[key] = ideal_of(question, variant, measure["ideal"], depth).dns
        return float(dns(question, *located[variant.definition], [variant], depth)[0]) / self._ideals[key]


def _questions(rows: Iterable[Any]) -> dict[Any, JudgedQuestion]:
    nuggets: dict[Any, dict[str, int]] = {}
    sentences: dict[Any, dict[str, dict[int, int]]] = {}
    for row in rows:
        if row.relevance < 0:
            continue
        try:
            sentence = parse_sentence_id(str(row.doc_id))
        except ValueError as error:
            raise EpicqaError(f"qrels rows of {row.query_id}: {error}") from None
        of_question = nuggets.setdefault(row.query_id, {})
        bits = 0
        if row.relevance > 0:
            bits = 1 << of_question.setdefault(str(getattr(row, "iteration", "0")), len(of_question))
        context = sentences.setdefault(row.query_id, {}).setdefault(str(sentence.context_id), {})
        context[sentence.sentence] = context.get(sentence.sentence, 0) | bits
    return {
        query_id: pack_question(str(query_id), dict.fromkeys(found, ""), sentences[query_id])
        for query_id, found in nuggets.items()
        if found
    }


def _columns(question: JudgedQuestion, passages: Sequence[str], definition: str) -> Placed:
    """Context, first and last sentence of passages, read as `epicqa.measures.locate` reads a run's."""
    rows = []
    for passage in passages:
        try:
            first, last = parse_passage_id(passage)
        except ValueError as error:
            raise EpicqaError(f"run rows of {question.question_id}: {error}") from None
        context = question.contexts.get(str(first.context_id), -1)
        if definition == "published" and first.context_id != last.context_id:
            context = -1
        rows.append((context, first.sentence, last.sentence))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that ir-measures says on the standard streams gets through: log, warnings, C code, Perl."""
    # Its handlers hold the streams of the time of import, which redirecting does not reach.
    loggers = [logging.getLogger(name) for name in ("ir_measures", "ir_measures.cwl_eval")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        with (
            _no_standard_error(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextlib.contextmanager
def _no_standard_error() -> Iterator[None]:
    """The file descriptor that C code and child processes write to leads nowhere."""
    try:
        kept = os.dup(2)
    except OSError:
        # A program without one has nothing to hide.
        yield
        return
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def calculate(measures: Sequence[Measure], qrels: Any, run: Any) -> dict[tuple[Measure, str], float]:
    """What ir-measures computes, silently: (measure, query id) -> value; a query may be missing.

    Raises:
        EpicqaError: a measure cannot be computed; whatever went wrong, in one line.
    """
    try:
        with quiet():
            return {
                (metric.measure, metric.query_id): float(metric.value)
                for metric in ir_measures.iter_calc(measures, qrels, run)
            }
    except EpicqaError:
        raise
    # Providers raise whatever they come across: assertions, KeyError, ZeroDivisionError, a child's failure.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        names = ", ".join(map(str, measures))
        raise EpicqaError(f"{names}: cannot be computed ({reason}), expected another measure") from None


def _register() -> None:
    """Make the measures and the provider known; what an earlier import made known is replaced."""
    for measure in (NDNS, NuggetRecall):
        registry[measure.NAME] = measure
    provider = providers.register(EpicqaProvider())
    pipeline = ir_measures.DefaultPipeline.providers
    pipeline[:] = [*(one for one in pipeline if one.NAME != provider.NAME), provider]


_register()
