"""What each stage adds: ``python -m benchmarks.quality.ablation OUT [DATA]``.

A row is a configuration, from plain BM25 to the default and beyond it; each answers the questions of five
sets. OUT gets the collections, the indexes, a run file a row and set, and ``ablation.json`` with every figure
by question. A run that is there is not made again unless something has changed that decides it, so an
interrupted benchmark goes on, and other rows or sets may be added later.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import epicqa
from benchmarks.options import DATA
from benchmarks.quality.ablation_table import Result, Row, record, tables, to_markdown
from benchmarks.quality.collections import MRR, SETS, Collection
from epicqa.config import Config, as_dict
from epicqa.errors import EpicqaError
from epicqa.files import digest_of, runs_folder, sha256_of, write_bytes
from epicqa.index.build import BuildOptions, Index, build_index, versions
from epicqa.measures import Judgments, read_judgments
from epicqa.measures.evaluate import plan_measures, score_documents_of, score_passages
from epicqa.measures.locate import locate_all
from epicqa.measures.nuggets import first_ranks
from epicqa.measures.pools import read_pools
from epicqa.measures.score import Scores
from epicqa.measures.tables import render
from epicqa.models.places import fingerprint, resolve
from epicqa.pipeline import Pipeline, settle
from epicqa.questions import Question
from epicqa.rank.blend import Scorer
from epicqa.runs import Run, read_run, write_run

WIDTH = 120
"""Columns of the tables that are printed."""

Memory = dict[tuple[object, ...], tuple[NDArray[np.float64], dict[str, NDArray[np.float32]]]]
"""By model, question and texts: scores, and the vectors that came with them."""


def rows_of(base: Config) -> tuple[Row, ...]:
    """The rows, in order.

    Args:
        base: the configuration that they lead to, made hybrid and with novelty.
    """
    base = replace(base, retriever="hybrid")
    novelty = replace(base, diversity="novelty")
    length = replace(base, diversity="none")
    cross = replace(length, length_weight=0)
    bi = replace(cross, reranker="none")
    context = replace(bi, bi_encoder="none")
    fusion = replace(context, context_weight=0)
    fields = replace(fusion, retriever="bm25", fields="all")
    alone = replace(cross, bi_encoder="none", first_weight=0)
    return (
        Row("question", "BM25, question", replace(fields, fields="question")),
        Row("fields", "BM25, all fields", fields),
        Row("dense", "dense", replace(fusion, retriever="dense")),
        Row("fusion", "BM25 and dense", fusion),
        Row("context", "+ context", context),
        Row("bi-encoder", "+ bi-encoder", bi),
        Row("cross-encoder", "+ cross-encoder", cross),
        Row("length", "+ length", length),
        Row("mmr", "+ mmr", replace(base, diversity="mmr"), over="length"),
        Row("novelty", "+ novelty", novelty, over="length"),
        Row("spans", "+ spans", replace(novelty, max_sentences=3), over="novelty"),
        Row("expert", "for experts", replace(novelty, audience="expert"), over="novelty", apart=True),
        Row("general", "for the public", replace(novelty, audience="general"), over="novelty", apart=True),
        Row("alone", "cross-encoder alone", alone, apart=True),
        Row("rm3", "BM25 with RM3", replace(fields, rm3=True), apart=True),
        # As HLTRI had it in the track.
        Row("hltri", "BM25 k1 .82, b .68", replace(fields, k1=0.82, b=0.68), apart=True),
    )


ROWS = tuple(row.name for row in rows_of(Config()))


class Remembering(Pipeline):
    """A pipeline whose models score passages once, whatever row asks.

    What is kept are the texts that a model got at once: all rows rerank the same passages, and a model may
    score a text by another 1e-7 in other company, so a run is the one that ``epicqa run`` writes.
    """

    def __init__(self, index: Index, config: Config, memory: Memory) -> None:
        super().__init__(index, config)
        self._memory = memory

    def scorers(self, kept: dict[str, NDArray[np.float32]]) -> list[tuple[float, Scorer]]:
        """As the pipeline's; the models' are what is partial, over the model."""
        fresh: dict[str, NDArray[np.float32]] = {}
        return [
            (
                weight,
                partial(self._remembered, scorer, fresh, kept) if isinstance(scorer, partial) else scorer,
            )
            for weight, scorer in super().scorers(fresh)
        ]

    def _remembered(
        self,
        scorer: partial[NDArray[np.float64]],
        fresh: dict[str, NDArray[np.float32]],
        kept: dict[str, NDArray[np.float32]],
        question: str,
        texts: Sequence[str],
    ) -> NDArray[np.float64]:
        key = (scorer.func, *scorer.args, question, *texts)
        if key not in self._memory:
            fresh.clear()
            self._memory[key] = scorer(question, texts), dict(fresh)
        scores, vectors = self._memory[key]
        kept.update(vectors)
        return scores


def result_of(collection: Collection, rows: Sequence[Row], dense: str, told: Callable[[str], None]) -> Result:
    """Every row on one set; index and runs are kept in epicqa's home.

    Args:
        collection: the set.
        rows: what to run.
        dense: encoder of the index.
        told: gets a line when a step is done.

    Raises:
        EpicqaError: a model is missing, or the documents cannot be indexed.
    """
    began = time.monotonic()
    index = build_index([collection.source], _index_name(collection, dense), BuildOptions(dense=dense))
    told(f"{collection.name} index: {time.monotonic() - began:.0f} s")
    memory: Memory = {}
    scores = {}
    for row in rows:
        began = time.monotonic()
        run = run_of(row, collection.questions, index, memory)
        scores[row.name] = scores_of(run, collection)
        told(f"{collection.name} {row.name}: {time.monotonic() - began:.0f} s")
        for warning in scores[row.name].warnings:
            told(str(warning))
    return Result(collection, tuple(rows), scores, index.store.n_sentences, index.fingerprint)


def _index_name(collection: Collection, dense: str) -> str:
    if dense == "static":
        return collection.name
    return f"{collection.name}-{digest_of(dense)[:8]}"


def run_of(row: Row, questions: Sequence[Question], index: Index, memory: Memory) -> Run:
    """A row's run over an index: the one that is kept, else a new one, which is kept then."""
    config, _ = settle(row.config, index)
    texts = [[one.question_id, one.question, one.query, one.background] for one in questions]
    key = digest_of([as_dict(config), index.fingerprint, _models(config), texts, versions(), _code()])
    path = runs_folder() / index.name / f"{row.name}-{key[:16]}.tsv"
    if not path.is_file():
        answers = Remembering(index, config, memory).answer(questions)
        write_run(path, row.name, {one.question_id: one.passages for one in answers}, index.store)
    return read_run(path)


def _models(config: Config) -> list[str | None]:
    """The fingerprints of bi-encoder and cross-encoder, None where there is none."""
    named = ((config.bi_encoder, "sentence-transformers"), (config.reranker, "cross-encoder"))
    return [None if name == "none" else _fingerprint(name, place) for name, place in named]


@cache
def _fingerprint(name: str, organization: str) -> str:
    return fingerprint(resolve(name, organization))


@cache
def _code() -> list[str]:
    """What ranks, as it is: constants and formulas are no part of a configuration."""
    folder = Path(epicqa.__file__).parent
    files = [folder / "pipeline.py", *folder.glob("rank/*.py"), *folder.glob("retrieve/*.py")]
    return sorted(map(sha256_of, files))


def scores_of(run: Run, collection: Collection) -> Scores:
    """The collection's measures of a run, as ``epicqa score`` has them, and MRR."""
    names = [name for name in collection.measures if name != MRR]
    plan = plan_measures(names, qrels=collection.qrels)
    if collection.judgments is None:
        assert collection.qrels is not None
        return score_documents_of([run], collection.qrels, plan)[0][0]
    judgments = read_judgments(collection.judgments)
    pools = read_pools(collection.pools, judgments) if collection.pools else None
    asked = [one.question_id for one in collection.questions]
    scores = score_passages(run, judgments, plan, asked, pools)
    if MRR in collection.measures:
        values = {**scores.values, MRR: reciprocal_ranks(run, judgments, scores.question_ids)}
        scores = replace(scores, values=values)
    return scores


def reciprocal_ranks(run: Run, judgments: Judgments, question_ids: Sequence[str]) -> NDArray[np.float64]:
    """1 / rank of the first passage that states a nugget, float64[n_questions]; 0 where none does."""
    judged = [judgments.questions[name] for name in question_ids]
    found = np.zeros(len(judged))
    for i, located in enumerate(locate_all(run, judged)):
        if located is not None:
            ranks = [rank for rank in first_ranks(judged[i], *located.placed).values() if rank]
            found[i] = 1 / min(ranks) if ranks else 0.0
    return found


def ablate(
    out: Path, data: Path, names: Sequence[str], rows: Sequence[Row], dense: str, told: Callable[[str], None]
) -> list[Result]:
    """Every row on every set; ``ablation.json`` in ``out``, the home, gets the figures.

    Raises:
        EpicqaError: data or a model is missing, which is told before anything is run.
    """
    for row in rows:
        _models(row.config)
    collections = [SETS[name](data, out / "collections") for name in names]
    results = [result_of(collection, rows, dense, told) for collection in collections]
    write_bytes(out / "ablation.json", (json.dumps(record(results), indent=1) + "\n").encode())
    return results


def _some(known: Sequence[str] | Mapping[str, object]) -> Callable[[str], list[str]]:
    """What reads names with commas between, in their known order."""

    def read(text: str) -> list[str]:
        given = text.split(",")
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r}, expected some of {','.join(known)}")
        return [name for name in known if name in given]

    return read


def main(arguments: Sequence[str] | None = None) -> None:
    default = Config()
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("out", type=Path, help="where indexes, runs and figures go")
    options.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    options.add_argument(
        "--only",
        type=_some(SETS),
        default=list(SETS),
        metavar="SET,...",
        help=f"some of the sets: {','.join(SETS)}",
    )
    options.add_argument(
        "--rows",
        type=_some(ROWS),
        default=list(ROWS),
        metavar="ROW,...",
        help=f"some of the rows: {','.join(ROWS)}",
    )
    options.add_argument("--dense", default="static", help="encoder of the indexes (%(default)s)")
    options.add_argument("--reranker", default=default.reranker, help="cross-encoder (%(default)s)")
    options.add_argument("--bi-encoder", default=default.bi_encoder, help="bi-encoder (%(default)s)")
    options.add_argument("--markdown", action="store_true", help="print Markdown instead of plain tables")
    given = options.parse_args(arguments)
    base = replace(default, reranker=given.reranker, bi_encoder=given.bi_encoder)
    rows = [row for row in rows_of(base) if row.name in given.rows]
    os.environ["EPICQA_HOME"] = str(given.out)
    try:
        results = ablate(
            given.out, given.data, given.only, rows, given.dense, lambda line: print(line, file=sys.stderr)
        )
    except EpicqaError as error:
        raise SystemExit(str(error)) from None
    found = tables(results)
    print("\n".join(map(to_markdown, found)) if given.markdown else render(found, "table", width=WIDTH))


if __name__ == "__main__":
    main()
