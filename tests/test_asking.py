"""Questions from Python, on the real sample index."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import epicqa
from epicqa import pipeline
from epicqa.asking import Asker, open_asker
from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.index.build import open_index

QUESTION = "how long does the virus survive on steel?"


@pytest.fixture
def asker(home: Path, plain: dict) -> Asker:
    return epicqa.open_index("sample", **plain)


@pytest.fixture
def default(home: Path) -> Asker:
    """With every model of the default, on a few passages."""
    return epicqa.open_index("sample", rerank_depth=8)


@pytest.mark.parametrize("name", ["asker", "default"])
def test_passages_with_their_texts_and_places(name: str, request: pytest.FixtureRequest) -> None:
    asker: Asker = request.getfixturevalue(name)
    found = asker.ask(QUESTION)
    store = asker.index.store
    assert [passage.rank for passage in found] == list(range(1, 11))
    assert any("steel" in passage.text for passage in found[:3])
    for passage in found:
        row = store.row(passage.first_id)
        context = store.sentence_context[row]
        document = int(store.context_document[context])
        assert passage.context == store.context_text(int(context))
        assert passage.text == passage.context[passage.start : passage.end]
        assert passage.text.startswith(store.sentence_text(row))
        assert passage.first_id.startswith(f"{passage.document_id}-C")
        assert (passage.title, passage.url) == (store.title(document), store.url(document))
        assert passage.section == store.section(int(context))
    scores = [passage.score for passage in found]
    assert scores == sorted(scores, reverse=True)


def test_as_many_as_asked_for(asker: Asker) -> None:
    for count in (1, 1000):
        assert len(asker.ask(QUESTION, passages=count)) == count
    for count in (0, 1001, -1):
        with pytest.raises(EpicqaError, match="expected 1 to 1000"):
            asker.ask(QUESTION, passages=count)


def test_fewer_are_the_first_of_more(default: Asker) -> None:
    assert default.ask(QUESTION, passages=30)[:5] == default.ask(QUESTION, passages=5)


def test_keywords_and_background_count(asker: Asker) -> None:
    plain = asker.ask("how long?")
    assert asker.ask("how long?", query="quarantine after travel") != plain
    assert asker.ask("how long?", background="How long masks can be worn.") != plain
    assert asker.ask("how long?", query=" ", background="\n") == plain


@pytest.mark.parametrize("question", ["", " ", "\n\t"])
def test_empty_questions_are_refused(asker: Asker, question: str) -> None:
    with pytest.raises(EpicqaError, match="the question is empty, expected text"):
        asker.ask(question, query="steel")


@pytest.mark.parametrize(
    "question",
    ["?", "\udcff steel", "\ud83d", "\0", "\u202esteel", 'steel" AND (copper', "steel " * 5000, "*:*"],
)
def test_odd_questions_are_answered(asker: Asker, default: Asker, question: str) -> None:
    for one in (asker, default):
        assert len(one.ask(question, query="\udc80", passages=3)) == 3


@pytest.mark.parametrize("encoder", ["none", "static"])
def test_nothing_found(home: Path, plain: dict, encoder: str) -> None:
    asker = open_asker("bare", **plain | {"bi_encoder": encoder}, max_sentences=3)
    assert asker.ask("zzzz qqqq") == []
    assert len(asker.notes) == 1 and "sentences are found by BM25 alone" in asker.notes[0]


def test_settings(home: Path, plain: dict) -> None:
    settings = plain | {"diversity": "none", "retriever": "bm25"}
    assert open_asker("sample", **settings).ask(QUESTION) == Asker(
        open_index("sample"), Config(**settings)
    ).ask(QUESTION)
    for settings, message in (
        ({"diversity": 0}, "diversity = 0, expected mmr, novelty, none"),
        ({"audience": "children"}, "audience = 'children', expected expert, general"),
        ({"retriever": "colbert"}, "expected bm25, dense, hybrid"),
        ({"diversty": 0}, "unknown setting 'diversty'"),
    ):
        with pytest.raises(EpicqaError, match=message):
            open_asker("sample", **settings)
    with pytest.raises(EpicqaError, match="no index 'absent'"):
        open_asker("absent")


@pytest.mark.parametrize("reranking", [False, True])
def test_threads_at_once_on_an_index_that_nobody_has_used_yet(
    home: Path, plain: dict, tiny_reranker: Path, reranking: bool
) -> None:
    models = {"reranker": str(tiny_reranker), "bi_encoder": "static", "rerank_depth": 20}
    settings = models if reranking else plain
    pipeline._load_encoder.cache_clear()
    pipeline._load_cross_encoder.cache_clear()
    asker = open_asker("sample", **settings)
    questions = [QUESTION, "do masks work?", "can pets catch it?", "how long is quarantine?"] * 3
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(asker.ask, questions))
    for load in (pipeline._load_encoder, pipeline._load_cross_encoder):
        assert load.cache_info().misses == reranking
    alone = {
        question: open_asker("sample", threads=1, **settings).ask(question) for question in set(questions)
    }
    for question, passages in zip(questions, found, strict=True):
        assert list(map(dataclasses.asdict, passages)) == list(map(dataclasses.asdict, alone[question]))
