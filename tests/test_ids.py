import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.ids import (
    ContextId,
    PassageId,
    SentenceId,
    parse_context_id,
    parse_passage_id,
    parse_sentence_id,
)

# Includes what looks like ids inside ids.
documents = st.one_of(
    st.text(min_size=1).filter(lambda text: not any(map(str.isspace, text))),
    st.text("-:CS01é😀", min_size=1),
    st.uuids().map(str),
    st.just("x-C000-S000:y"),
)
numbers = st.integers(0, 999_999_999)


@given(documents, numbers, numbers)
def test_ids_come_back(document: str, context: int, sentence: int) -> None:
    one = SentenceId(document, context, sentence)
    assert parse_sentence_id(str(one)) == one
    assert parse_context_id(str(one.context_id)) == one.context_id == ContextId(document, context)
    assert str(one).startswith(f"{one.context_id}-S")


@given(documents, numbers, numbers, numbers)
def test_passage_in_one_context_comes_back(document: str, context: int, first: int, last: int) -> None:
    passage = PassageId(SentenceId(document, context, first), SentenceId(document, context, last))
    assert parse_passage_id(str(passage)) == passage


def test_passage_across_documents_is_read() -> None:
    assert parse_passage_id("a-C000-S001:b:c-C002-S003") == (("a", 0, 1), ("b:c", 2, 3))


def test_separator_leaves_both_ends_in_one_context() -> None:
    text = "x-C000-S000:y-C000-S000:x-C000-S000:y-C000-S001"
    assert parse_passage_id(text).first == parse_sentence_id("x-C000-S000:y-C000-S000")


def test_uuid_is_split_from_the_right() -> None:
    text = "4f0f5f2c-9c1b-4a63-C001-8e0f1c2d3e4f-C012-S1234"
    assert parse_sentence_id(text) == ("4f0f5f2c-9c1b-4a63-C001-8e0f1c2d3e4f", 12, 1234)


def test_order_is_by_number_not_by_text() -> None:
    assert (
        parse_sentence_id("d-C001-S999")
        < parse_sentence_id("d-C001-S1000")
        < parse_sentence_id("d-C1000-S000")
    )


def test_non_canonical_numbers_are_read_and_written_canonically() -> None:
    assert str(parse_sentence_id("d-C00001-S0002")) == "d-C001-S002"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d",
        "d-C000",
        "-C000-S000",
        "d-C-S000",
        "d-C000-S",
        "d-C000-S000 ",
        "d-C000-S000\n",
        "d d-C000-S000",
        "d\u00a0d-C000-S000",
        "d-C000-S٠٠٠",
        "d-C000-S-01",
        "d-C000-S1234567890",
        "d-c000-s000",
    ],
)
def test_malformed_sentence_ids(text: str) -> None:
    with pytest.raises(ValueError, match=r"malformed sentence id .* expected DOCUMENT-C000-S000"):
        parse_sentence_id(text)


@pytest.mark.parametrize("text", ["", "d", "d-C", "-C000", "d-C000-S000", "d-C000\n"])
def test_malformed_context_ids(text: str) -> None:
    with pytest.raises(ValueError, match="malformed context id"):
        parse_context_id(text)


@pytest.mark.parametrize(
    "text",
    ["", ":", "d-C000-S000", "d-C000-S000:", ":d-C000-S000", "d-C000-S000:S001", "d-C000-S000 d-C000-S001"],
)
def test_malformed_passages(text: str) -> None:
    with pytest.raises(ValueError, match="malformed passage"):
        parse_passage_id(text)
