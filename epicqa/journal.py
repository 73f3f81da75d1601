"""The answers of a run under way, on disk, so that an interrupted run goes on."""

from __future__ import annotations

from typing import Any

import orjson

from epicqa.files import cache_folder
from epicqa.pipeline import Answer
from epicqa.ranking import Ranking


class Journal:
    """Answers, a JSON line each, in ``runs/KEY.jsonl`` of the cache.

    Attributes:
        path: the file; it need not be there.
        done: the answers noted so far, by question id.
    """

    def __init__(self, key: str) -> None:
        self.path = cache_folder() / "runs" / f"{key}.jsonl"
        self.done: dict[str, Answer] = {}
        try:
            data = self.path.read_bytes()
        except OSError:
            data = b""
        self._cut = bool(data) and not data.endswith(b"\n")
        for line in data.splitlines():
            try:
                noted = orjson.loads(line)
                passages = Ranking(noted["first"], noted["last"], noted["score"])
                self.done[noted["id"]] = Answer(noted["id"], passages, noted["reranked"])
            except (ValueError, KeyError, TypeError):
                # A line that a kill cut short; its question is answered again.
                continue

    def note(self, answer: Answer) -> None:
        """Add an answer."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content: dict[str, Any] = {
            "id": answer.question_id,
            "first": answer.passages.first,
            "last": answer.passages.last,
            "score": answer.passages.score,
            "reranked": answer.reranked,
        }
        line = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"
        with self.path.open("ab") as journal:
            journal.write(b"\n" + line if self._cut else line)
        self._cut = False

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
