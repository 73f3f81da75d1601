"""Examples made of claims by hand, and of the real ones."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.examples import (
    Example,
    abstract_examples,
    fingerprint,
    label_examples,
    rationale_examples,
    split,
    together,
)
from epicqa.claims.retrieval import tfidf
from epicqa.claims.scifact import (
    NOINFO,
    REFUTES,
    SUPPORTS,
    Abstract,
    Claim,
    Rationale,
    read_abstracts,
    read_claims,
)
from epicqa.errors import EpicqaError

TEXTS = {
    40: ("Cloth filters droplets.", "It is cheap.", "Masks lower spread.", "Schools saw fewer cases."),
    7: ("The virus survives on steel.", "On copper it dies."),
    23: (
        "Cats catch it.",
        "Masks are unknown to cats.",
        "Dogs do not.",
        "Masks lower the spread of droplets.",
    ),
    5: (),
    9: ("It is.", "So it was."),
}
ABSTRACTS = {doc_id: Abstract(doc_id, "", sentences, False) for doc_id, sentences in TEXTS.items()}
MASKS = Claim(
    3,
    "Masks lower the spread",
    (40, 23, 5),
    {40: (Rationale((3, 2), SUPPORTS), Rationale((0,), SUPPORTS))},
)
NOT_MASKS = Claim(
    4, "Masks raise the spread", (40,), {40: (Rationale((2,), REFUTES),), 7: (Rationale((1,), REFUTES),)}
)
STEEL = Claim(8, "Steel is safe", (9,), {})
CLAIMS = (MASKS, STEEL, NOT_MASKS)

ONE = f"claim {MASKS.text}"
OTHER = f"claim {STEEL.text}"


def test_whole_abstracts_gold_then_cited_then_retrieved() -> None:
    retrieved = {3: (23, 9, 40, 7, 5), 8: (9,), 4: (40, 7)}
    no = (False, False)
    assert abstract_examples(CLAIMS, ABSTRACTS, retrieved, 1) == [
        Example(MASKS.text, TEXTS[40], SUPPORTS, (True, False, True, True), ONE),
        Example(MASKS.text, TEXTS[23], NOINFO, no + no, ONE),
        Example(MASKS.text, (), NOINFO, (), ONE),
        Example(MASKS.text, TEXTS[9], NOINFO, no, ONE),
        Example(STEEL.text, TEXTS[9], NOINFO, no, OTHER),
        Example(NOT_MASKS.text, TEXTS[40], REFUTES, (False, False, True, False), ONE),
        Example(NOT_MASKS.text, TEXTS[7], REFUTES, (False, True), ONE),
    ]
    assert [one.sentences for one in abstract_examples([MASKS], ABSTRACTS, retrieved, 9)[3:]] == [
        TEXTS[9],
        TEXTS[7],
    ]
    assert len(abstract_examples(CLAIMS, ABSTRACTS, {}, 9)) == 6
    assert abstract_examples([STEEL], ABSTRACTS, retrieved, 0)[0].sentences == TEXTS[9]


def test_sentences_of_abstracts_with_evidence() -> None:
    found = rationale_examples(CLAIMS, ABSTRACTS)
    assert {one.label for one in found} == {None}
    assert [(one.claim, *one.sentences) for one in found] == [
        *((MASKS.text, sentence) for sentence in TEXTS[40]),
        *((NOT_MASKS.text, sentence) for sentence in (*TEXTS[40], *TEXTS[7])),
    ]
    flags = [flag for one in found for flag in one.rationale or ()]
    assert flags == [True, False, True, True, False, False, True, False, False, True]
    assert {one.group for one in found} == {ONE}
    cited = rationale_examples(CLAIMS, ABSTRACTS, cited=True)
    assert [one for one in cited if one in found] == found
    others = [one for one in cited if one not in found]
    assert [one.sentences[0] for one in others] == [*TEXTS[23], *TEXTS[9]]
    assert {one.rationale for one in others} == {(False,)}


def test_rationales_and_the_most_similar_in_their_place() -> None:
    found = label_examples([MASKS, NOT_MASKS], ABSTRACTS, 1)
    assert found == [
        Example(MASKS.text, (TEXTS[40][2], TEXTS[40][3]), SUPPORTS, None, ONE),
        Example(MASKS.text, (TEXTS[40][0],), SUPPORTS, None, ONE),
        Example(MASKS.text, (TEXTS[23][3],), NOINFO, None, ONE),
        Example(NOT_MASKS.text, (TEXTS[40][2],), REFUTES, None, ONE),
        Example(NOT_MASKS.text, (TEXTS[7][1],), REFUTES, None, ONE),
    ]


def test_how_many_stand_for_a_rationale_is_drawn() -> None:
    """The second most similar stands first in the abstract; without words that count the first ones do."""
    by_seed = [label_examples([MASKS, STEEL], ABSTRACTS, 2, seed=seed)[2:] for seed in range(40)]
    assert {one.sentences for one, _ in by_seed} == {(TEXTS[23][3],), (TEXTS[23][1], TEXTS[23][3])}
    assert {one.sentences for _, one in by_seed} == {TEXTS[9][:1], TEXTS[9]}
    alone = label_examples([STEEL], ABSTRACTS, 2, seed=7)
    assert [alone[0]] == [one for one in label_examples(CLAIMS, ABSTRACTS, 2, seed=7) if one.group == OTHER]
    most = [label_examples([STEEL], ABSTRACTS, 50, seed=seed)[0].sentences for seed in range(10)]
    assert TEXTS[9] in most and all(sentences in (TEXTS[9][:1], TEXTS[9]) for sentences in most)


def test_claims_must_have_evidence() -> None:
    unknown = [Claim(1, "What?", (), {}, judged=False)]
    for make in (
        lambda: abstract_examples(unknown, ABSTRACTS, {}, 1),
        lambda: rationale_examples(unknown, ABSTRACTS),
        lambda: label_examples(unknown, ABSTRACTS, 1),
    ):
        with pytest.raises(EpicqaError, match="claim 1: its evidence is not known"):
            make()
    assert label_examples([], ABSTRACTS, 1) == []


@given(st.lists(st.sets(st.integers(0, 12), max_size=3), max_size=12))
def test_what_shares_a_key_is_together(keys: list[set[int]]) -> None:
    expected = list(range(len(keys)))
    for _ in keys:
        for i, one in enumerate(keys):
            for j, other in enumerate(keys):
                if one & other:
                    expected[i] = expected[j] = min(expected[i], expected[j])
    assert together(keys) == expected


examples = st.lists(
    st.builds(
        lambda claim, group: Example(claim, ("x",), SUPPORTS, None, group),
        st.sampled_from("pqr"),
        st.sampled_from("abcde"),
    )
)


@given(examples, st.floats(0.01, 0.99), st.integers(0, 50))
def test_a_group_is_never_parted(examples: list[Example], share: float, seed: int) -> None:
    if len({one.group for one in examples}) < 2:
        with pytest.raises(EpicqaError, match="two or more"):
            split(examples, share, seed)
        return
    train, held = split(examples, share, seed)
    assert train and held
    assert not {one.group for one in train} & {one.group for one in held}
    assert Counter(train + held) == Counter(examples)
    for part in (train, held):
        marks = iter(examples)
        assert all(one in marks for one in part), "they stand in their order"
    assert split(examples, 0, seed) == (examples, [])


def test_fingerprint_is_of_everything_in_order() -> None:
    first = Example("a", ("b",), SUPPORTS, (True,), "g")
    changed = [
        replace(first, claim="b"),
        replace(first, sentences=("b", "c")),
        replace(first, label=None),
        replace(first, rationale=None),
        replace(first, rationale=(False,)),
        replace(first, group="h"),
    ]
    prints = {fingerprint(one) for one in ([], [first], [first, changed[0]], [changed[0], first])}
    prints |= {fingerprint([one]) for one in changed[1:]}
    assert len(prints) == 9
    assert {len(one) for one in prints} == {64}
    assert fingerprint([first]) == fingerprint(iter([first]))


def test_the_real_claims(shared: Path) -> None:
    abstracts = read_abstracts(shared / "scifact" / "corpus.jsonl.gz")
    claims = read_claims(shared / "scifact" / "claims_train.jsonl", abstracts)
    evidence = [(claim, doc_id) for claim in claims for doc_id in claim.evidence]
    without = [
        (claim, doc_id) for claim in claims for doc_id in claim.cited_doc_ids if doc_id not in claim.evidence
    ]
    retrieved = {claim.claim_id: tuple(list(abstracts)[:9]) for claim in claims}
    whole = abstract_examples(claims, abstracts, retrieved, 2)
    assert len(whole) == len(evidence) + len(without) + 2 * len(claims)
    assert len({one.group for one in whole}) == 490
    assert Counter(one.label for one in whole if one.label != NOINFO) == {SUPPORTS: 370, REFUTES: 194}
    sentences = rationale_examples(claims, abstracts)
    assert len(sentences) == sum(len(abstracts[doc_id].sentences) for _, doc_id in evidence) == 5494
    gold = {
        (claim.claim_id, doc, s) for claim, doc in evidence for r in claim.evidence[doc] for s in r.sentences
    }
    assert sum(one.rationale == (True,) for one in sentences) == len(gold) == 1025
    labels = label_examples(claims, abstracts, 2)
    assert Counter(one.label for one in labels) == {SUPPORTS: 616, REFUTES: 341, NOINFO: len(without)}
    assert len(without) == 355
    lengths = Counter(len(one.sentences) for one in labels if one.label == NOINFO)
    assert set(lengths) == {1, 2} and min(lengths.values()) > 140
    train, held = split(whole, 0.1, 1)
    assert 0.03 < len(held) / len(whole) < 0.2
    assert not {one.claim for one in train} & {one.claim for one in held}


@pytest.mark.parametrize(("name", "count"), [("healthver", 1393), ("covidfact", 903)])
def test_data_of_scifacts_shape(shared: Path, name: str, count: int) -> None:
    folder = shared / "claims" / name
    abstracts = read_abstracts(folder / "corpus.jsonl")
    claims = read_claims(folder / "claims_train.jsonl", abstracts)
    assert len(claims) == count
    found = abstract_examples(claims, abstracts, tfidf(abstracts, claims, 10), 3)
    lines = (folder / "claims_train.jsonl").read_text().splitlines()
    labelled = sum(len(json.loads(line)["evidence"]) for line in lines)
    assert sum(one.label != NOINFO for one in found) == labelled
    assert all(any(one.rationale or ()) == (one.label != NOINFO) for one in found)
