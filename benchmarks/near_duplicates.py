"""Near-duplicate contexts of ``mini/expert``: speed, and recall and precision next to exact Jaccard."""

from __future__ import annotations

import json
import os
import re
import statistics
import time
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.sparse import csr_matrix

from benchmarks.options import parser
from benchmarks.sides import console
from epicqa.corpus.near_duplicates import MIN_WORDS, PERMUTATIONS, SHINGLE_WORDS, groups, signatures
from epicqa.corpus.sources import parse, records

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
LOWEST = 0.3
"""Pairs below are not counted one by one."""
BEYOND, WANTED = 0.05, 0.97
"""So much above the threshold, so many are to be found."""
ROWS_AT_ONCE = 4000


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of texts from LOWEST on: row numbers, the later and the earlier, and the exact Jaccard."""

    later: NDArray[np.int64]
    earlier: NDArray[np.int64]
    jaccard: NDArray[np.float64]


def exact(texts: list[str]) -> Pairs:
    """The Jaccard similarity of the sets of word 5-grams, by a sparse product of all with all."""
    numbers: dict[tuple[str, ...], int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower())
        if len(words) >= MIN_WORDS:
            runs = set(zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False))
            columns += [numbers.setdefault(run, len(numbers)) for run in runs]
        ends.append(len(columns))
    sets = csr_matrix((np.ones(len(columns), np.float32), columns, ends), shape=(len(texts), len(numbers)))
    sizes = np.diff(ends)
    # What only one text has is in no intersection.
    sets = sets[:, np.bincount(columns, minlength=len(numbers)) > 1]
    turned = sets.T.tocsr()
    parts = []
    for low in range(0, len(texts), ROWS_AT_ONCE):
        common = (sets[low : low + ROWS_AT_ONCE] @ turned).tocoo()
        later, earlier = common.row.astype(np.int64) + low, common.col.astype(np.int64)
        jaccard = common.data / (sizes[later] + sizes[earlier] - common.data)
        wanted = (later > earlier) & (jaccard >= LOWEST)
        parts.append((later[wanted], earlier[wanted], jaccard[wanted]))
    return Pairs(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def quality(first: NDArray[np.int64], pairs: Pairs, threshold: float) -> dict[str, float]:
    """How good the groups are.

    A found row is right when it and the row that stands for it reach the threshold exactly; a kept row is
    missed when a kept row before it does.
    """
    found = np.flatnonzero(first < np.arange(len(first)))
    codes = pairs.later * len(first) + pairs.earlier
    order = np.argsort(codes)
    wanted = found * len(first) + first[found]
    place = np.minimum(np.searchsorted(codes[order], wanted), len(codes) - 1)
    reached = np.where(codes[order][place] == wanted, pairs.jaccard[order][place], 0)
    kept = first == np.arange(len(first))

    def recall(at_least: float) -> float:
        both = kept[pairs.later] & kept[pairs.earlier] & (pairs.jaccard >= at_least)
        right = np.count_nonzero(reached >= at_least)
        return right / max(right + len(np.unique(pairs.later[both])), 1)

    return {
        "threshold": threshold,
        "found": len(found),
        "precision": round(float((reached >= threshold).mean()), 4),
        "precision_within": round(float((reached >= threshold - BEYOND).mean()), 4),
        "recall": round(recall(threshold), 4),
        "recall_beyond": round(recall(threshold + BEYOND), 4),
    }


def cpu_seconds(job: Callable[[], Any], repeats: int) -> float:
    """The median of CPU seconds after an untimed pass."""
    job()
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        job()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def main() -> None:
    options = parser(__doc__ or "", repeats=3)
    options.add_argument("--papers", type=int, default=1000, help="how many are read (%(default)s)")
    arguments = options.parse_args()
    lines = islice(records(arguments.data / "mini" / "expert.jsonl.xz"), arguments.papers)
    papers = [[context.text for context in parse(line.raw).contexts] for line in lines]
    texts = [text for paper in papers for text in paper]
    rows = signatures(texts)
    signing = cpu_seconds(lambda: signatures(texts), arguments.repeats)
    grouping = cpu_seconds(lambda: groups(rows, 0.8), arguments.repeats)
    pairs = exact(texts)
    figures = [quality(groups(rows, threshold)[0], pairs, threshold) for threshold in THRESHOLDS]

    words = sum(len(text.split()) for text in texts)
    table = Table(
        title=f"{len(texts)} contexts of {words / len(texts):.0f} words, {len(papers)} papers; "
        f"signatures {len(texts) / signing:.0f} contexts/s, groups {len(texts) / grouping:.0f}/s of CPU",
        title_justify="left",
    )
    for heading in ("threshold", "found", "precision", f"within {BEYOND}", "recall", f"{BEYOND} above"):
        table.add_column(heading, justify="right")
    for one in figures:
        table.add_row(*(f"{value:g}" for value in one.values()))
    console.print(table)
    line = {
        "benchmark": f"near-duplicates of {len(texts)} contexts",
        "permutations": PERMUTATIONS,
        "contexts": len(texts),
        "papers": len(papers),
        "words": words,
        "signatures": round(signing, 3),
        "groups": round(grouping, 3),
        "quality": figures,
        "load": round(os.getloadavg()[0], 2),
    }
    print(json.dumps(line), flush=True)
    if min(one["recall_beyond"] for one in figures) < WANTED:
        raise SystemExit(f"fewer than {WANTED:.0%} found of what is {BEYOND} above a threshold")


if __name__ == "__main__":
    main()
