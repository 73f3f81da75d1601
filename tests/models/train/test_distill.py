"""Making the static model from a small teacher."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.models.places import fingerprint, resolve
from epicqa.models.resolve import load_encoder
from epicqa.models.train.distill import distill


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("teacher")
    torch.manual_seed(1)
    config = BertConfig(hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(resolve("minilm"))).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_twice_gives_the_same_bytes_and_loads(tmp_path: Path, teacher: Path) -> None:
    pytest.importorskip("skeletoken")
    for name in ("a", "b"):
        distill(tmp_path / name, 16, str(teacher))
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert names == {
        "README.md",
        "config_sentence_transformers.json",
        "model.safetensors",
        "modules.json",
        "tokenizer.json",
    }
    encoder = load_encoder(str(tmp_path / "a"))
    assert encoder.dimension == 16
    assert np.allclose(np.linalg.norm(encoder.encode(["a virus", "a mask"]), axis=1), 1)


def test_missing_extra_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "model2vec.distill", None)
    with pytest.raises(EpicqaError, match=r"epicqa\[train\]"):
        distill(tmp_path / "out")
    assert not (tmp_path / "out").exists()
