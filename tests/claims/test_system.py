"""Selecting and labelling with real models of random weights, against plain references."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.claims.encoding import ClaimInput
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.retrieval import read_retrieved
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS, Abstract, Claim, Rationale
from epicqa.claims.system import (
    LabelInput,
    label_of,
    oracle_rationales,
    predictions,
    read_rationales,
    select,
    verify,
)
from epicqa.errors import EpicqaError

SENTENCES = (
    "Cloth masks filter droplets.",
    "Masks lower spread in schools.",
    "The virus survives on steel for days.",
    "On copper it dies within hours.",
    "Cats catch it from their owners.",
)
INPUTS = [
    ClaimInput("Masks lower spread.", SENTENCES[:3]),
    ClaimInput("Copper kills the virus.", SENTENCES[1:]),
    ClaimInput("Cats are safe.", ()),
    ClaimInput("Steel is safe.", SENTENCES[2:3]),
]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 it makes a difference what else a batch holds."""
    monkeypatch.setattr("epicqa.claims.model.best_precision", lambda device: "float32")


@pytest.fixture(scope="module")
def models(tiny_claims: dict[str, Path]) -> dict[str, ClaimModel]:
    return {kind: load_claim_model(str(folder)) for kind, folder in tiny_claims.items()}


def there(array: NDArray[np.float64] | None) -> NDArray[np.float64]:
    assert array is not None
    return array


def near(one: NDArray[np.float64] | None, other: NDArray[np.float64] | list[float] | None) -> bool:
    return np.allclose(there(one), np.asarray(other), atol=1e-5)


_SHARE = st.integers(0, 8).map(lambda eighths: eighths / 8)


@given(st.lists(_SHARE, max_size=8), _SHARE, st.none() | st.integers(1, 9))
def test_select_against_sorting(scores: list[float], threshold: float, most: int | None) -> None:
    above = [place for place, score in enumerate(scores) if score > threshold]
    expected = tuple(sorted(above, key=lambda place: (-scores[place], place)))
    assert select(np.array(scores), threshold, most) == (expected if most is None else expected[:most])


@pytest.mark.parametrize(
    ("probabilities", "threshold", "label"),
    [
        ((0.25, 0.5, 0.25), 0.5, NOINFO),
        ((0.25, 0.5, 0.25), 0.25, SUPPORTS),
        ((0.125, 0.5, 0.375), 0.25, REFUTES),
        ((0.375, 0.375, 0.25), 0.5, SUPPORTS),
        ((0.0, 1.0, 0.0), 0.0, NOINFO),
        ((1.0, 0.0, 0.0), 1.0, NOINFO),
    ],
)
def test_label_of(probabilities: tuple[float, ...], threshold: float, label: str) -> None:
    assert label_of(np.array(probabilities), threshold) == label


def test_a_joint_model_reads_once(models: dict[str, ClaimModel]) -> None:
    joint = models["joint"]
    told: list[tuple[int, int]] = []
    found = verify(
        INPUTS,
        joint,
        joint,
        threshold=0.4,
        evidence_threshold=0.3,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (4, 4)
    for one, read in zip(found, joint.read(INPUTS), strict=True):
        assert near(one.scores, read.sentences) and near(one.probabilities, read.labels)
        assert one.sentences == select(there(read.sentences), 0.4)
        assert one.label == (label_of(there(read.labels), 0.3) if one.sentences else NOINFO)
    assert {one.label for one in found} > {NOINFO}
    # As two models that are alike.
    twice = verify(INPUTS, joint, replace(joint), threshold=0.4, evidence_threshold=0.3)
    for one, other in zip(found, twice, strict=True):
        assert (one.label, one.sentences) == (other.label, other.sentences)
        assert near(one.scores, other.scores)
        assert near(other.probabilities, one.probabilities if one.sentences else [0, 1, 0])


@pytest.mark.parametrize("label_input", [None, "rationale", "abstract"])
def test_a_pipeline_of_two_models(models: dict[str, ClaimModel], label_input: LabelInput | None) -> None:
    selector, labeller = models["rationale"], models["label"]
    told: list[float] = []
    found = verify(
        INPUTS,
        selector,
        labeller,
        label_input=label_input,
        threshold=0.1,
        evidence_threshold=0.0,
        most=2,
        progress=lambda done, total: told.append(done / total),
    )
    assert told == sorted(told) and told[-1] == 1.0
    assert found[2].label == NOINFO and len(there(found[2].scores)) == 0
    assert sum(len(one.sentences) == 2 for one in found) and {one.label for one in found} > {NOINFO}
    for one_input, one in zip(INPUTS, found, strict=True):
        # Each sentence is read by itself.
        alone = [
            there(selector.read([ClaimInput(one_input.claim, (text,))])[0].sentences)[0]
            for text in one_input.sentences
        ]
        assert near(one.scores, alone)
        assert one.sentences == select(there(one.scores), 0.1, 2)
        if not one.sentences:
            assert one.label == NOINFO and one.probabilities.tolist() == [0, 1, 0]
            continue
        texts = one_input.sentences
        if label_input != "abstract":
            texts = tuple(text for place, text in enumerate(texts) if place in one.sentences)
        (read,) = labeller.read([ClaimInput(one_input.claim, texts)])
        assert near(one.probabilities, read.labels)
        assert one.label == label_of(one.probabilities, 0.0)


def test_one_inputrationales_are_not_selected_again(models: dict[str, ClaimModel]) -> None:
    rationales: list[tuple[int, ...]] = [(2, 0), (), (), (0,)]
    for kind in ("label", "joint"):
        labeller = models[kind]
        found = verify(
            INPUTS, None, labeller, rationales=rationales, label_input="rationale", evidence_threshold=0.0
        )
        assert [one.sentences for one in found] == rationales
        assert [one.label == NOINFO for one in found] == [False, True, True, False]
        assert all(one.scores is None for one in found)
        (read,) = labeller.read([ClaimInput(INPUTS[0].claim, (SENTENCES[0], SENTENCES[2]))])
        assert near(found[0].probabilities, read.labels)
    with pytest.raises(ValueError, match="expected a selector or rationales"):
        verify(INPUTS, None, models["joint"])


def test_thresholds_are_the_models_own(models: dict[str, ClaimModel]) -> None:
    selector, labeller = models["rationale"], models["label"]
    strict = replace(selector, settings=replace(selector.settings, threshold=1.0))
    assert all(not one.sentences for one in verify(INPUTS, strict, labeller))
    doubting = replace(labeller, settings=replace(labeller.settings, evidence_threshold=1.0))
    found = verify(INPUTS, selector, doubting, threshold=0.0)
    assert found[0].sentences and {one.label for one in found} == {NOINFO}


def test_models_of_the_wrong_kind(models: dict[str, ClaimModel]) -> None:
    rationale, label, joint = (models[kind] for kind in ("rationale", "label", "joint"))
    with pytest.raises(EpicqaError, match="a label model, expected one that selects rationales: of kind rat"):
        verify(INPUTS, label, label)
    with pytest.raises(EpicqaError, match="a rationale model, expected one that labels: of kind label or j"):
        verify(INPUTS, joint, rationale)
    assert verify([], joint, joint) == [] == verify([], rationale, label)


ABSTRACTS = {
    7: Abstract(7, "Masks", SENTENCES[:3], False),
    40: Abstract(40, "Copper", SENTENCES[2:], False),
    5: Abstract(5, "Nothing", (), False),
}
CLAIMS = (
    Claim(9, "Masks lower spread.", (7,), {7: (Rationale((2,), SUPPORTS), Rationale((1, 0), SUPPORTS))}),
    Claim(2, "Copper kills the virus.", (40,), {}),
    Claim(4, "Cats are safe.", (5,), {}),
)
RETRIEVED = {9: (40, 7), 2: (7, 5, 40), 4: ()}


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_predictions_of_whole_files(
    models: dict[str, ClaimModel], monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr("epicqa.claims.system._BATCH", batch)
    joint = models["joint"]
    told: list[tuple[int, int]] = []
    found = predictions(
        CLAIMS,
        ABSTRACTS,
        RETRIEVED,
        joint,
        joint,
        threshold=0.2,
        evidence_threshold=0.1,
        most=1,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == sorted(told) and told[-1] == (3, 3)
    assert [one.claim_id for one in found] == [9, 2, 4]
    kept = 0
    for claim, one in zip(CLAIMS, found, strict=True):
        documents = RETRIEVED[claim.claim_id]
        assert list(one.evidence) == [doc_id for doc_id in documents if doc_id in one.evidence]
        for doc_id in documents:
            (verdict,) = verify(
                [ClaimInput(claim.text, ABSTRACTS[doc_id].sentences)],
                joint,
                joint,
                threshold=0.2,
                evidence_threshold=0.1,
                most=1,
            )
            assert (verdict.label != NOINFO) == (doc_id in one.evidence)
            if doc_id in one.evidence:
                kept += 1
                predicted = one.evidence[doc_id]
                assert (predicted.label, predicted.sentences) == (verdict.label, verdict.sentences)
    assert kept


def test_rationales_of_the_oracle(models: dict[str, ClaimModel]) -> None:
    selected = oracle_rationales(CLAIMS, RETRIEVED)
    assert selected == {9: {40: (), 7: (0, 1, 2)}, 2: {7: (), 5: (), 40: ()}, 4: {}}
    found = predictions(
        CLAIMS, ABSTRACTS, RETRIEVED, None, models["label"], rationales=selected, evidence_threshold=0.0
    )
    assert [list(one.evidence) for one in found] == [[7], [], []]
    assert found[0].evidence[7].sentences == (0, 1, 2)
    with pytest.raises(EpicqaError, match="claim 9: its evidence is not known"):
        oracle_rationales([replace(CLAIMS[0], judged=False)], RETRIEVED)


def test_files_of_earlier_steps(tmp_path: Path) -> None:
    def written(name: str, *lines: object) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    found = [{"claim_id": claim_id, "doc_ids": list(doc_ids)} for claim_id, doc_ids in RETRIEVED.items()]
    retrieved = written("found.jsonl", *found)
    assert read_retrieved(retrieved, CLAIMS, ABSTRACTS) == RETRIEVED
    assert read_retrieved(retrieved, CLAIMS, ABSTRACTS, 1) == {9: (40,), 2: (7,), 4: ()}
    lines = [
        {"claim_id": 9, "evidence": {"40": [], "7": [2, 0], "5": []}},
        {"claim_id": 2, "evidence": {"7": [1], "5": [], "40": []}},
    ]
    selected = written("selected.jsonl", *lines)
    assert read_rationales(selected, CLAIMS, ABSTRACTS, RETRIEVED) == {
        9: {40: (), 7: (2, 0)},
        2: {7: (1,), 5: (), 40: ()},
        4: {},
    }
    with pytest.raises(EpicqaError, match=r"selected\.jsonl: rationales, expected lines of .*doc_ids"):
        read_retrieved(selected, CLAIMS, ABSTRACTS)
    with pytest.raises(EpicqaError, match=r"found\.jsonl: abstracts, expected lines of .*sentence"):
        read_rationales(retrieved, CLAIMS, ABSTRACTS, RETRIEVED)
    with pytest.raises(EpicqaError, match=r"short\.jsonl: claim 2 is not there, expected a line for each"):
        read_retrieved(written("short.jsonl", found[0]), CLAIMS, ABSTRACTS)
    with pytest.raises(
        EpicqaError, match=r"short\.jsonl: claim 2: document 7 is not there, expected a list of"
    ):
        read_rationales(written("short.jsonl", lines[0]), CLAIMS, ABSTRACTS, RETRIEVED)
