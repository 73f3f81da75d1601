import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from epicqa.corpus.sources import BadDocument, parse, records
from epicqa.errors import EpicqaError

Make = Callable[..., dict[str, Any]]
PACKERS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def places(source: Path) -> list[tuple[str, int | None, bytes]]:
    return [(one.file.removeprefix(str(source)), one.line, one.raw) for one in records(source)]


@pytest.mark.parametrize("suffix", PACKERS)
def test_jsonl_of_every_compression(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"docs.jsonl{suffix}"
    source.write_bytes(PACKERS[suffix](b'{"a":1}\r\n\n  \n{"b":2}\n{"c":3}'))
    assert places(source) == [("", 1, b'{"a":1}\r\n'), ("", 4, b'{"b":2}\n'), ("", 5, b'{"c":3}')]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_several_streams_in_one_file(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"docs.jsonl{suffix}"
    source.write_bytes(PACKERS[suffix](b"{}\n{") + PACKERS[suffix](b"}\n"))
    assert [raw for _, _, raw in places(source)] == [b"{}\n", b"{}\n"]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("inside", ["docs.jsonl", "docs.tar"])
def test_cut_anywhere_is_one_line(tmp_path: Path, suffix: str, inside: str) -> None:
    content = b"".join(b'{"id": "%d", "text": "words %d"}\n' % (i, i * i) for i in range(300))
    if inside == "docs.tar":
        content = tar({"a.jsonl": content, "b.jsonl": content})
    whole = PACKERS[suffix](content)
    source = tmp_path / f"{inside}{suffix}"
    for size in {0, 1, 5, 20, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 1}:
        source.write_bytes(whole[:size])
        with pytest.raises(EpicqaError) as error:
            list(records(source))
        assert str(error.value).startswith(str(source))
        assert "\n" not in str(error.value)


def test_tar_cut_or_joined(tmp_path: Path) -> None:
    whole = tar({f"{i}.json": b"[%d]" % i for i in range(40)})
    source = tmp_path / "d.tar"
    for size in range(512 * 3, 512 * 80, 512 * 3 + 100):
        source.write_bytes(whole[: size // 512 * 512])
        with pytest.raises(EpicqaError, match="cut short: "):
            list(records(source))
    source.write_bytes(whole)
    assert len(places(source)) == 40
    source.write_bytes(whole + whole)
    with pytest.raises(EpicqaError, match="second archive"):
        list(records(source))


def test_zip_cut_anywhere(tmp_path: Path) -> None:
    whole = zip_of({f"{i}.json": b"[%d]" % i for i in range(40)})
    source = tmp_path / "d.zip"
    for size in range(0, len(whole), 97):
        source.write_bytes(whole[:size])
        with pytest.raises(EpicqaError, match="cut short: "):
            list(records(source))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst", ".zip", ".tar.gz", ".tgz"])
def test_damage_is_one_line(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / (f"docs{suffix}" if suffix in (".zip", ".tar.gz", ".tgz") else f"docs.jsonl{suffix}")
    source.write_bytes(b"this is no archive" * 100)
    with pytest.raises(EpicqaError, match=r"damaged or cut short: .") as error:
        list(records(source))
    assert "\n" not in str(error.value)


def test_zip_with_wrong_checksum(tmp_path: Path) -> None:
    source = tmp_path / "docs.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a.json", b'{"a": "bcdef"}')
    source.write_bytes(source.read_bytes().replace(b"bcdef", b"bcdeg"))
    with pytest.raises(EpicqaError, match=r"docs.zip: cannot be read.*CRC"):
        list(records(source))


def test_folder_is_sorted_and_recursive(tmp_path: Path) -> None:
    for name in ("b.json", "a/2.json", "a/1.jsonl", "c.jsonl", "notes.txt", ".hidden.json", ".git/x.json"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}\n{}\n")
    assert [(file, line) for file, line, _ in places(tmp_path)] == [
        ("/a/1.jsonl", 1),
        ("/a/1.jsonl", 2),
        ("/a/2.json", None),
        ("/b.json", None),
        ("/c.jsonl", 1),
        ("/c.jsonl", 2),
    ]


def test_folder_link_to_its_parent(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    with pytest.raises(EpicqaError, match="link back"):
        list(records(tmp_path))


def test_linked_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.json").write_bytes(b"{}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "link").symlink_to(tmp_path / "real")
    assert [file for file, _, _ in places(tmp_path / "docs")] == ["/link/x.json"]


def tar(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        folder = tarfile.TarInfo("docs.json")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return sink.getvalue()


MEMBERS = {
    "./z/1.json": b"{}",
    "__MACOSX/z/1.json": b"junk",
    "a/.DS_Store.json": b"junk",
    "README.md": b"junk",
    "a/2.jsonl": b"{}\n\n{}\n",
    "a/3.jsonl.gz": gzip.compress(b"{}\n"),
    "a/4.json.xz": lzma.compress(b"{}"),
    "a/5.jsonl.zst": zstandard.ZstdCompressor().compress(b"{}\n"),
}
FOUND = [
    ("!./z/1.json", None),
    ("!a/2.jsonl", 1),
    ("!a/2.jsonl", 3),
    ("!a/3.jsonl.gz", 1),
    ("!a/4.json.xz", None),
    ("!a/5.jsonl.zst", 1),
]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("d.tar", bytes), ("d.tar.gz", gzip.compress), ("d.TGZ", gzip.compress), ("d.tar.xz", lzma.compress)],
)
def test_tar_in_its_order(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    source = tmp_path / name
    source.write_bytes(pack(tar(MEMBERS)))
    assert [(file, line) for file, line, _ in places(source)] == FOUND


def test_zip_in_its_order(tmp_path: Path) -> None:
    source = tmp_path / "d.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("docs.json")
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
    assert [(file, line) for file, line, _ in places(source)] == FOUND
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("name", ["docs.csv", "docs", "docs.json.bz2", "docs.gz"])
def test_unknown_kind(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(EpicqaError, match=r"unknown kind of file, expected .*\.jsonl"):
        list(records(tmp_path / name))


def test_missing_and_empty(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match="no such file or folder"):
        list(records(tmp_path / "none.jsonl"))
    with pytest.raises(EpicqaError, match="holds no documents"):
        list(records(tmp_path))
    (tmp_path / "blank.jsonl").write_bytes(b"\n \n")
    with pytest.raises(EpicqaError, match=r"blank\.jsonl: holds no documents"):
        list(records(tmp_path / "blank.jsonl"))
    (tmp_path / "d.zip").write_bytes(zip_of({"README": b""}))
    with pytest.raises(EpicqaError, match="holds no documents"):
        list(records(tmp_path / "d.zip"))


def zip_of(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def test_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(f"{tmp_path}/caf\udce9.json")
    path.write_bytes(b"{}")
    assert [one.file for one in records(path)] == [f"{tmp_path}/caf\\xe9.json"]


def test_real_documents(shared: Path) -> None:
    found = {
        one.document_id: one for one in map(parse, (r.raw for r in records(shared / "epicqa/documents")))
    }
    assert sorted(found) == ["0chuwvg6", "75rz1r0k", "b5329o75", "f2e3910c8f67647e4ac24eb38e9cb86e9c3cbf27"]
    page = found["f2e3910c8f67647e4ac24eb38e9cb86e9c3cbf27"]
    assert page.title == "Contact NPPTL"
    assert page.url == "https://www.cdc.gov/niosh/npptl/contact.html"
    assert page.contexts[0].section is None
    assert page.metadata == {}
    paper = found["b5329o75"]
    assert paper.url == "https://www.ncbi.nlm.nih.gov/pubmed/32134278/"
    assert set(paper.metadata) == {"authors", "urls", "full_text_path"}
    assert found["75rz1r0k"].url is None
    assert set(found["0chuwvg6"].metadata) == {"authors", "full_text_path"}


def test_absent_and_blank_are_none(document: Make) -> None:
    given = document()
    given["metadata"] = {"title": None, "url": " "}
    given["contexts"][0]["section"] = ""
    read = parse(json.dumps(given).encode())
    assert (read.title, read.url, read.contexts[0].section) == (None, None, None)
    del given["metadata"], given["contexts"][0]["section"]
    assert parse(json.dumps(given).encode()) == read


def test_adjoining_spans_astral_text_long_numbers_and_byte_order_mark(document: Make) -> None:
    given = document("a-b:c-C000")
    context = given["contexts"][0]
    context |= {"context_id": "a-b:c-C000-C1000", "text": "😀😀."}
    context["sentences"] = [
        {"sentence_id": f"a-b:c-C000-C1000-S{number}", "start": i, "end": i + 1}
        for i, number in enumerate(("998", "999", "1000"))
    ]
    read = parse(b"\xef\xbb\xbf" + json.dumps(given).encode())
    assert [(s.sentence_id[-5:], s.start, s.end) for s in read.contexts[0].sentences] == [
        ("-S998", 0, 1),
        ("-S999", 1, 2),
        ("S1000", 2, 3),
    ]


def broken(*keys: Any, to: Any = ...) -> Callable[[dict[str, Any]], None]:
    """Set what lies under the keys, or remove it."""

    def change(given: Any) -> None:
        for key in keys[:-1]:
            given = given[key]
        if to is ...:
            del given[keys[-1]]
        else:
            given[keys[-1]] = to

    return change


C, S = ("contexts", 0), ("contexts", 0, "sentences", 0)
SECOND = ("contexts", 0, "sentences", 1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (broken("document_id"), "missing key 'document_id'"),
        (broken("document_id", to=7), "'document_id' must be a string, not an integer"),
        (broken("document_id", to=""), "the document id is empty"),
        (broken("document_id", to="a b"), "document id 'a b' holds white space"),
        (broken("document_id", to="a\u00a0b"), "holds white space"),
        (
            broken("document_id", to="other"),
            "context id 'doc-C000' must begin with the document's id 'other'",
        ),
        (broken("metadata", to=[]), "'metadata' must be an object, not a list"),
        (broken("metadata", "title", to=5), "metadata: 'title' must be a string, not an integer"),
        (broken("metadata", "url", to=True), "metadata: 'url' must be a string, not a boolean"),
        (broken("metadata", "urls", to="x"), "metadata: 'urls' must be a list, not a string"),
        (broken("metadata", "urls", to=[None]), "metadata: 'urls' must hold strings, not null"),
        (broken("contexts"), "missing key 'contexts'"),
        (broken("contexts", to=[]), "'contexts' is empty"),
        (broken("contexts", to={}), "'contexts' must be a list, not an object"),
        (broken(*C, to="x"), "context 1 must be an object, not a string"),
        (broken(*C, "context_id"), "context 1: missing key 'context_id'"),
        (broken(*C, "context_id", to="doc-C"), "malformed context id 'doc-C', expected DOCUMENT-C000"),
        (
            broken(*C, "context_id", to="doc-C0000"),
            "context id 'doc-C0000' is not canonical, expected 'doc-C000'",
        ),
        (broken(*C, "text"), "context doc-C000: missing key 'text'"),
        (broken(*C, "text", to=None), "context doc-C000: 'text' must be a string, not null"),
        (broken(*C, "text", to=" \n"), "context doc-C000: the text is empty"),
        (broken(*C, "section", to=3), "context doc-C000: 'section' must be a string, not an integer"),
        (broken(*C, "sentences"), "context doc-C000: missing key 'sentences'"),
        (broken(*C, "sentences", to=[]), "context doc-C000: 'sentences' is empty"),
        (broken(*S, to=[]), "context doc-C000: a sentence must be an object, not a list"),
        (broken(*S, "sentence_id"), "context doc-C000: missing key 'sentence_id'"),
        (broken(*S, "sentence_id", to="doc-S000"), "malformed sentence id 'doc-S000'"),
        (
            broken(*S, "sentence_id", to="doc-C001-S000"),
            "sentence id 'doc-C001-S000' must begin with its context's id 'doc-C000'",
        ),
        (broken(*S, "sentence_id", to="doc-C0000-S000"), "must begin with its context's id 'doc-C000'"),
        (
            broken(*S, "sentence_id", to="doc-C000-S0000"),
            "sentence id 'doc-C000-S0000' is not canonical, expected 'doc-C000-S000'",
        ),
        (
            broken(*SECOND, "sentence_id", to="doc-C000-S002"),
            "sentence id 'doc-C000-S002' does not follow the one before, expected 'doc-C000-S001'",
        ),
        (broken(*SECOND, "sentence_id", to="doc-C000-S000"), "does not follow the one before"),
        (broken(*S, "start"), "sentence doc-C000-S000: missing key 'start'"),
        (broken(*S, "end", to=3.0), "sentence doc-C000-S000: 'end' must be an integer, not a number"),
        (broken(*S, "start", to=False), "sentence doc-C000-S000: 'start' must be an integer, not a boolean"),
        (
            broken(*S, "start", to=-1),
            "sentence doc-C000-S000: span -1-9 is outside the text of 19 characters",
        ),
        (broken(*SECOND, "end", to=20), "span 10-20 is outside the text of 19 characters"),
        (broken(*SECOND, "end", to=4), "sentence doc-C000-S001: end 4 is before start 10"),
        (broken(*S, "end", to=0), "sentence doc-C000-S000: span 0-0 is blank"),
        (broken(*SECOND, to={"sentence_id": "doc-C000-S001", "start": 9, "end": 10}), "span 9-10 is blank"),
        (broken(*SECOND, "start", to=8), "start 8 overlaps the sentence before, which ends at 9"),
    ],
)
def test_bad_documents(document: Make, change: Callable[[Any], None], reason: str) -> None:
    given = document()
    change(given)
    with pytest.raises(BadDocument) as error:
        parse(json.dumps(given).encode())
    assert reason in str(error.value)
    assert "\n" not in str(error.value)
    known = given.get("document_id")
    assert error.value.document_id == (known if known in ("doc", "other") else None)


def test_contexts_ascend_and_may_skip(document: Make) -> None:
    given = document(texts=[["A."], ["B."], ["C."]])
    del given["contexts"][1]
    assert [c.context_id for c in parse(json.dumps(given).encode()).contexts] == ["doc-C000", "doc-C002"]
    given["contexts"].reverse()
    with pytest.raises(BadDocument, match="context doc-C000: its number must be above 2"):
        parse(json.dumps(given).encode())


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "broken JSON"),
        (b'{"document_id": "x"', "broken JSON: .*line 1 column"),
        (b'{"id": "x", "text": "caf\xe9"}', "not UTF-8: byte 0xe9 at offset 24"),
        ('{"id": "x", "text": "a"}'.encode("utf-16"), "not UTF-8: byte 0xff at offset 0"),
        (b'{"id": "x", "text": "\\ud800"}', "broken JSON: .*surrogate"),
        (b'{"id": "x", "text": NaN}', "broken JSON"),
        (b"[" * 3000 + b"]" * 3000, "broken JSON"),
        (b"[1]", "a document must be a JSON object, not a list"),
        (b"null", "a document must be a JSON object, not null"),
        (b"{}", "missing key 'document_id'"),
        (b'{"id": "x"}', "missing key 'text'"),
        (b'{"id": null, "text": "a"}', "'id' must be a string, not null"),
        (b'{"id": "x y", "text": "a"}', "white space"),
        (b'{"id": "x", "text": 1}', "'text' must be a string, not an integer"),
        (b'{"id": "x", "text": " \\n\\n "}', "the text is empty"),
        (b'{"id": "x", "text": "a", "title": []}', "'title' must be a string, not a list"),
        (b'{"id": "x", "text": "a", "m": ' + b'{"a":' * 400 + b"1" + b"}" * 401, "metadata cannot be stored"),
    ],
)
def test_bad_records(raw: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse(raw)


def test_plain_document() -> None:
    read = parse(
        json.dumps(
            {
                "id": "page-1",
                "title": "Masks",
                "url": "https://example.org",
                "text": "Wear one. It helps.\r\n \r\n\n  Wash it 😀. Daily.\nStill here.  \n",
                "date": "2020-05-01",
            }
        ).encode()
    )
    assert (read.title, read.url, read.metadata) == ("Masks", "https://example.org", {"date": "2020-05-01"})
    assert [c.context_id for c in read.contexts] == ["page-1-C000", "page-1-C001"]
    assert [[c.text[s.start : s.end] for s in c.sentences] for c in read.contexts] == [
        ["Wear one.", "It helps."],
        ["Wash it 😀.", "Daily.", "Still here."],
    ]
    assert read.contexts[1].sentences[1].sentence_id == "page-1-C001-S001"


def test_plain_integer_id() -> None:
    assert parse(b'{"id": 12, "text": "a"}').document_id == "12"
