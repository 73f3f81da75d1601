"""FEVER's table on the small made-up Wikipedia, with a model of random weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.fever import ARTICLES, FIVE, MADE_UP, NARROW, ONE, ORACLE, SETTINGS, main
from benchmarks.quality.small_wiki import FOLDER
from epicqa.claims.fever_scores import MEASURES
from epicqa.claims.pages import ROWS


@pytest.fixture
def run(small_wiki: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("EPICQA_HOME", str(small_wiki))

    def ran(*options: str) -> str:
        main(["--threads", "1", "--index", "fever", *options])
        return capsys.readouterr().out

    return ran


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """The pages with twenty claims."""
    (tmp_path / "wiki-pages").symlink_to(FOLDER / "wiki-pages")
    lines = (FOLDER / "claims.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "claims.jsonl").write_text("".join(lines[:20]))
    return tmp_path


def test_every_setting(run: Any, few: Path, tiny_claims: dict[str, Path]) -> None:
    found = json.loads(run(str(few), "--model", f"ours={tiny_claims['label']}", "--format", "json"))
    assert [(one["system"], one["premises"], one["read"]) for one in found["claims"]] == [
        ("ours", which, reading) for which, reading in SETTINGS
    ]
    assert found["note"] is None
    for one in found["claims"]:
        assert list(one["bootstrap"]) == list(one["values"]) == list(MEASURES)
        assert one["claims"] == 20 and -1 <= one["label_kappa"] <= 1
    # Five are read at once: if any is evidence, all are.
    values = {(one["premises"], one["read"]): one["values"] for one in found["claims"]}
    assert values[ORACLE, FIVE]["evidence_recall"] >= values[NARROW, FIVE]["evidence_recall"]
    assert set(values) == set(SETTINGS) and (ARTICLES, ONE) in values


def test_retrieval_alone_says_that_it_is_a_self_test(run: Any) -> None:
    found = json.loads(run("--model", "none", "--pages", "2", "--format", "json"))
    assert (found["note"], found["claims"]) == (MADE_UP, [])
    assert [one["row"] for one in found["retrieval"]] == list(ROWS)
    values = [one["evidence_recall"] for one in found["retrieval"]]
    assert values == sorted(values) and values[0] < 0.6 < 0.9 < values[-1]
    for one in found["retrieval"]:
        assert one["bootstrap"]["low"] <= one["evidence_recall"] <= one["bootstrap"]["high"]


def test_tables(run: Any, few: Path, tiny_claims: dict[str, Path]) -> None:
    printed = run(str(few), "--model", str(tiny_claims["joint"]))
    assert MADE_UP not in printed and "resamples of the claims" in printed
    assert sum(line.startswith("| joint") for line in printed.splitlines()) == len(SETTINGS)
    assert all(f"| {row} |" in printed for row in ROWS)


def test_wrong_input(few: Path, tiny_claims: dict[str, Path]) -> None:
    with pytest.raises(SystemExit, match="two models named 'a', expected NAME=MODEL with different names"):
        main([str(few), *("--model", f"a={tiny_claims['label']}") * 2])
    (few / "claims.jsonl").write_text('{"id": 1, "claim": "a"}\n')
    with pytest.raises(SystemExit, match="claim 1: no label, expected claims with 'label' and 'evidence'"):
        main([str(few)])
