"""Where the benchmarks read and write."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def parser(about: str, repeats: int) -> argparse.ArgumentParser:
    """The options that all benchmarks take."""
    found = argparse.ArgumentParser(description=about)
    found.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    found.add_argument("--work", type=Path, help="where to build and keep; else a temporary folder")
    found.add_argument("--repeats", type=int, default=repeats, help="timed passes a side (%(default)s)")
    return found


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """The folder given, made if missing, or a temporary one that is removed."""
    if given:
        given.mkdir(parents=True, exist_ok=True)
        yield given
    else:
        with tempfile.TemporaryDirectory(prefix="epicqa-bench-") as temporary:
            yield Path(temporary)


def expert_corpus(data: Path, work: Path) -> CorpusStore:
    """``mini/expert`` as a corpus in ``work``, built unless it is there."""
    build_corpus([data / "mini" / "expert.jsonl.xz"], work / "corpus")
    return CorpusStore.open(work / "corpus")
