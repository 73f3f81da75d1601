"""What each measure is: formula, source, range, tie rule."""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epicqa.errors import EpicqaError
from epicqa.measures.ndns import DEFINITIONS, Variant
from epicqa.measures.pools import JUDGED

if TYPE_CHECKING:
    from ir_measures import Measure

_SOURCE = "EPIC-QA at TAC 2020, task guidelines, Evaluation"
_SCRIPT = "the script that the track released"
_TIES = {
    "published": "passages by score as a number, descending, then rank, then line",
    "tac2020": "passages by the score's text, descending, then line (9.5 comes before 10.2)",
}
_SEEN = {
    False: "nuggets of the passage that no passage above it states",
    True: "all nuggets of the passage",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A measure as people read of it; ``about`` is one line."""

    name: str
    about: str
    formula: str
    source: str
    range: str
    ties: str

    def text(self) -> str:
        """Name and about, then a paragraph a field."""
        fields = (
            ("Formula", self.formula),
            ("Source", self.source),
            ("Range", self.range),
            ("Ties", self.ties),
        )
        lines = [f"{self.name}: {self.about}"]
        for label, value in fields:
            lines.append(
                textwrap.fill(f"{label}: {value}", 100, initial_indent="  ", subsequent_indent="    ")
            )
        return "\n".join(lines) + "\n"


def catalog() -> dict[str, list[Entry]]:
    """epicqa's own measures: name -> what it is, once for each definition that has it."""
    entries: dict[str, list[Entry]] = {}
    for definition, variants in DEFINITIONS.items():
        for variant in variants:
            entries.setdefault(variant.name, []).append(_ndns_entry(definition, variant))
    entries[JUDGED] = [
        Entry(
            JUDGED,
            "which part of a question's first 20 passages somebody read",
            "passages among the first 20 whose context is in the question's pool / these 20, or fewer",
            "the TREC-COVID leaderboards' judged@k, for passages",
            "0 to 1; 0 without passages",
            "as the definition of NDNS in use",
        )
    ]
    return entries


def listed() -> str:
    """All measures, a line each."""
    lines = ["Of the definitions (-m exact; --definition published or tac2020) and of --pools:"]
    for entries in catalog().values():
        lines += [f"  {entry.name:<40}{entry.about}" for entry in entries]
    nuggets: list[str] = []
    documents: list[str] = []
    for name, measure in _registered().items():
        from epicqa.measures.nuggets import is_nugget_measure

        about = _said(measure, "SHORT_DESC") or _said(measure, "PRETTY_NAME")
        (nuggets if is_nugget_measure(name) else documents).append(f"  {name:<16}{about}")
    lines += ["", "Of nuggets, over sentences or passages (-m alpha_nDCG@20):", *nuggets]
    lines += ["", "Of documents, with --qrels (-m nDCG@10), computed by ir-measures:", *documents]
    return "".join(line.rstrip() + "\n" for line in lines)


def described(name: str) -> str:
    """A measure's name, formula, source, range and tie rule.

    Raises:
        EpicqaError: no measure has this name.
    """
    if entries := catalog().get(name):
        return "\n".join(entry.text() for entry in entries)
    from ir_measures.measures import registry

    from epicqa.measures.documents import parse_measures

    written = name.partition("@")[0].partition("(")[0].strip()
    measure = registry.get(written)
    if measure is None:
        # Says which name is like it.
        parse_measures([name])
        raise EpicqaError(f"unknown measure {name!r}, epicqa measures lists them")
    base = str(measure.NAME)
    parameters = ", ".join(f"{key}: {info.desc}" for key, info in measure.SUPPORTED_PARAMS.items())
    about = inspect.cleandoc(type(measure).__doc__ or "")
    # Their references are marks that only ir-measures' own site resolves.
    about = "\n".join(line for line in about.splitlines() if not line.startswith(".. ")).rstrip()
    head = f"{base}: {_said(measure, 'PRETTY_NAME')}\n{textwrap.indent(about, '  ')}\n"
    taken = textwrap.fill(
        f"Parameters: {parameters or 'none'}", 100, initial_indent="  ", subsequent_indent="    "
    )
    return f"{head}{taken}\n{_where(base)}"


def _said(measure: Measure, what: str) -> str:
    return str(getattr(measure, what, ""))


def _where(base: str) -> str:
    from epicqa.measures import documents, nuggets

    if base in ("NDNS", "NuggetRecall"):
        return ""
    module = nuggets if nuggets.is_nugget_measure(base) else documents
    return "\n" + textwrap.indent(inspect.cleandoc(module.__doc__ or ""), "  ") + "\n"


def _registered() -> dict[str, Measure]:
    """ir-measures' measures and ours, by name, without its aliases."""
    from ir_measures.measures import registry

    from epicqa.measures import irm  # noqa: F401

    return {name: measure for name, measure in registry.items() if name == measure.NAME}


def _ndns_entry(definition: str, variant: Variant) -> Entry:
    width = "greedy: spans by gain" if variant.seen_count else "a beam search of width 10, or --ideal best"
    return Entry(
        f"{variant.name} ({definition}, {variant.label})",
        f"{'worth' if variant.seen_count else 'novelty'} of passages; n_s: {variant.help}",
        "DNS / DNS of the ideal ranking; DNS = sum over ranks r of NS / log2(r + 1); "
        f"NS = n_a (n_a + 1) / (n_a + n_s), 0 where n_a = 0; n_a: {_SEEN[variant.seen_count]}; "
        f"n_s: its size in sentences, {variant.help}. The first 1000 passages count. The ideal is {width}.",
        _SOURCE if definition == "published" else _SCRIPT,
        "from 0; 1 is the ideal's, which comes from a search over a context's judged part and can be passed",
        _TIES[definition],
    )
