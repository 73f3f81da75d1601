import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, NoText, Paragraph, assemble, clean, content_id, document_json
from epicqa.corpus.model import Context, Document
from epicqa.corpus.sentences import split
from epicqa.corpus.sources import parse
from epicqa.corpus.sources.base import BadDocument
from epicqa.ids import parse_context_id, parse_sentence_id

Make = Callable[..., dict[str, Any]]

# Words and stops make several sentences; the rest is what texts should not hold, and what looks like it.
ANY_TEXT = st.text(st.characters(), max_size=30)
PIECES = st.sampled_from([
    "One here.", "Two words!", "x", "covid", "Fig. 3", "et al.", "\n\n", "\n", " ", "\t", "\xa0", "\u3000",
    "\u2028", "\x00", "\x1c", "\x85", "\ud800", "\udfff", "\uffff", "\ufeff", "\u200b", "😀", "ü", "u\u0308",
    "。", "- a", "(b)", "a" * 30, "b" * 12 + " ",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=14).map(" ".join) | st.lists(PIECES, max_size=14).map("".join) | ANY_TEXT
SECTIONS = st.none() | st.sampled_from(["Methods", " ", "A - B\x07", "\ud800"]) | ANY_TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)
METADATA = st.dictionaries(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5).filter(
        lambda key: key not in ("title", "url", "urls")
    ),
    JSON,
    max_size=2,
)
NUMBERS = st.integers(1, 4)
CHARACTERS = st.integers(1, 25)


def drafts(paragraphs: st.SearchStrategy[Paragraph]) -> st.SearchStrategy[Draft]:
    return st.builds(
        Draft,
        st.lists(paragraphs, max_size=4).map(tuple),
        title=SECTIONS,
        url=SECTIONS,
        document_id=st.none() | st.sampled_from(["a", "a-C000", "x:y", "Ü-C000-S000", "/.."]),
        metadata=METADATA,
    )


@st.composite
def marked(draw: st.DrawFn) -> Paragraph:
    """A paragraph whose source marked sentences, some of them blank or with spaces around."""
    text = draw(TEXTS)
    marks = st.lists(st.integers(0, len(text)), max_size=8, unique=True).map(sorted)
    cuts = draw(marks)
    # With characters between them, or one after the other.
    spans = zip(cuts[::2], cuts[1::2], strict=False) if draw(st.booleans()) else pairwise(cuts)
    return Paragraph(text, draw(SECTIONS), tuple(spans))


PLAIN = drafts(st.builds(Paragraph, TEXTS, SECTIONS))
MARKED = drafts(marked())


def ink(text: str) -> str:
    return "".join(text.split())


def is_clean(text: str) -> bool:
    return all(
        char in "\t\n" or not (ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000)
        for char in text
    )


def sentences(context: Context) -> list[str]:
    return [context.text[one.start : one.end] for one in context.sentences]


def cut(text: str, limit: int) -> list[str]:
    """A sentence in pieces, plainly: as long as may be, ending before white space if there is some."""
    found = []
    text = text.strip()
    while len(text) > limit:
        at = next((at for at in range(limit, 0, -1) if text[at].isspace()), limit)
        found.append(text[:at].strip())
        text = text[at:].strip()
    return [*found, text]


def expected(draft: Draft, max_sentences: int, max_characters: int) -> list[tuple[str | None, list[str]]]:
    """The section and the sentences of each context, plainly."""
    found = []
    for paragraph in draft.paragraphs:
        text = "".join(
            char if is_clean(char) and char not in "\ufffe\uffff" else " " for char in paragraph.text
        )
        text = "".join(" " if 0xFDD0 <= ord(char) <= 0xFDEF else char for char in text)
        if paragraph.sentences is None:
            text = text.strip()
            whole = [text[start:end] for start, end in split(text)]
        else:
            whole = [text[start:end] for start, end in paragraph.sentences]
        pieces = [piece for one in whole if one.strip() for piece in cut(one, max_characters)]
        section = clean(paragraph.section or "") or None
        for first in range(0, len(pieces), max_sentences):
            found.append((section, pieces[first : first + max_sentences]))
    return found


def check(document: Document, max_sentences: int, max_characters: int) -> None:
    """What holds of every document."""
    for number, context in enumerate(document.contexts):
        assert tuple(parse_context_id(context.context_id)) == (document.document_id, number)
        assert str(parse_context_id(context.context_id)) == context.context_id
        assert 1 <= len(context.sentences) <= max_sentences
        assert context.text == context.text.strip() and is_clean(context.text)
        assert (context.sentences[0].start, context.sentences[-1].end) == (0, len(context.text))
        end = 0
        for at, one in enumerate(context.sentences):
            assert tuple(parse_sentence_id(one.sentence_id)) == (document.document_id, number, at)
            assert str(parse_sentence_id(one.sentence_id)) == one.sentence_id
            assert end <= one.start
            end = one.end
        for text in sentences(context):
            assert text == text.strip() != "" and len(text) <= max_characters


@settings(max_examples=120)
@given(PLAIN | MARKED, NUMBERS, CHARACTERS)
def test_as_the_plain_reference(draft: Draft, max_sentences: int, max_characters: int) -> None:
    wanted = expected(draft, max_sentences, max_characters)
    if not wanted:
        with pytest.raises(NoText, match=r"^no text$") as error:
            assemble(draft, max_sentences=max_sentences, max_characters=max_characters)
        assert error.value.document_id == (draft.document_id or content_id(draft))
        return
    document = assemble(draft, max_sentences=max_sentences, max_characters=max_characters)
    check(document, max_sentences, max_characters)
    assert [(one.section, sentences(one)) for one in document.contexts] == wanted
    assert document.document_id == (draft.document_id or content_id(draft))
    assert document.title == (clean(draft.title or "") or None)
    # An address may be put on one line.
    assert ink(document.url or "") == ink(clean(draft.url or ""))
    assert parse(document_json(document)) == document


@settings(max_examples=60)
@given(PLAIN, NUMBERS, CHARACTERS)
def test_every_character_lies_in_one_sentence(draft: Draft, max_sentences: int, max_characters: int) -> None:
    try:
        document = assemble(draft, max_sentences=max_sentences, max_characters=max_characters)
    except NoText:
        assert not any(clean(one.text) for one in draft.paragraphs)
        return
    found = [text for context in document.contexts for text in sentences(context)]
    assert ink("".join(found)) == ink("".join(clean(one.text) for one in draft.paragraphs))


@given(PLAIN)
def test_a_content_id_is_the_sha1_of_the_texts(draft: Draft) -> None:
    texts = [clean(one.text) for one in draft.paragraphs]
    assert content_id(draft) == hashlib.sha1("".join(texts).encode()).hexdigest()
    assert all(is_clean(text) and text == text.strip() for text in texts)


def test_sentences_and_contexts_of_the_default_sizes() -> None:
    draft = Draft(
        (Paragraph(" ".join(f"Sentence number {n} ends here." for n in range(40))),), document_id="d"
    )
    assert [len(one.sentences) for one in assemble(draft).contexts] == [15, 15, 10]
    long = Draft((Paragraph("word " * 500),), document_id="d")
    assert [len(text) for text in sentences(assemble(long).contexts[0])] == [999, 999, 499]
    solid = Draft((Paragraph("x" * 2500),), document_id="d")
    assert [len(text) for text in sentences(assemble(solid).contexts[0])] == [1000, 1000, 500]


def test_blank_paragraphs_take_no_number_and_marked_spans_stay() -> None:
    draft = Draft(
        (
            Paragraph(" \x00\n"),
            Paragraph("  One. two\x07three", "A", ((2, 6), (7, 16))),
            Paragraph("Nothing is marked here.", "B", ()),
            Paragraph(" Last. ", " "),
        ),
        document_id="d",
    )
    found = [(one.context_id, one.section, one.text, sentences(one)) for one in assemble(draft).contexts]
    assert found == [
        ("d-C000", "A", "One. two three", ["One.", "two three"]),
        ("d-C001", None, "Last.", ["Last."]),
    ]


def test_more_than_a_thousand_contexts_and_sentences() -> None:
    many = Draft((Paragraph("Yes. " * 2200),) * 2, document_id="d")
    document = assemble(many, max_sentences=1100)
    assert document.contexts[0].sentences[-1].sentence_id == "d-C000-S1099"
    assert len(assemble(replace(many, paragraphs=(Paragraph("A."),) * 1001)).contexts[-1].context_id) == 7
    assert parse(document_json(document)) == document


@pytest.mark.parametrize("document_id", ["", " ", "a b", "a\u3000b", "a\n"])
def test_an_id_that_no_run_can_carry(document_id: str) -> None:
    with pytest.raises(BadDocument, match="document id"):
        assemble(Draft((Paragraph("Text."),), document_id=document_id))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("document_id", "metadata"),
    [
        ("d\ud800", {}),
        ("d", {"key": "\ud800"}),
        ("d", {"\udfff": 1}),
        ("d", {"key": 2**64}),
        ("d", {"key": {1, 2}}),
        *(("d", nested(depth)) for depth in range(248, 258)),
        ("d", nested(5000)),
    ],
)
def test_what_json_cannot_hold_is_no_document(document_id: str, metadata: dict[str, Any]) -> None:
    """Never an error when the document is written, which nobody could lay to its source."""
    try:
        document = assemble(Draft((Paragraph("Text."),), document_id=document_id, metadata=metadata))
    except BadDocument as error:
        assert error.document_id in ("d", None) and str(error).count("\n") == 0
        return
    assert parse(document_json(document)) == document


@settings(max_examples=50)
@given(
    url=st.none() | st.sampled_from(["", "https://a", "https://b"]),
    urls=st.none() | st.lists(st.sampled_from(["", "https://a", "https://b", "https://c"]), max_size=3),
    metadata=METADATA,
)
def test_a_document_that_was_read_is_written_the_same(
    url: str | None, urls: list[str] | None, metadata: dict[str, Any]
) -> None:
    given = {
        "document_id": "d",
        "metadata": {"title": "T", "url": url, "urls": urls, **metadata},
        "contexts": [
            {
                "section": None,
                "context_id": "d-C007",
                "text": " One. ",
                "sentences": [{"sentence_id": "d-C007-S003", "start": 1, "end": 5}],
            }
        ],
    }
    try:
        document = parse(json.dumps(given).encode())
    except BadDocument:
        # Halves of surrogate pairs.
        return
    again = parse(document_json(document))
    assert again == document
    assert document_json(again) == document_json(document)
