"""A ranking sorted by a sum of standardised scores, against that sum written out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.corpus.store import CorpusStore
from epicqa.models.backends import load_cross_encoder
from epicqa.models.resolve import load_encoder
from epicqa.rank.bi_encoder import bi_encoder_scores
from epicqa.rank.blend import WINDOW, Scorer, joined, rerank, standardised
from epicqa.rank.cross_encoder import cross_encoder_scores
from epicqa.rank.length import length_scores
from epicqa.ranking import Ranking

Case = tuple[Ranking, list[tuple[float, dict[str, float]]]]


def text_of(first: int, last: int) -> str:
    return f"{first} to {last}"


def plain_z(scores: Sequence[float]) -> list[float]:
    """One value at a time."""
    if min(scores) == max(scores):
        return [0.0] * len(scores)
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((one - mean) ** 2 for one in scores) / len(scores))
    return [(one - mean) / spread for one in scores]


def looked_up(table: dict[str, float]) -> Scorer:
    return lambda question, texts: np.array([table[text] for text in texts])


def columns(ranking: Ranking) -> list[tuple[int, int, float]]:
    return list(zip(ranking.first.tolist(), ranking.last.tolist(), ranking.score.tolist(), strict=True))


def spans(ranking: Ranking) -> list[tuple[int, int]]:
    return [(first, last) for first, last, _ in columns(ranking)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A ranking, each passage from a row of its own, and scorers by text with weights; many scores tie."""
    rows = draw(st.lists(st.integers(0, 99), unique=True, min_size=1, max_size=30))
    few = st.sampled_from([-2.5, 0.0, 0.1, 1.0, 7.0])
    scores = sorted(draw(st.lists(few, min_size=len(rows), max_size=len(rows))), reverse=True)
    first = np.array(rows) * 10
    ranking = Ranking(first, first + np.array(rows) % 3, np.array(scores))
    scorers = []
    for _ in range(draw(st.integers(0, 3))):
        found = draw(st.lists(few, min_size=len(rows), max_size=len(rows)))
        texts = [text_of(first, last) for first, last in spans(ranking)]
        scorers.append((draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])), dict(zip(texts, found, strict=True))))
    return ranking, scorers


@given(cases(), st.integers(0, 35), st.sampled_from([0.0, 1.0, 0.3]))
def test_equal_to_the_sum_written_out(case: Case, depth: int, first_weight: float) -> None:
    ranking, scorers = case
    found = rerank(
        ranking,
        "q",
        text_of,
        [(weight, looked_up(table)) for weight, table in scorers],
        depth,
        first_weight,
    )
    head, rest = ranking[:depth], ranking[depth:]
    assert sorted(spans(found[:depth])) == sorted(spans(head))
    if depth:
        expected = [first_weight * z for z in plain_z(head.score.tolist())]
        for weight, table in scorers:
            values = plain_z([table[text_of(first, last)] for first, last in spans(head)])
            expected = [total + weight * z for total, z in zip(expected, values, strict=True)]
        score = {(first, last): score for first, last, score in columns(found)}
        assert [score[span] for span in spans(head)] == pytest.approx(expected, abs=1e-5)
        order = [(-score, first) for first, _, score in columns(found[:depth])]
        assert order == sorted(order)
    # The others follow as they were.
    assert spans(found[depth:]) == spans(rest)
    if depth and len(rest):
        assert found.score[depth] < found.score[depth - 1]
        assert np.diff(found.score[depth:]) == pytest.approx(np.diff(rest.score), abs=1e-5)


@given(cases())
def test_only_differences_of_scores_count(case: Case) -> None:
    ranking, scorers = case
    plain = [(weight, looked_up(table)) for weight, table in scorers]
    moved = [
        (weight, looked_up({text: 1024 * (score - 3) for text, score in table.items()}))
        for weight, table in scorers
    ]
    shifted = Ranking(ranking.first, ranking.last, 4 * (ranking.score + 16))
    one, other = rerank(ranking, "q", text_of, plain, 50), rerank(shifted, "q", text_of, moved, 50)
    score = {first: score for first, _, score in columns(other)}
    assert [score[first] for first, _, _ in columns(one)] == pytest.approx(one.score.tolist(), abs=3e-5)


def test_equal_sums_go_to_the_lower_row() -> None:
    rows = np.array([9, 3, 7, 1])
    ranking = Ranking(rows, rows + 1, np.array([4, 3, 2, 1]))
    same = (1.0, lambda question, texts: np.full(len(texts), 0.1))
    found = rerank(ranking, "q", text_of, [same], depth=4, first_weight=0.0)
    assert spans(found) == [(1, 2), (3, 4), (7, 8), (9, 10)]
    assert found.score.tolist() == [0, 0, 0, 0]
    # A scorer that tells none apart leaves the order to the others.
    assert spans(rerank(ranking, "q", text_of, [same], depth=4)) == spans(ranking)


def test_what_rounding_drops_does_not_decide() -> None:
    ranking = Ranking.of_sentences(np.array([5, 2, 8]), np.array([1.0, 1.0, 0.0]))
    close = (1.0, lambda question, texts: np.array([1 + 1e-7, 1.0, 0.0]))
    assert rerank(ranking, "q", text_of, [close], depth=3).first.tolist() == [2, 5, 8]


def test_no_depth_no_passages_no_scorers_one_passage() -> None:
    ranking = Ranking.of_sentences(np.array([5, 2]), np.array([3.0, 1.0]))

    def never(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        raise AssertionError("there is nothing to score")

    assert rerank(ranking, "q", text_of, [(1.0, never)], depth=0) is ranking
    empty = ranking[:0]
    assert rerank(empty, "q", text_of, [(1.0, never)], depth=9) is empty
    assert columns(rerank(ranking, "q", text_of, [], depth=9)) == [(5, 5, 1.0), (2, 2, -1.0)]
    one = (1.0, lambda question, texts: np.array([-3.5]))
    assert columns(rerank(ranking[:1], "q", text_of, [one], depth=9)) == [(5, 5, 0.0)]
    # The best alone is scored, and stays above the other.
    found = columns(rerank(ranking, "q", text_of, [one], depth=1))
    assert found[0] == (5, 5, 0.0) and found[1][:2] == (2, 2) and found[1][2] < 0


@pytest.mark.parametrize("depth", [1, WINDOW - 1, WINDOW, WINDOW + 1, 300, 999])
def test_scorers_get_the_question_and_windows_in_rank_order(depth: int) -> None:
    rows = np.random.default_rng(depth).permutation(400)
    ranking = Ranking(rows, rows + 1, np.linspace(9, 1, 400))
    windows: list[list[str]] = []

    def scorer(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        assert question == "Überträgt Stahl das Virus? 病毒"
        windows.append(list(texts))
        return np.arange(len(texts), dtype=np.float64)

    rerank(ranking, "Überträgt Stahl das Virus? 病毒", text_of, [(1.0, scorer)], depth)
    assert [text for window in windows for text in window] == [
        text_of(row, row + 1) for row in rows[:depth].tolist()
    ]
    assert all(len(window) == WINDOW for window in windows[:-1]) and 0 < len(windows[-1]) <= WINDOW


def test_arrays_that_are_given_are_left_alone() -> None:
    kept = np.array([1.0, 2.0, 4.0])
    standardised(kept)
    ranking = Ranking.of_sentences(np.array([1, 2, 3]), np.array([3, 2, 1]))
    rerank(ranking, "q", text_of, [(2.0, lambda question, texts: kept)], depth=3)
    joined(ranking[:1], ranking[1:])
    assert kept.tolist() == [1, 2, 4] and ranking.score.tolist() == [3, 2, 1]


@given(st.lists(st.sampled_from([-1e6, -3.0, 0.0, 0.1, 1 / 3, 2.0, 1e5]), min_size=1, max_size=50))
def test_standardised_equal_to_its_definition(scores: list[float]) -> None:
    for kind in (np.float64, np.float32):
        array = np.array(scores, kind)
        found = standardised(array)
        assert found.dtype == np.float64
        assert found == pytest.approx(plain_z(array.tolist()), abs=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, -1e8, 1e30])
def test_equal_scores_do_not_differ(value: float) -> None:
    for kind in (np.float64, np.float32):
        assert not standardised(np.full(37, value, kind)).any()


def test_small_scores_differ_as_large_ones_do() -> None:
    assert standardised(np.array([3e-10, 1e-10])).tolist() == pytest.approx([1, -1])


falling = st.lists(st.floats(-50, 50, width=32), max_size=12).map(lambda some: sorted(some, reverse=True))


@given(falling, falling, st.sampled_from([0.0, 1.0, 1e6, -1e8, 3e-4]))
def test_joined_rankings_fall(upper: list[float], lower: list[float], level: float) -> None:
    head = Ranking.of_sentences(np.arange(len(upper)), np.array(upper) + level)
    rest = Ranking.of_sentences(100 + np.arange(len(lower)), np.array(lower))
    found = joined(head, rest)
    assert found.first.tolist() == [*head.first.tolist(), *rest.first.tolist()]
    assert found.last.tolist() == found.first.tolist()
    assert np.all(np.diff(found.score) <= 0)
    if not upper or not lower:
        assert columns(found) == [*columns(head), *columns(rest)]
        return
    assert found.score[: len(upper)].tolist() == head.score.tolist()
    assert found.score[len(upper)] < head.score[-1]
    if abs(level) <= 1:
        assert np.diff(found.score[len(upper) :]) == pytest.approx(np.diff(rest.score), abs=1e-4)


def test_real_models_are_summed(sample_store: CorpusStore, tiny_reranker: Path) -> None:
    def text(first: int, last: int) -> str:
        return sample_store.sentence_text(first)

    question = "How long does the virus survive on steel?"
    rows = np.random.default_rng(4).permutation(min(160, sample_store.n_sentences))
    ranking = Ranking.of_sentences(rows, np.linspace(9, 1, len(rows)))
    kept: dict[str, NDArray[np.float32]] = {}
    encoder, loaded = load_encoder("static"), load_cross_encoder(str(tiny_reranker), "torch")
    scorers: list[tuple[float, Scorer]] = [
        (2.0, partial(bi_encoder_scores, encoder, kept=kept)),
        (1.0, partial(cross_encoder_scores, loaded)),
        (1.0, length_scores),
    ]
    found = rerank(ranking, question, text, scorers, 140)
    again = rerank(ranking, question, text, scorers, 140)
    assert columns(found) == columns(again) and len(found) == len(rows)
    assert set(kept) == {text(row, row) for row in rows[:140].tolist()}
    assert found.first[140:].tolist() == rows[140:].tolist()
    # The head's scores are the sum of each scorer's own.
    texts = [text(row, row) for row in rows[:140].tolist()]
    total = np.array(plain_z(ranking.score[:140].tolist()))
    for weight, scorer in scorers:
        parts = [scorer(question, texts[start : start + WINDOW]) for start in range(0, 140, WINDOW)]
        total += weight * np.array(plain_z(np.concatenate(parts).tolist()))
    score = dict(zip(found.first.tolist(), found.score.tolist(), strict=True))
    assert [score[row] for row in rows[:140].tolist()] == pytest.approx(total, abs=1e-5)
