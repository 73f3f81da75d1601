"""Files of pages as drafts: which are read, as what, under which address, and what is reported."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, assemble
from epicqa.corpus.sources.pages import Pages
from epicqa.corpus.sources.raw import BROKEN, EMPTY, TOO_LARGE, LeftOut, Piece
from epicqa.errors import EpicqaError

LIMIT = 1 << 20
TOLD = "Wash your hands with soap and water for twenty seconds, above all after you were in a public place."
BODY = f"<body><main><h1>Lung Fever</h1><p>{TOLD}</p></main></body>"
HTML = f"<html><head><title>Lung Fever</title></head>{BODY}</html>"
XML = f'<doc url="https://a.example/x"><title>Lung Fever</title><text>{TOLD}</text></doc>'


def collected(source: Pages, *inputs: Path, limit: int = LIMIT) -> Iterator[tuple[str, Draft | LeftOut]]:
    for piece in source.pieces(inputs, inputs[0], limit):
        if isinstance(piece, LeftOut):
            yield piece.place, piece
        else:
            yield from ((piece.place, found) for found in source.drafts(piece, limit))


def one(name: str, raw: bytes | str, base: str | None = None) -> Draft | LeftOut:
    content = raw.encode() if isinstance(raw, str) else raw
    (found,) = Pages(base=base).drafts(Piece(name, content, {"name": name}), LIMIT)
    return found


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder as a crawler leaves it."""
    for name, content in {
        "www.agency.example/fever/index.html": HTML,
        "www.agency.example/fever/faq.html?lang=en&p=1": HTML,
        "www.agency.example/fever/about": HTML,
        "www.agency.example/fever/old.HTM": HTML,
        "www.agency.example/fever/ask.php": "<?php ?>" + HTML,
        "www.agency.example/fever/x.xml": XML,
        "www.agency.example/fever/style.css": "p {}",
        "www.agency.example/fever/a.pdf": "%PDF",
        "www.agency.example/fever/.hidden.html": HTML,
        "www.agency.example/LICENSE": "Do as you like.",
        "www.agency.example/menu.html": "<html><body><nav><a href='/'>Home</a></nav></body></html>",
        "www.agency.example/picture.html": "\x89PNG\r\n\x1a\n",
    }.items():
        path = tmp_path / "mirror" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("latin-1"))
    return tmp_path / "mirror"


def test_a_crawler_s_folder_is_read_and_nothing_in_it_goes_unseen(mirror: Path) -> None:
    found = {
        place.removeprefix(f"{mirror}/www.agency.example/"): what
        for place, what in collected(Pages(), mirror)
    }
    assert [place for place, what in found.items() if isinstance(what, Draft)] == [
        "fever/about",
        "fever/ask.php",
        "fever/faq.html?lang=en&p=1",
        "fever/index.html",
        "fever/old.HTM",
        "fever/x.xml",
    ]
    assert {
        place: (what.kind, what.reason) for place, what in found.items() if isinstance(what, LeftOut)
    } == {
        "LICENSE": (BROKEN, "not a page: there is no HTML in its first 16 KiB"),
        "menu.html": (EMPTY, "no text but menus and links"),
        "picture.html": (BROKEN, "not an HTML page: it looks like a PNG image"),
    }


def test_a_draft_has_title_text_and_metadata_and_no_id() -> None:
    draft = one("x.html", HTML.replace("<html>", '<html lang="en">'))
    assert isinstance(draft, Draft)
    assert (draft.title, draft.url, draft.document_id) == ("Lung Fever", None, None)
    assert [(paragraph.section, paragraph.text) for paragraph in draft.paragraphs] == [(None, TOLD)]
    assert draft.metadata == {"language": "en"}
    assert assemble(draft).contexts[0].text == TOLD


@pytest.mark.parametrize(
    ("base", "name", "url"),
    [
        ("https://", "www.agency.example/fever/a b.html", "https://www.agency.example/fever/a%20b.html"),
        ("http://a.example", "x/y.html.gz", "http://a.example/x/y.html"),
        ("http://a.example/p/", "faq.html?lang=en&p=1", "http://a.example/p/faq.html?lang=en&p=1"),
        ("http://a.example/", "../../etc//x.html", "http://a.example/etc/x.html"),
        ("http://a.example/", "50%25#é.html", "http://a.example/50%25%23%C3%A9.html"),
        (None, "x.html", None),
    ],
)
def test_an_address_that_the_page_does_not_name_is_the_base_and_the_file_s_name(
    base: str | None, name: str, url: str | None
) -> None:
    draft = one(name, HTML, base)
    assert isinstance(draft, Draft) and draft.url == url


def test_an_address_that_the_page_names_wins_over_the_base() -> None:
    draft = one("x.xml", XML, "https://b.example/")
    assert isinstance(draft, Draft) and draft.url == "https://a.example/x"
    linked = one(
        "x.html",
        HTML.replace("<head>", '<head><link rel="canonical" href="https://a.example/">'),
        "https://b/",
    )
    assert isinstance(linked, Draft) and linked.url == "https://a.example/"


def test_a_base_that_is_no_address_is_refused(mirror: Path) -> None:
    with pytest.raises(EpicqaError, match=r"www\.agency\.example: not a base address, expected"):
        list(Pages(base="www.agency.example").pieces([mirror], mirror, LIMIT))


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("x.html", f'<?xml version="1.0"?>\n<!-- a --><!DOCTYPE doc>{XML}'),
        (
            "x.xml",
            f'<?xml version="1.0"?><!DOCTYPE html PUBLIC "a" "b">{HTML}',
        ),
        ("x.xhtml", '<?xml version="1.0" encoding="utf-8"?>' + HTML),
        ("x.xml", XML.encode("utf-16")),
        ("x", "Warning: a program said something<br>" + HTML),
        ("x", f"<div><p>{TOLD}</p></div>"),
    ],
)
def test_what_a_file_is_follows_from_what_it_holds(name: str, raw: bytes | str) -> None:
    draft = one(name, raw)
    assert isinstance(draft, Draft) and draft.paragraphs[-1].text == TOLD


@pytest.mark.parametrize(
    ("name", "raw", "reason"),
    [
        (
            "x.xml",
            "<rss><channel><title>t</title></channel></rss>",
            "an XML file of <rss>, expected <doc> or <html>",
        ),
        ("x.html", '<?xml version="1.0"?><svg/>', "an XML file of <svg>, expected <doc> or <html>"),
        ("x.xml", "words", "not an XML file"),
        ("x.html", "words", "not an HTML page: there is no element in it"),
        ("x.xml", "<doc><text>", "broken XML: "),
        ("x", b"\x7fELF\x02\x01\x01", "not a page: there is no HTML in its first 16 KiB"),
    ],
)
def test_other_files_are_reported(name: str, raw: bytes | str, reason: str) -> None:
    found = one(name, raw)
    assert isinstance(found, LeftOut) and found.place == name
    assert found.kind == BROKEN and found.reason.startswith(reason)


def test_what_a_page_says_twice_is_read_once_but_short_answers_are_not() -> None:
    short = "<h2>Is it safe?</h2><p>Yes, it is safe.</p><h2>Is it near?</h2><p>Yes, it is safe.</p>"
    draft = one("x.html", HTML.replace("</main>", f"<p>{TOLD}</p>{short}<h2>Again</h2><p>{TOLD}</p></main>"))
    assert isinstance(draft, Draft)
    assert [(paragraph.section, paragraph.text) for paragraph in draft.paragraphs] == [
        (None, TOLD),
        ("Is it safe?", "Yes, it is safe."),
        ("Is it near?", "Yes, it is safe."),
    ]


def test_archives_and_compressed_files_are_read_in_place(tmp_path: Path) -> None:
    (tmp_path / "x.html.gz").write_bytes(gzip.compress(HTML.encode()))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/x.html", HTML)
        archive.writestr("../../y", HTML)
    with tarfile.open(tmp_path / "x.tgz", "w:gz") as tar:
        entry = tarfile.TarInfo("b/x.xml")
        entry.size = len(XML)
        tar.addfile(entry, io.BytesIO(XML.encode()))
    inputs = [tmp_path / name for name in ("x.html.gz", "x.zip", "x.tgz")]
    found = dict(collected(Pages(), *inputs))
    assert [place.removeprefix(f"{tmp_path}/") for place in found] == [
        "x.html.gz",
        "x.zip!a/x.html",
        "x.zip!../../y",
        "x.tgz!b/x.xml",
    ]
    assert all(isinstance(what, Draft) for what in found.values())


def test_what_is_too_large_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.html.gz").write_bytes(gzip.compress(b"<p>" + b"x" * 10_000))
    ((_, found),) = collected(Pages(), tmp_path, limit=1000)
    assert isinstance(found, LeftOut) and found.kind == TOO_LARGE


def test_inputs_without_pages_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    with pytest.raises(EpicqaError, match=r"holds nothing to collect, expected \.html"):
        list(Pages().pieces([tmp_path], tmp_path, LIMIT))
    with pytest.raises(EpicqaError, match="unknown kind of file"):
        list(Pages().pieces([tmp_path / "a.pdf"], tmp_path, LIMIT))


def test_a_source_travels_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(Pages(base="https://"))) == Pages(base="https://")
    assert Pages().name == "pages"


@settings(max_examples=200)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"<html><body><p>", b"<?xml version='1.0'?><doc><text>", b"<doc>", b"<!DOCTYPE ["]),
    st.sampled_from(["x.html", "x.xml", "x", "x.php", "a/b.html?c", ""]),
    st.sampled_from([None, "https://", "http://a.example/b"]),
)
def test_any_bytes_are_one_draft_or_one_reason(junk: bytes, head: bytes, name: str, base: str | None) -> None:
    found = one(name, head + junk, base)
    if isinstance(found, Draft):
        assert found.paragraphs
        assemble(found)
    else:
        assert found.reason and "\n" not in found.reason
