"""Which sentences of Wikipedia a claim of FEVER is held against: pages are found, then sentences of theirs.

Malon, "Team Papelo: Transformer Networks at FEVER", FEVER workshop 2018, section 3 and its table of the parts
of retrieval, each of which is a flag of `Parts`. Where the paper has TF-IDF of articles, then of sentences,
this has BM25 of the toolkit's Lucene index of sentences, which holds all of Wikipedia; a page is as good as
its three best sentences together.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import NamedTuple

import numpy as np

from epicqa.claims.fever import Claim, Sentence, check_labelled, title_key
from epicqa.claims.scifact import NOINFO
from epicqa.corpus.sources.fever import TITLE_ESCAPES, page_id, page_of, page_title
from epicqa.errors import EpicqaError
from epicqa.index import jvm
from epicqa.index.build import Index
from epicqa.index.lucene import FIELD, indexed_text
from epicqa.retrieve.bm25 import bm25_search

INDEX = "fever"
"""Name of the pages' own index."""

PAGES = 5
"""Pages of a claim that are found by its words, as many as the paper's baseline has."""

SENTENCES = 5
"""Sentences of a claim where articles are not read whole."""

LONGEST = 50
"""Sentences of an article that are read at most, its first ones."""

K1, B = 0.9, 0.4

# Sentences of all pages that pages are found by, and of one that its score is of.
_DEPTH = 500
_BEST = 3

# Claims searched at once, and words of a title in a claim.
_BATCH = 256
_WORDS = 12

# Wikipedia's titles have 255 bytes at most; an escaped bracket has five where it had one.
_LONGEST_TITLE = 255 * 5

# Words in small letters that capitalised phrases may have inside.
_INNER = frozenset(
    (
        *("a", "an", "and", "at", "by", "de", "der", "di", "du", "for", "from", "in", "la", "le", "of", "on"),
        *("or", "the", "to", "van", "von", "with", "without"),
    )
)
_EDGES = ".,;:!?\"'()[]“”‘’«»"

Named = Callable[[str], Iterable[str]]
"""The named entities of a text."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What retrieval consists of.

    Attributes:
        titles: whether a page's title counts as text of its sentences.
        entities: whether pages are added whose titles are named entities or capitalised phrases of the claim.
        films: whether ``X (film)`` is added to a page ``X`` that was found.
        articles: whether pages are read whole, up to `LONGEST` sentences each; else the `SENTENCES` best of
            all pages are taken.
    """

    titles: bool = True
    entities: bool = True
    films: bool = True
    articles: bool = True


ROWS: dict[str, Parts] = {
    "TF-IDF": Parts(False, False, False, False),
    "+ titles": Parts(True, False, False, False),
    "+ named entities": Parts(True, True, False, False),
    "+ films": Parts(True, True, True, False),
    "entire articles": Parts(),
}
"""The paper's rows, each with what the one before has."""


class Premise(NamedTuple):
    """A sentence that a claim is held against.

    Attributes:
        sentence: its page, as the pages' file spells it, and line.
        text: ``[ Title ] sentence``, the title as people write it.
    """

    sentence: Sentence
    text: str


@dataclass(frozen=True, slots=True)
class Recall:
    """Claims with evidence, and how many of them have a whole set of it among their premises."""

    found: int
    total: int

    @property
    def value(self) -> float:
        """Their share; 0 where there are none."""
        return self.found / self.total if self.total else 0.0


def premises(
    claims: Sequence[Claim],
    index: Index,
    parts: Parts | None = None,
    *,
    pages: int = PAGES,
    named: Named | None = None,
    threads: int = 2,
) -> dict[int, tuple[Premise, ...]]:
    """`each_premises` of all claims, by their numbers.

    Raises:
        EpicqaError: as there; a claim is repeated.
    """
    found: dict[int, tuple[Premise, ...]] = {}
    for claim_id, those in each_premises(claims, index, parts, pages=pages, named=named, threads=threads):
        if claim_id in found:
            raise EpicqaError(f"claim {claim_id}: repeated, expected each claim once")
        found[claim_id] = those
    return found


def each_premises(
    claims: Sequence[Claim],
    index: Index,
    parts: Parts | None = None,
    *,
    pages: int = PAGES,
    named: Named | None = None,
    threads: int = 2,
) -> Iterator[tuple[int, tuple[Premise, ...]]]:
    """A claim's number and its premises, claim by claim, in their order.

    Pages stand in this order: the best by the claim's words, those of named entities and of capitalised
    phrases as the claim has them, films. Premises are the best first, equal ones by page and line; of
    articles they are in the order of pages and lines.

    Args:
        claims: labelled or not.
        index: of FEVER's pages, see `epicqa.corpus.sources.fever`.
        parts: what retrieval consists of; None, all of it.
        pages: as many are found by the claim's words.
        named: tells named entities, see `spacy_entities`; without, capitalised phrases alone name pages.
        threads: for searching; they do not change the result.

    Raises:
        EpicqaError: a document that was found is none of FEVER's pages; the index is damaged.
    """
    parts = parts or Parts()
    wiki = Wiki(index)
    scorer = _Scorer(index)
    for start in range(0, len(claims), _BATCH):
        batch = claims[start : start + _BATCH]
        texts = [claim.text for claim in batch]
        rankings = bm25_search(index.lucene, texts, _DEPTH, k1=K1, b=B, threads=threads)
        for claim, ranking in zip(batch, rankings, strict=True):
            rows, scores = ranking.first.tolist(), ranking.score.tolist()
            if not parts.titles:
                scores = scorer.scores(claim.text, rows, titles=False)
            found = _best_pages(wiki, rows, scores)[:pages]
            if parts.entities:
                found += entity_pages(wiki, claim.text, named)
            if parts.films:
                found += [film for page in dict.fromkeys(found) if (film := wiki.film(page)) is not None]
            rows = [row for page in dict.fromkeys(found) for row in wiki.rows(page)[:LONGEST]]
            if not parts.articles:
                rows = _sorted(rows, scorer.scores(claim.text, rows, titles=parts.titles))[:SENTENCES]
            yield claim.claim_id, tuple(map(wiki.premise, rows))


def evidence_recall(claims: Sequence[Claim], found: Mapping[int, Sequence[Premise]]) -> Recall:
    """Of claims that are supported or refuted, how many have a whole set of evidence among their premises.

    Titles are compared by `epicqa.claims.fever.title_key`. A claim that is missing has no premises.

    Raises:
        EpicqaError: a claim has no label.
    """
    check_labelled(claims)
    whole = total = 0
    for claim in claims:
        if claim.label == NOINFO:
            continue
        there = {_key(one.sentence) for one in found.get(claim.claim_id, ())}
        total += 1
        whole += any(there.issuperset(map(_key, sentences)) for sentences in claim.evidence)
    return Recall(whole, total)


def ablation(
    claims: Sequence[Claim],
    index: Index,
    *,
    pages: int = PAGES,
    named: Named | None = None,
    threads: int = 2,
) -> dict[str, Recall]:
    """The recall of evidence by row of `ROWS`; arguments are those of `each_premises`.

    Raises:
        EpicqaError: as `premises` and `evidence_recall`.
    """
    return {
        name: evidence_recall(
            claims, premises(claims, index, parts, pages=pages, named=named, threads=threads)
        )
        for name, parts in ROWS.items()
    }


def spacy_entities(model: str = "en_core_web_sm") -> tuple[Named | None, str | None]:
    """What tells named entities, and what the user should know.

    Args:
        model: of spaCy, installed by its user; neither is a dependency.

    Returns:
        spaCy's entities and None; or None, and why pages go by capitalised phrases alone.
    """
    alone = "pages are named by capitalised phrases alone"
    try:
        import spacy
    except ImportError:
        return None, f"spaCy is not installed: {alone}"
    try:
        pipeline = spacy.load(model)
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return None, f"spaCy has no model {model!r} ({reason}): {alone}"
    return (lambda text: [entity.text for entity in pipeline(text).ents]), None


class Wiki:
    """FEVER's pages in an index: a page is the row of its document."""

    def __init__(self, index: Index) -> None:
        self._name = index.name
        self._store = index.store

    def page(self, title: str) -> int | None:
        """The page of a title, in whichever way its brackets, spaces and accents are written; None, no such.

        Case counts but for the first letter, which a title has large.
        """
        title = "_".join(title.replace("_", " ").split())
        if len(title) > _LONGEST_TITLE:
            return None
        title = title[:1].upper() + title[1:]
        escaped = title
        for escape, character in TITLE_ESCAPES.items():
            escaped = escaped.replace(character, escape)
        for spelling in dict.fromkeys((escaped, title)):
            for form in ("NFC", "NFD"):
                try:
                    return self._store.document_row(page_id(unicodedata.normalize(form, spelling)))
                except KeyError:
                    continue
        return None

    def film(self, page: int) -> int | None:
        """The page ``X (film)`` of a page ``X``."""
        return self.page(f"{page_title(self.name(page))} (film)")

    def name(self, page: int) -> str:
        """A page's title as its file spells it.

        Raises:
            EpicqaError: the document is none of FEVER's pages.
        """
        document_id = self._store.document_id(page)
        try:
            if page_id(name := page_of(document_id)) == document_id:
                return name
        except UnicodeDecodeError:
            pass
        raise self._other(document_id)

    def page_of_row(self, row: int) -> int:
        """The page that a sentence is of."""
        return int(self._store.context_document[self._store.sentence_context[row]])

    def rows(self, page: int) -> list[int]:
        """A page's sentences, by line.

        Raises:
            EpicqaError: the document is none of FEVER's pages: two of its sentences have one number.
        """
        contexts = self._store.document_first[page : page + 2]
        first, last = self._store.context_first[contexts].tolist()
        if (np.diff(self._store.sentence_number[first:last]) <= 0).any():
            raise self._other(self._store.document_id(page))
        return list(range(first, last))

    def row(self, sentence: Sentence) -> int | None:
        """A sentence's row; None, no such."""
        page = self.page(sentence.page)
        rows = self.rows(page) if page is not None else ()
        return next((row for row in rows if self._store.sentence_number[row] == sentence.line), None)

    def premise(self, row: int) -> Premise:
        """A sentence as a claim is held against it."""
        name = self.name(self.page_of_row(row))
        sentence = Sentence(name, int(self._store.sentence_number[row]))
        return Premise(sentence, f"[ {page_title(name)} ] {self._store.sentence_text(row)}")

    def _other(self, document_id: str) -> EpicqaError:
        return EpicqaError(
            f"index {self._name!r}: document {document_id!r:.80} is none of FEVER's pages, "
            "expected an index of wiki-001.jsonl and on"
        )


def entity_pages(wiki: Wiki, claim: str, named: Named | None = None) -> list[int]:
    """The pages whose titles are named entities or capitalised phrases of a claim, in its order, once each.

    Of phrases that begin at one word the longest counts that is a title, and the next begins after it.
    """
    found = [wiki.page(name) for name in (named(claim) if named else ())]
    words = claim.split()
    at = 0
    while at < len(words):
        for end in reversed(list(_ends(words, at))):
            pages = (wiki.page(phrase) for phrase in _phrases(words[at:end]))
            if (page := next((page for page in pages if page is not None), None)) is not None:
                found.append(page)
                at = end - 1
                break
        at += 1
    return [page for page in dict.fromkeys(found) if page is not None]


def _ends(words: Sequence[str], first: int) -> Iterator[int]:
    """Where a capitalised phrase may end, exclusive, that begins at a word."""
    if not _capital(words[first]):
        return
    for at in range(first, min(len(words), first + _WORDS)):
        word = words[at].strip(_EDGES)
        if _capital(words[at]) or word[:1].isdigit():
            # "The" alone is no name.
            if at > first or word.lower() not in _INNER:
                yield at + 1
        elif word not in _INNER:
            return


def _capital(word: str) -> bool:
    return word.lstrip(_EDGES)[:1].isupper()


def _phrases(words: Sequence[str]) -> Iterator[str]:
    """A phrase as it stands, without marks around it, without a possessive's ending."""
    phrase = " ".join(words).lstrip(_EDGES)
    bare = phrase.rstrip(_EDGES)
    yield from dict.fromkeys((phrase, phrase.rstrip(',;:!?"”'), bare, re.sub(r"['’]s?$", "", bare)))


class _Scorer:
    """BM25 of sentences that need not have been searched for, as Lucene has it."""

    def __init__(self, index: Index) -> None:
        self._lucene = index.lucene
        self._store = index.store
        with jvm.calling():
            reader = self._lucene.reader
            self._count = int(reader.numDocs())
            self._length = int(reader.getSumTotalTermFreq(FIELD)) / max(1, self._count)
        self._terms = lru_cache(1 << 15)(self._row_terms)
        self._weight = lru_cache(1 << 15)(self._idf)

    def scores(self, text: str, rows: Iterable[int], *, titles: bool) -> list[float]:
        """The score of each row, a sentence's.

        Args:
            text: what they are compared with.
            rows: of sentences.
            titles: whether a sentence's title counts. How rare a word is, is told with titles either way.
        """
        wanted = Counter(self._lucene.terms(text))
        return [self._score(wanted, self._terms(row, titles)) for row in rows]

    def _score(self, wanted: Counter[str], terms: Counter[str]) -> float:
        norm = K1 * (1 - B + B * terms.total() / self._length)
        return sum(
            count * self._weight(term) * terms[term] / (terms[term] + norm)
            for term, count in wanted.items()
            if term in terms
        )

    def _row_terms(self, row: int, titles: bool) -> Counter[str]:
        title = self._store.title(self._store.context_document[self._store.sentence_context[row]])
        text = self._store.sentence_text(row)
        return Counter(self._lucene.terms(indexed_text(title, text) if titles else text))

    def _idf(self, term: str) -> float:
        frequency = self._lucene.frequency(term)
        return log(1 + (self._count - frequency + 0.5) / (frequency + 0.5))


def _best_pages(wiki: Wiki, rows: Sequence[int], scores: Sequence[float]) -> list[int]:
    """The pages that sentences are of, best first; a sentence that scores nothing was found by its title."""
    of_page: dict[int, list[float]] = {}
    for row, score in zip(rows, scores, strict=True):
        if score > 0:
            of_page.setdefault(wiki.page_of_row(row), []).append(score)
    return _sorted(list(of_page), [sum(sorted(those)[-_BEST:]) for those in of_page.values()])


def _sorted(rows: Sequence[int], scores: Sequence[float]) -> list[int]:
    """Rows by their scores, best first, equal ones in the given order."""
    order = sorted(range(len(rows)), key=lambda place: -scores[place])
    return [rows[place] for place in order]


def _key(sentence: Sentence) -> tuple[str, int]:
    return title_key(sentence.page), sentence.line
