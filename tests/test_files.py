import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa import files
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, replacing, sha256_of, sweep, write_bytes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    with replacing(path) as temporary:
        temporary.write_text("half")
        assert not path.exists()
        temporary.write_text("whole")
    assert path.read_text() == "whole"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_what_stood_there_stays_when_the_block_fails(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), replacing(path) as temporary:
        temporary.write_text("new")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_block_that_writes_nothing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_in_the_way_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(EpicqaError, match="a: Is a directory, expected the name of a file"):
        write_bytes(tmp_path / "a", b"x")
    assert names(tmp_path) == ["a"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left"), replacing(path) as temporary:
        temporary.write_bytes(b"new")
        Path("/dev/full").write_bytes(b"x")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@settings(max_examples=20)
@given(st.binary(max_size=2000), st.binary(max_size=2000))
def test_write_bytes_replaces_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, one: bytes, two: bytes
):
    path = tmp_path_factory.getbasetemp() / "written"
    write_bytes(path, one)
    write_bytes(path, two)
    assert path.read_bytes() == two
    assert sha256_of(path) == hashlib.sha256(two).hexdigest()


def test_sweep_takes_only_what_replacing_leaves(tmp_path: Path) -> None:
    generator = replacing(tmp_path / "a").gen
    next(generator).write_text("a kill comes now")
    kept = ["a.tmp", ".lock", ".hidden", "b.txt"]
    for name in kept:
        (tmp_path / name).touch()
    assert len(names(tmp_path)) == 5
    sweep(tmp_path)
    assert names(tmp_path) == sorted(kept)
    sweep(tmp_path / "missing")


def test_remove_tree_of_nothing_is_fine(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    remove_tree(tmp_path / "a")
    remove_tree(tmp_path / "a")
    assert names(tmp_path) == []


def test_where_things_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert files.indexes_folder().absolute() == tmp_path / "indexes"
    monkeypatch.setenv("EPICQA_HOME", "/there")
    assert (files.indexes_folder(), files.runs_folder()) == (Path("/there/indexes"), Path("/there/runs"))
    monkeypatch.setenv("HOME", "/me")
    monkeypatch.delenv("EPICQA_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert files.cache_folder() == Path("/me/.cache/epicqa")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert files.cache_folder() == Path("/x/epicqa")
    monkeypatch.setenv("EPICQA_CACHE", "/c")
    assert files.cache_folder() == Path("/c")


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_bytes(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    write_bytes(Path("/dev/null"), b"x")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(EpicqaError, match="Is a directory"):
        write_bytes(Path("/"), b"x")
