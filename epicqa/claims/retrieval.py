"""Which abstracts may tell of a claim: by TF-IDF as in SciFact's paper, by the toolkit's search, by the gold.

Each way gives, by claim, documents, best first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epicqa.claims.parts import part_of
from epicqa.claims.scifact import ABSTRACTS, SHAPES, Abstract, Claim, check_output, read_predictions
from epicqa.collection_index import Collection, open_collection
from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.index.build import Index, Progress, open_index
from epicqa.pipeline import Pipeline, settle
from epicqa.questions import Question
from epicqa.ranking import Ranking

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore

Retrieved = dict[int, tuple[int, ...]]
"""Claim -> documents, best first, in the claims' order."""

K = 3
"""Abstracts of a claim: what the paper found best on dev."""

INDEX = "scifact"
"""Name of the corpus's own index."""

CONFIG = Config(reranker="none", bi_encoder="none")
"""How abstracts are searched for unless told otherwise: reranking takes longer and finds no more on dev."""

# Claims compared at once: rows of a dense matrix of all abstracts.
_BATCH = 256


def tfidf(abstracts: Mapping[int, Abstract], claims: Sequence[Claim], k: int = K) -> Retrieved:
    """The k abstracts of the most similar words, as the paper's baseline has them.

    Cosine of TF-IDF vectors of single words and pairs, English stop words left out. An abstract's text is
    title and sentences, with no space between title and first sentence: so the published code has it, and it
    changes rankings. Equal scores, as all are where no word is shared, go by collection order.

    Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020; allenai/scifact,
    ``verisci/inference/abstract_retrieval/tfidf.py``.

    Raises:
        EpicqaError: the abstracts have no word that counts.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(stop_words="english", ngram_range=(1, 2))
    try:
        vectors = vectorizer.fit_transform(
            [abstract.title + " ".join(abstract.sentences) for abstract in abstracts.values()]
        )
    except ValueError:
        raise EpicqaError("the corpus has no words but stop words, expected abstracts in English") from None
    documents = list(abstracts)
    found: Retrieved = {}
    for start in range(0, len(claims), _BATCH):
        batch = claims[start : start + _BATCH]
        scores = (vectorizer.transform([claim.text for claim in batch]) @ vectors.T).toarray()
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k].tolist()
        for claim, rows in zip(batch, order, strict=True):
            found[claim.claim_id] = tuple(documents[row] for row in rows)
    return found


def oracle(claims: Sequence[Claim], cited: bool = False) -> Retrieved:
    """All gold evidence abstracts of each claim, in the file's order.

    A claim without evidence has none, as in the paper's pipeline (Table 4; allenai/scifact,
    ``script/pipeline.sh``). With ``cited`` it has the abstracts that it cites, as where the paper tests
    labelling by itself (Table 3; ``--include-nei`` in ``script/label-prediction.sh``).

    Raises:
        EpicqaError: the evidence is not known.
    """
    check_judged(claims)
    return {
        claim.claim_id: tuple(claim.evidence) or (claim.cited_doc_ids if cited else ()) for claim in claims
    }


def check_judged(claims: Sequence[Claim]) -> None:
    """Refuse claims whose evidence is not known.

    Raises:
        EpicqaError: there is one.
    """
    if unknown := next((claim for claim in claims if not claim.judged), None):
        raise EpicqaError(
            f"claim {unknown.claim_id}: its evidence is not known, expected claims with 'evidence'"
        )


def read_retrieved(
    path: Path, claims: Sequence[Claim], abstracts: Mapping[int, Abstract], k: int | None = None
) -> Retrieved:
    """The first k abstracts of each claim, or all, in a file of the shape `ABSTRACTS`.

    Raises:
        EpicqaError: as `epicqa.claims.scifact.read_predictions`; it has another shape, or lacks a claim.
    """
    read = read_predictions(path, claims, abstracts)
    if read.shape != ABSTRACTS:
        raise EpicqaError(f"{path}: {read.shape}, expected lines of {SHAPES[ABSTRACTS]}")
    found = {one.claim_id: tuple(one.evidence)[:k] for one in read.predictions}
    if missing := next((claim for claim in claims if claim.claim_id not in found), None):
        raise EpicqaError(f"{path}: claim {missing.claim_id} is not there, expected a line for each claim")
    return found


def search(
    index: Index,
    claims: Sequence[Claim],
    k: int = K,
    config: Config | None = None,
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> Retrieved:
    """`find_documents` of claims, by the documents' numbers.

    Raises:
        EpicqaError: a document's id is no number; as `find_documents`.
    """
    texts = [claim.text for claim in claims]
    found = find_documents(index, texts, k, config, threads=threads, progress=progress)
    return {
        claim.claim_id: tuple(_number(index, index.store.document_id(row)) for row in rows)
        for claim, rows in zip(claims, found, strict=True)
    }


def find_documents(
    index: Index,
    claims: Sequence[str],
    k: int = K,
    config: Config | None = None,
    *,
    threads: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[int, ...]]:
    """The first k documents of the passages that answer each claim, taken as a question.

    A document is as good as its best passage in what is read of it, see `epicqa.claims.parts`. Documents
    that have passages elsewhere only follow, as good as the best of those. Equal ones go by collection order.
    There are fewer than k where the passages, as many as the configuration's depth, are of fewer documents.

    Args:
        index: to search.
        claims: what to look for.
        k: documents of a claim, at least 1.
        config: how to search, None: `CONFIG`; its index, questions and data are not looked at.
        threads: for searching; they do not change the result.
        progress: called with the claims done and all there are.

    Returns:
        Rows of the index's documents, best first, a tuple a claim.

    Raises:
        EpicqaError: as `settled`.
    """
    questions = [Question(str(place), claim, "", "") for place, claim in enumerate(claims)]
    found: list[tuple[int, ...]] = []
    for answer in Pipeline(index, settled(config, index)[0], threads=threads).answer(questions):
        found.append(_documents(index.store, answer.passages, k))
        if progress:
            progress(len(found), len(claims))
    return found


def settled(config: Config | None, index: Index) -> tuple[Config, list[str]]:
    """`epicqa.pipeline.settle` for claims, None being `CONFIG`.

    Passages are put in an order of diversity only where the configuration names one: a second abstract that
    says the same is evidence, too.

    Raises:
        EpicqaError: as `epicqa.pipeline.settle`.
    """
    config = config or CONFIG
    return settle(replace(config, diversity=config.diversity or "none"), index)


def search_corpus(
    corpus: Path,
    abstracts: Mapping[int, Abstract],
    claims: Sequence[Claim],
    k: int = K,
    config: Config | None = None,
    *,
    threads: int = 2,
    progress: Progress | None = None,
) -> tuple[Retrieved, list[str]]:
    """`search` in the index that the configuration names, else in the corpus's own, `INDEX`.

    The corpus's own is built first where it is not there. An index may lack abstracts, but have no others.

    Args:
        corpus: the abstracts' file.
        abstracts: what it holds.
        claims: what to look for.
        k: abstracts of a claim, at least 1.
        config: how to search, None: `CONFIG`; its questions and data are not looked at.
        threads: for searching and building; they do not change the result.
        progress: told how far each step is.

    Returns:
        What was found, and what the user should know of it, a line each.

    Raises:
        EpicqaError: as `search`, `lacking`, `epicqa.collection_index.open_collection` and
            `epicqa.index.build.open_index`.
    """
    config = config or CONFIG
    notes: list[str] = []
    if config.index:
        index = open_index(config.index)
    else:
        index, notes = open_collection(Collection(INDEX, (corpus,)), threads=threads, progress=progress)
    if (missing := lacking(index, abstracts)) and config.index:
        notes.append(f"index {index.name!r} lacks {missing:,} abstracts of {corpus}")
    config, given_up = settled(config, index)

    def told(done: int, total: int) -> None:
        if progress:
            progress("finding abstracts", done, total)

    return search(index, claims, k, config, threads=threads, progress=told), notes + given_up


def lacking(index: Index, abstracts: Mapping[int, Abstract]) -> int:
    """How many of the abstracts an index lacks.

    Raises:
        EpicqaError: a document of the index is none of them.
    """
    store = index.store
    known = set(map(str, abstracts))
    for row in range(store.n_documents):
        if (document_id := store.document_id(row)) not in known:
            raise EpicqaError(
                f"index {index.name!r}: document {document_id!r} is none of the corpus, "
                "expected an index of the corpus's abstracts"
            )
    return len(known) - store.n_documents


def write_retrieved(path: Path, found: Mapping[int, Sequence[int]]) -> None:
    """Write abstracts by claim as JSON lines of ``{"claim_id", "doc_ids"}``, whole or not at all.

    Raises:
        EpicqaError: as `epicqa.claims.scifact.check_output`.
    """
    check_output(path, "abstracts")
    lines = (
        json.dumps({"claim_id": claim_id, "doc_ids": list(documents)}) + "\n"
        for claim_id, documents in found.items()
    )
    write_bytes(path, "".join(lines).encode())


def _documents(store: CorpusStore, passages: Ranking, k: int) -> tuple[int, ...]:
    documents = store.context_document[store.sentence_context[passages.first]].tolist()
    read: dict[int, set[int]] = {}
    best: dict[int, tuple[bool, float]] = {}
    for document, first, score in zip(
        documents, passages.first.tolist(), passages.score.tolist(), strict=True
    ):
        if document not in read:
            read[document] = set(part_of(store, document).rows.tolist())
        found = (first in read[document], score)
        best[document] = max(found, best.get(document, found))

    def order(document: int) -> tuple[bool, float, int]:
        is_read, score = best[document]
        return not is_read, -score, document

    # Rows are in collection order.
    return tuple(sorted(best, key=order)[:k])


def _number(index: Index, document_id: str) -> int:
    if not document_id.isdecimal() or str(int(document_id)) != document_id:
        raise EpicqaError(
            f"index {index.name!r}: document {document_id!r}, expected numbers, as SciFact's abstracts have"
        )
    return int(document_id)
