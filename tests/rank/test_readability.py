"""How plain words are, letter by letter."""

from __future__ import annotations

from statistics import fmean
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.config import Audience
from epicqa.rank.readability import AUDIENCES, plainness_scores

WORDS = st.text(st.sampled_from("abcß漢🦠-.é"), min_size=1, max_size=12)


@given(st.lists(st.lists(WORDS, max_size=20)))
def test_equal_to_a_mean_of_lengths(words: list[list[str]]) -> None:
    found = plainness_scores("q", [" ".join(some) for some in words])
    assert found.dtype == np.float64 and found.shape == (len(words),)
    assert found == pytest.approx([-fmean(map(len, some)) if some else -6 for some in words])


def test_any_white_space_parts_words_and_the_question_does_not_count() -> None:
    texts = ["", " \n", "ab\u00a0cdef", "  ab \n cdef", "ab\u3000cdef"]
    assert plainness_scores("one", texts).tolist() == [-6, -6, -3, -3, -3]
    assert plainness_scores("", texts).tolist() == plainness_scores("what is that?", texts).tolist()


def test_everyday_words_are_plainer_than_the_fields_own() -> None:
    plain, learned = plainness_scores(
        "How long does it last on steel?",
        [
            "The virus can live on steel for two to three days.",
            "Infectious SARS-CoV-2 virions remained detectable on stainless-steel coupons for 72 hours.",
        ],
    )
    assert plain > learned


def test_a_weight_for_every_audience() -> None:
    assert set(AUDIENCES) == set(get_args(Audience))
    assert AUDIENCES["expert"] < 0 < AUDIENCES["general"]
