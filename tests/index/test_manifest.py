import os
import shutil
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.index import manifest as manifests

CONTENT = {"key": "k", "documents": 3, "skipped": 0, "dense": None, "seconds": {"reading": 0.1}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A generation of three files and its manifest."""
    folder = tmp_path / "generation"
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "a.arrow").write_bytes(bytes(range(200)))
    (folder / "corpus" / "report.jsonl").touch()
    (folder / "vectors.faiss").write_bytes(b"v" * 100)
    (folder / "write.lock").touch()
    manifests.write(folder, CONTENT)
    return folder


def check(folder: Path, *, fully: bool = False) -> None:
    manifests.verify(folder, manifests.read(folder, "n"), "n", fully=fully)


def refused(folder: Path, *, fully: bool = False) -> str:
    with pytest.raises(EpicqaError) as caught:
        check(folder, fully=fully)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def flip(path: Path, at: int = 50) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_what_was_written_is_read(folder: Path) -> None:
    found = manifests.read(folder, "n")
    assert {key: found[key] for key in CONTENT} == CONTENT
    assert sorted(found["files"]) == ["corpus/a.arrow", "corpus/report.jsonl", "vectors.faiss"]
    check(folder, fully=True)
    assert not (folder / "verified.json").exists()


def test_flipped_and_missing_bytes_of_the_manifest_are_noticed(folder: Path) -> None:
    path = folder / "index.json"
    data = path.read_bytes()
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert "index.json: " in refused(folder)
        path.write_bytes(data[:at])
        assert "damaged" in refused(folder)


@pytest.mark.parametrize(
    "data", [b"[]", b"null", b"1", b'"x"', b"{}", b"\xff", b'{"files": {}, "version": 1}']
)
def test_what_is_no_manifest_is_damaged(folder: Path, data: bytes) -> None:
    (folder / "index.json").write_bytes(data)
    assert "damaged; build index 'n' again with epicqa index --force" in refused(folder)


def test_a_missing_manifest_is_damage(folder: Path) -> None:
    (folder / "index.json").unlink()
    assert "damaged" in refused(folder)


def test_another_version_says_so(folder: Path) -> None:
    content = orjson.loads((folder / "index.json").read_bytes()) | {"version": 99}
    (folder / "index.json").write_bytes(orjson.dumps(content))
    assert "index 'n' is of version 99, this epicqa reads version 1" in refused(folder)


@pytest.mark.parametrize("relative", ["corpus/a.arrow", "vectors.faiss"])
def test_damage_is_noticed(folder: Path, relative: str) -> None:
    path = folder / relative
    data = path.read_bytes()
    for wrong in (data[:-1], data + b"x", b""):
        path.write_bytes(wrong)
        assert f"{path}: damaged, {len(wrong)} bytes instead of {len(data)}" in refused(folder)
    path.write_bytes(data)
    flip(path)
    assert f"{path}: damaged, its checksum" in refused(folder)
    path.unlink()
    assert f"{path}: missing" in refused(folder)


def test_a_flipped_byte_with_its_time_restored_is_found_by_the_full_check_alone(folder: Path) -> None:
    path = folder / "vectors.faiss"
    state = path.stat()
    flip(path)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    check(folder)
    assert "vectors.faiss: damaged" in refused(folder, fully=True)


def test_a_copy_is_read_through_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, copy_function=shutil.copyfile)
    for path in copy.rglob("*"):
        os.utime(path, ns=(1, 1))
    read: list[Path] = []
    plain = manifests.sha256_of
    monkeypatch.setattr(manifests, "sha256_of", lambda path: read.append(path) or plain(path))
    check(copy)
    assert len(read) == 3
    check(copy)
    assert len(read) == 3
    flip(copy / "vectors.faiss")
    assert "damaged" in refused(copy)
    assert "damaged" in refused(copy)


def test_a_copy_that_cannot_be_written_opens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.utime(folder / "vectors.faiss", ns=(1, 1))

    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError

    monkeypatch.setattr(manifests, "write_bytes", refuse)
    check(folder)
    check(folder)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"vectors.faiss": "x"}'])
def test_a_damaged_memory_of_checks_is_no_harm(folder: Path, data: bytes) -> None:
    (folder / "verified.json").write_bytes(data)
    check(folder)
    os.utime(folder / "vectors.faiss", ns=(1, 1))
    check(folder)
    flip(folder / "vectors.faiss")
    assert "damaged" in refused(folder)


SETTINGS = st.dictionaries(st.text(max_size=5), st.none() | st.booleans() | st.integers(0, 9), max_size=5)


@given(SETTINGS, SETTINGS)
def test_the_fingerprint_is_of_the_settings_whatever_their_order(one: dict, two: dict) -> None:
    backwards = dict(reversed(one.items()))
    assert manifests.logical_fingerprint("c", one) == manifests.logical_fingerprint("c", backwards)
    same = orjson.dumps({"corpus": "c", **one}, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        {"corpus": "c", **two}, option=orjson.OPT_SORT_KEYS
    )
    equal = manifests.logical_fingerprint("c", one) == manifests.logical_fingerprint("c", two)
    assert equal == same
