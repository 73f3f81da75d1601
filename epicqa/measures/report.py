"""A report of scores: one page that needs nothing else, with its tables and plots as files beside it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from epicqa import __version__
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, sha256_of
from epicqa.measures.compare import Comparison
from epicqa.measures.comparison_tables import comparison_tables, contrasts_table
from epicqa.measures.judgments import Judgments
from epicqa.measures.ndns import DEFINITIONS
from epicqa.measures.plots import Plot, discovery_curve, gain_by_length, question_bars
from epicqa.measures.report_tables import (
    Material,
    by_length,
    called,
    discovery,
    first_rank_table,
    gathered,
    length_labels,
    matrix,
    means,
    nuggets_of,
    per_question,
    values_of,
)
from epicqa.measures.score import Scores
from epicqa.measures.tables import Cell, Table, best_places, is_numeric, render, shown
from epicqa.problems import Problem
from epicqa.runs.model import Run

PAGE = "report.html"

TIES = {
    "published": "Passages are taken by score as a number, best first; equal scores by rank, then by line.",
    "tac2020": "Passages are taken as the track's script takes them: by the score's text, descending; "
    "equal texts by line.",
}
"""How each definition orders the passages of a run."""

_IDEALS = {
    "beam": "The ideal ranking is found by the track's beam search, width 10. It is not the optimum, "
    "so a score can pass 1.",
    "best": "The ideal ranking is found by a stronger search than the track's, whose ideal is never below "
    "the beam's; still a search, so a score can pass 1.",
}
_ENDINGS = {"csv": "csv", "json": "json", "tex": "latex"}
_MOST_WARNINGS = 10
_LEFT_OUT = ("no-gold", "missing", "unjudged")


def write_report(
    folder: Path,
    scores: Sequence[Scores],
    runs: Sequence[Run],
    judgments: Judgments,
    comparison: Comparison | None = None,
    extra_tables: Sequence[Table] = (),
) -> Path:
    """Write a report of runs; return the path of its page.

    The same runs, judgments and scores give the same bytes. An earlier report in the folder is replaced as a
    whole, once the new one is complete.

    Args:
        folder: where; absent, empty, or an earlier report.
        scores: of each run, in one definition and with one kind of ideal.
        runs: the runs, in the same order.
        judgments: what they were scored with.
        comparison: of the same runs.
        extra_tables: more results.

    Raises:
        EpicqaError: the folder holds something else, or the scores follow different definitions or ideals.
        ValueError: not a score of each run.
    """
    check_folder(folder)
    if not scores or len(scores) != len(runs):
        raise ValueError(f"{len(scores)} scores of {len(runs)} runs, expected one of each run")
    for what in ("definition", "ideal"):
        if len(different := sorted({getattr(one, what) for one in scores})) > 1:
            raise EpicqaError(f"{folder}: scores with {what} {' and '.join(different)}, expected one of them")
    contents = _contents(gathered(scores, runs, judgments), comparison, extra_tables)
    with _replacing_folder(folder) as temporary:
        for name, data in contents.items():
            (temporary / name).write_bytes(data)
    return folder / PAGE


def check_folder(folder: Path) -> None:
    """Refuse a place where a report cannot go.

    Raises:
        EpicqaError: it is a file, or a folder with anything in it that is not of an earlier report.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise EpicqaError(f"{folder}: there and not a folder, expected a folder for the report")
    known = _files_of_report(folder)
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if foreign:
        raise EpicqaError(
            f"{folder}: holds {shown(foreign[0])}, which is of no earlier report; "
            "expected a new or empty folder, or an earlier report"
        )


def _files_of_report(folder: Path) -> set[str]:
    """The names that a report's page says are its own."""
    try:
        with (folder / PAGE).open(encoding="utf-8", errors="replace") as page:
            found = re.search(r'<meta name="epicqa-report" content="([^"]*)">', page.read(10_000))
    except OSError:
        return set()
    return set(found[1].split()) if found else set()


@contextmanager
def _replacing_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside, which takes the place of ``folder`` when the block ends well."""
    # Where a link leads, as the link itself has to stay.
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("tmp", "old"))
    try:
        temporary.mkdir()
        yield temporary
        if folder.exists():
            folder.rename(old)
        temporary.rename(folder)
    finally:
        remove_tree(temporary)
        if folder.exists():
            remove_tree(old)
        elif old.exists():
            old.rename(folder)


def _contents(
    material: Material, comparison: Comparison | None, extra_tables: Sequence[Table]
) -> dict[str, bytes]:
    """File name -> content of the whole report."""
    plots = _plots(material)
    tables = {
        "means": means(material),
        "per-question": per_question(material),
        "nuggets-first-rank": first_rank_table(material),
        "discovery": discovery(material),
        "gain-by-length": by_length(material),
    }
    if comparison is not None:
        tables["comparison"] = contrasts_table(comparison)
    extra = {}
    for i, table in enumerate(extra_tables, 1):
        slug = re.sub(r"[^a-z0-9]+", "-", (table.label or table.title).lower())[:60].strip("-")
        extra[f"more-{i}-{slug}".rstrip("-")] = table
    contents = {PAGE: b""}
    for name, table in (tables | extra).items():
        for ending, form in _ENDINGS.items():
            contents[f"{name}.{ending}"] = render([table], form).encode("utf-8", "backslashreplace")
    for plot in plots:
        contents[f"{plot.name}.svg"] = plot.svg
        contents[f"{plot.name}.png"] = plot.png
    page = _page(material, plots, tables, extra, comparison, sorted(contents))
    contents[PAGE] = page.encode("utf-8", "backslashreplace")
    return contents


def _page(
    material: Material,
    plots: Sequence[Plot],
    tables: dict[str, Table],
    extra: dict[str, Table],
    comparison: Comparison | None,
    names: Sequence[str],
) -> str:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def plain(value: Any) -> Any:
        return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    # Not the stock loader, as the template may lie in an archive.
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        shown=shown, best_places=best_places, is_numeric=is_numeric, bar=_bar, endings=list(_ENDINGS)
    )
    template = environment.from_string(files("epicqa.measures").joinpath("report.html.j2").read_text("utf-8"))
    head = material.scores[0]
    of_all = [*(problem for one in material.scores for problem in one.warnings), *material.judgments.warnings]
    problems = list(dict.fromkeys(of_all))
    several = len(material.runs) > 1
    return template.render(
        material=material,
        title=f"{_family(head)} of {len(material.runs)} runs" if several else f"{_family(head)} of a run",
        family=_family(head),
        head=head,
        version=__version__,
        ties=TIES[head.definition],
        search=_IDEALS[head.ideal],
        variants=[
            variant
            for variant in DEFINITIONS[head.definition]
            if variant.name in head.values or variant == material.variant
        ],
        unequal=len({one.question_ids for one in material.scores}) > 1,
        passages=[sum(map(len, run.questions.values())) for run in material.runs],
        digests=[sha256_of(run.path) for run in material.runs],
        notes=list(dict.fromkeys(note for one in material.scores for note in one.notes)),
        left_out=[str(problem) for problem in problems if problem.kind in _LEFT_OUT],
        oddities=_shortened([problem for problem in problems if problem.kind not in _LEFT_OUT]),
        plots={plot.name: (Markup(plot.inline()), plot.alt) for plot in plots},
        tables=tables,
        extra=extra,
        compared=[] if comparison is None else _notes_once(comparison_tables(comparison)),
        matrices=[matrix(material, measure) for measure in material.measures],
        nuggets=[nuggets_of(material, question_id) for question_id in material.questions],
        files=names,
        called=called(material, material.measure),
    )


def _notes_once(tables: Sequence[Table]) -> list[Table]:
    """Tables without the notes that the next one has, too."""
    later = [*(table.notes for table in tables[1:]), ()]
    return [
        replace(table, notes=tuple(note for note in table.notes if note not in after))
        for table, after in zip(tables, later, strict=True)
    ]


def _family(head: Scores) -> str:
    return "NDNS" if any(measure in head.ideals for measure in head.values) else "Scores"


def _shortened(problems: Sequence[Problem]) -> list[str]:
    """The first ten of each kind, then how many more there are."""
    seen: Counter[str] = Counter()
    lines = []
    for problem in problems:
        seen[problem.kind] += 1
        if seen[problem.kind] <= _MOST_WARNINGS:
            lines.append(str(problem))
    more = {kind: count - _MOST_WARNINGS for kind, count in seen.items() if count > _MOST_WARNINGS}
    return lines + [f"{count} more of this kind ({kind})" for kind, count in more.items()]


def _plots(material: Material) -> list[Plot]:
    values = np.array([values_of(one, material.measure, material.questions) for one in material.scores])
    used = material.n_lengths
    gain = np.array([one.gain / np.where(one.stating, one.stating, np.nan) for one in material.found])
    return [
        question_bars(
            called(material, material.measure),
            material.names,
            material.questions,
            values,
            [one.mean(material.measure) for one in material.scores],
        ),
        discovery_curve(
            material.names,
            np.array([one.share[: material.depth] for one in material.found]),
            material.ideal.share[: material.depth],
        ),
        gain_by_length(
            material.variant.name,
            material.names,
            length_labels()[:used],
            gain[:, :used],
            np.array([one.passages[:used] for one in material.found]),
        ),
    ]


def _bar(cell: Cell) -> str:
    """How far the bar behind a value of 0 to 1 reaches."""
    if not isinstance(cell, int | float) or not np.isfinite(cell):
        return "0"
    return f"{min(max(cell, 0.0), 1.0):.3f}"
