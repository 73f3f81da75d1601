"""Encoders of random weights that know a few words, for tests of claim models, and a small Wikipedia."""

from pathlib import Path
from typing import Any

import pytest

from epicqa.index.build import Index, open_index

WORDS = ("virus", "mask", "steel", "bat", "fever", "cough", "lung", "water", "yes", "no", "nothing", ".")
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a BERT whose tokens are ``WORDS``; other words are [UNK]."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(1)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertModel(BertConfig(**_SIZES, vocab_size=len(vocabulary))).save_pretrained(folder)
    BertTokenizer(vocab=str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a RoBERTa whose tokens are letters: one type of tokens, positions for 62 of them."""
    import torch
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("roberta")
    torch.manual_seed(1)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz.", "\u0120"]
    config = RobertaConfig(
        **_SIZES, vocab_size=len(tokens), max_position_embeddings=64, type_vocab_size=1, initializer_range=0.5
    )
    RobertaModel(config).save_pretrained(folder)
    vocabulary = {token: place for place, token in enumerate(tokens)}
    RobertaTokenizerFast(vocab=vocabulary, merges=[]).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def small(small_wiki: Path) -> Index:
    """The index of the small made-up Wikipedia."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(small_wiki))
        return open_index("fever")
