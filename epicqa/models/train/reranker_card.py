"""The text of a trained reranker's model card."""

CARD = """\
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
