"""JSON lines of claims' files, and their values; what is wrong in them is told by file, line and claim."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from epicqa.errors import EpicqaError
from epicqa.normal import is_unicode
from epicqa.streams import read_whole

_MAX_NUMBER = 10**18


class Bad(Exception):
    """What is wrong in a line, and what would be right; readers put the place before it."""


def records(path: Path, expected: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers, from 1, and objects; there is one at least. Blank lines are passed over.

    Args:
        path: UTF-8, plain or compressed (.gz, .xz, .zst).
        expected: what its lines should be, for messages.

    Raises:
        EpicqaError: the file cannot be read or has no line; a line is not JSON, not an object, or has a key
            twice.
    """
    number = 0
    empty = True
    for number, line in enumerate(read_whole(path, expected).split(b"\n"), 1):
        if not line.strip():
            continue
        record = record_of(line, f"{path}:{number}", expected)
        empty = False
        yield number, record
    if empty:
        raise EpicqaError(f"{path}: empty, expected {expected}")


def record_of(line: bytes, place: str, expected: str) -> dict[str, Any]:
    """The object of a line.

    Args:
        line: JSON in UTF-8.
        place: for messages: file and line.
        expected: what the line should be, for messages.

    Raises:
        EpicqaError: it is not JSON, not an object, or has a key twice.
    """
    try:
        record = json.loads(line, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise EpicqaError(f"{place}: broken JSON ({error.msg}), expected {expected}") from None
    except UnicodeDecodeError:
        raise EpicqaError(f"{place}: broken JSON (no UTF-8), expected {expected}") from None
    except (ValueError, Bad) as error:
        # ValueError: a number of thousands of digits.
        raise EpicqaError(f"{place}: {error}, expected {expected}") from None
    except RecursionError:
        raise EpicqaError(f"{place}: JSON nested too deeply, expected {expected}") from None
    if not isinstance(record, dict):
        raise EpicqaError(f"{place}: a JSON {type(record).__name__}, expected {expected}")
    return record


def shown(value: Any) -> str:
    """A value for messages, not longer than 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def is_number(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number from 0 that fits 64 bits."""
    return type(value) is int and 0 <= value < _MAX_NUMBER


def as_number(record: dict[str, Any], key: str) -> int:
    """The whole number from 0 of a key.

    Raises:
        Bad: it is another value, or missing.
    """
    value = record.get(key)
    if not is_number(value):
        wrong = f"{key!r} is {shown(value)}" if key in record else f"no {key!r}"
        raise Bad(f"{wrong}, expected a whole number from 0")
    return value


def as_text(value: Any, what: str) -> str:
    """A text that UTF-8 can hold.

    Raises:
        Bad: it is another value.
    """
    if not isinstance(value, str):
        raise Bad(f"{what} is {shown(value)}, expected text")
    if not is_unicode(value):
        raise Bad(f"{what} has half a surrogate pair, expected Unicode text")
    return value


def as_list(value: Any, what: str, expected: str) -> list[Any]:
    """A list of anything.

    Raises:
        Bad: it is another value.
    """
    if not isinstance(value, list):
        raise Bad(f"{what} is {shown(value)}, expected {expected}")
    return value


def as_object(value: Any, what: str) -> dict[str, Any]:
    """An object of anything.

    Raises:
        Bad: it is another value.
    """
    if not isinstance(value, dict):
        raise Bad(f"{what} is {shown(value)}, expected an object")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        again = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Bad(f"the key {shown(again)} is repeated in one object")
    return found
