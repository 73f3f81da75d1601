"""A collection on disk: documents, two reports, and the mark of a whole one.

The mark is hidden, and the reports are no JSON, so that ``epicqa index`` of the folder reads documents alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

MARK = ".collection.json"
JSONL = "documents.jsonl"
REPORT = "report.tsv"
NEAR_DUPLICATES = "near-duplicates.tsv"

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Collected:
    """What was collected.

    Attributes:
        out: the folder.
        key: hex SHA-256 of what it was made of and how.
        source: the source's name.
        documents, contexts, sentences: in the collection.
        left_out: by kind, what did not become a document.
        near_duplicates: documents and contexts that nearly repeat earlier ones.
        dropped: documents and contexts that were left out for that.
    """

    out: Path
    key: str
    source: str
    documents: int
    contexts: int
    sentences: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    near_duplicates: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def to_json(self, plan: Mapping[str, Any]) -> bytes:
        """The mark's content, with what the collection was made of."""
        counts = {name: value for name, value in asdict(self).items() if name != "out"}
        return orjson.dumps(
            {"format": "epicqa collection", **counts, "plan": plan}, option=orjson.OPT_INDENT_2
        )


def read_collected(folder: Path) -> Collected | None:
    """The collection in a folder, if one is there and whole."""
    try:
        content = orjson.loads((folder / MARK).read_bytes())
        del content["format"], content["plan"]
        return Collected(out=folder, **content)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def file_name(document_id: str) -> str:
    """The name of a document's file: its id where that can be one."""
    name = quote(document_id, safe="!#$&'()+,;=@[]~ ")
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{sha1(document_id.encode(), usedforsecurity=False).hexdigest()}"
    return re.sub(r"^\.", "%2E", name) + ".json"
