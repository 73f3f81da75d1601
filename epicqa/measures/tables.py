"""Tables of results, and how they are written: text for a terminal, TSV, CSV, JSON, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from epicqa.normal import printable

Cell = str | int | float | None

FORMATS = ("table", "tsv", "csv", "json", "latex")

MISSING = "-"

_SHORT = 9


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        key: its name in TSV, CSV and JSON.
        label: its heading in text and LaTeX; empty, the key.
        form: how numbers are shown there, a format such as ``.4f``; ``p`` is for p values: four decimals, and
            below those ``<0.0001``.
        best: ``highest`` or ``lowest`` sets such numbers of each section bold; empty, none.
    """

    key: str
    label: str = ""
    form: str = ""
    best: str = ""

    @property
    def heading(self) -> str:
        return self.label or self.key


@dataclass(frozen=True, slots=True)
class Table:
    """A table of plain values. A number that is not finite is as None: there is none.

    Attributes:
        title: a line.
        columns: their keys differ.
        rows: a cell a column.
        notes: sentences that say what the figures are.
        sections: rows, from 0, that a rule stands above.
        label: LaTeX's name of the table, after ``tab:``; empty, one made of the title.

    Raises:
        ValueError: two columns of one key, or a row that is not as long as the columns are many.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    sections: tuple[int, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if len({column.key for column in self.columns}) < len(self.columns):
            raise ValueError("two columns of one key, expected different ones")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of another length, expected {len(self.columns)} cells")

    def records(self) -> list[dict[str, Cell]]:
        """Rows as JSON holds them: key -> value, null where there is none."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, map(_present, row), strict=True)) for row in self.rows]


def joined(tables: Sequence[Table]) -> Table:
    """Tables of the same columns as one, under the first one's title."""
    return replace(tables[0], rows=tuple(row for table in tables for row in table.rows))


def shown(cell: Cell, form: str = "") -> str:
    """A cell as people read it, without characters that a terminal would obey."""
    value = _present(cell)
    if value is None:
        return MISSING
    if isinstance(value, str):
        return printable(value)
    if form == "p":
        return "<0.0001" if value < 0.0001 else f"{value:.4f}"
    return format(value, form)


def render(tables: Iterable[Table], form: str, *, width: int | None = None, styled: bool = False) -> str:
    """Tables one after the other in one of `FORMATS`, with a line between them; JSON is a list of them.

    In text, notes that the next table has, too, stand once, under the last one.

    Args:
        tables: what to write.
        form: the format.
        width: columns of the terminal, at which text is folded; None, never.
        styled: whether text may hold a terminal's codes for bold type.
    """
    if form == "json":
        # ASCII, as a terminal would obey some control characters beyond it.
        return json.dumps([as_record(table) for table in tables], indent=1) + "\n"
    if form == "table":
        every = list(tables)
        for i, following in enumerate(every[1:]):
            if every[i].notes == following.notes:
                every[i] = replace(every[i], notes=())
        return "\n".join(to_text(table, width=width, styled=styled) for table in every)
    return "\n".join({"tsv": to_tsv, "csv": to_csv, "latex": to_latex}[form](table) for table in tables)


def as_record(table: Table) -> dict[str, Any]:
    """A table as a JSON object: title, columns (key, label), rows by key, notes."""
    return {
        "title": table.title,
        "columns": [{"key": column.key, "label": column.heading} for column in table.columns],
        "rows": table.records(),
        "notes": list(table.notes),
    }


def to_text(table: Table, *, width: int | None = None, styled: bool = False) -> str:
    """Title, table and notes as text for reading; best values are bold where ``styled``."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    best = best_places(table)
    widths = [
        max(
            cell_len(text)
            for text in (printable(column.heading), *(shown(row[i], column.form) for row in table.rows))
        )
        for i, column in enumerate(table.columns)
    ]
    # Long columns make room for short ones, as far as that helps.
    roomy = width is None or sum(min(one, _SHORT) + 2 for one in widths) <= width
    for i, column in enumerate(table.columns):
        # Folding loses nothing; the default cuts long names.
        drawn.add_column(
            Text(printable(column.heading)),
            justify="right" if is_numeric(table, i) else "left",
            overflow="fold",
            no_wrap=roomy and widths[i] <= _SHORT,
        )
    for at, row in enumerate(table.rows):
        if at in table.sections and at:
            drawn.add_section()
        drawn.add_row(
            *(
                Text(shown(cell, column.form), "bold" if (at, i) in best else "")
                for i, (cell, column) in enumerate(zip(row, table.columns, strict=True))
            )
        )
    console = Console(
        file=io.StringIO(),
        width=width or 100_000,
        force_terminal=styled,
        force_jupyter=False,
        color_system="standard" if styled else None,
        highlight=False,
    )
    with console.capture() as captured:
        if table.title:
            console.print(Text(printable(table.title), "bold"))
        console.print(drawn)
        for note in table.notes:
            console.print(Text(printable(note)))
    return "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])


def to_tsv(table: Table) -> str:
    """Keys, then rows, parted by tabs; numbers to the last digit, `MISSING` where there is none."""
    rows = [[column.key for column in table.columns], *table.rows]
    return "".join("\t".join(_exact(cell) for cell in row) + "\n" for row in rows)


def to_csv(table: Table) -> str:
    """Keys, then rows, with commas; numbers to the last digit, nothing where there is none.

    Text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in ([column.key for column in table.columns], *table.rows):
        writer.writerow(_harmless(cell) if isinstance(cell, str) else _present(cell) for cell in row)
    return out.getvalue()


def to_latex(table: Table) -> str:
    """A ``table`` of the package booktabs, notes in its caption, best values bold."""
    best = best_places(table)
    slug = re.sub(r"[^a-z0-9]+", "-", (table.label or table.title).lower()).strip("-")
    caption = " ".join(_sentence(text) for text in (table.title, *table.notes))
    alignment = "".join("r" if is_numeric(table, i) else "l" for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{tab:{slug}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        " & ".join(latex_text(column.heading) for column in table.columns) + r" \\",
        r"\midrule",
    ]
    for at, row in enumerate(table.rows):
        if at in table.sections and at:
            lines.append(r"\midrule")
        cells = []
        for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
            text = _latex_cell(cell, column.form)
            cells.append(rf"\textbf{{{text}}}" if (at, i) in best else text)
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "".join(line + "\n" for line in lines)


_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "`": r"\textasciigrave{}",
    # A line of a table would take these for an argument of the one before it.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
} | {char: f"\\{char}" for char in "{}$&#_%"}


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it stands, whatever is in it."""
    escaped = "".join(_LATEX.get(char, char) for char in printable(text))
    # Doubled, these would become one dash or quotation mark.
    return re.sub(r"([-,'])(?=\1)", r"\1{}", escaped)


def _latex_cell(cell: Cell, form: str) -> str:
    text = latex_text(shown(cell, form))
    if isinstance(cell, str) or text[0] not in "+-" or text == MISSING:
        return text
    return f"${text[0]}${text[1:]}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _present(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _exact(cell: Cell) -> str:
    value = _present(cell)
    return repr(float(value)) if isinstance(value, float) else shown(value)


_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]")


def _harmless(text: str) -> str:
    plain = printable(text)
    return f"'{plain}" if _FORMULA.match(plain) else plain


def is_numeric(table: Table, column: int) -> bool:
    """Whether a column has numbers, and nothing else."""
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def best_places(table: Table, by_row: bool = False) -> set[tuple[int, int]]:
    """Row and column of the best numbers, as shown, of each section of the columns that mark them.

    With ``by_row``, of the highest of each row, but where all look the same. None where there is one only.
    """
    bounds = sorted({0, *table.sections, len(table.rows)})
    if by_row:
        groups = [("highest", [(at, i) for i in range(len(table.columns))]) for at in range(len(table.rows))]
    else:
        groups = [
            (column.best, [(at, i) for at in range(start, stop)])
            for start, stop in pairwise(bounds)
            for i, column in enumerate(table.columns)
            if column.best
        ]
    found = set()
    for wanted, places in groups:
        numbers = {
            (at, i): value
            for at, i in places
            if isinstance(value := _present(table.rows[at][i]), int | float)
        }
        texts = {place: shown(value, table.columns[place[1]].form) for place, value in numbers.items()}
        if len(texts) > 1 and not (by_row and len(set(texts.values())) == 1):
            choose = max if wanted == "highest" else min
            best = texts[choose(numbers, key=numbers.__getitem__)]
            found |= {place for place, text in texts.items() if text == best}
    return found
