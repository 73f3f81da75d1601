"""Windows of tokens against a plain reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.claims.encoding import ClaimInput, windows_of
from epicqa.errors import EpicqaError

WORDS = ("virus", "mask", "steel", "bat")


@pytest.fixture(scope="module")
def tokenizer(bert: Path) -> Any:
    """Each word is a token, so that a text's length is its words'."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(bert))


def plain(sentences: Sequence[Sequence[str]], room: int) -> list[list[list[str]]]:
    """Each window's sentences, filled one after the other; a sentence has a separator behind it."""
    windows: list[list[list[str]]] = [[]]
    for sentence in sentences:
        cut = list(sentence[: room - 1])
        if windows[-1] and sum(len(one) + 1 for one in windows[-1]) + len(cut) + 1 > room:
            windows.append([])
        windows[-1].append(cut)
    return windows


_TEXTS = st.lists(st.sampled_from(WORDS), max_size=24)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(WORDS), max_size=6), st.lists(_TEXTS, max_size=6)), max_size=3
    ),
    st.integers(16, 40),
)
def test_windows_against_a_plain_reference(
    tokenizer: Any, given_: list[tuple[list[str], list[list[str]]]], max_length: int
) -> None:
    inputs = [ClaimInput(" ".join(claim), tuple(map(" ".join, texts))) for claim, texts in given_]
    found = windows_of(tokenizer, inputs, max_length)
    assert [one.source for one in found] == sorted(one.source for one in found)
    for source, (claim, texts) in enumerate(given_):
        mine = [one for one in found if one.source == source]
        head = ["[CLS]", *claim, "[SEP]"]
        expected = plain(texts, max_length - len(head))
        assert [
            [tokenizer.convert_ids_to_tokens(list(one.ids[start : end - 1])) for start, end in one.spans]
            for one in mine
        ] == expected
        # Every sentence is in one window, in order.
        assert [place for one in mine for place in one.sentences] == list(range(len(texts)))
        for one, sentences in zip(mine, expected, strict=True):
            tokens = tokenizer.convert_ids_to_tokens(list(one.ids))
            assert tokens == head + [token for sentence in sentences for token in (*sentence, "[SEP]")]
            assert len(tokens) <= max_length and one.parted == len(head)
            assert len(one.sentences) == len(one.spans)
            # Spans lie side by side, from the claim's end to the window's.
            assert [start for start, _ in one.spans] + [len(tokens)] == [
                len(head),
                *(end for _, end in one.spans),
            ]
        # Only what no window of its own could hold has lost its end.
        for text, kept in zip(texts, [sentence for one in expected for sentence in one], strict=True):
            assert kept == text or len(kept) == max_length - len(head) - 1 < len(text)


def test_windows_by_hand(tokenizer: Any) -> None:
    inputs = [
        ClaimInput("virus mask", ("bat", "steel steel", "mask")),
        ClaimInput("virus", ()),
        ClaimInput("", ("bat", "")),
    ]
    long, claim_only, sentences_only = windows_of(tokenizer, inputs, 64)
    cls, sep, virus, mask, steel, bat = tokenizer.convert_tokens_to_ids(
        ["[CLS]", "[SEP]", "virus", "mask", "steel", "bat"]
    )
    assert long.ids == (cls, virus, mask, sep, bat, sep, steel, steel, sep, mask, sep)
    assert (long.parted, long.spans, long.sentences) == (4, ((4, 6), (6, 9), (9, 11)), range(3))
    assert claim_only.ids == (cls, virus, sep)
    assert (claim_only.parted, claim_only.spans, claim_only.sentences) == (3, (), range(0))
    # A sentence without a token of its own still has its separator.
    assert sentences_only.ids == (cls, sep, bat, sep, sep)
    assert (sentences_only.source, sentences_only.spans) == (2, ((2, 4), (4, 5)))
    assert windows_of(tokenizer, [], 64) == []


def test_a_claim_that_leaves_no_room_is_refused(tokenizer: Any) -> None:
    fits, too_long = ("virus " * count for count in (30, 31))
    # 64 less two special tokens and 32 for sentences.
    (window,) = windows_of(tokenizer, [ClaimInput(fits, ("mask " * 99,))], 64)
    assert len(window.ids) == 64 and window.parted == 32
    with pytest.raises(
        EpicqaError, match=r"^claim of 31 tokens \('virus virus .*'\.\.\.\), expected at most 30$"
    ):
        windows_of(tokenizer, [ClaimInput("mask", ()), ClaimInput(too_long, ())], 64)
    with pytest.raises(EpicqaError, match=r"claim of 7 tokens .*, expected at most 6$"):
        windows_of(tokenizer, [ClaimInput("mask " * 7, ())], 16)


def test_special_tokens_are_the_tokenizers_own(roberta: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(roberta))
    (window,) = windows_of(tokenizer, [ClaimInput("ab", ("c", "de"))], 32)
    assert tokenizer.convert_ids_to_tokens(list(window.ids)) == [
        *("<s>", "a", "b", "</s>"),
        *("c", "</s>", "d", "e", "</s>"),
    ]
    assert window.spans == ((4, 6), (6, 9)) and window.parted == 4


def test_special_tokens_in_a_text_are_text(tokenizer: Any) -> None:
    (window,) = windows_of(tokenizer, [ClaimInput("virus [SEP] mask", ("[CLS] steel [PAD]",))], 64)
    special = {tokenizer.cls_token_id: 1, tokenizer.sep_token_id: 2, tokenizer.pad_token_id: 0}
    assert {token: window.ids.count(token) for token in special} == special
