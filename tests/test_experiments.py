"""Experiments: read strictly, repeated for real on the sample, and told when they moved."""

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from epicqa import sample
from epicqa.cli.eval import eval_command
from epicqa.errors import EpicqaError
from epicqa.experiments import perform, read_experiment

ROOT = Path(__file__).resolve().parents[1]


def text(expected=0.5, tolerance=2.0, sha=None, extra=""):
    documents = sample.documents_path()
    sha = sha or hashlib.sha256(documents.read_bytes()).hexdigest()
    return f"""
description = "the sample by BM25"
commands = [
    "epicqa index --name try --dense none",
    "epicqa run --index try --questions expert --tag tried --reranker none --bi-encoder none",
]
run = "runs/tried.tsv"
tolerance = {tolerance}
{extra}
[inputs]
"{documents}" = "{sha}"

[expected]
exact = {expected}
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_sample_is_the_same_then_moved_then_another_input(cache):
    path = cache / "one.toml"
    path.write_text(text())
    found = perform(read_experiment(path))
    assert found.status == "same"
    exact = found.measured["exact"]
    assert 0.3 < exact < 1

    path.write_text(text(expected=exact + 0.1, tolerance=0.01))
    result = CliRunner().invoke(eval_command, [str(path)])
    assert result.exit_code == 1
    assert result.output.startswith("one.toml: moved (exact -0.1000)")

    path.write_text(text(sha="0" * 64))
    result = CliRunner().invoke(eval_command, [str(path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.output)[0]["status"] == "inputs differ"


def test_one_without_its_inputs_is_left_out(cache):
    path = cache / "one.toml"
    path.write_text(text().replace(str(sample.documents_path()), str(cache / "not-here.jsonl")))
    result = CliRunner().invoke(eval_command, [str(path)])
    assert result.exit_code == 0
    assert "left out (no " in result.output


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("run =", "runn ="), "unknown key 'runn'"),
        (('run = "runs/tried.tsv"', ""), "no 'run'"),
        (("tolerance = 2.0", 'tolerance = "2"'), "tolerance = '2'"),
        (('"epicqa index', '"rm -r index'), "expected one that begins with epicqa"),
        (("exact = 0.5", 'exact = "high"'), "expected exact"),
        (("[inputs]", "[inputs"), "not TOML"),
    ],
)
def test_a_bad_file_is_one_line(cache, change, complaint):
    path = cache / "one.toml"
    path.write_text(text().replace(*change))
    with pytest.raises(EpicqaError, match=r"one\.toml") as raised:
        read_experiment(path)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_command_that_fails_is_named(cache):
    path = cache / "one.toml"
    path.write_text(text().replace("--questions expert", "--questions nowhere.json"))
    with pytest.raises(EpicqaError, match="failed: epicqa run"):
        perform(read_experiment(path))


@pytest.mark.parametrize("path", sorted((ROOT / "eval").glob("*.toml")), ids=lambda path: path.name)
def test_the_shipped_experiments_can_be_read(path):
    experiment = read_experiment(path)
    for name, fingerprint in experiment.inputs.items():
        if name.startswith("epicqa/"):
            assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == fingerprint
