"""Training a tiny cross-encoder on made-up pairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epicqa.errors import EpicqaError
from epicqa.files import sha256_of
from epicqa.models.train.pairs import Pair
from epicqa.models.train.reranker import train_reranker
from epicqa.models.train.reranker_result import Trained

WORDS = ("virus", "mask", "steel", "bat", "fever", "cough", "lung", "water")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real encoder of random weights and of a vocabulary of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(1)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "answer", "nothing", "?", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    BertModel(BertConfig(**sizes, vocab_size=len(vocabulary))).save_pretrained(folder)
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def toy(count: int, start: int = 0) -> list[Pair]:
    """Pairs whose answer is the text that says so."""
    found = []
    for place in range(start, start + count):
        one, other, third = (WORDS[(place * step + step) % len(WORDS)] for step in (1, 3, 5))
        negatives = tuple(f"{word} nothing {third}" for word in (one, other, third, "virus"))
        found.append(Pair(f"{one} {other} ?", f"{one} answer {other}", negatives, f"g{place}"))
    return found


def train(base: Path, out: Path, **options: Any) -> Trained:
    settings = {
        "base": str(base),
        "held_out": toy(8, 100),
        "negatives_per_query": 3,
        "batch": 8,
        "learning_rate": 5e-3,
        "max_length": 16,
        "threads": 1,
        "max_steps": 12,
        "epochs": 4,
        "evaluations": 3,
        "checkpoint_every": 4,
    }
    return train_reranker(toy(40), out, **(settings | options))


def test_a_learnable_task_is_learnt_and_the_model_loads(base: Path, tmp_path: Path) -> None:
    from epicqa.models.resolve import load_cross_encoder

    notes = ["toys: no licence needed"]
    made = train(base, tmp_path / "m", max_steps=40, epochs=8, notes=notes, command="epicqa train reranker x")
    assert made.steps == made.planned == 40 and made.seen == 40 * 8 * 4
    assert [step for step, _ in made.curve] == [0, 14, 28, 40]
    assert made.curve[0][1] < 0.8 and dict(made.curve)[made.best_step] == 1.0
    model = load_cross_encoder(str(tmp_path / "m"))
    good, bad = model.predict([("bat mask ?", "bat answer mask"), ("bat mask ?", "bat nothing mask")])
    assert good > bad + 0.5
    assert model.max_seq_length == 16
    log = [json.loads(line) for line in (tmp_path / "m/training/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == list(range(1, 41))
    assert set(log[0]) == {"step", "loss", "learning_rate", "pairs_a_second", "seconds"}
    assert log[-1]["loss"] < log[0]["loss"] / 2
    rates = [line["learning_rate"] for line in log]
    assert rates.index(max(rates)) in (3, 4) and max(rates) == pytest.approx(5e-3) and rates[-1] < 2e-4
    curve = [json.loads(line) for line in (tmp_path / "m/training/curve.jsonl").read_text().splitlines()]
    assert [(line["step"], line["mrr"]) for line in curve] == list(made.curve)
    card = (tmp_path / "m/README.md").read_text()
    for text in (*notes, "epicqa train reranker x", sha256_of(tmp_path / "m/model.safetensors"), "| 40 |"):
        assert text in card, text
    left = {path.name for path in (tmp_path / "m/training").iterdir()}
    assert left - {".lock"} == {"key.json", "log.jsonl", "curve.jsonl", "result.json"}
    assert not list(tmp_path.rglob("*.tmp"))


def test_weights_are_half_precision(base: Path, tmp_path: Path) -> None:
    from safetensors import safe_open

    train(base, tmp_path / "m", max_steps=2)
    with safe_open(tmp_path / "m/model.safetensors", framework="numpy") as weights:
        assert {weights.get_slice(name).get_dtype() for name in weights.keys()} == {"F16"}  # noqa: SIM118


class Stopped(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("at", [1, 4, 7, 11])
def test_resumed_equals_uninterrupted(base: Path, tmp_path: Path, at: int) -> None:
    whole = train(base, tmp_path / "whole")

    def stop(step: str, done: int, total: int | None) -> None:
        if step == "training" and done == at:
            raise Stopped

    with pytest.raises(Stopped):
        train(base, tmp_path / "part", progress=stop)
    assert not (tmp_path / "part/config.json").exists()
    begun = []
    resumed = train(
        base,
        tmp_path / "part",
        progress=lambda step, done, _: begun.append(done) if step == "training" else 0,
    )
    assert begun[0] == at // 4 * 4 + 1 if at % 4 else at - 3
    assert replace(resumed, folder=whole.folder, seconds=0) == replace(whole, seconds=0)
    assert sha256_of(tmp_path / "part/model.safetensors") == sha256_of(tmp_path / "whole/model.safetensors")
    for name in ("log.jsonl", "curve.jsonl"):
        steps = [
            [
                json.loads(line)["step"]
                for line in (tmp_path / run / "training" / name).read_text().splitlines()
            ]
            for run in ("part", "whole")
        ]
        assert steps[0] == steps[1]


def test_a_call_after_the_end_changes_nothing(base: Path, tmp_path: Path) -> None:
    first = train(base, tmp_path / "m", max_steps=3)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert train(base, tmp_path / "m", max_steps=3) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_another_seed_gives_another_model(base: Path, tmp_path: Path) -> None:
    for seed in (1, 2):
        train(base, tmp_path / str(seed), max_steps=3, seed=seed)
    one, two = (sha256_of(tmp_path / name / "model.safetensors") for name in "12")
    assert one != two


@pytest.mark.parametrize("loss", ["listwise", "margin"])
@pytest.mark.parametrize("taught", [False, True])
def test_losses_with_and_without_a_teacher(
    base: Path, tmp_path: Path, loss: str, taught: bool, tiny_reranker: Path
) -> None:
    teacher = str(tiny_reranker) if taught else None
    made = train(base, tmp_path / "m", loss=loss, teacher=teacher, max_steps=20)
    log = [json.loads(line)["loss"] for line in (tmp_path / "m/training/log.jsonl").read_text().splitlines()]
    assert len(log) == made.steps == 20
    assert sum(log[-4:]) < sum(log[:4])


def test_losses_by_hand() -> None:
    import torch

    from epicqa.models.train.losses import loss_of

    scores = torch.tensor([[2.0, 1.0, 0.5], [0.0, 3.0, -torch.inf]])
    taught = torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, -torch.inf]])
    e = [2.718281828459045**x for x in (2.0, 1.0, 0.5, 3.0)]
    first, second = e[0] / (e[0] + e[1] + e[2]), 1 / (1 + e[3])
    expected = -(torch.log(torch.tensor([first, second]))).mean()
    assert loss_of("listwise", scores, None).item() == pytest.approx(expected.item(), abs=1e-6)
    assert loss_of("margin", scores, None).item() == pytest.approx((0 + 0 + 4) / 3)
    # Margins 1, 1.5, -3 against the teacher's 1, 1, 2.
    assert loss_of("margin", scores, taught).item() == pytest.approx((0 + 0.25 + 25) / 3)
    least = -(torch.softmax(taught, 1) * torch.log_softmax(taught, 1).nan_to_num(neginf=0)).sum(1).mean()
    assert loss_of("listwise", taught, taught).item() == pytest.approx(least.item(), abs=1e-6)
    assert loss_of("listwise", scores, taught) > least


def test_a_budget_plans_the_steps(base: Path, tmp_path: Path) -> None:
    made = train(base, tmp_path / "m", epochs=1000, max_steps=None, budget_seconds=2.0)
    assert 1 <= made.steps <= made.planned < 5000 and made.seconds < 4
    small = train(base, tmp_path / "small", budget_seconds=0.001)
    assert small.steps == small.planned == 1


def test_without_held_out_pairs_the_last_weights_are_kept(base: Path, tmp_path: Path) -> None:
    made = train(base, tmp_path / "m", held_out=(), max_steps=3)
    assert made.curve == () and made.best_step == 3
    assert "not known" in made.lines()[-1] and "held out" in (tmp_path / "m/README.md").read_text()


def test_the_summary_is_honest(tmp_path: Path) -> None:
    made = Trained(tmp_path, 10, 20, 640, 60.0, 5, ((0, 0.5), (5, 0.6), (10, 0.55)))
    told = " ".join(made.lines())
    assert "step 5 of 10" in told and "20 steps that were planned" in told and "worse: 0.550" in told
    assert "no better" in " ".join(replace(made, best_step=5, curve=((0, 0.5), (5, 0.5))).lines())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "best"}, "unknown loss 'best', expected one of listwise, margin"),
        ({"batch": 0}, "batch is 0, expected 1 or more"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"negatives_per_query": 0}, "negatives_per_query is 0"),
        ({"learning_rate": 0.0}, "learning rate 0"),
        ({"learning_rate": float("nan")}, "learning rate nan"),
        ({"warmup": 1.0}, "warm-up 1"),
        ({"budget_seconds": 0.0}, "budget of 0 seconds"),
        ({"base": "/nowhere"}, "unknown model '/nowhere'"),
        ({"base": "static"}, "cannot be trained"),
        ({"seed": -1}, "seed is -1"),
        ({"held_out": [Pair("q", "a")]}, "the pair of 'q' has no negatives"),
    ],
)
def test_errors_are_one_line(base: Path, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(EpicqaError) as error:
        train(options.pop("base", base), tmp_path / "m", **options)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "m").exists()


def test_folders_of_others_are_left_alone(base: Path, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/mine.txt").write_text("mine")
    with pytest.raises(EpicqaError, match="not empty"):
        train(base, tmp_path / "m")
    train(base, tmp_path / "n", max_steps=1)
    with pytest.raises(EpicqaError, match="other pairs, models or settings"):
        train(base, tmp_path / "n", max_steps=2)


def test_a_damaged_checkpoint_is_one_line(base: Path, tmp_path: Path) -> None:
    def stop(step: str, done: int, total: int | None) -> None:
        if step == "training" and done == 5:
            raise Stopped

    with pytest.raises(Stopped):
        train(base, tmp_path / "m", progress=stop)
    (tmp_path / "m/training/checkpoint.safetensors").write_bytes(b"damage")
    with pytest.raises(EpicqaError, match=r"^[^\n]*checkpoint\.safetensors: damaged[^\n]*$"):
        train(base, tmp_path / "m")


def test_a_loss_that_is_no_number_is_one_line(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import epicqa.models.train.reranker_task as module

    monkeypatch.setattr(module, "loss_of", lambda kind, scores, taught: scores.sum() * float("nan"))
    with pytest.raises(EpicqaError, match="expected a lower learning rate"):
        train(base, tmp_path / "m")
