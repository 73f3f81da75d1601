"""What claim models say of inputs, against reading each part by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from epicqa.claims.encoding import ClaimInput, windows_of
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.network import Reads
from epicqa.errors import EpicqaError

INPUTS = [
    ClaimInput("Masks lower spread.", ("Cloth masks filter droplets.", "Steel is cold.", "Cats catch it.")),
    ClaimInput("Copper kills the virus.", ("On copper it dies within hours.",)),
    ClaimInput("Cats are safe.", ()),
]
NOTHING = [0.0, 1.0, 0.0]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 it makes a difference what else a batch holds."""
    monkeypatch.setattr("epicqa.claims.model.best_precision", lambda device: "float32")


@pytest.fixture(scope="module")
def models(tiny_claims: dict[str, Path]) -> dict[str, ClaimModel]:
    return {kind: load_claim_model(str(folder)) for kind, folder in tiny_claims.items()}


def alone(model: ClaimModel, claim: str, *sentences: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probabilities of the sentences and of the labels, of one window."""
    (window,) = windows_of(model.tokenizer, [ClaimInput(claim, sentences)], model.settings.max_length)
    with torch.inference_mode():
        logits, labels = model.network([window], model.tokenizer.pad_token_id)
    count = len(window.spans)
    return torch.sigmoid(logits[0, :count]).double().numpy(), torch.softmax(labels[0], 0).double().numpy()


def near(one: NDArray[np.float64] | None, other: NDArray[np.float64] | list[float]) -> bool:
    assert one is not None and one.dtype == np.float64
    return one.shape == np.shape(other) and np.allclose(one, other, atol=1e-5)


def test_a_joint_model_reads_all_at_once(models: dict[str, ClaimModel]) -> None:
    told: list[tuple[int, int]] = []
    found = models["joint"].read(INPUTS, lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
    for one, read in zip(INPUTS, found, strict=True):
        sentences, labels = alone(models["joint"], one.claim, *one.sentences)
        assert near(read.sentences, sentences)
        assert near(read.labels, labels if one.sentences else NOTHING)
    assert models["joint"].read([]) == []


def test_a_rationale_model_reads_each_sentence_by_itself(models: dict[str, ClaimModel]) -> None:
    told: list[tuple[int, int]] = []
    found = models["rationale"].read(INPUTS, lambda done, total: told.append((done, total)))
    assert told[-1] == (4, 4)
    for one, read in zip(INPUTS, found, strict=True):
        each = [alone(models["rationale"], one.claim, sentence)[0][0] for sentence in one.sentences]
        assert near(read.sentences, each) and read.labels is None
    (read,) = models["rationale"].read(INPUTS[2:])
    assert near(read.sentences, [])


@pytest.mark.parametrize("reads", ["both", "claim", "sentences"])
def test_a_label_model_reads_what_it_should(models: dict[str, ClaimModel], reads: Reads) -> None:
    label = models["label"]
    label = replace(label, settings=replace(label.settings, reads=reads))
    for one, read in zip(INPUTS, label.read(INPUTS), strict=True):
        assert read.sentences is None
        claim = one.claim if reads != "sentences" else ""
        if reads == "claim":
            assert near(read.labels, alone(label, claim)[1])
        else:
            assert near(read.labels, alone(label, claim, *one.sentences)[1] if one.sentences else NOTHING)


@pytest.mark.parametrize("kind", ["joint", "label"])
def test_of_several_windows_the_one_that_says_most_labels(models: dict[str, ClaimModel], kind: str) -> None:
    small = models[kind]
    small = replace(small, settings=replace(small.settings, max_length=24))
    long = ClaimInput(INPUTS[0].claim, tuple(f"{one} {one}" for one in INPUTS[0].sentences * 2))
    windows = windows_of(small.tokenizer, [long], 24)
    assert len(windows) > 2
    parts = [
        alone(small, long.claim, *long.sentences[one.sentences.start : one.sentences.stop]) for one in windows
    ]
    # An input of one window beside it has nothing to do with it.
    read, other = small.read([long, INPUTS[1]])
    assert near(read.labels, min((labels for _, labels in parts), key=lambda labels: float(labels[1])))
    assert near(other.labels, alone(small, INPUTS[1].claim, *INPUTS[1].sentences)[1])
    if kind == "joint":
        assert near(read.sentences, np.concatenate([sentences for sentences, _ in parts]))


def test_order_and_batches_change_nothing(
    models: dict[str, ClaimModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = models["joint"].read(INPUTS)
    monkeypatch.setattr("epicqa.claims.model._TOKENS", {"cpu": 1, "cuda": 1})
    told: list[int] = []
    found = models["joint"].read(INPUTS[::-1], lambda done, total: told.append(done))
    assert told == [1, 2, 3]
    for one, other in zip(found[::-1], expected, strict=True):
        assert other.sentences is not None and other.labels is not None
        assert near(one.sentences, other.sentences) and near(one.labels, other.labels)


def test_a_claim_too_long_is_one_line(models: dict[str, ClaimModel]) -> None:
    with pytest.raises(EpicqaError, match=r"^claim of 999 tokens \('mask mask [^\n]*expected at most 478$"):
        models["joint"].read([*INPUTS, ClaimInput("mask " * 999, ("Steel.",))])


def test_only_claim_models_are_loaded(tiny_claims: dict[str, Path], tmp_path: Path) -> None:
    model = load_claim_model(str(tiny_claims["label"]))
    assert (model.name, model.settings.kind) == (str(tiny_claims["label"]), "label")
    assert not model.network.training
    for name in ("static", "epicqa", "minilm"):
        with pytest.raises(
            EpicqaError, match=r": no claim model, expected one that epicqa claims train made$"
        ):
            load_claim_model(name)
    with pytest.raises(EpicqaError, match="no model there, expected"):
        load_claim_model(str(tmp_path))
    with pytest.raises(EpicqaError, match="unknown model '/nowhere'"):
        load_claim_model("/nowhere")
