"""FEVER's measures, against hand-worked cases, the released figures, and a plain implementation."""

import copy
import unicodedata
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.claims.fever import (
    FULL,
    LABELS,
    NOINFO,
    REFUTES,
    SUPPORTS,
    Claim,
    Prediction,
    Predictions,
    Sentence,
    read_claims,
    read_predictions,
)
from epicqa.claims.fever_scores import DEFINITIONS, MEASURES, cohen_kappa, score_fever
from epicqa.claims.scifact_scores import bootstrap
from epicqa.errors import EpicqaError

A, B, C, D, E, F = (Sentence(page, line) for page, line in zip("AABBCC", (0, 1) * 3, strict=True))


def claim(claim_id: int, label: str | None, *sets: Sequence[Sentence]) -> Claim:
    return Claim(claim_id, "x", label, tuple(map(tuple, sets)))


def of(*predictions: Prediction, shape: str = FULL) -> Predictions:
    return Predictions(Path("p.jsonl"), shape, predictions, tuple(range(1, len(predictions) + 1)))


def said(claim_id: int, label: str, *sentences: Sentence) -> Prediction:
    return Prediction(claim_id, label, sentences)


def values(predictions: Predictions, claims: Sequence[Claim], definition: str) -> list[float]:
    """In the order of `MEASURES`."""
    found = score_fever(predictions, claims, definition).values()
    assert tuple(found) == MEASURES
    return list(found.values())


both = pytest.mark.parametrize("definition", DEFINITIONS)


@both
def test_a_whole_set_and_the_label(definition: str) -> None:
    gold = [claim(1, SUPPORTS, [A, B], [C]), claim(2, REFUTES, [D])]
    one = said(2, REFUTES, D)
    assert values(of(said(1, SUPPORTS, A, B), one), gold, definition) == [1, 1, 1, 1, 1]
    assert values(of(said(1, SUPPORTS, C), one), gold, definition) == [1, 1, 1, 1, 1]
    # Half a set is precise and finds nothing.
    assert values(of(said(1, SUPPORTS, A), one), gold, definition) == [0.5, 1, 1, 0.5, 2 / 3]
    # Evidence counts whatever the label.
    assert values(of(said(1, NOINFO, C, E), one), gold, definition) == [0.5, 0.5, 0.75, 1, 1.5 / 1.75]


@both
def test_only_five_count(definition: str) -> None:
    gold = [claim(1, SUPPORTS, [A, B])]
    fillers = [Sentence("X", i) for i in range(4)]
    assert values(of(said(1, SUPPORTS, *fillers[:3], A, B)), gold, definition) == [1, 1, 0.4, 1, 0.8 / 1.4]
    assert values(of(said(1, SUPPORTS, *fillers, A, B)), gold, definition) == [0, 1, 0.2, 0, 0]


@both
def test_not_enough_info_needs_no_evidence(definition: str) -> None:
    gold = [claim(1, NOINFO), claim(2, SUPPORTS, [A])]
    right = said(2, SUPPORTS, A)
    for sentences in ([], [B, C]):
        assert values(of(said(1, NOINFO, *sentences), right), gold, definition) == [1, 1, 1, 1, 1]
    assert values(of(said(1, SUPPORTS, A), right), gold, definition) == [0.5, 0.5, 1, 1, 1]


def test_quirk_no_evidence_is_precise() -> None:
    gold = [claim(1, SUPPORTS, [A])]
    assert values(of(said(1, SUPPORTS)), gold, "shared-task") == [0, 1, 1, 0, 0]
    assert values(of(said(1, SUPPORTS)), gold, "by-id") == [0, 1, 0, 0, 0]


def test_quirk_nothing_to_find() -> None:
    gold = [claim(1, NOINFO)]
    assert values(of(said(1, NOINFO, A)), gold, "shared-task") == [1, 1, 1, 0, 0]
    assert values(of(said(1, NOINFO, A)), gold, "by-id") == [1, 1, 0, 0, 0]


@both
def test_no_precision_and_no_recall(definition: str) -> None:
    # The released scorer divides by nothing here.
    assert values(of(said(1, REFUTES, B)), [claim(1, SUPPORTS, [A])], definition) == [0, 0, 0, 0, 0]


def test_quirk_by_position() -> None:
    gold = [claim(1, SUPPORTS, [A]), claim(2, REFUTES, [B])]
    turned = of(said(2, REFUTES, B), said(1, SUPPORTS, A))
    assert values(turned, gold, "shared-task") == [0, 0, 0, 0, 0]
    assert values(turned, gold, "by-id") == [1, 1, 1, 1, 1]


def test_quirk_repeated_sentences() -> None:
    gold = [claim(1, SUPPORTS, [A])]
    again = of(said(1, SUPPORTS, A, B, B, B))
    assert values(again, gold, "shared-task") == [1, 1, 0.25, 1, 0.4]
    assert values(again, gold, "by-id") == [1, 1, 0.5, 1, 2 / 3]


def test_quirk_titles_by_character() -> None:
    gold = [claim(1, SUPPORTS, [Sentence("Café_-LRB-film-RRB-", 0)])]
    for page in (unicodedata.normalize("NFD", "Café_-LRB-film-RRB-"), "Café (film)"):
        other = of(said(1, SUPPORTS, Sentence(page, 0)))
        assert values(other, gold, "shared-task") == [0, 1, 0, 0, 0]
        assert values(other, gold, "by-id") == [1, 1, 1, 1, 1]


def test_a_claim_left_out() -> None:
    gold = [claim(1, SUPPORTS, [A]), claim(2, REFUTES, [B]), claim(3, NOINFO), claim(4, NOINFO)]
    some = of(said(3, NOINFO), said(1, SUPPORTS, A))
    assert values(some, gold, "by-id") == [0.5, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(EpicqaError, match=r"^p\.jsonl: 2 predictions, expected 4, one for each claim"):
        score_fever(some, gold)


@pytest.mark.parametrize(
    ("ids", "message"),
    [([1, 9], "p.jsonl:2: claim 9: no such claim"), ([1, 1], "p.jsonl:2: claim 1: repeated")],
)
def test_claims_that_do_not_match(ids: list[int], message: str) -> None:
    with pytest.raises(EpicqaError, match=message):
        score_fever(of(*(said(i, NOINFO) for i in ids)), [claim(1, NOINFO), claim(2, NOINFO)], "by-id")


def test_gold_that_is_not_known() -> None:
    with pytest.raises(EpicqaError, match=r"^p\.jsonl: claim 1: its label is not known, expected claims"):
        score_fever(of(said(1, NOINFO)), [claim(1, None)])
    with pytest.raises(EpicqaError, match="claims of one id"):
        score_fever(of(said(1, NOINFO)), [claim(1, NOINFO), claim(1, NOINFO)], "by-id")
    with pytest.raises(KeyError):
        score_fever(of(said(1, NOINFO)), [claim(1, NOINFO)], "paper")


@both
def test_labels_only(definition: str) -> None:
    gold = [claim(1, SUPPORTS, [A]), claim(2, NOINFO)]
    labels = of(Prediction(1, SUPPORTS, None), Prediction(2, REFUTES, None), shape=LABELS)
    scores = score_fever(labels, gold, definition)
    assert scores.values() == {"label_accuracy": 0.5}
    assert scores.totals() == {"label_accuracy": (1, 2)}
    assert set(bootstrap(scores, 10)) == {"label_accuracy"}


def test_the_released_figures(shared: Path) -> None:
    folder = shared / "fever"
    claims = read_claims(folder / "paper_dev.jsonl")
    predictions = read_predictions(folder / "scorer" / "predictions.jsonl.gz")
    scores = score_fever(predictions, claims)
    assert scores.definition == "shared-task"
    assert round(scores.values()["fever_score"], 5) == 0.32573
    assert round(scores.values()["label_accuracy"], 5) == 0.52085
    plain = reference(predictions.predictions, claims, "shared-task")
    assert list(scores.values().values()) == pytest.approx(plain, abs=1e-12)
    # Three predictions have no evidence, two of them of claims with some.
    by_id = score_fever(predictions, claims, "by-id")
    assert scores.totals()["evidence_precision"] == (695.8, 6666)
    assert by_id.totals()["evidence_precision"] == (693.8, 6666)
    assert by_id.totals()["fever_score"] == scores.totals()["fever_score"] == (3257, 9999)
    # The scorer's own gold has no ids.
    actual = read_claims(folder / "scorer" / "actual.jsonl.gz", distinct=False)
    assert score_fever(predictions, actual).values() == scores.values()


def test_labels_of_another_system(shared: Path) -> None:
    claims = read_claims(shared / "fever" / "paper_dev.jsonl")
    read = read_predictions(shared / "fever" / "kgat" / "dev_label_predictions.jsonl.gz")
    known = {one.claim_id for one in claims}
    first = of(*(one for one in read.predictions if one.claim_id in known), shape=LABELS)
    label_of = {one.claim_id: one.label for one in first.predictions}
    right = sum(label_of[one.claim_id] == one.label for one in claims)
    for definition in DEFINITIONS:
        assert score_fever(first, claims, definition).totals() == {"label_accuracy": (right, 9999)}
    assert right == 7859


def reference(predictions: Sequence[Prediction], claims: Sequence[Claim], definition: str) -> list[float]:
    """The measures of `MEASURES`, with lists and loops."""
    quirks = definition == "shared-task"

    def same(one: Sentence, other: Sentence) -> bool:
        if quirks:
            return one == other
        pages = []
        for page in (one.page, other.page):
            for old, new in (("-LRB-", "("), ("-RRB-", ")"), ("-COLON-", ":"), (" ", "_")):
                page = page.replace(old, new)
            pages.append(unicodedata.normalize("NFD", page))
        return pages[0] == pages[1] and one.line == other.line

    strict = correct = total = verifiable = found = 0
    precision = 0.0
    for i, gold in enumerate(claims):
        if quirks:
            prediction = predictions[i]
        else:
            prediction = next(
                (one for one in predictions if one.claim_id == gold.claim_id), Prediction(0, "none", ())
            )
        sentences: list[Sentence] = []
        for sentence in islice(prediction.evidence or (), 5):
            if quirks or not any(same(sentence, before) for before in sentences):
                sentences.append(sentence)
        total += 1
        right = prediction.label == gold.label
        correct += right
        if gold.label == NOINFO:
            strict += right
            continue
        verifiable += 1
        whole = False
        for one in gold.evidence:
            missing = [s for s in one if not any(same(s, t) for t in sentences)]
            whole = whole or not missing
        found += whole
        strict += right and whole
        hits = [s for s in sentences if any(same(s, t) for one in gold.evidence for t in one)]
        precision += len(hits) / len(sentences) if sentences else float(quirks)
    p = precision / verifiable if verifiable else float(quirks)
    r = found / verifiable if verifiable else 0.0
    return [strict / total, correct / total, p, r, 2 * p * r / (p + r) if p + r else 0.0]


pages = st.sampled_from(["A", "A_b", "A b", "\u00c9", "E\u0301", "F_-LRB-x-RRB-", "F_(x)"])
sentences = st.builds(Sentence, pages, st.integers(0, 2))
labels = st.sampled_from([SUPPORTS, REFUTES, NOINFO])
sets = st.lists(st.lists(sentences, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple)


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[Prediction], list[Claim]]:
    ids = draw(st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True))
    gold = []
    for claim_id in ids:
        label = draw(labels)
        gold.append(Claim(claim_id, "x", label, () if label == NOINFO else draw(sets)))
    found = []
    for claim_id in draw(st.permutations(ids)):
        evidence = draw(st.lists(sentences, max_size=7))
        found.append(Prediction(claim_id, draw(labels), tuple(evidence)))
    return found, gold


@settings(max_examples=300, deadline=None)
@given(scored(), st.integers(0, 5))
def test_against_a_plain_implementation(case: tuple[list[Prediction], list[Claim]], left: int) -> None:
    found, gold = case
    before = copy.deepcopy(case)
    assert values(of(*found), gold, "shared-task") == pytest.approx(reference(found, gold, "shared-task"))
    some = found[left:] or found
    assert values(of(*some), gold, "by-id") == pytest.approx(reference(some, gold, "by-id"))
    assert (found, gold) == before


@settings(max_examples=50, deadline=None)
@given(scored())
def test_bounds_and_orders(case: tuple[list[Prediction], list[Claim]]) -> None:
    found, gold = case
    for definition in DEFINITIONS:
        fever, accuracy, *evidence = values(of(*found), gold, definition)
        assert 0 <= fever <= accuracy <= 1 and all(0 <= value <= 1 for value in evidence)
    # By ids the order of neither file matters.
    one = values(of(*found), gold, "by-id")
    assert values(of(*reversed(found)), gold[::-1], "by-id") == one


def test_figures_of_many_sums_at_once() -> None:
    gold = [claim(1, SUPPORTS, [A]), claim(2, NOINFO)]
    scores = score_fever(of(said(1, SUPPORTS, A, B), said(2, REFUTES)), gold)
    assert (scores.counts.shape, scores.counts.dtype) == ((2, 4, 2), np.int64)
    # Each claim alone, then both: a draw without evidence has the precision of its definition.
    sums = np.stack([scores.counts[0], scores.counts[1], scores.counts.sum(axis=0)]).astype(np.float64)
    assert scores.figures(sums).tolist() == [
        [1, 1, 0.5, 1, 2 / 3],
        [0, 0, 1, 0, 0],
        [0.5, 0.5, 0.5, 1, 2 / 3],
    ]
    spread = bootstrap(scores, 200)
    assert list(spread) == list(MEASURES) and 0.3 < spread["fever_score"].deviation < 0.4


_SAID = st.sampled_from([SUPPORTS, REFUTES, NOINFO])


@given(st.lists(st.tuples(_SAID, _SAID), min_size=1, max_size=12))
def test_kappa_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    gold = [
        claim(place, label, *([] if label == NOINFO else [[A]])) for place, (label, _) in enumerate(pairs)
    ]
    predictions = of(*(said(place, label) for place, (_, label) in enumerate(pairs)))
    found = {definition: score_fever(predictions, gold, definition).label_kappa for definition in DEFINITIONS}
    assert len(set(found.values())) == 1
    if len({label for pair in pairs for label in pair}) == 1:
        assert found["by-id"] == 0
    else:
        assert found["by-id"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_kappa_by_hand() -> None:
    """Cohen's formula, with 20 and 15 of 50 in agreement: p_o = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4."""
    assert cohen_kappa(np.array([[20, 5], [10, 15]])) == pytest.approx(0.4)
    assert cohen_kappa(np.zeros((2, 2), dtype=np.int64)) == 0


def test_a_claim_without_a_prediction_agrees_with_nothing() -> None:
    gold = [claim(1, SUPPORTS, [A]), claim(2, REFUTES, [A])]
    assert score_fever(of(said(1, SUPPORTS)), gold, "by-id").confusion.tolist() == [
        [1, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    # 0.5 of 0.25 by chance.
    assert score_fever(of(said(1, SUPPORTS)), gold, "by-id").label_kappa == pytest.approx(0.25 / 0.75)
