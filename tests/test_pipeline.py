"""Stages put together, on the real sample index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa import sample
from epicqa.config import DIVERSITY, Config
from epicqa.errors import EpicqaError
from epicqa.index.build import Index, open_index
from epicqa.pipeline import Answer, Pipeline, _parted, query_text, settle
from epicqa.questions import Question, read_questions
from epicqa.ranking import Ranking

QUESTIONS = read_questions(sample.questions_path("expert"))


@pytest.fixture
def index(home: Path) -> Index:
    return open_index("sample")


@pytest.fixture
def bare(home: Path) -> Index:
    return open_index("bare")


def answers(
    index: Index, questions: tuple[Question, ...] = QUESTIONS, threads: int = 2, **settings
) -> list[Answer]:
    config, _ = settle(Config(**settings), index)
    return list(Pipeline(index, config, threads=threads).answer(questions))


def rows_of(ranking: Ranking) -> list[int]:
    spans = zip(ranking.first.tolist(), ranking.last.tolist(), strict=True)
    return [row for first, last in spans for row in range(first, last + 1)]


def same(one: Answer, other: Answer) -> bool:
    pairs = [
        (getattr(one.passages, name), getattr(other.passages, name)) for name in ("first", "last", "score")
    ]
    return one.question_id == other.question_id and all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("question", "Q?"),
        ("query", "k w"),
        ("background", "b"),
        ("question+query", "Q? k w"),
        ("all", "Q? k w b"),
    ],
)
def test_query_text(fields: str, text: str) -> None:
    assert query_text(Question("EQ1", "Q?", "k w", "b"), fields) == text


def test_a_question_without_the_chosen_fields_is_searched_for_by_itself() -> None:
    lone = Question("EQ1", "Q?", "", "")
    assert {query_text(lone, fields) for fields in ("query", "background", "question+query", "all")} == {"Q?"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"retriever": "bm25"},
        {"retriever": "dense"},
        {"fusion": "rrf"},
        {"rm3": True, "k1": 1.5, "b": 0.0},
        {"max_sentences": 3},
        {"max_sentences": 3, "diversity": 0.0, "retriever": "dense"},
        {"diversity": 0.0},
        {"diversity": 0.5, "fusion": "rrf", "max_sentences": 2},
        {"diversity": 1.0},
        {"fields": "query", "pool": 1},
        {"fields": "question", "depth": 7},
        {"fields": "background", "depth": 1, "max_sentences": 100, "retriever": "bm25"},
        {"max_sentences": 100, "pool": 1_000_000, "dense_weight": 0.0},
    ],
    ids=str,
)
def test_every_question_gets_its_depth_without_overlaps(index: Index, settings: dict) -> None:
    store = index.store
    depth = settings.get("depth", 1000)
    assert store.n_sentences > 1000
    for answer in answers(index, QUESTIONS if not settings else QUESTIONS[:2], **settings):
        passages = answer.passages
        assert len(passages) == depth
        rows = rows_of(passages)
        assert len(rows) == len(set(rows))
        assert (passages.last - passages.first < settings.get("max_sentences", 1)).all()
        assert (store.sentence_context[passages.first] == store.sentence_context[passages.last]).all()
        assert (np.diff(passages.score) <= 1e-6).all()


def test_long_passages_are_made_and_the_best_keep_their_length(index: Index) -> None:
    deep = answers(index, QUESTIONS[:3], max_sentences=3, diversity=0.0)
    cut = answers(index, QUESTIONS[:3], max_sentences=3, diversity=0.0, depth=20)
    for one, other in zip(deep, cut, strict=True):
        assert (other.passages.last > other.passages.first).any()
        assert np.array_equal(one.passages.last[:20], other.passages.last)


def test_threads_and_company_do_not_matter(index: Index) -> None:
    for settings in ({"depth": 300}, {"rm3": True, "max_sentences": 2, "diversity": 0.0}):
        together = answers(index, threads=2, **settings)
        alone = [one for question in QUESTIONS for one in answers(index, (question,), threads=1, **settings)]
        assert all(same(one, other) for one, other in zip(together, alone, strict=True))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("retriever", ["bm25"]),
        ("retriever", ["dense"]),
        ("fusion", ["rrf", "minmax"]),
        ("rm3", [True, False]),
        ("k1", [2.0, 0.2]),
        ("b", [1.0, 0.0]),
        ("dense_weight", [0.9, 0.1]),
        ("max_sentences", [3, 1]),
        ("diversity", [0.0, 0.9]),
        ("fields", ["query", "all"]),
    ],
)
def test_every_setting_does_something(index: Index, name: str, values: list) -> None:
    default = getattr(settle(Config(), index)[0], name)
    value = next(value for value in values if value != default)
    base = answers(index, QUESTIONS[:1], depth=50)
    assert not same(base[0], answers(index, QUESTIONS[:1], depth=50, **{name: value})[0])


def test_without_vectors_depth_is_what_bm25_finds(bare: Index) -> None:
    config, notes = settle(Config(), bare)
    assert (config.retriever, config.diversity, config.index) == ("bm25", 0.0, "bare")
    assert len(notes) == 1 and "MMR is off" in notes[0] and "depth is filled by what BM25 finds" in notes[0]
    found = {count: answers(bare, max_sentences=count, depth=300) for count in (1, 3)}
    whole = answers(bare)
    assert all(0 < len(answer.passages) < 1000 for answer in whole)
    for single, grown, every in zip(found[1], found[3], whole, strict=True):
        # Long passages are parted before the depth is missed.
        assert len(single.passages) == len(grown.passages) == min(300, len(every.passages))
    lost = Question("EQ1", "zzzz qqqq", "", "")
    assert len(answers(bare, (lost,))[0].passages) == 0


def test_settle_with_vectors(index: Index) -> None:
    config, notes = settle(Config(), index)
    assert (config.retriever, config.diversity, config.index, notes) == ("hybrid", DIVERSITY, "sample", [])
    assert settle(Config(retriever="bm25", diversity=0.0), index)[0].retriever == "bm25"
    assert settle(config, index) == (config, [])


@pytest.mark.parametrize(
    "settings", [{"retriever": "dense"}, {"retriever": "hybrid"}, {"diversity": 0.3}], ids=str
)
def test_what_needs_vectors_is_refused_without(bare: Index, settings: dict) -> None:
    with pytest.raises(EpicqaError, match=r"^index 'bare' has no vectors .*, expected --") as error:
        settle(Config(**settings), bare)
    assert "\n" not in str(error.value)


def test_given_passages_keep_to_themselves(index: Index) -> None:
    given = {
        QUESTIONS[0].question_id: Ranking([5, 4, 9, 9, 2], [6, 5, 9, 9, 2], [1, 1, 0.5, 0.5, 0.1]),
        QUESTIONS[2].question_id: Ranking([], [], []),
        "EQ999": Ranking([1], [1], [1]),
    }
    for diversity in (0.0, 0.5):
        config, _ = settle(Config(diversity=diversity), index)
        first, last = Pipeline(index, config).answer(QUESTIONS, given=given)
        assert (first.question_id, last.question_id) == (QUESTIONS[0].question_id, QUESTIONS[2].question_id)
        assert sorted(first.passages.first.tolist()) == [2, 5, 9] and len(last.passages) == 0
        assert diversity or first.passages.first.tolist() == [5, 9, 2]


def test_rerank_depth_and_replay(index: Index, tiny_reranker: Path) -> None:
    config, _ = settle(Config(reranker=str(tiny_reranker), rerank_depth=20, diversity=0.0), index)
    plain = answers(index, QUESTIONS[:2], diversity=0.0)
    pipeline = Pipeline(index, config)
    scored = list(pipeline.answer(QUESTIONS[:2], reached={QUESTIONS[1].question_id: 0}))
    assert [answer.reranked for answer in scored] == [20, 0]
    assert set(scored[0].passages.first[:20].tolist()) == set(plain[0].passages.first[:20].tolist())
    assert scored[0].passages.first[:20].tolist() != plain[0].passages.first[:20].tolist()
    assert np.array_equal(scored[0].passages.first[20:], plain[0].passages.first[20:])
    assert same(scored[1], plain[1])


def test_passage_text_is_the_contexts_own(index: Index) -> None:
    store = index.store
    pipeline = Pipeline(index, settle(Config(), index)[0])
    first = int(store.context_first[3])
    last = int(store.context_first[4]) - 1
    text = pipeline.passage_text(first, last)
    assert text.startswith(store.sentence_text(first)) and text.endswith(store.sentence_text(last))
    assert text in store.context_text(3)


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 30))
def test_parting(lengths: list[int], depth: int) -> None:
    starts = np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, int)
    order = np.random.default_rng(len(lengths)).permutation(len(lengths))
    first, length = starts[order], np.array(lengths, int)[order]
    passages = Ranking(first, first + length - 1, -np.arange(len(lengths)))
    parted = _parted(passages, depth)
    assert rows_of(parted) == rows_of(passages)
    assert len(parted) == max(len(passages), min(depth, sum(lengths)))
    assert (np.diff(parted.score) <= 0).all()
    # Those before the first one that was parted are as they were, and those after it are single sentences.
    long = np.flatnonzero(parted.last > parted.first)
    kept = 0 if not len(long) else int(long[-1])
    assert np.array_equal(parted.last[:kept], passages.last[:kept])
