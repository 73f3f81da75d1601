"""Write what the reranker that ships was trained on: ``python -m benchmarks.quality.reranking OUT [DATA]``.

OUT gets ``reranker.first.jsonl`` and ``reranker.second.jsonl``, some pairs of each source that
``benchmarks.quality.data`` reads, for the two parts of the training; ``reranker.sources.json`` for the model
card; and ``collection.first.jsonl`` and ``collection.second.jsonl``, documents to take hard negatives from.
None holds anything that ``data`` leaves out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.options import DATA
from benchmarks.quality.data import SEED, LeftOut, covidqa, left_out, medquad_pairs, sentences, sources
from epicqa.files import replacing, write_bytes
from epicqa.models.train.pairs import Pair, write_pairs

Mix = dict[str, tuple[int, int | None]]
"""File of ``data`` -> pairs of a query at most, queries at most."""

FIRST: Mix = {
    "covidqa.train.jsonl": (3, None),
    "pubmedqa.jsonl": (1, None),
    "scifact.jsonl": (2, None),
    "cord19.jsonl": (1, 600),
}

SECOND: Mix = {
    "covidqa.train.jsonl": (3, None),
    "pubmedqa.jsonl": (2, None),
    "scifact.jsonl": (2, None),
    "cord19.jsonl": (1, 1000),
    "medquad.jsonl": (1, 2500),
}

BODIES = 3
"""Of so many papers of ``comm_use_subset``, one is taken with its body, the others with their abstracts."""


def some_pairs(pairs: Iterable[Pair], a_query: int, queries: int | None) -> list[Pair]:
    """At most so many pairs a query, of at most so many queries, drawn by seed, in their order."""
    by_query: dict[str, list[Pair]] = defaultdict(list)
    for pair in dict.fromkeys(pairs):
        by_query[pair.query].append(pair)
    draw = np.random.default_rng(SEED)
    chosen = list(by_query.values())
    if queries is not None and queries < len(chosen):
        chosen = [chosen[place] for place in np.sort(draw.choice(len(chosen), queries, replace=False))]
    found = []
    for own in chosen:
        count = min(a_query, len(own))
        found += [own[place] for place in np.sort(draw.choice(len(own), count, replace=False))]
    return found


def documents(data: Path, out: LeftOut) -> Iterator[dict[str, Any]]:
    """Plain documents of COVID-QA's training articles, SciFact, PubMedQA and ``comm_use_subset``."""
    for article in covidqa(data)[0]:
        text = " ".join(article.sentences)
        yield {"id": f"covidqa-{article.article_id}", "title": article.title, "text": text}
    with gzip.open(data / "scifact" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if not out.holds([str(record["doc_id"])], [record["title"], *record["abstract"]]):
                text = " ".join(record["abstract"])
                yield {"id": f"scifact-{record['doc_id']}", "title": record["title"], "text": text}
    with gzip.open(data / "pairs" / "pubmedqa" / "ori_pqal.json.gz") as handle:
        for pmid, record in json.load(handle).items():
            text = "\n\n".join([*record["CONTEXTS"], record["LONG_ANSWER"]])
            yield {"id": f"pubmedqa-{pmid}", "text": text}
    path = data / "cord19" / "fulltext" / "cord19_2020-03-13.comm_use_subset.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for number, paper in enumerate(map(json.loads, lines)):
            parts = paper["abstract"] + (paper["body_text"] if number % BODIES == 0 else [])
            text = "\n\n".join(" ".join(part["text"].split()) for part in parts).strip()
            title = " ".join((paper["title"] or "").split())
            names = (paper["paper_id"], paper["paper_id"][:8], paper["cord_uid"])
            if text and not out.holds(names, [title, *sentences(text)]):
                yield {"id": paper["paper_id"], "title": title, "text": text}


def medquad_documents(data: Path) -> Iterator[dict[str, Any]]:
    """MedQuAD's answers, a document each."""
    for number, pair in enumerate(_answers(data)):
        yield {"id": f"medquad-{number}", "text": pair}


def _answers(data: Path) -> list[str]:
    by_query: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in medquad_pairs(data, mini_general=True):
        by_query[pair.group, pair.query].append(pair.positive)
    return [" ".join(texts) for texts in by_query.values()]


def main() -> None:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("out", type=Path)
    found.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    arguments = found.parse_args()
    there = sources(arguments.data, mini_general=True)
    listed = {}
    for part, mix in (("first", FIRST), ("second", SECOND)):
        pairs: list[Pair] = []
        told = []
        for name, (a_query, queries) in mix.items():
            own = some_pairs(there[name].pairs(), a_query, queries)
            pairs += own
            told.append(f"{there[name].name} ({there[name].licence}): {len(own):,} pairs")
            print(f"{part:<7} {name:<22} {len(own):>6,} pairs  {there[name].licence}")
        write_pairs(arguments.out / f"reranker.{part}.jsonl", pairs)
        listed[f"reranker.{part}.jsonl"] = {"source": "; ".join(told), "licence": "see each source"}
    write_bytes(arguments.out / "reranker.sources.json", (json.dumps(listed, indent=1) + "\n").encode())
    out = left_out(arguments.data, covidqa(arguments.data)[1])
    collections = {
        "collection.first.jsonl": documents(arguments.data, out),
        "collection.second.jsonl": medquad_documents(arguments.data),
    }
    for name, own_documents in collections.items():
        with replacing(arguments.out / name) as temporary, temporary.open("wb") as handle:
            handle.writelines(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in own_documents)
        print(name)


if __name__ == "__main__":
    main()
