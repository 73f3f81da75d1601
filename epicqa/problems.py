"""What is wrong, or odd, in a file: one line each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a file, or (``fatal`` false) one thing worth a warning.

    ``kind`` is one word by which like problems are grouped. Without a path the message says the place.
    """

    path: Path | None
    line: int | None
    kind: str
    message: str
    fatal: bool = True

    def __str__(self) -> str:
        if self.path is None:
            return self.message
        place = f"{self.path}" if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.message}"
