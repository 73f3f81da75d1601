"""Files out of folders and archives: limits, damage, odd names. What ``records`` reads: test_sources.py."""

import gzip
import io
import lzma
import os
import random
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.sources.members import Damaged, Member, TooLarge, members
from epicqa.errors import EpicqaError

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
LIMIT = 1 << 20


def every(source: Path) -> Iterator[Member]:
    return members(source, lambda name: name.endswith(".json"), "JSON")


def contents(source: Path, limit: int = 1000) -> dict[str, bytes]:
    return {one.name: one.read(limit) for one in every(source)}


def tar(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return sink.getvalue()


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes], Path]:
    def put_file(name: str, data: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return put_file


Put = Callable[[str, bytes], Path]


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("inside", ["", ".tar", ".zip"])
def test_read_up_to_the_limit(put: Put, suffix: str, inside: str) -> None:
    name, data = f"a.json{suffix}", PACKERS[suffix](b"x" * 100)
    if inside:
        name, data = f"a{inside}", tar({name: data}) if inside == ".tar" else zip_of({name: data})
    path = put(name, data)
    (member,) = [one.read(100) for one in every(path)]
    assert member == b"x" * 100
    for one in every(path):
        with pytest.raises(TooLarge, match=r"^more than 99 bytes$"):
            one.read(99)


def test_a_large_limit_takes_no_memory(put: Put) -> None:
    for path in (
        put("a.json", b"{}"),
        put("a.json.gz", gzip.compress(b"{}")),
        put("a.tar", tar({"a.json": b"{}"})),
    ):
        assert [one.read(1 << 62) for one in every(path)] == [b"{}"]


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_up_to_the_limit(put: Put, suffix: str) -> None:
    data = b"\n1234567\r\n" + b"x" * 9 + b"\n" + b"y" * 10 + b"\n \t\n" + b"z" * 3_000_000 + b"\nlast line"
    (lines,) = [list(one.lines(10)) for one in every(put(f"a.json{suffix}", PACKERS[suffix](data)))]
    assert lines == [(2, b"1234567\r\n"), (3, b"x" * 9 + b"\n"), (4, None), (6, None), (7, b"last line")]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"x", b"\n")), st.integers(1, 12))
def test_lines_as_the_plain_reference(data: bytes, limit: int) -> None:
    member = Member("a", "a", Path("a"), io.BytesIO(data))
    whole = enumerate(io.BytesIO(data), 1)
    wanted = [
        (n, line if len(line) <= limit else None) for n, line in whole if line.strip() or len(line) > limit
    ]
    assert list(member.lines(limit)) == wanted


def test_a_long_line_cut_short(put: Put) -> None:
    data = gzip.compress(random.Random(1).randbytes(100_000).replace(b"\n", b""))
    for member in every(put("a.json.gz", data[:-20])):
        with pytest.raises(Damaged, match=r"a\.json\.gz: cannot be read, damaged or cut short: .") as error:
            list(member.lines(10))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.zst"])
def test_damage_in_a_tar_keeps_what_came_before(put: Put, name: str) -> None:
    noise = random.Random(2)
    files = {f"{number}.json": noise.randbytes(50_000) for number in range(8)}
    whole = PACKERS["." + name.replace("tgz", "tar.gz").rpartition(".")[2] if name != "a.tar" else ""](
        tar(files)
    )
    path = put(name, whole[: len(whole) * 5 // 8])
    kept = {}
    with pytest.raises(Damaged, match=r"damaged or cut short: ."):
        for one in every(path):
            kept[one.name] = one.read(50_000)
    assert 2 <= len(kept) <= 5 and kept.items() <= files.items()


def test_one_damaged_file_of_an_archive(put: Put) -> None:
    """What is compressed by itself inside an archive can be damaged alone."""
    files = {"a.json": b"1", "b.json.gz": gzip.compress(b"2" * 100)[:-9], "c.json": b"3"}
    for path in (put("a.tar", tar(files)), put("a.zip", zip_of(files))):
        kept = []
        for one in every(path):
            try:
                kept.append(one.read(1000))
            except Damaged as error:
                assert str(error).startswith(f"{path}: cannot be read")
                kept.append(b"damaged")
        assert kept == [b"1", b"damaged", b"3"]


def test_a_checksum_of_a_zip_harms_one_file(put: Put) -> None:
    data = zip_of({"a.json": b"aaaa", "b.json": b"bbbb", "c.json": b"cccc"}, zipfile.ZIP_STORED)
    kept = []
    for one in every(put("a.zip", data.replace(b"bbbb", b"bbbx"))):
        try:
            kept.append(one.read(1000))
        except Damaged:
            kept.append(b"damaged")
    assert kept == [b"aaaa", b"damaged", b"cccc"]


def test_a_file_that_cannot_be_opened_harms_no_other(tmp_path: Path) -> None:
    for name in ("a.json", "c.json"):
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "b.json").symlink_to(tmp_path / "nowhere.json")
    kept = []
    for one in every(tmp_path):
        try:
            kept.append((one.name, one.read(10)))
        except Damaged as error:
            assert str(error).startswith(f"{tmp_path}/b.json: ")
            kept.append((one.name, b"damaged"))
    assert kept == [("a.json", b"{}"), ("b.json", b"damaged"), ("c.json", b"{}")]


def test_only_files_are_read(put: Put, tmp_path: Path) -> None:
    """Links and devices of an archive lead nowhere; a folder that is named like a file is none."""
    (tmp_path / "secret.json").write_bytes(b"secret")
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for kind in (
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.CHRTYPE,
            tarfile.BLKTYPE,
            tarfile.FIFOTYPE,
            tarfile.DIRTYPE,
        ):
            member = tarfile.TarInfo(f"{kind.decode()}.json")
            member.type, member.linkname = kind, str(tmp_path / "secret.json")
            archive.addfile(member)
        member = tarfile.TarInfo("file.json")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    assert contents(put("a.tar", sink.getvalue())) == {"file.json": b"{}"}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        link = zipfile.ZipInfo("link.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(tmp_path / "secret.json"))
        archive.mkdir("folder.json")
    assert b"secret" not in contents(put("a.zip", sink.getvalue())).values()


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    os.mkfifo(tmp_path / "b.json")
    # Whoever opens it for reading waits for someone who writes.
    writer = threading.Thread(target=(tmp_path / "b.json").write_bytes, args=(b"",), daemon=True)
    writer.start()
    try:
        assert contents(tmp_path) == {"a.json": b"{}"}
    finally:
        while writer.is_alive():
            os.close(os.open(tmp_path / "b.json", os.O_RDONLY | os.O_NONBLOCK))
            writer.join(0.01)


@pytest.mark.parametrize("pack", [tar, zip_of])
def test_paths_out_of_an_archive_are_only_names(put: Put, tmp_path: Path, pack: Callable) -> None:
    files = {
        "../up.json": b"1",
        "/etc/root.json": b"2",
        "a/../../b.json": b"3",
        "./c.json": b"4",
        "x\\y.json": b"5",
    }
    path = put(f"a.{'tar' if pack is tar else 'zip'}", pack(files))
    assert sorted(contents(path).values()) == [b"1", b"2", b"3", b"4", b"5"]
    assert all(one.file == f"{path}!{one.name}" for one in every(path))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("pack", [tar, zip_of])
def test_hidden_files_are_passed_over(put: Put, pack: Callable) -> None:
    hidden = [
        ".a.json",
        "x/.a.json",
        ".git/a.json",
        "../.x/a.json",
        "__MACOSX/a.json",
        "x/__MACOSX/a.json",
        "..a/b.json",
    ]
    path = put(f"a.{'tar' if pack is tar else 'zip'}", pack(dict.fromkeys([*hidden, "x/a.b.json"], b"")))
    assert list(contents(path)) == ["x/a.b.json"]


def test_names_that_are_not_utf8(put: Put, tmp_path: Path) -> None:
    """They are told apart, and JSON can hold them."""
    raw = b"caf\xe9.json".decode("utf-8", "surrogateescape")
    for form in (tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        path = put("a.tar", tar({raw: b"1", "café.json": b"2"}, form))
        assert contents(path) == {"caf\\xe9.json": b"1", "café.json": b"2"}
    folder = tmp_path / "folder"
    folder.mkdir()
    deep = Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))
    deep.mkdir()
    (deep / raw).write_bytes(b"3")
    (one,) = [(one.name, one.file, one.read(9)) for one in every(folder)]
    assert one == ("\\xff/caf\\xe9.json", f"{folder}/\\xff/caf\\xe9.json", b"3")


def test_a_zip_whose_names_are_not_what_it_says(put: Put) -> None:
    """A flag says that names are UTF-8."""
    data = zip_of({"ü.json": b"1", "a.json": b"2"}).replace("ü".encode(), b"\xc3(")
    try:
        kept = contents(put("a.zip", data))
    except EpicqaError as error:
        assert "\n" not in str(error)
    else:
        assert b"2" in kept.values()


BOMBS = {
    "a.json.gz": lambda zeros: gzip.compress(zeros, 6),
    "a.json.xz": lambda zeros: lzma.compress(zeros, preset=0),
    "a.json.zst": zstandard.ZstdCompressor().compress,
    "a.tar.gz": lambda zeros: gzip.compress(tar({"a.json": zeros}), 6),
    "a.tar.zst": lambda zeros: zstandard.compress(tar({"a.json": zeros})),
    "deflated.zip": lambda zeros: zip_of({"a.json": zeros}),
    "bzip2.zip": lambda zeros: zip_of({"a.json": zeros}, zipfile.ZIP_BZIP2),
    "lzma.zip": lambda zeros: zip_of({"a.json": zeros}, zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stays_within_bounds(put: Put, name: str) -> None:
    path = put(name, BOMBS[name](bytes(64 << 20)))
    assert path.stat().st_size < 300_000
    tracemalloc.start()
    try:
        for member in every(path):
            with pytest.raises((TooLarge, Damaged)):
                member.read(LIMIT)
            break
        _, peak = tracemalloc.get_traced_memory()
    except Damaged:
        # Kinds of compression that nobody uses may be refused.
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 48 << 20


def sealed(data: bytearray) -> bytes:
    """A tar whose headers have right checksums: else its reader looks no further."""
    for at in range(0, len(data) - 511, 512):
        block = data[at : at + 512]
        if block[257:262] == b"ustar":
            data[at + 148 : at + 156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    return bytes(data)


def with_sparse_header() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("a.json")
        member.size = 600
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.json"}
        archive.addfile(member, io.BytesIO(b"2\n0\n1\n5\n1\n".ljust(512, b"\0") + bytes(88)))
    return sink.getvalue()


NAMES = {
    "a.json": b"{}",
    "ü/" + "b" * 80 + "/" + "c" * 30 + ".json": b"[1]" * 40,
    "d.json.gz": gzip.compress(b"{}" * 40),
}
WHOLE = [
    *((".tar", tar(NAMES, form)) for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)),
    (".tar", with_sparse_header()),
    *((".zip", zip_of(NAMES, method)) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)),
    *((f".json{suffix}", pack(b"[1]" * 99)) for suffix, pack in PACKERS.items()),
]
CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)


@settings(max_examples=250)
@given(st.sampled_from(WHOLE), CHANGES, st.integers(0, 3))
def test_any_damage_is_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    whole: tuple[str, bytes],
    changes: list[tuple[float, int]],
    cut: int,
) -> None:
    suffix, data = whole[0], bytearray(whole[1])
    for where, value in changes:
        data[int(where * len(data))] = value
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(
        (sealed(data) if suffix == ".tar" else bytes(data))[: len(data) if cut else len(data) // 2]
    )
    try:
        for member in every(path):
            assert member.name.encode() and member.file.encode()
            try:
                assert len(member.read(1000)) <= 1000
            except (Damaged, TooLarge) as error:
                assert "\n" not in str(error)
    except EpicqaError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        # The map of a sparse file holds no numbers.
        ("a.tar", with_sparse_header().replace(b"2\n0\n1\n", b"two\n1\n")),
        # A name in the directory of a zip has no length.
        ("a.zip", zip_of({"Xa.json": b"{}", "b.json": b"{}"}).replace(b"Xa.json", b"\0a.json")),
    ],
)
def test_damage_that_the_library_does_not_expect(put: Put, name: str, data: bytes) -> None:
    try:
        contents(put(name, data))
    except EpicqaError as error:
        assert "\n" not in str(error)
