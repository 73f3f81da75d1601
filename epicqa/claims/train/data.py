"""From files of claims and of pairs to the examples that a kind of model is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from epicqa.claims import fever
from epicqa.claims.examples import (
    Example,
    abstract_examples,
    label_examples,
    rationale_examples,
    split,
)
from epicqa.claims.fever_examples import fever_examples
from epicqa.claims.network import Kind
from epicqa.claims.pages import spacy_entities
from epicqa.claims.pairs import read_claim_pairs
from epicqa.claims.retrieval import K, tfidf
from epicqa.claims.scifact import read_abstracts, read_claims
from epicqa.errors import EpicqaError
from epicqa.index.build import Index

# Sentences of an abstract without evidence that stand for a rationale, as the paper draws them.
_SIMILAR = 2


def training_data(
    kind: Kind,
    corpora: Sequence[tuple[Path, Path]],
    pairs: Sequence[Path] = (),
    *,
    negatives: int,
    share: float,
    seed: int = 1,
    more: Sequence[Example] = (),
) -> tuple[list[Example], list[Example]]:
    """What is trained on and what is held out, see `examples_of`; a group of claims lies in one of the two.

    Held-out claims of a joint model are read with as many abstracts as in use, whatever it is trained with:
    thresholds that are chosen on fewer let too much pass.

    Args:
        kind: of model.
        corpora: as of `examples_of`, as ``pairs``.
        pairs: files.
        negatives: abstracts of other claims to train on with each claim.
        share: of groups held out.
        seed: of what is drawn, and of what is held out.
        more: examples of other files, such as `fever_examples_of`; they follow.

    Raises:
        EpicqaError: as `examples_of` and `epicqa.claims.examples.split`.
    """
    found = examples_of(kind, corpora, pairs, negatives=negatives, seed=seed)
    kept, held = split([*found, *more], share, seed)
    if held and kind == "joint" and corpora and negatives != K - 1:
        found = examples_of(kind, corpora, pairs, negatives=K - 1, seed=seed)
        _, held = split([*found, *more], share, seed)
    return kept, held


def examples_of(
    kind: Kind,
    corpora: Sequence[tuple[Path, Path]],
    pairs: Sequence[Path] = (),
    *,
    negatives: int = 3,
    seed: int = 1,
) -> list[Example]:
    """All examples, those of claims first, in the files' order.

    A joint model reads whole abstracts, cited ones and the nearest others, and for its label rationales
    alone, too; the two other kinds see what their place in the pipeline gives them.

    Args:
        kind: of model.
        corpora: files of claims with evidence, each with the file of its abstracts.
        pairs: files of claims with one sentence each.
        negatives: abstracts of other claims to read with each claim (``joint``).
        seed: of what is drawn.

    Raises:
        EpicqaError: a file cannot be read or is not as it should be; claims without evidence.
    """
    examples: list[Example] = []
    for claims_path, corpus_path in corpora:
        abstracts = read_abstracts(corpus_path)
        claims = read_claims(claims_path, abstracts)
        if kind == "rationale":
            examples += rationale_examples(claims, abstracts)
            continue
        if kind == "joint":
            # Gold and cited abstracts are among the nearest ones, and are passed over.
            most = max((len(one.cited_doc_ids) + len(one.evidence) for one in claims), default=0)
            near = tfidf(abstracts, claims, negatives + most) if negatives else {}
            examples += abstract_examples(claims, abstracts, near, negatives)
        examples += label_examples(claims, abstracts, _SIMILAR, seed=seed)
    if pairs:
        examples += read_claim_pairs(pairs)
    return examples


def fever_examples_of(
    paths: Sequence[Path], index: Index, which: str, *, threads: int = 2, seed: int = 1
) -> tuple[list[Example], list[str]]:
    """`epicqa.claims.fever_examples.fever_examples` of files of FEVER's claims, in order.

    Args:
        paths: files of claims with labels.
        index: of FEVER's pages.
        which: set.
        threads: for searching.
        seed: of what is drawn.

    Returns:
        Examples, and what the user should know, a line each.

    Raises:
        EpicqaError: a file cannot be read or is not as it should be; there is no example; as
            `fever_examples`.
    """
    named, note = spacy_entities()
    examples = [
        example
        for path in paths
        for example in fever_examples(
            fever.read_claims(path), index, which, named=named, threads=threads, seed=seed
        )
    ]
    if not examples:
        raise EpicqaError(
            f"index {index.name!r} has no sentence for the claims of {', '.join(map(str, paths))}, "
            "expected an index of the pages that they are about"
        )
    return examples, [note] if note else []
