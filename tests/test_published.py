"""What of the published data set is found in a folder; all files are made up."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.sources import records
from epicqa.errors import EpicqaError
from epicqa.published import PARTS, Found, answerable, check, collections, content_of, holds, place_of


def document(name: str) -> bytes:
    context = f"{name}-C000"
    sentence = {"sentence_id": f"{context}-S000", "start": 0, "end": 8}
    contexts = [{"section": "Body", "context_id": context, "text": "One two.", "sentences": [sentence]}]
    return json.dumps({"document_id": name, "metadata": {"title": "A title"}, "contexts": contexts}).encode()


def documents(count: int) -> bytes:
    return b"".join(document(f"d{number:04d}") + b"\n" for number in range(count))


def questions(path: Path, count: int, letter: str = "E") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = {"question": "what?", "query": "what", "background": "why"}
    made = [{"question_id": f"{letter}Q{number:03d}", **texts} for number in range(1, count + 1)]
    path.write_text(json.dumps(made))
    return path


def answers(*names: str) -> list[dict[str, Any]]:
    nugget = {"nugget_id": "N1", "nugget": "one"}
    annotation = {"sentence_id": "d-C000-S000", "nugget_ids": ["N1"]}
    return [{"question_id": name, "nuggets": [nugget], "annotations": [annotation]} for name in names]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with both question files of the first part and three papers."""
    folder = tmp_path / "data"
    (folder / "ae" / "cord19").mkdir(parents=True)
    for name in ("a", "b", "c"):
        (folder / "ae" / "cord19" / f"{name}.json").write_bytes(document(name))
    questions(folder / "ae" / "expert_questions.json", 45)
    questions(folder / "ae" / "general_questions.json", 41, "C")
    return folder


def found(folder: Path) -> dict[str, Found]:
    return {one.part.name: one for one in check(folder)}


def said(one: Found) -> list[str]:
    return [str(problem) for problem in one.problems]


def test_parts_are_the_published_ones() -> None:
    counts = {one.path: one.published for one in PARTS if one.published is not None}
    assert [counts[path] for path in ("ae/cord19", "ae/general", "e2e/cord19")] == [129_069, 925, 236_035]
    assert [counts[f"e2e/{name}"] for name in ("ask_science", "ccns_trec", "chqa")] == [263, 114_645, 2_739]
    files = [f"{task}/{kind}_questions.json" for task in ("ae", "e2e") for kind in ("expert", "general")]
    assert [counts[path] for path in files] == [45, 42, 30, 30]
    assert len(counts) == 10 and len({one.name for one in PARTS}) == len(PARTS) == 14
    assert all("https://" in one.obtained and "\n" not in one.obtained for one in PARTS)
    general = collections("e2e", "general")
    assert [one.path for one in general] == ["e2e/ask_science", "e2e/ccns_trec", "e2e/chqa"]


def test_what_is_there_is_counted_and_compared(data: Path) -> None:
    there = found(data)
    assert list(there) == [one.name for one in PARTS]
    states = {name: (one.count, one.state) for name, one in there.items() if one.files}
    assert states == {
        "ae/expert_questions.json": (45, "ok"),
        "ae/general_questions.json": (41, "1 fewer"),
        "ae/cord19": (3, "129,066 fewer"),
    }
    assert there["ae/cord19"].files == (data / "ae" / "cord19",)
    assert all(one.state == "missing" and not one.count for name, one in there.items() if name not in states)
    assert not any(one.problems for one in there.values())
    questions(data / "ae" / "general_questions.json", 44, "C")
    assert found(data)["ae/general_questions.json"].state == "2 more"


def test_what_can_be_asked(data: Path) -> None:
    assert answerable(check(data)) == [("ae", "expert")] and not holds(check(data))
    questions(data / "ae" / "general_questions.json", 42, "C")
    (data / "ae" / "general.jsonl").write_bytes(documents(925))
    assert answerable(check(data)) == [("ae", "expert"), ("ae", "general")]
    # Three papers are not what was published; no papers are just missing.
    assert not holds(check(data))
    shutil.rmtree(data / "ae" / "cord19")
    assert answerable(check(data)) == [("ae", "general")] and holds(check(data))
    questions(data / "e2e" / "general_questions.json", 30, "C")
    for name in ("ask_science", "chqa"):
        (data / "e2e" / f"{name}.jsonl").write_bytes(documents(2))
    assert ("e2e", "general") not in answerable(check(data))
    (data / "e2e" / "ccns_trec.jsonl").write_bytes(documents(2))
    assert answerable(check(data)) == [("ae", "general"), ("e2e", "general")]
    (data / "e2e" / "chqa.jsonl").write_bytes(b"{}")
    assert answerable(check(data)) == [("ae", "general")]


def _tar(data: bytes, mode: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=f"w:{mode}") as archive:
        for number, line in enumerate(data.splitlines()):
            member = tarfile.TarInfo(f"./general/{number}.json")
            member.size = len(line)
            archive.addfile(member, io.BytesIO(line))
    return packed.getvalue()


def _zip(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("general/readme.txt", "no document")
        archive.writestr("general/all.jsonl", data)
    return packed.getvalue()


FORMS: dict[str, Callable[[bytes], bytes]] = {
    ".jsonl": bytes,
    ".jsonl.gz": gzip.compress,
    ".jsonl.xz": lzma.compress,
    ".jsonl.zst": zstandard.ZstdCompressor().compress,
    ".tar.gz": lambda data: _tar(data, "gz"),
    ".tar.xz": lambda data: _tar(data, "xz"),
    ".tgz": lambda data: _tar(data, "gz"),
    ".tar": lambda data: _tar(data, ""),
    ".zip": _zip,
}


@pytest.mark.parametrize("suffix", FORMS)
def test_a_collection_in_one_file(data: Path, suffix: str) -> None:
    path = data / "ae" / f"general{suffix}"
    path.write_bytes(FORMS[suffix](documents(927)))
    one = found(data)["ae/general"]
    assert (one.files, one.count, one.state) == ((path,), 927, "2 more")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    cut = found(data)["ae/general"]
    assert (cut.state, cut.files) == ("malformed", (path,))
    assert all(line.startswith(str(path)) and "\n" not in line for line in said(cut))


def test_a_folder_wins_over_an_archive_and_an_empty_one_does_not(data: Path) -> None:
    shutil.copytree(data / "ae" / "cord19", data / "ae" / "general" / "2020" / "a")
    (data / "ae" / "general.jsonl").write_bytes(documents(925))
    part = collections("ae", "general")[0]
    assert place_of(data, part) == data / "ae" / "general"
    assert found(data)["ae/general"].count == 3
    shutil.rmtree(data / "ae" / "general" / "2020")
    (data / "ae" / "general" / ".hidden.json").write_text("{}")
    (data / "ae" / "general" / "notes.txt").write_text("none")
    assert place_of(data, part) == data / "ae" / "general.jsonl"
    (data / "ae" / "general.jsonl").unlink()
    one = found(data)["ae/general"]
    assert one.state == "missing"
    assert said(one)[0].startswith(f"{data}/ae/general: no documents in it, expected .json or .jsonl files")
    assert not one.problems[0].fatal


def test_a_folder_of_files_of_several_kinds(data: Path) -> None:
    folder = data / "ae" / "cord19"
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(documents(5) + b"\n"))
    (folder / "deeper").mkdir()
    (folder / "deeper" / "d.json.xz").write_bytes(lzma.compress(document("d")))
    (folder / "loop").symlink_to(folder)
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "e.json").write_text("{}")
    assert (found(data)["ae/cord19"].count, found(data)["ae/cord19"].problems) == (9, ())


def test_only_the_first_and_the_last_file_are_parsed(data: Path) -> None:
    folder = data / "ae" / "cord19"
    (folder / "b.json").write_text("no JSON")
    assert found(data)["ae/cord19"].state == "129,066 fewer"
    (folder / "c.json").write_text('{"id": "c", "title": "plain", "text": "as epicqa index takes it"}')
    (folder / "a.json").write_text('{"paper_id": "abc", "metadata": {}, "abstract": [], "body_text": []}')
    one = found(data)["ae/cord19"]
    assert (one.count, one.state) == (3, "malformed")
    assert said(one) == [
        f"{folder}/a.json: a paper of a CORD-19 release, expected a document, as epicqa collect cord19 makes "
        "of it",
        f"{folder}/c.json: no document in the track's form: missing key 'document_id'",
    ]


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.lists(st.sampled_from(["a", "b", ".c", "__MACOSX", "d.json"]), max_size=2).map("/".join),
        st.dictionaries(
            st.sampled_from(["1.json", "2.JSON", "3.json.gz", "4.jsonl", "5.jsonl.xz", "6.txt", ".7.json"]),
            st.integers(0, 3),
            max_size=4,
        ),
        max_size=4,
    )
)
def test_names_tell_the_count_that_reading_gives(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, dict[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("data")
    questions(folder / "ae" / "expert_questions.json", 1)
    place = folder / "ae" / "cord19"
    packed = {"gz": gzip.compress, "xz": lzma.compress}
    for below, files in tree.items():
        (place / below).mkdir(parents=True, exist_ok=True)
        for name, count in files.items():
            content = documents(1 if ".json" in name.lower() and "jsonl" not in name else count)
            (place / below / name).write_bytes(packed.get(name[-2:], bytes)(content))
    one = found(folder)["ae/cord19"]
    try:
        expected = sum(1 for _ in records(place))
    except EpicqaError:
        # No folder, or no document in it.
        expected = 0
    assert one.count == expected


@pytest.mark.parametrize("text", ["[1]", "{", '{"document_id": 1}', "", "\0"])
def test_a_file_that_is_no_document_is_one_line(data: Path, text: str) -> None:
    (data / "ae" / "cord19" / "a.json").write_text(text)
    one = found(data)["ae/cord19"]
    assert one.state == "malformed" and one.count == 3
    (line,) = said(one)
    assert line.startswith(f"{data}/ae/cord19/a.json: no document in the track's form: ") and "\n" not in line


def test_a_broken_question_file(data: Path) -> None:
    path = data / "ae" / "expert_questions.json"
    path.write_text("{}")
    one = found(data)["ae/expert_questions.json"]
    assert (one.state, one.files, one.count) == ("malformed", (path,), 0)
    assert said(one)[0].startswith(f"{path}: a JSON dict, expected a JSON list")
    assert answerable(check(data)) == [] and not holds(check(data))


def test_answers_and_judgments_are_known_by_what_is_in_them(data: Path) -> None:
    task = data / "ae"
    (task / "prelim.json").write_bytes(b"\xef\xbb\xbf \n" + json.dumps(answers("EQ001", "EQ002")).encode())
    packed = json.dumps(answers("EQ002", "CQ001"), indent=1).encode()
    (task / "more.json.gz").write_bytes(gzip.compress(packed))
    (task / "judged.txt").write_bytes(b"\xef\xbb\xbf\n1 0.5 abc 2\r\n1 1 def -1\n2\t4.5\tabc\t0\n")
    (task / "qrels.xz").write_bytes(lzma.compress(b"1 Q0 abc 2\n3 Q0 abc 1"))
    others = {
        "readme.txt": b"four words in 2020\nand more\n",
        "run.tsv": b"EQ001\tQ0\ta-C000-S000:a-C000-S000\t1\t1.0\tx\n",
        "pools.json": b'{"EQ001": ["a-C000"]}',
        "list.json": b'["annotations"',
        "binary": bytes(range(256)),
        "empty": b"",
        "cut.gz": gzip.compress(b"1 0 a 1\n")[:-4],
        "archive.zip": b"1 0 a 1\n",
        ".hidden": b"1 0 a 1\n",
    }
    for name, content in others.items():
        (task / name).write_bytes(content)
    os.mkfifo(task / "pipe")
    there = found(data)
    one = there["ae: answers"]
    assert [path.name for path in one.files] == ["list.json", "more.json.gz", "prelim.json"]
    assert (one.count, one.state) == (3, "malformed") and "list.json:1: broken JSON" in said(one)[0]
    (task / "list.json").unlink()
    assert found(data)["ae: answers"].state == "ok"
    judged = there["ae: document judgments"]
    assert [path.name for path in judged.files] == ["judged.txt", "qrels.xz"]
    assert (judged.count, judged.state) == (4, "ok")
    assert there["e2e: answers"].state == there["e2e: document judgments"].state == "missing"
    (task / "judged.txt").write_text("1 0 abc 2\n1 0 abc\n")
    assert "judged.txt:2: 3 columns, expected 4" in said(found(data)["ae: document judgments"])[0]
    assert content_of(task / "absent") is None


def test_the_shared_answers_and_judgments_are_known(shared: Path) -> None:
    assert content_of(shared / "mini" / "judgments.dev.json") == "answers"
    assert content_of(shared / "mini" / "pools.dev.json") is None
    assert content_of(shared / "cord19" / "qrels.covid-complete.held.txt") == "document judgments"
    assert content_of(shared / "golden" / "README.md") is None
    there = found(shared / "epicqa" / "questions")
    assert [one.count for one in there.values() if one.part.kind == "questions"] == [45, 42, 30, 30]
    assert {one.state for one in there.values()} == {"ok", "missing"}


@pytest.mark.parametrize(
    ("at", "part"),
    [
        ("e2e/ccns-trec", "e2e/ccns_trec"),
        ("e2e/consumer_2020-11-02/ask_science-2020-10-29", "e2e/ask_science"),
        ("e2e/2020-10-22-new", "e2e/cord19"),
        ("e2e/e2e/chqa", "e2e/chqa"),
        ("more/e2e/cord19", "e2e/cord19"),
        ("ae/General", "ae/general"),
    ],
)
def test_a_part_under_another_name_is_told_and_not_taken(data: Path, at: str, part: str) -> None:
    (data / at).mkdir(parents=True)
    (data / at / "a.json").write_bytes(document("a"))
    one = found(data)[part]
    assert (one.state, one.count) == ("missing", 0)
    expected = (data / part).parent
    assert said(one) == [f"{data / at}: looks like {part}, expected in {expected} under that name"]
    assert not any(problem.fatal for problem in one.problems)


def test_a_file_under_another_name_is_told(data: Path) -> None:
    questions(data / "e2e" / "expert_questions_v2.json", 30)
    (data / "e2e" / "cord19-2020.tar.gz").write_bytes(_tar(documents(1), "gz"))
    # Of no kind that a collection has.
    (data / "e2e" / "chqa.txt").write_text("x")
    there = found(data)
    assert [one.state for one in there.values() if one.part.task == "e2e"] == ["missing"] * 8
    assert "expert_questions_v2.json: looks like" in said(there["e2e/expert_questions.json"])[0]
    assert "cord19-2020.tar.gz: looks like e2e/cord19" in said(there["e2e/cord19"])[0]
    assert said(there["e2e/chqa"]) == []


def test_a_folder_that_is_not_the_data_sets(data: Path, tmp_path: Path) -> None:
    def refused(folder: Path) -> str:
        with pytest.raises(EpicqaError) as error:
            check(folder)
        assert "\n" not in str(error.value)
        return str(error.value).removeprefix(f"{folder}: ")

    assert refused(data / "absent").startswith("no such folder, expected the data set's, with ae/ and e2e/")
    assert refused(data / "ae" / "cord19" / "a.json").startswith("no such folder")
    assert refused(data / "ae") == f"nothing of the data set is in it, expected the folder above, {data}"
    assert refused(tmp_path).endswith(f"expected {data}, where ae/ lies")
    (tmp_path / "empty" / "ae" / "cord19").mkdir(parents=True)
    assert refused(tmp_path / "empty").endswith("expected ae/ and e2e/ with question files and collections")


def test_folders_that_cannot_be_read(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path) == data / "ae" / "cord19" / "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    (data / "ae" / "cord19" / "locked").mkdir()
    # Tests may run as a user whom no permission stops.
    monkeypatch.setattr(os, "scandir", refusing)
    one = found(data)["ae/cord19"]
    assert one.state == "malformed"
    assert said(one) == [f"{data}/ae/cord19/locked: cannot be read: Permission denied"]


def test_progress_is_told(data: Path) -> None:
    (data / "ae" / "general.jsonl").write_bytes(documents(2001))
    told: list[int] = []
    check(data, told.append)
    assert told == [1000, 2000]
