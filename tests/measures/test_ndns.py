"""NDNS and its ideals against a slow plain reference (sets, loops, one span at a time) and golden scores."""

import json
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import JudgedQuestion, Judgments, read_judgments, score_run
from epicqa.measures.ideal import ideal_of
from epicqa.measures.ndns import DEFINITIONS, PUBLISHED, TAC2020, Variant, gains
from epicqa.runs import Run, read_run

GOLDEN = Path(__file__).parent.parent / "golden"
EVERY = [*PUBLISHED, *TAC2020]
NAMES = [f"{variant.definition}-{variant.name}" for variant in EVERY]

Sentences = dict[str, dict[int, set[str]]]
Span = tuple[str, int, int]


# The reference.


def plain_size(variant: Variant, filler: int, redundant: int, novel: int) -> int:
    if variant.definition == "published":
        return {
            "exact": filler + redundant + novel,
            "partial": filler + redundant + min(novel, 1),
            "relaxed": filler + min(redundant, 1) + min(novel, 1),
        }[variant.name]
    return {
        "exact": filler + redundant + novel,
        "partial": filler + min(novel, 1),
        "relaxed": filler + redundant + min(novel, 1),
        "ndcg-exact": filler + redundant + novel,
        "ndcg": 1,
    }[variant.name]


def plain_gain(sentences: Sentences, span: Span, seen: set[str], variant: Variant) -> tuple[float, set[str]]:
    context, first, last = span
    stated: set[str] = set()
    novel = redundant = filler = 0
    for number in range(first, last + 1):
        nuggets = sentences.get(context, {}).get(number, set())
        stated |= nuggets
        novel += bool(nuggets - seen)
        redundant += bool(nuggets) and not nuggets - seen
        filler += not nuggets
    count = len(stated if variant.name.startswith("ndcg") else stated - seen)
    size = plain_size(variant, filler, redundant, novel)
    return (count * (count + 1) / (count + size) if count else 0.0), stated


def plain_dns(sentences: Sentences, spans: list[Span | None], variant: Variant) -> float:
    total, seen = 0.0, set[str]()
    for rank, span in enumerate(spans[:1000], 1):
        if span is not None:
            gain, stated = plain_gain(sentences, span, seen, variant)
            total += gain / math.log2(rank + 1)
            seen |= stated
    return total


def plain_spans(sentences: Sentences) -> list[Span]:
    return [
        (context, first, last)
        for context, annotated in sentences.items()
        for first in range(min(annotated), max(annotated) + 1)
        for last in range(first, max(annotated) + 1)
    ]


def plain_ideal(sentences: Sentences, variant: Variant, depth: int = 1000) -> float:
    spans = plain_spans(sentences)
    beam: list[tuple[float, frozenset[str], frozenset[Span]]] = [(0.0, frozenset(), frozenset())]
    for rank in range(1, depth + 1):
        extended = []
        # Gains depend on what was seen alone, and states of a beam have often seen the same.
        known: dict[frozenset[str], list[tuple[Span, float, set[str]]]] = {}
        for total, seen, used in beam:
            if seen not in known:
                scored = ((span, *plain_gain(sentences, span, set(seen), variant)) for span in spans)
                known[seen] = [one for one in scored if one[1] > 0]
            for span, gain, stated in known[seen]:
                if span not in used:
                    extended.append((total + gain / math.log2(rank + 1), seen | stated, used | {span}))
        if not extended:
            break
        width = 1 if variant.name.startswith("ndcg") else 10
        beam = sorted(extended, key=lambda state: -state[0])[:width]
    return max(total for total, _, _ in beam)


# Judgments and runs as files.


@dataclass(frozen=True)
class Case:
    """Annotations in order (context, sentence, nuggets) and passages (first end, last end, rank, score)."""

    annotations: list[tuple[str, int, set[int]]]
    nuggets: int
    passages: list[tuple[tuple[str, int], tuple[str, int], int, str]]

    def sentences(self) -> Sentences:
        found: Sentences = {}
        for context, number, nuggets in self.annotations:
            found.setdefault(context, {}).setdefault(number, set()).update(f"N{i}" for i in nuggets)
        return found

    def spans(self, definition: str) -> list[Span | None]:
        if definition == "published":
            order = sorted(self.passages, key=lambda passage: (-float(passage[3]), passage[2]))
            return [(a[0], a[1], b[1]) if a[0] == b[0] else None for a, b, _, _ in order]
        order = sorted(self.passages, key=lambda passage: passage[3], reverse=True)
        return [(a[0], a[1], b[1]) for a, b, _, _ in order]


def write_judgments(folder: Path, annotations: list[tuple[str, int, set[int]]], nuggets: int) -> Judgments:
    raw = {
        "question_id": "EQ001",
        "nuggets": [{"nugget_id": f"N{i}", "nugget": "x"} for i in range(nuggets)],
        "annotations": [
            {"sentence_id": f"{context}-S{number:03d}", "nugget_ids": [f"N{i}" for i in sorted(found)]}
            for context, number, found in annotations
        ],
    }
    path = folder / "judgments.json"
    path.write_text(json.dumps([raw]))
    return read_judgments(path)


def judged(folder: Path, sentences: Sentences, nuggets: int) -> Judgments:
    annotations = [
        (context, number, {int(nugget[1:]) for nugget in found})
        for context, annotated in sentences.items()
        for number, found in annotated.items()
    ]
    return write_judgments(folder, annotations, nuggets)


def write_run(folder: Path, passages: list[str], name: str = "EQ001") -> Run:
    path = folder / "run.tsv"
    lines = [f"{name}\tQ0\t{passage}\t{i}\t{5000 - i}\ttag" for i, passage in enumerate(passages, 1)]
    path.write_text("\n".join(lines) + "\n")
    return read_run(path)


CONTEXTS = ["a-C000", "a-C001", "b-b-C010", "c-C999"]


@st.composite
def cases(draw: st.DrawFn, most_nuggets: int) -> Case:
    nuggets = draw(st.integers(1, most_nuggets))
    found = st.sets(st.integers(0, nuggets - 1), max_size=4)
    annotation = st.tuples(st.sampled_from(CONTEXTS[:3]), st.integers(0, 6), found)
    annotations = draw(st.lists(annotation, max_size=9))
    annotations.append((draw(st.sampled_from(CONTEXTS[:3])), draw(st.integers(0, 6)), {0}))
    passages = []
    for _ in range(draw(st.integers(0, 12))):
        first = (draw(st.sampled_from(CONTEXTS)), draw(st.integers(0, 8)))
        last = (first[0], first[1] + draw(st.integers(0, 3)))
        if draw(st.integers(0, 9)) == 0:
            last = (draw(st.sampled_from(CONTEXTS)), draw(st.integers(0, 8)))
            if last[0] == first[0]:
                last = (first[0], max(first[1], last[1]))
        score = draw(st.sampled_from(["1", "2", "10.2", "9.5", "9.50", "-3", "1e1"]))
        passages.append((first, last, draw(st.integers(0, 3)), score))
    # A run needs a line to be one.
    passages.append((("z-C000", 0), ("z-C000", 0), 9, "-99"))
    return Case(annotations, nuggets, passages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ndns")


# 70 nuggets need two words of bits. 1000 cases in all.
@pytest.mark.parametrize(("most_nuggets", "examples"), [(3, 400), (12, 400), (70, 200)])
def test_equals_the_plain_reference(folder: Path, most_nuggets: int, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(cases(most_nuggets))
    def check(case: Case) -> None:
        sentences = case.sentences()
        judgments = write_judgments(folder, case.annotations, case.nuggets)
        lines = [
            f"EQ001\tQ0\t{a}-S{first:03d}:{b}-S{last:03d}\t{rank}\t{score}\tt\n"
            for (a, first), (b, last), rank, score in case.passages
        ]
        path = folder / "run.tsv"
        path.write_text("".join(lines))
        run = read_run(path)
        for definition, variants in DEFINITIONS.items():
            scores = score_run(run, judgments, definition=definition)
            for variant in variants:
                ideal = plain_ideal(sentences, variant)
                assert scores.ideals[variant.name].tolist() == pytest.approx([ideal], rel=1e-12)
                expected = plain_dns(sentences, case.spans(definition), variant) / ideal
                got = scores.values[variant.name].tolist()
                assert got == pytest.approx([expected], rel=1e-12, abs=1e-12)
                if definition == "tac2020":
                    assert got == [expected]

    check()


# The golden scores.


def golden_rows(definition: str) -> Iterator[tuple[str, str, list[list[str]]]]:
    for name in "abc":
        for kind, prefix in (("expert", "E"), ("consumer", "C")):
            rows = (GOLDEN / f"{definition}_{name}_{kind}.tsv").read_text().splitlines()
            yield name, prefix, [row.split("\t") for row in rows]


def scored(name: str, prefix: str, definition: str) -> dict[tuple[str, str, str], float]:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    run = read_run(GOLDEN / f"synthetic_{name}.tsv")
    questions = [q for q in judgments.questions if q.startswith(prefix)]
    scores = score_run(run, judgments, questions, definition=definition)
    return {
        (scores.tag, question_id, measure): values[i]
        for measure, values in scores.values.items()
        for i, question_id in enumerate(scores.question_ids)
    } | {(scores.tag, "MEAN", measure): scores.mean(measure) for measure in scores.values}


@pytest.mark.parametrize(("name", "prefix", "rows"), list(golden_rows("published")))
def test_golden_published(name: str, prefix: str, rows: list[list[str]]) -> None:
    expected = {(tag, q, m): float(value) for tag, q, m, value in rows}
    assert scored(name, prefix, "published") == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize(("name", "prefix", "rows"), list(golden_rows("tac2020")))
def test_golden_tac2020_to_the_last_bit(name: str, prefix: str, rows: list[list[str]]) -> None:
    written = {variant.label: variant.name for variant in TAC2020}
    expected = {(tag, q, written[label]): float(value) for tag, q, label, value in rows}
    assert scored(name, prefix, "tac2020") == expected


# Ideals.


def test_ideal_of_real_judgments(shared: Path) -> None:
    judgments = read_judgments(shared / "mini" / "judgments.dev.json")
    raw = json.loads((shared / "mini" / "judgments.dev.json").read_text())
    for one in raw:
        if one["question_id"] not in ("EQ019", "EQ021", "CQ023", "CQ045"):  # small enough for the reference
            continue
        sentences: Sentences = {}
        for annotation in one["annotations"]:
            context, _, number = annotation["sentence_id"].rpartition("-S")
            sentences.setdefault(context, {})[int(number)] = set(annotation["nugget_ids"])
        for variant in EVERY:
            got = ideal_of(judgments.questions[one["question_id"]], variant).dns
            assert got == pytest.approx(plain_ideal(sentences, variant), rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(case=cases(9), variant=st.sampled_from(EVERY), depth=st.integers(1, 6))
def test_ideal_of_a_few_ranks(folder: Path, case: Case, variant: Variant, depth: int) -> None:
    question = write_judgments(folder, case.annotations, case.nuggets).questions["EQ001"]
    expected = plain_ideal(case.sentences(), variant, depth)
    assert ideal_of(question, variant, depth=depth).dns == pytest.approx(expected, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(case=cases(9), variant=st.sampled_from(EVERY), search=st.sampled_from(["beam", "best"]))
def test_an_ideal_is_worth_what_it_says(folder: Path, case: Case, variant: Variant, search: str) -> None:
    question = write_judgments(folder, case.annotations, case.nuggets).questions["EQ001"]
    ideal = ideal_of(question, variant, search)
    found = gains(question, ideal.context, ideal.first, ideal.last, [variant])
    assert found.rank.tolist() == list(range(len(ideal.context)))
    assert found.gain[0].tolist() == ideal.gain.tolist()
    names = list(question.contexts)
    spans: list[Span | None] = [
        (names[context], first, last)
        for context, first, last in zip(
            ideal.context.tolist(), ideal.first.tolist(), ideal.last.tolist(), strict=True
        )
    ]
    assert len(set(spans)) == len(spans)
    assert ideal.dns == pytest.approx(plain_dns(case.sentences(), spans, variant), rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(case=cases(4), variant=st.sampled_from(EVERY[:6]))
def test_best_is_between_the_beam_and_the_optimum(folder: Path, case: Case, variant: Variant) -> None:
    question = write_judgments(folder, case.annotations[-4:], case.nuggets).questions["EQ001"]
    sentences = Case(case.annotations[-4:], case.nuggets, []).sentences()
    # More than four passages cannot all have a gain: there are no more than four nuggets.
    spans = plain_spans(sentences)
    if len(spans) > 12:
        return
    optimum = max(
        plain_dns(sentences, list(ranking), variant)
        for size in range(1, 5)
        for chosen in combinations(spans, size)
        for ranking in permutations(chosen)
    )
    beam, best = (ideal_of(question, variant, search).dns for search in ("beam", "best"))
    assert beam <= best <= optimum * (1 + 1e-12)
    assert best == pytest.approx(optimum, rel=1e-12)


def test_best_never_falls_below_the_beam(shared: Path) -> None:
    files = [GOLDEN / "synthetic_judgments.json", shared / "mini" / "judgments.dev.json"]
    gained = []
    for question in (question for path in files for question in read_judgments(path).questions.values()):
        for variant in EVERY:
            beam, best = (ideal_of(question, variant, search).dns for search in ("beam", "best"))
            assert best >= beam
            gained.append(best / beam)
    assert max(gained) > 1.1


@settings(max_examples=300, deadline=None)
@given(counts=st.tuples(*(st.integers(0, 40),) * 4), lost=st.integers(0, 40), more=st.integers(0, 40))
@pytest.mark.parametrize("variant", [one for one in EVERY if not one.seen_count])
def test_a_gain_never_rises(variant: Variant, counts: tuple[int, ...], lost: int, more: int) -> None:
    """What the search relies on: seeing more, or adding filler, never makes a passage gain more."""
    nuggets, filler, redundant, novel = counts
    nuggets, novel = nuggets + 1, novel + 1
    fewer = max(1, novel - lost)

    def worth(*numbers: int) -> float:
        return float(variant.novelty(*(np.array([number]) for number in numbers))[0])

    before = worth(nuggets, filler, redundant, novel)
    for left in range(max(1, nuggets - lost), nuggets + 1):
        assert worth(left, filler, redundant + novel - fewer, fewer) <= before
    assert worth(nuggets, filler + more, redundant, novel) <= before


def question_of(sentences: dict[str, dict[int, int]], nuggets: int) -> JudgedQuestion:
    from epicqa.measures.judgments import pack_question

    return pack_question("EQ001", {f"N{i}": "x" for i in range(nuggets)}, sentences)


def test_many_spans_are_searched_as_all_would_be() -> None:
    """More spans than are evaluated at once: the bounds must leave out none of the ten best."""
    draw = np.random.default_rng(1)
    sentences = {
        f"d{i}-C000": {
            int(number): sum(1 << int(n) for n in draw.choice(12, draw.integers(1, 4), replace=False))
            for number in draw.choice(12, 7, replace=False)
        }
        for i in range(40)
    }
    question = question_of(sentences, 12)
    as_sets: Sentences = {
        context: {number: {f"N{i}" for i in range(12) if bits >> i & 1} for number, bits in annotated.items()}
        for context, annotated in sentences.items()
    }
    for variant in (PUBLISHED[1], TAC2020[1]):
        assert ideal_of(question, variant).dns == pytest.approx(plain_ideal(as_sets, variant), rel=1e-12)


# Cases by hand.


def test_by_hand(tmp_path: Path) -> None:
    judgments = judged(tmp_path, {"a-C000": {0: {"N0", "N1"}, 2: {"N0"}}}, 2)
    run = write_run(tmp_path, ["z-C000-S000:z-C000-S000", "a-C000-S000:a-C000-S002"])
    scores = score_run(run, judgments)
    # Sentences 0 and 2 are novel, 1 is filler: 2 nuggets, NS = 2 * 3 / (2 + n_s).
    discount = math.log2(3)
    # Sentence 0 alone would be worth 2, but that state drops out: the beam goes on with sentence 2, then 0.
    ideal = 1 + 1 / discount
    assert scores.values["exact"][0] == pytest.approx(6 / (2 + 3) / discount / ideal)
    assert scores.values["partial"][0] == pytest.approx(6 / (2 + 2) / discount / ideal)
    alone = write_run(tmp_path, ["a-C000-S000:a-C000-S000"])
    assert score_run(alone, judgments).mean("exact") == pytest.approx(2 / ideal)  # a score can pass 1
    best = score_run(alone, judgments, ideal="best")
    assert (best.ideal, best.ideals["exact"].tolist(), best.mean("exact")) == ("best", [2.0], 1.0)


def test_span_across_contexts_gains_nothing_and_keeps_its_rank(tmp_path: Path) -> None:
    judgments = judged(tmp_path, {"a-C000": {0: {"N0"}}, "a-C001": {0: {"N0"}}}, 1)
    run = write_run(tmp_path, ["a-C000-S000:a-C001-S000", "a-C000-S000:a-C000-S000"])
    scores = score_run(run, judgments)
    assert scores.values["exact"][0] == pytest.approx(1 / math.log2(3))
    assert [warning.kind for warning in scores.warnings] == ["span"]
    assert not any(warning.fatal for warning in scores.warnings)
    # The released script never looks at the context of the last sentence.
    assert score_run(run, judgments, definition="tac2020").mean("exact") == 1


def test_leaving_the_annotated_part_costs_filler(tmp_path: Path) -> None:
    judgments = judged(tmp_path, {"a-C000": {5: {"N0"}}}, 1)
    run = write_run(tmp_path, ["a-C000-S003:a-C000-S1006"])
    assert score_run(run, judgments).mean("exact") == pytest.approx(2 / (1 + 1004))


def test_annotations_without_nuggets_widen_the_spans_of_the_ideal(tmp_path: Path) -> None:
    annotations = [("a-C000", 0, {0, 1}), ("a-C000", 2, {0})]
    with_empty = write_judgments(tmp_path, [("a-C000", 3, set()), *annotations], 2)
    assert with_empty.questions["EQ001"].context_range.tolist() == [[0, 3]]
    sentences: Sentences = {"a-C000": {3: set(), 0: {"N0", "N1"}, 2: {"N0"}}}
    for variant in EVERY:
        got = ideal_of(with_empty.questions["EQ001"], variant).dns
        assert got == pytest.approx(plain_ideal(sentences, variant), rel=1e-12)


def test_ids_are_compared_by_number(tmp_path: Path) -> None:
    path = tmp_path / "j.json"
    raw = {
        "question_id": "EQ001",
        "nuggets": [{"nugget_id": f"N{i}", "nugget": "x"} for i in range(3)],
        "annotations": [
            {"sentence_id": "a-C1-S2", "nugget_ids": ["N0"]},
            {"sentence_id": "a-C0001-S1000", "nugget_ids": ["N1"]},
            {"sentence_id": "a-C1234-S0007", "nugget_ids": ["N2"]},
        ],
    }
    path.write_text(json.dumps([raw]))
    judgments = read_judgments(path)
    assert list(judgments.questions["EQ001"].contexts) == ["a-C001", "a-C1234"]
    run = write_run(
        tmp_path, ["a-C001-S002:a-C001-S002", "a-C1-S1000:a-C001-S1000", "a-C1234-S7:a-C1234-S007"]
    )
    for definition in DEFINITIONS:
        scores = score_run(run, judgments, definition=definition)
        assert scores.mean("exact") == pytest.approx(1)
        assert [warning.kind for warning in scores.warnings] == ["padding"]


def test_only_the_first_thousand_count(tmp_path: Path) -> None:
    judgments = judged(tmp_path, {"a-C000": {0: {"N0"}}}, 1)
    filler = [f"z-C000-S{i:03d}:z-C000-S{i:03d}" for i in range(1000)]
    gold = "a-C000-S000:a-C000-S000"
    assert score_run(write_run(tmp_path, [*filler[:999], gold]), judgments).mean("exact") > 0
    late = score_run(write_run(tmp_path, [*filler, gold]), judgments)
    assert late.mean("exact") == 0
    assert [warning.kind for warning in late.warnings] == ["depth"]


def write_several(tmp_path: Path) -> Path:
    path = tmp_path / "j.json"
    nuggets = [{"nugget_id": "N0", "nugget": "x"}]
    gold = [{"sentence_id": "a-C000-S000", "nugget_ids": ["N0"]}]
    empty = [{"sentence_id": "a-C000-S000", "nugget_ids": []}]
    raw = [
        {"question_id": "EQ001", "nuggets": nuggets, "annotations": gold},
        {"question_id": "EQ002", "nuggets": nuggets, "annotations": []},
        {"question_id": "EQ003", "nuggets": [], "annotations": []},
        {"question_id": "EQ004", "nuggets": nuggets, "annotations": empty},
        {"question_id": "CQ001", "nuggets": nuggets, "annotations": gold},
    ]
    path.write_text(json.dumps(raw))
    return path


@pytest.mark.parametrize("definition", list(DEFINITIONS))
def test_questions_without_gold_are_left_out(tmp_path: Path, definition: str) -> None:
    path = write_several(tmp_path)
    judgments = read_judgments(path)
    run = write_run(tmp_path, ["a-C000-S000:a-C000-S000"])
    scores = score_run(run, judgments, definition=definition)
    assert scores.question_ids == ("EQ001",)  # an expert run is not held against general questions
    assert scores.mean("relaxed") == 1
    left_out = f"{path}: no nuggets, left out: EQ002, EQ003, EQ004"
    assert [str(warning) for warning in scores.warnings] == [left_out]
    both = score_run(run, judgments, list(judgments.questions), definition=definition)
    assert both.mean("exact") == 0.5
    assert "no passages, counts 0: CQ001" in str(both.warnings[-1])
    with pytest.raises(EpicqaError, match="no question to score"):
        score_run(run, judgments, ["EQ003"])


def test_questions_that_the_run_misses_may_be_left_out(tmp_path: Path) -> None:
    judgments = read_judgments(write_several(tmp_path))
    run = write_run(tmp_path, ["a-C000-S000:a-C000-S000"])
    answered = score_run(run, judgments, list(judgments.questions), complete=False)
    assert (answered.question_ids, answered.mean("exact")) == (("EQ001",), 1)
    assert "no passages, left out: CQ001" in str(answered.warnings[-1])
    with pytest.raises(EpicqaError, match="no question to score"):
        score_run(run, judgments, ["CQ001"], complete=False)


def test_the_mean_of_tac2020_is_rounded_once(tmp_path: Path) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    scores = score_run(read_run(GOLDEN / "synthetic_a.tsv"), judgments, definition="tac2020")
    assert scores.mean("ndcg") == statistics.mean(map(float, scores.values["ndcg"]))


def test_judged_sentences_absurdly_far_apart(tmp_path: Path) -> None:
    judgments = judged(tmp_path, {"a-C000": {0: {"N0"}, 999_999_999: {"N0"}}}, 1)
    run = write_run(tmp_path, ["a-C000-S000:a-C000-S000"])
    # Only spans that come among the ten best at a rank are looked at.
    assert score_run(run, judgments).mean("exact") == 1
    with pytest.raises(EpicqaError, match=r"EQ001: \d+ spans between annotated sentences, expected at most"):
        score_run(run, judgments, definition="tac2020")


# The cache of ideals.


def cached_files(folder: Path) -> dict[str, Any]:
    return {path.name: path.read_bytes() for path in (folder / "ideals").iterdir()}


def test_ideals_are_kept_and_never_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from epicqa.measures import ideals

    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    first = judged(tmp_path, {"a-C000": {0: {"N0"}, 1: {"N1"}}}, 2)
    run = write_run(tmp_path, ["a-C000-S000:a-C000-S001"])
    value = score_run(run, first).mean("exact")
    (kept,) = cached_files(tmp_path / "cache").items()
    monkeypatch.setattr(ideals, "ideal_of", lambda *_: pytest.fail("searched again"))
    assert score_run(run, first).mean("exact") == value
    monkeypatch.undo()
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    # Other judgments under the same path and question.
    second = judged(tmp_path, {"a-C000": {0: {"N0"}, 1: {"N0"}}}, 2)
    assert score_run(run, second).ideals["exact"].tolist() != score_run(run, first).ideals["exact"].tolist()
    assert len(cached_files(tmp_path / "cache")) == 2
    assert cached_files(tmp_path / "cache")[kept[0]] == kept[1]


@pytest.mark.parametrize("damage", [b"", b"{}", b"nonsense\n{}", b'\xff\n{"EQ001 published exact": 3}'])
def test_a_damaged_cache_is_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    judgments = judged(tmp_path, {"a-C000": {0: {"N0"}, 1: {"N1"}}}, 2)
    run = write_run(tmp_path, ["a-C000-S000:a-C000-S001"])
    value = score_run(run, judgments).mean("exact")
    (path,) = (tmp_path / "cache" / "ideals").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert score_run(run, judgments).mean("exact") == value
    assert path.read_bytes() == whole
    # A digit that a failing disk changed.
    path.write_bytes(whole.replace(b'"dns":1', b'"dns":2', 1))
    assert score_run(run, judgments).mean("exact") == value


def test_no_cache_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    judgments = judged(tmp_path, {"a-C000": {0: {"N0"}}}, 1)
    assert score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments).mean("exact") == 1


@settings(max_examples=200, deadline=None)
@given(case=cases(4))
def test_overlaps_are_counted(folder: Path, case: Case) -> None:
    from epicqa.measures.locate import overlaps

    judgments = write_judgments(folder, case.annotations, case.nuggets)
    passages = [
        f"{a}-S{first:03d}:{b}-S{last:03d}" for (a, first), (b, last), _, _ in case.passages if a == b
    ]
    run = write_run(folder, passages)
    judged = judgments.questions["EQ001"].contexts
    spans = sorted(
        (a, first, last) for (a, first), (b, last), _, _ in case.passages if a == b and a in judged
    )
    shared = sum(
        any(other[0] == span[0] and other[2] >= span[1] for other in spans[:i])
        for i, span in enumerate(spans)
    )
    found = overlaps(run, list(judgments.questions.values()))
    assert [problem.message.partition(" ")[0] for problem in found] == ([str(shared)] if shared else [])
