"""Ideal rankings of an answer file, kept in the cache.

A cache file belongs to one fingerprint of the judgments and one state of the code that searches, so nothing
in it can be stale; a file that is damaged, or cannot be written, only costs the time to search again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson

from epicqa.files import cache_folder, digest_of, sha256_of
from epicqa.measures import beam, ideal, ndns, spans
from epicqa.measures.ideal import Ideal, ideal_of
from epicqa.measures.judgments import Judgments
from epicqa.measures.ndns import MAX_RANK, Variant

_INTEGERS = ("context", "first", "last")

_T = TypeVar("_T")


def ideals_of(
    judgments: Judgments,
    question_ids: Sequence[str],
    variants: Sequence[Variant],
    search: str = "beam",
    depth: int = MAX_RANK,
) -> list[list[Ideal]]:
    """The ideal of each question in each variant, from the cache where it is there; see `ideal_of`."""
    return _kept(judgments, question_ids, variants, search, depth, "rankings", _pack, _unpack)


def ideal_dns_of(
    judgments: Judgments,
    question_ids: Sequence[str],
    variants: Sequence[Variant],
    search: str = "beam",
    depth: int = MAX_RANK,
) -> list[list[float]]:
    """Only their DNS: rankings may be 1000 passages long, and take longer to read than to score by."""
    return _kept(judgments, question_ids, variants, search, depth, "dns", lambda one: one.dns, float)


def _kept(
    judgments: Judgments,
    question_ids: Sequence[str],
    variants: Sequence[Variant],
    search: str,
    depth: int,
    what: str,
    pack: Callable[[Ideal], Any],
    unpack: Callable[[Any], _T],
) -> list[list[_T]]:
    path = _path(judgments, what)
    known = _read(path)
    fresh = False
    rows = []
    for question_id in question_ids:
        row = []
        for variant in variants:
            key = f"{question_id} {variant.definition} {variant.name} {search} {depth}"
            if key not in known:
                known[key] = pack(ideal_of(judgments.questions[question_id], variant, search, depth))
                fresh = True
            row.append(unpack(known[key]))
        rows.append(row)
    if fresh:
        _write(path, known)
    return rows


def _path(judgments: Judgments, what: str) -> Path:
    return cache_folder() / "ideals" / f"{digest_of([judgments.fingerprint, _code()])}.{what}.json"


@cache
def _code() -> list[str]:
    """The code that searches, as the program found it."""
    return [sha256_of(Path(str(module.__file__))) for module in (beam, ideal, ndns, spans)]


def _pack(one: Ideal) -> dict[str, Any]:
    columns = {name: getattr(one, name).tolist() for name in _INTEGERS}
    return {"dns": one.dns, "gain": one.gain.tolist(), **columns}


def _unpack(packed: dict[str, Any]) -> Ideal:
    columns = {name: np.array(packed[name], dtype=np.int64) for name in _INTEGERS}
    return Ideal(float(packed["dns"]), gain=np.array(packed["gain"], dtype=np.float64), **columns)


def _read(path: Path) -> dict[str, Any]:
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != digest:
            return {}
        known = orjson.loads(content)
    except (OSError, orjson.JSONDecodeError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, known: dict[str, Any]) -> None:
    # Not `files.replacing`: what a crash loses is only searched again, so nothing waits for the disk.
    content = orjson.dumps(known)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
