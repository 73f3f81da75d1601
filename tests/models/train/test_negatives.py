"""Hard negatives: what is drawn, what never is, and that a seed decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.models.train.negatives import with_negatives
from epicqa.models.train.pairs import Pair


class Letters:
    """An encoder whose vectors count letters, so that a test sees who is near whom."""

    name = "letters"
    dimension = 26
    fingerprint = "0"

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        counts = np.array(
            [[text.lower().count(chr(97 + letter)) for letter in range(26)] for text in texts], np.float32
        )
        return counts / np.maximum(1e-9, np.linalg.norm(counts, axis=1, keepdims=True))

    encode_queries = encode


POOL = [f"{word} number {place}" for place in range(20) for word in ("aaaa", "bbbb", "cccc", "dddd")]


def test_negatives_are_near_and_never_a_positive_or_a_copy_of_one() -> None:
    pairs = [
        Pair("aaaa?", "aaaa number one of the list"),
        Pair("aaaa?", "aaaa in another answer"),
        Pair("bbbb?", "bbbb it is"),
    ]
    copies = [
        "AAAA, number one of the list.",
        "aaaa number one of the",
        "so aaaa number one of the list it is",
    ]
    made = with_negatives(pairs, 5, pool=[*copies, *POOL], encoder=Letters(), ranks=(1, 10), seed=3)
    for pair, before in zip(made, pairs, strict=True):
        assert (pair.query, pair.positive) == (before.query, before.positive)
        assert len(set(pair.negatives)) == 5
        assert not {*copies, *(one.positive for one in pairs if one.query == pair.query)} & set(
            pair.negatives
        )
    assert all(text.startswith("aaaa") for text in (*made[0].negatives, *made[1].negatives))
    assert all(text.startswith("bbbb") for text in made[2].negatives)


def test_ranks_count_without_what_is_left_out() -> None:
    texts = [f"a{'b' * place}" for place in range(30)]
    pair = Pair("aaaa", "a")
    made = with_negatives([pair], 4, pool=texts, encoder=Letters(), ranks=(3, 6))[0]
    # Nearest to the query is what holds fewest b; "a" itself is the positive.
    assert made.negatives == tuple(texts[3:7])


def test_own_negatives_come_first_and_count() -> None:
    pair = Pair("aaaa?", "aaaa it is", negatives=("mine", "also mine"))
    made = with_negatives([pair], 3, pool=POOL, encoder=Letters())[0]
    assert made.negatives[:2] == ("mine", "also mine") and len(made.negatives) == 3
    assert with_negatives([pair], 1, pool=POOL, encoder=Letters())[0].negatives == ("mine",)


def test_a_seed_decides() -> None:
    pairs = [Pair(f"{word}?", f"{word} it is") for word in ("aaaa", "bbbb")]

    def made(seed: int) -> list[Pair]:
        return with_negatives(pairs, 4, pool=POOL, encoder=Letters(), seed=seed)

    assert made(1) == made(1) != made(2)


def test_a_pool_smaller_than_the_ranks_gives_what_there_is() -> None:
    made = with_negatives([Pair("a?", "a is it"), Pair("b?", "b is that")], 5, encoder=Letters())
    assert [pair.negatives for pair in made] == [("b is that",), ("a is it",)]


def test_errors_are_one_line() -> None:
    with pytest.raises(EpicqaError, match=r"^no negatives for 'a\?', expected [^\n]*$"):
        with_negatives([Pair("a?", "a")], 5, encoder=Letters())
    for ranks in ((0, 4), (5, 4)):
        with pytest.raises(EpicqaError, match=r"^ranks \d to 4, expected [^\n]*$"):
            with_negatives([Pair("a?", "a")], 5, ranks=ranks)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.text("abc ", min_size=1, max_size=12).filter(str.strip), min_size=4, max_size=12), st.data()
)
def test_properties(texts: list[str], data: st.DataObject) -> None:
    pairs = [Pair(query, text) for query, text in zip(texts[::2], texts[1::2], strict=False)]
    count = data.draw(st.integers(1, 5))
    try:
        made = with_negatives(pairs, count, pool=texts, encoder=Letters(), ranks=(1, 8))
    except EpicqaError as error:
        assert "\n" not in str(error)
        return
    for pair in made:
        taboo = {one.positive for one in pairs if one.query == pair.query}
        assert 1 <= len(pair.negatives) <= count
        assert len(set(pair.negatives)) == len(pair.negatives) and not taboo & set(pair.negatives)


def test_from_an_index_by_words_and_vectors(home: Path) -> None:
    from epicqa.index.build import open_index

    index = open_index("sample")
    store = index.store
    rows = range(0, store.n_sentences, max(1, store.n_sentences // 5))
    pairs = [Pair(store.sentence_text(row), store.sentence_text(row)) for row in rows]
    made = with_negatives(pairs, 4, index=index, ranks=(1, 20))
    known = set(store.iter_sentences(0, store.n_sentences))
    for pair in made:
        assert pair.negatives and set(pair.negatives) <= known and pair.positive not in pair.negatives
    assert made == with_negatives(pairs, 4, index=index, ranks=(1, 20))
    titled = with_negatives(pairs, 4, index=index, ranks=(1, 20), titles=True)
    titles = {store.title(document) for document in range(store.n_documents)} - {None}
    assert any(text.startswith(tuple(f"{title}. " for title in titles)) for text in titled[0].negatives)
    bare = with_negatives(pairs, 4, index=open_index("bare"), ranks=(1, 20))
    assert all(set(pair.negatives) <= known for pair in bare)
