"""What long work has done so far, on disk, so that it goes on where it was interrupted."""

from __future__ import annotations

from typing import Any

import orjson

from epicqa.files import cache_folder
from epicqa.pipeline import Answer
from epicqa.ranking import Ranking


class Lines:
    """JSON objects, a line each, in ``KIND/KEY.jsonl`` of the cache.

    Attributes:
        path: the file; it need not be there.
        found: the objects noted before.
    """

    def __init__(self, kind: str, key: str) -> None:
        self.path = cache_folder() / kind / f"{key}.jsonl"
        self.found: list[Any] = []
        try:
            data = self.path.read_bytes()
        except OSError:
            data = b""
        self._cut = bool(data) and not data.endswith(b"\n")
        for line in data.splitlines():
            try:
                self.found.append(orjson.loads(line))
            except ValueError:
                # A line that a kill cut short; its work is done again.
                continue

    def note(self, record: dict[str, Any]) -> None:
        """Add an object; NumPy arrays in it become lists."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n"
        with self.path.open("ab") as journal:
            journal.write(b"\n" + line if self._cut else line)
        self._cut = False

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class Journal:
    """The answers of a run under way.

    Attributes:
        path: the file; it need not be there.
        done: the answers noted so far, by question id.
    """

    def __init__(self, key: str) -> None:
        self._lines = Lines("runs", key)
        self.path = self._lines.path
        self.done: dict[str, Answer] = {}
        for noted in self._lines.found:
            try:
                passages = Ranking(noted["first"], noted["last"], noted["score"])
                self.done[noted["id"]] = Answer(noted["id"], passages, noted["reranked"])
            except (ValueError, KeyError, TypeError):
                continue

    def note(self, answer: Answer) -> None:
        """Add an answer."""
        self._lines.note(
            {
                "id": answer.question_id,
                "first": answer.passages.first,
                "last": answer.passages.last,
                "score": answer.passages.score,
                "reranked": answer.reranked,
            }
        )

    def remove(self) -> None:
        self._lines.remove()
