"""Scores of a real cross-encoder of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.models.backends import Loaded, load_cross_encoder
from epicqa.rank.cross_encoder import cross_encoder_scores

QUESTION = "How long does the virus survive on steel?"
ODD = ["", " \n", "steel", "Überträgt Stahl das Virus? 病毒 🦠", "мас\u0301ка", "virus " * 2000]


@pytest.fixture(scope="module")
def native(tiny_reranker: Path) -> Loaded:
    """As the pipeline loads it."""
    return load_cross_encoder(str(tiny_reranker), "torch")


@pytest.fixture(scope="module")
def exact(native: Loaded) -> Loaded:
    return Loaded(native.model, "torch", "float32")


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Short and long ones, mixed."""
    return [
        f"passage {row % 7} " + "virus mask steel bat "[: row % 20] * (1 + row % 5)
        for row in np.random.default_rng(1).permutation(100).tolist()
    ]


def alone(loaded: Loaded, text: str) -> float:
    """The logit of one pair, by the model itself."""
    import torch

    return float(loaded.model.predict([(QUESTION, text)], activation_fn=torch.nn.Identity())[0])


def test_scores_are_the_models_in_the_order_of_the_texts(exact: Loaded, texts: list[str]) -> None:
    found = cross_encoder_scores(exact, QUESTION, texts)
    assert found.dtype == np.float64 and found.shape == (len(texts),)
    assert found == pytest.approx([alone(exact, text) for text in texts], abs=2e-5)
    assert len(np.unique(found.round(4))) > 30
    # Logits, not what a sigmoid makes of them.
    assert found.min() < 0 or found.max() > 1


def test_the_processors_own_precision_ranks_alike(native: Loaded, exact: Loaded, texts: list[str]) -> None:
    truth = cross_encoder_scores(exact, QUESTION, texts)
    found = cross_encoder_scores(native, QUESTION, texts)
    assert np.abs(found - truth).max() < 0.1 * truth.std()
    assert np.array_equal(found, truth) == (native.precision == "float32")
    assert np.array_equal(cross_encoder_scores(native, QUESTION, texts), found)


@pytest.mark.parametrize("batch_size", [1, 4, 1000])
def test_batches_do_not_matter(exact: Loaded, texts: list[str], batch_size: int) -> None:
    truth = cross_encoder_scores(exact, QUESTION, texts)
    assert cross_encoder_scores(exact, QUESTION, texts, batch_size) == pytest.approx(truth, abs=2e-5)


def test_company_and_order_do_not_matter(exact: Loaded, texts: list[str]) -> None:
    truth = cross_encoder_scores(exact, QUESTION, texts)
    shuffled = np.random.default_rng(2).permutation(len(texts))
    found = cross_encoder_scores(exact, QUESTION, [texts[place] for place in shuffled])
    assert found == pytest.approx(truth[shuffled], abs=2e-5)
    assert cross_encoder_scores(exact, QUESTION, texts[:1]) == pytest.approx(truth[:1], abs=2e-5)


def test_the_question_matters(exact: Loaded, texts: list[str]) -> None:
    one, other = (cross_encoder_scores(exact, question, texts) for question in (QUESTION, "bats?"))
    assert not np.allclose(one, other, atol=1e-3)


def test_texts_of_like_length_share_a_batch(
    exact: Loaded, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, str]] = []
    predict = exact.model.predict

    def watched(pairs: list[tuple[str, str]], **settings: Any) -> Any:
        given.extend(pairs)
        return predict(pairs, **settings)

    monkeypatch.setattr(exact.model, "predict", watched)
    cross_encoder_scores(exact, QUESTION, texts)
    lengths = [len(text) for _, text in given]
    assert lengths == sorted(lengths, reverse=True) and {question for question, _ in given} == {QUESTION}
    assert sorted(text for _, text in given) == sorted(texts)


@pytest.mark.parametrize("question", [QUESTION, "", "病毒？"])
def test_odd_texts_have_scores(native: Loaded, exact: Loaded, question: str) -> None:
    found = cross_encoder_scores(native, question, ODD)
    assert found.shape == (len(ODD),) and np.isfinite(found).all()
    if question == QUESTION:
        expected = [alone(exact, text) for text in ODD]
        assert cross_encoder_scores(exact, question, ODD) == pytest.approx(expected, abs=2e-5)


def test_no_texts_have_no_scores(exact: Loaded) -> None:
    assert cross_encoder_scores(exact, QUESTION, []).shape == (0,)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_model_of_many_labels_is_refused(tiny_reranker: Path, tmp_path: Path, count: int) -> None:
    from transformers import AutoConfig, AutoTokenizer, BertForSequenceClassification

    config = AutoConfig.from_pretrained(tiny_reranker, num_labels=3)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_reranker).save_pretrained(tmp_path)
    loaded = load_cross_encoder(str(tmp_path), "torch")
    with pytest.raises(EpicqaError, match=r"scores of shape \(3,\) a pair, expected one number"):
        cross_encoder_scores(loaded, QUESTION, ["steel"] * count)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(tiny_reranker: Path, value: float) -> None:
    import torch

    loaded = load_cross_encoder(str(tiny_reranker), "torch")
    biases = [one for name, one in loaded.model.named_parameters() if name.endswith("classifier.bias")]
    with torch.no_grad():
        biases[0].fill_(value)
    with pytest.raises(EpicqaError, match="not finite, expected numbers"):
        cross_encoder_scores(loaded, QUESTION, ["steel", "bat"])
