"""Unpacking releases."""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from epicqa.corpus.sources.unpack import unpacked

LIMIT = 1 << 20

Contents = Mapping[str, bytes | tarfile.TarInfo]


def tar(files: Contents) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def zipped(files: Contents) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            assert isinstance(content, bytes)
            archive.writestr(name, content)
    return raw.getvalue()


def linked(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def claiming(name: str, **headers: str) -> tarfile.TarInfo:
    """An empty file whose header says more."""
    member = tarfile.TarInfo(name)
    member.pax_headers = headers
    return member


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("pack", [tar, zipped])
def test_archive_with_names_that_lead_out(tmp_path: Path, pack: Callable[[Contents], bytes]) -> None:
    bad = ["../out.json", "/etc/out.json", "a/../../out.json", "a/b.json/c.json", "x" * 300 + ".json"]
    files = {"a/b.json": b"{}", "./c/./d.json": b"[]", **dict.fromkeys(bad, b"{}"), "notes.txt": b""}
    files |= {".hidden/x.json": b"", "e.csv": b"", "metadata.csv": b"a", "f.json": b"{}"}
    (archive := tmp_path / f"r.{'zip' if pack is zipped else 'tar.gz'}").write_bytes(pack(files))
    found = list(unpacked(archive, tmp_path / "in" / "out", LIMIT))
    assert [one.place.removeprefix(f"{archive}!") for one in found] == bad
    assert {one.kind for one in found} == {"unsafe path"}
    assert contents(tmp_path / "in") == [
        *("out/.unpacked.jsonl", "out/a/b.json", "out/c/d.json", "out/f.json", "out/metadata.csv")
    ]
    assert contents(tmp_path) == [*(f"in/{name}" for name in contents(tmp_path / "in")), archive.name]


def test_links_and_devices_in_archives_are_passed_over(tmp_path: Path) -> None:
    members = {
        "1": linked("document_parses", "/"),
        "2": linked("link.json", "/etc/passwd"),
        "3": linked("hard.json", "metadata.csv", tarfile.LNKTYPE),
        "4": linked("device.json", "", tarfile.CHRTYPE),
        "5": linked("pipe.json", "", tarfile.FIFOTYPE),
        "metadata.csv": b"a",
        "document_parses/a.json": b"{}",
    }
    (archive := tmp_path / "r.tar.gz").write_bytes(tar(members))
    assert list(unpacked(archive, tmp_path / "out", LIMIT)) == []
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))
    assert contents(tmp_path / "out") == [".unpacked.jsonl", "document_parses/a.json", "metadata.csv"]
    # Those of an archive in an archive, too.
    inner = tar(
        {"1": linked("x.json", "/etc/passwd"), "../y.json": b"{}", "/z.json": b"{}", "d/w.json": b"{}"}
    )
    archive.write_bytes(tar({"2020/document_parses.tar.gz": inner}))
    found = list(unpacked(archive, tmp_path / "new", LIMIT))
    place = f"{archive}!2020/document_parses.tar.gz!"
    assert [one.place.removeprefix(place) for one in found] == ["../y.json", "/z.json"]
    assert contents(tmp_path / "new") == [".unpacked.jsonl", "2020/d/w.json"]


@pytest.mark.parametrize("pack", [tar, zipped])
def test_archives_are_bounded(tmp_path: Path, pack: Callable[[Contents], bytes]) -> None:
    archive = tmp_path / f"r.{'zip' if pack is zipped else 'tar.gz'}"
    archive.write_bytes(pack({"large.json": b" " * 5000, "small.json": b" " * 4000}))
    (told,) = unpacked(archive, tmp_path / "one", 4000)
    assert (told.place, told.kind) == (f"{archive}!large.json", "too large")
    assert contents(tmp_path / "one") == [".unpacked.jsonl", "small.json"]
    archive.write_bytes(pack({f"{number}.json": b" " * (1 << 20) for number in range(50)}))
    (told,) = unpacked(archive, tmp_path / "two", 1 << 20)
    assert (told.place, told.kind) == (str(archive), "too large")
    size = archive.stat().st_size
    assert told.reason.startswith(
        f"unpacks to more than {(1 << 20) + 100 * size:,} bytes, 100 times its size"
    )
    written = sum(path.stat().st_size for path in (tmp_path / "two").glob("*.json"))
    assert written <= (1 << 20) + 100 * size
    # A table is bounded by the archive's size alone, and counts as much as any file.
    archive.write_bytes(pack({"metadata.csv": os.urandom(5000)}))
    assert list(unpacked(archive, tmp_path / "three", 100)) == []
    archive.write_bytes(pack({"metadata.csv": b" " * (50 << 20)}))
    (told,) = unpacked(archive, tmp_path / "four", 1000)
    assert (told.kind, contents(tmp_path / "four")) == ("too large", [".unpacked.jsonl"])


def test_archives_of_countless_empty_files_are_bounded(tmp_path: Path) -> None:
    (archive := tmp_path / "r.tar.gz").write_bytes(tar({f"{number}.json": b"" for number in range(3000)}))
    (told,) = unpacked(archive, tmp_path / "out", 1000)
    assert told.kind == "too large"
    assert len(contents(tmp_path / "out")) < 100 * archive.stat().st_size / 4096 + 2


def test_unpacking_happens_once(tmp_path: Path) -> None:
    archive, folder = tmp_path / "r.zip", tmp_path / "scratch"
    archive.write_bytes(zipped({"a.json": b"{}", "../b.json": b"{}"}))
    # What a killed run left there.
    (tmp_path / "scratch.part").mkdir()
    (tmp_path / "scratch.part/old.json").write_bytes(b"")
    first = list(unpacked(archive, folder, LIMIT))
    assert contents(tmp_path) == ["r.zip", "scratch/.unpacked.jsonl", "scratch/a.json"]
    (folder / "a.json").write_bytes(b"marked")
    assert list(unpacked(archive, folder, LIMIT)) == first
    assert (folder / "a.json").read_bytes() == b"marked"
    # Another archive, another limit, a report that was cut: again.
    archive.write_bytes(zipped({"c.json": b"{}"}))
    assert list(unpacked(archive, folder, LIMIT)) == []
    assert contents(folder) == [".unpacked.jsonl", "c.json"]
    assert [one.kind for one in unpacked(archive, folder, 1)] == ["too large"]
    (folder / ".unpacked.jsonl").write_bytes(b"")
    assert list(unpacked(archive, folder, LIMIT)) == []
    assert contents(folder) == [".unpacked.jsonl", "c.json"]


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (tar({"a.json": claiming("a.json", size=str(1 << 50))}), "the archive ends without its end mark"),
        (tar({"a.txt": claiming("a.txt", size=str(1 << 50))}), "the archive ends without its end mark"),
        (tar({"a.json": b"{}"})[:-20], "Compressed file ended before the end-of-stream marker was reached"),
        (
            gzip.compress(gzip.decompress(tar({"a.json": b"{}"}))[:1024]),
            "the archive ends without its end mark",
        ),
        (b"no archive", "Not a gzipped file (b'no')"),
        (gzip.compress(b"no archive"), "the archive ends without its end mark"),
        (gzip.compress(b"no archive" * 1000), "invalid header"),
    ],
)
def test_archive_in_an_archive_that_is_damaged(tmp_path: Path, inner: bytes, reason: str) -> None:
    (archive := tmp_path / "r.zip").write_bytes(zipped({"document_parses.tar.gz": inner, "z.json": b"{}"}))
    (told,) = unpacked(archive, tmp_path / "out", LIMIT)
    assert (told.place, told.kind) == (f"{archive}!document_parses.tar.gz", "broken")
    assert told.reason == f"cannot be read, damaged or cut short: {reason}"
    assert "z.json" in contents(tmp_path / "out")


def test_sparse_files_are_bounded(tmp_path: Path) -> None:
    headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 50), "GNU.sparse.name": "b.json"}
    (archive := tmp_path / "r.tar.gz").write_bytes(
        tar({"a.json": claiming("a.json", **headers), "c.json": b"{}"})
    )
    (told,) = unpacked(archive, tmp_path / "out", LIMIT)
    assert (told.place, told.kind) == (f"{archive}!b.json", "too large")
    assert contents(tmp_path / "out") == [".unpacked.jsonl", "c.json"]
