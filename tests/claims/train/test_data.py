"""Which examples each kind of model gets of files of claims and of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from epicqa.claims.network import Kind
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.train.data import examples_of, training_data
from epicqa.errors import EpicqaError

ABSTRACTS = {
    7: ["Cloth masks filter droplets.", "Masks lower spread in schools.", "We thank nobody."],
    40: ["The virus dies on copper.", "On steel it survives."],
    5: ["Cats catch the virus."],
    6: ["Dogs wear no masks.", "Nor do cats."],
}
CLAIMS = [
    {
        "id": 1,
        "claim": "Masks lower spread.",
        "cited_doc_ids": [7],
        "evidence": {
            "7": [{"sentences": [1, 0], "label": "SUPPORT"}, {"sentences": [2], "label": "SUPPORT"}]
        },
    },
    {"id": 2, "claim": "Cats never catch the virus.", "cited_doc_ids": [5], "evidence": {}},
]


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> tuple[Path, Path]:
    """Claims, and their abstracts."""
    abstracts = ({"doc_id": number, "title": "T", "abstract": texts} for number, texts in ABSTRACTS.items())
    return written(tmp_path / "claims.jsonl", *CLAIMS), written(tmp_path / "corpus.jsonl", *abstracts)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return written(
        tmp_path / "pairs.jsonl",
        {"claim": "It rains.", "evidence": "Rain falls.", "label": "SUPPORTS", "page": "Rain"},
        {"claim": "It snows.", "evidence": "Rain falls.", "label": "NOT ENOUGH INFO", "page": "Rain"},
    )


def test_a_joint_model_reads_abstracts_and_rationales(corpus: tuple[Path, Path], pairs: Path) -> None:
    found = examples_of("joint", [corpus], [pairs], negatives=1)
    told = [(one.claim, one.sentences, one.label, one.rationale) for one in found]
    masks, cats = (claim["claim"] for claim in CLAIMS)
    whole = {number: tuple(texts) for number, texts in ABSTRACTS.items()}
    assert told[:4] == [
        (masks, whole[7], SUPPORTS, (True, True, True)),
        # The nearest other abstract speaks of masks and of cats, too.
        (masks, whole[6], NOINFO, (False, False)),
        (cats, whole[5], NOINFO, (False,)),
        (cats, whole[6], NOINFO, (False, False)),
    ]
    assert told[4:7] == [
        (masks, whole[7][:2], SUPPORTS, None),
        (masks, whole[7][2:], SUPPORTS, None),
        (cats, whole[5], NOINFO, None),
    ]
    assert told[7:] == [
        ("It rains.", ("Rain falls.",), SUPPORTS, (True,)),
        ("It snows.", ("Rain falls.",), NOINFO, (False,)),
    ]
    without = examples_of("joint", [corpus], negatives=0)
    assert [one.sentences for one in without] == [whole[7], whole[5], whole[7][:2], whole[7][2:], whole[5]]


@pytest.mark.parametrize("negatives", [0, 2, 3])
def test_claims_held_out_are_read_as_in_use(corpus: tuple[Path, Path], negatives: int) -> None:
    kept, held = training_data("joint", [corpus], negatives=negatives, share=0.5)
    assert {one.claim for one in (*kept, *held)} == {claim["claim"] for claim in CLAIMS}
    assert not {one.group for one in kept} & {one.group for one in held}
    # Each claim cites one abstract, and three are read in use.
    for part, others in ((kept, negatives), (held, 2)):
        assert sum(one.rationale is not None for one in part) == 1 + others
    whole = training_data("joint", [corpus], negatives=negatives, share=0)
    assert whole == (examples_of("joint", [corpus], negatives=negatives), [])


def test_negatives_are_as_many_as_there_are(corpus: tuple[Path, Path]) -> None:
    found = examples_of("joint", [corpus], negatives=99)
    assert sum(one.claim == CLAIMS[0]["claim"] and one.rationale is not None for one in found) == len(
        ABSTRACTS
    )


def test_the_two_others_get_what_the_pipeline_gives_them(corpus: tuple[Path, Path], pairs: Path) -> None:
    found = examples_of("rationale", [corpus], [pairs])
    assert [(one.sentences, one.label, one.rationale) for one in found] == [
        *(((text,), None, (True,)) for text in ABSTRACTS[7]),
        (("Rain falls.",), SUPPORTS, (True,)),
        (("Rain falls.",), NOINFO, (False,)),
    ]
    found = examples_of("label", [corpus], [pairs])
    assert [(one.sentences, one.label) for one in found] == [
        (tuple(ABSTRACTS[7][:2]), SUPPORTS),
        (tuple(ABSTRACTS[7][2:]), SUPPORTS),
        (tuple(ABSTRACTS[5]), NOINFO),
        (("Rain falls.",), SUPPORTS),
        (("Rain falls.",), NOINFO),
    ]


def test_several_files_in_their_order(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    negation = {
        "id": 1,
        "claim": "Masks raise spread.",
        "cited_doc_ids": [7],
        "evidence": {"7": [{"sentences": [1], "label": "CONTRADICT"}]},
    }
    other = written(tmp_path / "other.jsonl", negation)
    found = examples_of("label", [corpus, (other, corpus[1])])
    assert [one.label for one in found] == [SUPPORTS, SUPPORTS, NOINFO, REFUTES]
    assert found == examples_of("label", [corpus]) + examples_of("label", [(other, corpus[1])])


@pytest.mark.parametrize("kind", ["rationale", "label", "joint"])
def test_bad_files_are_one_line(corpus: tuple[Path, Path], tmp_path: Path, kind: Kind) -> None:
    unjudged = written(tmp_path / "test.jsonl", {"id": 3, "claim": "Unknown."})
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"claim": "c", "evidence": "e", "label": "SUPPORTS"}\n{"claim": "c"}\n')
    for arguments, said in (
        (([(unjudged, corpus[1])],), "claim 3: its evidence is not known, expected claims with 'evidence'"),
        (([(tmp_path / "none.jsonl", corpus[1])],), "none.jsonl: "),
        (([(corpus[0], corpus[0])],), "claims.jsonl:1: "),
        (([corpus], [broken]), "broken.jsonl:2: "),
    ):
        with pytest.raises(EpicqaError) as error:
            examples_of(kind, *arguments)
        assert said in str(error.value) and "\n" not in str(error.value)
