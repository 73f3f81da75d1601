import re
import string
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.collect.terms import WHERES, covid_terms, matches, read_terms
from epicqa.errors import EpicqaError


def is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


def holds(text: str, term: str) -> bool:
    """Whether a term stands in a text, character by character."""
    text, folded = unicodedata.normalize("NFC", text), term == term.lower()

    def goes_on(at: int, words: list[str]) -> bool:
        if not words:
            return not is_word(text, at)
        found = text[at : at + len(words[0])]
        if (found.lower() if folded else found) != words[0]:
            return False
        end = at + len(words[0])
        if len(words) == 1:
            return goes_on(end, [])
        while end < len(text) and (text[end].isspace() or text[end] == "-"):
            end += 1
            if goes_on(end, words[1:]):
                return True
        return False

    return any(not is_word(text, at - 1) and goes_on(at, term.split()) for at in range(len(text)))


WORDS = st.text("aAbüÜ-1", min_size=1, max_size=3)
TERMS = st.lists(st.lists(WORDS, min_size=1, max_size=2).map(" ".join), min_size=1, max_size=3)
TEXTS = st.text("aAbBuüÜ\u0308-1_ .\n\xa0", max_size=14)


@given(st.none() | TEXTS, st.lists(TEXTS, max_size=3), TERMS, st.sampled_from(WHERES))
def test_as_the_plain_reference(title: str | None, texts: list[str], terms: list[str], where: str) -> None:
    in_title = any(holds(title or "", term) for term in terms)
    in_text = any(holds(text, term) for text in texts for term in terms)
    expected = {
        "any": in_title or in_text,
        "title": in_title,
        "text": in_text,
        "both": in_title and in_text,
    }
    assert matches(title, texts, terms, where) == expected[where]


@pytest.mark.parametrize("where", WHERES)
def test_without_terms_everything_stays(where: str) -> None:
    assert matches(None, [], (), where)


@given(st.text(string.printable, max_size=20))
def test_a_term_is_no_pattern(term: str) -> None:
    term = " ".join(term.split())
    if term and (is_word(term, 0) and is_word(term, len(term) - 1)):
        assert matches(term, [], [term], "title")
        assert matches(f"({term})", [], [term], "title")
        assert not matches(f"x{term}", [], [term], "title") or holds(f"x{term}", term)


def test_the_published_terms() -> None:
    terms = covid_terms()
    assert len(terms) == len(set(terms)) and "covid" in terms and "wuhan" in terms
    assert all(term == " ".join(term.split()) and "#" not in term for term in terms)

    def about(text: str) -> bool:
        return matches(text, (), terms, "any")

    assert (
        about("COVID-19 in children") and about("the Coronavirus") and about("2019-nCoV") and about("Wuhan.")
    )
    assert about("Middle East\nrespiratory-syndrome") and about("SARS-CoV-2") and about("MERS")
    assert (
        not about("a coronary disease") and not about("covidien") and not about("mers") and not about("Sars")
    )


def test_read_terms(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_bytes(
        "\ufeff# Ebola\nebola  # the virus\r\n\n  ebola   virus\nEVD\nebola\nE\u0301bola\n".encode()
    )
    assert read_terms(path) == ("ebola", "ebola virus", "EVD", "Ébola")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"# all is a comment\n"])
def test_a_file_without_a_term(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "terms.txt"
    path.write_bytes(content)
    with pytest.raises(EpicqaError, match=f"^{re.escape(str(path))}: holds no term, expected one a line$"):
        read_terms(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match=r"none\.txt: No such file"):
        read_terms(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"ok\ncaf\xe9\n")
    with pytest.raises(EpicqaError, match=r"latin\.txt:2: not UTF-8"):
        read_terms(tmp_path / "latin.txt")
