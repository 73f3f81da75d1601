"""Thresholds against trying all of them with sets and loops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.claims.examples import Example
from epicqa.claims.model import Reading
from epicqa.claims.network import LABEL_ORDER, Kind, Settings
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.system import label_of, select
from epicqa.claims.train.tuning import GRID, tune

Case = tuple[Example, Reading]

# A few of the thresholds, with values on them: a probability is to be above its threshold.
FEW = (0.2, 0.5, 0.52, 0.8)
_PROBABILITIES = st.sampled_from((0.1, 0.2, 0.3, 0.5, 0.51, 0.6, 0.9))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(0, 5))
    label = draw(st.sampled_from([SUPPORTS, NOINFO, REFUTES, None]))
    flags = tuple(draw(st.booleans()) and label != NOINFO for _ in range(count))
    rationale = draw(st.sampled_from([flags, flags, flags, None]))
    raw = np.array([draw(_PROBABILITIES) for _ in LABEL_ORDER])
    scores = np.array([draw(_PROBABILITIES) for _ in range(count)])
    example = Example("claim", ("sentence",) * count, label, rationale, "g")
    return example, Reading(scores, raw / raw.sum())


def f1(right: int, told: int, gold: int) -> float:
    if not right:
        return 0.0
    precision, recall = right / told, right / gold
    return 2 * precision * recall / (precision + recall)


def value(kind: Kind, known: Sequence[Case], threshold: float, evidence: float) -> float:
    """What is to be highest, one example after the other."""
    if kind == "rationale":
        told, gold = set(), set()
        for place, (one, read) in enumerate(known):
            assert read.sentences is not None and one.rationale is not None
            told |= {(place, sentence) for sentence in select(read.sentences, threshold)}
            gold |= {(place, sentence) for sentence, flag in enumerate(one.rationale) if flag}
        return f1(len(told & gold), len(told), len(gold))
    abstracts_right = abstracts_told = abstracts_gold = right = all_told = all_gold = 0
    for one, read in known:
        assert read.labels is not None and read.sentences is not None
        label = label_of(read.labels, evidence)
        abstracts_gold += one.label != NOINFO
        if kind == "label":
            abstracts_told += label != NOINFO
            abstracts_right += label == one.label != NOINFO
            continue
        assert one.rationale is not None
        selected = select(read.sentences, threshold)
        label = label if selected else NOINFO
        flagged = {sentence for sentence, flag in enumerate(one.rationale) if flag}
        all_gold += len(flagged)
        if label == NOINFO:
            continue
        abstracts_told += 1
        all_told += len(selected)
        if label == one.label:
            right += len(flagged & set(selected))
            abstracts_right += bool(flagged & set(selected[:3]))
    of_abstracts = f1(abstracts_right, abstracts_told, abstracts_gold)
    return of_abstracts if kind == "label" else (f1(right, all_told, all_gold) + of_abstracts) / 2


@pytest.mark.parametrize("kind", ["rationale", "label", "joint"])
@settings(max_examples=60)
@given(found=st.lists(cases(), max_size=6))
def test_thresholds_are_the_best_there_are(kind: Kind, found: list[Case]) -> None:
    start = Settings(kind, max_length=99, threshold=0.31, evidence_threshold=0.77)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("epicqa.claims.train.tuning.GRID", FEW)
        made = tune(start, [one for one, _ in found], [read for _, read in found])
    known = [
        (one, read)
        for one, read in found
        if (kind == "rationale" or one.label is not None) and (kind == "label" or one.rationale is not None)
    ]
    choices = {
        (
            threshold if kind != "label" else start.threshold,
            evidence if kind != "rationale" else start.evidence_threshold,
        )
        for threshold, evidence in itertools.product(FEW, FEW)
    }
    values = {one: value(kind, known, *one) for one in choices}
    best = max(values.values())
    if not best:
        assert made == start
        return
    chosen = (made.threshold, made.evidence_threshold)
    assert values[chosen] == pytest.approx(best)

    def off(one: tuple[float, float]) -> float:
        return abs(one[0] - 0.5) + abs(one[1] - 0.5)

    assert off(chosen) == pytest.approx(min(off(one) for one in choices if values[one] > best - 1e-9))
    assert (made.kind, made.reads, made.max_length) == (kind, "both", 99)


def test_by_hand() -> None:
    """Two of three sentences above 0.9 are right; the third would do harm, 0.6 does not part them."""
    example = Example("c", ("a", "b", "d"), SUPPORTS, (True, True, False), "g")
    reading = Reading(np.array([0.95, 0.7, 0.65]), np.array([0.3, 0.6, 0.1]))
    made = tune(Settings("rationale"), [example], [reading])
    assert (made.threshold, made.evidence_threshold) == (0.66, 0.5)
    made = tune(Settings("label"), [example], [reading])
    assert (made.threshold, made.evidence_threshold) == (0.5, 0.38)
    made = tune(Settings("joint"), [example], [reading])
    assert (made.threshold, made.evidence_threshold) == (0.66, 0.38)


def test_rationales_alone_say_nothing_of_a_joint_models_sentences() -> None:
    """Sentences that were given as evidence are not wrong where nobody says which are."""
    abstract = Example("c", ("a", "b"), SUPPORTS, (True, False), "g")
    given = Example("c", ("a",), SUPPORTS, None, "g")
    readings = [
        Reading(np.array([0.4, 0.3]), np.array([0.8, 0.1, 0.1])),
        Reading(np.array([0.6]), np.array([0.8, 0.1, 0.1])),
    ]
    alone = tune(Settings("joint"), [abstract], readings[:1])
    assert tune(Settings("joint"), [abstract, *[given] * 5], [*readings, *readings[1:] * 4]) == alone
    assert alone.threshold == 0.38


def test_the_grid_holds_a_half() -> None:
    assert 0.5 in GRID and GRID[0] > 0 and GRID[-1] < 1
    assert tune(Settings("joint"), [], []) == Settings("joint")
