"""Plots of a report: bars by question, discovery of nuggets, gain by length; as SVG and PNG.

Nothing in them tells when they were made, so what is drawn twice has the same bytes.

Colours are those of Okabe and Ito ("Color universal design", 2008), which the colour-blind tell apart; runs
beyond six differ in their dashes, too. Names of runs are text and nothing else: ``$`` starts no formula.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from epicqa.normal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = "osD^vP"
# Stand for ink and paper, and become what the page has in their place.
_INK, _PAPER = "#111112", "#fefefe"
_LONGEST = 32
_PER_RUN = 1.15
_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,
    "text.usetex": False,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "figure.facecolor": _PAPER,
    "savefig.facecolor": _PAPER,
    "legend.frameon": False,
    "svg.fonttype": "none",
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawn figure.

    Attributes:
        name: of its files, without ending.
        alt: what it shows, for those who do not see it.
        width: in inches.
        svg, png: the files.
    """

    name: str
    alt: str
    width: float
    svg: bytes
    png: bytes

    def inline(self) -> str:
        """The SVG as part of an HTML page: colours of the page, ids of its own, no addresses in it."""
        root = ElementTree.fromstring(self.svg)
        for parent in root.iter():
            for child in list(parent):
                if child.tag.endswith(("}style", "}metadata")):
                    parent.remove(child)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
            attributes = {name.rpartition("}")[2]: value for name, value in element.items()}
            element.attrib.clear()
            for name, value in attributes.items():
                element.set(name, self._of_page(name, value))
        for name in ("width", "height", "version"):
            root.attrib.pop(name, None)
        root.set("role", "img")
        root.set("aria-label", self.alt)
        # Below this width the page scrolls instead of shrinking the letters.
        root.set("style", f"min-width: {round(self.width * 62)}px")
        return ElementTree.tostring(root, encoding="unicode")

    def _of_page(self, name: str, value: str) -> str:
        if name == "id":
            return f"{self.name}-{value}"
        if name == "href":
            return value.replace("#", f"#{self.name}-", 1)
        value = value.replace("url(#", f"url(#{self.name}-")
        return value.replace(_INK, "currentColor").replace(_PAPER, "none")


def question_bars(
    measure: str,
    names: Sequence[str],
    question_ids: Sequence[str],
    values: NDArray[np.float64],
    means: Sequence[float],
) -> Plot:
    """A panel a run, a bar a question, the mean as a line.

    Args:
        measure: what the bars are.
        names: of the runs.
        question_ids: in the order of the bars.
        values: float64[n_runs, n_questions], NaN where a question is not scored.
        means: of the runs.
    """
    count = len(question_ids)
    width = min(40.0, max(8.0, 1.2 + 0.17 * count))

    def paint(figure: Figure) -> None:
        panels = figure.subplots(len(names), 1, sharey=True, squeeze=False)[:, 0]
        top = float(np.nanmax(values, initial=0.0))
        for i, axes in enumerate(panels):
            axes.bar(np.arange(count), np.nan_to_num(values[i]), width=0.8, color=_colour(i))
            axes.axhline(means[i], color=_INK, linewidth=0.8, linestyle="--")
            axes.set_title(f"{_short(names[i])}, mean {means[i]:.3f}")
            axes.set_ylim(0, max(1.0, top * 1.02) if top > 0.6 else max(0.05, top * 1.1))
            axes.grid(axis="y")
            axes.tick_params(axis="x", length=0)
            axes.set_xticks([])
            axes.set_xlim(-0.7, count - 0.3)
        labels = [_short(name, 16) for name in question_ids]
        upright = count * max(map(len, labels), default=0) > 11 * width
        panels[-1].set_xticks(np.arange(count), labels, rotation=90 if upright else 0)
        figure.supylabel(_short(measure), fontsize=9)

    listed = "; ".join(f"{name} {mean:.3f}" for name, mean in zip(names, means, strict=True))
    alt = f"Bars of {measure} for each of {count} questions, a panel a run. Means: {listed}."
    return _plot("per-question", alt, width, 0.9 + _PER_RUN * len(names), paint)


def discovery_curve(names: Sequence[str], shares: NDArray[np.float64], ideal: NDArray[np.float64]) -> Plot:
    """The share of nuggets found against rank, a line a run, and the ideal's.

    Args:
        names: of the runs.
        shares: float64[n_runs, n_ranks], means over questions of the share found up to each rank.
        ideal: float64[n_ranks], the same of the ideal rankings.
    """
    rank = np.arange(1, len(ideal) + 1)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(rank, ideal, color=_INK, linewidth=1.2, linestyle=(0, (1, 1)), label="ideal")
        for i, share in enumerate(shares):
            axes.plot(
                rank, share, color=_colour(i), linestyle=_dash(i), linewidth=1.6, label=_short(names[i])
            )
        axes.set_xscale("log")
        ticks = [tick for tick in _RANKS if tick <= max(len(ideal), 2)]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlim(1, max(len(ideal), 2))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel("rank")
        axes.set_ylabel("nuggets found, mean share")
        axes.grid()
        _legend(figure, axes)

    listed = "; ".join(f"{name} {share[-1]:.3f}" for name, share in zip(names, shares, strict=True))
    alt = f"Mean share of nuggets found against rank, a line a run. At rank {len(ideal)}: {listed}."
    return _plot("discovery", alt, 8.0, 4.2 + _legend_height(names), paint)


def gain_by_length(
    measure: str,
    names: Sequence[str],
    lengths: Sequence[str],
    gain: NDArray[np.float64],
    count: NDArray[np.int64],
) -> Plot:
    """Mean gain of the passages that state a nugget, and how many passages there are, against their length.

    Args:
        measure: whose gain it is.
        names: of the runs.
        lengths: labels of the classes of length.
        gain: float64[n_runs, n_lengths], NaN where no passage of that length states a nugget.
        count: int64[n_runs, n_lengths], passages.
    """
    place = np.arange(len(lengths))

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        share = count / np.maximum(count.sum(axis=1, keepdims=True), 1)
        for axes, rows in ((left, gain), (right, share)):
            for i, row in enumerate(rows):
                axes.plot(
                    place,
                    row,
                    color=_colour(i),
                    linestyle=_dash(i),
                    marker=_MARKERS[i % len(_MARKERS)],
                    markersize=4,
                    linewidth=1.4,
                    label=_short(names[i]),
                )
            axes.set_xticks(place, lengths)
            axes.set_xlim(-0.4, len(lengths) - 0.6)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("sentences in the passage")
            axes.grid()
        left.set_title(f"mean gain ({_short(measure)}) where a nugget is stated")
        right.set_title("share of all passages")
        _legend(figure, left)

    alt = (
        f"Left: mean gain in {measure} of passages that state a nugget, against their sentences, "
        "a line a run. Right: the share of passages of each length."
    )
    return _plot("gain-by-length", alt, 9.0, 3.4 + _legend_height(names), paint)


def _plot(name: str, alt: str, width: float, height: float, paint: Callable[[Figure], None]) -> Plot:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # A user's own settings change nothing.
    settings: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    settings |= _SETTINGS | {"svg.hashsalt": f"epicqa {name}"}
    # Letters that the font lacks are drawn as boxes in the PNG, and as what they are in the SVG.
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure)
        figure.draw_without_rendering()
        # What is placed need not be placed again for each file.
        figure.set_layout_engine("none")
        svg, png = io.BytesIO(), io.BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=nothing)
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
    return Plot(name, alt, width, svg.getvalue(), png.getvalue())


def _colour(run: int) -> str:
    return _COLOURS[run % len(_COLOURS)]


def _dash(run: int) -> str:
    return _DASHES[run // len(_COLOURS) % len(_DASHES)]


def _short(text: str, most: int = _LONGEST) -> str:
    """A text that fits, without control characters; a long one loses its middle, as ends tell names apart."""
    plain = printable(text)
    if len(plain) <= most:
        return plain
    tail = most // 3
    return f"{plain[: most - tail - 1]}…{plain[-tail:]}"


def _columns(names: Sequence[str]) -> int:
    longest = max((len(_short(name)) for name in names), default=1)
    return max(1, min(len(names) + 1, 100 // (longest + 8)))


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=_columns(labels))


def _legend_height(names: Sequence[str]) -> float:
    return 0.2 * -(-(len(names) + 1) // _columns(names))
