"""``epicqa train reranker`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = ("virus", "mask", "steel", "bat", "fever", "cough", "lung", "water")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    lines = [
        {"query": f"what of {word} {place}?", "positive": f"{word} {place} is told", "group": str(place % 5)}
        for place, word in enumerate(WORDS * 3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


SMALL = ("--max-steps", 3, "--batch-size", 4, "--negatives", 2, "--max-length", 24, "--threads", 1)


def test_a_model_is_trained_and_used(
    epicqa: Callable[..., Any], home: Path, pairs: Path, tiny_reranker: Path
) -> None:
    command = ("train", "reranker", pairs, "--out", "model", "--base", tiny_reranker, *SMALL)
    (home / "sources.json").write_text('{"pairs.jsonl": {"source": "Toys", "licence": "CC0"}}')
    notes = ("--sources", "sources.json", "--held-out", 0.3)
    ended = epicqa(*command, *notes)
    assert (ended.status, ended.err) == (0, ""), ended
    assert ended.out.startswith("model: step ") and "MRR on held-out groups" in ended.out
    card = (home / "model/README.md").read_text()
    assert "Toys: CC0 (SHA-256" in card and f"--base {tiny_reranker} --max-steps 3" in card
    assert epicqa(*command, *notes).out == ended.out
    models = ("--reranker", "model", "--bi-encoder", "none")
    again = epicqa("run", *models, "--rerank-depth", 5, "--index", "bare", "--tag", "t")
    assert again.status == 0, again


def test_negatives_come_from_an_index(
    epicqa: Callable[..., Any], home: Path, pairs: Path, tiny_reranker: Path
) -> None:
    command = ("train", "reranker", pairs, "--out", "model", "--base", tiny_reranker, *SMALL)
    ended = epicqa(*command, "--index", "bare", "--titles", "--held-out", 0, "--budget", "1m")
    assert ended.status == 0 and "no pairs were held out" in ended.out
    assert epicqa(*command, "--index", "none").line().startswith("no index 'none'")


@pytest.mark.parametrize("time", ["60", "m", "-1m", "0m", "1d", ""])
def test_a_budget_is_a_time(epicqa: Callable[..., Any], pairs: Path, time: str) -> None:
    ended = epicqa("train", "reranker", pairs, "--out", "model", "--budget", time)
    assert ended.status == 2 and "expected a time such as 90s, 60m or 1.5h" in " ".join(ended.err.split())


def test_errors_are_one_line(epicqa: Callable[..., Any], tmp_path: Path, pairs: Path) -> None:
    command = ("train", "reranker")
    out = ("--out", tmp_path / "model")
    assert epicqa(*command, tmp_path / "none.jsonl", *out).line().startswith(f"{tmp_path}/none.jsonl: ")
    (tmp_path / "bad.jsonl").write_text('{"query": "q"}\n')
    assert epicqa(*command, tmp_path / "bad.jsonl", *out).line().startswith(f"{tmp_path}/bad.jsonl:1: ")
    assert "unknown model '/none'" in epicqa(*command, pairs, *out, "--base", "/none").line()
    assert "batch is 0" in epicqa(*command, pairs, *out, "--batch-size", 0).line()
    assert "share held out 2" in epicqa(*command, pairs, *out, "--held-out", 2).line()
    assert not (tmp_path / "model").exists()
