"""The network that reads a claim with sentences: an encoder, a head for each sentence, one for the label.

The line of ParagraphJoint (Li, Burns & Peng 2021, "A Paragraph-level Multi-task Learning Model for Scientific
Fact-Verification") and MultiVerS (Wadden et al. 2022): all sentences are read at once. A sentence's vector
is the mean of its tokens' states. The label is told from the first token's state beside the mean of the
sentences' vectors weighted by the softmax of their logits, so that it rests on what looks like a rationale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from epicqa.claims.encoding import Window
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.errors import EpicqaError
from epicqa.models.batches import slabs
from epicqa.models.quiet import quiet

LABEL_ORDER = (SUPPORTS, NOINFO, REFUTES)
"""Of the label's three logits."""

Kind = Literal["rationale", "label", "joint"]
Reads = Literal["both", "claim", "sentences"]

_KEY = "epicqa_claims"
_WEIGHTS = "model.safetensors"
# Nothing is fetched, no code of a folder runs, and nobody is asked whether it may.
_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a claim model's folder says beside its weights.

    Attributes:
        kind: ``rationale``: scores each sentence by itself; ``label``: labels a claim by sentences;
            ``joint``: both, of all sentences at once.
        reads: what it is given of an input.
        max_length: tokens of a window.
        threshold: a sentence of a higher probability is a rationale's.
        evidence_threshold: sentences are evidence where the probability of `NOINFO` is below 1 less this.
    """

    kind: Kind
    reads: Reads = "both"
    max_length: int = 512
    threshold: float = 0.5
    evidence_threshold: float = 0.5


class Network(torch.nn.Module):
    """An encoder with the two heads; a kind that has no use for one of them leaves it as it is."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.sentence_head = _head(size, 1)
        self.label_head = _head(2 * size, len(LABEL_ORDER))

    def forward(self, windows: Sequence[Window], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits float32[n, most sentences], -inf where a window has fewer, and float32[n, 3]."""
        device = next(self.parameters()).device
        length = max(len(one.ids) for one in windows)
        most = max(1, *(len(one.spans) for one in windows))
        ids = torch.full((len(windows), length), padding)
        there = torch.zeros((len(windows), length), dtype=torch.long)
        types = torch.zeros((len(windows), length), dtype=torch.long)
        means = torch.zeros((len(windows), most, length))
        for row, one in enumerate(windows):
            ids[row, : len(one.ids)] = torch.tensor(one.ids)
            there[row, : len(one.ids)] = 1
            types[row, one.parted : len(one.ids)] = 1
            for place, (start, end) in enumerate(one.spans):
                means[row, place, start:end] = 1 / (end - start)
        given = {"input_ids": ids.to(device), "attention_mask": there.to(device)}
        if getattr(self.encoder.config, "type_vocab_size", 0) > 1:
            given["token_type_ids"] = types.to(device)
        states = self.encoder(**given).last_hidden_state
        with torch.autocast(device.type, enabled=False):
            states = states.float()
            means = means.to(device)
            vectors = means @ states
            empty = means.sum(dim=2) == 0
            logits = self.sentence_head(vectors)[..., 0].masked_fill(empty, -torch.inf)
            # A window without sentences has no weights: its softmax would be of nothing.
            weights = torch.softmax(logits, dim=1).masked_fill(empty, 0.0).nan_to_num(0.0)
            evidence = (weights[..., None] * vectors).sum(dim=1)
            labels = self.label_head(torch.cat([states[:, 0], evidence], dim=1))
        return logits, labels


def open_network(folder: Path) -> tuple[Network, Any, Settings | None]:
    """The network in a folder, float32, its tokenizer and settings.

    Of an encoder that is no claim model the heads are new, drawn by PyTorch's generator, and settings None.
    Weights come from safetensors only, no code of the folder runs.

    Raises:
        EpicqaError: it holds no encoder that can be loaded.
    """
    with quiet():
        from transformers import AutoConfig, AutoModel, AutoTokenizer

        with quiet():
            try:
                settings = read_settings(folder)
                tokenizer = AutoTokenizer.from_pretrained(str(folder), **_LOCAL)
                if None in (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id):
                    raise EpicqaError(
                        f"{folder}: its tokenizer has no [CLS], [SEP] and [PAD], expected an encoder's"
                    )
                if settings is None:
                    encoder = _encoder(
                        AutoModel.from_pretrained,
                        str(folder),
                        **_LOCAL,
                        use_safetensors=True,
                        dtype=torch.float32,
                    )
                    return Network(encoder), tokenizer, None
                from safetensors.torch import load_file

                config = AutoConfig.from_pretrained(str(folder), **_LOCAL)
                network = Network(_encoder(AutoModel.from_config, config, trust_remote_code=False))
                network.load_state_dict(load_file(folder / _WEIGHTS))
            except EpicqaError:
                raise
            except Exception as error:  # whatever a foreign folder provokes in the libraries
                line = next(iter(str(error).splitlines()), "") or type(error).__name__
                raise EpicqaError(f"{folder}: cannot be loaded ({line}), expected an encoder") from None
    if settings.max_length > longest_of(network.encoder, settings.max_length):
        raise EpicqaError(
            f"{folder}: windows of {settings.max_length:,} tokens, expected no more than the encoder reads"
        )
    return network.float(), tokenizer, settings


def longest_of(encoder: Any, wanted: int) -> int:
    """Tokens that an encoder reads at once, ``wanted`` at most."""
    positions: int = getattr(encoder.config, "max_position_embeddings", wanted)
    table = getattr(getattr(encoder, "embeddings", None), "position_embeddings", None)
    # RoBERTa and its kin count from after the position of padding.
    padding = getattr(table, "padding_idx", None)
    return min(wanted, positions if padding is None else positions - padding - 1)


def read_settings(folder: Path) -> Settings | None:
    """The settings of a claim model's folder; None if it is no claim model's.

    Raises:
        EpicqaError: they are damaged.
    """
    path = folder / "config.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_bytes()).get(_KEY)
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise EpicqaError(f"{path}: cannot be read ({error}), expected a model's configuration") from None
    if found is None:
        return None
    try:
        settings = Settings(**found)
        right = (
            settings.kind in get_args(Kind)
            and settings.reads in get_args(Reads)
            and type(settings.max_length) is int
            and settings.max_length > 8
            and all(
                type(one) in (int, float) and 0 <= one <= 1
                for one in (settings.threshold, settings.evidence_threshold)
            )
        )
    except TypeError:
        right = False
    if not right:
        names = ", ".join(one.name for one in fields(Settings))
        raise EpicqaError(f"{path}: {_KEY!r} is damaged, expected an object of {names}")
    return settings


def save_network(folder: Path, network: Network, tokenizer: Any, settings: Settings) -> None:
    """Write a claim model's folder, weights in float16; ``config.json``, which makes it one, comes last."""
    from safetensors.torch import save

    from epicqa.files import write_bytes

    folder.mkdir(parents=True, exist_ok=True)
    with quiet():
        tokenizer.save_pretrained(folder)
    weights = {name: one.detach().cpu().half().contiguous() for name, one in network.state_dict().items()}
    write_bytes(folder / _WEIGHTS, save(weights, {"format": "pt"}))
    config = network.encoder.config.to_dict() | {_KEY: asdict(settings)}
    # A path of this machine.
    config.pop("_name_or_path", None)
    write_bytes(folder / "config.json", json.dumps(config, indent=2, default=str).encode() + b"\n")


def _head(size: int, out: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Dropout(0.1), torch.nn.Linear(size, size), torch.nn.Tanh(), torch.nn.Linear(size, out)
    )


def _encoder(load: Any, *arguments: Any, **settings: Any) -> Any:
    try:
        return load(*arguments, add_pooling_layer=False, **settings)
    except TypeError:
        # Not all kinds of encoders have one to leave out.
        return load(*arguments, **settings)


def batches_of(windows: Sequence[Window], tokens: int) -> Iterator[list[int]]:
    """Places of windows of like length, within ``tokens`` when padded, or of one."""
    lengths = [len(one.ids) for one in windows]
    return slabs(sorted(range(len(windows)), key=lambda place: -lengths[place]), lengths, tokens)
