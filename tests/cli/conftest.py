import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    def line(self) -> str:
        """The one line that bad input is answered with."""
        assert (self.status, self.out) == (2, ""), self
        assert self.err.startswith("epicqa: ") and self.err.count("\n") == 1, self.err
        return self.err.removeprefix("epicqa: ").rstrip("\n")


@pytest.fixture
def epicqa(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs the command line in this process, as its entry point does."""
    from epicqa.cli import main

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["epicqa", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def plain_flags(plain: dict[str, str]) -> list[str]:
    """``plain`` as the command line has it."""
    return [word for name, value in plain.items() for word in (f"--{name.replace('_', '-')}", value)]


@pytest.fixture
def fresh() -> Callable[..., Ended]:
    """Runs the command line in a process of its own."""

    def run(*arguments: object, status: int = 0, **options: Any) -> Ended:
        command = [sys.executable, "-m", "epicqa", *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
        assert ended.returncode == status, ended.stderr
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run
