"""Write a small made-up Wikipedia and claims about it: ``python -m benchmarks.quality.small_wiki [FOLDER]``.

Pages and claims have FEVER's released shapes. Everything in them is invented: a country, its people, films,
novels, bands and towns, written from the lists below. What makes FEVER's retrieval hard is there on purpose:
names that several pages share (a town, a novel, a film, a band, an album, a page that tells them apart),
pages of one sentence, sentences that begin with "she" or "it", claims in other words than the page's, and
claims that name two pages.

The same bytes come out wherever it runs: of Python's generator only ``random`` is used.

FOLDER gets ``wiki-pages/wiki-001.jsonl`` and ``wiki-002.jsonl``, two empty pages among theirs as the release
has some, and ``claims.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from epicqa.files import write_bytes

FOLDER = Path(__file__).parents[2] / "tests" / "golden" / "fever"

PAGES = 200
EACH = 100
"""Claims of a label."""

SEED = 7

Item = TypeVar("Item")

# Names that towns, novels, films, bands and albums share.
_SHARED = (
    *("Harrowmere", "Silver Tide", "The Glass Orchard", "Northlight", "Ember Lane", "The Ninth Bell"),
    *("Saltmarsh", "Winter Ferry", "The Tin Meridian", "Copperfall", "Quiet Harbour", "Lanternhead"),
    *("Ravelin", "Dust and Clover", "The Paper Regent", "Oldwater"),
)
_FILMS = (
    *("A Map of Sparrows", "The Clockmaker's Debt", "Seven Doors Down", "Nobody's Lighthouse"),
    *("The Velvet Quarry", "Ashes for Ottilie", "Moth Season", "The Last Tram to Vell", "Brass Rain"),
    *("A Season Without Maps", "The Ferryman's Ledger", "Cold Saffron", "Undertow at Midnight"),
)
_TOWNS = (
    *("Brenning", "Vell", "Orvasta Minor", "Tolmouth", "Pellgate", "Quarn", "Isk", "Dunhallow", "Sarrow"),
    *("Maddersfield", "Kestle", "Orrin Bridge", "Thaxby", "Wexcombe", "Lower Quarn", "Upper Quarn"),
)
_HAMLETS = ("Green", "Mill", "Cross", "End", "Hollow", "Lock", "Barrow", "Ford", "Heath", "Quay")
_FIRST = (
    *("Orla", "Tamsin", "Bertil", "Ilse", "Corwin", "Maude", "Piers", "Jorun", "Sabine", "Ewald"),
    *("Linnea", "Osric", "Petra", "Ruben", "Thea", "Anselm", "Dorrit", "Hale", "Ottilie", "Zéline"),
)
_LAST = (
    *(
        "Venn",
        "Quillard",
        "Ashgrove",
        "Morrowick",
        "Tarnholt",
        "Pellamore",
        "Oakenby",
        "Strandoval",
        "Vexley",
    ),
    *("Halloran-Dew", "Brandek", "Crayle", "Lindqvarn", "Fenwarden", "Aubrecht", "Skelling"),
)
_NATIONS = ("Corvish", "Marlander", "Ostrian", "Thessic", "Velmark")
_REGIONS = ("East Corvia", "West Corvia", "the Marland Coast", "Lower Ostria", "the Velmark Isles")
_GENRES = ("crime drama", "comedy", "war film", "fantasy film", "thriller", "musical", "western")
_MUSIC = ("folk", "rock", "jazz", "electronic", "choral", "punk")
_SUBJECTS = ("physics", "law", "botany", "medicine", "history", "architecture", "mathematics")
_AWARDS = ("Golden Heron", "Corvia Medal", "Silver Quill", "Amber Lyre", "Laurel of Ostria")
_LABELS = ("Blue Kettle Records", "Hollow Oak", "Tram Nine Records", "Pelican Sound")
_PETS = ("goats", "bees", "racing pigeons", "three greyhounds", "alpacas")
_PLOTS = (
    "a lighthouse keeper who loses her memory",
    "a surveyor who is sent to a drowned village",
    "two brothers who inherit a bankrupt circus",
    "a midwife who becomes a spy",
    "a bell founder who cannot hear",
    "a baker accused of treason",
)
_BUILDINGS = ("town hall", "grain exchange", "old synagogue", "suspension bridge", "observatory")
_MONTHS = ("January", "March", "April", "June", "August", "October", "November")
_JOBS = ("film director", "actor", "novelist", "singer", "painter", "politician", "cyclist", "chemist")
_NUMBERS = ("two", "three", "four", "five", "six", "nine", "eleven", "fourteen")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Fact:
    """What a line of a page says of it.

    Attributes:
        kind: of what; values of a kind can take each other's place.
        value: what it says.
        said: ways to claim it after the page's name, ``{}`` for the value.
        false: whether another value makes it false.
        key: the same for facts, on whatever page, that prove the same; empty, there is no other.
        role, target: what the value is to the page, as ``The director of``, and its own page, if it has one.
    """

    kind: str
    value: str
    said: tuple[str, ...]
    false: bool = True
    key: str = ""
    role: str = ""
    target: str = ""


@dataclass(slots=True)
class Page:
    """A page: its title and its name in sentences, both as people write them, its lines, what they say."""

    title: str
    name: str
    kind: str
    lines: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    facts: list[tuple[int, Fact]] = field(default_factory=list)

    def add(self, text: str, *facts: Fact, links: Sequence[str] = ()) -> None:
        """A line, what it says, and titles that it links to."""
        self.facts.extend((len(self.lines), fact) for fact in facts)
        self.lines.append((_an(text), tuple(links)))

    def part(self, blank: int) -> None:
        """Blank lines, as between paragraphs."""
        self.lines.extend([("", ())] * blank)


@dataclass(frozen=True, slots=True)
class Person:
    """Who is on other pages, too."""

    title: str
    name: str
    job: str
    she: str
    her: str


class Draw:
    """Draws that come out the same with every version of Python."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, low: int, high: int) -> int:
        """From ``low`` to ``high - 1``."""
        return low + int(self._random.random() * (high - low))

    def one(self, given: Sequence[Item]) -> Item:
        return given[self.number(0, len(given))]

    def shuffled(self, given: Sequence[Item]) -> list[Item]:
        order = sorted((self._random.random(), place) for place in range(len(given)))
        return [given[place] for _, place in order]

    def chance(self, part: float) -> bool:
        return self._random.random() < part


def wiki(draw: Draw) -> list[Page]:
    """All pages, in an order of titles as the release has them."""
    towns = [Page(name, name, "town") for name in _TOWNS]
    films = [Page(name, name, "film") for name in _FILMS]
    novels: list[Page] = []
    bands: list[Page] = []
    albums: list[Page] = []
    others: list[Page] = []
    for place, name in enumerate(_SHARED):
        kinds = (towns, novels, bands)
        kinds[place % 3].append(Page(name, name, ("town", "novel", "band")[place % 3]))
        films.append(Page(f"{name} (film)", name, "film"))
        if place % 3 != 1 and place % 2:
            novels.append(Page(f"{name} (novel)", name, "novel"))
        if place % 3 != 2:
            albums.append(Page(f"{name} (album)", name, "album"))
        if place % 2 == 0:
            others.append(Page(f"{name} (disambiguation)", name, "list"))
    rivers = [Page(f"River {town}", f"the River {town}", "river") for town in _TOWNS[4:10]]
    schools = [Page(f"University of {town}", f"University of {town}", "school") for town in _TOWNS[:7]]
    clubs = [Page(f"{town} Rovers F.C.", f"{town} Rovers", "club") for town in _TOWNS[6:14]]
    made = [*towns, *films, *novels, *bands, *albums, *rivers, *schools, *clubs, *others]
    stubs = [
        Page(f"{town} {end}", f"{town} {end}", "hamlet") for town, end in zip(_TOWNS, _HAMLETS, strict=False)
    ]
    stubs += [Page(f"{town} (film)", town, "short") for town in _TOWNS[4:14]]
    people = _people(draw, PAGES - len(made) - len(stubs))
    write = _Writer(draw, people, towns, rivers, schools, films, bands)
    for page in (*made, *stubs):
        getattr(write, page.kind)(page)
    pages = made + stubs + [write.person(one) for one in people]
    for page in others:
        _tell_apart(page, pages)
    return sorted(pages, key=lambda page: identifier(page.title))


def _people(draw: Draw, count: int) -> list[Person]:
    names = draw.shuffled([f"{first} {last}" for first in _FIRST for last in _LAST])
    people = []
    for place in range(count):
        name, job = names[place], _JOBS[place % len(_JOBS)]
        she = ("She", "her") if draw.chance(0.5) else ("He", "his")
        people.append(Person(name, name, job, *she))
    # One in nine shares the name of another, who has the plain title.
    for place in range(0, count - 1, 9):
        other = people[place + 1]
        people[place + 1] = Person(f"{people[place].name} ({other.job})", people[place].name, *_rest(other))
    return people


def _rest(person: Person) -> tuple[str, str, str]:
    return person.job, person.she, person.her


def _tell_apart(page: Page, pages: Sequence[Page]) -> None:
    page.add(f"{page.name} may refer to:")
    for other in pages:
        if other.name == page.name and other.kind != "list":
            page.add(f"{other.title}, a {other.kind}", links=(other.title,))


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes a page of each kind; the method has the kind's name."""

    draw: Draw
    people: Sequence[Person]
    towns: Sequence[Page]
    rivers: Sequence[Page]
    schools: Sequence[Page]
    films: Sequence[Page]
    bands: Sequence[Page]
    roles: dict[str, list[tuple[str, Page, str]]] = field(default_factory=dict)

    def _who(self, job: str) -> Person:
        return self.draw.one([one for one in self.people if one.job == job])

    def _cast(self, person: Person, role: str, page: Page) -> str:
        """Remembers what a person did, for the page of the person; the key of what both pages say."""
        key = f"{person.title}|{role}|{page.title}"
        self.roles.setdefault(person.title, []).append((role, page, key))
        return key

    def _year(self, kind: str, low: int, high: int, *said: str) -> Fact:
        return Fact(kind, str(self.draw.number(low, high)), said)

    def film(self, page: Page) -> None:
        draw, director, actor, writer = self.draw, *map(self._who, ("film director", "actor", "novelist"))
        nation, genre = draw.one(_NATIONS), draw.one(_GENRES)
        year = self._year("film year", 1931, 2016, "came out in {}", "was first shown in cinemas in {}")
        page.add(
            f"{page.name} is a {year.value} {nation} {genre} directed by {director.name} and starring "
            f"{actor.name}.",
            *(year, Fact("nation", nation, ("is {}", "is a film that {} people made"))),
            Fact(
                *("director", director.name, ("was directed by {}", "had {} behind the camera")),
                key=self._cast(director, "directed", page),
                role="The director of",
                target=director.title,
            ),
            Fact(
                *("actor", actor.name, ("stars {}", "features a performance by {}"), False),
                key=self._cast(actor, "starred in", page),
                role="The star of",
                target=actor.title,
            ),
            links=(director.title, actor.title),
        )
        plot, town = draw.one(_PLOTS), draw.one(self.towns)
        page.add(f"It tells the story of {plot}.", Fact("plot", plot, ("is about {}",)))
        page.add(
            f"The screenplay is by {writer.name}.",
            Fact(
                *("script", writer.name, ("was written by {}",)),
                role="The writer of",
                target=writer.title,
            ),
            links=(writer.title,),
        )
        page.part(draw.number(0, 3))
        place = Fact(
            *("location", town.name, ("was filmed in {}", "was made on location in {}")),
            role="The place where they filmed",
            target=town.title,
        )
        page.add(
            f"Shooting took place in {town.name} over {draw.one(_NUMBERS)} weeks.", place, links=(town.title,)
        )
        if draw.chance(0.6):
            page.add(
                "It was shot without colour.", Fact("colour", "black and white", ("was made in {}",), False)
            )
        takings = Fact("takings", f"{draw.number(2, 90)} million crowns", ("took {} at the box office",))
        page.add(
            f"It earned {takings.value}, {draw.one(('more', 'less'))} than the studio hoped for.", takings
        )
        if draw.chance(0.5):
            award = draw.one(_AWARDS)
            page.add(f"In the year after, it received the {award}.", _award(award))

    def novel(self, page: Page) -> None:
        draw, writer, plot = self.draw, self._who("novelist"), self.draw.one(_PLOTS)
        year = self._year("novel year", 1880, 2010, "was published in {}", "appeared in print in {}")
        page.add(
            f"{page.name} is a {year.value} novel by {writer.name}.",
            year,
            Fact(
                *("author", writer.name, ("is a book by {}", "came from the pen of {}")),
                key=self._cast(writer, "wrote", page),
                role="The author of",
                target=writer.title,
            ),
            links=(writer.title,),
        )
        page.add(f"Its hero is {plot}.", Fact("plot", plot, ("follows {}",)))
        page.part(draw.number(0, 2))
        count = draw.one(_NUMBERS)
        page.add(
            f"Translations into {count} languages exist.",
            Fact("languages", count, ("can be read in {} other languages",)),
        )

    def band(self, page: Page) -> None:
        draw, singer, town = self.draw, self._who("singer"), self.draw.one(self.towns)
        year = self._year("band year", 1958, 2012, "got together in {}", "has existed since {}")
        music = draw.one(_MUSIC)
        page.add(
            f"{page.name} are a {music} band formed in {town.name} in {year.value}.",
            *(year, Fact("music", music, ("play {} music",))),
            Fact(
                *("home", town.name, ("come from {}",)),
                role="The home town of",
                target=town.title,
            ),
            links=(town.title,),
        )
        page.add(
            f"Since then {singer.name} has been their voice.",
            Fact(
                *("singer", singer.name, ("are fronted by {}", "have {} as their singer")),
                key=self._cast(singer, "sings with", page),
                role="The singer of",
                target=singer.title,
            ),
            links=(singer.title,),
        )
        page.part(draw.number(0, 2))
        count = draw.one(_NUMBERS)
        page.add(
            f"They broke up {count} times and always returned.",
            Fact("splits", count, ("have separated {} times",)),
        )

    def album(self, page: Page) -> None:
        draw, band, town = self.draw, self.draw.one(self.bands), self.draw.one(self.towns)
        year, order = draw.number(1960, 2016), draw.one(_ORDINALS)
        label = draw.one(_LABELS)
        page.add(
            f"{page.name} is the {order} album by {band.name}, released in {year} on {label}.",
            Fact("album year", str(year), ("went on sale in {}", "was released in {}")),
            Fact("label", label, ("was put out by {}",)),
            Fact("band", band.name, ("is by {}",), role="The band that made", target=band.title),
            links=(band.title,),
        )
        page.add(
            f"They recorded it in a barn near {town.name}.",
            Fact("studio", town.name, ("was taped close to {}",)),
            links=(town.title,),
        )
        peak = str(draw.number(2, 40))
        page.add(
            f"On the charts it climbed to number {peak}.", Fact("peak", peak, ("was a number {} record",))
        )

    def town(self, page: Page) -> None:
        draw, region, river = self.draw, self.draw.one(_REGIONS), self.draw.one(self.rivers)
        page.add(
            f"{page.name} is a town in {region}.", Fact("region", region, ("lies in {}", "belongs to {}"))
        )
        count = f"{draw.number(3, 90)},{draw.number(100, 999)}"
        page.add(
            f"At the last count {count} people lived there.",
            Fact("population", count, ("has a population of {}", "has {} inhabitants")),
        )
        page.add(
            f"It stands on the banks of {river.name}.",
            Fact(
                *("on river", river.name, ("is beside {}",)),
                role="The river of",
                target=river.title,
            ),
            links=(river.title,),
        )
        page.part(draw.number(0, 3))
        building, year = draw.one(_BUILDINGS), draw.number(1702, 1930)
        page.add(
            f"Its {building} dates from {year}.",
            Fact(f"age of {building}", str(year), (f"has had a {building} since {{}}",)),
        )
        if draw.chance(0.5):
            page.add(
                "Trains have not stopped there for decades.",
                Fact("railway", "a working railway station", ("no longer has {}",), False),
            )

    def hamlet(self, page: Page) -> None:
        """A page of one sentence, whose words are those of longer pages."""
        town, river = page.name.rpartition(" ")[0], self.draw.one(self.rivers[:3])
        school = self.draw.one(self.schools)
        page.add(
            f"{page.name} is a hamlet near {town}, on {river.name}, and belongs to the {school.name}.",
            Fact("hamlet river", river.name, ("is a hamlet on {}",)),
            Fact("hamlet owner", f"the {school.name}", ("is a hamlet that belongs to {}",)),
            links=(town, river.title, school.title),
        )

    def short(self, page: Page) -> None:
        """A film's page of one sentence."""
        director = self._who("film director")
        year = self._year("short year", 1902, 1929, "is a silent film of {}")
        page.add(
            f"{page.name} is a silent film of {year.value} by {director.name}.",
            year,
            Fact("short director", director.name, ("is a silent film by {}", "was {}'s silent film")),
            links=(director.title,),
        )

    def river(self, page: Page) -> None:
        draw = self.draw
        length = str(draw.number(19, 480))
        page.add(
            f"{_name(page)} is a river in {draw.one(_REGIONS)}, {length} kilometres long.",
            Fact("length", length, ("runs for {} kilometres",)),
        )
        fish = draw.one(("trout", "eels", "pike", "salmon", "crayfish"))
        page.add(f"Anglers know it for its {fish}.", Fact("fish", fish, ("is famous for {}",)))

    def school(self, page: Page) -> None:
        draw = self.draw
        year = self._year("school year", 1390, 1965, "was founded in {}", "opened its doors in {}")
        page.add(f"The {page.name} is a university that dates back to {year.value}.", year)
        count = f"{draw.number(2, 40)},{draw.number(100, 999)}"
        page.add(f"It teaches {count} students.", Fact("students", count, ("has {} students",)))
        page.part(draw.number(0, 2))
        beast = draw.one(("stork", "otter", "lynx", "bittern", "hedgehog"))
        page.add(f"A {beast} is on its coat of arms.", Fact("arms", beast, ("has a {} as its emblem",)))

    def club(self, page: Page) -> None:
        draw, town = self.draw, page.title.removesuffix(" Rovers F.C.")
        year = self._year("club year", 1871, 1950, "was founded in {}", "has played since {}")
        page.add(
            f"{page.title} is an association football club from {town}, established in {year.value}.",
            year,
            links=(town,),
        )
        colours = draw.one(("green and white", "claret", "yellow", "black and amber", "sky blue"))
        page.add(f"The team wear {colours}.", Fact("colours", colours, ("plays in {} shirts",)))
        count = draw.one(_NUMBERS)
        page.add(
            f"They won the league {count} times.", Fact("titles", count, ("has been champion {} times",))
        )

    def list(self, page: Page) -> None:
        """Written when all others are there."""

    def person(self, one: Person) -> Page:
        draw, page = self.draw, Page(one.title, one.name, "person")
        nation, town, school = draw.one(_NATIONS), draw.one(self.towns), draw.one(self.schools)
        year = self._year("birth", 1871, 1996, "was born in {}", "came into the world in {}")
        day = f"{draw.number(1, 29)} {draw.one(_MONTHS)}"
        page.add(
            f"{one.name} (born {day} {year.value}) is a {nation} {one.job}.",
            *(year, Fact("job", one.job, ("works as a {}", "is a {}"))),
            Fact("citizen", nation, ("is {}", "has a {} passport")),
        )
        subject = draw.one(_SUBJECTS)
        page.add(
            f"{one.she} grew up in {town.name} and studied {subject} at the {school.name}.",
            Fact("childhood", town.name, ("was raised in {}", "spent a childhood in {}")),
            Fact("subject", subject, ("has a degree in {}",)),
            Fact(
                *("school", f"the {school.name}", ("was a student at {}", "is an alumnus of {}")),
                role="The university of",
                target=school.title,
            ),
            links=(town.title, school.title),
        )
        page.part(draw.number(0, 3))
        for role, work, key in self.roles.get(one.title, ())[:4]:
            said = {
                "directed": ("made {}", "is the director of {}"),
                "starred in": ("appeared in {}", "had a part in {}"),
                "wrote": ("is the author of {}", "wrote {}"),
                "sings with": ("is a member of {}", "sings for {}"),
            }[role]
            page.add(
                f"{one.she} {role} {work.name}.",
                Fact(f"work: {role}", work.name, said, False, key=key),
                links=(work.title,),
            )
        if draw.chance(0.5):
            award = draw.one(_AWARDS)
            page.add(f"In {draw.number(1950, 2017)} {one.she.lower()} received the {award}.", _award(award))
        page.part(draw.number(0, 2))
        pets, home = draw.one(_PETS), draw.one(self.towns)
        page.add(f"{one.she} keeps {pets}.", Fact("pets", pets, ("owns {}",)))
        page.add(
            f"Home, for {one.her} family, is {home.name}.",
            Fact("residence", home.name, ("lives in {}", "has a house in {}")),
            links=(home.title,),
        )
        return page


def _award(award: str) -> Fact:
    return Fact("award", award, ("won the {}", "was honoured with the {}"), False)


_UNKNOWN = {
    "person": ("has two sisters", "speaks fluent Thessic", "is afraid of bees", "never learned to swim"),
    "film": ("was banned in Ostria", "was restored in 2009", "has a sequel", "inspired a board game"),
    "novel": ("was written in prison", "is taught in schools", "was rejected by three publishers"),
    "band": ("toured Marland twice", "own a recording studio", "once played for a queen"),
    "album": ("has a cover by a famous painter", "was mixed in one night", "went out of print"),
    "town": ("is twinned with a Thessic city", "has a Saturday market", "was flooded in 1953"),
    "river": ("freezes every winter", "was once a border", "has a ferry"),
    "school": ("owns a vineyard", "has a rowing team", "once burned down"),
    "hamlet": ("has no paved road", "once had a mint"),
    "short": ("is lost", "was hand-coloured"),
    "club": ("nearly went bankrupt", "has a women's team", "was relegated in 1988"),
}


_Found = tuple[Page, int, Fact]


def claims(draw: Draw, pages: Sequence[Page]) -> list[dict[str, Any]]:
    """A hundred claims of each label, shuffled."""
    known = {page.title: page for page in pages}
    values: dict[str, list[str]] = {}
    proofs: dict[str, list[list[tuple[str, int]]]] = {}
    facts: list[_Found] = []
    for page in pages:
        for line, fact in page.facts:
            facts.append((page, line, fact))
            values.setdefault(fact.kind, []).append(fact.value)
            if fact.key:
                proofs.setdefault(fact.key, []).append([(page.title, line)])
    stubs = [found for found in facts if found[0].kind in ("hamlet", "short")]
    made: dict[str, tuple[str, list[list[tuple[str, int]]]]] = {}

    def told(fact: Fact, true: bool) -> str | None:
        """The claim of a fact, after the name; None where no other value is false."""
        value = fact.value
        if not true:
            others = sorted({value for value in values[fact.kind] if value != fact.value})
            if not (fact.false and others):
                return None
            value = draw.one(others)
        return _an(draw.one(fact.said).format(value))

    def alike(one: _Found, other: _Found) -> bool:
        return one[0].name != other[0].name and (one[2].kind, one[2].value) == (other[2].kind, other[2].value)

    def proven(true: bool) -> tuple[str, list[list[tuple[str, int]]]] | None:
        # Pages of one sentence would hardly be drawn.
        page, line, fact = draw.one(stubs if draw.chance(0.15) else facts)
        form = draw.number(0, 5)
        if form == 0 and fact.target:
            # Two pages: who or what the first names is told of on the second.
            other = known[fact.target]
            far, second = draw.one(other.facts)
            said = told(second, true)
            if not said or (fact.key and second.key == fact.key):
                return None
            return f"{fact.role} {page.name} {said}.", [[(page.title, line), (other.title, far)]]
        if form == 1:
            # Two sentences of one page.
            far, second = draw.one(page.facts)
            first, said = told(fact, True), told(second, true)
            if not said or far == line or first == said:
                return None
            return f"{_name(page)} {first} and {said}.", [[(page.title, line), (page.title, far)]]
        if form == 2 and (same := [one for one in facts if alike(one, (page, line, fact))]):
            # Two pages, both of them named.
            other, far, _ = draw.one(same)
            said = told(fact, true)
            evidence = [[(page.title, line), (other.title, far)]]
            return (f"{_name(page)}, like {other.name}, {said}.", evidence) if said else None
        if not (said := told(fact, true)):
            return None
        # What is false of one page need not be false of the other that proves the true one.
        evidence = (proofs.get(fact.key) if true else None) or [[(page.title, line)]]
        return f"{_name(page)} {said}.", evidence

    for label in ("SUPPORTS", "REFUTES"):
        count = len(made) + EACH
        while len(made) < count:
            one = proven(label == "SUPPORTS")
            if one and one[0] not in made:
                made[one[0]] = (label, one[1])
    unknown = [page for page in pages if page.kind in _UNKNOWN]
    while len(made) < 3 * EACH:
        page = draw.one(unknown)
        made.setdefault(f"{_name(page)} {draw.one(_UNKNOWN[page.kind])}.", ("NOT ENOUGH INFO", []))
    return [
        {
            "id": 1000 + number,
            "verifiable": "VERIFIABLE" if evidence else "NOT VERIFIABLE",
            "label": label,
            "claim": text,
            "evidence": [
                [[2000 + number, 3000 + number, identifier(page), line] for page, line in sentences]
                for sentences in evidence
            ]
            or [[[2000 + number, None, None, None]]],
        }
        for number, (text, (label, evidence)) in enumerate(draw.shuffled(list(made.items())))
    ]


def _an(text: str) -> str:
    return re.sub(r"\ba (?=[AEIOaeio])", "an ", text)


def _name(page: Page) -> str:
    return page.name[0].upper() + page.name[1:]


def identifier(title: str) -> str:
    """A title as FEVER spells it."""
    for character, escape in (("(", "-LRB-"), (")", "-RRB-"), (":", "-COLON-"), (" ", "_")):
        title = title.replace(character, escape)
    return title


def record(page: Page) -> dict[str, str]:
    """A page as the release has it; its title is in Unicode's form NFD, as some there are."""
    lines = []
    for number, (text, links) in enumerate(page.lines):
        anchors = [part for title in links for part in (title.partition(" (")[0], title)]
        lines.append("\t".join([str(number), tokenized(text), *anchors]))
    lines.append(f"{len(page.lines)}\t")
    if page.kind == "club":
        # The release has anchors with line feeds.
        lines[0] = lines[0].rpartition("\t")[0] + "\t\n" + lines[0].rpartition("\t")[2]
    return {
        "id": unicodedata.normalize("NFD", identifier(page.title)),
        "text": " ".join(tokenized(text) for text, _ in page.lines) + " ",
        "lines": "\n".join(lines),
    }


def tokenized(text: str) -> str:
    """A sentence with its marks apart and its brackets spelled out."""
    text = re.sub(r"(?<!\d),|,(?!\d)|[():]|\.$|'s\b", r" \g<0> ", text)
    return " ".join(text.split()).replace("(", "-LRB-").replace(")", "-RRB-")


def files() -> dict[str, bytes]:
    """What is written: paths below the folder, and bytes."""
    draw = Draw(SEED)
    pages = wiki(draw)
    empty = {"id": "", "text": "", "lines": ""}, {"id": "Tolmouth_Bypass", "text": "", "lines": ""}
    records: list[dict[str, Any]] = [empty[0], *map(record, pages[:100])]
    return {
        "wiki-pages/wiki-001.jsonl": _lines(records),
        "wiki-pages/wiki-002.jsonl": _lines([*map(record, pages[100:]), empty[1]]),
        "claims.jsonl": _lines(claims(draw, pages)),
    }


def _lines(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in records).encode()


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args(arguments).folder
    for path, content in files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / path, content)


if __name__ == "__main__":
    main()
