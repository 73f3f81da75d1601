"""Reranking with a real cross-encoder of random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.models.resolve import load_cross_encoder, resolve
from epicqa.rank import cross_encoder
from epicqa.rank.cross_encoder import rerank
from epicqa.ranking import Ranking


def make_model(folder: Path, labels: int) -> Path:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(1)
    config = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=labels,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(resolve("minilm"))).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    return load_cross_encoder(str(make_model(tmp_path_factory.mktemp("tiny"), 1)))


def texts(first: int, last: int) -> str:
    return f"passage {first % 7} " + "virus mask steel bat "[: first % 20] * (1 + first % 5)


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    rows = np.random.default_rng(1).permutation(60)
    return Ranking(rows, rows, np.linspace(30, 1, 60))


def test_scores_are_the_models_and_the_rest_keeps_its_order(model, ranking: Ranking) -> None:
    import torch

    found, reached = rerank(ranking, "on steel?", texts, model, depth=40, batch_size=4)
    assert reached == 40 and len(found) == 60
    assert set(found.first[:40].tolist()) == set(ranking.first[:40].tolist())
    for row, score in zip(found.first[:40], found.score[:40], strict=True):
        alone = model.predict([("on steel?", texts(row, row))], activation_fn=torch.nn.Identity())[0]
        assert score == pytest.approx(alone, abs=2e-5)
    assert found.first[40:].tolist() == ranking.first[40:].tolist()
    assert (np.diff(found.score) <= 0).all() and found.score[40] < found.score[39]
    assert np.allclose(np.diff(found.score[40:]), np.diff(ranking.score[40:]), atol=1e-5)
    assert len(set(found.score[:40].tolist())) > 10


def test_ties_go_to_the_lower_row(model) -> None:
    rows = np.array([9, 3, 7, 1])
    found, _ = rerank(Ranking(rows, rows + 1, np.array([4, 3, 2, 1])), "q", lambda *_: "same", model, depth=4)
    assert found.first.tolist() == [1, 3, 7, 9] and len(set(found.score.tolist())) == 1
    assert found.last.tolist() == [2, 4, 8, 10]


def test_depth_beyond_the_ranking_and_nothing_to_do(model, ranking: Ranking) -> None:
    found, reached = rerank(ranking, "q", texts, model, depth=1000)
    assert reached == 60 and sorted(found.first.tolist()) == list(range(60))
    assert rerank(ranking, "q", texts, model, depth=0) == (ranking, 0)
    empty = ranking[:0]
    assert rerank(empty, "q", texts, model, depth=5) == (empty, 0)
    assert rerank(ranking, "q", texts, model, depth=10, seconds=0)[1] == 0


def test_a_clock_budget_is_replayed_by_its_depth(
    model, ranking: Ranking, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(cross_encoder.time, "monotonic", lambda: next(ticks))
    stopped, reached = rerank(ranking, "q", texts, model, depth=60, batch_size=4, seconds=3)
    assert reached == 32  # looks at 1 and 2 seconds, a window of four batches after each
    replayed, again = rerank(ranking, "q", texts, model, depth=reached, batch_size=4)
    assert again == 32
    for name in ("first", "last", "score"):
        assert np.array_equal(getattr(stopped, name), getattr(replayed, name))


def test_a_model_of_many_labels_is_refused(tmp_path: Path, ranking: Ranking) -> None:
    model = load_cross_encoder(str(make_model(tmp_path, 3)))
    with pytest.raises(EpicqaError, match="expected one number"):
        rerank(ranking, "q", texts, model, depth=5)
