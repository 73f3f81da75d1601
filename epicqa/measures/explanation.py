"""An explanation as a record for programs and as a page for a terminal.

Texts are a collection's: they are shown as text, without characters that a terminal would obey.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epicqa.corpus.store import CorpusStore
from epicqa.measures.explain import (
    ExplainedPassage,
    Explanation,
    IdealPassage,
    Nugget,
    NuggetFate,
    Sentence,
)
from epicqa.measures.tables import shown
from epicqa.runs.read import row_of

_LETTER = {"novel": "N", "redundant": "R", "filler": "F", "unjudged": "U"}
_STYLE = {"novel": "green", "redundant": "yellow", "filler": "dim", "unjudged": "dim italic"}
_MEANING = {
    "novel": "states a nugget that no passage above states",
    "redundant": "only nuggets that some passage above states",
    "filler": "no nugget",
    "unjudged": "no sentence of its context states a nugget",
}


def explanation_record(found: Explanation, ideal: str, store: CorpusStore | None) -> dict[str, object]:
    """An explanation as a JSON object, with the texts of its sentences where there is a store."""
    record: dict[str, object] = dataclasses.asdict(found) | {"search": ideal}
    if store is not None:
        record["texts"] = {
            sentence.sentence_id: _text_of(store, sentence.sentence_id)
            for passage in found.passages
            for sentence in passage.sentences
        }
    return record


def _text_of(store: CorpusStore, sentence_id: str) -> str | None:
    row = row_of(store, sentence_id)
    return None if row is None else store.sentence_text(row)


def explanation_text(found: Explanation, ideal: str, store: CorpusStore | None, every: bool = False) -> str:
    """An explanation as a page, coloured as the console allows.

    Args:
        found: what to show.
        ideal: the search that the ideal ranking comes from.
        store: has the texts of sentences; None shows ids only.
        every: show passages that gain nothing, too; else they are folded into a line.
    """
    return _Page(found, ideal, store).text(every)


class _Page:
    """An explanation on the console."""

    def __init__(self, found: Explanation, ideal: str, store: CorpusStore | None) -> None:
        self.found = found
        self.search = ideal
        self.store = store
        self.score = "NDCG" if found.measure.startswith("ndcg") else "NDNS"
        self.console: Console = Console(highlight=False)

    def text(self, every: bool) -> str:
        with self.console.capture() as captured:
            self._head()
            if self.found.in_run:
                self._passages(every)
                self._nuggets()
            else:
                self._ideal_only()
        return "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])

    def _passages(self, every: bool) -> None:
        for gains, group in groupby(self.found.passages, key=lambda passage: every or passage.gain > 0):
            passages = list(group)
            if gains:
                for passage in passages:
                    self._passage(passage)
            else:
                self._folded(passages)

    def _head(self) -> None:
        found = self.found
        stated = [nugget for nugget in found.nuggets if nugget.n_places]
        missed = len(found.missed)
        measure = found.measure if self.score == "NDCG" else f"NDNS {found.measure}"
        value = _line((f"{shown(found.question_id)}  {measure} {found.ndns:.4f}", "bold"))
        value.append(f" = DNS {found.dns:.4f} / ideal {found.ideal_dns:.4f}")
        run = f"run {shown(found.tag)}: {found.n_passages} passages, "
        run += f"{len(stated) - missed} of {_count(len(stated), 'nugget')} found"
        self.console.print(value)
        self.console.print(_line(run))
        self.console.print(_line(f"{found.definition} definition, ideal ranking by {self.search} search"))
        if not found.in_run:
            return
        self.console.print()
        for kind, meaning in _MEANING.items():
            self.console.print(_line((f"{_LETTER[kind]} {kind:<9}", _STYLE[kind]), f"  {meaning}"))
        self.console.print(
            _line(
                ("+ID", "bold green"),
                "          nugget not seen above, ",
                ("=ID", "bold yellow"),
                " seen above",
            )
        )

    def _passage(self, passage: ExplainedPassage) -> None:
        head = _line((f"{passage.rank:>4}", "bold"), f"  gain {passage.gain:.4f}")
        head.append(f" / {passage.discount:.4f} = {passage.discounted:.4f}   {self.score} ")
        head.append(f"{passage.ndns:.4f}", "bold")
        head.append(f"   line {passage.line}", "dim")
        self.console.print()
        self.console.print(head)
        place = _place(passage.first_id, passage.last_id)
        if title := self._title(passage.first_id):
            place.append(f"  {shown(title)}")
        rows: list[tuple[Text, Text]] = [(_line("at"), place)]
        if passage.note:
            rows.append((_line("note"), _line((passage.note, "bold"))))
        rows += self._sentences(passage.sentences)
        if left := passage.length - len(passage.sentences):
            rows.append((_line("..."), _line((f"{left:,} more sentences, not listed", "dim"))))
        rows += self._named("new", passage.new, "green")
        rows += self._beside(passage)
        self._grid(rows)

    def _title(self, sentence_id: str) -> str | None:
        if self.store is None or (row := row_of(self.store, sentence_id)) is None:
            return None
        return self.store.title(int(self.store.context_document[self.store.sentence_context[row]]))

    def _sentences(self, sentences: Sequence[Sentence]) -> list[tuple[Text, Text]]:
        rows = []
        for sentence in sentences:
            style = _STYLE[sentence.kind]
            label = _line((f"{_LETTER[sentence.kind]} {sentence.sentence_id.rpartition('-')[2]}", style))
            text = _line()
            if self.store is not None:
                found = _text_of(self.store, sentence.sentence_id)
                text.append(shown(found) if found is not None else "(not in the index)", style)
            for sign, ids, colour in (("+", sentence.new, "bold green"), ("=", sentence.seen, "bold yellow")):
                for nugget_id in ids:
                    text.append("  " if text else "").append(f"{sign}{self._short(nugget_id)}", colour)
            rows.append((label, text))
        if self.store is None:
            # One line: without texts there is little to show of each.
            whole = _line()
            for label, text in rows:
                whole.append("   " if whole else "").append_text(label)
                whole.append(" " if text else "").append_text(text)
            rows = [(_line(), whole)] if rows else []
        return rows

    def _named(self, label: str, nuggets: Sequence[Nugget], style: str) -> list[tuple[Text, Text]]:
        return [
            (
                _line((label if i == 0 else "", style)),
                _line((self._short(nugget.nugget_id), f"bold {style}"), (f"  {shown(nugget.text)}", style)),
            )
            for i, nugget in enumerate(nuggets)
        ]

    def _beside(self, passage: ExplainedPassage) -> list[tuple[Text, Text]]:
        """What the ideal has at the rank of a passage."""
        ideal = passage.ideal
        if ideal is None:
            return [(_line(("ideal", "magenta")), _line(("has ended", "magenta")))]
        if (ideal.first_id, ideal.last_id) == (passage.first_id, passage.last_id):
            return [(_line(("ideal", "magenta")), _line(("has the same passage", "magenta")))]
        return self._ideal(ideal)

    def _ideal(self, ideal: IdealPassage) -> list[tuple[Text, Text]]:
        place = _place(ideal.first_id, ideal.last_id)
        value = f"gain {ideal.gain:.4f}, {self.score} {ideal.ndns:.4f}  "
        head = _line((value, "magenta")).append_text(place)
        return [(_line(("ideal", "magenta")), head), *self._named("", ideal.new, "magenta")]

    def _folded(self, passages: Sequence[ExplainedPassage]) -> None:
        first, last = passages[0].rank, passages[-1].rank
        kinds = Counter(_kind(passage) for passage in passages)
        what = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        ideals = [passage.ideal for passage in passages if passage.ideal]
        label = f"rank {first}" if first == last else f"ranks {first}-{last}"
        line = _line((f"{label}: nothing new ({what})", "dim"))
        if ideals:
            gain = sum(ideal.gain for ideal in ideals)
            new = _count(sum(len(ideal.new) for ideal in ideals), "new nugget")
            line.append(f"; ideal there: gain {gain:.4f}, {new}", "magenta")
        self.console.print()
        self._indented(line)

    def _ideal_only(self) -> None:
        for ideal in self.found.ideal:
            self.console.print()
            self.console.print(_line((f"{ideal.rank:>4}", "bold")))
            self._grid(self._ideal(ideal))
        if more := self.found.n_ideal - len(self.found.ideal):
            self.console.print()
            self._indented(_line((f"{more} more, --depth shows them", "dim")))

    def _nuggets(self) -> None:
        shown = len(self.found.passages)
        later = [one for one in self.found.nuggets if one.rank is not None and one.rank > shown]
        for title, nuggets in ((f"Found below rank {shown}", later), ("Never found", self.found.missed)):
            if not nuggets:
                continue
            self.console.print()
            self.console.print(_line((f"{title} ({len(nuggets)})", "bold")))
            self._grid([(_line((self._short(one.nugget_id), "bold")), _fate(one)) for one in nuggets])

    def _grid(self, rows: Sequence[tuple[Text, Text]]) -> None:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, min_width=6)
        grid.add_column(overflow="fold")
        for row in rows:
            grid.add_row(*row)
        self._indented(grid)

    def _indented(self, what: RenderableType) -> None:
        self.console.print(Padding(what, (0, 0, 0, 6)))

    def _short(self, nugget_id: str) -> str:
        """A nugget's id without the question's, which is known."""
        return shown(nugget_id.removeprefix(f"{self.found.question_id}-"))


def _kind(passage: ExplainedPassage) -> str:
    """What a passage that gains nothing is made of."""
    if passage.redundant:
        return "redundant"
    return "filler" if passage.filler else "unjudged"


def _place(first_id: str, last_id: str) -> Text:
    context_id, _, first = first_id.rpartition("-")
    same = last_id.rpartition("-")[0] == context_id
    last = last_id.rpartition("-")[2] if same else last_id
    return _line((shown(first_id if first_id == last_id else f"{context_id}-{first}:{last}"), "cyan"))


def _fate(nugget: NuggetFate) -> Text:
    """A nugget's text, and where it is."""
    ideal = f"ideal rank {nugget.ideal_rank}" if nugget.ideal_rank else "not in the ideal either"
    if nugget.rank:
        where = f"rank {nugget.rank}"
    else:
        more = f" and {nugget.n_places - 2} more" if nugget.n_places > 2 else ""
        where = f"in {shown(', '.join(nugget.places[:2]))}{more}"
    return _line(shown(nugget.text), (f"  ({where}; {ideal})", "dim"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(*parts: str | tuple[str, str]) -> Text:
    """A text of parts, each plain or with a style."""
    text = Text(overflow="fold")
    for part in parts:
        text.append(*((part,) if isinstance(part, str) else part))
    return text
