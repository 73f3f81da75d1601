"""The score of a length, word by word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.rank.length import MOST, length_scores


@given(st.lists(st.lists(st.sampled_from(["mask", "a", "SARS-CoV-2", "Grüße", "病毒", "🦠"]), max_size=80)))
def test_equal_to_a_count(words: list[list[str]]) -> None:
    found = length_scores("q", [" ".join(some) for some in words])
    assert found.dtype == np.float64 and found.shape == (len(words),)
    assert found == pytest.approx([math.log(1 + min(len(some), MOST)) for some in words])


def test_it_rises_up_to_the_most_words() -> None:
    found = length_scores("q", [" ".join(["word"] * count) for count in range(2 * MOST)])
    assert found[0] == 0 and np.all(np.diff(found[: MOST + 1]) > 0) and len(set(found[MOST:])) == 1


def test_any_white_space_parts_words_and_the_question_does_not_count() -> None:
    texts = ["", " \n\t", "a\u00a0b", " a \n b ", "a\u3000b", "ab"]
    two = math.log(3)
    assert length_scores("one", texts) == pytest.approx([0, 0, two, two, two, math.log(2)])
    assert length_scores("", texts).tolist() == length_scores("how long is that?", texts).tolist()
