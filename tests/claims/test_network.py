"""The network by hand, its folder, and folders that hold something else."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from epicqa.claims.encoding import ClaimInput, Window, windows_of
from epicqa.claims.network import (
    Network,
    Settings,
    batches_of,
    longest_of,
    open_network,
    read_settings,
    save_network,
)
from epicqa.errors import EpicqaError

INPUTS = [
    ClaimInput("virus mask", ("bat steel .", "mask", "lung water fever cough yes")),
    ClaimInput("bat", ("no . yes",)),
    ClaimInput("steel bat", ()),
    ClaimInput("", ("bat cab", "cough")),
]


@pytest.fixture(params=["bert", "roberta"])
def opened(request: pytest.FixtureRequest) -> tuple[Network, Any]:
    """A network with fresh heads and its tokenizer."""
    torch.manual_seed(3)
    network, tokenizer, settings = open_network(request.getfixturevalue(request.param))
    assert settings is None
    return network.eval(), tokenizer


def read(network: Network, tokenizer: Any, windows: list[Window]) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.inference_mode():
        logits, labels = network(windows, tokenizer.pad_token_id)
    return logits, labels


def test_a_window_reads_alike_alone_and_in_a_batch(opened: tuple[Network, Any]) -> None:
    network, tokenizer = opened
    windows = windows_of(tokenizer, INPUTS, 60)
    logits, labels = read(network, tokenizer, windows)
    assert (logits.shape, labels.shape, logits.dtype) == ((4, 3), (4, 3), torch.float32)
    assert torch.isfinite(labels).all()
    assert torch.equal(
        torch.isfinite(logits), torch.tensor([[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]]).bool()
    )
    for row, window in enumerate(windows):
        alone_logits, alone_labels = read(network, tokenizer, [window])
        count = len(window.spans)
        torch.testing.assert_close(logits[row, :count], alone_logits[0, :count], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(labels[row], alone_labels[0], atol=1e-5, rtol=1e-5)
    assert len({round(one, 4) for one in labels[:, 0].tolist()}) == 4


def test_heads_by_hand(opened: tuple[Network, Any]) -> None:
    network, tokenizer = opened
    (window,) = windows_of(tokenizer, INPUTS[:1], 60)
    ids = torch.tensor([window.ids])
    given: dict[str, torch.Tensor] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if network.encoder.config.model_type == "bert":
        given["token_type_ids"] = (torch.arange(len(window.ids)) >= window.parted).long()[None]
    with torch.inference_mode():
        states = network.encoder(**given).last_hidden_state[0]
        vectors = torch.stack([states[start:end].mean(dim=0) for start, end in window.spans])
        logits = network.sentence_head(vectors)[:, 0]
        evidence = sum(
            weight * vector for weight, vector in zip(torch.softmax(logits, 0), vectors, strict=True)
        )
        labels = network.label_head(torch.cat([states[0], torch.as_tensor(evidence)]))
    found = read(network, tokenizer, [window])
    torch.testing.assert_close(found[0][0], logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[1][0], labels, atol=1e-5, rtol=1e-5)


def test_an_encoder_with_types_is_told_the_parts(bert: Path) -> None:
    network, tokenizer, _ = open_network(bert)
    (window,) = windows_of(tokenizer, INPUTS[:1], 60)
    moved = replace(window, parted=window.parted - 1)
    one, other = (read(network.eval(), tokenizer, [each])[1] for each in (window, moved))
    assert not torch.allclose(one, other)


def test_what_is_saved_is_opened(opened: tuple[Network, Any], tmp_path: Path) -> None:
    network, tokenizer = opened
    settings = Settings("joint", "both", 48, 0.25, 0.75)
    for name in ("one", "two"):
        save_network(tmp_path / name, network, tokenizer, settings)
    torch.manual_seed(9)
    again, its_tokenizer, its_settings = open_network(tmp_path / "one")
    assert its_settings == settings == read_settings(tmp_path / "one")
    for name, tensor in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor.half().float()), name
    windows = windows_of(its_tokenizer, INPUTS, 48)
    assert windows == windows_of(tokenizer, INPUTS, 48)
    found, expected = (read(one, tokenizer, windows) for one in (again.eval(), network.half().float()))
    assert torch.equal(found[0], expected[0]) and torch.equal(found[1], expected[1])
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    # Where the base lay is nobody's business.
    assert not [name for name, content in files.items() if str(tmp_path.parent).encode() in content]


def test_tokens_that_an_encoder_reads(bert: Path, roberta: Path) -> None:
    one, other = (open_network(folder)[0].encoder for folder in (bert, roberta))
    assert (longest_of(one, 600), longest_of(one, 100)) == (512, 100)
    assert longest_of(other, 600) == 62
    tokenizer = open_network(roberta)[1]
    (window,) = windows_of(tokenizer, [ClaimInput("ab", ("c" * 99,))], 62)
    assert len(window.ids) == 62
    read(open_network(roberta)[0], tokenizer, [window])


def test_batches_are_of_like_length(bert: Path) -> None:
    tokenizer = open_network(bert)[1]
    windows = windows_of(tokenizer, [ClaimInput("bat " * count, ()) for count in (1, 9, 3, 8, 2)], 64)
    assert list(batches_of(windows, 22)) == [[1, 3], [2, 4, 0]]
    assert list(batches_of(windows, 1)) == [[1], [3], [2], [4], [0]]
    assert list(batches_of([], 22)) == []


@pytest.fixture
def claims(tiny_claims: dict[str, Path], tmp_path: Path) -> Path:
    """A joint model's folder that may be spoilt."""
    return Path(shutil.copytree(tiny_claims["joint"], tmp_path / "claims"))


def spoil(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps(config | changes))


SETTINGS = asdict(Settings("joint"))


@pytest.mark.parametrize(
    "settings",
    [
        [],
        "joint",
        {},
        SETTINGS | {"kind": "all"},
        SETTINGS | {"kind": ["joint"]},
        SETTINGS | {"reads": "none"},
        SETTINGS | {"max_length": 8},
        SETTINGS | {"max_length": "512"},
        SETTINGS | {"threshold": 1.5},
        SETTINGS | {"threshold": "0.5"},
        SETTINGS | {"evidence_threshold": None},
        SETTINGS | {"evidence_threshold": float("nan")},
        SETTINGS | {"more": 1},
    ],
)
def test_damaged_settings_are_refused(tmp_path: Path, settings: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "epicqa_claims": settings}))
    for check in (read_settings, open_network):
        with pytest.raises(
            EpicqaError, match=r"config\.json: 'epicqa_claims' is damaged, expected .*$"
        ) as error:
            check(tmp_path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[1]", b"{", b"[" * 100_000])
def test_a_configuration_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(EpicqaError, match=r"^[^\n]*config\.json: cannot be read [^\n]*$"):
        read_settings(tmp_path)


def test_other_models_have_no_settings(bert: Path, tmp_path: Path) -> None:
    assert read_settings(bert) is None
    assert read_settings(tmp_path) is None


def test_windows_longer_than_the_encoder_are_refused(claims: Path) -> None:
    spoil(claims, epicqa_claims=SETTINGS | {"max_length": 513})
    with pytest.raises(EpicqaError, match="windows of 513 tokens, expected no more than the encoder reads"):
        open_network(claims)


def test_damaged_weights_are_one_line(claims: Path, tiny_claims: dict[str, Path], bert: Path) -> None:
    for content in (b"damage", (bert / "model.safetensors").read_bytes(), None):
        (claims / "model.safetensors").unlink()
        if content is not None:
            (claims / "model.safetensors").write_bytes(content)
        with pytest.raises(
            EpicqaError, match=r"^[^\n]*claims: cannot be loaded \([^\n]+expected an encoder$"
        ):
            open_network(claims)
        (claims / "model.safetensors").touch()


class Harm:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return (open, (self.path, "w"))


@pytest.mark.parametrize("kind", ["claims", "bert"])
def test_pickles_are_never_loaded(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    folder = Path(shutil.copytree(request.getfixturevalue(kind), tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harm(tmp_path / "harm")))
    with pytest.raises(EpicqaError, match=r"^[^\n]*: cannot be loaded [^\n]*$"):
        open_network(folder)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("kind", ["claims", "bert"])
def test_code_of_a_folder_never_runs_and_nobody_is_asked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = Path(shutil.copytree(request.getfixturevalue(kind), tmp_path / "model"))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'harm')!r}, 'w')\n")
    own = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    spoil(folder, model_type="unheard", auto_map=own)
    tokens = folder / "tokenizer_config.json"
    tokens.write_text(
        json.dumps(json.loads(tokens.read_bytes()) | {"auto_map": {"AutoTokenizer": ["own.T", None]}})
    )
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked"))
    with pytest.raises(EpicqaError, match=r"^[^\n]*: cannot be loaded [^\n]*$"):
        open_network(folder)
    assert not (tmp_path / "harm").exists()


def test_a_tokenizer_without_starts_and_ends_is_refused(bert: Path, tmp_path: Path) -> None:
    from transformers import GPT2Tokenizer

    folder = Path(shutil.copytree(bert, tmp_path / "model"))
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / "vocab.txt").unlink()
    GPT2Tokenizer(vocab={"a": 0, "<|endoftext|>": 1}, merges=[]).save_pretrained(folder)
    with pytest.raises(EpicqaError, match=r"its tokenizer has no \[CLS\], \[SEP\] and \[PAD\], expected an"):
        open_network(folder)


def test_the_static_encoder_is_none_to_train() -> None:
    from epicqa.models.places import STATIC

    with pytest.raises(EpicqaError, match=r"^[^\n]*static: [^\n]*expected an encoder[^\n]*$"):
        open_network(STATIC)


def test_fresh_heads_are_the_seeds(bert: Path) -> None:
    heads = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        network = open_network(bert)[0]
        heads.append(torch.cat([one.flatten() for one in network.label_head.parameters()]))
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])
