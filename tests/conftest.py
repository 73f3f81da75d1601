"""Fixtures for every test: where the real data lies, and a home of its own."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from epicqa import sample
from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore

# A busy machine is no failure.
settings.register_profile("epicqa", deadline=None)
settings.load_profile("epicqa")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The real data beside the checkout. Missing, it fails under CI and is skipped elsewhere."""
    if not SHARED.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs the data in {SHARED}")
        pytest.skip(f"no real data in {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for caches that tests may share: what lies there never changes what comes out."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def no_outer_settings(monkeypatch: pytest.MonkeyPatch, caches: Path) -> None:
    """A user's own EPICQA_ variables must not change what a test sees, nor a test the user's cache."""
    for name in [name for name in os.environ if name.startswith("EPICQA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EPICQA_CACHE", str(caches))


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    """The sample's sentences."""
    folder = tmp_path_factory.mktemp("sample") / "corpus"
    build_corpus([sample.documents_path()], folder, workers=1)
    return CorpusStore.open(folder)


@pytest.fixture(scope="session")
def sample_indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real indexes built by one thread: the ``sample``, ``bare`` (no vectors), ``mine`` of its documents."""
    from epicqa.index.build import BuildOptions, build_index

    folder = tmp_path_factory.mktemp("sample")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        build_index([], "sample", BuildOptions(threads=1))
        build_index([], "bare", BuildOptions(threads=1, dense="none"))
        build_index([sample.documents_path()], "mine", BuildOptions(threads=1, dense="none"))
    return folder / "indexes"


@pytest.fixture(scope="session")
def small_wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the index ``fever`` of the small made-up Wikipedia."""
    from epicqa.index.build import BuildOptions, build_index

    folder = tmp_path_factory.mktemp("wiki")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        build_index([GOLDEN / "fever" / "wiki-pages"], "fever", BuildOptions(threads=1, dense="none"))
    return folder


@pytest.fixture
def home(sample_indexes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own with these indexes, the current folder in this test, caches in ``cache``."""
    (tmp_path / "indexes").symlink_to(sample_indexes)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture(scope="session")
def plain() -> dict[str, str]:
    """Settings with nothing that reranks: its models take seconds to load, and tests of other things none."""
    return {"reranker": "none", "bi_encoder": "none"}


@pytest.fixture(scope="session")
def tiny_reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a real cross-encoder of random weights."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from epicqa.models.resolve import resolve

    folder = tmp_path_factory.mktemp("reranker")
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = BertConfig(**sizes, num_labels=1, initializer_range=0.5)
    BertForSequenceClassification(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(resolve("minilm"))).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_claims(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kind -> the folder of a real claim model of that kind, of random weights that tell texts apart."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from epicqa.claims.network import Kind, Network, Settings, save_network
    from epicqa.models.resolve import resolve

    tokenizer = AutoTokenizer.from_pretrained(str(resolve("minilm")))
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = BertConfig(**sizes, initializer_range=0.5)
    kinds: tuple[Kind, ...] = ("rationale", "label", "joint")
    folders: dict[str, Path] = {}
    for seed, kind in enumerate(kinds, 1):
        torch.manual_seed(seed)
        network = Network(BertModel(config, add_pooling_layer=False))
        with torch.no_grad():
            for head in (network.sentence_head, network.label_head):
                last = head[-1]
                assert isinstance(last, torch.nn.Linear)
                last.weight.mul_(10)
        folders[kind] = tmp_path_factory.mktemp(kind)
        save_network(folders[kind], network, tokenizer, Settings(kind))
    return folders
