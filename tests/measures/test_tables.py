"""Tables in every format, and what untrusted text becomes in each."""

import csv
import io
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.measures.tables import (
    FORMATS,
    Cell,
    Column,
    Table,
    render,
    shown,
    to_csv,
    to_latex,
    to_text,
    to_tsv,
)

RUNS = Table(
    "Means",
    (
        Column("run", "Run"),
        Column("exact", form=".4f", best="highest"),
        Column("p", "p value", "p"),
        Column("wins"),
    ),
    (
        ("my_run", 0.123456789, 0.00001, 12),
        ("other & co", 0.12346, None, 3),
        ("-last", math.nan, 0.5, None),
        ("MEAN", 0.9, 1.0, 0),
    ),
    notes=("Over 24 questions.", "50% of them easy"),
    sections=(3,),
)

texts = st.text(st.characters(exclude_categories=()), max_size=30)
cells = st.one_of(st.none(), texts, st.integers(), st.floats())


def test_text() -> None:
    assert to_text(RUNS).splitlines() == [
        "Means",
        "Run          exact  p value  wins",
        "─────────────────────────────────",
        "my_run      0.1235  <0.0001    12",
        "other & co  0.1235        -     3",
        "-last            -   0.5000     -",
        "",
        "MEAN        0.9000   1.0000     0",
        "Over 24 questions.",
        "50% of them easy",
    ]


def test_text_is_folded_and_bold_at_a_terminal_only() -> None:
    table = Table("A title", (Column("run"),), (("x" * 100,), ("[bold]y[/bold] :smile:",)), ("word " * 20,))
    assert max(map(len, to_text(table).splitlines())) == 100
    narrow = to_text(table, width=40)
    assert max(map(len, narrow.splitlines())) <= 40
    assert narrow.count("x") == 100
    assert "[bold]y[/bold] :smile:" in narrow
    # Short columns stay whole where long ones can make room.
    columns = (Column("run"), Column("against"), Column("n"))
    long = Table("", columns, (("a" * 30, "b" * 30, 0.123456),))
    assert to_text(long, width=40).count("0.123456") == 1
    assert "0.123456" not in to_text(long, width=15)
    styled = to_text(RUNS, width=80, styled=True)
    # Both that are shown as the highest of their section; the mean stands alone in its own.
    assert styled.count("\x1b[1m0.1235") == 2
    assert "\x1b[1m0.9000" not in styled
    assert "\x1b" not in to_text(RUNS, width=80)


def test_tsv() -> None:
    assert to_tsv(RUNS).splitlines() == [
        "run\texact\tp\twins",
        "my_run\t0.123456789\t1e-05\t12",
        "other & co\t0.12346\t-\t3",
        "-last\t-\t0.5\t-",
        "MEAN\t0.9\t1.0\t0",
    ]


def test_csv() -> None:
    table = Table(
        "",
        (Column("run"), Column("=key")),
        (
            ("=1+1", -0.5),
            ("+1", None),
            ("-x", math.inf),
            ("@SUM(A1)", 1),
            (" \t=1", -3),
            ("＝1", 0.1),
            ('a,"b"\nc', 2),
        ),
    )
    assert list(csv.reader(io.StringIO(to_csv(table)))) == [
        ["run", "'=key"],
        ["'=1+1", "-0.5"],
        ["'+1", ""],
        ["'-x", ""],
        ["'@SUM(A1)", "1"],
        ["'  =1", "-3"],
        ["'＝1", "0.1"],
        ['a,"b" c', "2"],
    ]


def test_json() -> None:
    (record,) = json.loads(render([RUNS], "json"))
    assert record["title"] == "Means"
    assert record["columns"][:2] == [{"key": "run", "label": "Run"}, {"key": "exact", "label": "exact"}]
    assert record["rows"][0] == {"run": "my_run", "exact": 0.123456789, "p": 1e-5, "wins": 12}
    assert record["rows"][2] == {"run": "-last", "exact": None, "p": 0.5, "wins": None}
    assert record["notes"] == ["Over 24 questions.", "50% of them easy"]


def test_latex() -> None:
    assert to_latex(RUNS).splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Means. Over 24 questions. 50\% of them easy.}",
        r"\label{tab:means}",
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"Run & exact & p value & wins \\",
        r"\midrule",
        r"my\_run & \textbf{0.1235} & \textless{}0.0001 & 12 \\",
        r"other \& co & \textbf{0.1235} & - & 3 \\",
        r"-last & - & 0.5000 & - \\",
        r"\midrule",
        r"MEAN & 0.9000 & 1.0000 & 0 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_latex_escapes_text() -> None:
    odd = "\\input{x} $1$ #2 a^b~c <d> |e| \"f\" `g' [1pt] *x* a--b ''c'' %&_{}"
    table = Table(odd, (Column("k", odd), Column("n", form="+.2f")), ((odd, -0.5), ("[2pt]", 0.25)))
    found = to_latex(table)
    escaped = (
        r"\textbackslash{}input\{x\} \$1\$ \#2 a\textasciicircum{}b\textasciitilde{}c "
        r"\textless{}d\textgreater{} \textbar{}e\textbar{} \symbol{34}f\symbol{34} \textasciigrave{}g' "
        r"{[}1pt{]} {*}x{*} a-{}-b '{}'c'{}' \%\&\_\{\}"
    )
    assert rf"\caption{{{escaped}.}}" in found
    assert f"\n{escaped} & n \\\\\n" in found
    assert f"\n{escaped} & $-$0.50 \\\\\n" in found
    assert "\n{[}2pt{]} & $+$0.25 \\\\\n" in found
    assert re.search(r"\\label\{tab:[a-z0-9-]+\}", found)


def test_lowest_is_best_and_a_lone_number_is_not() -> None:
    columns = (Column("a", best="lowest"), Column("b", best="highest"))
    found = to_latex(Table("t", columns, ((2, 1.0), (1, None), (3, math.nan)), label="My own"))
    assert r"\textbf{1} & -" in found
    assert found.count("textbf") == 1
    assert r"\label{tab:my-own}" in found


def test_several_tables() -> None:
    one = Table("One", (Column("a"),), ((1,),), ("Same.",))
    two = Table("Two", (Column("a"),), ((2,),), ("Same.",))
    text = render([one, two], "table")
    assert text.count("Same.") == 1
    assert text.endswith("2\nSame.\n")
    assert "1\n\nTwo\n" in text
    assert render([one, two], "latex").count("Same.") == 2
    assert render([one, two], "tsv") == "a\n1\n\na\n2\n"
    assert [record["title"] for record in json.loads(render([one, two], "json"))] == ["One", "Two"]


@pytest.mark.parametrize("form", FORMATS)
def test_no_rows(form: str) -> None:
    assert "key" in render([Table("Nothing", (Column("key", best="highest"),), ())], form)


def test_shown() -> None:
    assert [shown(cell, ".2f") for cell in (0.125, 3, None, math.nan, math.inf, "\x1b[31m\n")] == [
        *("0.12", "3.00", "-", "-", "-"),
        " [31m ",
    ]
    assert [shown(p, "p") for p in (1.0, 0.0001, 0.00009999)] == ["1.0000", "0.0001", "<0.0001"]


def test_bad_tables() -> None:
    with pytest.raises(ValueError, match="two columns of one key"):
        Table("", (Column("a"), Column("a")), ())
    with pytest.raises(ValueError, match="expected 1 cells"):
        Table("", (Column("a"),), ((1, 2),))


@given(st.lists(st.tuples(cells, cells), max_size=5), texts, st.booleans())
def test_any_cells(rows: list[tuple[Cell, Cell]], title: str, styled: bool) -> None:
    table = Table(title, (Column("a"), Column("b", best="highest")), tuple(rows))
    lines = to_tsv(table).split("\n")
    assert len(lines) == len(rows) + 2
    assert all(line.count("\t") == 1 for line in lines[:-1])
    read = list(csv.reader(io.StringIO(to_csv(table))))
    assert [len(row) for row in read] == [2] * (len(rows) + 1)
    for row, of_csv, of_tsv in zip(rows, read[1:], lines[1:], strict=False):
        for cell, text, field in zip(row, of_csv, of_tsv.split("\t"), strict=True):
            if isinstance(cell, float) and math.isfinite(cell):
                assert float(text) == float(field) == cell
            if isinstance(cell, str):
                assert not text.startswith(("=", "+", "-", "@"))
    assert len(json.loads(render([table], "json"))[0]["rows"]) == len(rows)
    latex = to_latex(table)
    assert latex.count("\n") == len(rows) + 11
    assert not re.search(r"(?<!\\)[#%_]|[~^|<>`\"]", latex)
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    text = to_text(table, width=60, styled=styled)
    assert all(char.isprintable() or char in "\n\x1b" for char in text)
    assert styled or "\x1b" not in text
