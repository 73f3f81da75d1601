import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.sentences import split

pieces = st.sampled_from(
    [
        "Dr. ",
        "e.g. ",
        ". ",
        "! ",
        "?",
        "\n\n",
        "\r\n",
        "\t",
        " ",
        "A",
        "word",
        "é",
        "e\u0301",
        "😀",
        "𝛼",
        "。",
        "\u2028",
    ]
)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n\t ", []),
        ("No full stop", ["No full stop"]),
        ("  Leading. Trailing.  ", ["Leading.", "Trailing."]),
        ("Dr. Smith agreed. So did I.", ["Dr. Smith agreed.", "So did I."]),
        ("Ünï 😀😀. 𝛼-helix binds. Done!", ["Ünï 😀😀.", "𝛼-helix binds.", "Done!"]),
        ("First.\n\nSecond.", ["First.", "Second."]),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in split(text)] == sentences


@given(st.one_of(st.text(), st.lists(pieces).map("".join)))
def test_spans_are_trimmed_ordered_and_lose_nothing(text: str) -> None:
    spans = split(text)
    found = [text[start:end] for start, end in spans]
    assert all(one and one == one.strip() for one in found)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert "".join("".join(found).split()) == "".join(text.split())
