"""A trained claim model's card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from epicqa.claims.examples import Example, fingerprint
from epicqa.claims.network import LABEL_ORDER
from epicqa.models.train.outcome import card_values, curve_rows

if TYPE_CHECKING:
    from epicqa.claims.train.result import TrainedClaims
    from epicqa.claims.train.task import ClaimTask

_WHAT = {
    "rationale": "tells of a claim and a sentence how probable it is that the sentence is evidence",
    "label": "tells of a claim and sentences whether they support it, refute it, or say too little",
    "joint": "reads a claim and an abstract, and tells which sentences are evidence and whether they support "
    "or refute the claim",
}

_CARD = """\
---
{license}base_model: {base}
tags:
- fact-checking
- claim-verification
---
# {name}

A model that {what}. An encoder with a head for sentences and one for the label; it is used with
`epicqa claims predict` and `epicqa claims verify`.

## Recipe
{command}
| | |
|---|---|
| kind | {kind}, reads {reads} |
| base | {base}, fingerprint `{base_fingerprint}` |
| examples | {examples} |
| held out, by group | {held} |
| examples' fingerprint | `{fingerprint}` |
| steps | {steps:,} of {batch} examples, {seen:,} examples, {minutes:.0f} minutes on {machine} |
| loss | cross-entropy of labels + {sentence_weight:g} x that of sentences |
| AdamW | learning rate {learning_rate:g}, weight decay {decay:g}, gradients clipped at {clip:g} |
| schedule | linear warm-up over {warmup:g} of the steps, then linear decay to 0 |
| longest input | {max_length} tokens; longer abstracts are read in parts |
| thresholds | sentences {threshold:g}, evidence {evidence_threshold:g}{tuned} |
| seed | {seed} |
| `model.safetensors` | float16, SHA-256 `{weights}` |

The same command on the same machine and number of threads gives the same weights. A budget of time is turned
into a number of steps at the start; to repeat such a training, give that number instead: {planned:,}.

## Data and licences
{notes}

## Figures
{figures}

## Limits
- English, and the domain of the claims it was trained on.
- It tells what a text says of a claim, not whether the claim is true; texts contradict each other.
- It errs often, most of all in telling support from refutation. It is a tool for research and gives no
  medical advice.
"""


def card_of(task: ClaimTask, trained: TrainedClaims, weights: str, notes: Sequence[str], command: str) -> str:
    """The card of a training that ended.

    Args:
        task: what was trained, on what.
        trained: what it came to.
        weights: SHA-256 of the model's weights.
        notes: lines on the data and their licences.
        command: the command that makes the model; empty: none is shown.
    """
    recipe = task.recipe
    figures = ["No examples were held out."]
    if trained.curve:
        figures = [
            "On held-out examples, the mean of what this kind of model has of both: the macro F1 of labels,",
            f"and the average precision of sentences. The weights of step {trained.best_step:,} were kept:",
            "",
            *curve_rows(trained, "score"),
        ]
    return _CARD.format(
        **card_values(recipe, recipe.base, task.base, task.learner, trained, weights, notes, command),
        what=_WHAT[recipe.kind],
        kind=recipe.kind,
        reads=recipe.reads,
        examples=_counted(task.examples),
        held=_counted(task.held_out),
        fingerprint=fingerprint(task.examples),
        sentence_weight=recipe.sentence_weight,
        max_length=trained.settings.max_length,
        threshold=trained.settings.threshold,
        evidence_threshold=trained.settings.evidence_threshold,
        tuned=", chosen on the held-out examples" if trained.curve else "",
        figures="\n".join(figures),
    )


def _counted(examples: Sequence[Example]) -> str:
    labels = Counter(one.label for one in examples)
    parts = [f"{labels[label]:,} {label}" for label in LABEL_ORDER if labels[label]]
    if labels[None]:
        parts.append(f"{labels[None]:,} without a label")
    return f"{len(examples):,}" + (f" ({', '.join(parts)})" if parts else "")
