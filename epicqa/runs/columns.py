"""The columns of a run file in its usual shape, read all at once: a tenth of the time of line by line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WIDEST = 64
"""Bytes of the longest question id, tag, context id and score that are read this way."""

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
    data = data.rstrip(b"\n") + b"\n"
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

    passages = _passages(text, starts[:, 2], ends[:, 2])
    rank = _digits(text, starts[:, 3], ends[:, 3], 1)
    score_text = _words(text, starts[:, 4], length[:, 4]).view(f"S{8 * -(-int(length[:, 4].max()) // 8)}")[
        :, 0
    ]
    if passages is None or rank is None:
        return None
    score = _scores(score_text)
    if score is None:
        return None
    question, questions = _codes(text, starts[:, 0], length[:, 0])
    tag, tags = _codes(text, starts[:, 5], length[:, 5])
    context, number, contexts = passages
    return Columns(
        line=np.arange(1, len(ends) + 1),
        question=question,
        tag=tag,
        rank=rank,
        score=score,
        score_text=score_text,
        first_context=context[:, 0],
        last_context=context[:, 1],
        first_number=number[:, 0],
        last_number=number[:, 1],
        questions=questions,
        tags=tags,
        contexts=contexts,
    )


def _passages(
    text: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]] | None:
    """Context codes and sentence numbers of first and last ends, int64[n, 2] each; context names."""
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
    # A longer number that begins with 0 is not canonical.
    padded = (sentence_dash - context_dash > 5) & (text[context_dash + 2] == ord("0"))
    length = sentence_dash - first
    if number is None or context_number is None or padded.any() or length.max() > _WIDEST:
        return None
    codes, names = _codes(text, first, length)
    if len("".join(names).split()) != 1:
        # White space beyond ASCII parts no columns, but no id may hold it.
        return None
    return codes.reshape(-1, 2), number.reshape(-1, 2), names


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


def _words(
    text: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Tokens as uint64[n, words], padded with zeros."""
    eight = np.lib.stride_tricks.sliding_window_view(text, 8)
    # The mask of the first k bytes, whatever the machine's byte order.
    masks = (np.tri(9, 8, -1, dtype=np.uint8) * np.uint8(255)).view(np.uint64)[:, 0]
    words = [
        eight[start + at].view(np.uint64)[:, 0] & masks[np.clip(length - at, 0, 8)]
        for at in range(0, int(length.max()), 8)
    ]
    return np.stack(words, axis=1)


def _codes(
    text: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[str]]:
    """Which of the different tokens each is, and those, in the order of first appearance."""
    words = _words(text, start, length)
    # Runs of one token are common: only where it changes is there something to look up.
    changes = np.ones(len(words), dtype=bool)
    changes[1:] = (words[1:] != words[:-1]).any(axis=1)
    at = np.flatnonzero(changes)
    tokens = words[at].view(f"V{8 * words.shape[1]}")[:, 0].tolist()
    known: dict[bytes, int] = {}
    codes = np.array([known.setdefault(token, len(known)) for token in tokens])
    names = [token.rstrip(b"\0").decode() for token in known]
    return codes[np.cumsum(changes) - 1], names
