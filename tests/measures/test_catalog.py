import re

import pytest

from epicqa.errors import EpicqaError
from epicqa.measures.catalog import catalog, described, listed
from epicqa.measures.documents import parse_measures
from epicqa.measures.ndns import DEFINITIONS
from epicqa.measures.nuggets import DIVERSITY, is_nugget_measure

OWN = ["exact", "partial", "relaxed", "ndcg-exact", "ndcg", "judged@20"]
FIELDS = ["Formula", "Source", "Range", "Ties"]


def listed_names() -> list[str]:
    return [line.split()[0] for line in listed().splitlines() if line.startswith("  ")]


def test_every_measure_of_the_definitions_is_there() -> None:
    entries = catalog()
    assert list(entries) == OWN
    for definition, variants in DEFINITIONS.items():
        for variant in variants:
            (entry,) = [one for one in entries[variant.name] if f"({definition}," in one.name]
            assert entry.name == f"{variant.name} ({definition}, {variant.label})"
            assert variant.help in entry.formula
    assert sum(map(len, entries.values())) == sum(map(len, DEFINITIONS.values())) + 1


@pytest.mark.parametrize("name", OWN)
def test_entries_say_formula_source_range_and_ties(name: str) -> None:
    for entry in catalog()[name]:
        fields = [entry.formula, entry.source, entry.range, entry.ties]
        assert all(len(field) > 10 and field == field.strip() for field in fields)
        assert "\n" not in entry.about
        lines = entry.text().splitlines()
        assert lines[0] == f"{entry.name}: {entry.about}"
        assert [line[2:].partition(":")[0] for line in lines if re.match("  [^ ]", line)] == FIELDS
        assert all(line.startswith("  ") for line in lines[1:])


def test_what_tells_the_definitions_apart() -> None:
    published, script = catalog()["exact"]
    assert published.source != script.source
    assert "as a number" in published.ties
    assert "score's text" in script.ties
    assert "that no passage above it states" in script.formula
    for name in ("ndcg-exact", "ndcg"):
        (entry,) = catalog()[name]
        assert "all nuggets of the passage" in entry.formula
        assert "greedy" in entry.formula
    (published, script) = catalog()["partial"]
    assert "redundant ones not at all" in script.formula
    assert "redundant ones not at all" not in published.formula


def test_the_list_has_each_measure_on_one_line() -> None:
    names = listed_names()
    # Those of both definitions have a line for each.
    assert names[:9] == [name for name in OWN for _ in catalog()[name]]
    rest = names[9:]
    assert len(rest) == len(set(rest))
    assert {*DIVERSITY, "NDNS", "NuggetRecall", "AP", "nDCG", "RBP", "P", "Bpref", "RR"} <= set(rest)
    assert [is_nugget_measure(name) for name in rest] == sorted(map(is_nugget_measure, rest), reverse=True)
    assert all(len(line.split(maxsplit=1)) == 2 for line in listed().splitlines() if line.startswith("  "))


@pytest.mark.parametrize("name", dict.fromkeys(listed_names()))
def test_every_listed_measure_is_described(name: str) -> None:
    text = described(name)
    assert text.startswith(f"{name}: " if name not in catalog() else name)
    assert text.endswith("\n")
    assert ".. " not in text
    assert "Ties: " in text
    for word in ("ormula", "ource", "ange"):
        assert word in text
    if name not in catalog():
        assert "Parameters: " in text


@pytest.mark.parametrize(
    "name", ["nDCG@10", "RBP(rel=1)", " AP ", 'NDNS(variant="partial")@20', "alpha_nDCG@20"]
)
def test_parameters_may_follow(name: str) -> None:
    parse_measures([name])
    assert described(name) == described(re.split("[@(]", name.strip())[0])


@pytest.mark.parametrize(
    "name", ["", "nope", "Exact", "exact@10", "nDCGG", "judged", "a" * 500, "__import__('os')"]
)
def test_unknown_measures(name: str) -> None:
    with pytest.raises(EpicqaError) as error:
        described(name)
    assert "unknown measure" in str(error.value)
    assert len(str(error.value)) < 250
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("other", "name"), [("MAP", "AP"), ("NDCG@10", "nDCG"), ("α_nDCG@20", "alpha_nDCG")])
def test_other_names_of_measures(other: str, name: str) -> None:
    parse_measures([other])
    assert described(other) == described(name)
