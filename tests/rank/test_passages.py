"""Passages: no overlaps, never across contexts, never too long, nothing lost, longer where that gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from epicqa.corpus.store import CorpusStore
from epicqa.measures.judgments import pack_question
from epicqa.measures.ndns import PUBLISHED, gains
from epicqa.rank.passages import LIFT, expected_gain, fill, grow, without_overlaps
from epicqa.ranking import Ranking

EXACT = [variant for variant in PUBLISHED if variant.name == "exact"]


def stored(lengths: list[int]) -> Any:
    """What ``grow`` reads of a corpus, for contexts of so many sentences."""
    return SimpleNamespace(
        sentence_context=np.repeat(np.arange(len(lengths)), lengths).astype(np.int32),
        context_first=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


def spans(ranking: Ranking) -> list[tuple[int, int]]:
    return list(zip(ranking.first.tolist(), ranking.last.tolist(), strict=True))


def rows_of(ranking: Ranking) -> list[int]:
    return [row for first, last in spans(ranking) for row in range(first, last + 1)]


def by_outcomes(chances: Sequence[float]) -> float:
    """The mean of n (n + 1) / (n + s) over every way in which s sentences state a new nugget or none."""
    total = 0.0
    for states in product((False, True), repeat=len(chances)):
        likely = math.prod(one if state else 1 - one for one, state in zip(chances, states, strict=True))
        count = sum(states)
        total += likely * (count * (count + 1) / (count + len(chances)) if count else 0.0)
    return total


def by_judgments(states: Sequence[bool]) -> float:
    """What the measure gives a passage whose sentences state a nugget of their own each, or none.

    A better passage has stated another nugget before.
    """
    nuggets = {f"N{number}": "" for number in range(len(states) + 1)}
    asked = {number: (2 << number) * state for number, state in enumerate(states)}
    question = pack_question("Q", nuggets, {"D-C000": {0: 1}, "D-C001": asked})
    context = np.array([0, question.contexts.get("D-C001", -1)])
    found = gains(question, context, np.array([0, 0]), np.array([0, len(states) - 1]), EXACT)
    return float(found.gain[0][found.rank == 1].sum())


@given(st.lists(st.floats(0, 1), max_size=8))
def test_expected_gain_is_the_mean_over_all_outcomes(chances: list[float]) -> None:
    assert expected_gain(chances) == pytest.approx(by_outcomes(chances), abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_expected_gain_is_the_measures_own(chances: list[float]) -> None:
    mean = 0.0
    for states in product((False, True), repeat=len(chances)):
        likely = math.prod(one if state else 1 - one for one, state in zip(chances, states, strict=True))
        mean += likely * by_judgments(states)
    assert expected_gain(chances) == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("size", range(1, 9))
def test_gain_of_what_is_known_is_the_measures_own(size: int) -> None:
    for count in range(size + 1):
        states = [place < count for place in range(size)]
        assert expected_gain([float(state) for state in states]) == by_judgments(states)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1), st.randoms())
def test_gain_rises_with_each_chance_and_has_no_order(chances: list[float], more: float, random: Any) -> None:
    gain = expected_gain(chances)
    assert expected_gain([max(chances[0], more), *chances[1:]]) >= gain - 1e-12
    # What states nothing for sure only costs.
    assert expected_gain([*chances, 0.0]) <= gain + 1e-12
    random.shuffle(chances)
    assert expected_gain(chances) == pytest.approx(gain, abs=1e-12)


def test_gain_of_nothing_and_of_one() -> None:
    assert expected_gain([]) == 0
    assert expected_gain([0.3]) == pytest.approx(0.3)


@st.composite
def retrieved(draw: st.DrawFn) -> tuple[list[int], Ranking, dict[int, float]]:
    """Lengths of contexts, some of their sentences, best first, and chances of most."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    whole = range(sum(lengths))
    rows = draw(st.one_of(st.permutations(whole), st.lists(st.sampled_from(whole), unique=True)))
    scores = sorted(
        draw(st.lists(st.sampled_from([-2.0, 0.0, 1.1, 5.0]), min_size=len(rows), max_size=len(rows))),
        reverse=True,
    )
    likely = st.one_of(st.none(), st.floats(0, 1), st.floats(0.5, 1))
    chances = draw(st.lists(likely, min_size=len(rows), max_size=len(rows)))
    chance = {row: one for row, one in zip(rows, chances, strict=True) if one is not None}
    return lengths, Ranking.of_sentences(np.array(rows, np.int64), np.array(scores)), chance


def plain_grow(
    rows: list[int], lengths: list[int], most: int, chance: Mapping[int, float]
) -> list[tuple[int, int]]:
    """Passages sentence by sentence; cases that rounding could decide are no examples."""
    context = [place for place, length in enumerate(lengths) for _ in range(length)]
    held: set[int] = set()
    found: list[tuple[int, int]] = []
    for row in rows:
        if row in held:
            continue
        span, chances = [row], [chance.get(row, 0.0)]
        while len(span) < most:
            worth: list[tuple[float, int]] = []
            for at in (span[0] - 1, span[-1] + 1):
                if at in held or at not in rows or at not in chance or context[at] != context[row]:
                    continue
                joined = by_outcomes([*chances, min(1.0, LIFT * chance[at])]) - by_outcomes(chances)
                alone = chance[at] / math.log2(rows.index(at) + 2)
                worth.append((joined / math.log2(len(found) + 2) - alone, at))
            assume(all(abs(one) > 1e-9 for one, _ in worth))
            assume(len(worth) < 2 or abs(worth[0][0] - worth[1][0]) > 1e-9)
            if not worth or max(worth)[0] <= 0:
                break
            at = max(worth)[1]
            span = sorted([*span, at])
            chances.append(min(1.0, LIFT * chance[at]))
        held.update(span)
        found.append((span[0], span[-1]))
    return found


@given(retrieved(), st.integers(2, 5))
def test_equal_to_a_plain_loop(case: tuple[list[int], Ranking, dict[int, float]], most: int) -> None:
    lengths, sentences, chance = case
    expected = plain_grow(sentences.first.tolist(), lengths, most, chance)
    assert spans(grow(sentences, stored(lengths), most, chance)) == expected


@given(retrieved(), st.integers(1, 5))
def test_passages_grown_are_well_formed(case: tuple[list[int], Ranking, dict[int, float]], most: int) -> None:
    lengths, sentences, chance = case
    store = stored(lengths)
    passages = grow(sentences, store, most, chance)
    score = dict(zip(sentences.first.tolist(), sentences.score.tolist(), strict=True))
    place = {row: rank for rank, row in enumerate(sentences.first.tolist())}
    # Every retrieved sentence is in one passage, and no other sentence is in any.
    assert sorted(rows_of(passages)) == sorted(score)
    begun = []
    for (first, last), value in zip(spans(passages), passages.score.tolist(), strict=True):
        inside = range(first, last + 1)
        assert 1 <= len(inside) <= most
        assert store.sentence_context[first] == store.sentence_context[last]
        best = min(inside, key=lambda row: place[row])
        assert value == score[best]
        begun.append(place[best])
        # What has no chance neither joins nor, of two or more, is all there is.
        assert sum(row not in chance for row in inside) <= 1
        assert len(inside) == 1 or any(chance.get(row) for row in inside)
    assert all(before < after for before, after in pairwise(begun))


@given(retrieved())
def test_single_sentences_stay_as_they_are(case: tuple[list[int], Ranking, dict[int, float]]) -> None:
    lengths, sentences, chance = case
    assert grow(sentences, stored(lengths), 1, chance) is sentences


def test_the_likelier_neighbour_joins_first_and_the_unlikely_not_at_all() -> None:
    # Rows 10 to 49 are contexts of one sentence each, ranked between the best and its neighbours.
    between = list(range(10, 50))
    ranking = Ranking.of_sentences(np.array([2, *between, 1, 3, 0]), np.linspace(9, 1, 44))
    chance = {2: 0.9, 1: 0.6, 3: 0.8, 0: 0.01}
    for lengths, most, expected in (
        ([10], 2, [(2, 3), (1, 1), (0, 0)]),
        ([10], 5, [(1, 3), (0, 0)]),
        # A context's end stops it.
        ([2, 8], 5, [(2, 3), (1, 1), (0, 0)]),
        ([3, 7], 5, [(1, 2), (3, 3), (0, 0)]),
    ):
        found = spans(grow(ranking, stored([*lengths, *[1] * 40]), most, chance))
        assert found == [expected[0], *zip(between, between, strict=True), *expected[1:]]


def test_sentences_that_are_not_ranked_part_passages() -> None:
    between = list(range(4, 44))
    ranking = Ranking.of_sentences(np.array([0, 2, *between, 3]), np.linspace(9, 1, 43))
    sure = dict.fromkeys(range(4), 1.0)
    assert spans(grow(ranking, stored([4, *[1] * 40]), 4, sure))[:2] == [(0, 0), (2, 3)]


def test_a_sentence_that_a_passage_holds_joins_no_other() -> None:
    between = list(range(4, 44))
    ranking = Ranking.of_sentences(np.array([1, 3, *between, 2]), np.linspace(9, 1, 43))
    sure = dict.fromkeys(range(4), 1.0)
    assert spans(grow(ranking, stored([4, *[1] * 40]), 2, sure))[:2] == [(1, 2), (3, 3)]


def test_a_neighbour_joins_where_it_gains_more_than_alone() -> None:
    # Two sure nuggets in two sentences gain 1.5, half a point more than one does; at rank 3 one gains 0.5.
    sure = dict.fromkeys(range(6), 1.0)
    for rows, expected in (
        ([0, 3, 1], [(0, 0), (3, 3), (1, 1)]),
        ([0, 3, 5, 1], [(0, 1), (3, 3), (5, 5)]),
    ):
        ranking = Ranking.of_sentences(np.array(rows), np.linspace(9, 1, len(rows)))
        assert spans(grow(ranking, stored([3, 2, 1]), 3, sure)) == expected


def test_the_neighbour_that_would_earn_less_alone_joins_first() -> None:
    ranking = Ranking.of_sentences(np.array([2, 8, 9, 10, 3, 1]), np.linspace(9, 1, 6))
    chance = {2: 0.9, 3: 0.8, 1: 0.8}
    assert spans(grow(ranking, stored([5, 6]), 2, chance))[0] == (1, 2)


def test_without_chances_and_without_sentences() -> None:
    ranking = Ranking.of_sentences(np.array([2, 1, 3]), np.array([1, 0.9, 0.9]))
    assert spans(grow(ranking, stored([5]), 3, {})) == [(2, 2), (1, 1), (3, 3)]
    assert spans(grow(ranking, stored([5]), 3, dict.fromkeys(range(5), 0.0))) == [(2, 2), (1, 1), (3, 3)]
    assert len(grow(ranking[:0], stored([5]), 3, {})) == 0
    assert spans(grow(ranking[:1], stored([5]), 3, dict.fromkeys(range(5), 1.0))) == [(2, 2)]


def test_on_the_real_sample(sample_store: CorpusStore) -> None:
    order = np.random.default_rng(3).permutation(sample_store.n_sentences)
    sentences = Ranking.of_sentences(order, np.linspace(9, 8, len(order)))
    chance = dict(zip(order.tolist(), np.linspace(0.9, 0.3, len(order)).tolist(), strict=True))
    passages = grow(sentences, sample_store, 3, chance)
    assert sorted(rows_of(passages)) == list(range(sample_store.n_sentences))
    context = sample_store.sentence_context
    assert np.array_equal(context[passages.first], context[passages.last])
    assert set((passages.last - passages.first + 1).tolist()) == {1, 2, 3}


@st.composite
def overlapping(draw: st.DrawFn) -> Ranking:
    found = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=20))
    first = np.array([one[0] for one in found], np.int64)
    return Ranking(
        first, first + np.array([one[1] for one in found], np.int64), np.arange(len(found), 0.0, -1.0)
    )


@given(overlapping())
def test_overlaps_are_dropped_from_the_worse(passages: Ranking) -> None:
    kept: list[tuple[int, int]] = []
    for first, last in spans(passages):
        if all(last < other[0] or other[1] < first for other in kept):
            kept.append((first, last))
    clean = without_overlaps(passages)
    assert spans(clean) == kept
    assert np.all(np.diff(clean.score) < 0) and set(clean.score) <= set(passages.score)


@given(
    overlapping().map(without_overlaps),
    st.lists(st.integers(0, 60)),
    st.integers(0, 70),
    st.sampled_from([1.0, -3.5, 0.0, 1e6, -1e8, 3e-4]),
)
def test_filled_to_the_depth(passages: Ranking, rows: list[int], depth: int, level: float) -> None:
    passages = Ranking(passages.first, passages.last, passages.score + np.float32(level))
    filled = fill(passages, rows, depth)
    count = len(passages)
    assert spans(filled)[:count] == spans(passages)
    assert np.array_equal(filled.score[:count], passages.score)
    taken = set(rows_of(passages))
    fresh = [row for row in dict.fromkeys(rows) if row not in taken]
    assert spans(filled)[count:] == [(row, row) for row in fresh[: max(0, depth - count)]]
    assert np.all(np.diff(filled.score[max(0, count - 1) :].astype(np.float64)) < 0)


def test_filling_reads_no_more_rows_than_it_needs() -> None:
    rows = iter(range(100))
    assert len(fill(Ranking.of_sentences(np.array([0]), np.array([1])), rows, 5)) == 5
    assert next(rows) <= 6
    assert len(fill(Ranking.of_sentences(np.array([]), np.array([])), range(3), 1000)) == 3
