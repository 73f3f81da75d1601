"""Question answering over an epidemic's literature: ranked passages, TAC runs, nugget scores.

    import epicqa
    for passage in epicqa.open_index("sample").ask("how long does the virus survive on steel?"):
        print(passage.text, passage.first_id)

Names are loaded when first used, so that importing this costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PLACES = {
    "BuildOptions": "epicqa.index.build",
    "Config": "epicqa.config",
    "EpicqaError": "epicqa.errors",
    "Passage": "epicqa.asking",
    "Question": "epicqa.questions",
    "Ranking": "epicqa.ranking",
    "build_index": "epicqa.index.build",
    "check_run": "epicqa.runs",
    "make_run": "epicqa.running",
    "read_judgments": "epicqa.measures",
    "read_questions": "epicqa.questions",
    "read_run": "epicqa.runs",
    "score_run": "epicqa.measures",
    "write_run": "epicqa.runs",
}

__all__ = ["__version__", "open_index", *_PLACES]

if TYPE_CHECKING:
    from epicqa.asking import Asker


def open_index(name: str, *, threads: int = 2, **settings: Any) -> Asker:
    """Open an index for questions: ``epicqa.open_index("sample").ask("...")``; see ``epicqa.asking``."""
    from epicqa.asking import open_asker

    return open_asker(name, threads=threads, **settings)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'epicqa' has no attribute {name!r}")
