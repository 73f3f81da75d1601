"""Sentence splitting against marked sentences: ``python -m benchmarks.quality.sentences [DOCUMENTS]``.

Prints a Markdown table for the bundled sample, whose sentences were marked by hand, and one for DOCUMENTS,
whose spans are what the track's own splitter made of them. ``--candidates`` adds the libraries that were
looked at, those that are installed: sentencex as it is, blingfire, nltk (Punkt, untrained), pysbd, syntok.

A boundary is where a sentence of a context starts, its first one left out; a whole sentence is right when
both of its ends are.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.options import DATA
from benchmarks.quality import splitting
from benchmarks.quality.ablation_table import to_markdown
from benchmarks.quality.splitting import trimmed
from epicqa import sample
from epicqa.corpus.sentences import split
from epicqa.corpus.sources import parse, records
from epicqa.errors import EpicqaError
from epicqa.measures.tables import Column, Table

Spans = Sequence[tuple[int, int]]
Splitter = Callable[[str], Spans]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text and the spans of its sentences."""

    text: str
    sentences: Spans


@dataclass(frozen=True, slots=True)
class Figures:
    """How what was found agrees with what is marked.

    Attributes:
        precision: boundaries found that are marked, of those found.
        recall: the same, of those marked.
        exact: F1 of whole sentences.
        speed: sentences found in a second of CPU.
    """

    precision: float
    recall: float
    exact: float
    speed: float

    @property
    def f1(self) -> float:
        return _mean(self.precision, self.recall)


def marked(source: Path) -> list[Marked]:
    """The contexts of all documents.

    Raises:
        EpicqaError: the source cannot be read, or holds no documents.
        BadDocument: it holds what is none.
    """
    return [
        Marked(context.text, trimmed(context.text, ((one.start, one.end) for one in context.sentences)))
        for record in records(source)
        for context in parse(record.raw).contexts
    ]


def figures(splitter: Splitter, texts: Sequence[Marked]) -> Figures:
    """Split all texts, and compare."""
    splitter("What loads late. Loads now.")
    start = time.process_time()
    found = [splitter(one.text) for one in texts]
    seconds = time.process_time() - start
    exact = _shares(((one.sentences, spans) for one, spans in zip(texts, found, strict=True)))
    boundaries = _shares(
        ([start for start, _ in one.sentences[1:]], [start for start, _ in spans[1:]])
        for one, spans in zip(texts, found, strict=True)
    )
    return Figures(*boundaries, _mean(*exact), sum(map(len, found)) / max(seconds, 1e-9))


def _shares(pairs: Iterable[tuple[Sequence[object], Sequence[object]]]) -> tuple[float, float]:
    """Precision and recall of (marked, found) pairs, all together; 1 of nothing."""
    both = wanted = given = 0
    for one, other in pairs:
        both += len(set(one) & set(other))
        wanted += len(one)
        given += len(other)
    return both / given if given else 1.0, both / wanted if wanted else 1.0


def _mean(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _blingfire() -> Splitter:
    from blingfire import text_to_sentences_and_offsets

    return lambda text: trimmed(text, text_to_sentences_and_offsets(text)[1])


def _nltk() -> Splitter:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    tokenizer = PunktSentenceTokenizer(PunktParameters())
    return lambda text: trimmed(text, tokenizer.span_tokenize(text))


def _pysbd() -> Splitter:
    from pysbd import Segmenter

    segmenter = Segmenter(language="en", clean=False, char_span=True)
    return lambda text: trimmed(text, ((one.start, one.end) for one in segmenter.segment(text)))


def _syntok() -> Splitter:
    from syntok.segmenter import analyze

    def spans(text: str) -> Iterator[tuple[int, int]]:
        for paragraph in analyze(text):
            for tokens in paragraph:
                yield tokens[0].offset, tokens[-1].offset + len(tokens[-1].value)

    return lambda text: trimmed(text, spans(text))


CANDIDATES: dict[str, Callable[[], Splitter]] = {
    "sentencex": lambda: splitting.split,
    "blingfire": _blingfire,
    "nltk": _nltk,
    "pysbd": _pysbd,
    "syntok": _syntok,
}
"""By the name of the package."""

OURS = "epicqa"


def table(title: str, texts: Sequence[Marked], splitters: dict[str, Splitter]) -> Table:
    """A row a splitter."""
    rows = []
    for name, splitter in splitters.items():
        one = figures(splitter, texts)
        shares = (one.precision, one.recall, one.f1, one.exact)
        rows.append((name, *(f"{share:.4f}" for share in shares), f"{one.speed:,.0f}"))
    headings = ("splitter", "precision", "recall", "F1", "F1, whole", "sentences/s")
    counts = f"{len(texts):,} contexts, {sum(len(one.sentences) for one in texts):,} sentences"
    return Table(f"{title}: {counts}", tuple(map(Column, headings)), tuple(rows))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "documents",
        nargs="?",
        type=Path,
        default=DATA / "epicqa" / "documents",
        help="a folder or file of documents with spans (%(default)s)",
    )
    options.add_argument("--candidates", action="store_true", help="the other libraries, too")
    arguments = options.parse_args()
    splitters: dict[str, Splitter] = {OURS: split}
    for name, load in CANDIDATES.items() if arguments.candidates else ():
        if find_spec(name):
            splitters[name] = load()
        else:
            print(f"{name}: not installed, left out")
    sources = [("sample", sample.documents_path()), (arguments.documents.name, arguments.documents)]
    for title, source in sources:
        if not source.exists():
            print(f"{source}: not there, left out")
            continue
        try:
            texts = marked(source)
        except (EpicqaError, ValueError) as error:
            raise SystemExit(f"{source}: {error}") from None
        print(to_markdown(table(title, texts, splitters)))


if __name__ == "__main__":
    main()
