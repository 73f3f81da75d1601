"""Ask one question: passages with their texts and places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from epicqa.config import Config, load_config
from epicqa.errors import EpicqaError
from epicqa.index.build import Index, open_index
from epicqa.pipeline import Pipeline, settle
from epicqa.questions import Question


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that answers.

    Attributes:
        rank: from 1.
        score: higher is better; comparable within one answer only.
        first_id, last_id: its sentences.
        text: its text.
        context: the text of the context around it.
        start, end: where it stands in that, in code points, end exclusive.
        title, url, section: of its document and context, None where the source has none.
    """

    rank: int
    score: float
    first_id: str
    last_id: str
    text: str
    context: str
    start: int
    end: int
    document_id: str
    title: str | None
    url: str | None
    section: str | None


class Asker:
    """An open index that takes questions."""

    def __init__(self, index: Index, config: Config | None = None, *, threads: int = 2) -> None:
        config, self.notes = settle(config or Config(), index)
        self.index = index
        self._config = config
        self._threads = threads

    def ask(
        self, question: str, *, query: str = "", background: str = "", passages: int = 10
    ) -> list[Passage]:
        """The best passages for a question.

        Args:
            question: in plain words.
            query: keywords, if any.
            background: what the asker seeks, if it is known.
            passages: how many at most, 1 to 1000.

        Raises:
            EpicqaError: the question is empty.
        """
        if not question.strip():
            raise EpicqaError(
                'the question is empty, expected text such as "how long does it live on steel?"'
            )
        pipeline = Pipeline(self.index, replace(self._config, depth=passages), threads=self._threads)
        asked = Question("ASKED", *(_unicode(text.strip()) for text in (question, query, background)))
        (answer,) = pipeline.answer([asked])
        found = answer.passages
        return [
            self._passage(rank, int(first), int(last), float(score))
            for rank, (first, last, score) in enumerate(
                zip(found.first, found.last, found.score, strict=True), 1
            )
        ]

    def _passage(self, rank: int, first: int, last: int, score: float) -> Passage:
        store = self.index.store
        context = int(store.sentence_context[first])
        document = int(store.context_document[context])
        text = store.context_text(context)
        start, end = int(store.sentence_start[first]), int(store.sentence_end[last])
        return Passage(
            rank,
            score,
            store.sentence_id(first),
            store.sentence_id(last),
            text[start:end],
            text,
            start,
            end,
            store.document_id(document),
            store.title(document),
            store.url(document),
            store.section(context),
        )


def _unicode(text: str) -> str:
    """A text without lone surrogates, as undecodable bytes of a command line become, which no model takes."""
    return text.encode("utf-8", "replace").decode()


def open_asker(name: str, *, threads: int = 2, **settings: Any) -> Asker:
    """Open an index for questions.

    Args:
        name: of the index.
        threads: for searching.
        settings: of ``Config``, by name, such as ``diversity="mmr"``.

    Raises:
        EpicqaError: the index cannot be opened, or a setting is wrong.
    """
    return Asker(open_index(name), load_config(None, settings), threads=threads)
