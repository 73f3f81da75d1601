"""SciFact's abstracts as documents."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.scifact import read_abstracts
from epicqa.corpus.build import build_corpus
from epicqa.corpus.sources import BadDocument, parse
from epicqa.corpus.store import CorpusStore

RECORD = {"doc_id": 12, "title": "Masks", "abstract": ["One one.", " Two.\n"], "structured": True}


def read(**changes: Any) -> Any:
    record = {key: value for key, value in (RECORD | changes).items() if value is not ...}
    return parse(json.dumps(record).encode())


def test_one_context_of_the_sentences() -> None:
    found = read(journal="J")
    (context,) = found.contexts
    assert (found.document_id, found.title, found.url) == ("12", "Masks", None)
    assert found.metadata == {"structured": True, "journal": "J"}
    assert (context.context_id, context.section, context.text) == ("12-C000", "Abstract", "One one. Two.")
    assert [(one.sentence_id, one.start, one.end) for one in context.sentences] == [
        ("12-C000-S000", 0, 8),
        ("12-C000-S001", 9, 13),
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=1, max_size=8))
def test_a_number_is_a_place_in_the_list(abstract: list[str]) -> None:
    if not any(map(str.strip, abstract)):
        with pytest.raises(BadDocument, match="the abstract is empty"):
            read(abstract=abstract)
        return
    (context,) = read(abstract=abstract).contexts
    spans = [context.text[one.start : one.end] for one in context.sentences]
    assert spans == [text.strip() or "–" for text in abstract]
    assert [one.sentence_id for one in context.sentences] == [
        f"12-C000-S{i:03d}" for i in range(len(abstract))
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"doc_id": "12"}, "'doc_id' must be an integer, not a string"),
        ({"doc_id": True}, "'doc_id' must be an integer, not a boolean"),
        ({"doc_id": -1}, "'doc_id' must be a whole number from 0, not -1"),
        ({"title": 3}, "'title' must be a string, not an integer"),
        ({"abstract": "One."}, "'abstract' must be a list, not a string"),
        ({"abstract": []}, "the abstract is empty"),
        ({"abstract": ["One.", None]}, "'abstract' must hold strings, not null (sentence 1)"),
    ],
)
def test_what_is_no_abstract(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BadDocument) as error:
        read(**changes)
    assert str(error.value) == said
    known = "12" if type(changes.get("doc_id", 12)) is int and changes.get("doc_id", 12) > 0 else None
    assert error.value.document_id == known


def test_no_title() -> None:
    assert read(title=...).title is None
    assert read(title=" ", structured=...).title is None


def test_other_formats_are_read_as_before() -> None:
    assert read(id="a", text="Text.").document_id == "a"
    with pytest.raises(BadDocument, match="missing key 'contexts'"):
        read(document_id="a")
    with pytest.raises(BadDocument, match="missing key 'document_id'"):
        read(abstract=...)


def test_the_real_corpus(shared: Path, tmp_path: Path) -> None:
    source = shared / "scifact" / "corpus.jsonl.gz"
    summary = build_corpus([source], tmp_path / "corpus", workers=1, strict=True)
    assert (summary.documents, summary.contexts, summary.sentences) == (5183, 5183, 45952)
    store = CorpusStore.open(tmp_path / "corpus")
    texts = store.iter_sentences(0, store.n_sentences)
    for row, abstract in enumerate(read_abstracts(source).values()):
        assert (store.document_id(row), store.title(row)) == (str(abstract.doc_id), abstract.title)
        assert [next(texts) for _ in abstract.sentences] == [one.strip() for one in abstract.sentences]
