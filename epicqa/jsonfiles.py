"""Read a whole JSON file, or say in one line why that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError
from epicqa.streams import read_whole


def read_text(path: Path) -> str:
    """A UTF-8 file's text without its byte order mark; the file may be compressed (.gz, .xz, .zst).

    Raises:
        EpicqaError: the file cannot be read, or is not UTF-8.
    """
    return read_whole(path, "a readable file in UTF-8").decode()


def read_json(path: Path, kind: type, expected: str) -> Any:
    """The value in a JSON file.

    Args:
        path: the file.
        kind: ``list`` or ``dict``, what the outermost value must be.
        expected: what the file should be, in words, for messages.

    Raises:
        EpicqaError: the file cannot be read, is not UTF-8, not JSON or holds another kind of value.
    """
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise EpicqaError(f"{path}:{error.lineno}: broken JSON ({error.msg}), expected {expected}") from None
    except ValueError as error:
        # A number of thousands of digits.
        raise EpicqaError(f"{path}: {error}, expected {expected}") from None
    except RecursionError:
        raise EpicqaError(f"{path}: JSON nested too deeply, expected {expected}") from None
    if not isinstance(value, kind):
        raise EpicqaError(f"{path}: a JSON {type(value).__name__}, expected {expected}")
    return value
