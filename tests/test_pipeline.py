"""Stages put together, on the real sample index."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from epicqa import sample
from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.index.build import Index, open_index
from epicqa.models.resolve import load_encoder
from epicqa.pipeline import Answer, Pipeline, _parted, query_text, settle
from epicqa.questions import Question, read_questions
from epicqa.rank import budget
from epicqa.rank.readability import plainness_scores
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
        {"max_sentences": 3, "diversity": "none", "retriever": "dense"},
        {"diversity": "none"},
        {"diversity": "novelty", "fusion": "rrf", "max_sentences": 2},
        {"mmr_weight": 1.0},
        {"fields": "query", "pool": 1},
        {"fields": "question", "depth": 7},
        {"fields": "background", "depth": 1, "max_sentences": 100, "retriever": "bm25"},
        {"max_sentences": 100, "pool": 1_000_000, "dense_weight": 0.0},
        {"bi_encoder": "static"},
        {"bi_encoder": "static", "rerank_depth": 1000, "diversity": "mmr", "audience": "general"},
        {"bi_encoder": "static", "rerank_depth": 10, "max_sentences": 3},
        {"bi_encoder": "static", "rerank_depth": 10, "max_sentences": 100, "depth": 20, "pool": 20},
        {"bi_encoder": "static", "rerank_depth": 1, "diversity": "none"},
        {"bi_encoder": "static", "budget": 0.0},
    ],
    ids=str,
)
def test_every_question_gets_its_depth_without_overlaps(index: Index, plain: dict, settings: dict) -> None:
    store = index.store
    depth = settings.get("depth", 1000)
    assert store.n_sentences > 1000
    for answer in answers(index, QUESTIONS if not settings else QUESTIONS[:2], **plain | settings):
        passages = answer.passages
        assert len(passages) == depth
        rows = rows_of(passages)
        assert len(rows) == len(set(rows))
        assert (passages.last - passages.first < settings.get("max_sentences", 1)).all()
        assert (store.sentence_context[passages.first] == store.sentence_context[passages.last]).all()
        assert (np.diff(passages.score) <= 1e-6).all()


def test_long_passages_are_made_of_neighbours_in_one_context(index: Index, plain: dict) -> None:
    settings = plain | {"bi_encoder": "static", "rerank_depth": 10}
    single = answers(index, **settings)
    lengths = set()
    for most in (2, 3):
        for answer, alone in zip(answers(index, **settings, max_sentences=most), single, strict=True):
            passages = answer.passages
            rows = rows_of(passages)
            assert len(passages) == 1000 and len(rows) == len(set(rows))
            assert set(alone.passages.first[:20].tolist()) <= set(rows)
            context = index.store.sentence_context
            assert np.array_equal(context[passages.first], context[passages.last])
            found = set((passages.last - passages.first + 1).tolist())
            assert found <= set(range(1, most + 1))
            lengths |= found
    assert max(lengths) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"diversity": "novelty"},
        {"diversity": "none", "retriever": "bm25"},
        {"bi_encoder": "static"},
        {"bi_encoder": "static", "diversity": "mmr"},
        {"bi_encoder": "static", "rerank_depth": 10, "max_sentences": 3},
        {"bi_encoder": "static", "rerank_depth": 1000, "audience": "expert"},
    ],
    ids=str,
)
def test_a_shorter_answer_is_the_beginning_of_a_longer_one(index: Index, plain: dict, settings: dict) -> None:
    longest = answers(index, QUESTIONS[:3], **plain | settings)
    for depth in (1, 20, 300, 999):
        shorter = answers(index, QUESTIONS[:3], depth=depth, **plain | settings)
        for one, other in zip(longest, shorter, strict=True):
            assert same(Answer(one.question_id, one.passages[:depth], one.reranked), other)


def test_threads_and_company_do_not_matter(index: Index, plain: dict, tiny_reranker: Path) -> None:
    for settings in (
        {"depth": 300},
        {"rm3": True, "max_sentences": 2, "diversity": "none"},
        {"reranker": str(tiny_reranker), "bi_encoder": "static", "rerank_depth": 20, "depth": 30},
    ):
        together = answers(index, threads=2, **plain | settings)
        alone = [
            one
            for question in QUESTIONS
            for one in answers(index, (question,), threads=1, **plain | settings)
        ]
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
        ("context_weight", [0.0, 1.0]),
        ("diversity", ["none"]),
        ("diversity", ["novelty"]),
        ("mmr_weight", [0.0, 0.9]),
        ("fields", ["query", "all"]),
        ("dense_fields", ["query", "all"]),
    ],
)
def test_every_setting_does_something(index: Index, plain: dict, name: str, values: list) -> None:
    default = getattr(settle(Config(**plain), index)[0], name)
    value = next(value for value in values if value != default)
    base = answers(index, QUESTIONS[:1], depth=50, **plain)
    assert not same(base[0], answers(index, QUESTIONS[:1], depth=50, **plain | {name: value})[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reranker", "none"),
        ("bi_encoder", "none"),
        ("rerank_fields", "all"),
        ("rerank_depth", 20),
        ("audience", "expert"),
        ("audience", "general"),
        ("first_weight", 0.0),
        ("bi_encoder_weight", 0.0),
        ("cross_encoder_weight", 0.0),
        ("length_weight", 0.0),
        ("budget", 0.0),
        ("diversity", "mmr"),
        ("diversity", "none"),
    ],
)
def test_every_setting_of_the_reranking_does_something(
    index: Index, tiny_reranker: Path, name: str, value: object
) -> None:
    settings = {"reranker": str(tiny_reranker), "bi_encoder": "static", "rerank_depth": 10, "depth": 50}
    (base,) = answers(index, QUESTIONS[:1], **settings)
    assert not same(base, answers(index, QUESTIONS[:1], **settings | {name: value})[0])


def test_without_vectors_depth_is_what_bm25_finds(bare: Index, plain: dict) -> None:
    config, notes = settle(Config(**plain), bare)
    assert (config.retriever, config.diversity, config.index) == ("bm25", "none", "bare")
    assert len(notes) == 1 and notes[0].startswith("index 'bare' has no vectors (built with --dense none): ")
    assert notes[0].endswith("found by BM25 alone, and depth is filled by what it finds")
    lost = Question("EQ1", "zzzz qqqq", "", "")
    for encoder in ("none", "static"):
        settings = plain | {"bi_encoder": encoder, "rerank_depth": 10}
        found = {count: answers(bare, max_sentences=count, depth=300, **settings) for count in (1, 3)}
        whole = answers(bare, **settings)
        assert all(0 < len(answer.passages) < 1000 for answer in whole)
        for single, grown, every in zip(found[1], found[3], whole, strict=True):
            # Long passages are parted before the depth is missed.
            assert len(single.passages) == len(grown.passages) == min(300, len(every.passages))
        for count in (1, 3):
            (answer,) = answers(bare, (lost,), max_sentences=count, **settings)
            assert len(answer.passages) == 0 and answer.reranked == (None if encoder == "none" else 0)


def test_a_bi_encoder_stands_in_for_an_indexs_vectors(bare: Index, index: Index, plain: dict) -> None:
    settings = plain | {"bi_encoder": "static", "retriever": "bm25", "depth": 50}
    for diversity in ("novelty", "mmr"):
        spread = answers(bare, QUESTIONS[:2], **settings, diversity=diversity)
        # They are the vectors that orders compare by, whatever the index has.
        assert all(map(same, spread, answers(index, QUESTIONS[:2], **settings, diversity=diversity)))
        assert not any(map(same, spread, answers(bare, QUESTIONS[:2], **settings, diversity="none")))
    assert settle(Config(**plain | {"bi_encoder": "static"}), bare)[0].diversity == "novelty"


def test_settle_with_vectors(index: Index, plain: dict) -> None:
    config, notes = settle(Config(), index)
    assert (config.retriever, config.diversity, config.index, notes) == ("hybrid", "novelty", "sample", [])
    assert settle(Config(**plain), index)[0].diversity == "mmr"
    chosen = settle(Config(retriever="bm25", diversity="none"), index)[0]
    assert (chosen.retriever, chosen.diversity) == ("bm25", "none")
    assert settle(config, index) == (config, [])


@pytest.mark.parametrize(
    "settings",
    [{"retriever": "dense"}, {"retriever": "hybrid"}, {"diversity": "mmr"}, {"diversity": "novelty"}],
    ids=str,
)
def test_what_needs_vectors_is_refused_without(bare: Index, plain: dict, settings: dict) -> None:
    with pytest.raises(EpicqaError, match=r"^index 'bare' has no vectors .*, expected --") as error:
        settle(Config(**plain | settings), bare)
    assert "\n" not in str(error.value)


def test_given_passages_keep_to_themselves(index: Index, bare: Index, plain: dict) -> None:
    given = {
        QUESTIONS[0].question_id: Ranking([5, 4, 9, 9, 2], [6, 5, 9, 9, 2], [1, 1, 0.5, 0.5, 0.1]),
        QUESTIONS[2].question_id: Ranking([], [], []),
        "EQ999": Ranking([1], [1], [1]),
    }
    for encoder, diversity in itertools.product(("none", "static"), ("none", "mmr", "novelty")):
        settings = plain | {"bi_encoder": encoder, "diversity": diversity, "max_sentences": 3}
        for one in (index,) if encoder == "none" else (index, bare):
            config, _ = settle(Config(**settings), one)
            first, last = Pipeline(one, config).answer(QUESTIONS, given=given)
            assert (first.question_id, last.question_id) == (
                QUESTIONS[0].question_id,
                QUESTIONS[2].question_id,
            )
            spans = set(zip(first.passages.first.tolist(), first.passages.last.tolist(), strict=True))
            assert spans == {(5, 6), (9, 9), (2, 2)} and len(last.passages) == 0
            assert (first.reranked, last.reranked) == ((None, None) if encoder == "none" else (3, 0))
            if (encoder, diversity) == ("none", "none"):
                assert first.passages.first.tolist() == [5, 9, 2]


def test_rerank_depth_and_replay(index: Index, plain: dict, tiny_reranker: Path) -> None:
    settings = plain | {"reranker": str(tiny_reranker), "diversity": "none"}
    first = answers(index, QUESTIONS[:2], **plain | {"diversity": "none"})
    pipeline = Pipeline(index, settle(Config(**settings, rerank_depth=20), index)[0])
    scored = list(pipeline.answer(QUESTIONS[:2], reached={QUESTIONS[1].question_id: 0}))
    assert [answer.reranked for answer in scored] == [20, 0]
    assert set(scored[0].passages.first[:20].tolist()) == set(first[0].passages.first[:20].tolist())
    assert scored[0].passages.first[:20].tolist() != first[0].passages.first[:20].tolist()
    assert np.array_equal(scored[0].passages.first[20:], first[0].passages.first[20:])
    assert same(scored[1], first[1])


@pytest.mark.parametrize("encoder", ["static", "minilm"])
def test_bi_encoders_put_what_is_like_the_question_first(index: Index, plain: dict, encoder: str) -> None:
    settings = plain | {"bi_encoder": encoder, "rerank_depth": 30, "diversity": "none", "depth": 30}
    only = {"first_weight": 0.0, "length_weight": 0.0}
    pipeline = Pipeline(index, settle(Config(**settings, **only), index)[0])
    for question, answer in zip(QUESTIONS[:2], pipeline.answer(QUESTIONS[:2]), strict=True):
        spans = zip(answer.passages.first.tolist(), answer.passages.last.tolist(), strict=True)
        texts = [pipeline.passage_text(first, last) for first, last in spans]
        model = load_encoder(encoder)
        cosines = model.encode(texts) @ model.encode_queries([question.question])[0]
        # The pipeline's are of the processor's best precision.
        assert spearmanr(cosines, -np.arange(30)).statistic > 0.99


def test_audiences_get_words_of_their_own(index: Index, plain: dict) -> None:
    def letters(audience: str | None) -> float:
        """A word, on the mean of the first 20 passages."""
        config, _ = settle(Config(**plain | {"bi_encoder": "static"}, audience=audience, depth=20), index)
        pipeline = Pipeline(index, config)
        texts = [
            pipeline.passage_text(first, last)
            for answer in pipeline.answer(QUESTIONS)
            for first, last in zip(answer.passages.first.tolist(), answer.passages.last.tolist(), strict=True)
        ]
        return -float(plainness_scores("", texts).mean())

    assert letters("general") < letters(None) < letters("expert")


def test_a_budget_is_spent_evenly(
    index: Index, bare: Index, plain: dict, monkeypatch: pytest.MonkeyPatch, tiny_reranker: Path
) -> None:
    now = [0.0]
    read = Pipeline.passage_text

    def slow(self: Pipeline, first: int, last: int) -> str:
        now[0] += 0.01
        return read(self, first, last)

    settings = plain | {"reranker": str(tiny_reranker), "rerank_depth": 1000, "depth": 10}

    def depths(seconds: float, questions: tuple[Question, ...]) -> list[int]:
        return [answer.reranked or 0 for answer in answers(index, questions, **settings, budget=seconds)]

    with monkeypatch.context() as patch:
        patch.setattr(Pipeline, "passage_text", slow)
        patch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now[0]))
        # A hundred passages a second, of which 32 go in finding that out.
        for seconds, expected in ((0.0, 0), (0.1, 0), (1.0, 13), (4.32, 80), (1e6, 1000)):
            found = depths(seconds, QUESTIONS[:5])
            assert all(abs(depth - expected) <= 1 for depth in found), (seconds, found)
        # A question of no passages leaves its part to the others.
        lost = Question("EQ1", "zzzz qqqq", "", "")
        shares = [
            one.reranked for one in answers(bare, (lost, *QUESTIONS[:2]), **settings, budget=2.32, pool=500)
        ]
        assert shares[0] == 0 and abs(shares[1] - 100) <= 1 and abs(shares[2] - 100) <= 1, shares
        # What is known from the run before takes nothing from the rest, and neither do questions answered
        # before an interruption.
        config, _ = settle(Config(**settings, budget=2.32), index)
        replayed = {QUESTIONS[0].question_id: 30}
        again = list(Pipeline(index, config).answer(QUESTIONS[:3], reached=replayed))
        rest = list(Pipeline(index, config).answer(QUESTIONS[:2], share=0.5))
        assert again[0].reranked == 30
        for expected, answer in zip((100, 100, 42, 42), (*again[1:], *rest), strict=True):
            assert abs((answer.reranked or 0) - expected) <= 1, answer.reranked


def test_the_whole_default_on_real_questions(index: Index, plain: dict) -> None:
    found = answers(index, QUESTIONS[:2])
    for answer, first in zip(found, answers(index, QUESTIONS[:2], **plain), strict=True):
        rows = rows_of(answer.passages)
        assert answer.reranked == 400 and len(rows) == len(set(rows)) == 1000
        assert rows[:20] != rows_of(first.passages)[:20]
        assert (np.diff(answer.passages.score) <= 0).all()
    (short,) = answers(index, QUESTIONS[:1], depth=30)
    assert same(Answer(found[0].question_id, found[0].passages[:30], found[0].reranked), short)


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
