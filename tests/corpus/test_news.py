from __future__ import annotations

import gzip
import io
import lzma
import pickle
import random
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from epicqa.corpus.drafts import Draft
from epicqa.corpus.sources.news import News
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece
from epicqa.errors import EpicqaError

LIMIT = 1 << 20
DATE = "2020-03-01T12:30:00Z"
PROSE = "The county opened a clinic on Monday, and it tests everyone who has a cough or a fever. "
PAGE = f"""<html><head><title>A clinic opens</title></head>
<body><h1>A clinic opens</h1><p>{PROSE * 3}</p></body></html>"""


def uuid(number: int) -> str:
    return f"0a1b2c3d-0000-4000-8000-{number:012d}"


class Warc:
    """Writes a WARC file, every record a member of gzip's own, unless told otherwise."""

    def __init__(self, packed: bool = True) -> None:
        self._sink = io.BytesIO()
        self._writer = WARCWriter(self._sink, gzip=packed)
        self.ends = [0]

    def add(
        self,
        kind: str,
        number: int,
        body: bytes,
        *,
        url: str | None = None,
        http: Sequence[tuple[str, str]] = (),
        status: str | None = None,
        **headers: str,
    ) -> Warc:
        given = {"WARC-Record-ID": f"<urn:uuid:{uuid(number)}>", "WARC-Date": DATE}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        record = self._writer.create_warc_record(
            url or f"https://www.example.gov/{number}",
            kind,
            payload=io.BytesIO(body),
            warc_content_type=given.pop("Content-Type", ""),
            warc_headers_dict=given,
            http_headers=StatusAndHeaders(status, list(http), protocol="HTTP/1.1") if status else None,
        )
        self._writer.write_record(record)
        self.ends.append(self._sink.tell())
        return self

    def page(self, number: int, body: str | bytes = PAGE, status: str = "200 OK", **more: Any) -> Warc:
        http = {"Content-Type": "text/html; charset=utf-8"} | more.pop("http", {})
        raw = body.encode() if isinstance(body, str) else body
        return self.add("response", number, raw, http=list(http.items()), status=status, **more)

    def text(self, number: int, body: str | bytes, **more: Any) -> Warc:
        raw = body.encode() if isinstance(body, str) else body
        return self.add("conversion", number, raw, **{"Content_Type": "text/plain", **more})

    def save(self, path: Path) -> Path:
        path.write_bytes(self.raw)
        return path

    @property
    def raw(self) -> bytes:
        return self._sink.getvalue()


def read(path: Path, limit: int = LIMIT, **options: Any) -> list[Piece | LeftOut]:
    return list(News(**options).pieces([path], path.parent, limit))


def numbers(found: list[Piece | LeftOut]) -> list[int]:
    return [int(one.about["id"][-12:]) for one in found if isinstance(one, Piece)]


def left_out(found: list[Piece | LeftOut]) -> list[LeftOut]:
    return [one for one in found if isinstance(one, LeftOut)]


def draft(piece: Piece | LeftOut, limit: int = LIMIT) -> Draft:
    assert isinstance(piece, Piece), piece
    [found] = News().drafts(piece, limit)
    assert isinstance(found, Draft), found
    return found


def refused(piece: Piece | LeftOut, limit: int = LIMIT) -> LeftOut:
    assert isinstance(piece, Piece), piece
    [found] = News().drafts(piece, limit)
    assert isinstance(found, LeftOut), found
    assert found.place == piece.place
    return found


def texts(found: Draft) -> list[str]:
    return [one.text for one in found.paragraphs]


def test_a_page_of_a_warc(tmp_path: Path) -> None:
    path = Warc().page(7, url="https://News.Example.GOV:443/7").save(tmp_path / "CC-NEWS-2020.warc.gz")
    [piece] = read(path)
    assert isinstance(piece, Piece)
    assert piece.place == f"{path} record {uuid(7)}"
    assert piece.raw == PAGE.encode()
    found = draft(piece)
    assert found.document_id == uuid(7)
    assert found.url == "https://News.Example.GOV:443/7"
    assert found.title == "A clinic opens"
    assert PROSE.strip() in " ".join(texts(found))
    assert found.metadata["date"] == DATE
    assert found.metadata["host"] == "news.example.gov"


def test_the_date_of_a_page_that_tells_its_own(tmp_path: Path) -> None:
    told = '<meta property="article:published_time" content="2020-02-28T08:00:00Z"></head>'
    warc = Warc().page(1, PAGE.replace("</head>", told)).page(2, WARC_Date="yesterday\tor so")
    dates = [draft(one).metadata.get("date") for one in read(warc.save(tmp_path / "a.warc.gz"))]
    assert dates == ["2020-02-28", None]


def test_every_compression(tmp_path: Path) -> None:
    plain, packed = Warc(packed=False), Warc()
    for warc in (plain, packed):
        for number in range(5):
            warc.page(number, PAGE + "x" * number * 5000)
    zstd = zstandard.ZstdCompressor()
    files = {
        "a.warc": plain.raw,
        "b.warc.gz": packed.raw,
        "c.warc.gz": gzip.compress(plain.raw),
        "d.warc.xz": lzma.compress(plain.raw),
        "e.warc.zst": zstd.compress(plain.raw),
        "f.warc.zst": b"".join(
            zstd.compress(plain.raw[start:end])
            for start, end in zip(plain.ends, plain.ends[1:], strict=False)
        ),
        "g.WARC.GZ": packed.raw,
    }
    for name, data in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        found = read(path)
        assert numbers(found) == [0, 1, 2, 3, 4], name
        assert not left_out(found)
        assert [one.raw for one in found if isinstance(one, Piece)] == [
            (PAGE + "x" * number * 5000).encode() for number in range(5)
        ]
    assert numbers(read(tmp_path)) == list(range(5)) * len(files)
    with tarfile.open(tmp_path / "h.tar.xz", "w:xz") as archive:
        for name in ("b.warc.gz", "a.warc"):
            archive.add(tmp_path / name, name)
    with zipfile.ZipFile(tmp_path / "i.zip", "w") as archive:
        for name in ("b.warc.gz", "a.warc"):
            archive.write(tmp_path / name, f"x/{name}")
    for name in ("h.tar.xz", "i.zip"):
        found = read(tmp_path / name)
        assert numbers(found) == list(range(5)) * 2
        assert f"{name}!" in found[0].place


def test_only_pages_are_taken(tmp_path: Path) -> None:
    warc = Warc()
    warc.add("warcinfo", 1, b"software: made up\r\n", Content_Type="application/warc-fields")
    warc.add("request", 2, b"", status="GET / HTTP/1.1", http=[("Host", "x")])
    warc.page(3, status="404 Not Found")
    warc.page(4, status="301 Moved", http={"Location": "/"})
    warc.page(5, b"\x89PNG", http={"Content-Type": "image/png"})
    warc.page(6, http={"Content-Type": "application/xhtml+xml"})
    warc.add("metadata", 7, b"fetchTimeMs: 5\r\n", Content_Type="application/warc-fields")
    warc.add("revisit", 8, b"", status="200 OK", http=[("Content-Type", "text/html")])
    warc.add("resource", 9, PAGE.encode(), Content_Type="text/html; charset=UTF-8")
    warc.add("resource", 10, b"%PDF-", Content_Type="application/pdf")
    warc.add("response", 11, b"20200301\n192.0.2.1\n", url="dns:example.gov", Content_Type="text/dns")
    warc.add("conversion", 12, b"{}", Content_Type="application/json")
    warc.page(13, http={"Content-Type": "TEXT/HTML;charset='latin1'"}, status="200 ")
    warc.page(14, status="206 Partial Content")
    found = read(warc.save(tmp_path / "a.warc.gz"), domains=())
    assert numbers(found) == [6, 9, 13]
    assert not left_out(found)
    charsets = [one.about.get("charset") for one in found if isinstance(one, Piece)]
    assert charsets == [None, "UTF-8", "latin1"]


def record(number: int, block: bytes, *, length: object = None, **headers: str) -> bytes:
    """A record by hand, for what no writer writes."""
    given = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<urn:uuid:{uuid(number)}>",
        "WARC-Target-URI": f"https://www.example.gov/{number}",
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(block) if length is None else length),
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"WARC/1.0\r\n{lines}\r\n".encode() + block + b"\r\n\r\n"


def answer(body: bytes = PAGE.encode(), first: str = "HTTP/1.1 200 OK", **headers: str) -> bytes:
    given = {"Content-Type": "text/html"} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"{first}\r\n{lines}\r\n".encode() + body


def test_records_that_bend_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    path.write_bytes(
        record(1, answer(first="HTTP/2 200 "))
        + record(2, answer(first="HTTP/2 200"))
        + record(3, answer(Content_Type=""), WARC_Identified_Payload_Type="text/html")
        + record(4, answer(Content_Type=""))
        + record(5, answer(), WARC_Target_URI="<https://www.example.gov/5>")
        + record(6, answer(), WARC_Type="Response", Content_Type="")
        + record(7, answer().replace(b"\r\n", b"\n")).replace(b"\r\n", b"\n")
        + record(8, answer(), WARC_Target_URI="https://www.example.gov/8\r\n  ?folded")
        + record(9, answer()).replace(b"\r\n\r\nWARC", b"WARC").rstrip()
        + record(10, answer()).replace(b"WARC/1.0", b"\r\n\r\n\r\nWARC/1.1")
    )
    found = read(path)
    assert numbers(found) == [1, 2, 3, 5, 6, 7, 8, 9, 10]
    assert not left_out(found)
    urls = [one.about["url"] for one in found if isinstance(one, Piece)]
    assert urls[3] == "https://www.example.gov/5"


def test_hosts(tmp_path: Path) -> None:
    warc = Warc()
    hosts = ["www.example.gov", "example.com", "example.gov.evil.com", "a.example.EDU.", "who.int", "notgov"]
    for number, host in enumerate(hosts):
        # What is filtered is not read, so it is not too large either.
        warc.page(number, PAGE + "x" * (5000 if host == "example.com" else 0), url=f"https://{host}/x")
    path = warc.save(tmp_path / "a.warc.gz")
    found = read(path, limit=4000)
    assert numbers(found) == [0, 3]
    assert {one.kind for one in left_out(found)} == {FILTERED}
    assert len(found) == len(hosts)
    assert numbers(read(path, domains=("WHO.int", "example.com"))) == [1, 4]
    assert numbers(read(path, domains=())) == list(range(6))
    with pytest.raises(EpicqaError, match="'a b' is no domain, expected one such as gov"):
        News(domains=("gov", "a b"))


def chunked(raw: bytes, size: int = 700, end: bytes = b"0\r\n\r\n") -> bytes:
    parts = [raw[at : at + size] for at in range(0, len(raw), size)]
    return b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + end


def raw_deflate(raw: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush()


RAW = PAGE.encode()


@pytest.mark.parametrize(
    ("body", "transfer", "coding"),
    [
        (chunked(RAW), "chunked", ""),
        (chunked(RAW, 1), "Chunked", ""),
        (gzip.compress(RAW), "", "gzip"),
        (gzip.compress(RAW) + b"more", "", "X-GZIP"),
        (zlib.compress(RAW), "", "deflate"),
        (raw_deflate(RAW), "", "deflate"),
        (chunked(gzip.compress(RAW), 50), "chunked", "gzip"),
        (zlib.compress(gzip.compress(RAW)), "", "gzip, deflate"),
        (RAW, "identity", "identity"),
        # A crawler decoded these, and left the headers as they were.
        (RAW, "chunked", ""),
        (RAW, "", "gzip"),
        (RAW, "", "deflate"),
        (RAW, "", "br"),
        (RAW, "chunked", "gzip"),
        (b"\xef\xbb\xbf\n" + RAW, "", "gzip"),
        (RAW, "", "utf-8"),
        # Cut short after all of the page.
        (chunked(RAW, end=b""), "chunked", ""),
        (gzip.compress(RAW)[:-4], "", "gzip"),
    ],
)
def test_bodies_as_they_were_sent(tmp_path: Path, body: bytes, transfer: str, coding: str) -> None:
    http = {"Transfer-Encoding": transfer, "Content-Encoding": coding}
    [piece] = read(Warc().page(1, body, http=http).save(tmp_path / "a.warc.gz"))
    assert draft(piece).title == "A clinic opens"
    assert PROSE.strip() in " ".join(texts(draft(piece)))


@pytest.mark.parametrize(
    ("body", "coding", "reason"),
    [
        (b"\x1f\x8b\x08 no gzip", "gzip", "the body cannot be decoded: "),
        (gzip.compress(RAW)[:-6] + b"123456", "gzip", "the body cannot be decoded: "),
        (b"\x00\xff\xff no deflate", "deflate", "the body cannot be decoded: "),
        (b"\x28\xb5\x2f\xfd", "zstd", "Content-Encoding 'zstd', expected gzip, deflate or br"),
        (b"", "gzip", "no"),
    ],
)
def test_bodies_that_cannot_be_decoded(tmp_path: Path, body: bytes, coding: str, reason: str) -> None:
    [piece] = read(Warc().page(1, body, http={"Content-Encoding": coding}).save(tmp_path / "a.warc.gz"))
    found = refused(piece)
    assert found.kind == (BROKEN if body else EMPTY)
    assert reason in found.reason
    assert found.document_id == uuid(1)


def test_brotli(tmp_path: Path) -> None:
    import brotli

    warc = Warc()
    for number, body in enumerate((RAW, b"\0" * (50 << 20))):
        warc.page(number, brotli.compress(body, quality=3), http={"Content-Encoding": "br"})
    good, bomb = read(warc.save(tmp_path / "a.warc.gz"))
    assert draft(good).title == "A clinic opens"
    assert refused(bomb).kind == TOO_LARGE


def peak_of(call: Any) -> tuple[Any, int]:
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "pack", [gzip.compress, zlib.compress, raw_deflate, lambda raw: chunked(gzip.compress(raw))]
)
def test_a_body_that_unpacks_to_too_much(tmp_path: Path, pack: Any) -> None:
    body = pack(b"<" + bytes(20 << 20))
    coding = "gzip" if body[:1] in b"\x1f" or b"\x1f\x8b" in body[:20] else "deflate"
    http = {"Content-Encoding": coding, "Transfer-Encoding": "chunked" if b";a=b" in body[:20] else ""}
    [piece] = read(Warc().page(1, body, http=http).save(tmp_path / "a.warc.gz"))
    found, peak = peak_of(lambda: refused(piece))
    assert (found.kind, found.reason) == (TOO_LARGE, "more than 1,048,576 bytes, see --max-file-size")
    assert peak < 8 << 20


def test_a_record_that_is_too_large(tmp_path: Path) -> None:
    big = PAGE.encode() + b"x" * (8 << 20)
    warc = Warc().page(1).page(2, big).text(3, big)
    warc.add("resource", 4, big, Content_Type="text/html").page(
        5, big, http={"Content-Type": "video/mp4"}
    ).page(6)
    path = warc.save(tmp_path / "a.warc.gz")
    del big, warc
    found, peak = peak_of(lambda: read(path))
    assert numbers(found) == [1, 6]
    assert [(one.place, one.kind) for one in left_out(found)] == [
        (f"{path} record {uuid(number)}", TOO_LARGE) for number in (2, 3, 4)
    ]
    assert left_out(found)[0].reason == "more than 1,048,576 bytes, see --max-file-size"
    assert peak < 4 << 20


def test_many_records_take_no_memory(tmp_path: Path) -> None:
    warc = Warc()
    rng = random.Random(1)
    for number in range(100):
        warc.page(number, PAGE + rng.randbytes(20_000).hex() * 2)
    path = warc.save(tmp_path / "a.warc.gz")
    number, peak = peak_of(
        lambda: sum(isinstance(one, Piece) for one in News().pieces([path], tmp_path, LIMIT))
    )
    assert number == 100
    assert peak < 2 << 20


WET = """A clinic opens in the county
Home
About us
Contact
The county opened a clinic.
\tIt tests everyone who has a cough.\r
Wash hands.

Read more
Stay home!
Copyright 2020 Example County
"""


def test_a_page_of_a_wet_file(tmp_path: Path) -> None:
    warc = Warc().add("warcinfo", 1, b"x: y\r\n", Content_Type="application/warc-fields").text(2, WET)
    warc.text(3, "\ufeffOnly a title").text(4, "Crumbs\nHome\nAbout us\n").text(
        5, b"Caf\xe9\nCaf\xe9 is not UTF-8."
    )
    warc.text(6, "\n新しい診療所\n郡は月曜日に診療所を開いた。\n").text(
        7, b"", url="https://www.example.gov/7"
    )
    for name in ("a.warc.wet.gz", "a.wet.gz"):
        found = read(warc.save(tmp_path / name))
        assert numbers(found) == [2, 3, 4, 5, 6, 7]
    page = draft(found[0])
    assert (page.document_id, page.title) == (uuid(2), "A clinic opens in the county")
    assert texts(page) == [
        "The county opened a clinic.",
        "It tests everyone who has a cough.",
        "Wash hands.",
        "Stay home!",
        "Copyright 2020 Example County",
    ]
    assert page.metadata == {"date": DATE, "host": "www.example.gov"}
    assert [refused(found[at]).kind for at in (1, 2, 5)] == [EMPTY] * 3
    assert texts(draft(found[3])) == ["Caf\ufffd is not UTF-8."]
    assert texts(draft(found[4])) == ["郡は月曜日に診療所を開いた。"]


def test_cut_anywhere_plain(tmp_path: Path) -> None:
    warc = Warc(packed=False)
    for number in range(4):
        warc.page(number)
    path = warc.save(tmp_path / "a.warc")
    every = read(path)
    for size in range(0, len(warc.raw), 29):
        path.write_bytes(warc.raw[:size])
        found = read(path)
        # Two line feeds end a record; without them it is whole all the same.
        whole = sum(size >= end - 4 for end in warc.ends[1:])
        assert [one for one in found if isinstance(one, Piece)] == every[:whole]
        # A cut between two records cannot be seen.
        between = any(end - 4 <= size <= end for end in warc.ends[1:])
        assert len(left_out(found)) == (0 if between else 1)
        for one in left_out(found):
            assert one.kind == BROKEN
            assert one.place == (f"{path} byte {warc.ends[whole]}" if size else str(path))


@pytest.mark.parametrize("suffix", [".gz", ".whole.gz", ".xz", ".zst", ".tar.gz", ".zip"])
def test_cut_anywhere_packed(tmp_path: Path, suffix: str) -> None:
    rng = random.Random(2)
    plain, packed = Warc(packed=False), Warc()
    for number in range(6):
        for warc in (plain, packed):
            rng.seed(number)
            warc.page(number, PAGE + rng.randbytes(2000).hex())
    inside = io.BytesIO()
    if suffix == ".tar.gz":
        with tarfile.open(fileobj=inside, mode="w:gz") as archive:
            for name in ("a.warc.gz", "b.warc.gz"):
                info = tarfile.TarInfo(name)
                info.size = len(packed.raw)
                archive.addfile(info, io.BytesIO(packed.raw))
    if suffix == ".zip":
        with zipfile.ZipFile(inside, "w") as archive:
            archive.writestr("a.warc.gz", packed.raw)
    whole = {
        ".gz": packed.raw,
        ".whole.gz": gzip.compress(plain.raw),
        ".xz": lzma.compress(plain.raw),
        ".zst": zstandard.ZstdCompressor().compress(plain.raw),
    }.get(suffix, inside.getvalue())
    path = tmp_path / (f"a{suffix}" if inside.tell() else f"a.warc{suffix}".replace(".warc.whole", ".warc"))
    path.write_bytes(whole)
    every = read(path)
    counts = []
    for size in [*range(1, len(whole), max(len(whole) // 50, 1)), len(whole) - 1]:
        path.write_bytes(whole[:size])
        found = read(path)
        counts.append(len(numbers(found)))
        assert [one for one in found if isinstance(one, Piece)] == every[: counts[-1]]
        problems = left_out(found)
        assert all(one.kind == BROKEN and "cut short" in one.reason for one in problems)
        if suffix == ".gz":
            assert counts[-1] >= sum(size >= end for end in packed.ends[1:])
            assert len(problems) == (0 if size in packed.ends else 1)
        elif suffix == ".tar.gz":
            assert 1 <= len(problems) <= 2
        else:
            assert len(problems) == 1
    assert counts == sorted(counts)
    if suffix in (".gz", ".whole.gz", ".tar.gz"):
        assert counts[-1] == len(every)


@pytest.mark.parametrize(
    ("length", "kept", "places"),
    [
        # The next record begins inside this one, or after its rest.
        (lambda whole: whole - 50, [0, 1, 2, 3], 1),
        (lambda whole: whole + 3, [0, 1, 2, 3], 0),
        (lambda whole: whole + 100, [0, 1, 3], 1),
        (lambda whole: 10**6, [0], 1),
        (lambda whole: 10**17, [0], 2),
        (lambda whole: "", [0, 2, 3], 1),
        (lambda whole: -5, [0, 2, 3], 1),
        (lambda whole: "1_000", [0, 2, 3], 1),
        (lambda whole: "many", [0, 2, 3], 1),
        (lambda whole: "9" * 5000, [0, 2, 3], 1),
        (lambda whole: "٣", [0, 2, 3], 1),
    ],
)
def test_wrong_lengths(tmp_path: Path, length: Any, kept: list[int], places: int) -> None:
    path = tmp_path / "a.warc"
    block = answer()
    records = [record(number, block) for number in range(4)]
    wrong = length(len(block))
    records[1] = record(1, block, length="" if wrong == "" else wrong)
    path.write_bytes(b"".join(records))
    found = read(path)
    assert numbers(found) == kept
    problems = left_out(found)
    assert len(problems) == places
    for one in problems:
        assert one.place.startswith(f"{path} ")
        assert one.kind in (BROKEN, TOO_LARGE)
        assert len(one.reason) < 200


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no record, expected a WARC file"),
        (b"\r\n \r\n", "holds no record"),
        (b"<html>no WARC</html>\n" * 50, "no record begins here, expected WARC/1.0 or WARC/1.1"),
        (b"x" * 1_000_000, "no record begins here"),
        (b"WARC/2.0\r\n\r\n", "no record begins here"),
        (b"WARC/1.0", "cut short, in the headers"),
        (b"WARC/1.0\r\nContent-Length: 5", "cut short, in the headers"),
        (b"WARC/1.0\r\n" + b"x" * 1_000_000, "headers of a record are longer than 262,144 bytes"),
        (b"WARC/1.0\r\n" + b"a: b\r\n" * 100_000, "headers of a record are longer"),
        (b"WARC/1.0\r\n\r\n", "the Content-Length of a record is ''"),
        (b"WARC/1.0\r\nContent-Length: \xff\r\n\r\n", "the Content-Length of a record is 'ÿ'"),
        (
            record(1, answer(), WARC_Record_ID="<http://example.org/1>"),
            "record id is '<http://example.org/1>'",
        ),
        (record(1, answer(), WARC_Record_ID=""), "the record id is '', expected urn:uuid: and a UUID"),
        (record(1, b""), "no end of HTTP headers in the first 0 bytes"),
        (record(1, b"HTTP/1.1 200 OK\r\n"), "no end of HTTP headers in the first 17 bytes"),
        (record(1, b"a: b\r\n" * 50_000), "no end of HTTP headers in the first 262,144 bytes"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_is_no_warc(tmp_path: Path, content: bytes, reason: str, suffix: str) -> None:
    path = tmp_path / f"a.warc{suffix}"
    path.write_bytes(gzip.compress(content) if suffix else content)
    [found] = read(path)
    assert isinstance(found, LeftOut)
    assert found.kind == BROKEN
    assert reason in found.reason
    assert "\n" not in found.reason and len(found.reason) < 200
    # Whatever stands before it, a whole record is read; one cut within its headers goes on in the next.
    path.write_bytes(
        b"".join(map(gzip.compress if suffix else bytes, (content, b"\r\n" + record(9, answer()))))
    )
    assert numbers(read(path)) == ([] if "cut short" in reason and b":" in content else [9])


def test_a_file_that_is_no_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"no gzip at all")
    good = Warc().page(1).save(tmp_path / "b.warc.gz")
    found = list(News().pieces([path, good], tmp_path, LIMIT))
    assert numbers(found) == [1]
    [problem] = left_out(found)
    assert (problem.place, problem.kind) == (f"{path} byte 0", BROKEN)
    assert "cannot be read, damaged or cut short" in problem.reason


def test_a_damaged_archive_with_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(f"{tmp_path}/caf\udce9.zip")
    path.write_bytes(b"no zip")
    [problem] = left_out(read(path))
    assert (problem.place, problem.kind) == (f"{tmp_path}/caf\\xe9.zip", BROKEN)
    assert problem.reason.startswith("cannot be read, damaged or cut short")


def test_inputs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match="no such file or folder"):
        read(tmp_path / "none.warc")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(EpicqaError, match=r"unknown kind of file, expected \.warc, \.wet, \.json"):
        read(tmp_path / "notes.txt")
    with pytest.raises(EpicqaError, match=r"holds nothing to collect, expected \.warc"):
        read(tmp_path)


def test_the_same_again_and_in_another_process(tmp_path: Path) -> None:
    path = Warc().page(1).text(2, WET).page(3, url="https://example.com").save(tmp_path / "a.warc.gz")
    source = pickle.loads(pickle.dumps(News(domains=("gov",))))
    assert source.name == "news"
    assert list(source.pieces([path], tmp_path, LIMIT)) == read(path)


WHOLE = (
    record(1, answer())
    + record(2, WET.encode(), WARC_Type="conversion", Content_Type="text/plain")
    + record(3, answer(chunked(gzip.compress(RAW)), Transfer_Encoding="chunked", Content_Encoding="gzip"))
)


def check(path: Path) -> list[Piece | LeftOut]:
    """Reads a file of any content down to its drafts."""
    found = read(path, limit=100_000)
    for one in found:
        for made in News().drafts(one, 100_000) if isinstance(one, Piece) else [one]:
            if isinstance(made, LeftOut):
                assert made.kind in (BROKEN, TOO_LARGE, EMPTY, FILTERED)
                assert made.place.startswith(str(path))
                assert "\n" not in made.place + made.reason
                assert len(made.reason) < 500
    return found


CHANGES = st.lists(
    st.tuples(
        st.integers(0, len(WHOLE)),
        st.integers(0, 40),
        st.binary(max_size=12)
        | st.sampled_from([b"\r\n", b"\r\n\r\n", b"WARC/1.0\r\n", b"Content-Length: 7\r\n", b"0\r\n"]),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=80)
@given(CHANGES, st.booleans())
def test_damage_anywhere(tmp_path_factory: pytest.TempPathFactory, changes: Any, packed: bool) -> None:
    raw = bytearray(WHOLE)
    for at, size, new in changes:
        raw[at : at + size] = new
    path = tmp_path_factory.mktemp("fuzz") / ("a.warc.gz" if packed else "a.warc")
    path.write_bytes(gzip.compress(bytes(raw), 1) if packed else bytes(raw))
    check(path)


PACKED = (
    gzip.compress(record(1, answer()))
    + gzip.compress(record(2, answer()))
    + gzip.compress(record(3, answer()))
)


@settings(max_examples=80)
@given(st.integers(0, len(PACKED) - 1), st.binary(min_size=1, max_size=20))
def test_damage_of_the_packing(tmp_path_factory: pytest.TempPathFactory, at: int, new: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "a.warc.gz"
    path.write_bytes(PACKED[:at] + new + PACKED[at + len(new) :])
    found = check(path)
    before = sum(at >= end for end in (len(PACKED) // 3, len(PACKED) * 2 // 3))
    assert numbers(found)[: max(before - 1, 0)] == [1, 2][: max(before - 1, 0)]


@settings(max_examples=120)
@given(
    st.binary(max_size=200) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.fixed_dictionaries(
        {"form": st.sampled_from(["html", "text", "json"])},
        optional={
            "id": st.just(uuid(1)),
            "url": st.text(max_size=20) | st.just("https://www.example.gov/"),
            "date": st.text(max_size=12),
            "charset": st.sampled_from(["utf-8", "latin-1", "utf-16", "none", "rot13", "idna"])
            | st.text(max_size=8),
            "transfer": st.sampled_from(["chunked", "x"]),
            "coding": st.sampled_from(["gzip", "deflate", "br", "gzip, br", ",", "x"]),
        },
    ),
)
def test_drafts_of_any_bytes(raw: bytes, about: dict[str, str]) -> None:
    for wrapped in (raw, b"<html><body><p>" + raw):
        [found] = News().drafts(Piece("here", wrapped, about), 100)
        if isinstance(found, LeftOut):
            assert "\n" not in found.reason
