"""``epicqa claims train`` as a user runs it, and predictions of what came out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

THINGS = ("steel", "copper", "masks", "cats", "fever", "cough", "lungs", "water")


def write(name: str, *lines: object) -> None:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SciFact-shaped files and pairs in the current folder: eight claims, each of its own abstract."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    claims, abstracts = [], []
    for place, thing in enumerate(THINGS):
        says = ("yes", "no", "perhaps")[place % 3]
        abstracts.append({"doc_id": place, "title": thing, "abstract": [f"Of {thing}.", f"It is {says}."]})
        label = ("SUPPORT", "CONTRADICT")[place % 3 == 1]
        evidence = {str(place): [{"sentences": [1], "label": label}]} if place % 3 < 2 else {}
        claims.append(
            {"id": place, "claim": f"So is {thing}.", "cited_doc_ids": [place], "evidence": evidence}
        )
    write("corpus.jsonl", *abstracts)
    write("claims.jsonl", *claims)
    write(
        "pairs.jsonl",
        *(
            {"claim": f"{thing} it is", "evidence": f"{thing} is {says}", "label": label, "page": thing}
            for thing in THINGS
            for says, label in (("yes", "SUPPORTS"), ("no", "REFUTES"), ("perhaps", "NOT ENOUGH INFO"))
        ),
    )


SCIFACT = ("--claims", "claims.jsonl", "--corpus", "corpus.jsonl")
SMALL = ("--max-steps", 3, "--batch-size", 4, "--max-length", 64, "--threads", 1)


def test_two_stages_and_predictions(
    epicqa: Callable[..., Any], files: None, tiny_claims: dict[str, Path]
) -> None:
    write("sources.json", {"pairs.jsonl": {"source": "Toys", "licence": "CC0"}})
    begin = ("claims", "train", "joint", "--pairs", "pairs.jsonl", "--out", "first", *SMALL)
    command = (*begin, "--base", tiny_claims["joint"], "--sources", "sources.json", "--held-out", 0.3)
    ended = epicqa(*command)
    assert (ended.status, ended.err) == (0, ""), ended
    assert ended.out.startswith("first: step ") and "score on held-out claims" in ended.out
    card = Path("first/README.md").read_text()
    assert "- Toys: CC0 (SHA-256 `" in card
    assert "epicqa claims train joint --pairs pairs.jsonl --out first --max-steps 3" in card
    assert epicqa(*command).out == ended.out

    second = epicqa("claims", "train", "joint", *SCIFACT, "--base", "first", "--out", "second", *SMALL)
    assert second.status == 0 and second.out.startswith("second: step "), second
    assert "abstracts" not in second.err and "base_model: first" in Path("second/README.md").read_text()

    given = ("--threshold", 0, "--evidence-threshold", 0)
    out = ("--abstracts", "oracle", "-o", "found.jsonl")
    predicted = epicqa("claims", "predict", *SCIFACT, "--model", "second", *given, *out)
    assert predicted.status == 0, predicted
    scored = epicqa("score", "found.jsonl", "--task", "scifact", *SCIFACT)
    assert scored.status == 0, scored


def test_a_pipeline_of_two_models(
    epicqa: Callable[..., Any], files: None, tiny_claims: dict[str, Path]
) -> None:
    for kind in ("rationale", "label"):
        command = ("claims", "train", kind, *SCIFACT, "--base", tiny_claims[kind], "--out", kind, *SMALL)
        ended = epicqa(*command, "--held-out", 0, "--budget", "1m")
        assert ended.status == 0 and "no examples were held out" in ended.out, ended
    models = ("--rationale-model", "rationale", "--label-model", "label")
    ended = epicqa("claims", "predict", *SCIFACT, *models, "--abstracts", "tfidf", "-o", "found.jsonl")
    assert ended.status == 0, ended
    assert len(Path("found.jsonl").read_text().splitlines()) == len(THINGS)
    wrong = epicqa("claims", "predict", *SCIFACT, "--model", "label", "-o", "wrong.jsonl")
    assert "a label model, expected one that selects rationales" in wrong.line()


def test_what_a_label_model_reads(
    epicqa: Callable[..., Any], files: None, tiny_claims: dict[str, Path]
) -> None:
    command = ("claims", "train", "label", *SCIFACT, "--base", tiny_claims["label"], *SMALL)
    assert epicqa(*command, "--out", "m", "--reads", "claim").status == 0
    assert json.loads(Path("m/config.json").read_bytes())["epicqa_claims"]["reads"] == "claim"
    assert "| label, reads claim |" in Path("m/README.md").read_text()


def test_errors_are_one_line(epicqa: Callable[..., Any], files: None, tiny_claims: dict[str, Path]) -> None:
    write("bad.jsonl", {"claim": "c", "evidence": "e", "label": "MAYBE"})
    write("unjudged.jsonl", {"id": 1, "claim": "Unknown."})
    write("long.jsonl", {"claim": "steel " * 600, "evidence": "e", "label": "SUPPORTS"})
    command = ("claims", "train", "joint", "--base", tiny_claims["joint"], "--out", "m")
    for arguments, said in (
        ((), "nothing to train on, expected --claims with --corpus, or --pairs"),
        (SCIFACT[:2], "1 --claims and 0 --corpus, expected one --corpus for each --claims"),
        (("--pairs", "none.jsonl"), "none.jsonl: "),
        (("--pairs", "bad.jsonl"), "bad.jsonl:1: 'label' is 'MAYBE', expected SUPPORTS, REFUTES or"),
        (("--claims", "unjudged.jsonl", *SCIFACT[2:]), "claim 1: its evidence is not known"),
        ((*SCIFACT, "--sources", "none.json"), "none.json: "),
        ((*SCIFACT, "--held-out", 2), "share held out 2"),
        ((*SCIFACT, "--batch-size", 0), "batch is 0"),
        ((*SCIFACT, "--reads", "claim"), "reads claim: for the kind label only"),
        ((*SCIFACT, "--base", "/none"), "unknown model '/none'"),
        ((*SCIFACT, "--base", "static"), "expected an encoder"),
        (("--pairs", "long.jsonl", "--held-out", 0), "claim of 600 tokens ('steel steel "),
    ):
        assert said in epicqa(*command, *arguments).line(), said
    assert not Path("m").exists()
    Path("m").mkdir()
    Path("m/mine.txt").write_text("mine")
    assert "not empty" in epicqa(*command, *SCIFACT).line()


def test_help_is_quick(epicqa: Callable[..., Any]) -> None:
    ended = epicqa("claims", "train", "--help")
    assert ended.status == 0 and "rationale|label|joint" in ended.out
    assert "train" in epicqa("claims", "--help").out


def test_negatives_are_for_joint_models(epicqa: Callable[..., Any], files: None) -> None:
    for command in (("label", *SCIFACT), ("joint", "--pairs", "pairs.jsonl")):
        ended = epicqa("claims", "train", *command, "--out", "m", "--negatives", 2)
        assert ended.line() == ("--negatives is for joint models of --claims, expected none without them"), (
            ended
        )
    assert not Path("m").exists()
