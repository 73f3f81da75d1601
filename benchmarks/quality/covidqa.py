"""COVID-QA as retrieval: ``python -m benchmarks.quality.covidqa OUT [DATA] --model static --model FOLDER``.

Each question of a held-out article is asked of every sentence of the held-out articles; relevant are the
sentences that hold its answer. ``--among all`` ranks the sentences of the training articles, too. OUT gets
``covidqa.held.json`` (or ``.all``) with the figures of every question, and the vectors of each model, so that
a slow one encodes once.
"""

from __future__ import annotations

import argparse
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.options import DATA
from benchmarks.quality.data import Article, covidqa
from epicqa.errors import EpicqaError
from epicqa.files import digest_of, write_bytes
from epicqa.measures.significance import paired_bootstrap
from epicqa.models.encoder import Encoder
from epicqa.models.resolve import load_encoder
from epicqa.models.train.static import DEPTH, Figures, figures

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions, the sentences they are asked of, and the rows of those that answer each."""

    queries: tuple[str, ...]
    sentences: tuple[str, ...]
    relevant: tuple[tuple[int, ...], ...]


def questions_of(asked: list[Article], others: list[Article]) -> Questions:
    """The questions of ``asked``, over the sentences of both."""
    queries: list[str] = []
    sentences: list[str] = []
    relevant: list[tuple[int, ...]] = []
    for article in asked:
        for question, rows in article.questions:
            queries.append(question)
            relevant.append(tuple(len(sentences) + row for row in rows))
        sentences.extend(article.sentences)
    for article in others:
        sentences.extend(article.sentences)
    return Questions(tuple(queries), tuple(sentences), tuple(relevant))


def measured(encoder: Encoder, found: Questions, out: Path) -> Figures:
    """Figures of an encoder; its vectors are kept in ``out``."""
    return figures(
        _kept(out, encoder, found.queries, queries=True),
        _kept(out, encoder, found.sentences, queries=False),
        found.relevant,
    )


def _kept(out: Path, encoder: Encoder, texts: tuple[str, ...], queries: bool) -> NDArray[np.float32]:
    path = out / f"{digest_of([encoder.fingerprint, texts, queries])[:16]}.npy"
    if path.is_file():
        return np.asarray(np.load(path, allow_pickle=False))
    vectors = encoder.encode_queries(texts) if queries else encoder.encode(texts)
    content = io.BytesIO()
    np.save(content, vectors)
    write_bytes(path, content.getbuffer())
    return vectors


def _interval(values: NDArray[np.float64]) -> str:
    low, high = paired_bootstrap(values, resamples=RESAMPLES)
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("out", type=Path, help="where figures and vectors go")
    options.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    options.add_argument(
        "--model",
        action="append",
        dest="models",
        help="static, minilm, a folder; several may be given, the first is compared with [static]",
    )
    options.add_argument(
        "--among", choices=["held", "all"], default="held", help="articles whose sentences are ranked"
    )
    arguments = options.parse_args()
    train, held = covidqa(arguments.data)
    found = questions_of(held, train if arguments.among == "all" else [])
    try:
        scores = {
            name: measured(load_encoder(name), found, arguments.out)
            for name in dict.fromkeys(arguments.models or ["static"])
        }
    except EpicqaError as error:
        raise SystemExit(str(error)) from None
    table = Table(
        title=f"{len(found.queries)} questions of {len(held)} articles, {len(found.sentences):,} sentences",
        title_justify="left",
    )
    first = next(iter(scores.values()))
    headings = ("model", "MRR (95%)", "less the first's", f"recall@{DEPTH} (95%)", "less the first's")
    for heading in headings:
        table.add_column(heading)
    for name, one in scores.items():
        cells = [name]
        for values, before in (
            (one.reciprocal_rank, first.reciprocal_rank),
            (one.recall, first.recall),
        ):
            cells += [_interval(values), "" if one is first else _interval(values - before)]
        table.add_row(*cells)
    Console(width=110).print(table)
    record = {
        "questions": len(found.queries),
        "sentences": len(found.sentences),
        "models": {
            name: {
                "mrr": one.mrr,
                f"recall@{DEPTH}": one.mean_recall,
                "reciprocal_rank": one.reciprocal_rank.tolist(),
                "recall": one.recall.tolist(),
            }
            for name, one in scores.items()
        },
    }
    write_bytes(arguments.out / f"covidqa.{arguments.among}.json", (json.dumps(record) + "\n").encode())


if __name__ == "__main__":
    main()
