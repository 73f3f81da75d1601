"""The back end and the precision of a cross-encoder: what is chosen, and that it ranks as float32 does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.models import backends, graphs, resolve
from epicqa.models.backends import BACKENDS, Loaded, load_cross_encoder
from epicqa.models.precision import autocast_for, best_precision

openvino = pytest.mark.skipif(
    find_spec("openvino") is None, reason="openvino is not installed (extra openvino)"
)

QUESTION = "How long does the virus survive on steel?"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "installed", lambda: False)


@pytest.fixture(scope="module")
def texts(sample_store: CorpusStore) -> list[str]:
    """Passages of one to eight sentences."""
    sentences = [sample_store.sentence_text(row) for row in range(300)]
    return [" ".join(sentences[row : row + 1 + row % 8]) for row in range(256)]


def logits(loaded: Loaded, texts: list[str]) -> np.ndarray:
    import torch

    with loaded.autocast():
        found = loaded.model.predict(
            [(QUESTION, text) for text in texts], show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
    return np.asarray(found, dtype=np.float64)


def agree(found: np.ndarray, truth: np.ndarray) -> None:
    assert spearmanr(found, truth).statistic > 0.99
    assert np.abs(found - truth).max() < 0.1 * truth.std()


@pytest.fixture(scope="module")
def truth(tiny_reranker: Path, texts: list[str]) -> np.ndarray:
    """The logits in float32."""
    found = logits(Loaded(resolve.load_cross_encoder(str(tiny_reranker)), "torch", "float32"), texts)
    assert len(np.unique(found)) > 200
    return found


@pytest.mark.parametrize(
    ("device", "native", "expected"),
    [
        ("cpu", True, "bfloat16"),
        ("cpu", False, "float32"),
        ("cuda:0", True, "bfloat16"),
        ("cuda", False, "float16"),
        ("mps", True, "float32"),
    ],
)
def test_precision_is_the_processors(
    device: str, native: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native, raising=False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert best_precision(device) == expected


def test_autocast_changes_products_and_no_weights() -> None:
    import torch

    layer = torch.nn.Linear(4, 4)
    row = torch.ones(1, 4)
    with autocast_for("cpu", "bfloat16"):
        assert layer(row).dtype is torch.bfloat16
    with autocast_for("cpu", "float32"):
        assert layer(row).dtype is torch.float32
    assert layer(row).dtype is layer.weight.dtype is torch.float32


def test_bfloat16_ranks_as_float32(tiny_reranker: Path, texts: list[str], truth: np.ndarray) -> None:
    model = resolve.load_cross_encoder(str(tiny_reranker))
    found = logits(Loaded(model, "torch", "bfloat16"), texts)
    agree(found, truth)
    assert not np.array_equal(found, truth)
    # Nothing stays behind.
    assert np.array_equal(logits(Loaded(model, "torch", "float32"), texts), truth)


@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_torch_needs_no_measurement(
    backend: str, tiny_reranker: Path, texts: list[str], truth: np.ndarray, cache: Path, no_openvino: None
) -> None:
    loaded = load_cross_encoder(str(tiny_reranker), backend)
    device = loaded.model.device.type
    assert (loaded.backend, loaded.precision, loaded.measured) == ("torch", best_precision(device), ())
    agree(logits(loaded, texts), truth)
    assert not cache.exists()


def test_a_missing_package_is_named(tiny_reranker: Path, no_openvino: None) -> None:
    with pytest.raises(
        EpicqaError, match=r'^back end openvino: .* expected: pip install "epicqa\[openvino\]"$'
    ):
        load_cross_encoder(str(tiny_reranker), "openvino")


def test_an_unknown_back_end_is_refused(tiny_reranker: Path) -> None:
    with pytest.raises(EpicqaError, match="back end 'onnx': unknown, expected auto, torch or openvino"):
        load_cross_encoder(str(tiny_reranker), "onnx")


@pytest.mark.parametrize("backend", BACKENDS)
def test_pickles_are_refused(backend: str, tiny_reranker: Path, tmp_path: Path) -> None:
    if backend == "openvino" and find_spec("openvino") is None:
        pytest.skip("openvino is not installed (extra openvino)")
    shutil.copytree(tiny_reranker, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").rename(tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(EpicqaError, match="pickle only"):
        load_cross_encoder(str(tmp_path / "model"), backend)


@openvino
def test_openvino_ranks_as_float32(
    tiny_reranker: Path, texts: list[str], truth: np.ndarray, cache: Path
) -> None:
    before = sorted(tiny_reranker.rglob("*"))
    for _ in ("converted", "from the cache"):
        loaded = load_cross_encoder(str(tiny_reranker), "openvino")
        assert (loaded.backend, loaded.precision) == ("openvino", best_precision("cpu"))
        agree(logits(loaded, texts), truth)
        agree(logits(loaded, texts[:1] * 3 + texts[8:9])[[0, 3]], truth[[0, 8]])
        assert len(list(cache.glob("graphs/*/model.xml"))) == 1
    assert sorted(tiny_reranker.rglob("*")) == before
    assert not list(cache.glob("graphs/.*"))


@openvino
def test_openvino_in_float32_is_exact(
    tiny_reranker: Path, texts: list[str], truth: np.ndarray, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "best_precision", lambda device: "float32")
    loaded = load_cross_encoder(str(tiny_reranker), "openvino")
    assert np.allclose(logits(loaded, texts), truth, atol=1e-4)


@openvino
def test_a_damaged_graph_is_converted_again(
    tiny_reranker: Path, texts: list[str], truth: np.ndarray, cache: Path
) -> None:
    load_cross_encoder(str(tiny_reranker), "openvino")
    (graph,) = cache.glob("graphs/*/model.xml")
    graph.write_bytes(graph.read_bytes()[:100])
    agree(logits(load_cross_encoder(str(tiny_reranker), "openvino"), texts), truth)
    assert graph.stat().st_size > 100


@openvino
def test_what_is_fastest_is_measured_once(
    tiny_reranker: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "_SECONDS", 0.0)
    first = load_cross_encoder(str(tiny_reranker))
    best = best_precision("cpu")
    kinds = {(one.backend, one.precision) for one in first.measured}
    assert kinds == {("torch", "float32"), ("torch", best), ("openvino", best)}
    agreeing = [one for one in first.measured if one.correlation >= 0.99]
    fastest = max(agreeing, key=lambda one: one.pairs_per_second)
    assert (first.backend, first.precision) == (fastest.backend, fastest.precision)
    assert first.measured[0].correlation == 1 and first.measured[0].difference == 0
    assert all(one.correlation > 0.95 for one in first.measured)

    measure = backends._measure
    calls: list[str] = []
    monkeypatch.setattr(backends, "_measure", lambda model, mark: calls.append(mark) or measure(model, mark))
    second = load_cross_encoder(str(tiny_reranker))
    assert (second.backend, second.precision, second.measured) == (
        first.backend,
        first.precision,
        first.measured,
    )
    assert not calls
    # On another processor, or where the file is damaged, it is measured again.
    monkeypatch.setattr(backends, "_processor", lambda: "another")
    load_cross_encoder(str(tiny_reranker))
    assert len(calls) == 1
    for path in cache.glob("backends/*.json"):
        path.write_text("[{}]")
    load_cross_encoder(str(tiny_reranker))
    assert len(calls) == 2


@openvino
@pytest.mark.parametrize("wrong", ["noise", "nan"])
def test_a_fast_back_end_that_ranks_otherwise_is_not_taken(
    wrong: str, tiny_reranker: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    class Wrong(torch.nn.Module):
        device = torch.device("cpu")

        def __init__(self, config: Any) -> None:
            super().__init__()
            self.config = config

        def forward(self, input_ids: torch.Tensor, **features: torch.Tensor) -> dict[str, torch.Tensor]:
            rows = torch.arange(len(input_ids), dtype=torch.float32)[:, None]
            return {"logits": (rows * 7919) % 31 if wrong == "noise" else rows * torch.nan}

    monkeypatch.setattr(backends, "graph_of", lambda model, mark, example: Wrong(model.config))
    loaded = load_cross_encoder(str(tiny_reranker))
    assert loaded.backend == "torch"
    assert loaded.measured[-1].backend == "openvino"
    assert loaded.measured[-1].correlation < 0.9
    assert (loaded.measured[-1].difference is None) == (wrong == "nan")
    assert load_cross_encoder(str(tiny_reranker)).measured == loaded.measured


@openvino
def test_openvino_stays_off_the_network_and_says_nothing(tiny_reranker: Path, tmp_path: Path) -> None:
    code = f"""
import socket
def refuse(*arguments, **named):
    print("network", arguments, flush=True)
    raise OSError
socket.getaddrinfo = socket.create_connection = socket.socket.connect = socket.socket.connect_ex = refuse
from epicqa.models.backends import load_cross_encoder
for _ in range(2):
    print(load_cross_encoder({str(tiny_reranker)!r}, "openvino").backend)
"""
    # Some reporters hold back where they see a CI.
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    environment = inherited | {"EPICQA_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "openvino\nopenvino\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
