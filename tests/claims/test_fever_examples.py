"""FEVER's training sets from the small made-up Wikipedia."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.examples import Example
from epicqa.claims.fever import Claim, Sentence, read_claims
from epicqa.claims.fever_examples import (
    ONE,
    SETS,
    TITLE_FIVE,
    TITLE_FIVE_ORACLE,
    TITLE_ONE,
    fever_examples,
    gold_premises,
    with_gold,
)
from epicqa.claims.pages import SENTENCES, Parts, Premise, Wiki, premises
from epicqa.claims.scifact import NOINFO, SUPPORTS
from epicqa.errors import EpicqaError
from epicqa.index.build import Index

CLAIMS = read_claims(Path(__file__).parents[1] / "golden" / "fever" / "claims.jsonl")[:60]


@pytest.fixture(scope="module")
def sets(small: Index) -> dict[str, list[Example]]:
    return {which: fever_examples(CLAIMS, small, which, threads=1) for which in SETS}


def by_claim(examples: list[Example]) -> dict[str, list[Example]]:
    found: dict[str, list[Example]] = {}
    for one in examples:
        found.setdefault(one.claim, []).append(one)
    return found


def test_one_sentence_with_its_title_and_without(sets: dict[str, list[Example]], small: Index) -> None:
    wiki = Wiki(small)
    retrieved = premises(CLAIMS, small, threads=1)
    titled = by_claim(sets[TITLE_ONE])
    for claim in CLAIMS:
        read = [one.sentences for one in titled[claim.text]]
        assert {one.label for one in titled[claim.text]} == {claim.label}
        if claim.label == NOINFO:
            ((text,),) = read
            assert text in [premise.text for premise in retrieved[claim.claim_id]]
        else:
            assert read == [(premise.text,) for premise in gold_premises(wiki, claim)] != []
    assert len(sets[ONE]) == len(sets[TITLE_ONE])
    for bare, one in zip(sets[ONE], sets[TITLE_ONE], strict=True):
        (text,), (whole,) = bare.sentences, one.sentences
        title, mark, rest = whole.partition(" ] ")
        assert (title[:2], mark, rest) == ("[ ", " ] ", text)
        assert replace(bare, sentences=()) == replace(one, sentences=())


def test_five_sentences(sets: dict[str, list[Example]], small: Index) -> None:
    wiki = Wiki(small)
    narrow = premises(CLAIMS, small, Parts(articles=False), threads=1)
    for claim, one, oracle in zip(CLAIMS, sets[TITLE_FIVE], sets[TITLE_FIVE_ORACLE], strict=True):
        assert one.claim == oracle.claim == claim.text and one.label == oracle.label == claim.label
        assert one.sentences == tuple(premise.text for premise in narrow[claim.claim_id])
        assert len(oracle.sentences) == len(one.sentences) <= SENTENCES
        assert {premise.text for premise in gold_premises(wiki, claim)} <= set(oracle.sentences)
    missed = sum(
        one.sentences != oracle.sentences
        for one, oracle in zip(sets[TITLE_FIVE], sets[TITLE_FIVE_ORACLE], strict=True)
    )
    assert 0 < missed < len(CLAIMS)


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True, max_size=5))
def test_with_gold(gold: list[int], retrieved: list[int]) -> None:
    def made(numbers: list[int]) -> tuple[Premise, ...]:
        return tuple(Premise(Sentence("A", number), str(number)) for number in numbers)

    found = [int(one.text) for one in with_gold(made(gold), made(retrieved))]
    assert len(set(found)) == len(found) == min(5, len({*gold, *retrieved}))
    assert set(gold[:5]) <= set(found) <= {*gold, *retrieved}
    kept = [one for one in retrieved if one in found]
    assert found[: len(kept)] == kept
    # Nothing is dropped but for gold.
    dropped = [one for one in retrieved if one not in found]
    assert not dropped or len(found) == 5


def test_what_is_drawn_depends_on_the_seed(sets: dict[str, list[Example]], small: Index) -> None:
    assert fever_examples(CLAIMS, small, ONE, threads=1) == sets[ONE]
    other = fever_examples(CLAIMS, small, ONE, threads=1, seed=2)
    changed = [one.label for one, before in zip(other, sets[ONE], strict=True) if one != before]
    assert set(changed) == {NOINFO}


def test_claims_of_a_page_are_not_parted(small: Index) -> None:
    def claim(number: int, text: str, *pages: str) -> Claim:
        return Claim(number, text, SUPPORTS, tuple((Sentence(page, 0),) for page in pages))

    claims = [
        claim(1, "a", "Isk_-LRB-film-RRB-"),
        claim(2, "b", "Brenning"),
        claim(3, "c", "Isk (film)", "Brenning"),
        Claim(4, "a", NOINFO, ()),
        Claim(5, "d", NOINFO, ()),
    ]
    found = {one.claim: one.group for one in fever_examples(claims, small, TITLE_FIVE_ORACLE, threads=1)}
    assert set(found.values()) <= {"claim a", "claim d"}
    assert {found[text] for text in "abc"} == {"claim a"}


def test_claims_that_give_no_example(small: Index) -> None:
    absent = [
        Claim(1, "zzz", SUPPORTS, ((Sentence("No page", 0),),)),
        Claim(2, "zzz", NOINFO, ()),
        Claim(3, "zzz", SUPPORTS, ((Sentence("Isk_-LRB-film-RRB-", 99),),)),
    ]
    for which in SETS:
        assert fever_examples(absent, small, which, threads=1) == []


def test_what_is_refused(small: Index) -> None:
    with pytest.raises(EpicqaError, match="claim 1: no label, expected claims with 'label' and 'evidence'"):
        fever_examples([Claim(1, "a", None, ())], small, ONE)
    with pytest.raises(ValueError, match="set 'two', expected one of one, title-one, title-five, "):
        fever_examples(CLAIMS, small, "two")
