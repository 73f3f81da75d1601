"""A scorer in plain Python, in the manner of the script that the track released: ids are text, an object a
sentence, for each measure all candidate passages of all contexts, a beam of rankings that each remember their
passages and nuggets, then a pass over the run."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

DEPTH = 1000
MEASURES = {
    "published": ("exact", "partial", "relaxed"),
    "tac2020": ("exact", "partial", "relaxed", "ndcg-exact", "ndcg"),
}


@dataclass
class Sentence:
    """A sentence and the nuggets that it states."""

    sentence_id: str
    nuggets: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Passage:
    """The ids of a passage's first and last sentence."""

    first_id: str
    last_id: str

    @property
    def context_id(self) -> str:
        return self.first_id.rpartition("-S")[0]


@dataclass
class Context:
    """A context's annotated sentences."""

    context_id: str
    sentences: dict[str, Sentence] = field(default_factory=dict)

    def sentence(self, number: int) -> Sentence:
        """The annotated sentence, or one that states nothing."""
        sentence_id = f"{self.context_id}-S{number:03d}"
        return self.sentences.get(sentence_id, Sentence(sentence_id))

    def candidates(self) -> Iterable[Passage]:
        numbers = [_number(sentence_id) for sentence_id in self.sentences]
        for first in range(min(numbers), max(numbers) + 1):
            for last in range(first, max(numbers) + 1):
                yield Passage(f"{self.context_id}-S{first:03d}", f"{self.context_id}-S{last:03d}")


Contexts = dict[str, Context]


@dataclass
class Ranking:
    """A state of the beam."""

    passages: list[Passage] = field(default_factory=list)
    nuggets: set[str] = field(default_factory=set)
    total: float = 0.0


def read_plain_judgments(path: Path) -> dict[str, Contexts]:
    found: dict[str, Contexts] = {}
    for question in json.loads(path.read_bytes()):
        contexts = found.setdefault(question["question_id"], {})
        for annotation in question["annotations"]:
            add_annotation(contexts, annotation["sentence_id"], annotation["nugget_ids"])
    return found


def add_annotation(contexts: Contexts, sentence_id: str, nugget_ids: Iterable[str]) -> None:
    context_id = sentence_id.rpartition("-S")[0]
    context = contexts.setdefault(context_id, Context(context_id))
    context.sentences.setdefault(sentence_id, Sentence(sentence_id)).nuggets.update(nugget_ids)


def read_plain_run(path: Path, definition: str) -> dict[str, list[Passage]]:
    rows: dict[str, list[tuple[Passage, int, str]]] = {}
    with path.open(encoding="utf-8") as handle:
        for line in handle:
            question_id, _, passage, rank, score, _ = line.split()
            rows.setdefault(question_id, []).append((Passage(*passage.split(":")), int(rank), score))
    for passages in rows.values():
        if definition == "tac2020":
            passages.sort(key=lambda row: row[2], reverse=True)
        else:
            passages.sort(key=lambda row: (-float(row[2]), row[1]))
    return {question_id: [row[0] for row in passages[:DEPTH]] for question_id, passages in rows.items()}


def plain_gain(
    context: Context, passage: Passage, seen: set[str], definition: str, measure: str
) -> tuple[float, set[str]]:
    """NS of a passage and all nuggets that it states."""
    stated: set[str] = set()
    novel = redundant = filler = 0
    for number in range(_number(passage.first_id), _number(passage.last_id) + 1):
        nuggets = context.sentence(number).nuggets
        if nuggets - seen:
            novel += 1
        elif nuggets:
            redundant += 1
        else:
            filler += 1
        stated.update(nuggets)
    if measure == "ndcg":
        size = 1
    elif measure in ("exact", "ndcg-exact"):
        size = filler + redundant + novel
    elif definition == "published":
        size = filler + (redundant if measure == "partial" else min(redundant, 1)) + min(novel, 1)
    else:
        size = filler + (0 if measure == "partial" else redundant) + min(novel, 1)
    count = len(stated) if measure.startswith("ndcg") else len(stated - seen)
    return (count * (count + 1) / (count + size) if count else 0.0), stated


def plain_dns(contexts: Contexts, passages: list[Passage], definition: str, measure: str) -> float:
    total, seen = 0.0, set[str]()
    for rank, passage in enumerate(passages, 1):
        context = contexts.get(passage.context_id)
        if definition == "published" and passage.last_id.rpartition("-S")[0] != passage.context_id:
            context = None
        if context is not None:
            gain, stated = plain_gain(context, passage, seen, definition, measure)
            total += gain / math.log2(rank + 1)
            seen |= stated
    return total


def plain_ideal(contexts: Contexts, definition: str, measure: str) -> float:
    passages = [passage for context in contexts.values() for passage in context.candidates()]
    width = 1 if measure.startswith("ndcg") else 10
    beam = [Ranking()]
    for rank in range(1, DEPTH + 1):
        discount = math.log2(rank + 1)
        extended = []
        for ranking in beam:
            used = frozenset(ranking.passages)
            for passage in passages:
                if passage not in used:
                    context = contexts[passage.context_id]
                    gain, stated = plain_gain(context, passage, ranking.nuggets, definition, measure)
                    if gain > 0:
                        extended.append((ranking.total + gain / discount, ranking, passage, stated))
        if not extended:
            break
        beam = [
            Ranking([*ranking.passages, passage], ranking.nuggets | stated, total)
            for total, ranking, passage, stated in heapq.nlargest(width, extended, key=lambda one: one[0])
        ]
    return beam[0].total


def _number(sentence_id: str) -> int:
    return int(sentence_id.rpartition("-S")[2])
