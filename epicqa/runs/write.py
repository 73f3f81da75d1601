"""Write a run file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.ranking import Ranking
from epicqa.runs.model import MAX_DEPTH

if TYPE_CHECKING:
    from epicqa.corpus.store import CorpusStore


def write_run(path: Path, tag: str, rankings: Mapping[str, Ranking], store: CorpusStore) -> None:
    """Write rankings as a run file, whole or not at all, questions in the mapping's order.

    Rank r has score (1001 - r) / 1000 at a fixed width, so that the order by text, by score and by rank is
    one in every tool; the rankings' own scores are not kept.

    Raises:
        EpicqaError: the tag is not one word, or a question has more than 1000 passages.
    """
    if not re.fullmatch(r"\S+", tag):
        raise EpicqaError(f"{path}: run tag {tag!r}, expected one word")
    lines = []
    for question_id, ranking in rankings.items():
        if len(ranking) > MAX_DEPTH:
            raise EpicqaError(
                f"{path}: {question_id}: {len(ranking)} passages, at most {MAX_DEPTH} go in a run"
            )
        for rank, (first, last) in enumerate(
            zip(ranking.first.tolist(), ranking.last.tolist(), strict=True), 1
        ):
            first_id = store.sentence_id(first)
            last_id = first_id if last == first else store.sentence_id(last)
            score = (MAX_DEPTH + 1 - rank) / MAX_DEPTH
            lines.append(f"{question_id}\tQ0\t{first_id}:{last_id}\t{rank}\t{score:.6f}\t{tag}\n")
    write_bytes(path, "".join(lines).encode())
