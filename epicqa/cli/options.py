"""Options that several verbs share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from epicqa.cli.duration import Duration

_ANSWERING = (
    click.option("--index", metavar="NAME", help="Index to search.  [default: default, or sample]"),
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file of settings, or the manifest of a run to repeat; flags win over it.",
    ),
    click.option(
        "--retriever",
        type=click.Choice(["bm25", "dense", "hybrid"]),
        help="How sentences are found.  [default: hybrid; bm25 without vectors]",
    ),
    click.option("--k1", type=float, help="BM25's term saturation.  [default: 0.9]"),
    click.option("--b", type=float, help="BM25's length normalisation.  [default: 0.4]"),
    click.option("--rm3/--no-rm3", default=None, help="Expand by pseudo-relevance feedback.  [default: no]"),
    click.option(
        "--fields",
        type=click.Choice(["question", "query", "background", "question+query", "all"]),
        help="Texts of a question that BM25 searches for.  [default: all]",
    ),
    click.option(
        "--dense-fields",
        type=click.Choice(["question", "query", "background", "question+query", "all"]),
        help="Texts of a question that its vector is of.  [default: question]",
    ),
    click.option(
        "--fusion",
        type=click.Choice(["minmax", "rrf"]),
        help="How hybrid joins BM25 and vectors.  [default: minmax]",
    ),
    click.option("--dense-weight", type=float, help="Share of the vectors in it, 0 to 1.  [default: 0.4]"),
    click.option(
        "--context-weight",
        type=float,
        help="Weight of the other sentences of a sentence's context.  [default: 0.4]",
    ),
    click.option("--pool", type=int, help="Sentences that a retriever gives.  [default: 2000]"),
    click.option(
        "--max-sentences",
        type=int,
        help="Sentences of a passage at most; longer where that is expected to gain.  [default: 1]",
    ),
    click.option(
        "--reranker",
        metavar="MODEL|none",
        help="Cross-encoder: epicqa, a path, package or hub name.  [default: epicqa]",
    ),
    click.option(
        "--backend",
        type=click.Choice(["auto", "torch", "openvino"]),
        help="What computes its scores.  [default: the faster of those installed]",
    ),
    click.option(
        "--bi-encoder",
        metavar="MODEL|none",
        help="Encoder to compare question and passages by: as --reranker.  [default: minilm]",
    ),
    click.option(
        "--rerank-fields",
        type=click.Choice(["question", "query", "background", "question+query", "all"]),
        help="Texts of a question that both read.  [default: question]",
    ),
    click.option("--rerank-depth", type=int, help="Passages that both score.  [default: 400]"),
    click.option(
        "--audience",
        type=click.Choice(["expert", "general"]),
        help="Prefer the field's own words, or plain ones.  [default: neither]",
    ),
    click.option("--first-weight", type=float, help="Of retrieval in the sum of scores.  [default: 1]"),
    click.option("--bi-encoder-weight", type=float, help="Of the bi-encoder in it.  [default: 2]"),
    click.option("--cross-encoder-weight", type=float, help="Of the reranker in it.  [default: 0.5]"),
    click.option("--length-weight", type=float, help="Of a passage's length in it.  [default: 1.5]"),
    click.option(
        "--budget",
        type=Duration(),
        help="Time for reranking all questions, such as 60s or 5m.  [default: no limit]",
    ),
    click.option(
        "--diversity",
        type=click.Choice(["novelty", "mmr", "none"]),
        help="Order in which each passage says something new.  [default: novelty; mmr without bi-encoder]",
    ),
    click.option("--mmr-weight", type=float, help="Of novelty in MMR, 0 to 1.  [default: 0.3]"),
    click.option(
        "--threads",
        type=click.IntRange(1),
        default=lambda: os.cpu_count() or 2,
        help="Threads for searching; they do not change the result.  [default: all cores]",
    ),
)


def answering(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of ``run`` and ``ask``; the command gets ``settings``, ``config_file`` and ``threads``."""

    @functools.wraps(command)
    def wrapped(*arguments: Any, config_file: Path | None, threads: int, **others: Any) -> Any:
        settings = {name: others.pop(name) for name in _SETTINGS}
        return command(*arguments, settings=settings, config_file=config_file, threads=threads, **others)

    decorated: Callable[..., Any] = wrapped
    for option in reversed(_ANSWERING):
        decorated = option(decorated)
    return decorated


_SETTINGS = (
    "index",
    "retriever",
    "k1",
    "b",
    "rm3",
    "fields",
    "dense_fields",
    "fusion",
    "dense_weight",
    "context_weight",
    "pool",
    "max_sentences",
    "reranker",
    "backend",
    "bi_encoder",
    "rerank_fields",
    "rerank_depth",
    "audience",
    "first_weight",
    "bi_encoder_weight",
    "cross_encoder_weight",
    "length_weight",
    "budget",
    "diversity",
    "mmr_weight",
)
