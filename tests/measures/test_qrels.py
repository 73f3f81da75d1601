import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from epicqa.errors import EpicqaError
from epicqa.measures.qrels import Qrels, named_as, read_qrels


def write(tmp_path: Path, text: str, name: str = "qrels.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def test_rounds_grades_and_white_space(tmp_path: Path) -> None:
    text = "\ufeff1 0.5  b 2\r\n\r\n2\t4.5\ta\t-1\n   \n1 Q0 a 0\n1 5 c\u00a0d 1"
    qrels = read_qrels(write(tmp_path, text))
    assert qrels.topics == {"1": {"b": 2, "a": 0, "c\u00a0d": 1}, "2": {"a": -1}}
    assert list(qrels.topics["1"]) == ["b", "a", "c\u00a0d"]
    assert qrels.warnings == ()


@pytest.mark.parametrize(
    ("name", "compress"),
    [
        ("qrels.gz", gzip.compress),
        ("qrels.XZ", lzma.compress),
        ("qrels.zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_compressed(tmp_path: Path, name: str, compress: object) -> None:
    path = tmp_path / name
    data = compress(b"1 1 a 1\n" * 2000)  # type: ignore[operator]
    path.write_bytes(data)
    assert read_qrels(path).topics == {"1": {"a": 1}}
    path.write_bytes(data[:-5])
    with pytest.raises(EpicqaError, match="damaged or cut short"):
        read_qrels(path)


@pytest.mark.parametrize(
    ("lines", "grade", "said"),
    [
        ("1 1 a 1\n1 1 a 1\n", 1, ":2: a is judged for topic 1 here and on line 1 with the same grade"),
        ("1 1 a 1\n1 2 a 1\n", 1, "counts once"),
        ("1 1 a 0\n1 2.5 a 2\n", 2, ":2: a is judged for topic 1 here and on line 1 with different grades"),
        ("1 2.5 a 2\n1 1 a 0\n", 2, "round 2.5 counts: 2"),
        ("1 1 a 0\n1 3 a 2\n1 2 a 1\n", 2, ":3: a is judged for topic 1 here and on line 2"),
    ],
)
def test_judged_twice(tmp_path: Path, lines: str, grade: int, said: str) -> None:
    path = write(tmp_path, lines)
    qrels = read_qrels(path)
    assert qrels.topics == {"1": {"a": grade}}
    assert {(warning.kind, warning.fatal) for warning in qrels.warnings} == {("judged-twice", False)}
    assert len(qrels.warnings) == lines.count("\n") - 1
    assert said in str(qrels.warnings[-1])
    assert str(qrels.warnings[-1]).startswith(str(path))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("1 1 a\n", ":1: 3 columns, expected 4: topic round document relevance"),
        ("1 1 a 1\n\n1 1 b 1 x\n", ":3: 5 columns"),
        ("1 one a 1\n", ":1: round 'one', expected a number such as 1 or 4.5"),
        ("1 nan a 1\n", ":1: round 'nan'"),
        ("1 1 a 1.0\n", ":1: relevance '1.0', expected a whole number from -1 to 1000"),
        ("1 1 a -2\n", ":1: relevance '-2'"),
        ("1 1 a 1001\n", ":1: relevance '1001'"),
        ("1 1 a ٣\n", ":1: relevance '٣'"),
        ("1 1 a 1\n1 1 a 0\n", ":2: a is 0 for topic 1, and 1 on line 1 in the same round"),
        ("1 1 a 0\n1 2 a 1\n1 1.0 a 1\n", ":3: a is 1 for topic 1, and 0 on line 1 in the same round"),
        ("\n \r\n", ": empty, expected lines of topic round document relevance"),
        ("", ": empty"),
    ],
)
def test_bad_lines(tmp_path: Path, lines: str, said: str) -> None:
    path = write(tmp_path, lines)
    with pytest.raises(EpicqaError) as error:
        read_qrels(path)
    assert str(error.value).startswith(f"{path}{said}")
    assert "\n" not in str(error.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match="No such file"):
        read_qrels(tmp_path / "absent")
    with pytest.raises(EpicqaError, match="Is a directory"):
        read_qrels(tmp_path)
    (tmp_path / "latin").write_bytes(b"1 1 a 1\n1 1 \xe9 1\n")
    with pytest.raises(EpicqaError, match=":2: not UTF-8"):
        read_qrels(tmp_path / "latin")
    (tmp_path / "text.gz").write_bytes(b"1 1 a 1\n")
    with pytest.raises(EpicqaError, match=r"text\.gz: damaged or cut short"):
        read_qrels(tmp_path / "text.gz")


def test_topics_of_trec_covid_are_expert_questions() -> None:
    topics = {topic: {"a": 1} for topic in ("1", "9", "45", "46", "50", "100", "01", "x")}
    qrels = Qrels(Path("q"), topics)
    named = named_as(qrels, ["CQ001", "EQ001"])
    assert list(named.topics) == ["EQ001", "EQ009", "EQ045"]
    assert [str(warning) for warning in named.warnings] == [
        "q: no questions of EPIC-QA, left out: topics 46, 50, 100, 01, x"
    ]
    assert named_as(named, ["EQ001"]) is named
    assert named_as(qrels, ["1", "CQ001"]) is qrels
    assert named_as(Qrels(Path("q"), topics | {"EQ002": {}}), ["EQ001"]).topics == topics | {"EQ002": {}}


@pytest.mark.parametrize(
    ("name", "topics", "judged"),
    [
        ("covid-round1", 30, 8691),
        ("covid-complete", 50, 69318),
        ("beir-v1.0.0-trec-covid.test", 50, 66334),
    ],
)
def test_real_files(shared: Path, name: str, topics: int, judged: int) -> None:
    qrels = read_qrels(shared / "trec-covid" / "qrels" / f"qrels.{name}.txt.gz")
    assert len(qrels.topics) == topics
    assert sum(map(len, qrels.topics.values())) == judged
    assert qrels.warnings == ()
