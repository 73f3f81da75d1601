import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.ranking import Ranking
from epicqa.runs import manifest_path, write_run

WriteRun = Callable[..., Path]


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    """Four documents of one context of five sentences: 20 rows."""
    folder = tmp_path_factory.mktemp("small")
    documents = [
        {
            "document_id": name,
            "metadata": {"title": name, "urls": []},
            "contexts": [
                {
                    "section": None,
                    "context_id": f"{name}-C000",
                    "text": "One. Two. Tri. Qua. Pen.",
                    "sentences": [
                        {"sentence_id": f"{name}-C000-S{s:03d}", "start": s * 5, "end": s * 5 + 4}
                        for s in range(5)
                    ],
                }
            ],
        }
        for name in "abcd"
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    build_corpus([folder / "d.jsonl"], folder / "corpus", workers=1, strict=True)
    return CorpusStore.open(folder / "corpus")


@pytest.fixture
def index(small_store: CorpusStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the one index that can be opened in this test."""

    def open_index(name: str) -> SimpleNamespace:
        if name != "small":
            raise EpicqaError(f"indexes/{name}: no such index, expected one of: small")
        return SimpleNamespace(store=small_store, name=name, fingerprint="f1")

    monkeypatch.setitem(sys.modules, "epicqa.index.build", SimpleNamespace(open_index=open_index))
    return "small"


@pytest.fixture
def make_run(small_store: CorpusStore, tmp_path: Path) -> WriteRun:
    """Writes a valid run of all 20 sentences for each question, with a manifest unless told otherwise."""

    def make(tag: str, questions: tuple[str, ...] = ("EQ001", "EQ002"), manifest: dict | None = None) -> Path:
        path = tmp_path / f"{tag}.tsv"
        every = Ranking.of_sentences(np.arange(20), np.zeros(20))
        write_run(path, tag, dict.fromkeys(questions, every), small_store)
        manifest_path(path).write_text(
            json.dumps(
                {
                    "epicqa_manifest": 1,
                    "tag": tag,
                    "index": "small",
                    "index_fingerprint": "f1",
                    "questions": {"name": "expert", "ids": list(questions)},
                    "judgments": None,
                    "config": {"task": "ae"},
                }
                | (manifest or {})
            )
        )
        return path

    return make
