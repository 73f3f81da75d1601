"""Dense retrieval with the shipped model and FAISS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.index.vectors import VectorIndex, build_vectors
from epicqa.models.resolve import load_encoder
from epicqa.retrieve.dense import dense_search

SENTENCES = [
    "The committee met on Tuesday to elect a chair.",
    "Coronavirus survives on steel for two to three days.",
    "Wash your hands for at least twenty seconds.",
    "Coronavirus survives on steel for two to three days.",
    "Bats are thought to be the natural reservoir of the virus.",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("static")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, encoder) -> VectorIndex:
    folder = tmp_path_factory.mktemp("index")
    np.save(folder / "chunk-000000.npy", encoder.encode(SENTENCES).astype(np.float16))
    build_vectors(folder, folder, "flat", threads=1)
    return VectorIndex.open(folder)


def test_single_sentences_best_first(index: VectorIndex, encoder) -> None:
    steel, bats = dense_search(index, encoder, ["how long on steel surfaces?", "animal origin: bats"], 3)
    assert steel.first.tolist()[:2] == [1, 3] and steel.score[0] == steel.score[1]
    assert np.array_equal(steel.first, steel.last) and len(steel) == 3
    assert bats.first[0] == 4
    assert dense_search(index, encoder, [], 3) == []
    assert len(dense_search(index, encoder, ["masks"], 1000)[0]) == 5


def test_a_text_without_tokens_still_ranks(index: VectorIndex, encoder) -> None:
    (ranking,) = dense_search(index, encoder, [""], 2)
    assert ranking.first.tolist() == [0, 1] and ranking.score.tolist() == [0, 0]


def test_another_models_index_is_refused(tmp_path: Path, encoder) -> None:
    np.save(tmp_path / "chunk-000000.npy", np.ones((3, 8), np.float16))
    build_vectors(tmp_path, tmp_path, "flat", threads=1)
    with pytest.raises(EpicqaError, match=r"'static' gives 256 .* holds 8"):
        dense_search(VectorIndex.open(tmp_path), encoder, ["x"], 3)
