"""A trained reranker's model card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from epicqa.models.train.outcome import card_values, curve_rows
from epicqa.models.train.pairs import fingerprint

if TYPE_CHECKING:
    from epicqa.models.train.reranker_result import Trained
    from epicqa.models.train.reranker_task import RerankerTask

_CARD = """\
---
{license}base_model: {base}
library_name: sentence-transformers
pipeline_tag: text-ranking
tags:
- cross-encoder
- reranker
---
# {name}

A cross-encoder that reranks single sentences for questions: both in, one number out, a logit.
It loads as `CrossEncoder(FOLDER)`, or with `epicqa run --reranker FOLDER`.

## Recipe
{command}
| | |
|---|---|
| base | {base}, fingerprint `{base_fingerprint}` |
| teacher | {teacher} |
| loss | {loss} |
| pairs | {pairs:,} to train on, {held:,} held out by group, {negatives} hard negatives a query and step |
| pairs' fingerprint | `{pairs_fingerprint}` |
| steps | {steps:,} of {batch} queries, {seen:,} question-passage pairs, {minutes:.0f} minutes on {machine} |
| AdamW | learning rate {learning_rate:g}, weight decay {decay:g}, gradients clipped at {clip:g} |
| schedule | linear warm-up over {warmup:g} of the steps, then linear decay to 0 |
| longest input | {max_length} tokens |
| seed | {seed} |
| `model.safetensors` | float16, SHA-256 `{weights}` |

The same command on the same machine and number of threads gives the same weights. A budget of time is turned
into a number of steps at the start; to repeat such a training, give that number instead: {planned:,}.

## Data and licences
{notes}

## Figures
{figures}

## Limits
- English, and the domain of the pairs; a logit compares passages of one question, it is no probability.
- Trained against negatives that a search found and nobody read: some of them are answers.
- It says whether a passage is on the question, not whether what the passage says is true.
"""


def card_of(task: RerankerTask, trained: Trained, weights: str, notes: Sequence[str], command: str) -> str:
    """The card of a training that ended.

    Args:
        task: what was trained, on what.
        trained: what it came to.
        weights: SHA-256 of the model's weights.
        notes: lines on the data and their licences.
        command: the command that makes the model; empty: none is shown.
    """
    recipe = task.recipe
    figures = ["No pairs were held out."]
    if trained.curve:
        negatives = np.mean([len(pair.negatives) for pair in task.held_out])
        figures = [
            f"MRR of {len(task.held_out):,} held-out positives, each among {negatives:.0f} hard negatives in "
            f"the mean; the weights of step {trained.best_step:,} were kept:",
            "",
            *curve_rows(trained, "MRR"),
        ]
    return _CARD.format(
        **card_values(recipe, recipe.base, task.base, task.learner, trained, weights, notes, command),
        teacher=recipe.teacher or "none",
        loss=recipe.loss,
        pairs=len(task.pairs),
        held=len(task.held_out),
        negatives=recipe.negatives,
        pairs_fingerprint=fingerprint(task.pairs),
        max_length=recipe.max_length,
        figures="\n".join(figures),
    )
