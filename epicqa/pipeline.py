"""The stages put together: a question in, a ranking of passages out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epicqa.config import DIVERSITY, Config, Retriever
from epicqa.errors import EpicqaError
from epicqa.index.build import Index
from epicqa.questions import Question
from epicqa.rank.diversity import mmr, passage_vectors
from epicqa.rank.passages import fill, grow, without_overlaps
from epicqa.ranking import Ranking
from epicqa.retrieve.context import support
from epicqa.retrieve.fuse import fuse

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

BATCH = 16
"""Questions retrieved together."""

MOST_CANDIDATES = 4000
"""Passages that MMR chooses from at most; it compares each with each in memory."""


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
        EpicqaError: it asks for vectors that the index does not have.
    """
    notes = []
    if not index.has_vectors:
        lacking = f"index {index.name!r} has no vectors (built with --dense none)"
        if config.retriever in ("dense", "hybrid"):
            raise EpicqaError(f"{lacking}, expected --retriever bm25 or another index")
        if config.diversity:
            raise EpicqaError(f"{lacking}, expected --diversity 0 or another index")
        notes.append(f"{lacking}: MMR is off, and depth is filled by what BM25 finds")
    best: Retriever = "hybrid" if index.has_vectors else "bm25"
    return replace(
        config,
        index=index.name,
        retriever=config.retriever or best,
        diversity=(DIVERSITY if index.has_vectors else 0.0) if config.diversity is None else config.diversity,
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
    ) -> Iterator[Answer]:
        """Passages of each question, in order, as they are ready.

        Args:
            questions: what to answer.
            given: another system's passages by question id, to use instead of retrieving; a question that
                it lacks is left out.
            reached: by question id, how many passages the reranker scored in the run to repeat.
        """
        reached = reached or {}
        if given is not None:
            for question in questions:
                ranking = given.get(question.question_id)
                if ranking is not None:
                    yield self._finish(question, without_overlaps(ranking), reached)
            return
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            for question, passages in zip(batch, self._retrieve(batch), strict=True):
                yield self._finish(question, self._filled(question, passages), reached)

    def _retrieve(self, questions: Sequence[Question]) -> list[Ranking]:
        """Passages that may answer, best first, enough to cut."""
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
        return [
            grow(support(ranking, store, config.context_weight), store, config.max_sentences)
            for ranking in sentences
        ]

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

    def _filled(self, question: Question, passages: Ranking) -> Ranking:
        """Enough passages for the depth, wherever there are so many and vectors can rank those not found."""
        if len(passages) < self.config.depth and self.index.has_vectors:
            passages = fill(passages, self._nearest(question), self.config.depth)
        return _parted(passages, self.config.depth)

    def _finish(self, question: Question, passages: Ranking, reached: Mapping[str, int]) -> Answer:
        config = self.config
        scored: int | None = None
        if config.reranker:
            passages, scored = self._rerank(question, passages, reached)
        if config.diversity and len(passages) > 1:
            passages = passages[: max(min(config.pool, MOST_CANDIDATES), config.depth)]
            rows = _rows(passages)
            vectors = passage_vectors(passages, rows, self.index.vectors.reconstruct(rows))
            passages = mmr(passages, vectors, config.diversity, config.depth)
        return Answer(question.question_id, passages[: config.depth], scored)

    def _rerank(
        self, question: Question, passages: Ranking, reached: Mapping[str, int]
    ) -> tuple[Ranking, int]:
        from epicqa.rank.cross_encoder import rerank

        config = self.config
        assert config.reranker
        replayed = reached.get(question.question_id)
        return rerank(
            passages,
            question.question,
            self.passage_text,
            _cross_encoder(config.reranker),
            depth=config.rerank_depth if replayed is None else replayed,
            seconds=config.rerank_seconds if replayed is None else None,
        )

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


@cache
def _cross_encoder(name: str) -> CrossEncoder:
    from epicqa.models.resolve import load_cross_encoder

    return load_cross_encoder(name)


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
