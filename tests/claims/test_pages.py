"""Page retrieval on a few pages, and its parts on the small made-up Wikipedia."""

import json
import sys
import unicodedata
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.fever import Claim, Sentence, read_claims
from epicqa.claims.pages import (
    LONGEST,
    ROWS,
    SENTENCES,
    Parts,
    Premise,
    Recall,
    Wiki,
    _Scorer,
    ablation,
    each_premises,
    entity_pages,
    evidence_recall,
    premises,
    spacy_entities,
)
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.errors import EpicqaError
from epicqa.index.build import BuildOptions, Index, build_index, open_index
from epicqa.retrieve.bm25 import bm25_search

GOLDEN = Path(__file__).parents[1] / "golden" / "fever"

# Titles as the release spells them; the accent is in form NFD there.
PAGES = {
    "Tide": "0\tTide is a novel .",
    "Tide_-LRB-film-RRB-": "0\tTide is a film .\n1\t\n2\tIt was shot in Vell .",
    "The_Ninth_Bell": "0\tIt rings .",
    "Ninth": "0\tNinth comes before tenth .",
    "Bell": "0\tA bell rings .",
    "Vell,_East_Corvia": "0\tVell is a town .",
    "Corvia": "0\tCorvia is a country .",
    "Night_of_the_Bell-COLON-_Two": "0\tA second film .",
    "Vell_Rovers_F.C.": "0\tThey play .",
    "The": "0\tAn article .",
    unicodedata.normalize("NFD", "Zéline_Venn"): "0\tShe sings .",
    "Long": "\n".join(f"{i}\tLine {i} ." for i in range(60)),
    "100%_Wolf": "0\tA wolf -LRB- all of it -RRB- .",
}


def claim(
    text: str, *evidence: list[tuple[str, int]], label: str | None = SUPPORTS, number: int = 1
) -> Claim:
    return Claim(number, text, label, tuple(tuple(Sentence(*one) for one in those) for those in evidence))


def built(folder: Path, name: str, source: Path) -> Index:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        return build_index([source], name, BuildOptions(threads=1, dense="none"))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("few")
    lines = (json.dumps({"id": page, "text": "", "lines": lines}) for page, lines in PAGES.items())
    (folder / "wiki-001.jsonl").write_text("\n".join(lines))
    return built(folder, "few", folder / "wiki-001.jsonl")


def test_a_page_by_its_title_however_it_is_spelled(few: Index) -> None:
    wiki = Wiki(few)
    for row, page in enumerate(PAGES):
        assert wiki.page(page) == row and wiki.name(row) == page
    for title in ("Tide (film)", "Tide_(film)", "tide  (film)", "Tide_-LRB-film-RRB-"):
        assert wiki.page(title) == 1
    assert wiki.page("Night of the Bell: Two") == list(PAGES).index("Night_of_the_Bell-COLON-_Two")
    for form in ("NFC", "NFD"):
        assert wiki.page(unicodedata.normalize(form, "Zéline Venn")) == 10
    for title in ("", "TIDE", "Tide (novel)", "x" * 10_000):
        assert wiki.page(title) is None
    assert wiki.film(0) == 1 and wiki.film(1) is None


def test_a_row_by_page_and_line(few: Index) -> None:
    wiki = Wiki(few)
    row = wiki.row(Sentence("Tide (film)", 2))
    assert row is not None and wiki.premise(row) == (
        ("Tide_-LRB-film-RRB-", 2),
        "[ Tide (film) ] It was shot in Vell .",
    )
    for absent in (Sentence("Tide (film)", 1), Sentence("Tide (film)", 3), Sentence("No page", 0)):
        assert wiki.row(absent) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # The longest phrase that is a title counts, and nothing inside it.
        ("The Ninth Bell was rung.", ["The_Ninth_Bell"]),
        ("It is said that the Ninth Bell was rung.", ["Ninth", "Bell"]),
        ("The Bell of Corvia's Tide rang.", ["Bell", "Corvia", "Tide"]),
        ("Some live in Vell, East Corvia.", ["Vell,_East_Corvia"]),
        ("Vell, Corvia.", ["Corvia"]),
        ("Night of the Bell: Two, a film.", ["Night_of_the_Bell-COLON-_Two"]),
        ("They beat Vell Rovers F.C.", ["Vell_Rovers_F.C."]),
        ("Corvia, corvia, tide and Corvia!", ["Corvia"]),
        ("“Tide” (the Tide) is Zéline Venn’s.", ["Tide", unicodedata.normalize("NFD", "Zéline_Venn")]),
        ("the tide", []),
        ("", []),
        ("The", []),
    ],
)
def test_capitalised_phrases_name_pages(few: Index, text: str, found: list[str]) -> None:
    wiki = Wiki(few)
    assert [wiki.name(page) for page in entity_pages(wiki, text)] == found


def test_named_entities_come_first(few: Index) -> None:
    wiki = Wiki(few)
    found = entity_pages(wiki, "Corvia has 100% Wolf.", lambda text: ["100% Wolf", "no page", "Corvia"])
    assert [wiki.name(page) for page in found] == ["100%_Wolf", "Corvia"]


@given(text=st.text(max_size=60))
def test_any_text_is_a_claim(few: Index, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    found = entity_pages(Wiki(few), text + " Tide")
    assert len(set(found)) == len(found) <= len(text.split()) + 1


def test_spacy_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    assert spacy_entities() == (
        None,
        "spaCy is not installed: pages are named by capitalised phrases alone",
    )


def test_spacy_is_used_where_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in for a package that is no dependency: a model gives documents with ``ents``."""

    def load(model: str) -> object:
        if model != "there":
            raise OSError(f"[E050] Can't find model '{model}'.\nMore.")
        return lambda text: SimpleNamespace(ents=[SimpleNamespace(text=text.split()[0])])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    named, note = spacy_entities("there")
    assert named and list(named("Tide rose")) == ["Tide"] and note is None
    named, note = spacy_entities("gone")
    assert named is None and note and "gone" in note and "capitalised phrases alone" in note


def test_premises_of_one_claim(few: Index) -> None:
    tide = claim("Tide was shot in Vell.")
    (found,) = premises([tide], few, threads=1).values()
    # All pages that share a word, whole, in the order of pages and lines.
    assert found[0].text.startswith("[ ")
    assert Premise(Sentence("Tide_-LRB-film-RRB-", 2), "[ Tide (film) ] It was shot in Vell .") in found
    five = premises([tide], few, Parts(articles=False), threads=1)[1]
    assert len(five) == SENTENCES and set(five) <= set(found)
    assert five[0].sentence == ("Tide_-LRB-film-RRB-", 2)
    wolf = premises([claim("100% Wolf")], few, threads=1)[1]
    assert wolf[0] == (("100%_Wolf", 0), "[ 100% Wolf ] A wolf ( all of it ) .")


def test_parts(few: Index) -> None:
    def pages(text: str, parts: Parts) -> list[str]:
        found = premises([claim(text)], few, parts, pages=1, threads=1)[1]
        return list(dict.fromkeys(one.sentence.page for one in found))

    nothing = Parts(False, False, False, False)
    assert pages("Zéline Venn", nothing) == []
    # No sentence of the page has its name.
    assert pages("The Ninth Bell rings", nothing) == ["Bell"]
    assert pages("The Ninth Bell rings", Parts(True, False, False, False)) == ["The_Ninth_Bell"]
    assert pages("A country, a small country near Tide", Parts(True, False, False, False)) == ["Corvia"]
    assert set(pages("A country, a small country near Tide", Parts(True, True, False, True))) == {
        "Corvia",
        "Tide",
    }
    assert set(pages("A country, a small country near Tide", Parts())) == {
        "Corvia",
        "Tide",
        "Tide_-LRB-film-RRB-",
    }
    long = premises([claim("Long")], few, threads=1)[1]
    assert [one.sentence.line for one in long if one.sentence.page == "Long"] == list(range(LONGEST))


def test_claims_in_order_and_once(few: Index) -> None:
    claims = [claim(f"Tide {number}", number=number) for number in (5, 3, 4)]
    assert [number for number, _ in each_premises(claims, few, threads=1)] == [5, 3, 4]
    assert premises([], few) == {}
    assert premises([claim("zzz")], few) == {1: ()}
    for again in (claims[0], claim("zzz", number=5)):
        with pytest.raises(EpicqaError, match="claim 5: repeated, expected each claim once"):
            premises([again, again], few, threads=1)


def test_an_index_of_other_documents(home: Path) -> None:
    with pytest.raises(EpicqaError, match="is none of FEVER's pages, expected an index of"):
        premises([claim("masks and the virus in the air")], open_index("bare"), threads=1)


def test_scores_are_lucenes(small: Index) -> None:
    scorer = _Scorer(small)
    texts = [one.text for one in read_claims(GOLDEN / "claims.jsonl")[:20]]
    for text, ranking in zip(
        texts, bm25_search(small.lucene, texts, 100, k1=0.9, b=0.4, threads=1), strict=True
    ):
        scores = scorer.scores(text, ranking.first.tolist(), titles=True)
        assert scores == pytest.approx(ranking.score.tolist(), rel=1e-5)
    rows = list(range(small.store.n_sentences))
    alone = scorer.scores("silver tide", rows, titles=False)
    titled = scorer.scores("silver tide", rows, titles=True)
    assert 0 < sum(map(bool, alone)) < sum(map(bool, titled))


_PLACES = st.tuples(st.sampled_from(["A_(b)", "A_-LRB-b-RRB-", "C"]), st.integers(0, 2))
_SETS = st.lists(st.lists(_PLACES, min_size=1, max_size=3), min_size=1, max_size=3)


@given(
    st.lists(st.tuples(st.sampled_from([SUPPORTS, REFUTES, NOINFO]), _SETS, st.lists(_PLACES)), max_size=5)
)
def test_recall_against_loops(
    given: list[tuple[str, list[list[tuple[str, int]]], list[tuple[str, int]]]],
) -> None:
    claims = [claim("x", *sets, label=label, number=n) for n, (label, sets, _) in enumerate(given)]
    found = {
        n: [Premise(Sentence(*one), "") for one in those] for n, (*_, those) in enumerate(given) if those
    }

    def plain(place: tuple[str, int]) -> tuple[str, int]:
        return place[0][0], place[1]

    whole = total = 0
    for label, sets, those in given:
        if label != NOINFO:
            total += 1
            there = [plain(one) for one in those]
            whole += any(all(plain(one) in there for one in sentences) for sentences in sets)
    recall = evidence_recall(claims, found)
    assert recall == Recall(whole, total) and recall.value == (whole / total if total else 0.0)


def test_recall_needs_labels() -> None:
    with pytest.raises(EpicqaError, match="claim 1: no label, expected claims with 'label' and 'evidence'"):
        evidence_recall([claim("x", label=None)], {})


@pytest.mark.parametrize("pages", [2, 5])
def test_each_part_finds_more(small: Index, pages: int) -> None:
    """As in the paper's table; five pages are much of a wiki of 200, and entities add little there."""
    claims = read_claims(GOLDEN / "claims.jsonl")
    rows = ablation(claims, small, pages=pages, threads=1)
    assert list(rows) == list(ROWS)
    assert {row.total for row in rows.values()} == {200}
    found = [row.found for row in rows.values()]
    assert found == sorted(found)
    if pages == 2:
        assert len(set(found)) == len(found)
    assert rows["TF-IDF"].value < 0.6 and rows["entire articles"].value > 0.9


def test_a_part_finds_what_it_is_there_for(small: Index) -> None:
    """Claims that a row lacks and the next has, told by what the next adds."""
    claims = read_claims(GOLDEN / "claims.jsonl")
    found = [premises(claims, small, parts, pages=2, threads=1) for parts in ROWS.values()]
    gained: Counter[str] = Counter()
    for one in claims:
        whole = [evidence_recall([one], rows).found for rows in found]
        for name, before, after in zip(list(ROWS)[1:], whole, whole[1:], strict=False):
            gained[name] += after > before
            if name == "+ films" and after > before:
                assert any("-LRB-film-RRB-" in place.page for those in one.evidence for place in those)
    assert all(gained[name] >= 5 for name in list(ROWS)[1:])
