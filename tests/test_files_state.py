"""What tells whether inputs have changed, and paths as text."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.files import state_of, text_of


def every(name: str) -> bool:
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.json", "sub/b.json", "sub/c.txt", ".hidden", ".git/x.json"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "d.json").write_text("d")
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "folder"


def later(path: Path) -> None:
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))


CHANGES: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "time": (True, lambda folder: later(folder / "a.json")),
    "size": (True, lambda folder: (folder / "sub" / "b.json").write_text("other text")),
    "name": (True, lambda folder: (folder / "a.json").rename(folder / "z.json")),
    "place": (True, lambda folder: (folder / "a.json").rename(folder / "sub" / "a.json")),
    "one more": (True, lambda folder: (folder / "e.json").touch()),
    "one less": (True, lambda folder: (folder / "a.json").unlink()),
    "linked": (True, lambda folder: later(folder.parent / "elsewhere" / "d.json")),
    "hidden": (False, lambda folder: (folder / ".hidden").write_text("other text")),
    "in a hidden folder": (False, lambda folder: (folder / ".git" / "y.json").touch()),
    "an empty folder": (False, lambda folder: (folder / "new").mkdir()),
    "read": (False, lambda folder: (folder / "a.json").read_text()),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_a_folder(folder: Path, what: str) -> None:
    changed, change = CHANGES[what]
    before = state_of(folder, every)
    assert state_of(folder, every) == before and before[0] == str(folder.resolve())
    change(folder)
    after = state_of(folder, every)
    assert (after[1] != before[1]) == changed and after[0] == before[0]


def test_only_what_is_wanted_counts(folder: Path) -> None:
    before = state_of(folder, lambda name: name.endswith(".json"))
    later(folder / "sub" / "c.txt")
    assert state_of(folder, lambda name: name.endswith(".json")) == before
    later(folder / "sub" / "b.json")
    assert state_of(folder, lambda name: name.endswith(".json")) != before


def test_a_file_and_where_it_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state_of(folder / "a.json", every)
    monkeypatch.chdir(folder)
    assert state_of(Path("a.json"), every) == before
    (folder / "other.json").hardlink_to(folder / "a.json")
    assert state_of(Path("other.json"), every)[0] != before[0]
    later(folder / "a.json")
    assert state_of(Path("a.json"), every) != before


def test_links_that_lead_back_or_nowhere(folder: Path) -> None:
    (folder / "sub" / "back").symlink_to(folder)
    before = state_of(folder, every)
    assert state_of(folder, every) == before
    (folder / "gone.json").symlink_to(folder / "nowhere.json")
    assert state_of(folder, every) == state_of(folder, every) != []
    (folder / "nowhere.json").touch()
    assert state_of(folder, every) != before


@given(st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name))
def test_any_path_as_text(name: bytes) -> None:
    path = os.fsdecode(name)
    text = text_of(path)
    assert text.encode().decode() == text
    if name.decode("utf-8", "replace").encode() == name:
        assert text == path
