"""``epicqa train`` as a user types it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PAIRS = [
    {"query": f"what about {a} {b}?", "positive": f"{b} is a thing of {a} kind", "group": b}
    for a in ("red", "green", "blue", "old", "new")
    for b in ("masks", "lungs", "cats", "tests", "beds", "doors", "germs", "trains", "schools", "hands")
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS))
    return path


def test_trains_tells_figures_and_the_index_takes_it(
    epicqa: Callable, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    out = tmp_path / "model"
    ended = epicqa("train", "static", pairs, "--out", out, "--epochs", 1, "--held-out", 0.3)
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith(f"{out}: trained on ") and lines[0].endswith(" held out")
    assert [line.split()[:2] for line in lines[1:]] == [["base", "MRR"], ["trained", "MRR"]]
    assert "epicqa train static" in (out / "README.md").read_text()
    again = epicqa("train", "static", pairs, "--out", out, "--epochs", 1, "--held-out", 0.3, "--json")
    record = json.loads(again.out)
    assert set(record) == {"model", "pairs", "held_out", "base", "trained"}
    assert record["pairs"] + record["held_out"] == len(PAIRS) and record["held_out"] % 5 == 0
    assert f"{record['trained']['mrr']:.3f}" in lines[2]
    documents = tmp_path / "d.jsonl"
    documents.write_text('{"id": "a", "title": "Masks", "text": "Masks help. Trains run."}\n')
    built = epicqa("index", documents, "--name", "mine", "--dense", out, "--threads", 1)
    assert built.status == 0 and str(out) in built.out


def test_all_pairs_may_be_trained_on(epicqa: Callable, pairs: Path, tmp_path: Path) -> None:
    ended = epicqa("train", "static", pairs, "--out", tmp_path / "m", "--epochs", 1, "--held-out", 0)
    assert (ended.status, ended.out) == (0, f"{tmp_path / 'm'}: trained on 50 pairs, 0 held out\n")


def test_bad_input_is_one_line(epicqa: Callable, pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"query": "a"}\n')
    assert epicqa("train", "static", bad, "--out", out).line().startswith(f"{bad}:1: positive holds null")
    assert "none.jsonl" in epicqa("train", "static", tmp_path / "none.jsonl", "--out", out).line()
    assert (
        "no static-embedding model"
        in epicqa("train", "static", pairs, "--out", out, "--base", "minilm").line()
    )
    assert (
        "learning_rate -1.0" in epicqa("train", "static", pairs, "--out", out, "--learning-rate", -1).line()
    )
    assert (
        "sources.json"
        in epicqa("train", "static", pairs, "--out", out, "--sources", tmp_path / "sources.json").line()
    )
    assert "holds something else" in epicqa("train", "static", pairs, "--out", tmp_path).line()
    assert not out.exists()


def test_help_names_both_and_loads_nothing_heavy(fresh: Callable) -> None:
    program = "import sys; from epicqa.cli import main\ntry: main()\nfinally: print('torch' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program, "train", "static", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.endswith("False\n")
    shown = fresh("train", "--help").out
    assert "static" in shown and "reranker" in shown


def test_interrupted_the_same_command_goes_on(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    program = "from epicqa.models.train import static; static._SAVE_SECONDS = 0.0\n"
    program += "from epicqa.cli import main; main()"
    command = [sys.executable, "-c", program, "train", "static", str(pairs), "--out", str(out)]
    command += ["--epochs", "300", "--batch-size", "8"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    checkpoint = tmp_path / ".model.training" / "checkpoint.safetensors"
    end = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert error.strip() == "epicqa: interrupted; the same command goes on where it stopped"
    assert checkpoint.exists() and not out.exists()
