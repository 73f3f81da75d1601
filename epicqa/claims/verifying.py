"""A claim in plain words: the abstracts of an index that support or refute it, and by which sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

from epicqa.claims.encoding import ClaimInput, windows_of
from epicqa.claims.model import ClaimModel
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.parts import part_of
from epicqa.claims.retrieval import K, find_documents
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.system import Verdict, check_models, verify
from epicqa.config import Config
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.index.build import Index, Progress
from epicqa.normal import is_unicode
from epicqa.streams import read_whole

NOTE = "For research only: a model's labels, which may be wrong; no medical advice."
"""What is said with every answer."""

MOST_SENTENCES = 64
"""Sentences of an abstract that are read: of parsed papers one in a hundred has more, not all its own."""

_EXPECTED = 'expected text such as "Cats are carriers of SARS-CoV-2."'


@dataclass(frozen=True, slots=True)
class ScoredSentence:
    """A sentence that was read: its probability of being in a rationale, and whether it was taken for one."""

    sentence_id: str
    text: str
    score: float
    rationale: bool


@dataclass(frozen=True, slots=True)
class LabelledAbstract:
    """What the model says of a claim by an abstract.

    Attributes:
        document_id: of the collection.
        title, url: None where the source has none.
        part: what was read of the document, see `epicqa.claims.parts`.
        label: `SUPPORTS`, `NOINFO` or `REFUTES`.
        probabilities: of each label.
        sentences: in the abstract's order; one that is `NOINFO` has no rationale.
    """

    document_id: str
    title: str | None
    url: str | None
    part: str
    label: str
    probabilities: dict[str, float]
    sentences: tuple[ScoredSentence, ...]

    @property
    def rationale(self) -> str:
        """The rationale's sentences in one text, with "..." where others stand between two of them."""
        places = [place for place, one in enumerate(self.sentences) if one.rationale]
        gaps = [" " if after == place + 1 else " ... " for place, after in pairwise(places)]
        texts = [self.sentences[place].text for place in places]
        return "".join(map(add, texts, [*gaps, ""]))


@dataclass(frozen=True, slots=True)
class Verified:
    """A claim and all abstracts that were read for it, in the order found."""

    claim: str
    abstracts: tuple[LabelledAbstract, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Label -> abstracts of it."""
        counted = Counter(one.label for one in self.abstracts)
        return {label: counted[label] for label in LABEL_ORDER}


def verify_claims(
    index: Index,
    claims: Sequence[str],
    model: ClaimModel,
    k: int = K,
    config: Config | None = None,
    *,
    threads: int = 2,
    progress: Progress | None = None,
) -> list[Verified]:
    """Find abstracts for each claim, and label them.

    Args:
        index: of any documents; one without an abstract is read at its beginning.
        claims: in plain words.
        model: a joint one.
        k: abstracts of a claim, at least 1.
        config: how to search, see `epicqa.claims.retrieval.find_documents`.
        threads: for searching.
        progress: told how far each step is.

    Raises:
        EpicqaError: as `check_claims` and `epicqa.claims.retrieval.settled`.
    """
    check_claims(claims, model)

    def found(done: int, total: int) -> None:
        if progress:
            progress("finding abstracts", done, total)

    verified: list[Verified] = []
    documents = find_documents(index, claims, k, config, threads=threads, progress=found)
    for claim, rows in zip(claims, documents, strict=True):
        verified.append(_verified(index.store, claim.strip(), rows, model))
        if progress:
            progress("verifying claims", len(verified), len(claims))
    return verified


def check_claims(claims: Sequence[str], model: ClaimModel, selects: bool = True) -> None:
    """Refuse, before the work, claims that the model cannot read, and a model that is not joint.

    Args:
        claims: in plain words.
        model: what is to read them.
        selects: whether it selects rationales, too; else it is enough that it labels.

    Raises:
        EpicqaError: a claim is empty, not Unicode or too long; as `epicqa.claims.system.check_models`.
    """
    check_models(model if selects else None, model)
    for claim in claims:
        if not claim.strip():
            raise EpicqaError(f"the claim is empty, {_EXPECTED}")
        if not is_unicode(claim):
            raise EpicqaError(f"the claim {claim[:40]!r} is not Unicode, {_EXPECTED}")
    windows_of(
        model.tokenizer, [ClaimInput(claim.strip(), ()) for claim in claims], model.settings.max_length
    )


def read_claim_lines(path: Path) -> list[str]:
    """Claims of a text file, one a line; blank lines are passed over.

    Args:
        path: UTF-8, plain or compressed (.gz, .xz, .zst).

    Raises:
        EpicqaError: the file cannot be read, is not UTF-8, or has no claim.
    """
    lines = read_whole(path, "a claim a line").decode().split("\n")
    claims = [claim for line in lines if (claim := line.strip())]
    if not claims:
        raise EpicqaError(f"{path}: empty, expected a claim a line")
    return claims


def summary(verified: Verified) -> str:
    """What the abstracts say together, in a sentence."""
    total = len(verified.abstracts)
    counts = verified.counts
    said = [
        f"{count} {verb}{'s' if count == 1 else ''} it"
        for label, verb in ((SUPPORTS, "support"), (REFUTES, "refute"))
        if (count := counts[label])
    ]
    if said:
        return f"Of {total} {'abstract' if total == 1 else 'abstracts'} found, {' and '.join(said)}."
    if not total:
        return f"{NOINFO}: no abstract was found."
    if total == 1:
        return f"{NOINFO}: the one abstract found does not say enough to support or refute it."
    return f"{NOINFO}: none of the {total} abstracts found says enough to support or refute it."


def as_record(verified: Verified, index: Index) -> dict[str, Any]:
    """A claim and its abstracts for JSON."""
    return {
        "claim": verified.claim,
        "index": index.name,
        "verdict": verified.counts,
        "abstracts": [asdict(one) for one in verified.abstracts],
        "note": NOTE,
    }


def _verified(store: CorpusStore, claim: str, documents: Sequence[int], model: ClaimModel) -> Verified:
    parts = [part_of(store, document) for document in documents]
    rows = [part.rows[:MOST_SENTENCES].tolist() for part in parts]
    texts = [tuple(map(store.sentence_text, one)) for one in rows]
    verdicts = verify([ClaimInput(claim, one) for one in texts], model, model)
    return Verified(
        claim,
        tuple(
            LabelledAbstract(
                store.document_id(document),
                store.title(document),
                store.url(document),
                part.name,
                verdict.label,
                dict(zip(LABEL_ORDER, verdict.probabilities.tolist(), strict=True)),
                _sentences([store.sentence_id(row) for row in read], text, verdict),
            )
            for document, part, read, text, verdict in zip(
                documents, parts, rows, texts, verdicts, strict=True
            )
        ),
    )


def _sentences(ids: Sequence[str], texts: Sequence[str], verdict: Verdict) -> tuple[ScoredSentence, ...]:
    # A model that selects tells of every sentence.
    assert verdict.scores is not None
    rationale = set(verdict.sentences) if verdict.label != NOINFO else set()
    return tuple(
        ScoredSentence(sentence_id, text, score, place in rationale)
        for place, (sentence_id, text, score) in enumerate(
            zip(ids, texts, verdict.scores.tolist(), strict=True)
        )
    )
