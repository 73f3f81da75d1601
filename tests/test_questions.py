import json
from pathlib import Path

import pytest

from epicqa.errors import EpicqaError
from epicqa.questions import Question, find_questions, kind_of, of_kind, question_files, read_questions

GOOD = {"question_id": "EQ001", "question": "what ", "query": " q", "background": "b \n"}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_trailing_spaces_go(tmp_path: Path) -> None:
    assert read_questions(write(tmp_path / "q.json", [GOOD])) == (Question("EQ001", "what", "q", "b"),)


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([GOOD]).encode())
    assert read_questions(path)[0].question_id == "EQ001"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "expected a JSON list"),
        ([], "no questions"),
        ([GOOD, GOOD], "question 2: EQ001 occurs twice"),
        ([7], "question 1: not an object"),
        ([{**GOOD, "question_id": "a b"}], "expected one word"),
        ([{**GOOD, "question_id": ""}], "expected one word"),
        ([{**GOOD, "question": "  "}], "EQ001 has an empty question"),
        ([{**GOOD, "query": None}], "'query' is not text"),
        *(([{k: v for k, v in GOOD.items() if k != key}], f"{key!r} is missing") for key in GOOD),
    ],
)
def test_bad_questions(tmp_path: Path, value: object, said: str) -> None:
    path = write(tmp_path / "q.json", value)
    with pytest.raises(EpicqaError) as error:
        read_questions(path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[{,", ":1: broken JSON"),
        (b"[\n\xff", ":2: not UTF-8"),
        (b"", "broken JSON"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_broken_file(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "q.json"
    path.write_bytes(data)
    with pytest.raises(EpicqaError, match=said):
        read_questions(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match=r"absent\.json: No such file"):
        read_questions(tmp_path / "absent.json")
    with pytest.raises(EpicqaError, match="Is a directory"):
        read_questions(tmp_path)


def test_kinds() -> None:
    ids = ["EQ001", "CQ002", "EHV001", "12", ""]
    assert [kind_of(name) for name in ids] == ["expert", "general", "expert", None, None]
    assert of_kind(ids, "expert") == ["EQ001", "EHV001"]
    assert of_kind(ids, "general") == ["CQ002"]
    assert of_kind(ids, "all") == ids


def test_where_questions_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EPICQA_DATA", raising=False)
    sample = [path.name for path in question_files("all")]
    assert sample == ["expert_questions.json", "general_questions.json"]
    assert question_files("my.json") == (Path("my.json"),)
    monkeypatch.setenv("EPICQA_DATA", str(tmp_path))
    assert question_files("expert", task="e2e") == (tmp_path / "e2e" / "expert_questions.json",)
    assert question_files("general", tmp_path / "d") == (tmp_path / "d" / "ae" / "general_questions.json",)


def test_one_id_in_both_files(tmp_path: Path) -> None:
    (tmp_path / "ae").mkdir()
    for kind in ("expert", "general"):
        write(tmp_path / "ae" / f"{kind}_questions.json", [GOOD])
    with pytest.raises(EpicqaError, match="EQ001 is in the other question file too"):
        find_questions("all", tmp_path)


def test_official_questions(shared: Path) -> None:
    data = shared / "epicqa" / "questions"
    assert {
        (task, kind): len(find_questions(kind, data, task))
        for task in ("ae", "e2e")
        for kind in ("expert", "general", "all")
    } == {
        ("ae", "expert"): 45,
        ("ae", "general"): 42,
        ("ae", "all"): 87,
        ("e2e", "expert"): 30,
        ("e2e", "general"): 30,
        ("e2e", "all"): 60,
    }
    for question in find_questions("all", data):
        assert question.question == question.question.strip()


def test_a_number_of_thousands_of_digits_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    path.write_text("[" + "9" * 5000 + "]")
    with pytest.raises(EpicqaError, match=r"questions\.json") as raised:
        read_questions(path)
    assert "\n" not in str(raised.value)
