"""The stages put together: a question in, a ranking of passages out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicqa.config import Config, Diversity, Retriever
from epicqa.errors import EpicqaError
from epicqa.index.build import Index
from epicqa.questions import Question
from epicqa.rank.bi_encoder import bi_encoder_scores
from epicqa.rank.blend import Scorer, joined, rerank
from epicqa.rank.budget import Budget
from epicqa.rank.cross_encoder import cross_encoder_scores
from epicqa.rank.diversity import ORDERS, passage_vectors
from epicqa.rank.length import length_scores
from epicqa.rank.passages import fill, grow, without_overlaps
from epicqa.rank.probability import probabilities
from epicqa.rank.readability import AUDIENCES, plainness_scores
from epicqa.ranking import Ranking
from epicqa.retrieve.context import support
from epicqa.retrieve.fuse import fuse

if TYPE_CHECKING:
    from epicqa.models.backends import Loaded
    from epicqa.models.encoder import Encoder

BATCH = 16
"""Questions retrieved together."""

_PROBE = 16

MOST_CANDIDATES = 4000
"""Passages to put in an order of diversity at most; MMR compares each with each in memory."""

MOST_PASSAGES = 1000
"""Passages so ordered, whatever the depth, so that a shorter answer is the beginning of a longer one."""


_LOADING = Lock()
"""Held while a model loads: threads that ask at once would load as many copies."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question's passages, and how many of them the reranker scored (None without one)."""

    question_id: str
    passages: Ranking
    reranked: int | None


def query_text(question: Question, fields: str) -> str:
    """The text that is searched for: the chosen fields, joined by a space; the question if they are empty."""
    names = ("question", "query", "background") if fields == "all" else fields.split("+")
    return " ".join(text for name in names if (text := getattr(question, name))) or question.question


def settle(config: Config, index: Index) -> tuple[Config, list[str]]:
    """The configuration with every choice made that depends on the index, and notes on what had to give.

    Raises:
        EpicqaError: it asks for vectors that nothing gives.
    """
    notes = []
    compared = config.bi_encoder != "none"
    if not index.has_vectors:
        lacking = f"index {index.name!r} has no vectors (built with --dense none)"
        if config.retriever in ("dense", "hybrid"):
            raise EpicqaError(f"{lacking}, expected --retriever bm25 or another index")
        if config.diversity not in (None, "none") and not compared:
            raise EpicqaError(f"{lacking}, expected --diversity none, a --bi-encoder or another index")
        notes.append(f"{lacking}: sentences are found by BM25 alone, and depth is filled by what it finds")
    if config.reranker == "none" and not compared and (config.budget is not None or config.audience):
        notes.append("nothing is reranked: budget and audience make no difference")
    best: Retriever = "hybrid" if index.has_vectors else "bm25"
    new: Diversity = "novelty" if compared else "mmr" if index.has_vectors else "none"
    return replace(
        config, index=index.name, retriever=config.retriever or best, diversity=config.diversity or new
    ), notes


class Pipeline:
    """A settled configuration over an open index."""

    def __init__(self, index: Index, config: Config, *, threads: int = 2) -> None:
        self.index = index
        self.config = config
        self.threads = threads

    def answer(
        self,
        questions: Sequence[Question],
        *,
        given: Mapping[str, Ranking] | None = None,
        reached: Mapping[str, int] | None = None,
        share: float = 1.0,
    ) -> Iterator[Answer]:
        """Passages of each question, in order, as they are ready.

        Args:
            questions: what to answer.
            given: another system's passages by question id, to use instead of retrieving; a question that
                it lacks is left out.
            reached: by question id, how many passages the reranker scored in the run to repeat.
            share: of the budget, where other questions had theirs before an interruption.
        """
        reached = reached or {}
        if given is not None:
            asked = [question for question in questions if question.question_id in given]
            rankings = (without_overlaps(given[question.question_id]) for question in asked)
            found: Iterable[tuple[Question, Ranking]] = zip(asked, rankings, strict=True)
        else:
            asked = list(questions)
            found = self._retrieved(asked)
        seconds = float("inf") if self.config.budget is None else self.config.budget * share
        budget = Budget(seconds, sum(question.question_id not in reached for question in asked))
        for question, passages in found:
            depth = reached.get(question.question_id)
            yield self._ranked(question, passages, budget, depth, given is None)

    def _retrieved(self, questions: Sequence[Question]) -> Iterator[tuple[Question, Ranking]]:
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            yield from zip(batch, self._retrieve(batch), strict=True)

    def _retrieve(self, questions: Sequence[Question]) -> list[Ranking]:
        """Single sentences that may answer, best first, enough to cut."""
        config, store = self.config, self.index.store
        depth = max(config.pool, config.depth)
        if config.retriever == "bm25":
            sentences = self._bm25(questions, depth)
        elif config.retriever == "dense":
            sentences = self._dense(questions, depth)
        else:
            weights = (1 - config.dense_weight, config.dense_weight)
            pairs = zip(self._bm25(questions, depth), self._dense(questions, depth), strict=True)
            sentences = [fuse(pair, weights, config.fusion) for pair in pairs]
        return [support(ranking, store, config.context_weight) for ranking in sentences]

    def _bm25(self, questions: Sequence[Question], depth: int) -> list[Ranking]:
        from epicqa.retrieve.bm25 import Rm3, bm25_search

        config = self.config
        return bm25_search(
            self.index.lucene,
            [query_text(question, config.fields) for question in questions],
            depth,
            k1=config.k1,
            b=config.b,
            rm3=Rm3() if config.rm3 else None,
            store=self.index.store,
            threads=self.threads,
        )

    def _dense(self, questions: Sequence[Question], depth: int) -> list[Ranking]:
        from epicqa.retrieve.dense import dense_search

        texts = [query_text(question, self.config.dense_fields) for question in questions]
        return dense_search(self.index.vectors, self.index.encoder, texts, depth)

    def _ranked(
        self, question: Question, passages: Ranking, budget: Budget, replayed: int | None, own: bool
    ) -> Answer:
        """Passages from first ranking to last.

        Args:
            question: what they answer.
            passages: as they were retrieved, best first.
            budget: time for reranking.
            replayed: depth to rerank to whatever the budget says, None: ask the budget.
            own: they are single sentences that this pipeline found, to make longer and to fill up.
        """
        config, store = self.config, self.index.store
        kept: dict[str, NDArray[np.float32]] = {}
        with budget.spending():
            scorers = self.scorers(kept)
        scored: int | None = None
        if scorers:
            passages, scored = self._rerank(question, passages, scorers, budget, replayed)
        spread = self._diverse(passages, kept, scored or 0)
        if own:
            if config.max_sentences > 1:
                likely = dict(zip(passages.first.tolist(), probabilities(passages).tolist(), strict=True))
                spread = grow(spread, store, config.max_sentences, likely)
            if len(spread) < config.depth and self.index.has_vectors:
                spread = fill(spread, self._nearest(question), config.depth)
            spread = _parted(spread, config.depth)
        return Answer(question.question_id, spread[: config.depth], scored)

    def _rerank(
        self,
        question: Question,
        passages: Ranking,
        scorers: Sequence[tuple[float, Scorer]],
        budget: Budget,
        replayed: int | None,
    ) -> tuple[Ranking, int]:
        """The passages as the scorers have them, and how many were scored."""
        text = query_text(question, self.config.rerank_fields)

        def scored(depth: int) -> Ranking:
            return rerank(passages, text, self.passage_text, scorers, depth, self.config.first_weight)

        if replayed is not None:
            return scored(replayed), min(replayed, len(passages))
        if self.config.budget and not budget.timed:
            # The first passages that a model sees take longer than those that follow.
            with budget.spending():
                scored(_PROBE)
            with budget.scoring(min(_PROBE, len(passages))):
                scored(_PROBE)
        depth = min(budget.depth(self.config.rerank_depth), len(passages))
        with budget.scoring(depth):
            return scored(depth), depth

    def scorers(self, kept: dict[str, NDArray[np.float32]]) -> list[tuple[float, Scorer]]:
        """What passages are reranked by; ``kept`` gets the bi-encoder's vectors of their texts."""
        config = self.config
        found: list[tuple[float, Scorer]] = []
        if config.bi_encoder != "none":
            encoder = _encoder(config.bi_encoder)
            found.append((config.bi_encoder_weight, partial(bi_encoder_scores, encoder, kept=kept)))
        if config.reranker != "none":
            loaded = _cross_encoder(config.reranker, config.backend)
            found.append((config.cross_encoder_weight, partial(cross_encoder_scores, loaded)))
        if found:
            found.append((config.length_weight, length_scores))
            if config.audience:
                found.append((AUDIENCES[config.audience], plainness_scores))
        return found

    def _diverse(self, passages: Ranking, kept: dict[str, NDArray[np.float32]], scored: int) -> Ranking:
        """Passages in an order in which each says something new; those beyond the first follow as they were.

        They are compared by the bi-encoder's vectors as far as it went, without one by the index's.
        """
        order = ORDERS.get(str(self.config.diversity))
        if order is None:
            return passages
        if kept and scored:
            head = passages[:scored]
            spans = zip(head.first.tolist(), head.last.tolist(), strict=True)
            vectors = np.stack([kept[self.passage_text(first, last)] for first, last in spans])
        elif self.index.has_vectors and len(passages):
            head = passages[: max(min(self.config.pool, MOST_CANDIDATES), self.config.depth)]
            rows = _rows(head)
            vectors = passage_vectors(head, rows, self.index.vectors.reconstruct(rows))
        else:
            return passages
        return joined(order(self.config, head, vectors, MOST_PASSAGES), passages[len(head) :])

    def computed(self) -> dict[str, str | int] | None:
        """What models are computed by, and how: a run depends on it in its last digits. None without any."""
        config = self.config
        if config.reranker == "none" and config.bi_encoder == "none":
            return None
        import torch

        from epicqa.models.precision import native

        found: dict[str, str | int] = {"backend": "torch", "precision": native()}
        if config.reranker != "none":
            loaded = _cross_encoder(config.reranker, config.backend)
            found = {"backend": loaded.backend, "precision": loaded.precision}
        return {**found, "threads": torch.get_num_threads()}

    def _nearest(self, question: Question) -> Iterator[int]:
        """Every sentence of the collection, the nearest to the question first."""
        total = self.index.store.n_sentences
        depth = min(total, 4 * self.config.depth)
        ranking = self._dense([question], depth)[0]
        yield from ranking.first.tolist()
        # What the vectors did not give, as approximate ones may not, in collection order.
        seen = set(ranking.first.tolist())
        yield from (row for row in range(total) if row not in seen)

    def passage_text(self, first: int, last: int) -> str:
        """The text of a passage, as it stands in its context."""
        store = self.index.store
        text = store.context_text(int(store.sentence_context[first]))
        return text[store.sentence_start[first] : store.sentence_end[last]]


def _encoder(name: str) -> Encoder:
    with _LOADING:
        return _load_encoder(name)


def _cross_encoder(name: str, backend: str) -> Loaded:
    with _LOADING:
        return _load_cross_encoder(name, backend)


@cache
def _load_encoder(name: str) -> Encoder:
    from epicqa.models.resolve import load_encoder

    return load_encoder(name)


@cache
def _load_cross_encoder(name: str, backend: str) -> Loaded:
    from epicqa.models.backends import load_cross_encoder

    return load_cross_encoder(name, backend)


def _parted(passages: Ranking, depth: int) -> Ranking:
    """Passages up to ``depth``: while there are too few, sentences are parted off the last long ones."""
    missing = depth - len(passages)
    if missing <= 0 or (passages.first == passages.last).all():
        return passages
    kept: list[tuple[int, int, float]] = []
    columns = (passages.first.tolist(), passages.last.tolist(), passages.score.tolist())
    for first, last, score in reversed(list(zip(*columns, strict=True))):
        end = last
        while missing > 0 and end > first:
            kept.append((end, end, score))
            end, missing = end - 1, missing - 1
        kept.append((first, end, score))
    first, last, score = (np.array(column) for column in zip(*reversed(kept), strict=True))
    return Ranking(first, last, score)


def _rows(passages: Ranking) -> NDArray[np.int64]:
    """Every sentence of every passage, ascending."""
    spans = zip(passages.first.tolist(), passages.last.tolist(), strict=True)
    return np.unique(np.concatenate([np.arange(first, last + 1) for first, last in spans]))
