"""A claim and sentences as the tokens that a network reads.

``[CLS] claim [SEP] sentence [SEP] sentence [SEP] ...``, in the tokenizer's own special tokens. A claim is
never cut. Sentences that do not fit beside it go into further windows, each with the whole claim; only a
sentence that is too long for a window of its own loses its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from epicqa.errors import EpicqaError

# Tokens that are left for sentences at least, however long the claim.
_ROOM = 32


@dataclass(frozen=True, slots=True)
class ClaimInput:
    """A claim and sentences that may tell of it; one of the two may be empty."""

    claim: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """What goes through the network at once.

    Attributes:
        source: the input's place.
        ids: tokens.
        parted: where the claim's part, with its separator, ends in them.
        sentences: places of its sentences in the input, consecutive.
        spans: of each sentence, its tokens' start and end (exclusive), the separator included.
    """

    source: int
    ids: tuple[int, ...]
    parted: int
    sentences: range
    spans: tuple[tuple[int, int], ...]


def windows_of(tokenizer: Any, inputs: Sequence[ClaimInput], max_length: int) -> list[Window]:
    """The windows of all inputs, each input's in order; there is at least one an input.

    Args:
        tokenizer: of transformers, with tokens for start and separator.
        inputs: claims and sentences.
        max_length: tokens of a window.

    Raises:
        EpicqaError: a claim leaves no room for sentences.
    """
    texts = [text for one in inputs for text in (one.claim, *one.sentences)]
    tokens = iter(_tokens(tokenizer, texts))
    found: list[Window] = []
    for source, one in enumerate(inputs):
        claim = next(tokens)
        head = [tokenizer.cls_token_id, *claim, tokenizer.sep_token_id]
        room = max_length - len(head)
        if room < min(_ROOM, max_length // 2):
            raise EpicqaError(
                f"claim of {len(claim):,} tokens ({one.claim[:40]!r}...), expected at most "
                f"{max_length - 2 - min(_ROOM, max_length // 2)}"
            )
        ids, spans, first = list(head), list[tuple[int, int]](), 0
        for place in range(len(one.sentences)):
            sentence = next(tokens)[: room - 1]
            if spans and len(ids) + len(sentence) + 1 > max_length:
                found.append(Window(source, tuple(ids), len(head), range(first, place), tuple(spans)))
                ids, spans, first = list(head), [], place
            start = len(ids)
            ids += [*sentence, tokenizer.sep_token_id]
            spans.append((start, len(ids)))
        last = range(first, len(one.sentences))
        found.append(Window(source, tuple(ids), len(head), last, tuple(spans)))
    return found


def _tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    if not texts:
        return []
    # A "[SEP]" in a text is text.
    read = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
    found: list[list[int]] = read["input_ids"]
    return found
