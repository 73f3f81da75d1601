"""The loss of a claim model by hand, what a window should say, and the score of readings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from epicqa.claims.encoding import Window, windows_of
from epicqa.claims.examples import Example
from epicqa.claims.model import Reading
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.train.recipe import Recipe
from epicqa.claims.train.task import ClaimTask, score, shown, wanted
from epicqa.errors import EpicqaError

EXAMPLES = [
    Example("virus mask", ("bat yes .", "mask", "lung water"), SUPPORTS, (False, True, False), "a"),
    Example("bat", ("no . yes",), REFUTES, None, "b"),
    Example("steel", ("water", "fever"), NOINFO, (False, False), "c"),
    Example("cough", (), NOINFO, (), "d"),
    Example("lung", ("lung yes",), None, (True,), "e"),
]


def recipe(**settings: Any) -> Recipe:
    whole = Recipe(
        epochs=1,
        max_steps=None,
        budget_seconds=None,
        batch=8,
        learning_rate=1e-3,
        warmup=0.1,
        seed=1,
        evaluations=1,
        kind="joint",
        reads="both",
        base="bert",
        max_length=64,
        sentence_weight=0.5,
    )
    return replace(whole, **settings)


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epicqa.models.train.learner.best_precision", lambda device: "float32")


@pytest.mark.parametrize("kind", ["rationale", "label", "joint"])
def test_the_loss_by_hand(bert: Path, kind: str) -> None:
    task = ClaimTask(recipe(kind=kind), bert, EXAMPLES, ())
    task.network.eval()
    of_labels, of_sentences = [], []
    for one in EXAMPLES:
        windows = windows_of(task.tokenizer, [shown(one, "both")], 64)
        with torch.inference_mode():
            logits, labels = task.network(windows, task.tokenizer.pad_token_id)
        if one.label is not None:
            of_labels.append(-torch.log_softmax(labels[0], 0)[LABEL_ORDER.index(one.label)].item())
        for place, flag in enumerate(one.rationale or ()):
            probability = torch.sigmoid(logits[0, place]).item()
            of_sentences.append(-np.log(probability if flag else 1 - probability))
    expected = 0.0
    if kind != "rationale":
        expected += float(np.mean(of_labels))
    if kind != "label":
        # A label model's loss has no part of it, whatever the weight.
        expected += 0.5 * float(np.mean(of_sentences))
    with torch.inference_mode():
        assert task._loss(EXAMPLES).item() == pytest.approx(expected, abs=1e-5)


def test_a_batch_that_teaches_nothing_changes_nothing(bert: Path) -> None:
    task = ClaimTask(recipe(kind="rationale", batch=1, max_steps=1), bert, EXAMPLES[1:2], ())
    before = {name: tensor.clone() for name, tensor in task.learner.weights().items()}
    assert task.learn(0, 1e-2) == (0.0, 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in task.learner.weights().items())


def window(*sentences: int) -> Window:
    return Window(0, (), 0, range(sentences[0], sentences[-1] + 1) if sentences else range(0), ())


@pytest.mark.parametrize(
    ("label", "rationale", "here", "label_wanted", "flags"),
    [
        (SUPPORTS, (False, True, False), (0, 1, 2), SUPPORTS, (False, True, False)),
        (SUPPORTS, (False, True, False), (1,), SUPPORTS, (True,)),
        # A part of an abstract without evidence in it does not support the claim, nor say that nothing does.
        (SUPPORTS, (False, True, False), (2,), None, (False,)),
        (NOINFO, (False, False), (1,), NOINFO, (False,)),
        (REFUTES, None, (0, 1), REFUTES, ()),
        (NOINFO, (), (), NOINFO, ()),
        (None, (True,), (0,), None, (True,)),
    ],
)
def test_what_a_window_should_say(
    label: str | None,
    rationale: tuple[bool, ...] | None,
    here: tuple[int, ...],
    label_wanted: str | None,
    flags: tuple[bool, ...],
) -> None:
    example = Example("claim", ("a", "b", "c")[: len(rationale or here)], label, rationale, "g")
    assert wanted(example, window(*here), "joint") == (label_wanted, flags)
    assert wanted(example, window(*here), "label") == (label_wanted, ())
    assert wanted(example, window(*here), "rationale") == (None, flags)


def test_what_is_shown() -> None:
    one = EXAMPLES[0]
    assert (shown(one, "both").claim, shown(one, "both").sentences) == (one.claim, one.sentences)
    assert (shown(one, "claim").claim, shown(one, "claim").sentences) == (one.claim, ())
    assert (shown(one, "sentences").claim, shown(one, "sentences").sentences) == ("", one.sentences)


def reading(label: str | None, *sentences: float) -> Reading:
    labels = None if label is None else np.array([0.1 + 0.7 * (one == label) for one in LABEL_ORDER])
    return Reading(np.array(sentences) if sentences else None, labels)


def test_score_by_hand() -> None:
    examples = [EXAMPLES[0], EXAMPLES[1], EXAMPLES[2], EXAMPLES[4]]
    labels = [SUPPORTS, SUPPORTS, NOINFO, REFUTES]
    readings = [reading(label) for label in labels]
    # SUPPORTS: precision 1/2, recall 1; NOINFO 1; REFUTES 0. What has no label does not count.
    assert score(examples, readings) == pytest.approx((2 / 3 + 1 + 0) / 3, abs=1e-5)
    sentences = [(0.9, 0.8, 0.1), (0.95,), (0.2, 0.3), (0.7,)]
    # By falling probability: wrong, right, right: precision 1/2, then 2/3.
    assert score(examples, [reading(None, *one) for one in sentences]) == pytest.approx(
        (1 / 2 + 2 / 3) / 2, abs=1e-5
    )
    both = [reading(label, *one) for label, one in zip(labels, sentences, strict=True)]
    assert score(examples, both) == pytest.approx(((2 / 3 + 1) / 3 + (1 / 2 + 2 / 3) / 2) / 2, abs=1e-5)
    # Without a sentence to find, the labels decide; without any of them, nothing does.
    assert score(EXAMPLES[2:3], [reading(NOINFO, 0.2, 0.3)]) == pytest.approx(1 / 3, abs=1e-5)
    assert score([], []) == 0.0


def test_windows_are_no_longer_than_the_base_reads(bert: Path, roberta: Path) -> None:
    assert ClaimTask(recipe(max_length=600), bert, EXAMPLES, ()).settings.max_length == 512
    task = ClaimTask(recipe(max_length=600), roberta, [EXAMPLES[0]], [EXAMPLES[1]])
    assert task.settings.max_length == 62
    assert np.isfinite(task.learn(0, 1e-3)[0])
    assert task.judge(None) is not None


@pytest.mark.parametrize("held_out", [False, True])
def test_claims_that_are_too_long_are_found_before_the_first_step(bert: Path, held_out: bool) -> None:
    long = [Example("mask " * 40, ("bat",), SUPPORTS, (True,), "g")]
    examples, others = (EXAMPLES, long) if held_out else ([*EXAMPLES, *long], [])
    with pytest.raises(EpicqaError, match=r"^claim of 40 tokens [^\n]*expected at most 30$"):
        ClaimTask(recipe(), bert, examples, others)
    ClaimTask(recipe(kind="label", reads="sentences"), bert, examples, others)
