"""Nugget measures beside NDNS: which nuggets a ranking states, how early, and how often again.

Diversity measures by their ir-measures names, computed by pyndeval (ndeval 4.5 of the TREC Web track). The
ranking is unrolled into sentences: passages best first, a passage's sentences ascending, a sentence at its
first occurrence only. Sentences are the documents and nuggets the subtopics, so the ideal comes from all
annotated sentences and does not depend on the run.

With J(i, n) = 1 where the i-th sentence states nugget n, M nuggets stated by any annotated sentence, c(i, n)
the sentences above i that state n, and g(i) = sum over n of J(i, n) (1 - alpha)^c(i, n):

============== ====================================================== ========================
measure        formula, sums over i = 1 to k                          source
============== ====================================================== ========================
alpha_DCG@k    DCG / (sum M (1 - alpha)^(i-1) / log2(i + 1)),         Clarke et al., SIGIR 2008
               DCG = sum g(i) / log2(i + 1)
alpha_nDCG@k   DCG / DCG of the ideal ranking                         Clarke et al., SIGIR 2008
ERR_IA@k       ERR / (sum M 0.5^(i-1) / i), ERR = sum g(i) / i,       Chapelle et al., CIKM 2009
               alpha = 0.5
nERR_IA@k      ERR / ERR of the ideal ranking                         Chapelle et al., CIKM 2009
NRBP           (1 - (1 - alpha) beta) / M sum beta^(i-1) g(i), all i  Clarke et al., ICTIR 2009
nNRBP          NRBP / NRBP of the ideal ranking                       Clarke et al., ICTIR 2009
P_IA@k         (sum over i and n of J(i, n)) / (k M)                  Agrawal et al., WSDM 2009
AP_IA          mean over nuggets of average precision, all i          Agrawal et al., WSDM 2009
StRecall@k     distinct nuggets in the first k sentences / M          Zhai et al., SIGIR 2003
NuggetRecall@k distinct nuggets in the first k passages / M           the same, over passages
============== ====================================================== ========================

alpha and beta are 0.5 unless given, k is at most 20 (1000 for NuggetRecall).
Range: 0 to 1. The ideal ranking is greedy, so alpha_nDCG, nERR_IA and nNRBP can pass 1.
Ties: passages by score as a number, then rank, then line; in the greedy ideal, sentences with equal gains go
by first annotation of their context, then by number.
Passages after the first 1000 and sentences after the first 10,000 of a question do not count. A passage whose
ends lie in two contexts counts as one sentence that states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.ideals import ideals_of
from epicqa.measures.judgments import JudgedQuestion, Judgments, nugget_bits
from epicqa.measures.locate import locate, locate_all
from epicqa.measures.ndns import MAX_RANK, dns, gains
from epicqa.measures.score import scored_questions
from epicqa.problems import Problem
from epicqa.runs.model import Passages, Run

if TYPE_CHECKING:
    from ir_measures import Measure

MAX_SENTENCES = 10_000
"""Sentences a question that a ranking is unrolled to."""

DIVERSITY = ("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
"""ir-measures names of the measures that pyndeval computes."""

_NUGGET = {*DIVERSITY, "α_DCG", "α_nDCG", "MAP_IA", "NDNS", "NuggetRecall"}
_BASE = re.compile(r"\s*(\w*)")
# What pyndeval leaves undivided at cutoff 1.
_UNDIVIDED = ("alpha_DCG", "ERR_IA")


class NuggetScores(NamedTuple):
    """Nugget measures of a run.

    ``question_ids`` in the judgments' order; ``values`` maps a measure's name, as ``str`` gives it, to
    float64[n_questions]; ``warnings`` say what is left out or counts 0.
    """

    question_ids: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]
    warnings: tuple[Problem, ...]


def is_nugget_measure(name: str | Measure) -> bool:
    """Whether a measure is computed from nuggets; the others are computed from document judgments.

    The name decides, whatever parameters follow: NDNS, NuggetRecall, and what pyndeval computes.
    """
    found = _BASE.match(str(name))
    return found is not None and found[1] in _NUGGET


def score_nuggets(
    run: Run,
    judgments: Judgments,
    measures: Sequence[Measure],
    questions: Collection[str] | None = None,
    *,
    complete: bool = True,
) -> NuggetScores:
    """Nugget measures of a run, by question.

    Args:
        run: the run.
        judgments: the nuggets.
        measures: those for which `is_nugget_measure` holds, from `epicqa.measures.documents.parse_measures`.
        questions: ids to score; None means the judged questions of the kinds (expert, general) in the run.
        complete: a question that the run has no passages for counts 0; otherwise it is left out.

    Raises:
        EpicqaError: no question is left to score; a measure is not one of nuggets, or cannot be computed.
    """
    # Here, because that module needs this one's nugget_recall.
    from epicqa.measures import irm

    scored, warnings = scored_questions(run, judgments, questions, complete)
    judged = [judgments.questions[question_id] for question_id in scored]
    values: dict[str, NDArray[np.float64]] = {}
    diverse: dict[tuple[float, float, int], list[Measure]] = {}
    for measure in measures:
        values[str(measure)] = np.zeros(len(scored))
        if measure.NAME == irm.NDNS.NAME:
            values[str(measure)] = _ndns(run, judgments, scored, measure)
        elif measure.NAME == irm.NuggetRecall.NAME:
            for i, located in enumerate(locate_all(run, judged)):
                if located is not None:
                    values[str(measure)][i] = nugget_recall(judged[i], *located.placed, measure["cutoff"])
        elif measure.NAME in DIVERSITY:
            key = (measure.params.get("alpha", 0.5), measure.params.get("beta", 0.5), measure["rel"])
            diverse.setdefault(key, []).append(measure)
        else:
            raise EpicqaError(f"{measure}: computed from document judgments, expected a nugget measure")
    # Where these differ in one call, ir-measures hands the ranking to the first alone and the others get 0.
    for group in diverse.values():
        need = max(measure["cutoff"] if "cutoff" in measure.params else MAX_SENTENCES for measure in group)
        for i, question in enumerate(judged):
            passages = run.questions.get(question.question_id)
            if passages is not None:
                found = _diversity(run, passages, question, group, need)
                for measure, value in zip(group, found, strict=True):
                    values[str(measure)][i] = value
    return NuggetScores(tuple(scored), values, tuple(warnings))


def nugget_recall(
    question: JudgedQuestion,
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
    depth: int = MAX_RANK,
) -> float:
    """Distinct nuggets in the first ``depth`` passages, over those that any annotated sentence states.

    Source: subtopic recall (Zhai, Cohen and Lafferty, SIGIR 2003, section 3.1), with passages as documents.
    Range: 0 to 1; 0 where no sentence states a nugget. Arguments as of `epicqa.measures.ndns.gains`.
    """
    stated = np.bitwise_count(np.bitwise_or.reduce(question.mask, axis=0)).sum()
    found = np.bitwise_count(gains(question, context, first, last, depth=depth).new).sum()
    return float(found / stated) if stated else 0.0


def first_ranks(
    question: JudgedQuestion,
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
) -> dict[str, int | None]:
    """The rank, from 1, of the first passage that states each nugget; None where none of the first 1000 does.

    Arguments as of `epicqa.measures.ndns.gains`; `epicqa.measures.locate.locate` gives them for a run.

    Returns:
        Nugget id -> rank, in the order of the question's nuggets; those that no sentence states are there.
    """
    found = gains(question, context, first, last)
    row, nugget = np.nonzero(nugget_bits(found.new, len(question.nuggets)))
    rank_of = dict(zip(nugget.tolist(), (found.rank[row] + 1).tolist(), strict=True))
    return {nugget_id: rank_of.get(i) for i, nugget_id in enumerate(question.nuggets)}


def unrolled(
    context: NDArray[np.integer],
    first: NDArray[np.integer],
    last: NDArray[np.integer],
    most: int = MAX_SENTENCES,
) -> NDArray[np.int64]:
    """The different sentences of passages in order: int64[n, 2], context and number, n at most ``most``.

    Args:
        context: [n] a number from 0 to 2^31 - 1 for each passage's context.
        first, last: [n] numbers of the first and last sentence, inclusive, below 2^30.
        most: sentences at most.
    """
    start = np.asarray(context, dtype=np.int64) << 32 | np.asarray(first, dtype=np.int64)
    # Among as many sentences of one passage at least `most` are not among the fewer that came before it.
    length = np.clip(np.asarray(last, dtype=np.int64) - np.asarray(first, dtype=np.int64) + 1, 0, 2 * most)
    ends = length.cumsum()
    found = np.zeros(0, dtype=np.int64)
    done = 0
    while done < len(start) and len(found) < most:
        before = ends[done - 1] if done else 0
        stop = max(done + 1, int(np.searchsorted(ends, before + 4 * most, side="right")))
        part = length[done:stop]
        offset = part.cumsum() - part
        sentence = np.repeat(start[done:stop] - offset, part) + np.arange(part.sum())
        both = np.concatenate((found, sentence))
        found = both[np.sort(np.unique(both, return_index=True)[1])]
        done = stop
    found = found[:most]
    return np.stack((found >> 32, found & 0xFFFFFFFF), axis=1)


def _ndns(run: Run, judgments: Judgments, scored: Sequence[str], measure: Measure) -> NDArray[np.float64]:
    from epicqa.measures import irm

    variant = irm.variant_of(measure)
    depth = measure["cutoff"]
    judged = [judgments.questions[question_id] for question_id in scored]
    values = np.zeros(len(scored))
    for i, located in enumerate(locate_all(run, judged, variant.definition)):
        if located is not None:
            values[i] = dns(judged[i], *located.placed, [variant], depth)[0]
    best = [row[0].dns for row in ideals_of(judgments, scored, [variant], measure["ideal"], depth)]
    return values / np.array(best)


def _diversity(
    run: Run, passages: Passages, question: JudgedQuestion, measures: Sequence[Measure], need: int
) -> Iterator[float]:
    """Values of measures of one alpha and beta, from the first ``need`` sentences."""
    from ir_measures import Qrel, ScoredDoc

    from epicqa.measures import irm

    qrels = [
        Qrel("1", _name(sentence), 1, str(nugget))
        for sentence, nugget in np.argwhere(nugget_bits(question.mask, len(question.nuggets))).tolist()
    ]
    ranking = _ranking(run, passages, question, need)
    rows = [
        ScoredDoc("1", _name(sentence) if sentence >= 0 else f"u{rank}", float(len(ranking) - rank))
        for rank, sentence in enumerate(ranking.tolist())
    ]
    found = irm.calculate(measures, qrels, rows)
    n_stated = int(np.bitwise_count(np.bitwise_or.reduce(question.mask, axis=0)).sum())
    for measure in measures:
        value = found[measure, "1"]
        undivided = measure.NAME in _UNDIVIDED and measure["cutoff"] == 1
        yield value / n_stated if undivided else value


def _ranking(run: Run, passages: Passages, question: JudgedQuestion, most: int) -> NDArray[np.int64]:
    """The unrolled ranking as positions in ``question.mask``, -1 for a sentence that states nothing."""
    located = locate(run, question)
    assert located is not None
    n_judged = len(question.contexts)
    unjudged = n_judged + passages.first_context[located.position].astype(np.int64)
    context = np.where(located.context >= 0, located.context, unjudged)
    first, last = located.first.copy(), located.last.copy()
    spanning = np.flatnonzero((passages.first_context != passages.last_context)[located.position])
    # A code of its own each: what else the passage holds is unknown.
    context[spanning] = n_judged + len(run.contexts) + spanning
    last[spanning] = first[spanning]
    sentence = unrolled(context, first, last, most)
    key = np.repeat(np.arange(n_judged), np.diff(question.context_first)) << 32 | question.number
    wanted = sentence[:, 0] << 32 | sentence[:, 1]
    at = np.searchsorted(key, wanted)
    known = at < len(key)
    known[known] = key[at[known]] == wanted[known]
    # What stands below the last sentence with a nugget changes no measure.
    return np.where(known, at, -1)[: int(np.flatnonzero(known)[-1]) + 1 if known.any() else 1]


def _name(sentence: int) -> str:
    # pyndeval gives ties in its ideal to the later name; all have nine digits.
    return f"a{10**9 - 1 - sentence}"
