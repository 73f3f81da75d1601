import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.problems import Problem
from epicqa.runs import Run, parse_run
from epicqa.runs.columns import regular_columns
from epicqa.runs.read import COLUMNS

Row = tuple[str, str, str, object, str, str]
Read = tuple[Run, tuple[Problem, ...]]

GOLDEN = Path(__file__).parent / "golden"

DOCUMENTS = [
    "c",
    "0",
    "a-b",
    "480c-e62d-ece0-d4f8-f51a",
    "1f2e9c3a-7d41-4b0e-9f7a-0123456789ab",
    "e517581d9e34e7b8fbd0970925bc2ea2ecc85082",
    "x-C000",
    "x-C000-S000",
    "-",
    "--C",
    "C-S",
    "éß",
    "文档-一",
    "😀",
    "a\u0301",
    "'\";<b>&{}[]",
]
QUESTIONS = ["EQ001", "EQ002", "CQ001", "7", "frage-ü", "q" * 8, "q" * 16, "q" * 63, "q" * 64]
SCORES = [
    "1",
    "1.",
    ".5",
    "+1",
    "-0",
    "0",
    "-2.50",
    "1e3",
    "1E-3",
    "+.5e+2",
    "007.10",
    "9.5",
    "10.2",
    "1e308",
]

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("columns") / "run.tsv"


def at_once(data: bytes) -> bool:
    return regular_columns(data) is not None


def parsed(path: Path, data: bytes) -> Read:
    path.write_bytes(data)
    return parse_run(path)


def line_by_line(path: Path, data: bytes) -> Read:
    """The same lines in a file that is not in the usual shape: its last line is blank."""
    longer = data + b"\n \n"
    assert not at_once(longer)
    return parsed(path, longer)


def assert_same(one: Read, other: Read) -> None:
    assert one[1] == other[1]
    first, second = one[0], other[0]
    for name in ("tag", "contexts", "tags", "notes"):
        assert getattr(first, name) == getattr(second, name)
    assert list(first.questions) == list(second.questions)
    for question_id, passages in first.questions.items():
        for name in passages.__slots__:
            column, like = getattr(passages, name), getattr(second.questions[question_id], name)
            assert (column.dtype.kind, column.tolist()) == (like.dtype.kind, like.tolist())


def text_of(rows: list[Row], parting: str = "\t") -> bytes:
    return "".join(parting.join(map(str, row)) + "\n" for row in rows).encode()


def passage_of(first: str, last: str, numbers: tuple[int, int]) -> str:
    return f"{first}-S{min(numbers):03d}:{last}-S{max(numbers):03d}"


numbers = st.integers(0, 12) | st.sampled_from([99, 999, 1000, 4242, 999_999_999])
documents = st.sampled_from([*DOCUMENTS, *("w" * width for width in (2, 3, 4, 10, 12, 58, 59, 60, 70))])
contexts = st.builds("{}-C{:03d}".format, documents, numbers)
pairs = st.tuples(numbers, numbers)
passages = st.one_of(
    st.builds(lambda context, pair: passage_of(context, context, pair), contexts, pairs),
    st.builds(passage_of, contexts, contexts, pairs),
)
rows_of_runs = st.lists(
    st.tuples(
        st.sampled_from(QUESTIONS),
        st.sampled_from(["Q0", "0", "x"]),
        passages,
        st.integers(0, 999_999_999),
        st.sampled_from(SCORES) | st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.sampled_from(["t", "my-run_1.0", "läuf"]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=300, deadline=None)
@given(rows_of_runs, st.data())
def test_both_readers_agree(path: Path, rows: list[Row], data: st.DataObject) -> None:
    partings = st.lists(st.sampled_from("\t "), min_size=5, max_size=5)
    lines = []
    for row in rows:
        parts = zip(row, [*data.draw(partings), ""], strict=True)
        lines.append("".join(f"{field}{parting}" for field, parting in parts))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + end * data.draw(st.integers(0, 3))
    written = data.draw(st.sampled_from(["", "\ufeff"])) + text
    fast = parsed(path, written.encode())
    assert fast[1] == ()
    assert_same(fast, line_by_line(path, written.encode()))


@settings(max_examples=100, deadline=None)
@given(rows_of_runs)
def test_the_usual_shape_is_read_at_once(rows: list[Row]) -> None:
    contexts = [end.rpartition("-S")[0] for row in rows for end in row[2].split(":")]
    widest = max(len(name.encode()) for name in [*contexts, *(row[4] for row in rows)])
    assert at_once(text_of(rows)) == (widest <= 64)


DAMAGED = text_of(
    [
        ("EQ001", "Q0", "a-b-C000-S001:a-b-C000-S002", 1, "9.5", "t"),
        ("CQ1", "Q0", "ü-C1000-S009:ü-C1000-S010", 2, "+1e1", "t"),
        ("EQ001", "x", "c-C000-S001:d-C001-S000", 12, "-.5", "u"),
    ]
)
PIECES = [
    "",
    *"\t\n\r -:CSEQ019.+e\x00\x0b\x1b\x1c\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "ß",
    "\n\n",
    "C000",
    "-S001",
]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(DAMAGED)), st.integers(0, 2), st.sampled_from(PIECES)),
        min_size=1,
        max_size=3,
    )
)
def test_both_readers_agree_on_damaged_files(path: Path, damages: list[tuple[int, int, str]]) -> None:
    damaged = bytearray(DAMAGED)
    for at, length, piece in damages:
        damaged[at : at + length] = piece.encode()
    read = []
    for reader in (parsed, line_by_line):
        try:
            read.append(reader(path, bytes(damaged)))
        except EpicqaError as error:
            read.append(str(error))
    if isinstance(read[0], str):
        assert read[0] == read[1]
        assert "\n" not in read[0]
    else:
        assert_same(*read)


@pytest.mark.parametrize("context", ["c-C000", "a-b-C1000"])
def test_ends_before_starts_are_told_of_usual_files(path: Path, context: str) -> None:
    rows: list[Row] = [
        ("EQ001", "Q0", "d-C000-S001:d-C000-S001", 1, "2", "t"),
        ("EQ001", "Q0", f"{context}-S002:{context}-S001", 2, "1", "t"),
    ]
    run, problems = parsed(path, text_of(rows))
    assert [(problem.line, problem.kind) for problem in problems] == [(2, "order")]
    assert len(run.questions["EQ001"]) == 1


def test_sentence_numbers_of_too_many_digits_are_told(path: Path) -> None:
    data = text_of([("EQ001", "Q0", "a-C007-S0001:a-C007-S0002", 1, "1", "t")])
    assert_same(parsed(path, data), line_by_line(path, data))
    assert [note.kind for note in parsed(path, data)[0].notes] == ["padding"]


@pytest.mark.parametrize("space", ["\x85", "\xa0", "\u2028", "\u3000"])
def test_white_space_beyond_ascii_is_in_no_id(path: Path, space: str) -> None:
    for document in (f"{space}a", f"a{space}", f"a{space}b"):
        data = text_of([("EQ001", "Q0", f"{document}-C000-S001:{document}-C000-S001", 1, "1", "t")])
        assert [problem.kind for problem in parsed(path, data)[1]] == ["malformed"]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-.eE_", min_size=1, max_size=8))
def test_both_readers_agree_on_scores(path: Path, score: str) -> None:
    data = text_of([("EQ001", "Q0", "c-C000-S000:c-C000-S000", 1, score, "t")])
    assert_same(parsed(path, data), line_by_line(path, data))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_no_run(path: Path, data: bytes) -> None:
    for one in (data, data + b"\n", b"\n".join([data] * 6), b" ".join([data] * 6) + b"\n"):
        try:
            parsed(path, one)
        except EpicqaError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 63, 64, 65, 100])
def test_widths(path: Path, width: int) -> None:
    rows: list[Row] = []
    for i, end in enumerate("abacb"):
        # Names that differ in the last byte only, and others of one byte beside them.
        name = "n" * (width - 1) + end
        context = f"{name[-max(width - 5, 1) :]}-C000"
        score = f"{i + 1}.{'0' * width}"[:width]
        rows.append((name, "Q0", f"{context}-S000:{context}-S001", i, score, name))
        rows.append(("q", "Q0", "d-C000-S000:d-C000-S000", i, "1", "t"))
    data = text_of(rows)
    assert at_once(data) == (width <= 64)
    fast = parsed(path, data)
    assert list(fast[0].questions) == [
        "n" * (width - 1) + "a",
        "q",
        "n" * (width - 1) + "b",
        "n" * (width - 1) + "c",
    ]
    assert_same(fast, line_by_line(path, data))


@pytest.mark.parametrize(
    "passage",
    [
        "a-C0007-S001:a-C007-S002",
        "a-C7-S1:a-C007-S002",
        "a-C007-S01:a-C007-S02",
        "a-C007-S001:a-C00007-S002",
    ],
)
def test_other_paddings(path: Path, passage: str) -> None:
    data = text_of(
        [("EQ001", "Q0", "c-C000-S000:c-C000-S000", 1, "2", "t"), ("EQ001", "Q0", passage, 2, "1", "t")]
    )
    run, problems = parsed(path, data)
    assert (problems, run.contexts) == ((), ("c-C000", "a-C007"))
    assert [(note.line, note.kind) for note in run.notes] == [(2, "padding")]
    assert run.sentence_ids(run.questions["EQ001"], 1) == ("a-C007-S001", "a-C007-S002")


def test_numbers_of_four_digits(path: Path) -> None:
    data = text_of([("EQ001", "Q0", "a-C1234-S1000:a-C1234-S10000", 1, "1", "t")])
    assert at_once(data)
    run, problems = parsed(path, data)
    assert (problems, run.contexts, run.notes) == ((), ("a-C1234",), ())
    assert run.sentence_ids(run.questions["EQ001"], 0) == ("a-C1234-S1000", "a-C1234-S10000")


def test_equal_scores_go_by_rank_then_line(path: Path) -> None:
    written = [("9.5", 9), ("10.2", 1), ("9.50", 8), ("95e-1", 8), ("-0", 3), ("0", 2)]
    rows: list[Row] = [
        ("EQ001", "Q0", f"c-C000-S{i:03d}:c-C000-S{i:03d}", rank, score, "t")
        for i, (score, rank) in enumerate(written)
    ]
    assert at_once(text_of(rows))
    for read in (parsed, line_by_line):
        assert read(path, text_of(rows))[0].questions["EQ001"].line.tolist() == [2, 3, 4, 1, 6, 5]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files(tmp_path: Path, suffix: str) -> None:
    data = (GOLDEN / "synthetic_b.tsv").read_bytes()
    plain = parsed(tmp_path / "run.tsv", data)
    path = tmp_path / f"run.tsv{suffix}"
    assert_same(parsed(path, COMPRESS[suffix](data)), plain)
    assert_same(parsed(path, COMPRESS[suffix](data.replace(b"\n", b"\r\n"))), plain)
    assert_same(parsed(path, COMPRESS[suffix](data + b" \n")), plain)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_that_are_cut_short(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.tsv{suffix}"
    whole = COMPRESS[suffix]((GOLDEN / "synthetic_b.tsv").read_bytes())
    for data in (whole[: len(whole) // 2], whole[:-1], whole[:3], b"EQ001 Q0 no compression\n"):
        with pytest.raises(EpicqaError) as error:
            parsed(path, data)
        assert str(error.value).startswith(f"{path}: ")
        assert str(error.value).endswith(f", expected a run file, lines of {COLUMNS}")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\r\n", b"\n" * 6, b"\n" * 12, b" \n\t\n", b"     \n" * 3, b"\t\t\t\t\t\n"]
)
def test_runs_without_lines(path: Path, data: bytes) -> None:
    with pytest.raises(EpicqaError) as error:
        parsed(path, data)
    assert str(error.value) == f"{path}: empty, expected lines of {COLUMNS}"


def test_files_of_many_parts(path: Path) -> None:
    # Over a million bytes: names come back and new ones come up everywhere, questions lie in pieces.
    random = np.random.default_rng(5)
    drawn = random.integers(0, [40, 300, 1100, 500], (20_000, 4)).tolist()
    rows: list[Row] = []
    for i, (question, document, number, score) in enumerate(drawn):
        context = f"dé-{document + i // 10}-C{question:03d}"
        passage = f"{context}-S{number:03d}:{context}-S{number + 1:03d}"
        rows.append((f"EQ{question:03d}", "Q0", passage, i, str(score / 7), f"t{question % 2}"))
    data = text_of(rows)
    assert len(data) > 1 << 20
    assert at_once(data)
    fast = parsed(path, data)
    assert fast[1] == ()
    assert_same(fast, line_by_line(path, data))
    run, (problem,) = parsed(path, data + b"EQ001 Q0 c-C000-S000:c-C000-S000 1 high t\n")
    assert (problem.line, problem.kind) == (20_001, "score")
    assert_same(fast, (run, ()))


@pytest.mark.parametrize("name", "abc")
def test_golden_runs(path: Path, name: str) -> None:
    data = (GOLDEN / f"synthetic_{name}.tsv").read_bytes()
    assert at_once(data)
    assert_same(parsed(path, data), line_by_line(path, data))
