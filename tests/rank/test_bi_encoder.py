"""Cosines by the real encoders, and the vectors that they leave."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from epicqa.models.encoder import Encoder
from epicqa.models.resolve import load_encoder
from epicqa.rank.bi_encoder import bi_encoder_scores

QUESTION = "How long does the virus survive on steel?"
TEXTS = [
    "The virus remained viable on stainless steel for up to 72 hours.",
    "Funding was provided by the ministry of agriculture.",
    "",
    " \n",
    "Überträgt Stahl das Virus? 病毒 🦠",
    "мас\u0301ка",
    "virus " * 1000,
    QUESTION,
]


@pytest.fixture(scope="module", params=["static", "minilm"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return load_encoder(request.param)


def test_scores_are_cosines_of_the_vectors_that_are_kept(encoder: Encoder) -> None:
    kept: dict[str, NDArray[np.float32]] = {}
    found = bi_encoder_scores(encoder, QUESTION, TEXTS, kept)
    assert found.dtype == np.float64 and found.shape == (len(TEXTS),)
    assert list(kept) == TEXTS
    query = encoder.encode_queries([QUESTION])[0].astype(float)
    exact = encoder.encode(TEXTS)
    for text, score, truth in zip(TEXTS, found, exact, strict=True):
        vector = kept[text]
        assert vector.dtype == np.float32 and vector.shape == (encoder.dimension,)
        length = np.linalg.norm(vector.astype(float))
        # A text without tokens may have no direction.
        assert length == pytest.approx(1, abs=1e-6) or (not text.strip() and length == 0)
        cosine = sum(a * b for a, b in zip(vector.astype(float), query, strict=True))
        assert score == pytest.approx(cosine, abs=1e-12)
        # A processor that multiplies in a shorter format changes it little.
        assert vector == pytest.approx(truth, abs=0.01)
    assert found[-1] == pytest.approx(1, abs=1e-3)
    assert found.max() <= 1 + 1e-6 and found.argmax() == len(TEXTS) - 1
    assert found[0] > found[1] + 0.2


def test_vectors_are_added_to_those_kept_before(encoder: Encoder) -> None:
    kept: dict[str, NDArray[np.float32]] = {}
    bi_encoder_scores(encoder, QUESTION, TEXTS[:2], kept)
    before = {text: vector.copy() for text, vector in kept.items()}
    assert bi_encoder_scores(encoder, "steel?", TEXTS[2:5], kept).shape == (3,)
    assert list(kept) == TEXTS[:5]
    assert all(np.array_equal(kept[text], vector) for text, vector in before.items())


def test_a_text_that_occurs_twice_is_kept_once(encoder: Encoder) -> None:
    kept: dict[str, NDArray[np.float32]] = {}
    found = bi_encoder_scores(encoder, QUESTION, [TEXTS[0], TEXTS[1], TEXTS[0]], kept)
    assert list(kept) == TEXTS[:2] and found[0] == pytest.approx(found[2], abs=1e-3)


def test_one_passage_and_none(encoder: Encoder) -> None:
    kept: dict[str, NDArray[np.float32]] = {}
    assert bi_encoder_scores(encoder, QUESTION, [], kept).shape == (0,) and not kept
    alone = bi_encoder_scores(encoder, QUESTION, TEXTS[:1], kept)
    assert alone == pytest.approx(bi_encoder_scores(encoder, QUESTION, TEXTS, kept)[:1], abs=0.01)
    # A question without words has a score for each passage, too.
    assert np.isfinite(bi_encoder_scores(encoder, "", TEXTS, kept)).all()


def test_the_same_texts_have_the_same_scores(encoder: Encoder) -> None:
    one, other = (bi_encoder_scores(encoder, QUESTION, TEXTS, {}) for _ in range(2))
    assert np.array_equal(one, other)
