"""BM25, top 1000 of every official question, next to pyserini's batch search over the same Lucene index."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks import java
from benchmarks.options import expert_corpus, parser, work_folder
from benchmarks.sides import compare, in_turn
from epicqa.index.lucene import LuceneIndex, build_lucene
from epicqa.questions import find_questions
from epicqa.ranking import Ranking
from epicqa.retrieve.bm25 import bm25_search

K1, B, DEPTH, THREADS = 0.9, 0.4, 1000, 2

ROUNDING = 2e-3
"""How far the peer's scores may be off: it rounds them, and takes 1e-6 a place off those that tie."""


def official_texts(data: Path) -> list[str]:
    """Question, query and background of all questions of both tasks and kinds."""
    return [
        f"{question.question} {question.query} {question.background}"
        for task in ("ae", "e2e")
        for question in find_questions("all", data / "epicqa" / "questions", task)
    ]


def same_up_to_ties(ours: Ranking, peer: list[tuple[str, float]]) -> bool:
    """Whether the peer's rows are ours in the same order, but for rows of equal score, also at the cut."""
    if len(ours) != len(peer):
        return False
    scores = ours.score.tolist()
    score = dict(zip(ours.first.tolist(), scores, strict=True))
    return all(
        score.get(int(row), scores[-1]) == expected and abs(given - expected) < ROUNDING
        for (row, given), expected in zip(peer, scores, strict=True)
    )


def main() -> None:
    arguments = parser(__doc__ or "", repeats=7).parse_args()
    with work_folder(arguments.work) as work:
        store = expert_corpus(arguments.data, work)
        java.start()
        build_lucene(store, work / "lucene", threads=THREADS)
        texts = official_texts(arguments.data)
        index = LuceneIndex(work / "lucene")

        # Pyserini uses the JVM that runs. Its imports make a client of a service that is never called.
        os.environ.setdefault("OPENAI_API_KEY", "none")
        from pyserini.search.lucene import LuceneSearcher

        searcher = LuceneSearcher(str(work / "lucene"))
        searcher.set_bm25(K1, B)
        names = [str(number) for number in range(len(texts))]

        def ours() -> list[Ranking]:
            return bm25_search(index, texts, DEPTH, k1=K1, b=B, threads=THREADS)

        def peer() -> list[list[tuple[str, float]]]:
            found = searcher.batch_search(texts, names, k=DEPTH, threads=THREADS)
            return [[(hit.docid, hit.score) for hit in found[name]] for name in names]

        timings = in_turn(ours, peer, arguments.repeats)
        pairs = list(zip(ours(), peer(), strict=True))
        same = sum(same_up_to_ties(*pair) for pair in pairs)
        apart = max(
            abs(given - score)
            for mine, hits in pairs
            for (_, given), score in zip(hits, mine.score.tolist(), strict=True)
        )
        places = [
            float(np.mean([int(row) == at for (row, _), at in zip(given, mine.first.tolist(), strict=True)]))
            for mine, given in pairs
        ]
        compare(
            f"BM25 search, top {DEPTH} of {len(texts)} questions, {store.n_sentences} sentences",
            *timings,
            "pyserini",
            same_up_to_ties=same,
            largest_score_difference=round(apart, 6),
            same_place=round(float(np.mean(places)), 4),
            questions=len(texts),
        )
        if same < len(texts):
            raise SystemExit(f"{len(texts) - same} questions have other sentences than pyserini's")


if __name__ == "__main__":
    main()
