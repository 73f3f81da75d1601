"""FEVER's pages as documents."""

import gzip
import json
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.fever import title_key
from epicqa.corpus.build import build_corpus
from epicqa.corpus.sources import BadDocument, parse
from epicqa.corpus.sources.fever import page_id, page_of, page_title
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.ids import parse_sentence_id

TITLES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def read(page: str, lines: Any, **more: Any) -> Any:
    return parse(json.dumps({"id": page, "text": "", "lines": lines, **more}).encode())


def numbered(document: Any) -> dict[int, str]:
    return {
        parse_sentence_id(one.sentence_id).sentence: context.text[one.start : one.end]
        for context in document.contexts
        for one in context.sentences
    }


def test_a_page() -> None:
    lines = "0\tOrla -LRB- b. 1951 -RRB- sings .\tsings\tSinging\n1\tShe said `` No '' .\n2\t\n3\t"
    lines += "\n4\tShe left .\n5\t"
    found = read("Orla_Venn_-LRB-singer-RRB-", lines)
    assert (found.document_id, found.title, found.url) == (
        "Orla_Venn_-LRB-singer-RRB-",
        "Orla Venn (singer)",
        None,
    )
    assert [(one.context_id, one.section, one.text) for one in found.contexts] == [
        (f"{found.document_id}-C000", None, 'Orla ( b. 1951 ) sings . She said " No " .'),
        (f"{found.document_id}-C001", None, "She left ."),
    ]
    assert [one.sentence_id[-9:] for context in found.contexts for one in context.sentences] == [
        *("C000-S000", "C000-S001", "C001-S004")
    ]
    assert found.metadata == {}


def test_line_feeds_in_links_and_holes() -> None:
    # "2012 TAB" is part of an anchor, since line 1 is still to come; later a number is left out.
    lines = "0\tOne .\tan\n2012\tfilm\n1\tTwo .\ta\nb\tc\n3\tFour .\td\n3\te\n1000\tLast ."
    assert numbered(read("A", lines)) == {0: "One .", 1: "Two .", 3: "Four .", 1000: "Last ."}


@given(
    st.lists(st.text(st.characters(exclude_categories=["C"], exclude_characters="\t\n"), max_size=6)),
    st.sets(st.integers(0, 8)),
)
def test_a_number_is_a_line(sentences: list[str], left_out: set[int]) -> None:
    lines = [f"{i}\t{text}\tlink\tLink" for i, text in enumerate(sentences) if i not in left_out]
    expected = {
        i: unicodedata.normalize("NFC", " ".join(text.split()))
        for i, text in enumerate(sentences)
        if i not in left_out and text.strip()
    }
    if not expected:
        with pytest.raises(BadDocument, match="the page is empty"):
            read("A", "\n".join(lines))
        return
    found = read("A", "\n".join(lines))
    tokens = {"``": '"', "''": '"'}
    assert numbered(found) == {
        i: " ".join(tokens.get(token, token) for token in text.split()) for i, text in expected.items()
    }
    for context in found.contexts:
        numbers = [parse_sentence_id(one.sentence_id).sentence for one in context.sentences]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@given(TITLES)
def test_any_title_is_an_id_and_comes_back(page: str) -> None:
    found = read(page, "0\tText .")
    assert found.document_id == page_id(page) and page_of(found.document_id) == page
    assert not any(map(str.isspace, found.document_id))
    sentence_id = parse_sentence_id(found.contexts[0].sentences[0].sentence_id)
    assert sentence_id == (found.document_id, 0, 0)


@pytest.mark.parametrize(
    ("page", "document_id", "title"),
    [
        ("Savages_-LRB-2012_film-RRB-", "Savages_-LRB-2012_film-RRB-", "Savages (2012 film)"),
        ("A_-LSB-b-RSB-_-LCB-c-RCB-", "A_-LSB-b-RSB-_-LCB-c-RCB-", "A [b] {c}"),
        ("100%_\u00a0Wolf-C000-S001", "100%25_%C2%A0Wolf-C000-S001", "100% Wolf-C000-S001"),
        ('Tide-COLON-_"Two"', 'Tide-COLON-_"Two"', 'Tide: "Two"'),
        (unicodedata.normalize("NFD", "Café"), unicodedata.normalize("NFD", "Café"), "Café"),
        ("a b:c", "a%20b:c", "a b:c"),
    ],
)
def test_titles(page: str, document_id: str, title: str) -> None:
    found = read(page, "0\tText .")
    assert (found.document_id, found.title) == (document_id, title) == (page_id(page), page_title(page))
    if "%" not in page:
        assert title_key(title) == title_key(page)


@pytest.mark.parametrize(
    ("page", "lines", "said"),
    [
        ("", "", "the page has no title ('id' is empty)"),
        (3, "0\tText .", "'id' must be a string, not an integer"),
        ("A", "", "the page is empty"),
        ("A", "0\t\n1\t ", "the page is empty"),
        ("A", ["0\tText ."], "'lines' must be a string, not a list"),
        ("A", "Text .", "'lines' must begin with a number and a tab, as in '0\\tThe first sentence .'"),
        ("A", "1234567890\tText .", "'lines' must begin with a number and a tab"),
    ],
)
def test_what_is_no_page(page: Any, lines: Any, said: str) -> None:
    with pytest.raises(BadDocument) as error:
        read(page, lines)
    assert str(error.value).removeprefix("page 'A': ").startswith(said)
    assert error.value.document_id == (page if page == "A" else None)


def test_other_formats_are_read_as_before() -> None:
    assert parse(b'{"id": "a b", "text": "", "lines": "0\\tOne ."}').document_id == "a%20b"
    assert read("A", "0\tOne .", year=1951).metadata == {"year": 1951}
    plain = parse(b'{"id": "a", "title": "T", "text": "Text.", "lines": 40}')
    assert (plain.contexts[0].text, plain.metadata) == ("Text.", {"lines": 40})


@pytest.mark.parametrize("packed", ["folder", "gz", "zip"])
def test_the_released_shape_plain_and_packed(shared: Path, tmp_path: Path, packed: str) -> None:
    (sample,) = (shared / "fever" / "wiki-sample").glob("*.jsonl")
    raw = sample.read_bytes()
    first, second = raw[: raw.index(b'{"id": "Cumb')], raw[raw.index(b'{"id": "Cumb') :]
    source = tmp_path / f"wiki-pages.{packed}"
    if packed == "folder":
        source.mkdir()
        (source / "wiki-001.jsonl").write_bytes(first)
        (source / "wiki-002.jsonl").write_bytes(second)
        places = [f"{source}/wiki-001.jsonl:{line}" for line in (1, 2)]
    elif packed == "gz":
        source = tmp_path / "wiki-001.jsonl.gz"
        source.write_bytes(gzip.compress(raw))
        places = [f"{source}:{line}" for line in (1, 2)]
    else:
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("wiki-pages/wiki-001.jsonl", first)
            archive.writestr("wiki-pages/wiki-002.jsonl", second)
        places = [f"{source}!wiki-pages/wiki-001.jsonl:{line}" for line in (1, 2)]
    summary = build_corpus([source], tmp_path / "corpus", workers=1)
    assert (summary.documents, summary.contexts, summary.sentences, summary.skipped) == (3, 4, 6, 2)
    report = [json.loads(line) for line in summary.report.read_text().splitlines()]
    assert [f"{one['file']}:{one['line']}" for one in report] == places
    assert [one["document_id"] for one in report] == [None, "Domain_Range_Ratio_-LRB-DRR-RRB-"]
    assert report[1]["reason"] == "page 'Domain_Range_Ratio_-LRB-DRR-RRB-': the page is empty"
    store = CorpusStore.open(tmp_path / "corpus")
    assert [store.title(row) for row in range(3)] == [
        *("Kelvin, North Dakota", "Cumberland Bandits", "Styrkeprøven")
    ]
    # What a folder's evidence would name: page and line.
    row = store.row("Styrkeprøven-C001-S004")
    assert store.sentence_text(row) == "In 2012 the record time was 12.51,02 ."
    assert "( The Great Trial of Strength )" in store.sentence_text(store.row("Styrkeprøven-C000-S000"))
    row = store.row("Cumberland_Bandits-C000-S001")
    assert store.sentence_text(row) == "They play in the National Capital Junior Hockey League ."


def test_strict_names_the_page(tmp_path: Path) -> None:
    source = tmp_path / "wiki-001.jsonl"
    source.write_text('{"id": "A", "text": "", "lines": "Text ."}\n')
    with pytest.raises(EpicqaError, match=r"wiki-001\.jsonl:1: page 'A': 'lines' must begin with a number"):
        build_corpus([source], tmp_path / "corpus", workers=1, strict=True)
