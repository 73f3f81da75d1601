"""Texts to unit vectors: a static-embedding model in NumPy alone, any other through sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.models.places import fingerprint
from epicqa.models.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

_SLAB = 1024


class Encoder(Protocol):
    """What turns texts into vectors.

    Attributes:
        name: what the user gave.
        dimension: numbers a vector.
        fingerprint: hex SHA-256 of weights, configuration and tokenizer, the same on every machine.
    """

    name: str
    dimension: int
    fingerprint: str

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, float32[n, dimension], of length 1 (0 for a text without tokens)."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, as ``encode``; each is the same alone or among others, on any threads."""
        ...


class StaticEncoder:
    """The mean of a text's token vectors, without PyTorch.

    A text's vectors are added one token after another in float32: a result depends on neither batches nor
    threads.
    """

    def __init__(self, name: str, folder: Path, tokenizer: Tokenizer, table: NDArray[np.float32]) -> None:
        self.name = name
        self.dimension = int(table.shape[1])
        self.fingerprint = fingerprint(folder)
        self._tokenizer = tokenizer
        self._table = table

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, float32[n, dimension]."""
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), _SLAB):
            slab = list(texts[start : start + _SLAB])
            out[start : start + len(slab)] = self._sums(slab)
        # A sum over each row alone; the mean's divisor falls out.
        length = np.sqrt(np.einsum("ij,ij->i", out, out, dtype=np.float64))
        length[length == 0] = 1
        out /= length[:, None].astype(np.float32)
        return out

    encode_queries = encode

    def _sums(self, texts: list[str]) -> NDArray[np.float32]:
        from scipy.sparse import csr_array

        ids = [found.ids for found in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        starts = np.cumsum([0] + [len(tokens) for tokens in ids])
        tokens = np.fromiter(chain.from_iterable(ids), np.int32, starts[-1])
        # Its product adds a row's vectors one after another, whatever the other rows are.
        which = csr_array(
            (np.ones(len(tokens), np.float32), tokens, starts), shape=(len(texts), len(self._table))
        )
        return np.asarray(which @ self._table)


class TransformerEncoder:
    """Any other sentence-transformers model."""

    def __init__(self, name: str, folder: Path, model: SentenceTransformer) -> None:
        self.name = name
        self.fingerprint = fingerprint(folder)
        self._model = model
        probe = self.encode_queries(["probe"])
        self.dimension = int(probe.shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, float32[n, dimension]; the library sorts the texts by length and batches them."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with quiet():
            found = self._model.encode_document(
                list(texts), batch_size=32, show_progress_bar=False, normalize_embeddings=True
            )
        return np.asarray(found, dtype=np.float32)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, float32[n, dimension].

        One text at a time on one thread: sums in another order differ by 1e-7, enough to move a rounded
        score.
        """
        import torch

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with quiet():
                found = self._model.encode_query(
                    list(texts), batch_size=1, show_progress_bar=False, normalize_embeddings=True
                )
        finally:
            torch.set_num_threads(threads)
        return np.asarray(found, dtype=np.float32)


def open_static(name: str, folder: Path) -> StaticEncoder | None:
    """The encoder of a ``StaticEmbedding`` folder with float16 or float32 weights; None for others."""
    listed = folder / "modules.json"
    if not listed.is_file():
        return None
    modules = json.loads(listed.read_text("utf-8"))
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    if kinds not in (["StaticEmbedding"], ["StaticEmbedding", "Normalize"]):
        return None
    from safetensors import SafetensorError, safe_open
    from tokenizers import Tokenizer

    place = folder / modules[0]["path"]
    try:
        with safe_open(place / "model.safetensors", framework="numpy") as weights:
            if list(weights.keys()) != ["embedding.weight"]:
                return None
            if weights.get_slice("embedding.weight").get_dtype() not in ("F16", "F32"):
                return None
            table = weights.get_tensor("embedding.weight").astype(np.float32)
    except (OSError, SafetensorError) as error:
        raise EpicqaError(
            f"{place / 'model.safetensors'}: damaged ({error}), expected a safetensors file"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    except Exception as error:  # the library raises plain Exception
        raise EpicqaError(f"{place / 'tokenizer.json'}: {error}, expected a tokenizer") from None
    tokenizer.no_padding()
    tokens = tokenizer.get_vocab_size()
    if tokens > len(table):
        raise EpicqaError(f"{place}: {tokens} tokens and {len(table)} vectors, expected a vector a token")
    return StaticEncoder(name, folder, tokenizer, table)
