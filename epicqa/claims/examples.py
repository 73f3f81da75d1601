"""What claim models learn from: claims, sentences that may be their evidence, and what is right of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from epicqa.claims.retrieval import check_judged
from epicqa.claims.scifact import NOINFO, Abstract, Claim
from epicqa.models.train.pairs import split_by


@dataclass(frozen=True, slots=True)
class Example:
    """A claim, sentences that may be its evidence, and what is right of them.

    Attributes:
        claim: its text.
        sentences: in the abstract's order; may be none.
        label: `SUPPORTS`, `REFUTES` or `NOINFO`; None where it is not to be learned.
        rationale: of each sentence, whether it is in a rationale; None where it is not to be learned.
        group: what must not be parted between training and validation.
    """

    claim: str
    sentences: tuple[str, ...]
    label: str | None
    rationale: tuple[bool, ...] | None
    group: str


def abstract_examples(
    claims: Sequence[Claim],
    abstracts: Mapping[int, Abstract],
    retrieved: Mapping[int, Sequence[int]],
    negatives: int,
) -> list[Example]:
    """Claims with whole abstracts, for models that select and label at once.

    Of each claim, in this order: abstracts with evidence, with label and the sentences of all rationales;
    cited ones without, and the first retrieved that are neither, as `NOINFO` without a rationale.

    Args:
        claims: with evidence.
        abstracts: the corpus; all documents are of it, as `epicqa.claims.scifact.read_claims` checks.
        retrieved: claim -> documents, best first; a claim that is missing has none.
        negatives: retrieved abstracts of each claim, as many as there are.

    Raises:
        EpicqaError: claims without evidence, as test files have.
    """
    check_judged(claims)
    examples = []
    for claim, group in zip(claims, _groups(claims), strict=True):
        known = dict.fromkeys([*claim.evidence, *claim.cited_doc_ids])
        others = [doc_id for doc_id in retrieved.get(claim.claim_id, ()) if doc_id not in known]
        for doc_id in [*known, *others[:negatives]]:
            label = claim.evidence[doc_id][0].label if doc_id in claim.evidence else NOINFO
            sentences = abstracts[doc_id].sentences
            examples.append(
                Example(claim.text, sentences, label, _flags(claim, doc_id, len(sentences)), group)
            )
    return examples


def rationale_examples(
    claims: Sequence[Claim], abstracts: Mapping[int, Abstract], *, cited: bool = False
) -> list[Example]:
    """Claims with one sentence each, for models that select rationales; there is no label.

    All sentences of the abstracts with evidence, in the abstract's order, as the published models were
    trained: Wadden et al. 2020, section 5; allenai/scifact, ``verisci/training/rationale_selection``.

    Args:
        claims: with evidence.
        abstracts: the corpus, as in `abstract_examples`.
        cited: those of cited abstracts without evidence, too; none of them is in a rationale.

    Raises:
        EpicqaError: claims without evidence, as test files have.
    """
    check_judged(claims)
    examples = []
    for claim, group in zip(claims, _groups(claims), strict=True):
        for doc_id in dict.fromkeys([*claim.evidence, *(claim.cited_doc_ids if cited else ())]):
            sentences = abstracts[doc_id].sentences
            flags = _flags(claim, doc_id, len(sentences))
            examples += [
                Example(claim.text, (sentence,), None, (flag,), group)
                for sentence, flag in zip(sentences, flags, strict=True)
            ]
    return examples


def label_examples(
    claims: Sequence[Claim], abstracts: Mapping[int, Abstract], k: int, *, seed: int = 1
) -> list[Example]:
    """Claims with the sentences of one rationale, for models that label; which sentences is not asked.

    Of abstracts with evidence each rationale with its label, in the abstract's order. Of cited ones without,
    in place of a rationale, the sentences most similar to the claim, as `NOINFO`: from one to k of them, a
    number drawn by the seed, the claim and the document, so that it does not tell the label. Abstracts
    without sentences give none. After Wadden et al. 2020, section 5; their published code (allenai/scifact,
    ``verisci/training/label_prediction``) draws one or two sentences, and any of the abstract.

    Args:
        claims: with evidence.
        abstracts: the corpus, as in `abstract_examples`.
        k: sentences of an abstract without evidence at most, 1 or more.
        seed: of the numbers drawn.

    Raises:
        EpicqaError: claims without evidence, as test files have.
    """
    check_judged(claims)
    examples = []
    for claim, group in zip(claims, _groups(claims), strict=True):
        for doc_id in dict.fromkeys([*claim.evidence, *claim.cited_doc_ids]):
            sentences = abstracts[doc_id].sentences
            chosen = [(sorted(one.sentences), one.label) for one in claim.evidence.get(doc_id, ())]
            if not chosen and sentences:
                drawn = 1 + _drawn(f"{seed}\0{doc_id}\0{claim.text}") % k
                chosen = [(_most_similar(claim.text, sentences, drawn), NOINFO)]
            examples += [
                Example(claim.text, tuple(sentences[place] for place in places), label, None, group)
                for places, label in chosen
            ]
    return examples


def split(examples: Sequence[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Examples for training and examples held out, in their order; a group lies in one of the two.

    Raises:
        EpicqaError: as `epicqa.models.train.pairs.split_by`, which says how it chooses.
    """
    return split_by(examples, lambda one: one.group, share, seed)


def fingerprint(examples: Iterable[Example]) -> str:
    """The hex SHA-256 of the examples in their order."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(json.dumps(astuple(example)).encode() + b"\n")
    return digest.hexdigest()


def together(keys: Iterable[Collection[Hashable]]) -> list[int]:
    """Of each item the first one that it belongs with: that shares a key with it, or with one that does so.

    Args:
        keys: of each item; one without any belongs with none.
    """
    first: list[int] = []
    item_of: dict[Hashable, int] = {}

    def root(item: int) -> int:
        while first[item] != item:
            first[item] = first[first[item]]
            item = first[item]
        return item

    for item, its_keys in enumerate(keys):
        first.append(item)
        for key in its_keys:
            one, other = root(item), root(item_of.setdefault(key, item))
            first[max(one, other)] = min(one, other)
    return [root(item) for item in range(len(first))]


def _groups(claims: Sequence[Claim]) -> list[str]:
    """Of each claim the text of the first that shares an abstract with it, as a claim and its negation do.

    Numbers would not do: each data set counts from 0.
    """
    firsts = together([claim.text, *claim.cited_doc_ids, *claim.evidence] for claim in claims)
    return [f"claim {claims[first].text}" for first in firsts]


def _flags(claim: Claim, doc_id: int, count: int) -> tuple[bool, ...]:
    gold = {sentence for one in claim.evidence.get(doc_id, ()) for sentence in one.sentences}
    return tuple(place in gold for place in range(count))


def _most_similar(claim: str, sentences: Sequence[str], k: int) -> list[int]:
    """Places of the k sentences of the highest cosine of TF-IDF, in order; of equals the earlier.

    Weights are of the abstract alone, English stop words left out, as the published baseline has them
    (allenai/scifact, ``verisci/inference/rationale_selection/tfidf.py``).
    """
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(stop_words="english")
    try:
        vectors = vectorizer.fit_transform(sentences)
    except ValueError:
        # No word but stop words.
        return list(range(min(k, len(sentences))))
    scores = (vectors @ vectorizer.transform([claim]).T).toarray()[:, 0]
    return sorted(np.argsort(-scores, kind="stable")[:k].tolist())


def _drawn(key: str) -> int:
    """A whole number that is as good as random."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
