"""How the constants of ``epicqa.rank`` were chosen: ``python -m benchmarks.quality.calibration OUT [DATA]``.

Everything is fitted on the judged expert questions of the mini collection, the general ones are only shown.
A figure "left out" is of each question with the choice that is best for the others. OUT gets the indexes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.options import DATA
from epicqa.config import Config
from epicqa.corpus.store import CorpusStore
from epicqa.index.build import BuildOptions, Index, build_index
from epicqa.measures.ideals import ideal_dns_of
from epicqa.measures.judgments import JudgedQuestion, Judgments, read_judgments
from epicqa.measures.ndns import DEFINITIONS
from epicqa.pipeline import Pipeline, settle
from epicqa.questions import Question, join_questions, question_files
from epicqa.rank import novelty, probability
from epicqa.rank.blend import Scorer, standardised
from epicqa.rank.readability import plainness_scores
from epicqa.ranking import Ranking

SIGNALS = ("first", "bi-encoder", "cross-encoder", "length")

WEIGHTS = tuple(itertools.product((1.0,), (1.5, 2.0, 3.0), (0.0, 0.25, 0.5, 1.0), (0.5, 1.0, 1.5)))
HALVES = (0.8, 0.85, 0.88, 0.9, 0.92, 0.95)
STEEPNESS = (10.0, 15.0, 20.0, 30.0, 50.0)

Order = Callable[["Asked"], NDArray[np.int64]]


@dataclass(frozen=True)
class Asked:
    """A question's first passages as they were retrieved.

    Attributes:
        question_id: the question.
        signals: name -> float64[n], standardised.
        vectors: float32[n, d], the bi-encoder's.
        rows, contexts, documents: int64[n], sentence, its context and document.
        plainness: float64[n], of its words, standardised.
        nuggets: the nuggets of each as bits, n of these, then of those that follow.
        ideal: DNS of the ideal ranking.
    """

    question_id: str
    signals: dict[str, NDArray[np.float64]]
    vectors: NDArray[np.float32]
    rows: NDArray[np.int64]
    contexts: NDArray[np.int64]
    documents: NDArray[np.int64]
    plainness: NDArray[np.float64]
    nuggets: list[int]
    ideal: float

    def total(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """The weighted sum of the signals."""
        parts = (weight * self.signals[name] for name, weight in zip(SIGNALS, weights, strict=True))
        return np.sum(list(parts), axis=0)

    @property
    def answers(self) -> NDArray[np.bool_]:
        """Whether each of the first passages states a nugget."""
        return np.array([bool(found) for found in self.nuggets[: len(self.rows)]])

    def ndns(self, order: NDArray[np.int64]) -> float:
        """NDNS exact of single sentences: the first in that order, the others as they were."""
        seen, total = 0, 0.0
        places = [*order.tolist(), *range(len(order), len(self.nuggets))]
        for rank, place in enumerate(places, start=1):
            new = self.nuggets[place] & ~seen
            total += new.bit_count() / math.log2(rank + 1)
            seen |= new
        return total / self.ideal


class _Recording(Pipeline):
    """A pipeline that notes what each scorer says."""

    def __init__(self, index: Index, config: Config) -> None:
        super().__init__(index, config)
        self.scores: dict[str, list[NDArray[np.float64]]] = {}
        self.kept: dict[str, NDArray[np.float32]] = {}

    def scorers(self, kept: dict[str, NDArray[np.float32]]) -> list[tuple[float, Scorer]]:
        def noted(name: str, scorer: Scorer, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
            found = scorer(question, texts)
            self.scores.setdefault(name, []).append(found)
            return found

        found = zip(SIGNALS[1:], super().scorers(self.kept), strict=True)
        return [(weight, partial(noted, name, scorer)) for name, (weight, scorer) in found]

    def noted(self, question: Question, judged: JudgedQuestion, ideal: float) -> Asked:
        """A question's first passages, scored."""
        self.scores.clear()
        passages = self._retrieve([question])[0][: self.config.depth]
        head = passages[: self.config.rerank_depth]
        list(self.answer([question]))
        signals = {name: standardised(np.concatenate(parts)) for name, parts in self.scores.items()}
        signals["first"] = standardised(head.score)
        store = self.index.store
        texts = [self.passage_text(row, row) for row in head.first.tolist()]
        contexts = np.asarray(store.sentence_context)[head.first]
        return Asked(
            question.question_id,
            signals,
            np.stack([self.kept[text] for text in texts]),
            head.first,
            contexts,
            np.asarray(store.context_document)[contexts],
            standardised(plainness_scores(question.question, texts)),
            _nuggets(judged, passages, store),
            ideal,
        )


def _nuggets(judged: JudgedQuestion, passages: Ranking, store: CorpusStore) -> list[int]:
    found = []
    for row in passages.first.tolist():
        context_id, _, number = store.sentence_id(row).rpartition("-S")
        bits = 0
        if (place := judged.contexts.get(context_id)) is not None:
            first, last = judged.context_first[place], judged.context_first[place + 1]
            for at in first + np.flatnonzero(judged.number[first:last] == int(number)):
                bits |= sum(int(word) << (64 * which) for which, word in enumerate(judged.mask[at]))
        found.append(bits)
    return found


def asked(kind: str, data: Path, judgments: Judgments, reranker: str) -> list[Asked]:
    """The judged questions of a kind over its mini collection."""
    index = build_index([data / "mini" / f"{kind}.jsonl.xz"], f"mini-{kind}", BuildOptions(threads=2))
    config, _ = settle(Config(reranker=reranker, diversity="none"), index)
    pipeline = _Recording(index, config)
    ideals = ideal_dns_of(judgments, list(judgments.questions), DEFINITIONS["published"][:1])
    ideal = dict(zip(judgments.questions, (one for (one,) in ideals), strict=True))
    questions = join_questions(question_files(kind, data / "epicqa" / "questions", "all"))
    return [
        pipeline.noted(one, judgments.questions[one.question_id], ideal[one.question_id])
        for one in questions
        if one.question_id in judgments.questions
    ]


def by_score(weights: Sequence[float], one: Asked) -> NDArray[np.int64]:
    return np.argsort(-one.total(weights), kind="stable")


def by_novelty(weights: Sequence[float], half: float, steepness: float, one: Asked) -> NDArray[np.int64]:
    order = by_score(weights, one)
    sorted_total = one.total(weights)[order].astype(np.float32)
    passages = Ranking.of_sentences(order, sorted_total)
    return novelty.novelty(passages, one.vectors[order], len(order), half, steepness).first


def others_of(score: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean score of the others in a passage's group, 0 where it is alone."""
    _, place, count = np.unique(group, return_inverse=True, return_counts=True)
    total = np.bincount(place, score)
    found: NDArray[np.float64] = (total[place] - score) / np.maximum(1, count[place] - 1)
    return found


def feedback(
    score: NDArray[np.float64], vectors: NDArray[np.float32], count: int = 10
) -> NDArray[np.float64]:
    """Cosines with the mean of the best passages' vectors: Rocchio's feedback."""
    best = vectors[np.argsort(-score, kind="stable")[:count]].mean(axis=0)
    return standardised(vectors @ (best / np.linalg.norm(best)))


MORE: dict[str, Callable[[Asked, NDArray[np.float64]], NDArray[np.float64]]] = {
    "its context": lambda one, score: others_of(score, one.contexts),
    "its document": lambda one, score: others_of(score, one.documents),
    "feedback": lambda one, score: feedback(score, one.vectors),
    "plain words": lambda one, score: one.plainness,
    "learned words": lambda one, score: -one.plainness,
}
"""Signals that were tried on top of the sum."""


def by_more(weights: Sequence[float], name: str, weight: float, one: Asked) -> NDArray[np.int64]:
    score = standardised(one.total(weights))
    return np.argsort(-(score + weight * MORE[name](one, score)), kind="stable")


def left_out(values: NDArray[np.float64]) -> tuple[float, list[int]]:
    """Of choices by questions, the mean of each question's value with the choice best for the others."""
    chosen = [int(np.delete(values, one, axis=1).mean(axis=1).argmax()) for one in range(values.shape[1])]
    return float(np.mean([values[choice, one] for one, choice in enumerate(chosen)])), chosen


def compare(
    name: str, choices: Sequence[object], orders: Sequence[Order], expert: list[Asked], general: list[Asked]
) -> None:
    values = np.array([[one.ndns(order(one)) for one in expert] for order in orders])
    shown = np.array([[one.ndns(order(one)) for one in general] for order in orders])
    mean, _ = left_out(values)
    print(f"\n{name}: best for the others, left out {mean:.4f}")
    for place in np.argsort(-values.mean(axis=1), kind="stable")[:20].tolist():
        print(
            f"  {choices[place]!s:<28} expert {values[place].mean():.4f}  general {shown[place].mean():.4f}"
        )


def logistic(scores: NDArray[np.float64], answers: NDArray[np.bool_]) -> tuple[float, float]:
    """Intercept and slope of greatest likelihood."""

    def loss(line: NDArray[np.float64]) -> float:
        return float(np.logaddexp(0, np.where(answers, -1, 1) * (line[0] + line[1] * scores)).sum())

    intercept, slope = minimize(loss, np.zeros(2)).x
    return float(intercept), float(slope)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=Path, help="where indexes go")
    options.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    options.add_argument("--reranker", default="epicqa", help="cross-encoder (%(default)s)")
    arguments = options.parse_args()
    os.environ["EPICQA_HOME"] = str(arguments.out)
    judgments = read_judgments(arguments.data / "mini" / "judgments.dev.json")
    expert, general = (
        asked(kind, arguments.data, judgments, arguments.reranker) for kind in ("expert", "general")
    )
    default = Config()
    chosen = (
        default.first_weight,
        default.bi_encoder_weight,
        default.cross_encoder_weight,
        default.length_weight,
    )
    compare(
        f"weights of {', '.join(SIGNALS)} (now {chosen})",
        WEIGHTS,
        [partial(by_score, weights) for weights in WEIGHTS],
        expert,
        general,
    )
    tried = [("nothing", 0.0), *itertools.product(MORE, (0.1, 0.25, 0.5))]
    compare(
        "one more signal, and its weight",
        tried,
        [partial(by_more, chosen, name if weight else "plain words", weight) for name, weight in tried],
        expert,
        general,
    )
    scores = np.concatenate([standardised(one.total(chosen)) for one in expert])
    answers = np.concatenate([one.answers for one in expert])
    intercept, slope = logistic(scores, answers)
    print(f"\nprobability: intercept {intercept:.2f}, slope {slope:.2f}", end=" ")
    print(f"(now {probability.INTERCEPT}, {probability.SLOPE})")
    likely = 1 / (1 + np.exp(-(intercept + slope * scores)))
    for low, high in itertools.pairwise((0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1)):
        inside = (likely >= low) & (likely < high)
        if inside.any():
            print(
                f"  {low:.2f} to {high:.2f}: {inside.sum():>5} passages, {answers[inside].mean():.3f} answer"
            )
    print(f"\nneighbours: a sentence answers {_lift(expert, chosen, intercept, slope):.2f} times as often")
    choices = list(itertools.product(HALVES, STEEPNESS))
    compare(
        f"novelty: half, steepness (now {novelty.HALF}, {novelty.STEEPNESS}); "
        f"without {np.mean([one.ndns(by_score(chosen, one)) for one in expert]):.4f}, "
        f"{np.mean([one.ndns(by_score(chosen, one)) for one in general]):.4f}",
        choices,
        [partial(by_novelty, chosen, half, steepness) for half, steepness in choices],
        expert,
        general,
    )
    for name, some in (("expert", expert), ("general", general)):
        known = np.mean([_without_repeats(one, by_score(chosen, one)) for one in some])
        print(f"what repeats last, as if known, {name}: {known:.4f}")


def _lift(some: list[Asked], weights: Sequence[float], intercept: float, slope: float) -> float:
    """How often sentences beside one that answers do, over what their scores let expect."""
    found, expected = 0.0, 0.0
    for one in some:
        likely = 1 / (1 + np.exp(-(intercept + slope * standardised(one.total(weights)))))
        place = {row: at for at, row in enumerate(one.rows.tolist())}
        for row, at in place.items():
            beside = place.get(row + 1), place.get(row - 1)
            for other in beside:
                if other is not None and one.answers[at] and one.contexts[other] == one.contexts[at]:
                    found += bool(one.answers[other])
                    expected += likely[other]
    return found / expected


def _without_repeats(one: Asked, order: NDArray[np.int64]) -> float:
    """NDNS if every sentence that answers and says nothing new came last: the most that novelty can gain."""
    seen, first, last = 0, [], []
    for place in order.tolist():
        found = one.nuggets[place]
        (last if found and not found & ~seen else first).append(place)
        seen |= found
    return one.ndns(np.array(first + last))


if __name__ == "__main__":
    main()
