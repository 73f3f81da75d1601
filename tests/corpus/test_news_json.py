from __future__ import annotations

import gzip
import io
import json
import lzma
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, assemble
from epicqa.corpus.sources.members import Member
from epicqa.corpus.sources.news import News
from epicqa.corpus.sources.news_json import json_pieces
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece

LIMIT = 1 << 20
PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
ID = "0a1b2c3d-0000-4000-8000-00000000000{}"


def page(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "WARC-Record-ID": f"urn:uuid:{ID.format(number)}",
        "url": f"https://www.example.gov/news/{number}",
        "title": "A county opens a clinic",
        "sentences": ["The county opened a clinic.", "It tests for the virus."],
    } | changes


def pieces(path: Path, limit: int = LIMIT, **options: Any) -> list[Piece | LeftOut]:
    return list(News(**options).pieces([path], path.parent, limit))


def draft(given: Any) -> Draft | LeftOut:
    raw = given if isinstance(given, bytes) else json.dumps(given).encode()
    [found] = News().drafts(Piece("here", raw, {"form": "json"}), LIMIT)
    return found


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("name", ["pages.json", "Pages.JSONL"])
def test_lists_and_lines(tmp_path: Path, name: str, suffix: str) -> None:
    lines = name.endswith("L")
    given = [page(1), page(2, title="Café 😀"), page(3)]
    text = "\n\n".join(map(json.dumps, given)) if lines else json.dumps(given, indent=1, ensure_ascii=False)
    path = tmp_path / (name + suffix)
    path.write_bytes(PACKERS[suffix](b"\xef\xbb\xbf" + text.encode() + b"\n"))
    found = pieces(path)
    places = [":1", ":3", ":5"] if lines else [" item 1", " item 2", " item 3"]
    assert [one.place for one in found] == [f"{path}{place}" for place in places]
    assert found == pieces(path)
    drafts = [one for piece in found if isinstance(piece, Piece) for one in News().drafts(piece, LIMIT)]
    assert [one.document_id for one in drafts] == [ID.format(n) for n in (1, 2, 3)]
    assert [one.title for one in drafts if isinstance(one, Draft)] == [one["title"] for one in given]


def test_a_page_is_one_paragraph_of_its_sentences() -> None:
    found = draft(page(sentences=["One here.", "", " Two  inside\there. \n", " ", "Tri 😀.", "\x00", "End"]))
    assert isinstance(found, Draft)
    assert (found.document_id, found.url) == (ID.format(1), "https://www.example.gov/news/1")
    assert found.metadata == {"host": "www.example.gov"}
    [paragraph] = found.paragraphs
    assert paragraph.text == "One here.  Two  inside\there. \n Tri 😀. End"
    assert paragraph.section is None
    assert paragraph.sentences is not None
    assert [paragraph.text[start:end] for start, end in paragraph.sentences] == [
        "One here.",
        " Two  inside\there. \n",
        "Tri 😀.",
        "End",
    ]
    context = assemble(found).contexts[0]
    assert [context.text[one.start : one.end] for one in context.sentences] == [
        "One here.",
        "Two  inside\there.",
        "Tri 😀.",
        "End",
    ]


@given(st.lists(st.text(max_size=6), min_size=2, max_size=6))
def test_spans_are_the_sentences(sentences: list[str]) -> None:
    found = draft(page(sentences=["First.", *sentences, "Last."]))
    if isinstance(found, LeftOut):
        assert any("\ud800" <= c <= "\udfff" for one in sentences for c in one)
        return
    [paragraph] = found.paragraphs
    assert paragraph.sentences is not None
    marked = [paragraph.text[start:end] for start, end in paragraph.sentences]
    assert " ".join(marked) == paragraph.text
    document = assemble(found)
    context = document.contexts[0]
    assert len(context.sentences) == len(marked)
    for one, sentence in zip(marked, context.sentences, strict=True):
        assert len(context.text[sentence.start : sentence.end]) <= len(one)


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"title": None}, EMPTY, "no title"),
        ({"title": " \n"}, EMPTY, "no title"),
        ({"sentences": []}, EMPTY, "fewer than 2 sentences"),
        ({"sentences": ["One.", "", " ", "\x00"]}, EMPTY, "fewer than 2 sentences"),
        ({"title": 7}, BROKEN, "'title' must be a string, not an integer"),
        ({"sentences": None}, BROKEN, "'sentences' must be a list, not null"),
        ({"sentences": "One. Two."}, BROKEN, "'sentences' must be a list, not a string"),
        ({"sentences": ["One.", 2]}, BROKEN, "'sentences' must hold strings, not an integer"),
        ({"url": None}, BROKEN, "'url' must be a string, not null"),
        ({"WARC-Record-ID": 5}, BROKEN, "'WARC-Record-ID' must be a string, not an integer"),
        ({"WARC-Record-ID": ID.format(1)}, BROKEN, "expected urn:uuid: and a UUID"),
        ({"WARC-Record-ID": "urn:uuid:1"}, BROKEN, "the record id is 'urn:uuid:1', expected urn:uuid:"),
        ({"WARC-Record-ID": "urn:uuid:\n" + ID.format(1)}, BROKEN, "expected urn:uuid:"),
    ],
)
def test_what_is_no_page(changes: dict[str, Any], kind: str, reason: str) -> None:
    found = draft(page(**changes))
    assert isinstance(found, LeftOut)
    assert (found.place, found.kind) == ("here", kind)
    assert reason in found.reason
    assert "\n" not in found.reason
    assert found.document_id == (ID.format(1) if kind == EMPTY else None)


@pytest.mark.parametrize("key", ["WARC-Record-ID", "url", "sentences"])
def test_keys_that_must_be_there(key: str) -> None:
    found = draft({name: value for name, value in page().items() if name != key})
    assert found == LeftOut("here", BROKEN, f"missing key {key!r}")
    without = draft({name: value for name, value in page().items() if name != "title"})
    assert isinstance(without, LeftOut) and without.kind == EMPTY


def test_an_id_in_angle_brackets() -> None:
    found = draft(page(**{"WARC-Record-ID": f"<urn:uuid:{ID.format(4)}>"}))
    assert found.document_id == ID.format(4)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "broken JSON"),
        (b"[]", "a page must be a JSON object, not a list"),
        (b"null", "a page must be a JSON object, not null"),
        (b'{"url": ', "broken JSON"),
        (b'{"url": "\xff"}', "broken JSON"),
        (b"[" * 5000, "broken JSON"),
    ],
)
def test_bytes_that_are_no_page(raw: bytes, reason: str) -> None:
    found = draft(raw)
    assert isinstance(found, LeftOut)
    assert found.kind == BROKEN
    assert reason in found.reason


@given(st.binary(max_size=60))
def test_any_bytes_are_a_page_or_left_out(raw: bytes) -> None:
    found = draft(raw)
    assert isinstance(found, Draft) or "\n" not in found.reason


def test_hosts(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_text(
        json.dumps(
            [
                page(1, url="https://Example.EDU:80/"),
                page(2, url="https://example.com/gov"),
                page(3, url="nowhere"),
                page(4, url=None),
                ["no page"],
            ]
        )
    )
    assert [one.kind if isinstance(one, LeftOut) else "piece" for one in pieces(path)] == [
        "piece",
        FILTERED,
        FILTERED,
        # What is wrong with these is told by those who read them whole.
        "piece",
        "piece",
    ]
    assert all(isinstance(one, Piece) for one in pieces(path, domains=()))
    kept = pieces(path, domains=("example.com",))
    assert [isinstance(one, Piece) for one in kept[:3]] == [False, True, False]


@pytest.mark.parametrize(
    ("text", "good", "place", "reason"),
    [
        ("", 0, 1, "not JSON in UTF-8 that begins with '[', expected a list of pages"),
        (" \n", 0, 1, "expected a list of pages"),
        (json.dumps(page()), 0, 1, "expected a list of pages"),
        ("[", 0, 1, "broken JSON: Expecting value"),
        ("[1,]", 1, 2, "broken JSON"),
        ("[,1]", 0, 1, "broken JSON"),
        ("[1 2]", 1, 2, "expected ',' or ']' before it"),
        ("[1", 1, 2, "expected ',' or ']' before it"),
        ("[1,", 1, 2, "broken JSON"),
        ("[{} , {]", 1, 2, "broken JSON"),
        ('[1, "abc', 1, 2, "broken JSON: Unterminated string"),
        ('[1, "a\\', 1, 2, "broken JSON: Unterminated string"),
        ('[1, "a\nb"]', 1, 2, "broken JSON: Invalid control character"),
        ("[1] []", 1, 2, "there is more after the list's end"),
        ("[1]]", 1, 2, "there is more after the list's end"),
        ("[" * 100_000, 0, 1, "broken JSON: nested too deeply"),
    ],
)
def test_broken_lists(tmp_path: Path, text: str, good: int, place: int, reason: str) -> None:
    path = tmp_path / "pages.json"
    path.write_text(text)
    *before, last = pieces(path)
    assert len(before) == good
    assert isinstance(last, LeftOut)
    assert (last.place, last.kind) == (f"{path} item {place}", BROKEN)
    assert reason in last.reason


def test_lists_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_bytes(json.dumps([page()]).encode("utf-16"))
    [found] = pieces(path)
    assert isinstance(found, LeftOut)
    assert "not JSON in UTF-8" in found.reason
    # One page in Latin-1 is no reason to leave out the others.
    given = [page(1), page(2, title="Café"), page(3)]
    path.write_bytes(json.dumps(given, ensure_ascii=False).encode("latin-1"))
    drafts = [one for piece in pieces(path) for one in News().drafts(piece, LIMIT)]  # type: ignore[arg-type]
    assert [type(one) for one in drafts] == [Draft, LeftOut, Draft]


def test_an_early_error_is_told_before_the_rest_is_read() -> None:
    stream = io.BytesIO(b'[{"url" "x"}, ' + b'"' + b"x" * (8 << 20))
    [found] = json_pieces(Member("pages.json", "pages.json", Path(), stream), bool, 1 << 30)
    assert isinstance(found, LeftOut)
    assert found.reason.startswith("broken JSON: Expecting ':' delimiter")
    assert stream.tell() < 4 << 20


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time, however many are asked for."""

    def __init__(self, data: bytes, size: int) -> None:
        self._stream = io.BytesIO(data)
        self._size = size

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        return self._stream.readinto(memoryview(target)[: self._size])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON_VALUES, max_size=5), st.integers(1, 30), st.booleans(), st.sampled_from([None, 1]))
def test_lists_as_json_reads_them(values: list[Any], size: int, ascii_only: bool, indent: int | None) -> None:
    raw = json.dumps(values, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    member = Member("pages.json", "pages.json", Path(), io.BufferedReader(Trickle(raw, size)))
    found = list(json_pieces(member, lambda url: True, LIMIT))
    assert [
        json.loads(one.raw.decode("utf-8", "surrogatepass")) for one in found if isinstance(one, Piece)
    ] == values
    assert len(found) == len(values)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_cut_anywhere(tmp_path: Path, suffix: str) -> None:
    given = [page(number, title="Ünï") for number in range(4)]
    whole = PACKERS[suffix](json.dumps(given, ensure_ascii=False).encode())
    path = tmp_path / f"pages.json{suffix}"
    path.write_bytes(whole)
    every = pieces(path)
    counts = []
    for size in (*range(0, len(whole), 7), len(whole) - 1):
        path.write_bytes(whole[:size])
        *before, last = pieces(path)
        assert before == every[: len(before)]
        assert isinstance(last, LeftOut)
        assert last.kind == BROKEN
        assert last.place == f"{path} item {len(before) + 1}"
        counts.append(len(before))
    assert counts == sorted(counts)
    assert counts[-1] == 4


def test_lines_cut_or_broken(tmp_path: Path) -> None:
    lines = [json.dumps(page(1)), "{", json.dumps(page(2, title="x" * 3000)), json.dumps(page(3))]
    path = tmp_path / "pages.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    found = pieces(path, limit=2000)
    assert [(type(one), one.place) for one in found] == [
        (Piece, f"{path}:1"),
        (Piece, f"{path}:2"),
        (LeftOut, f"{path}:3"),
        (Piece, f"{path}:4"),
    ]
    assert isinstance(found[2], LeftOut) and found[2].kind == TOO_LARGE
    path.write_bytes(path.read_bytes()[:-9])
    last = pieces(path)[-1]
    assert isinstance(last, LeftOut)
    assert "cut short" in last.reason


def test_one_page_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_text(json.dumps([page(1), page(2, title="x" * 3000), page(3)]))
    found = pieces(path, limit=2000)
    assert [type(one) for one in found] == [Piece, LeftOut, Piece]
    assert found[1] == LeftOut(f"{path} item 2", TOO_LARGE, "more than 2,000 bytes, see --max-file-size")


def test_a_page_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "pages.json.gz"
    path.write_bytes(gzip.compress(b'[{"url": "https://a.gov"}, {"title": "' + b"x" * (40 << 20)))
    tracemalloc.start()
    try:
        found = pieces(path, limit=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(one) for one in found] == [Piece, LeftOut]
    assert isinstance(found[1], LeftOut)
    assert (found[1].place, found[1].kind) == (f"{path} item 2", TOO_LARGE)
    assert "what follows was not read" in found[1].reason
    assert peak < 12 << 20


def test_a_long_list_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "pages.json.gz"
    one = json.dumps(page(sentences=["The same sentence again, and again."] * 100)).encode()
    path.write_bytes(gzip.compress(b"[" + b",".join([one] * 3000) + b"]", 1))
    tracemalloc.start()
    try:
        number = sum(isinstance(one, Piece) for one in News().pieces([path], tmp_path, LIMIT))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert number == 3000
    assert peak < 8 << 20


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/one.json", json.dumps([page(1)]))
        archive.writestr("two.jsonl.gz", gzip.compress(json.dumps(page(2)).encode()))
        archive.writestr("notes.txt", "no pages")
        archive.writestr("broken.json.gz", b"no gzip")
        archive.writestr("three.json", json.dumps([page(3)]))
    found = pieces(path)
    assert [(type(one), one.place.removeprefix(str(path))) for one in found] == [
        (Piece, "!a/one.json item 1"),
        (Piece, "!two.jsonl.gz:1"),
        (LeftOut, "!broken.json.gz item 1"),
        (Piece, "!three.json item 1"),
    ]
