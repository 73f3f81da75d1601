"""Training small claim models on a made-up task: what a text says is its one sentence of yes or no."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epicqa.claims.encoding import ClaimInput
from epicqa.claims.examples import Example, fingerprint
from epicqa.claims.model import load_claim_model
from epicqa.claims.network import LABEL_ORDER, Settings
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.train.result import TrainedClaims
from epicqa.claims.train.trainer import train as train_claims
from epicqa.errors import EpicqaError
from epicqa.files import sha256_of

WORDS = ("virus", "mask", "steel", "bat", "fever", "cough", "lung", "water")
SAYS = {SUPPORTS: "yes", REFUTES: "no", NOINFO: "nothing"}


def toy(count: int, start: int = 0) -> list[Example]:
    """Claims with three sentences, one of which tells the label: ``yes``, ``no``, or none."""
    found = []
    for place in range(start, start + count):
        one, other, third = (WORDS[(place * step + step) % len(WORDS)] for step in (1, 3, 5))
        label = LABEL_ORDER[place % 3]
        at = place // 3 % 3
        sentences = tuple(f"{one} {SAYS[label] if here == at else 'nothing'} {third} ." for here in range(3))
        flags = tuple(here == at and label != NOINFO for here in range(3))
        found.append(Example(f"{one} {other}", sentences, label, flags, f"g{place}"))
    return found


def train(base: Path, out: Path, **options: Any) -> TrainedClaims:
    settings: dict[str, Any] = {
        "kind": "joint",
        "examples": toy(48),
        "base": str(base),
        "held_out": toy(12, 100),
        "batch": 8,
        "learning_rate": 1e-2,
        "max_length": 48,
        "threads": 1,
        "max_steps": 12,
        "epochs": 2,
        "evaluations": 3,
        "checkpoint_every": 4,
    } | options
    return train_claims(settings.pop("kind"), settings.pop("examples"), out, **settings)


def log_of(folder: Path, name: str = "log.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "training" / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def joint(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainedClaims, Path]:
    """A joint model that has learnt the task."""
    folder = tmp_path_factory.mktemp("joint") / "m"
    notes = ["toys: no licence needed", "more toys:\n CC0"]
    made = train(bert, folder, max_steps=90, epochs=15, notes=notes, command="epicqa claims train `joint` x")
    return made, folder


def test_a_learnable_task_is_learnt_and_the_model_loads(joint: tuple[TrainedClaims, Path]) -> None:
    made, folder = joint
    assert made.steps == made.planned == 90 and made.seen == 90 * 8
    assert [step for step, _ in made.curve] == [0, 30, 60, 90]
    assert made.curve[0][1] < 0.7 and dict(made.curve)[made.best_step] > 0.95
    model = load_claim_model(str(folder))
    assert model.settings == made.settings and made.settings.max_length == 48
    for label, word in SAYS.items():
        sentences = ("bat nothing mask .", f"bat {word} mask .")
        (read,) = model.read([ClaimInput("bat water", sentences)])
        assert read.labels is not None and LABEL_ORDER[int(read.labels.argmax())] == label
        assert read.sentences is not None
        told = (read.sentences > model.settings.threshold).tolist()
        assert told == [False, label != NOINFO]
    log = log_of(folder)
    assert [line["step"] for line in log] == list(range(1, 91))
    assert set(log[0]) == {"step", "loss", "learning_rate", "examples_a_second", "seconds"}
    assert log[-1]["loss"] < log[0]["loss"] / 4
    assert [(line["step"], line["score"]) for line in log_of(folder, "curve.jsonl")] == list(made.curve)
    left = {path.name for path in (folder / "training").iterdir()}
    assert left - {".lock"} == {"key.json", "log.jsonl", "curve.jsonl", "result.json"}
    assert not list(folder.rglob("*.tmp"))


def test_the_card_names_data_licences_and_figures(joint: tuple[TrainedClaims, Path], bert: Path) -> None:
    made, folder = joint
    card = (folder / "README.md").read_text()
    for text in (
        "- toys: no licence needed\n- more toys: CC0\n",
        "```\nepicqa claims train 'joint' x\n```",
        sha256_of(folder / "model.safetensors"),
        fingerprint(toy(48)),
        "| examples | 48 (16 SUPPORTS, 16 NOINFO, 16 REFUTES) |",
        "| held out, by group | 12 (4 SUPPORTS, 4 NOINFO, 4 REFUTES) |",
        f"| thresholds | sentences {made.settings.threshold:g}, evidence ",
        f"evidence {made.settings.evidence_threshold:g}, chosen on the held-out examples |",
        f"| 90 | {made.curve[-1][1]:.4f} |",
        "gives no\n  medical advice",
    ):
        assert text in card, text
    assert "license:" not in card and "{" not in card


def test_what_the_summary_says(joint: tuple[TrainedClaims, Path], tmp_path: Path) -> None:
    made, folder = joint
    told = made.lines()
    assert told[0].startswith(f"{folder}: step {made.best_step} of 90, 720 examples in ")
    assert f"thresholds chosen on them: {made.settings.threshold:g} of sentences, " in told[-1]
    settings = Settings("label", evidence_threshold=0.4)
    short = TrainedClaims(tmp_path, 10, 20, 640, 60.0, 5, ((0, 0.5), (5, 0.6), (10, 0.55)), settings)
    text = " ".join(short.lines())
    assert "step 5 of 10" in text and "20 steps that were planned" in text and "worse: 0.550" in text
    assert text.endswith("chosen on them: 0.4 of evidence")
    assert "no better" in " ".join(replace(short, best_step=5, curve=((0, 0.5), (5, 0.5))).lines())
    rationale = replace(short, settings=Settings("rationale", threshold=0.3))
    assert rationale.lines()[-1].endswith("chosen on them: 0.3 of sentences")


def test_a_rationale_model(bert: Path, tmp_path: Path) -> None:
    """Of single sentences without a label, those of yes and no."""
    examples = [
        Example(one.claim, (text,), None, (flag,), one.group)
        for one in toy(24)
        for text, flag in zip(one.sentences, one.rationale or (), strict=True)
    ]
    made = train(
        bert,
        tmp_path / "m",
        kind="rationale",
        examples=examples[:60],
        held_out=examples[60:],
        max_steps=30,
        epochs=9,
    )
    assert made.curve[-1][1] > 0.95 and made.settings.kind == "rationale"
    (read,) = load_claim_model(str(tmp_path / "m")).read([ClaimInput("bat", ("mask nothing .", "mask no ."))])
    assert read.labels is None and read.sentences is not None
    assert (read.sentences > made.settings.threshold).tolist() == [False, True]
    assert "60 (60 without a label)" in (tmp_path / "m/README.md").read_text()


@pytest.mark.parametrize("reads", ["both", "claim", "sentences"])
def test_a_label_model_and_what_it_reads(bert: Path, tmp_path: Path, reads: str) -> None:
    """The labels follow from sentences; from these claims nobody can tell them."""
    examples = [replace(one, claim="virus mask", rationale=None) for one in toy(60)]
    made = train(
        bert,
        tmp_path / "m",
        kind="label",
        reads=reads,
        examples=examples[:48],
        held_out=examples[48:],
        max_steps=60,
        epochs=10,
        evaluations=1,
    )
    assert (made.settings.kind, made.settings.reads) == ("label", reads)
    assert (max(value for _, value in made.curve) > 0.9) == (reads != "claim")
    inputs = [ClaimInput("virus mask", ("steel yes .",)), ClaimInput("bat", ("steel yes .",))]
    one, other = load_claim_model(str(tmp_path / "m")).read(inputs)
    assert one.sentences is None and one.labels is not None and other.labels is not None
    assert (one.labels.tolist() == other.labels.tolist()) == (reads == "sentences")


def test_a_second_stage_goes_on_from_the_firsts_heads(
    joint: tuple[TrainedClaims, Path], bert: Path, tmp_path: Path
) -> None:
    first, folder = joint
    made = train(folder, tmp_path / "second", max_steps=1, learning_rate=1e-6)
    # Before its first step it is as good as the first stage was at its best.
    assert made.curve[0][1] == pytest.approx(dict(first.curve)[first.best_step], abs=0.02)
    fresh = train(bert, tmp_path / "fresh", max_steps=1, learning_rate=1e-6)
    assert fresh.curve[0][1] < made.curve[0][1] - 0.2
    # A label model keeps what both have.
    label = train(folder, tmp_path / "label", kind="label", max_steps=1, learning_rate=1e-6)
    assert label.curve[0][1] > 0.9 and load_claim_model(str(tmp_path / "label")).settings.kind == "label"


class Stopped(Exception):
    """Stands for a kill."""


def stop_at(at: int) -> Any:
    def stop(step: str, done: int, total: int | None) -> None:
        if step == "training" and done == at:
            raise Stopped

    return stop


@pytest.mark.parametrize(("kind", "at"), [("joint", 4), ("joint", 11), ("rationale", 6), ("label", 7)])
def test_resumed_equals_uninterrupted(bert: Path, tmp_path: Path, kind: str, at: int) -> None:
    # Some batches have nothing that teaches a part of the network.
    examples = [replace(one, rationale=None) if place % 5 else one for place, one in enumerate(toy(24))]
    if kind == "joint":
        examples = [replace(one, label=None) if place % 3 else one for place, one in enumerate(examples)]
    settings = {"kind": kind, "examples": examples, "batch": 2}
    whole = train(bert, tmp_path / "whole", **settings)
    with pytest.raises(Stopped):
        train(bert, tmp_path / "part", progress=stop_at(at), **settings)
    assert not (tmp_path / "part/config.json").exists()
    begun: list[int] = []
    resumed = train(
        bert,
        tmp_path / "part",
        progress=lambda step, done, _: begun.append(done) if step == "training" else None,
        **settings,
    )
    # From the last checkpoint on; there is one before the first step.
    assert begun[0] == (at - 1) // 4 * 4 + 1
    assert replace(resumed, folder=whole.folder, seconds=0) == replace(whole, seconds=0)
    for name in ("model.safetensors", "config.json"):
        assert sha256_of(tmp_path / "part" / name) == sha256_of(tmp_path / "whole" / name), name
    for name in ("log.jsonl", "curve.jsonl"):
        one, other = ([line["step"] for line in log_of(tmp_path / run, name)] for run in ("part", "whole"))
        assert one == other


def test_the_seed_decides_the_bytes(bert: Path, tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        train(bert, tmp_path / name, max_steps=2, held_out=(), seed=seed)
    one, again, other = (
        sha256_of(tmp_path / name / "model.safetensors") for name in ("one", "again", "other")
    )
    assert one == again != other


def test_a_call_after_the_end_changes_nothing(bert: Path, tmp_path: Path) -> None:
    first = train(bert, tmp_path / "m", max_steps=3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train(bert, tmp_path / "m", max_steps=3) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with pytest.raises(EpicqaError, match="expected an empty folder, or the same command again"):
        train(bert, tmp_path / "m", max_steps=4)
    (tmp_path / "m/training/result.json").write_text('{"settings": 1}')
    with pytest.raises(EpicqaError, match=r"^[^\n]*result\.json: damaged, expected what the training wrote$"):
        train(bert, tmp_path / "m", max_steps=3)


def test_without_held_out_examples_the_last_weights_are_kept(bert: Path, tmp_path: Path) -> None:
    made = train(bert, tmp_path / "m", held_out=(), max_steps=3)
    assert made.curve == () and made.best_step == 3
    assert (made.settings.threshold, made.settings.evidence_threshold) == (0.5, 0.5)
    assert "not known" in made.lines()[-1] and "thresholds are 0.5" in made.lines()[-1]
    card = (tmp_path / "m/README.md").read_text()
    assert "No examples were held out." in card and "The caller named none." in card
    assert "chosen on the held-out" not in card


def test_a_budget_plans_the_steps(bert: Path, tmp_path: Path) -> None:
    made = train(bert, tmp_path / "m", epochs=1500, max_steps=None, budget_seconds=0.5)
    assert 1 <= made.steps <= made.planned < 6000 and made.seconds < 3
    small = train(bert, tmp_path / "small", budget_seconds=0.001)
    assert small.steps == small.planned == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "all"}, "unknown kind 'all', expected one of rationale, label, joint"),
        ({"kind": "label", "reads": "none"}, "unknown reads 'none', expected one of both, claim, sentences"),
        ({"reads": "claim"}, "reads claim: for the kind label only, expected both for joint"),
        ({"max_length": 15}, "max_length is 15, expected 16 or more"),
        ({"checkpoint_every": 0}, "checkpoint_every is 0"),
        ({"batch": 0}, "batch is 0, expected 1 or more"),
        ({"learning_rate": 0.0}, "learning rate 0"),
        ({"sentence_weight": -1.0}, "sentence weight -1, expected 0 or more"),
        ({"sentence_weight": float("nan")}, "sentence weight nan"),
        ({"examples": []}, "no examples that a joint model learns from, expected one or more"),
        (
            {"kind": "label", "examples": [Example("c", ("s",), None, (True,), "g")]},
            "no examples that a label model learns from",
        ),
        (
            {"kind": "rationale", "examples": [Example("c", (), NOINFO, (), "g")]},
            "no examples that a rationale model learns from",
        ),
        ({"examples": [Example("bat " * 99, ("s",), NOINFO, (False,), "g")]}, "claim of 99 tokens"),
        ({"held_out": [Example("bat " * 99, ("s",), NOINFO, (False,), "g")]}, "claim of 99 tokens"),
        ({"base": "/nowhere"}, "unknown model '/nowhere'"),
        ({"base": "static"}, "expected an encoder"),
    ],
)
def test_errors_are_one_line(bert: Path, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(EpicqaError) as error:
        train(options.pop("base", bert), tmp_path / "m", **options)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("held_out", [[], toy(3)])
def test_weights_that_are_no_numbers_are_one_line(
    bert: Path, tmp_path: Path, held_out: list[Example]
) -> None:
    from safetensors.torch import load_file, save_file

    base = Path(shutil.copytree(bert, tmp_path / "base"))
    weights = load_file(base / "model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    weights[name][:] = float("nan")
    save_file(weights, base / "model.safetensors", {"format": "pt"})
    said = "validation: probabilities are no numbers" if held_out else "step 1: the loss is nan"
    with pytest.raises(EpicqaError, match=f"^{said}, expected a lower learning rate$"):
        train(base, tmp_path / "m", held_out=held_out)
