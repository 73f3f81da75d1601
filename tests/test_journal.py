from pathlib import Path

import numpy as np
import pytest

from epicqa.journal import Journal
from epicqa.pipeline import Answer
from epicqa.ranking import Ranking


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "a" / "cache"))
    return tmp_path / "a" / "cache"


def answer(name: str, count: int = 5, reranked: int | None = None) -> Answer:
    scores = np.random.default_rng(count).random(count, dtype=np.float32)
    return Answer(name, Ranking(np.arange(count), np.arange(count) + 1, scores), reranked)


def assert_same(one: Answer, other: Answer) -> None:
    assert (one.question_id, one.reranked) == (other.question_id, other.reranked)
    for name in ("first", "last", "score"):
        assert np.array_equal(getattr(one.passages, name), getattr(other.passages, name))


def test_answers_come_back_bit_for_bit(cache: Path) -> None:
    noted = [answer("EQ001", 1000), answer("EQ\u00e42", 0, 0), answer("EQ003", 3, 20)]
    assert Journal("k").done == {}
    assert not cache.exists()
    for one in noted:
        Journal("k").note(one)
    again = Journal("k")
    assert again.path == cache / "runs" / "k.jsonl"
    assert list(again.done) == [one.question_id for one in noted]
    for one in noted:
        assert_same(again.done[one.question_id], one)
    assert Journal("other").done == {}
    again.remove()
    again.remove()
    assert not again.path.exists()


def test_a_kill_costs_one_answer_wherever_it_cut() -> None:
    noted = [answer("EQ001"), answer("EQ002", 2)]
    for one in noted:
        Journal("k").note(one)
    path = Journal("k").path
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        begun = Journal("k")
        # The last line is whole without its line end, too.
        assert len(begun.done) == (cut >= first - 1) + (cut >= len(data) - 1)
        begun.note(answer("EQ003"))
        begun.note(answer("EQ004"))
        assert list(Journal("k").done) == [*begun.done, "EQ003", "EQ004"]


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"7", b'{"id": "EQ1"}', b'{"id":"a","first":[1],"last":[],"score":[]}']
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    Journal("k").note(answer("EQ001"))
    path = Journal("k").path
    path.write_bytes(line + b"\n" + path.read_bytes() + b"\xff\n")
    assert list(Journal("k").done) == ["EQ001"]
