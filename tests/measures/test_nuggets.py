"""Nugget measures against plain references: lists of sentences, sets of nuggets, one rank at a time."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import JudgedQuestion, Judgments, read_judgments, score_run
from epicqa.measures.documents import parse_measures
from epicqa.measures.judgments import pack_question
from epicqa.measures.locate import locate
from epicqa.measures.nuggets import first_ranks, is_nugget_measure, nugget_recall, score_nuggets, unrolled
from epicqa.runs import Run, read_run

GOLDEN = Path(__file__).parent.parent / "golden"

Sentence = tuple[str, int]
Annotated = dict[str, dict[int, set[int]]]
Passage = tuple[str, int, str, int]

CONTEXTS = ["a-C000", "a-C001", "b-b-C010", "c-C999"]


def judged_of(annotated: Annotated, nuggets: int, name: str = "EQ001") -> JudgedQuestion:
    bits = {
        context: {number: sum(1 << nugget for nugget in found) for number, found in sentences.items()}
        for context, sentences in annotated.items()
    }
    return pack_question(name, {f"N{i}": "" for i in range(nuggets)}, bits)


def judgments_of(*questions: JudgedQuestion) -> Judgments:
    return Judgments(Path("judgments"), {question.question_id: question for question in questions})


def run_of(folder: Path, passages: list[Passage], name: str = "EQ001") -> Run:
    path = folder / "run.tsv"
    path.write_text(
        "".join(
            f"{name}\tQ0\t{c}-S{first:03d}:{d}-S{last:03d}\t{i}\t{5000 - i}\ttag\n"
            for i, (c, first, d, last) in enumerate(passages, 1)
        )
    )
    return read_run(path)


# The references.


def plain_sentences(passages: list[Passage], most: int = 10_000) -> list[Sentence]:
    found: dict[Sentence, None] = {}
    for rank, (context, first, other, last) in enumerate(passages):
        if context != other:
            found[f"passage {rank}", 0] = None
            continue
        for number in range(first, last + 1):
            found[context, number] = None
            if len(found) == most:
                return list(found)
    return list(found)


def plain_gains(ranking: list[set[int]], alpha: float) -> list[float]:
    seen: dict[int, int] = {}
    gains = []
    for nuggets in ranking:
        gains.append(sum((1 - alpha) ** seen.get(nugget, 0) for nugget in nuggets))
        for nugget in nuggets:
            seen[nugget] = seen.get(nugget, 0) + 1
    return gains


def plain_greedy(sentences: list[set[int]], alpha: float) -> list[set[int]]:
    ranking: list[set[int]] = []
    left = list(sentences)
    while left:
        gains = [plain_gains([*ranking, one], alpha)[-1] for one in left]
        ranking.append(left.pop(gains.index(max(gains))))
    return ranking


def discounted(gains: list[float], cutoff: int) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains[:cutoff]))


def expected_error(gains: list[float], cutoff: int) -> float:
    return sum(gain / (i + 1) for i, gain in enumerate(gains[:cutoff]))


def plain_measures(
    annotated: Annotated, passages: list[Passage], cutoff: int, alpha: float, beta: float
) -> dict[str, float]:
    ranking = [annotated.get(c, {}).get(number, set()) for c, number in plain_sentences(passages)]
    judged = [found for sentences in annotated.values() for _, found in sorted(sentences.items())]
    stated = set[int]().union(*judged)
    count = len(stated)
    gains, ideal = plain_gains(ranking, alpha), plain_gains(plain_greedy(judged, alpha), alpha)
    halves, ideal_halves = plain_gains(ranking, 0.5), plain_gains(plain_greedy(judged, 0.5), 0.5)
    most = [count * (1 - alpha) ** i for i in range(cutoff)]
    nrbp, ideal_nrbp = (sum(gain * beta**i for i, gain in enumerate(one)) for one in (gains, ideal))
    average = 0.0
    for nugget in stated:
        hits = [nugget in found for found in ranking]
        precision = [sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit]
        average += sum(precision) / sum(nugget in found for found in judged)
    k = cutoff
    return {
        f"alpha_DCG(alpha={alpha})@{k}": discounted(gains, k) / discounted(most, k),
        f"alpha_nDCG(alpha={alpha})@{k}": discounted(gains, k) / discounted(ideal, k),
        f"ERR_IA@{k}": expected_error(halves, k) / expected_error([count * 0.5**i for i in range(k)], k),
        f"nERR_IA@{k}": expected_error(halves, k) / expected_error(ideal_halves, k),
        f"NRBP(alpha={alpha},beta={beta})": (1 - (1 - alpha) * beta) / count * nrbp,
        f"nNRBP(alpha={alpha},beta={beta})": nrbp / ideal_nrbp,
        f"P_IA@{k}": sum(map(len, ranking[:k])) / (k * count),
        "AP_IA": average / count,
        f"StRecall@{k}": len(set[int]().union(*ranking[:k])) / count,
    }


# Cases.


@st.composite
def cases(draw: st.DrawFn) -> tuple[Annotated, int, list[Passage]]:
    nuggets = draw(st.sampled_from([1, 3, 6, 70]))
    found = st.sets(st.integers(0, nuggets - 1), min_size=1, max_size=4)
    sentences = st.dictionaries(st.integers(0, 6), found, min_size=1, max_size=5)
    annotated = draw(st.dictionaries(st.sampled_from(CONTEXTS[:3]), sentences, min_size=1, max_size=3))
    context = st.sampled_from(CONTEXTS)
    inside = st.tuples(context, st.integers(0, 8), st.integers(0, 3)).map(
        lambda drawn: (drawn[0], drawn[1], drawn[0], drawn[1] + drawn[2])
    )
    across = st.tuples(context, st.integers(0, 8), context, st.integers(0, 8)).filter(
        lambda drawn: drawn[0] != drawn[2]
    )
    return annotated, nuggets, draw(st.lists(st.one_of(inside, inside, across), min_size=1, max_size=25))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nuggets")


# Powers of a half add without rounding, so that ties in the greedy ideal are ties in the reference, too.
@settings(max_examples=150, deadline=None)
@given(
    case=cases(),
    cutoff=st.integers(1, 20),
    alpha=st.sampled_from([0.0, 0.5, 0.75, 1.0]),
    beta=st.sampled_from([0.25, 0.5, 0.9]),
)
def test_equals_the_plain_reference(
    folder: Path,
    case: tuple[Annotated, int, list[Passage]],
    cutoff: int,
    alpha: float,
    beta: float,
) -> None:
    annotated, nuggets, passages = case
    expected = plain_measures(annotated, passages, cutoff, alpha, beta)
    measures = parse_measures([*expected, "alpha_nDCG@20", "NRBP"])
    judgments = judgments_of(judged_of(annotated, nuggets))
    question_ids, values, _ = score_nuggets(run_of(folder, passages), judgments, measures)
    assert question_ids == ("EQ001",)
    # Names as given may differ from those that come back, which leave defaults out.
    got = {name: values[str(parse_measures([name])[0])].item() for name in expected}
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)
    by_default = plain_measures(annotated, passages, 20, 0.5, 0.5)
    assert values["alpha_nDCG@20"].item() == pytest.approx(by_default["alpha_nDCG(alpha=0.5)@20"])
    assert values["NRBP"].item() == pytest.approx(by_default["NRBP(alpha=0.5,beta=0.5)"])


@settings(max_examples=100, deadline=None)
@given(case=cases(), depth=st.integers(1, 30))
def test_recall_and_first_ranks(folder: Path, case: tuple[Annotated, int, list[Passage]], depth: int) -> None:
    annotated, nuggets, passages = case
    question = judged_of(annotated, nuggets)
    run = run_of(folder, passages)
    first: dict[str, int | None] = {f"N{i}": None for i in range(nuggets)}
    for rank, (context, start, other, stop) in enumerate(passages, 1):
        for number in range(start, stop + 1) if context == other else ():
            for nugget in annotated.get(context, {}).get(number, ()):
                first[f"N{nugget}"] = first[f"N{nugget}"] or rank
    located = locate(run, question)
    assert located is not None
    columns = (located.context, located.first, located.last)
    assert first_ranks(question, *columns) == first
    assert list(first_ranks(question, *columns)) == list(question.nuggets)
    stated = set[int]().union(*(found for one in annotated.values() for found in one.values()))
    expected = sum(rank is not None and rank <= depth for rank in first.values()) / len(stated)
    assert nugget_recall(question, *columns, depth) == pytest.approx(expected)
    measures = parse_measures([f"NuggetRecall@{depth}"])
    _, values, _ = score_nuggets(run, judgments_of(question), measures)
    assert values[f"NuggetRecall@{depth}"].tolist() == pytest.approx([expected])


@settings(max_examples=100, deadline=None)
@given(
    passages=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 40), st.sampled_from([0, 1, 2, 5, 30, 10**6])),
        max_size=12,
    ),
    most=st.integers(1, 60),
)
def test_unrolled(passages: list[tuple[int, int, int]], most: int) -> None:
    context, first, length = np.array(passages, dtype=np.int64).reshape(-1, 3).T
    named = [(str(c), start, str(c), start + more) for c, start, more in passages]
    expected = [(int(c), number) for c, number in plain_sentences(named, most)]
    assert [tuple(row) for row in unrolled(context, first, first + length, most).tolist()] == expected


def test_absurdly_long_passages(tmp_path: Path) -> None:
    question = judged_of({"a-C000": {0: {0}, 12_000: {1}}, "b-C000": {5: {2}}}, 3)
    passages: list[Passage] = [
        ("a-C000", 0, "a-C000", 5000),
        ("a-C000", 0, "a-C000", 999_999_999),
        *(("b-C000", i, "b-C000", 999_999_999) for i in range(900)),
    ]
    measures = parse_measures(["AP_IA", "StRecall@20", "NuggetRecall@2", "NuggetRecall@3"])
    _, values, _ = score_nuggets(run_of(tmp_path, passages), judgments_of(question), measures)
    # Nothing after the first 10,000 sentences counts, while a passage counts whole.
    assert {name: value.item() for name, value in values.items()} == pytest.approx(
        {"AP_IA": 1 / 3, "StRecall@20": 1 / 3, "NuggetRecall@2": 2 / 3, "NuggetRecall@3": 1}
    )


def test_the_ideal_does_not_depend_on_the_run(tmp_path: Path) -> None:
    question = judged_of({"a-C000": {0: {0}, 1: {1}, 2: {0, 1}}}, 2)
    measures = parse_measures(["alpha_nDCG@1", "alpha_nDCG@2"])
    _, values, _ = score_nuggets(
        run_of(tmp_path, [("a-C000", 0, "a-C000", 1)]), judgments_of(question), measures
    )
    # Ideal: the sentence with both, then one of the others for half.
    second = 1 / math.log2(3)
    assert values["alpha_nDCG@1"].item() == pytest.approx(1 / 2)
    assert values["alpha_nDCG@2"].item() == pytest.approx((1 + second) / (2 + second / 2))


def test_ties_of_the_ideal_go_to_what_was_annotated_first(tmp_path: Path) -> None:
    # Three sentences have two nuggets. With {0, 2} first the others gain 1 each; {2, 3} first leaves 2.
    annotated: Annotated = {"b-C000": {9: {0, 1}, 3: {2, 3}}, "a-C000": {0: {0, 2}, 1: {4}}}
    passages: list[Passage] = [("a-C000", 0, "a-C000", 0)]
    names = [f"alpha_nDCG(alpha=1.0)@{k}" for k in range(1, 5)]
    judgments = judgments_of(judged_of(annotated, 5))
    _, values, _ = score_nuggets(run_of(tmp_path, passages), judgments, parse_measures(names))
    for k, name in enumerate(names, 1):
        expected = plain_measures(annotated, passages, k, 1.0, 0.5)[name]
        assert values[name].item() == pytest.approx(expected)


def test_ndns_is_that_of_score_run() -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    names = {
        f"NDNS(variant='{variant}',definition='{definition}')": (definition, variant)
        for definition, variants in [
            ("published", ["exact", "partial", "relaxed"]),
            ("tac2020", ["exact", "ndcg", "ndcg-exact"]),
        ]
        for variant in variants
    }
    for run in (read_run(GOLDEN / f"synthetic_{name}.tsv") for name in "abc"):
        question_ids, values, warnings = score_nuggets(run, judgments, parse_measures(list(names)))
        for name, (definition, variant) in names.items():
            expected = score_run(run, judgments, definition=definition)
            got = values[str(parse_measures([name])[0])]
            assert question_ids == expected.question_ids
            assert got.tolist() == expected.values[variant].tolist()
            assert {str(warning) for warning in warnings} <= {str(warning) for warning in expected.warnings}


def test_which_questions_count(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    judgments = judgments_of(
        judged_of({"a-C000": {0: {0}}}, 1, "EQ001"),
        judged_of({"a-C000": {0: {0}}}, 1, "EQ002"),
        judged_of({}, 1, "EQ003"),
    )
    run = run_of(tmp_path, [("a-C000", 0, "a-C000", 0)])
    names = ["StRecall@5", "NRBP", "NuggetRecall", "NDNS@5"]
    scores = score_nuggets(run, judgments, parse_measures(names))
    assert scores.question_ids == ("EQ001", "EQ002")
    assert {name: value.tolist() for name, value in scores.values.items()} == {
        "StRecall@5": [1, 0],
        "NRBP": [0.75, 0],
        "NuggetRecall": [1, 0],
        "NDNS@5": [1, 0],
    }
    assert [warning.kind for warning in scores.warnings] == ["no-gold", "missing"]
    partial = score_nuggets(run, judgments, parse_measures(names), complete=False)
    assert partial.question_ids == ("EQ001",)
    # ir-measures warns of questions with one subtopic.
    assert capfd.readouterr() == ("", "")


def test_which_measures_are_of_nuggets(tmp_path: Path) -> None:
    of_nuggets = ["alpha_nDCG@20", "α_DCG@5", "StRecall", "ERR_IA", "nERR_IA(rel=1)@5", "NRBP", "nNRBP"]
    of_nuggets += ["AP_IA", "MAP_IA", "P_IA@5", "NuggetRecall@5", "NDNS(variant='exact')@1000", " NDNS"]
    assert all(map(is_nugget_measure, of_nuggets))
    assert all(map(is_nugget_measure, parse_measures(["alpha_DCG@5", "NuggetRecall", "NDNS"])))
    assert not any(map(is_nugget_measure, ["nDCG@20", "AP", "ERR@20", "P@5", "", "nonsense", "(", "NERR8"]))
    run = run_of(tmp_path, [("a-C000", 0, "a-C000", 0)])
    with pytest.raises(EpicqaError, match="nDCG@5: computed from document judgments"):
        score_nuggets(run, judgments_of(judged_of({"a-C000": {0: {0}}}, 1)), parse_measures(["nDCG@5"]))
