"""CSV files row by row."""

import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.sources.table import Row, open_table
from epicqa.errors import EpicqaError

LIMIT = 1 << 20


def read_table(folder: Path, content: bytes, limit: int = LIMIT) -> list[Any]:
    (path := folder / "t.csv").write_bytes(content)
    found = list(open_table(path, "t.csv", limit, "a table").rows())
    return [list(one.cells.values()) if isinstance(one, Row) else (one.place, one.reason) for one in found]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1,2\n", [["1", "2"]]),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4", [["1", "2"], ["3", "4"]]),
        (b'a,b\n"1\n, ""x""",2\n3,4\n', [['1\n, "x"', "2"], ["3", "4"]]),
        (b"a,b\n1,\0\n", [["1", "\0"]]),
        (b"a\n\n", []),
        (
            b"a,b\n1\n1,2,3\n3,4\n",
            [
                ("t.csv:2", "row left out: 1 columns, expected 2"),
                ("t.csv:3", "row left out: 3 columns, expected 2"),
                ["3", "4"],
            ],
        ),
        (
            b'a,b\n"1\n\xff\n",2\n3,4\n',
            [("t.csv:2", "row left out: not UTF-8: 0xff at line 3, byte 1"), ["3", "4"]],
        ),
        (b'a,b\n1,"2\n', [("t.csv:2", "row left out: unexpected end of data")]),
        (b'a,b\n1,"2"x\n3,4\n', [("t.csv:2", "row left out: ',' expected after '\"'"), ["3", "4"]]),
    ],
)
def test_tables(tmp_path: Path, content: bytes, expected: list[Any]) -> None:
    assert read_table(tmp_path, content) == expected


def test_table_columns_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b" a ,a,b\n1,2,3\n")
    (row,) = open_table(tmp_path / "t.csv", "t", LIMIT, "").rows()
    assert isinstance(row, Row)
    assert row.cells == {"a": "1", "b": "3"}


def test_rows_over_the_limit(tmp_path: Path) -> None:
    long = b"x" * 200_000
    rows = b"a,b\n1," + long + b'\n"' + long + b"\n" + long + b'",2\n3,4\n'
    assert [len(row[1]) for row in read_table(tmp_path, rows)] == [200_000, 1, 1]
    limited = read_table(tmp_path, rows, 199_999)
    reason = "row left out: more than 199,999 bytes, see --max-file-size"
    assert limited[:2] == [("t.csv:2", reason), ("t.csv:3", reason)]
    assert limited[-1] == ["3", "4"]
    assert read_table(tmp_path, rows, 200_100)[1] == ("t.csv:3", reason.replace("199,999", "200,100"))


@given(st.lists(st.lists(st.text('a,"\n\ré\0 '), min_size=2, max_size=2), min_size=1))
def test_tables_against_the_writer(rows: list[list[str]]) -> None:
    # A carriage return in an unquoted cell would end the row, and a row of one blank cell is a blank line.
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["x", "y"], *rows])
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "t.csv").write_bytes(text.getvalue().encode())
        opened = open_table(path, "t", LIMIT, "")
        found = [row for row in opened.rows() if isinstance(row, Row)]
        assert [list(row.cells.values()) for row in found] == rows
        backwards = found[::-1]
        assert list(opened.rows_at([row.offset for row in backwards])) == [row.cells for row in backwards]
        content = path.read_bytes()
        assert [content[: row.offset].count(b"\n") + 1 for row in found] == [row.line for row in found]


@given(st.binary() | st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"a", b"\xff"])).map(b"".join))
def test_any_bytes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "t.csv").write_bytes(content)
        try:
            found = list(open_table(path, "t", 8, "a table").rows())
        except EpicqaError as error:
            assert str(error).startswith("t:1: ")
            assert "\n" not in str(error)
        else:
            assert all(isinstance(one, Row) or "\n" not in one.reason for one in found)
