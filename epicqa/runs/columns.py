"""The columns of a run file in its usual shape, read all at once: a tenth of the time of line by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDEST = 64
"""Bytes of the longest question id, tag, context id and score that are read this way."""

_PART = 1 << 20
"""Bytes that are looked at in one go."""

_TAB, _NEWLINE, _SPACE, _DASH, _COLON = b"\t\n -:"
_PADDING = b"\0" * _WIDEST


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A run file's lines, in the file's order.

    Attributes:
        line: int64[n], line in the file, from 1.
        question, tag: int64[n], positions in ``questions`` and ``tags``.
        rank: int64[n]; score: float64[n]; score_text: bytes[n].
        first_context, last_context: int64[n], positions in ``contexts``.
        first_number, last_number: int64[n].
        questions, tags, contexts: names, in the order of first appearance; of contexts the canonical ids.
    """

    line: NDArray[np.int64]
    question: NDArray[np.int64]
    tag: NDArray[np.int64]
    rank: NDArray[np.int64]
    score: NDArray[np.float64]
    score_text: NDArray[np.bytes_]
    first_context: NDArray[np.int64]
    last_context: NDArray[np.int64]
    first_number: NDArray[np.int64]
    last_number: NDArray[np.int64]
    questions: list[str]
    tags: list[str]
    contexts: list[str]


def regular_columns(data: bytes) -> Columns | None:
    """The columns of a file in which every line is whole and in the usual shape, or None.

    Usual are six columns parted by single tabs or spaces, ids padded to three digits without ``:`` in them,
    ranks and scores in decimal digits. None says nothing about whether the file is right.

    Args:
        data: UTF-8 without a byte order mark.
    """
    if data.endswith(b"\n\n") or not data.endswith(b"\n"):
        data = data.rstrip(b"\n") + b"\n"
    names = _Names({}, {}, {}, data.isascii())
    parts = []
    start = 0
    while start < len(data):
        # In parts that fit the processor's cache; a line longer than one is not in the usual shape.
        stop = len(data) if len(data) - start <= _PART else data.rfind(b"\n", start, start + _PART) + 1
        part = _part(data[start:stop], names) if stop > start else None
        if part is None:
            return None
        parts.append(part)
        start = stop
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    if not names.ascii and (joined := "".join(names.contexts)).split() != [joined]:
        # White space beyond ASCII parts no columns, but no id may hold it.
        return None
    return Columns(
        line=np.arange(1, len(columns["rank"]) + 1),
        **columns,
        questions=list(names.questions),
        tags=list(names.tags),
        contexts=list(names.contexts),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """Codes of names so far, in the order of first appearance; whether all of the file is ASCII."""

    questions: dict[str, int]
    tags: dict[str, int]
    contexts: dict[str, int]
    ascii: bool


def _part(data: bytes, names: _Names) -> dict[str, NDArray[Any]] | None:
    """The columns of some whole lines by name, None where one is not in the usual shape."""
    text = np.frombuffer(data + _PADDING, dtype=np.uint8)
    white = np.flatnonzero(text[: len(data)] <= _SPACE)
    if len(white) % 6:
        return None
    ends = white.reshape(-1, 6)
    kinds = text[ends]
    starts = np.empty_like(ends)
    starts[:, 1:] = ends[:, :-1] + 1
    starts[0, 0] = 0
    starts[1:, 0] = ends[:-1, 5] + 1
    length = ends - starts
    parted = (kinds[:, :5] == _TAB) | (kinds[:, :5] == _SPACE)
    if not (parted.all() and (kinds[:, 5] == _NEWLINE).all() and length.min() > 0):
        return None
    length[:, 2] = 0
    if length.max() > _WIDEST:
        return None
    passages = _passages(text, starts[:, 2], ends[:, 2], names)
    rank = _digits(text, starts[:, 3], ends[:, 3], 1)
    score_text = _tokens(text, starts[:, 4], length[:, 4])
    score = _scores(score_text)
    if passages is None or rank is None or score is None:
        return None
    context, number = passages
    return {
        "question": _codes(_tokens(text, starts[:, 0], length[:, 0]), names.questions, names.ascii),
        "tag": _codes(_tokens(text, starts[:, 5], length[:, 5]), names.tags, names.ascii),
        "rank": rank,
        "score": score,
        "score_text": score_text,
        "first_context": context[:, 0],
        "last_context": context[:, 1],
        "first_number": number[:, 0],
        "last_number": number[:, 1],
    }


def _passages(
    text: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64], names: _Names
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Context codes and sentence numbers of first and last ends, int64[n, 2] each."""
    colon = np.flatnonzero(text == _COLON)
    at = np.searchsorted(colon, start)
    if not ((at < np.searchsorted(colon, end)) & (np.searchsorted(colon, end) - at == 1)).all():
        return None
    middle = colon[at]
    # Both ends in turn: most are in one context, and what repeats is looked up once.
    first, stop = np.stack((start, middle + 1), axis=1).ravel(), np.stack((middle, end), axis=1).ravel()
    dash = np.flatnonzero(text == _DASH)
    sentence = np.searchsorted(dash, stop) - 1
    if sentence.min() < 1:
        return None
    context_dash, sentence_dash = dash[sentence - 1], dash[sentence]
    named = (text[sentence_dash + 1] == ord("S")) & (text[context_dash + 1] == ord("C"))
    if not (named & (context_dash > first)).all():
        return None
    number = _digits(text, sentence_dash + 2, stop, 3)
    context_number = _digits(text, context_dash + 2, sentence_dash, 3)
    # A longer number that begins with 0 is not canonical, which is told line by line.
    padded = (sentence_dash - context_dash > 5) & (text[context_dash + 2] == ord("0"))
    padded |= (stop - sentence_dash > 5) & (text[sentence_dash + 2] == ord("0"))
    length = sentence_dash - first
    if number is None or context_number is None or padded.any() or length.max() > _WIDEST:
        return None
    codes = _codes(_tokens(text, first, length), names.contexts, names.ascii).reshape(-1, 2)
    number = number.reshape(-1, 2)
    if ((codes[:, 0] == codes[:, 1]) & (number[:, 0] > number[:, 1])).any():
        # Ends before it starts: line by line it is told where.
        return None
    return codes, number


def _digits(
    text: NDArray[np.uint8], start: NDArray[np.int64], stop: NDArray[np.int64], least: int
) -> NDArray[np.int64] | None:
    """Whole numbers of ``least`` to 9 digits; None where one is something else."""
    length = stop - start
    if length.min() < least or length.max() > 9:
        return None
    number = np.zeros(len(start), dtype=np.int64)
    for i in range(int(length.max())):
        inside = i < length
        digit = text[np.where(inside, start + i, start)].astype(np.int64) - ord("0")
        if ((digit < 0) | (digit > 9)).any():
            return None
        number = np.where(inside, number * 10 + digit, number)
    return number


def _scores(score_text: NDArray[np.bytes_]) -> NDArray[np.float64] | None:
    """The numbers written; None where one is not in decimal digits."""
    letters = np.unique(score_text.view(np.uint8))
    if not np.isin(letters, np.frombuffer(b"\x000123456789+-.eE", dtype=np.uint8)).all():
        return None
    try:
        score = score_text.astype(np.float64)
    except ValueError:
        return None
    return score if np.isfinite(score).all() else None


def _tokens(
    text: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bytes_]:
    """Pieces of the text as bytes[n]."""
    eight = np.lib.stride_tricks.sliding_window_view(text, 8)
    # The mask of the first k bytes, whatever the machine's byte order.
    masks = (np.tri(9, 8, -1, dtype=np.uint8) * np.uint8(255)).view(np.uint64)[:, 0]
    width = -(-int(length.max()) // 8)
    words = np.empty((len(start), width), dtype=np.uint64)
    for i in range(width):
        at = 8 * i
        words[:, i] = eight[start + at].view(np.uint64)[:, 0] & masks[np.clip(length - at, 0, 8)]
    return words.view(f"S{8 * width}")[:, 0]


def _codes(tokens: NDArray[np.bytes_], known: dict[str, int], plain: bool) -> NDArray[np.int64]:
    """Which of the known names each is; new ones become known. ``plain``: all are ASCII."""
    # Runs of one token are common: only where it changes is there something to look up.
    changes = np.ones(len(tokens), dtype=bool)
    changes[1:] = tokens[1:] != tokens[:-1]
    different = tokens[changes]
    names = different.astype(np.str_).tolist() if plain else map(bytes.decode, different.tolist())
    codes = np.array([known.setdefault(name, len(known)) for name in names])
    return codes[np.cumsum(changes) - 1]
