"""The built corpus on disk: file names, columns, version.

A corpus folder holds three Arrow files of one record batch each, ``report.jsonl`` and, written last,
``corpus.json``. An absent title, url or section is the empty text. List columns of nulls carry only
their offsets: which rows of the next file are theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from epicqa.errors import EpicqaError

VERSION = 1

SUMMARY = "corpus.json"
REPORT = "report.jsonl"
SHARDS = "shards"
SPILLS = "merge"

DOCUMENTS = pa.schema(
    [
        ("document_id", pa.large_string()),
        ("title", pa.large_string()),
        ("url", pa.large_string()),
        ("metadata", pa.large_string()),
        ("contexts", pa.large_list(pa.null())),
        # Ids by hash: ``sorted_hash`` ascends, ``sorted_row`` is the document that has it.
        ("sorted_hash", pa.uint64()),
        ("sorted_row", pa.int32()),
    ]
)
CONTEXTS = pa.schema(
    [
        ("document", pa.int32()),
        ("number", pa.int32()),
        ("section", pa.large_string()),
        ("text", pa.large_string()),
        ("sentences", pa.large_list(pa.null())),
    ]
)
SENTENCES = pa.schema(
    [
        ("context", pa.int32()),
        ("number", pa.int32()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        # The same span in the bytes of the context's UTF-8 text.
        ("byte_start", pa.int32()),
        ("byte_end", pa.int32()),
    ]
)
TABLES = {"documents": DOCUMENTS, "contexts": CONTEXTS, "sentences": SENTENCES}


def table_path(folder: Path, table: str) -> Path:
    return folder / f"{table}.arrow"


def shard_path(folder: Path, number: int) -> Path:
    return folder / SHARDS / f"shard-{number:06d}.arrow"


def read_summary(folder: Path) -> dict[str, Any]:
    """What ``corpus.json`` says.

    Raises:
        EpicqaError: it is missing, damaged or of another version.
    """
    path = folder / SUMMARY
    try:
        found: dict[str, Any] = orjson.loads(path.read_bytes())
        version = found["version"]
    except FileNotFoundError:
        raise EpicqaError(f"{folder}: no corpus here or its build did not finish; build it again") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EpicqaError(f"{path}: damaged ({error}); build the corpus again") from None
    if version != VERSION:
        raise EpicqaError(f"{path}: corpus format {version!r}, expected {VERSION}; build the corpus again")
    return found


def numbers(array: pa.Array) -> NDArray[Any]:
    """A numeric column without a copy; pyarrow's ``to_numpy`` first imports pandas where it is installed."""
    kind = array.type.to_pandas_dtype()
    if not len(array):
        return np.empty(0, kind)
    whole = np.frombuffer(array.buffers()[1], kind, array.offset + len(array))
    return whole[array.offset :]


def offsets(array: pa.LargeStringArray | pa.LargeListArray) -> NDArray[np.int64]:
    """Where each text or list begins, and where the last one ends: int64[n + 1]."""
    if not len(array):
        return np.zeros(1, np.int64)
    whole = np.frombuffer(array.buffers()[1], np.int64, array.offset + len(array) + 1)
    return whole[array.offset :]
