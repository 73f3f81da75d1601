"""BM25 over sentences, with RM3 feedback as an option."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from epicqa.corpus.store import CorpusStore
from epicqa.index import jvm
from epicqa.index.lucene import Hits, LuceneIndex, indexed_text
from epicqa.ranking import Ranking


@dataclass(frozen=True, slots=True)
class Rm3:
    """RM3 pseudo-relevance feedback; the defaults are Anserini's.

    Attributes:
        terms: expansion terms kept.
        sentences: first hits that are taken to be relevant.
        weight: of the question against the expansion, 0 to 1.
    """

    terms: int = 10
    sentences: int = 10
    weight: float = 0.5


def bm25_search(
    index: LuceneIndex,
    texts: Sequence[str],
    depth: int,
    *,
    k1: float,
    b: float,
    rm3: Rm3 | None = None,
    store: CorpusStore | None = None,
    threads: int = 2,
) -> list[Ranking]:
    """The best sentences of each text by BM25 (Robertson and Zaragoza, 2009), equal scores by row.

    Args:
        index: an open Lucene index.
        texts: what to search for, one ranking each.
        depth: sentences a text at most; fewer when fewer hold any of its terms.
        k1, b: BM25's term saturation and length normalisation.
        rm3: expand each text by feedback first; needs ``store`` for the sentences' terms.
        threads: texts searched at a time.

    Raises:
        EpicqaError: the index is damaged.
    """
    if rm3 and store is None:
        raise ValueError("RM3 needs the store")

    def found() -> list[Hits]:
        queries = [index.text_query(text) for text in texts]
        if rm3 and store:
            first = index.search(queries, rm3.sentences, k1=k1, b=b, threads=threads)
            queries = [
                index.weighted_query(expanded(index, store, text, hits, rm3))
                for text, hits in zip(texts, first, strict=True)
            ]
        return index.search(queries, depth, k1=k1, b=b, threads=threads)

    with jvm.calling():  # A function of its own, so that Java's objects are gone when the bridge is let go.
        hits = found()
    return [Ranking.of_sentences(rows, scores) for rows, scores in hits]


def expanded(index: LuceneIndex, store: CorpusStore, text: str, feedback: Hits, rm3: Rm3) -> dict[str, float]:
    """The weighted terms of RM3: the text's own, interpolated with a relevance model of its first hits.

    Relevance model 1 of Lavrenko and Croft (2001), interpolated as by Abdul-Jaleel et al. (2004, section
    2.1), with the filters of Anserini's implementation: terms of 2 to 20 ASCII letters and digits that at
    most a tenth of the sentences hold, the ``rm3.terms`` heaviest of each hit and of the model.
    """
    own = Counter(index.terms(text))
    total = sum(own.values())
    model: defaultdict[str, float] = defaultdict(float)
    for row, score in zip(*feedback, strict=True):
        document = store.context_document[store.sentence_context[row]]
        counts = Counter(index.terms(indexed_text(store.title(int(document)), store.sentence_text(int(row)))))
        kept = dict(_heaviest(_usable(index, counts), rm3.terms))
        norm = sum(kept.values())
        for term, count in kept.items():
            model[term] += count / norm * float(score)
    heaviest = dict(_heaviest(model.items(), rm3.terms))
    mass = sum(heaviest.values())
    weights = {term: rm3.weight * count / total for term, count in own.items()}
    for term, weight in heaviest.items():
        weights[term] = weights.get(term, 0.0) + (1 - rm3.weight) * weight / mass
    return weights


def _usable(index: LuceneIndex, counts: Counter[str]) -> Iterator[tuple[str, float]]:
    most = index.reader.numDocs() / 10
    for term, count in counts.items():
        if re.fullmatch(r"[a-z0-9]{2,20}", term) and index.frequency(term) <= most:
            yield term, float(count)


def _heaviest(weights: Iterable[tuple[str, float]], count: int) -> list[tuple[str, float]]:
    """The heaviest terms, equal weights by term."""
    return sorted(weights, key=lambda item: (-item[1], item[0]))[:count]
