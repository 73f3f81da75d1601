"""Why a ranking scores what it scores: one question, passage by passage, beside the ideal ranking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.measures.ideal import Ideal
from epicqa.measures.judgments import JudgedQuestion, nugget_bits
from epicqa.measures.locate import Located, locate
from epicqa.measures.ndns import DEFINITIONS, DISCOUNT, Gains, Variant, gains
from epicqa.measures.nuggets import first_ranks
from epicqa.runs.model import Passages, Run

MAX_SENTENCES = 200
"""A passage of more sentences is explained by those that state a nugget, at most so many of them."""

MAX_PLACES = 20
"""Sentences named at most as the places where a nugget is stated."""

NOVEL, REDUNDANT, FILLER, UNJUDGED = "novel", "redundant", "filler", "unjudged"


@dataclass(frozen=True, slots=True)
class Nugget:
    """A nugget's id and text."""

    nugget_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a passage.

    Attributes:
        sentence_id: canonical.
        kind: ``novel`` (states a nugget that no earlier passage states), ``redundant`` (only nuggets of
            earlier passages), ``filler`` (none), ``unjudged`` (its context has no judgments: it cannot gain).
        new, seen: the ids of its nuggets that earlier passages do not, and do, state.
    """

    sentence_id: str
    kind: str
    new: tuple[str, ...]
    seen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IdealPassage:
    """A passage of the ideal ranking; gains and nuggets as in `ExplainedPassage`."""

    rank: int
    first_id: str
    last_id: str
    gain: float
    new: tuple[Nugget, ...]
    dns: float
    ndns: float


@dataclass(frozen=True, slots=True)
class ExplainedPassage:
    """One passage of the ranking.

    Attributes:
        rank: from 1, in the order in which the definition reads the run.
        line: in the run file.
        score: as written there.
        first_id, last_id: its ends.
        note: what is odd about it; empty, nothing.
        novel, redundant, filler, unjudged: how many of its sentences are of each kind.
        sentences: all of them; where there are more than `MAX_SENTENCES`, those that state a nugget.
        new: nuggets that no earlier passage states.
        gain: NS.
        discount: log2(rank + 1).
        discounted: gain / discount.
        dns: sum of discounted gains up to this rank.
        ndns: dns / DNS of the whole ideal ranking.
        ideal: the ideal's passage at this rank, None below its end.
    """

    rank: int
    line: int
    score: str
    first_id: str
    last_id: str
    note: str
    novel: int
    redundant: int
    filler: int
    unjudged: int
    sentences: tuple[Sentence, ...]
    new: tuple[Nugget, ...]
    gain: float
    discount: float
    discounted: float
    dns: float
    ndns: float
    ideal: IdealPassage | None

    @property
    def length(self) -> int:
        """Its sentences, listed or not."""
        return self.novel + self.redundant + self.filler + self.unjudged


@dataclass(frozen=True, slots=True)
class NuggetFate:
    """What became of a nugget.

    Attributes:
        nugget_id, text: the nugget.
        rank: of the first passage that states it, from 1; None, none of the ranking does.
        ideal_rank: the same in the ideal ranking.
        n_places: how many sentences state it.
        places: their ids, the first `MAX_PLACES`.
    """

    nugget_id: str
    text: str
    rank: int | None
    ideal_rank: int | None
    n_places: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One question of a run in one measure.

    Attributes:
        tag: the run's.
        question_id: the question.
        definition, measure: which value it explains.
        ndns: that value, of the whole ranking.
        dns: of the whole ranking.
        ideal_dns: of the ideal ranking.
        in_run: whether the run has passages for the question; without, it scores 0.
        n_passages: how many count, at most 1000.
        passages: the first of them, best first.
        n_ideal: passages of the ideal ranking.
        ideal: the first of them, best first.
        nuggets: every nugget of the question, in the order of the judgments.
    """

    tag: str
    question_id: str
    definition: str
    measure: str
    ndns: float
    dns: float
    ideal_dns: float
    in_run: bool
    n_passages: int
    passages: tuple[ExplainedPassage, ...]
    n_ideal: int
    ideal: tuple[IdealPassage, ...]
    nuggets: tuple[NuggetFate, ...]

    @property
    def missed(self) -> tuple[NuggetFate, ...]:
        """Nuggets that some sentence states and no passage of the ranking does."""
        return tuple(nugget for nugget in self.nuggets if nugget.n_places and nugget.rank is None)


def explain(
    run: Run,
    judged: JudgedQuestion,
    *,
    definition: str = "published",
    measure: str = "exact",
    ideal: Ideal,
    depth: int = 20,
) -> Explanation:
    """Explain one value of `epicqa.measures.score_run`: the running NDNS of the last rank is that value.

    Args:
        run: the run.
        judged: the question's judgments.
        definition: ``published`` or ``tac2020``.
        measure: one of the definition's.
        ideal: the ideal ranking in that measure, see `epicqa.measures.ideal`.
        depth: ranks to explain one by one; what is summed over all ranks does not depend on it.

    Raises:
        EpicqaError: no such measure, or no sentence states a nugget of the question.
    """
    variant = variant_of(definition, measure)
    if not len(judged.number):
        raise EpicqaError(
            f"{judged.question_id}: no nuggets in the judgments, so no score to explain; "
            "expected a question with some"
        )
    names = _Names(judged)
    best = gains(judged, ideal.context, ideal.first, ideal.last, [variant])
    located = locate(run, judged, definition)
    if located is None:
        nothing = np.zeros(0, dtype=np.int64)
        located = Located(nothing, nothing, nothing, nothing)
    found = gains(judged, *located.placed, [variant])
    running = (found.gain[0] / DISCOUNT[found.rank]).cumsum()
    total = float(running[-1]) if len(running) else 0.0
    ideal_passages = _ideal_passages(names, ideal, best, depth)
    passages = run.questions.get(judged.question_id)
    described: tuple[ExplainedPassage, ...] = ()
    if passages is not None:
        ranking = _Ranking(
            run, passages, names, definition, located, found, running, ideal_passages, ideal.dns
        )
        described = tuple(ranking.passage(rank) for rank in range(min(depth, len(located.position))))
    return Explanation(
        tag=run.tag,
        question_id=judged.question_id,
        definition=definition,
        measure=measure,
        ndns=total / ideal.dns,
        dns=total,
        ideal_dns=ideal.dns,
        in_run=passages is not None,
        n_passages=len(located.position),
        passages=described,
        n_ideal=len(ideal.gain),
        ideal=ideal_passages,
        nuggets=_fates(
            names,
            first_ranks(judged, *located.placed),
            first_ranks(judged, ideal.context, ideal.first, ideal.last),
        ),
    )


def variant_of(definition: str, measure: str) -> Variant:
    """The measure of a definition by its name.

    Raises:
        EpicqaError: the definition has no such measure.
    """
    variants = {variant.name: variant for variant in DEFINITIONS[definition]}
    if measure not in variants:
        raise EpicqaError(
            f"no measure {measure!r} in the {definition} definition, expected one of {', '.join(variants)}"
        )
    return variants[measure]


class _Names:
    """A judged question's contexts and nuggets by position."""

    def __init__(self, judged: JudgedQuestion) -> None:
        self.judged = judged
        self.contexts = list(judged.contexts)
        self.nuggets = [Nugget(nugget_id, text) for nugget_id, text in judged.nuggets.items()]

    def ids(self, mask: NDArray[np.uint64]) -> tuple[str, ...]:
        return tuple(nugget.nugget_id for nugget in self.of(mask))

    def of(self, mask: NDArray[np.uint64]) -> tuple[Nugget, ...]:
        bits = nugget_bits(mask[None], len(self.nuggets))[0]
        return tuple(self.nuggets[i] for i in np.flatnonzero(bits).tolist())

    def sentence_id(self, context: int, number: int) -> str:
        return _sentence_id(self.contexts[context], number)


def _sentence_id(context_id: str, number: int) -> str:
    return f"{context_id}-S{number:03d}"


def _ideal_passages(names: _Names, ideal: Ideal, best: Gains, depth: int) -> tuple[IdealPassage, ...]:
    running = (ideal.gain / DISCOUNT[: len(ideal.gain)]).cumsum()
    # Every passage of an ideal ranking states a nugget, so none is missing from the gains.
    return tuple(
        IdealPassage(
            rank=i + 1,
            first_id=names.sentence_id(int(ideal.context[i]), int(ideal.first[i])),
            last_id=names.sentence_id(int(ideal.context[i]), int(ideal.last[i])),
            gain=float(ideal.gain[i]),
            new=names.of(best.new[i]),
            dns=float(running[i]),
            ndns=float(running[i]) / ideal.dns,
        )
        for i in range(min(depth, len(ideal.gain)))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Ranking:
    """A run's ranking for a question, its gains, and their running sum."""

    run: Run
    passages: Passages
    names: _Names
    definition: str
    located: Located
    found: Gains
    running: NDArray[np.float64]
    ideal: tuple[IdealPassage, ...]
    ideal_dns: float

    def passage(self, rank: int) -> ExplainedPassage:
        """The passage at a rank, from 0."""
        passages, found = self.passages, self.found
        position = int(self.located.position[rank])
        first_id, last_id = self.run.sentence_ids(passages, position)
        context, first, last = (
            int(part[rank]) for part in (self.located.context, self.located.first, self.located.last)
        )
        # Where this rank stands among those that state a nugget, if it is one of them.
        at = int(np.searchsorted(found.rank, rank))
        states = at < len(found.rank) and found.rank[at] == rank
        novel, redundant = (int(found.novel[at]), int(found.redundant[at])) if states else (0, 0)
        new = found.new[at] if states else np.zeros_like(self.names.judged.mask[0])
        seen = np.bitwise_or.reduce(found.new[:at], axis=0)
        reached = at + int(states)
        dns = float(self.running[reached - 1]) if reached else 0.0
        gain = float(found.gain[0, at]) if states else 0.0
        whole = bool(passages.first_context[position] == passages.last_context[position])
        length = max(0, last - first + 1) if whole or self.definition == "tac2020" else 0
        rest = length - novel - redundant
        context_id = first_id.rpartition("-S")[0]
        return ExplainedPassage(
            rank=rank + 1,
            line=int(passages.line[position]),
            score=passages.score_text[position].decode(),
            first_id=first_id,
            last_id=last_id,
            note="" if whole else _across(self.definition),
            novel=novel,
            redundant=redundant,
            filler=rest if context >= 0 else 0,
            unjudged=0 if context >= 0 else rest,
            sentences=_sentences(self.names, context_id, context, range(first, first + length), seen),
            new=self.names.of(new),
            gain=gain,
            discount=float(DISCOUNT[rank]),
            discounted=gain / float(DISCOUNT[rank]),
            dns=dns,
            ndns=dns / self.ideal_dns,
            ideal=self.ideal[rank] if rank < len(self.ideal) else None,
        )


def _across(definition: str) -> str:
    if definition == "tac2020":
        return "its ends lie in two contexts, that of the first one counts"
    return "its ends lie in two contexts, so it gains nothing"


def _sentences(
    names: _Names, context_id: str, context: int, numbers: range, seen: NDArray[np.uint64]
) -> tuple[Sentence, ...]:
    judged = names.judged
    stating: dict[int, NDArray[np.uint64]] = {}
    if context >= 0:
        low, high = judged.context_first[context : context + 2].tolist()
        start, stop = (
            low + int(np.searchsorted(judged.number[low:high], end)) for end in (numbers.start, numbers.stop)
        )
        stating = dict(zip(judged.number[start:stop].tolist(), judged.mask[start:stop], strict=True))
    listed: list[int] = list(numbers) if len(numbers) <= MAX_SENTENCES else list(stating)[:MAX_SENTENCES]
    sentences = []
    for number in listed:
        sentence_id = _sentence_id(context_id, number)
        if number in stating:
            new, old = names.ids(stating[number] & ~seen), names.ids(stating[number] & seen)
            sentences.append(Sentence(sentence_id, NOVEL if new else REDUNDANT, new, old))
        else:
            sentences.append(Sentence(sentence_id, FILLER if context >= 0 else UNJUDGED, (), ()))
    return tuple(sentences)


def _fates(
    names: _Names, first: dict[str, int | None], ideal_first: dict[str, int | None]
) -> tuple[NuggetFate, ...]:
    judged = names.judged
    context = np.repeat(np.arange(len(judged.contexts)), np.diff(judged.context_first))
    states = nugget_bits(judged.mask, len(names.nuggets))
    fates = []
    for i, nugget in enumerate(names.nuggets):
        rows = np.flatnonzero(states[:, i]).tolist()
        places = tuple(
            names.sentence_id(int(context[row]), int(judged.number[row])) for row in rows[:MAX_PLACES]
        )
        fates.append(
            NuggetFate(
                nugget.nugget_id,
                nugget.text,
                first[nugget.nugget_id],
                ideal_first[nugget.nugget_id],
                len(rows),
                places,
            )
        )
    return tuple(fates)
