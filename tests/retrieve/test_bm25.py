"""BM25 and RM3 over the sample: against Anserini's own, and from several Python threads."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

from epicqa.corpus.store import CorpusStore
from epicqa.index import jvm
from epicqa.index.lucene import LuceneIndex, build_lucene, indexed_text
from epicqa.questions import find_questions
from epicqa.retrieve.bm25 import Rm3, bm25_search, expanded

K1, B = 0.9, 0.4
QUESTIONS = [question.question for question in find_questions("all")]


@pytest.fixture(scope="module")
def store(sample_store: CorpusStore) -> CorpusStore:
    return sample_store


@pytest.fixture(scope="module")
def index(store: CorpusStore, tmp_path_factory: pytest.TempPathFactory) -> LuceneIndex:
    folder = tmp_path_factory.mktemp("lucene") / "lucene"
    build_lucene(store, folder)
    return LuceneIndex(folder)


@pytest.fixture(scope="module")
def anserini(store: CorpusStore, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Anserini's searcher over Anserini's index of the same texts, with the term vectors its RM3 needs."""
    folder = str(tmp_path_factory.mktemp("anserini") / "index")
    with jvm.calling():
        options = jvm.load("io.anserini.index.IndexCollection$Args")()
        options.index, options.storeDocvectors, options.threads = folder, True, 1
        indexer = jvm.load("io.anserini.index.SimpleIndexer")(options)
        for row, (title, text) in enumerate(store.iter_titled(0, store.n_sentences)):
            # Ids whose order as text is the rows' order, since Anserini breaks ties by them.
            raw = {"id": f"{row:06d}", "contents": indexed_text(title, text)}
            assert indexer.addRawDocument(json.dumps(raw, ensure_ascii=False))
        indexer.close()
        return jvm.load("io.anserini.search.SimpleSearcher")(folder)


def test_single_sentences_best_first(index: LuceneIndex, store: CorpusStore) -> None:
    rankings = bm25_search(index, QUESTIONS, 30, k1=K1, b=B)
    assert len(rankings) == len(QUESTIONS)
    for ranking in rankings:
        assert len(ranking) == 30 and np.array_equal(ranking.first, ranking.last)
        assert np.all(np.diff(ranking.score) <= 0)
    [steel] = bm25_search(index, ["survival on stainless steel"], 1, k1=K1, b=B)
    assert "steel" in store.sentence_text(int(steel.first[0]))


def test_equal_to_anserini(index: LuceneIndex, anserini: Any) -> None:
    ours = bm25_search(index, QUESTIONS, 200, k1=K1, b=B)
    with jvm.calling():
        anserini.set_bm25(K1, B)
        anserini.unset_rm3()
        for text, ranking in zip(QUESTIONS, ours, strict=True):
            hits = anserini.search(text, 200)
            assert [int(hit.docid) for hit in hits] == ranking.first.tolist()
            assert [hit.score for hit in hits] == pytest.approx(ranking.score.tolist(), abs=2e-4)


@pytest.mark.parametrize("rm3", [Rm3(), Rm3(terms=20, sentences=5, weight=0.3), Rm3(3, 40, 0.9)])
def test_rm3_equal_to_anserinis(index: LuceneIndex, store: CorpusStore, anserini: Any, rm3: Rm3) -> None:
    ours = bm25_search(index, QUESTIONS, 200, k1=K1, b=B, rm3=rm3, store=store)
    plain = bm25_search(index, QUESTIONS, rm3.sentences, k1=K1, b=B)
    with jvm.calling():
        anserini.set_bm25(K1, B)
        anserini.set_rm3(rm3.terms, rm3.sentences, rm3.weight)
        for text, ranking, first in zip(QUESTIONS, ours, plain, strict=True):
            theirs = {
                entry.getKey(): entry.getValue()
                for entry in anserini.get_feedback_terms(text).entrySet().toArray()
            }
            weights = expanded(index, store, text, (first.first, first.score), rm3)
            assert weights == pytest.approx(theirs, abs=1e-6)
            hits = anserini.search(text, 200)
            assert [hit.score for hit in hits] == pytest.approx(ranking.score.tolist(), abs=2e-4)
            # Equal but for hits whose scores differ by single-precision rounding alone.
            score = dict(zip(ranking.first.tolist(), ranking.score.tolist(), strict=True))
            found = [score.get(int(hit.docid), ranking.score[-1]) for hit in hits]
            assert found == pytest.approx(ranking.score.tolist(), abs=1e-5)
            assert len({int(hit.docid) for hit in hits} - set(score)) <= 2


def test_rm3_changes_the_ranking_and_full_weight_does_not(index: LuceneIndex, store: CorpusStore) -> None:
    plain = bm25_search(index, QUESTIONS, 50, k1=K1, b=B)
    changed = bm25_search(index, QUESTIONS, 50, k1=K1, b=B, rm3=Rm3(), store=store)
    assert any(one.first.tolist() != other.first.tolist() for one, other in zip(plain, changed, strict=True))
    for text, one in zip(QUESTIONS, plain, strict=True):
        weights = expanded(index, store, text, (one.first[:10], one.score[:10]), Rm3(weight=1.0))
        terms = Counter(index.terms(text))
        total = sum(terms.values())
        assert {term: weight for term, weight in weights.items() if weight} == pytest.approx(
            {term: count / total for term, count in terms.items()}
        )


def test_rm3_takes_usable_terms_only(index: LuceneIndex, store: CorpusStore) -> None:
    text = QUESTIONS[0]
    [first] = bm25_search(index, [text], 10, k1=K1, b=B)
    added = set(expanded(index, store, text, (first.first, first.score), Rm3())) - set(index.terms(text))
    assert added
    for term in added:
        assert term.isascii() and term.isalnum() and 2 <= len(term) <= 20
        assert index.frequency(term) <= store.n_sentences / 10


def test_rm3_of_texts_that_find_nothing(index: LuceneIndex, store: CorpusStore) -> None:
    for text in ("", "the of and", "nosuchword", "\0\ud800"):
        [ranking] = bm25_search(index, [text], 10, k1=K1, b=B, rm3=Rm3(), store=store)
        assert not len(ranking)
    assert bm25_search(index, [], 10, k1=K1, b=B, rm3=Rm3(), store=store) == []


def test_rm3_needs_the_store(index: LuceneIndex) -> None:
    with pytest.raises(ValueError, match="store"):
        bm25_search(index, ["masks"], 10, k1=K1, b=B, rm3=Rm3())


def test_python_threads_get_right_answers(index: LuceneIndex, store: CorpusStore) -> None:
    """Plain search, RM3 and analysis, eight threads at once."""

    def answers(texts: list[str]) -> list[Any]:
        found = bm25_search(index, texts, 40, k1=K1, b=B)
        found += bm25_search(index, texts[:2], 40, k1=K1, b=B, rm3=Rm3(), store=store)
        return [index.terms(texts[0]), *([one.first.tolist(), one.score.tolist()] for one in found)]

    parts = [QUESTIONS[start : start + 3] for start in range(0, len(QUESTIONS), 3)]
    expected = [answers(part) for part in parts]
    results: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        results[number] = answers(parts[number])

    for _ in range(3):
        results.clear()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(parts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [results[number] for number in range(len(parts))] == expected


def test_deeper_than_the_collection(index: LuceneIndex, store: CorpusStore) -> None:
    [ranking] = bm25_search(index, ["masks"], 10**9, k1=K1, b=B)
    assert len(ranking) == index.frequency("mask") < store.n_sentences
