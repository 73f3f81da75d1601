"""Explanations against score_run, the golden files and a slow plain reference."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import Judgments, read_judgments, score_run
from epicqa.measures.explain import MAX_PLACES, MAX_SENTENCES, Explanation, Nugget, explain, variant_of
from epicqa.measures.ideal import ideal_of
from epicqa.measures.judgments import JudgedQuestion, pack_question
from epicqa.measures.ndns import DEFINITIONS
from epicqa.runs import Run, read_run

GOLDEN = Path(__file__).parent.parent / "golden"
MEASURES = [(name, variant.name) for name, variants in DEFINITIONS.items() for variant in variants]

Sentences = dict[str, dict[int, set[int]]]
Span = tuple[str, int, str, int]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))


def packed(sentences: Sentences, nuggets: int, name: str = "EQ001") -> JudgedQuestion:
    bits = {
        context: {number: sum(1 << i for i in found) for number, found in annotated.items()}
        for context, annotated in sentences.items()
    }
    return pack_question(name, {f"N{i}": f"text {i}" for i in range(nuggets)}, bits)


def write_run(folder: Path, spans: list[Span], name: str = "EQ001") -> Run:
    path = folder / "run.tsv"
    lines = [
        f"{name}\tQ0\t{first}-S{start:03d}:{last}-S{stop:03d}\t{i}\t{5000 - i}\ttag\n"
        for i, (first, start, last, stop) in enumerate(spans, 1)
    ]
    path.write_text("".join(lines))
    return read_run(path)


def explained(
    run: Run,
    judged: JudgedQuestion,
    definition: str = "published",
    measure: str = "exact",
    depth: int = 1000,
) -> Explanation:
    ideal = ideal_of(judged, variant_of(definition, measure))
    return explain(run, judged, definition=definition, measure=measure, ideal=ideal, depth=depth)


def adds_up(found: Explanation, value: float) -> None:
    """What holds of every explanation of all ranks."""
    assert found.ndns == pytest.approx(value, rel=0, abs=1e-12)
    total, seen = 0.0, set[str]()
    for rank, passage in enumerate(found.passages, 1):
        assert passage.rank == rank
        assert passage.discount == pytest.approx(math.log2(rank + 1), rel=1e-12)
        assert passage.discounted == pytest.approx(passage.gain / math.log2(rank + 1), rel=1e-12)
        total += passage.discounted
        assert passage.dns == pytest.approx(total, rel=1e-12)
        assert passage.ndns == pytest.approx(total / found.ideal_dns, rel=1e-12)
        new = {nugget.nugget_id for nugget in passage.new}
        assert not new & seen
        kinds = [sentence.kind for sentence in passage.sentences]
        if passage.length <= MAX_SENTENCES:
            assert len(kinds) == passage.length
            assert [kinds.count(kind) for kind in ("novel", "redundant", "filler", "unjudged")] == [
                *(passage.novel, passage.redundant, passage.filler, passage.unjudged)
            ]
            assert {one for sentence in passage.sentences for one in sentence.new} == new
            assert {one for sentence in passage.sentences for one in sentence.seen} <= seen
        seen |= new
    if found.passages:
        assert found.passages[-1].ndns == pytest.approx(value, rel=0, abs=1e-12)
    assert {nugget.nugget_id for nugget in found.nuggets if nugget.rank} == seen
    assert sum(len(one.new) for one in found.ideal) == sum(
        one.ideal_rank is not None for one in found.nuggets
    )
    assert found.ideal[-1].ndns == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_adds_up_on_the_golden_runs(definition: str) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    ideals = {
        (question_id, variant.name): ideal_of(question, variant)
        for question_id, question in judgments.questions.items()
        for variant in DEFINITIONS[definition]
    }
    for name in "abc":
        run = read_run(GOLDEN / f"synthetic_{name}.tsv")
        golden = {}
        for kind in ("expert", "consumer"):
            for row in (GOLDEN / f"{definition}_{name}_{kind}.tsv").read_text().splitlines():
                _, question_id, measure, value = row.split("\t")
                golden[question_id, measure.lower().removeprefix("ndns-")] = float(value)
        checked = 0
        for (question_id, measure), ideal in ideals.items():
            question = judgments.questions[question_id]
            found = explain(run, question, definition=definition, measure=measure, ideal=ideal, depth=1000)
            adds_up(found, golden[question_id, measure])
            checked += 1
        assert checked == 24 * len(DEFINITIONS[definition])


CONTEXTS = ["a-C000", "a-C001", "b-b-C010", "c-C999"]


@st.composite
def cases(draw: st.DrawFn, most_nuggets: int) -> tuple[Sentences, int, list[Span]]:
    nuggets = draw(st.integers(1, most_nuggets))
    # Some annotations are without nuggets.
    found = st.sets(st.integers(0, nuggets - 1), max_size=4)
    annotated = st.dictionaries(st.integers(0, 6), found, min_size=1, max_size=4)
    sentences = draw(st.dictionaries(st.sampled_from(CONTEXTS[:3]), annotated, min_size=1, max_size=3))
    whole = st.tuples(st.sampled_from(CONTEXTS), st.integers(0, 8), st.integers(0, 3)).map(
        lambda drawn: (drawn[0], drawn[1], drawn[0], drawn[1] + drawn[2])
    )
    across = st.tuples(st.sampled_from(CONTEXTS), st.integers(0, 8), st.integers(0, 8)).map(
        lambda drawn: (drawn[0], drawn[1], "d-C000", drawn[2])
    )
    return sentences, nuggets, draw(st.lists(st.one_of(whole, whole, across), min_size=1, max_size=12))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explain")


# 70 nuggets need two words of bits.
@pytest.mark.parametrize("most_nuggets", [4, 70])
@pytest.mark.parametrize(("definition", "measure"), MEASURES)
def test_adds_up_and_names_every_sentence(
    folder: Path, definition: str, measure: str, most_nuggets: int
) -> None:
    @settings(max_examples=20, deadline=None)
    @given(cases(most_nuggets))
    def check(case: tuple[Sentences, int, list[Span]]) -> None:
        sentences, nuggets, spans = case
        judged = packed(sentences, nuggets)
        run = write_run(folder, spans)
        if not len(judged.number):
            with pytest.raises(EpicqaError, match="EQ001: no nuggets in the judgments"):
                explained(run, judged, definition, measure)
            return
        judgments = Judgments(folder / "judgments.json", {"EQ001": judged})
        scores = score_run(run, judgments, definition=definition)
        found = explained(run, judged, definition, measure)
        adds_up(found, float(scores.values[measure][0]))
        # Where nothing states a nugget there is no judged context.
        gold = {c: s for c, s in sentences.items() if any(s.values())}
        seen: set[int] = set()
        for passage, (first, start, last, stop) in zip(found.passages, spans, strict=True):
            numbers = range(start, stop + 1) if first == last or definition == "tac2020" else range(0)
            assert [one.sentence_id for one in passage.sentences] == [f"{first}-S{n:03d}" for n in numbers]
            assert bool(passage.note) == (first != last)
            stated = set()
            for number, sentence in zip(numbers, passage.sentences, strict=True):
                nuggets_of = gold.get(first, {}).get(number, set())
                stated |= nuggets_of
                assert sentence.new == tuple(f"N{i}" for i in sorted(nuggets_of - seen))
                assert sentence.seen == tuple(f"N{i}" for i in sorted(nuggets_of & seen))
                if first not in gold:
                    assert sentence.kind == "unjudged"
                elif nuggets_of - seen:
                    assert sentence.kind == "novel"
                else:
                    assert sentence.kind == ("redundant" if nuggets_of else "filler")
            assert passage.new == tuple(Nugget(f"N{i}", f"text {i}") for i in sorted(stated - seen))
            seen |= stated

    check()


def test_depth_cuts_the_passages_and_nothing_else(tmp_path: Path) -> None:
    judged = packed({"a-C000": {0: {0}, 1: {1}, 2: {2}}}, 4)
    run = write_run(tmp_path, [("a-C000", i, "a-C000", i) for i in (5, 1, 0)])
    short, whole = explained(run, judged, depth=1), explained(run, judged)
    assert [len(found.passages) for found in (short, whole)] == [1, 3]
    assert [len(found.ideal) for found in (short, whole)] == [1, 2]
    assert short.ndns == whole.ndns
    assert (short.n_passages, short.n_ideal) == (3, 2)
    assert short.nuggets == whole.nuggets
    assert [(one.nugget_id, one.rank, one.n_places) for one in short.nuggets] == [
        ("N0", 3, 1),
        ("N1", 2, 1),
        ("N2", None, 1),
        ("N3", None, 0),
    ]
    # What no sentence states cannot be missed.
    assert [one.nugget_id for one in short.missed] == ["N2"]
    assert short.missed[0].places == ("a-C000-S002",)
    assert short.passages[0].ideal == short.ideal[0]


def test_a_passage_of_a_billion_sentences(tmp_path: Path) -> None:
    judged = packed({"a-C000": {3: {0}, 5: {0, 1}, 999_999_998: {2}}, "b-C000": {0: {0}}}, 3)
    run = write_run(tmp_path, [("b-C000", 0, "b-C000", 0), ("a-C000", 0, "a-C000", 999_999_999)])
    ideal = ideal_of(packed({"a-C000": {5: {0, 1}}}, 3), variant_of("published", "exact"))
    found = explain(run, judged, ideal=ideal)
    passage = found.passages[1]
    assert passage.length == 10**9
    assert (passage.novel, passage.redundant, passage.filler) == (2, 1, 10**9 - 3)
    assert [(one.sentence_id, one.kind) for one in passage.sentences] == [
        ("a-C000-S003", "redundant"),
        ("a-C000-S005", "novel"),
        ("a-C000-S999999998", "novel"),
    ]
    assert [one.nugget_id for one in passage.new] == ["N1", "N2"]


def test_lists_are_cut(tmp_path: Path) -> None:
    judged = packed({"a-C000": {i: {0} for i in range(300)}}, 1)
    run = write_run(tmp_path, [("a-C000", 0, "a-C000", 299)])
    found = explained(run, judged)
    assert found.passages[0].length == 300
    assert len(found.passages[0].sentences) == MAX_SENTENCES
    assert (found.nuggets[0].n_places, len(found.nuggets[0].places)) == (300, MAX_PLACES)


def test_question_missing_from_the_run(tmp_path: Path) -> None:
    judged = packed({"a-C000": {0: {0}, 1: {1}}}, 2)
    found = explained(write_run(tmp_path, [("a-C000", 0, "a-C000", 0)], "EQ002"), judged)
    assert (found.in_run, found.ndns, found.passages, found.n_passages) == (False, 0, (), 0)
    assert len(found.missed) == 2
    assert [nugget.nugget_id for nugget in found.ideal[0].new] == ["N0"]


def test_order_of_the_definition(tmp_path: Path) -> None:
    judged = packed({"a-C000": {0: {0}, 1: {0}}}, 1)
    path = tmp_path / "run.tsv"
    path.write_text("EQ001 Q0 a-C000-S000:a-C000-S000 1 9.5 t\nEQ001 Q0 a-C000-S001:a-C000-S001 2 10.2 t\n")
    run = read_run(path)
    published, released = explained(run, judged), explained(run, judged, "tac2020")
    assert [(one.line, one.score) for one in published.passages] == [(2, "10.2"), (1, "9.5")]
    assert [(one.line, one.score) for one in released.passages] == [(1, "9.5"), (2, "10.2")]


def test_measures_of_the_definition(tmp_path: Path) -> None:
    with pytest.raises(
        EpicqaError, match="no measure 'ndcg' in the published definition, expected one of exact"
    ):
        variant_of("published", "ndcg")
    assert variant_of("tac2020", "ndcg").label == "NDCG"
