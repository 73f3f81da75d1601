"""Sentence splitting, for texts that come without spans.

The splitter is sentencex (Wikimedia, MIT): of those compared the only one that is both maintained and fast,
and with the rules below the most accurate, at 70,000 to 100,000 sentences a second and core. The figures:
``python -m benchmarks.quality.sentences --candidates``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

_WINDOW = 40
"""Characters that a rule sees on either side."""

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_INK = re.compile(r"[^ \n]")
_WORD = re.compile(r"[A-Za-z0-9]")

_SPACES = {code: " " for code in range(128) if chr(code).isspace() and chr(code) != "\n"}

# After a space the library takes "• C", "(9)", "24)" for list items, and "<" for a tag, and then passes over
# all full stops up to the next; of many apostrophes each looks for its pair. It is shown none of these.
_HIDDEN = {ord(" "): "\f", ord("'"): "~", ord("<"): "~", ord(">"): "~"}

# For each "!" and "?" it reads the whole word before: no such thing is a sentence.
_ENDLESS_WORD = re.compile(r"(?<![^ \n])[^ \n]{200,}")
_EXCLAMATIONS = {ord("!"): "~", ord("?"): "~"}

_BULLETS = "•‣▪◦●■◆➢►"

_CATEGORIES = {
    **dict.fromkeys(("Zs", "Cf", "Cc"), " "),
    **dict.fromkeys(("Zl", "Zp"), "\n"),
    **dict.fromkeys(("Pi", "Pf"), '"'),
    **dict.fromkeys(("Ll", "Mn", "Mc", "Me"), "q"),
    **dict.fromkeys(("Lu", "Lt", "Lo", "Lm"), "Q"),
    **dict.fromkeys(("Nd", "Nl", "No"), "0"),
    "Ps": "(",
    "Pe": ")",
    "Pd": "-",
}
_CHARACTERS = {
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys(_BULLETS, "*"),
    **dict.fromkeys("。｡．।॥۔…", "."),
    **dict.fromkeys("？؟", "?"),
    "！": "!",
    "\xad": "-",
    "\x85": "\n",
}

# Stops of scripts that have no abbreviations, with what closes after them.
_SURE_STOP = re.compile(r"[。｡！？।॥۔؟]+[\s」』）”’)\"']*")
_BLANK_LINE = re.compile(r"\n *\n")
_ITEM = re.compile(r"\n *(?=(?:[-*+]|\(?(?:\d{1,2}|[a-z]|[ivx]{2,4})[.)]) +[^ \n])")
_SMILEY = re.compile("[\U0001f600-\U0001f64f] +(?=[A-Z])")
_INLINE_ITEM = re.compile(rf"[{_BULLETS}](?= +[A-Z][a-z])")
_MARKER = re.compile(r"\(?(?:\d{1,2}|[A-Za-z]|[ivx]{2,4})[.)]")

_CAPITAL = re.compile(r"[\"']?(?:[A-Z][a-z']|[AI] )")
_CLOSERS = r"""["')\]]{1,9}|\d{1,3}(?:[-,]\d{1,3}){0,9}|(?: ?\[\d[\d, -]{0,30}\]){1,9}"""
_STOP = re.compile(rf"""([.!?](?:{_CLOSERS})?)[ \n]+(?=["'(]?[A-Z])""")
_NUMBERS = re.compile(r"\[\d[\d, -]*\](?! ?[a-z])")
_CITED = re.compile(r"\b(?:al|[Rr]efs?|e\.g|i\.e)\. ?(?:\[[^\[\]]*\] ?)+$")
_NUMBER_AHEAD = re.compile(r"\(?[A-Z]?\d|\(?[A-Z]\b|[\[(]|(?:Fig|Tab|Eq|Note)|nos?\.")
_COMPARED = re.compile(r"[=<>~] ?\d*\.$")
_FORMULA = re.compile(r"(?:^|[ !])!$")
_GLUED_WORD = re.compile(r"[\"'(]?[A-Z][a-z']*(?:[ \n-]|$|[A-Z]*-?\d|[,;:][ \n])")
_DOMAIN = re.compile(r"(?:Net|Com|Org|Gov|Edu|Int)\b")
_CODE = re.compile(r"[A-Za-z]\d+$|_|\.[^.]*[A-Za-z]")
_WHOLE_WORD = re.compile(r"(?:[a-z]{2}|\d|[A-Z]{2}|[)\]])$")
_AMOUNT = re.compile(r"\d\)? ?$")
_DEGREES = re.compile(r"\d ?[*o~] ?[CF]$")
_APART = re.compile(r"[^ .] $")
_LABEL = re.compile(r"(?:^| )([a-z]{4,}) [A-Z]$")

_BEFORE_NUMBERS = re.compile(r"cat|ch|chap|eqs?|figs?|nos?|refs?|sect|suppl?|tabs?|vols?")
_BEFORE_WORDS = re.compile(r"approx|avg|cv|excl|incl|resp|spp?|ssp|subsp|var")
_NEVER_LAST = re.compile(r"al|cf|co|dr|eds?|eqs?|figs?|inc|jr|ltd|nos?|refs?|sr|vol|vs")
_UNITS = re.compile(r"Pa|U|d|g|h|hr|mM?|min|mm|mo|s|sec")
_ALSO_WORDS = re.compile(r"btw|etc|ill|no")
_TITLES = re.compile(r"CO|DR|JR|MD|MRS?|MS|NO|PHD|SR|ST|VS")


def split(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a text, in code points, end exclusive.

    Spans are trimmed of white space, none is blank, and every other character lies in one. Any string will
    do, one with null characters or halves of surrogate pairs, too.
    """
    plain = _plain(text)
    sure = _starts(plain, _sure_ends(text, plain))
    found = _starts(plain, _library_ends(plain))
    added = set(_missed(plain, found))
    starts: list[int] = []
    begin = fresh = len(text) - len(text.lstrip())
    wordy = False
    for place in sorted(sure | found | added):
        before = _before(plain, begin, place)
        if place not in sure and before:
            bare = before.rstrip()
            after = plain[place : place + _WINDOW]
            if place not in added and any(rule(bare, before[len(bare) :], after) for rule in _FALSE):
                continue
            if place - begin <= _WINDOW and _MARKER.fullmatch(bare):
                continue
        wordy = wordy or bool(_WORD.search(plain, fresh, place))
        fresh = place
        if wordy:
            starts.append(begin)
        if starts:
            begin, wordy = place, False
    if wordy or _WORD.search(plain, fresh) or not starts:
        starts.append(begin)
    return [
        (start, start + len(text[start:end].rstrip()))
        for start, end in pairwise([*starts, len(text)])
        if start < len(text)
    ]


def _plain(text: str) -> str:
    """The text in ASCII, a character each: letters, digits, marks and spaces stand for others of their kind.

    The library cuts strings in the middle of wide characters, and rules are shorter.
    """
    if not text.isascii():
        text = _NOT_ASCII.sub(lambda run: "".join(map(_stand_in, run[0])), text)
    return text.translate(_SPACES)


def _stand_in(character: str) -> str:
    return _CHARACTERS.get(character) or _CATEGORIES.get(unicodedata.category(character), "~")


def _sure_ends(text: str, plain: str) -> list[int]:
    """Ends of sentences whatever stands around: blank lines, items of lists, stops such as 。, smileys."""
    found: list[int] = []
    if "\n" in plain:
        found += (match.end() for match in _BLANK_LINE.finditer(plain))
        found += (match.end() for match in _ITEM.finditer(plain))
    if not text.isascii():
        found += (match.end() for match in _SURE_STOP.finditer(text))
        found += (match.start() for match in _INLINE_ITEM.finditer(text))
        found += (match.end() for match in _SMILEY.finditer(text))
    return sorted(found)


def _library_ends(plain: str) -> Iterator[int]:
    import sentencex

    if "!" in plain or "?" in plain:
        plain = _ENDLESS_WORD.sub(lambda word: word[0].translate(_EXCLAMATIONS), plain)
    end = 0
    for piece in sentencex.segment("en", plain.translate(_HIDDEN)):
        end += len(piece)
        yield end


def _missed(plain: str, found: set[int]) -> Iterator[int]:
    """Where the next sentence starts after stops that the library passed over."""
    for stop in _STOP.finditer(plain):
        place = stop.end()
        if place not in found:
            before, after = _before(plain, 0, stop.start()), plain[place : place + _WINDOW]
            if any(rule(before, stop[1], after) for rule in _MISSED):
                yield place


def _starts(plain: str, ends: Iterable[int]) -> set[int]:
    """Where the next sentence starts after each of these ends, ascending."""
    found: set[int] = set()
    last = -1
    for end in ends:
        if end > last:
            ink = _INK.search(plain, end)
            if ink is None:
                break
            last = ink.start()
            found.add(last)
    return found


def _before(plain: str, begin: int, end: int) -> str:
    return plain[max(begin, end - _WINDOW) : end].replace("\n", " ")


def _word(before: str) -> str:
    """The last word, without what opens before it."""
    return before.rpartition(" ")[2].lstrip("([\"'")


# A rule sees what stands before a place, between and after it, each at most a window long.
_Rule = Callable[[str, str, str], bool]


def _closing(before: str, gap: str, after: str) -> bool:
    """Brackets that close, and stops, belong to what is before them."""
    return after[0] in ")]},;:.%!?"


def _citation(before: str, gap: str, after: str) -> bool:
    """As in "It was shown. | [12] Others" and "Li et al. [5] | found"."""
    if _NUMBERS.match(after):
        return True
    return before.endswith("]") and (after[0].islower() or bool(_CITED.search(before)))


def _name(before: str, gap: str, after: str) -> bool:
    """No white space: an address, a file, a gene; yet "any questions.Personal Protective Equipment"."""
    if gap or before[-1:] not in ".!?\"'":
        return False
    word = _word(before)
    stem = word.rstrip(".?\"'")
    return (
        not _GLUED_WORD.match(after)
        or (not stem and len(word) > 1)
        or stem[-1:].isupper()
        or (len(stem) == 1 and stem.isalpha())
        or bool(_CODE.search(stem))
        or any(mark in stem for mark in ("www.", "://", "@"))
        or bool(_DOMAIN.match(after))
    )


def _abbreviation(before: str, gap: str, after: str) -> bool:
    """Those that the library lacks: "Figs. 3", "approx. half", "Perkinsus spp. have"."""
    if not before.endswith("."):
        return False
    stem = _word(before)[:-1].lower()
    if _BEFORE_NUMBERS.fullmatch(stem):
        return bool(_NUMBER_AHEAD.match(after))
    return bool(_BEFORE_WORDS.fullmatch(stem)) and (after[0].islower() or after[0].isdigit())


def _decimal(before: str, gap: str, after: str) -> bool:
    """As in "P = 0. | 05"."""
    return after[0].isdigit() and bool(_COMPARED.search(before))


def _formula(before: str, gap: str, after: str) -> bool:
    """Signs that a parser of PDF took for exclamation marks."""
    return after[0].islower() and bool(_FORMULA.search(before))


_FALSE: tuple[_Rule, ...] = (_closing, _citation, _name, _abbreviation, _decimal, _formula)
"""Why a boundary of the library's is none."""


def _closed(before: str, stop: str, after: str) -> bool:
    """As in "(It was so.) | Then" and "It was so. [1,2] | Then"."""
    return stop[1:].lstrip()[:1] in ("'", '"', ")", "]", "[") and _whole(before)


def _footnote(before: str, stop: str, after: str) -> bool:
    """As in "the disease.4 | However"."""
    return (
        stop[0] == "."
        and stop[1:2].isdigit()
        and not before[-1:].isdigit()
        and _whole(before)
        and bool(_CAPITAL.match(after))
    )


def _unit(before: str, stop: str, after: str) -> bool:
    """As in "for 10 min. | Cells", "at 0.5 m/s. | The" and "at 37 • C. | The"."""
    if stop != ".":
        return False
    word = _word(before)
    amount = before[: len(before) - len(word)]
    return bool(
        (_UNITS.fullmatch(word.rpartition("/")[2]) and _AMOUNT.search(amount)) or _DEGREES.search(before)
    )


def _also_word(before: str, stop: str, after: str) -> bool:
    """Abbreviations that end sentences or are words, too, as in "when ill. | Others"."""
    return stop == "." and bool(_ALSO_WORDS.fullmatch(_word(before))) and bool(_CAPITAL.match(after))


def _acronym(before: str, stop: str, after: str) -> bool:
    """The library takes some for titles, as in "at RT. | Cells"."""
    word = _word(before)
    return (
        stop == "."
        and len(word) > 1
        and word.isalpha()
        and word.isupper()
        and not _TITLES.fullmatch(word)
        and bool(_CAPITAL.match(after))
    )


def _variable(before: str, stop: str, after: str) -> bool:
    """As in "at time t. | The"."""
    word = _word(before)
    return (
        stop == "."
        and len(word) == 1
        and word.islower()
        and word not in "bpv"
        and before[-2:-1] == " "
        and bool(_CAPITAL.match(after))
    )


def _label(before: str, stop: str, after: str) -> bool:
    """As in "vitamin D. | Others", not in "a gift from D. Miller"."""
    named = _LABEL.search(before)
    return stop == "." and bool(_CAPITAL.match(after)) and bool(named and named[1] not in ("from", "with"))


def _apart(before: str, stop: str, after: str) -> bool:
    """A stop after a space, as parsers of PDF write it, ends no abbreviation: "of c k . | The"."""
    return stop == "." and bool(_APART.search(before)) and bool(_CAPITAL.match(after))


def _whole(before: str) -> bool:
    """Whether the last word looks like one that ends a sentence."""
    return bool(_WHOLE_WORD.search(before)) and not _NEVER_LAST.fullmatch(_word(before).lower())


_MISSED: tuple[_Rule, ...] = (_closed, _footnote, _unit, _also_word, _acronym, _variable, _label, _apart)
"""Why a stop that the library passes over ends a sentence."""
