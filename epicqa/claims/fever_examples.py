"""What a model that labels FEVER's claims learns from: one premise, or five at once.

Malon, "Team Papelo: Transformer Networks at FEVER", FEVER workshop 2018, names four sets:

- ``one``: a claim and one sentence. Of claims with evidence each gold sentence, with the claim's label; of
  others a sentence of the pages that were retrieved, as `NOINFO`.
- ``title-one``: the same, the sentence after its page's title, ``[ Title ] sentence``.
- ``title-five``: a claim and the five sentences that retrieval takes for the best, with their titles, read at
  once, with the claim's label, whether the evidence is among them or not.
- ``title-five-oracle``: the same, with the evidence among the five, in place of the last retrieved ones.

Some claims need two sentences together; the sets of one premise have these one by one, too, as in use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from epicqa.claims.examples import Example, together
from epicqa.claims.fever import Claim, check_labelled, title_key
from epicqa.claims.pages import PAGES, SENTENCES, Named, Parts, Premise, Wiki, premises
from epicqa.claims.scifact import NOINFO
from epicqa.corpus.sources.fever import page_title
from epicqa.index.build import Index

ONE = "one"
TITLE_ONE = "title-one"
TITLE_FIVE = "title-five"
TITLE_FIVE_ORACLE = "title-five-oracle"
SETS = (ONE, TITLE_ONE, TITLE_FIVE, TITLE_FIVE_ORACLE)


def fever_examples(
    claims: Sequence[Claim],
    index: Index,
    which: str,
    *,
    pages: int = PAGES,
    named: Named | None = None,
    threads: int = 2,
    seed: int = 1,
) -> list[Example]:
    """One of `SETS`, in the claims' order.

    Of `NOINFO` the sets of one premise have one sentence a claim, drawn by the seed and the claim from its
    retrieved pages, read whole. A claim of which nothing is retrieved, or none of whose evidence the index
    has, gives no example where it would need that.

    Args:
        claims: with labels and evidence, different numbers.
        index: of FEVER's pages.
        which: one of `SETS`.
        pages: as of `epicqa.claims.pages.each_premises`, as ``named`` and ``threads``.
        named: tells named entities.
        threads: for searching.
        seed: of what is drawn.

    Returns:
        Examples without rationales. Claims of the same text, or with evidence on the same page, are of one
        group.

    Raises:
        EpicqaError: a claim has no label; as `epicqa.claims.pages.premises`.
        ValueError: no such set.
    """
    if which not in SETS:
        raise ValueError(f"set {which!r}, expected one of {', '.join(SETS)}")
    check_labelled(claims)
    wiki = Wiki(index)
    one = which in (ONE, TITLE_ONE)
    asked = [claim for claim in claims if claim.label == NOINFO] if one else claims
    retrieved = premises(asked, index, Parts(articles=one), pages=pages, named=named, threads=threads)
    examples = []
    for claim, group in zip(claims, _groups(claims), strict=True):
        those = retrieved.get(claim.claim_id, ())
        if which in (TITLE_FIVE, TITLE_FIVE_ORACLE):
            gold = gold_premises(wiki, claim) if which == TITLE_FIVE_ORACLE else ()
            five = tuple(premise.text for premise in with_gold(gold, those))
            texts = [five] if five else []
        else:
            read = gold_premises(wiki, claim) or _drawn(those, f"{seed}\0{claim.claim_id}\0{claim.text}")
            texts = [(premise.text if which == TITLE_ONE else _bare(premise),) for premise in read]
        examples += [Example(claim.text, sentences, claim.label, None, group) for sentences in texts]
    return examples


def gold_premises(wiki: Wiki, claim: Claim) -> tuple[Premise, ...]:
    """A claim's gold sentences that the index has, in the order of its evidence, once each; none of `NOINFO`.

    Raises:
        EpicqaError: as `epicqa.claims.pages.Wiki.premise`.
    """
    if claim.label == NOINFO:
        return ()
    places = (place for sentences in claim.evidence for place in sentences)
    rows = dict.fromkeys(row for place in places if (row := wiki.row(place)) is not None)
    return tuple(map(wiki.premise, rows))


def with_gold(gold: Sequence[Premise], retrieved: Sequence[Premise]) -> tuple[Premise, ...]:
    """Five premises at most, the gold among them, in retrieval's order; gold that it lacks comes last.

    So the place of one tells no more than it does in use.
    """
    kept = gold[:SENTENCES]
    others = [one for one in retrieved if one not in kept][: SENTENCES - len(kept)]
    missing = [one for one in kept if one not in retrieved]
    return (*(one for one in retrieved if one in kept or one in others), *missing)


def _drawn(retrieved: Sequence[Premise], key: str) -> tuple[Premise, ...]:
    """A sentence that is as good as random."""
    if not retrieved:
        return ()
    number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    return (retrieved[number % len(retrieved)],)


def _bare(premise: Premise) -> str:
    """The sentence without its title."""
    return premise.text.removeprefix(f"[ {page_title(premise.sentence.page)} ] ")


def _groups(claims: Sequence[Claim]) -> list[str]:
    """Of each claim the text of the first that shares a page of evidence or the text with it."""
    firsts = together(
        [
            claim.text,
            *((title_key(place.page),) for sentences in claim.evidence for place in sentences),
        ]
        for claim in claims
    )
    return [f"claim {claims[first].text}" for first in firsts]
