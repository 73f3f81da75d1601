"""The bundled sample: where its documents, questions and judgments lie."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def _path(name: str) -> Path:
    return Path(str(files("epicqa.sample") / name))


def documents_path() -> Path:
    return _path("documents.jsonl")


def questions_path(kind: str) -> Path:
    """The question file of a kind, ``expert`` or ``general``."""
    return _path(f"{kind}_questions.json")


def judgments_path() -> Path:
    return _path("judgments.json")
