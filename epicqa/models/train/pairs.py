"""Training pairs: a question and a text that answers it, one JSON object a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from epicqa.errors import EpicqaError
from epicqa.streams import ERRORS, decompressed

_KEYS = '{"query", "positive"}, and "negatives" or "group" if there are any'

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a text that answers it.

    Attributes:
        query: a question, a claim or a title.
        positive: the text that answers it.
        negatives: texts that do not.
        group: what must not be parted between training and testing, such as an article's id; a pair
            without one stands with the pairs of the same query.
    """

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    group: str = ""


def read_pairs(paths: Iterable[Path]) -> list[Pair]:
    """The pairs of JSONL files, plain or as .gz, .xz or .zst, in order; blank lines pass.

    Raises:
        EpicqaError: a file cannot be read, a line is no pair (the message names file and line), or there
            are no pairs at all.
    """
    paths = list(paths)
    pairs = [pair for path in paths for pair in _read(path)]
    if not pairs:
        raise EpicqaError(f"{', '.join(map(str, paths)) or 'no files'}: no pairs, expected lines of {_KEYS}")
    return pairs


def _read(path: Path) -> Iterator[Pair]:
    number = 0
    try:
        with path.open("rb") as raw:
            for number, line in enumerate(decompressed(raw, path.name), start=1):
                if line.strip():
                    yield _pair(line, f"{path}:{number}")
    except OSError as error:
        if error.errno:
            raise EpicqaError(f"{path}: {error.strerror}, expected a file of pairs") from None
        raise EpicqaError(f"{path}:{number + 1}: cannot be decompressed ({error})") from None
    except ERRORS as error:
        raise EpicqaError(f"{path}:{number + 1}: cannot be decompressed ({error})") from None


def _pair(line: bytes, where: str) -> Pair:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EpicqaError(f"{where}: not JSON ({error}), expected {_KEYS}") from None
    if not isinstance(found, dict):
        raise EpicqaError(f"{where}: {type(found).__name__}, expected an object {_KEYS}")
    negatives = found.get("negatives") or []
    if not isinstance(negatives, list):
        raise EpicqaError(f"{where}: negatives is no list, expected a list of texts")
    return Pair(
        query=_text(found.get("query"), "query", where),
        positive=_text(found.get("positive"), "positive", where),
        negatives=tuple(_text(one, "negatives", where) for one in negatives),
        group=_group(found.get("group"), where),
    )


def _text(value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise EpicqaError(f"{where}: {key} holds {json.dumps(value)[:40]}, expected a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise EpicqaError(f"{where}: {key} holds half a surrogate pair, expected Unicode text") from None
    return value


def _group(value: Any, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise EpicqaError(f"{where}: group holds {json.dumps(value)[:40]}, expected a text")
    return value


def write_pairs(path: Path, pairs: Iterable[Pair]) -> int:
    """Write pairs as JSONL, whole or not at all, and tell how many."""
    from epicqa.files import replacing

    count = 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        for pair in pairs:
            out.write(json.dumps(_record(pair), ensure_ascii=False) + "\n")
            count += 1
    return count


def _record(pair: Pair) -> dict[str, Any]:
    record: dict[str, Any] = {"query": pair.query, "positive": pair.positive}
    if pair.negatives:
        record["negatives"] = list(pair.negatives)
    if pair.group:
        record["group"] = pair.group
    return record


def split(pairs: Sequence[Pair], share: float, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Pairs for training and pairs held out, in their order; a group lies in one of the two.

    See `split_by`: a pair's group is its own, or that of its query.

    Raises:
        EpicqaError: as `split_by`.
    """
    return split_by(pairs, _key, share, seed)


def split_by(
    items: Sequence[Item], group_of: Callable[[Item], str], share: float, seed: int
) -> tuple[list[Item], list[Item]]:
    """What is trained on and what is held out, in order; a group lies in one of the two.

    Which groups are held out depends on their names and the seed alone, so that a group stays where it was
    when others are added.

    Args:
        items: of any kind.
        group_of: the name of an item's group.
        share: the share of groups held out, 0 to below 1; about that many come out, at least one of several.
        seed: another seed holds others out.

    Raises:
        EpicqaError: the share is not in that range, or all items are of one group.
    """
    if not 0 <= share < 1:
        raise EpicqaError(f"share held out {share}, expected 0 to below 1")
    if share == 0:
        return list(items), []
    groups = [group_of(item) for item in items]
    places = {group: _place(group, seed) for group in set(groups)}
    if len(places) < 2:
        raise EpicqaError(f"{len(places)} group, expected two or more: one to train on and one to hold out")
    held = {group for group, place in places.items() if place < share}
    # The lowest place is held out and the highest is trained on, whatever the share.
    held = (held | {min(places, key=lambda group: (places[group], group))}) - {
        max(places, key=lambda group: (places[group], group))
    }
    parts: tuple[list[Item], list[Item]] = ([], [])
    for item, group in zip(items, groups, strict=True):
        parts[group in held].append(item)
    return parts


def _key(pair: Pair) -> str:
    return f"group:{pair.group}" if pair.group else f"query:{pair.query}"


def _place(key: str, seed: int) -> float:
    """A number in [0, 1) that is as good as random."""
    return int.from_bytes(hashlib.sha256(f"{seed}\0{key}".encode()).digest()[:8]) / 2**64


def fingerprint(pairs: Iterable[Pair]) -> str:
    """The hex SHA-256 of the pairs in their order."""
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(json.dumps([pair.query, pair.positive, pair.negatives, pair.group]).encode() + b"\n")
    return digest.hexdigest()
