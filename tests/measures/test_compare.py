"""Comparisons: what is compared with what, on which questions, and how it is told."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import read_judgments
from epicqa.measures.compare import Comparison, common_judgments, compare, joined_runs, score_together
from epicqa.measures.comparison_tables import (
    comparison_record,
    comparison_tables,
    contrasts_table,
    question_tables,
    values_table,
)
from epicqa.measures.evaluate import plan_measures
from epicqa.measures.score import Scores
from epicqa.measures.significance import holm, paired_bootstrap, randomisation_test
from epicqa.measures.tables import FORMATS, render
from epicqa.runs import read_run

GOLDEN = Path(__file__).parent.parent / "golden"
RESAMPLES = 1000


def scores(
    values: list[float] | dict[str, list[float]],
    tag: str = "run",
    path: str = "run.tsv",
    ids: tuple[str, ...] | None = None,
    **others: str,
) -> Scores:
    of = values if isinstance(values, dict) else {"exact": values}
    count = len(next(iter(of.values())))
    return Scores(
        tag=tag,
        path=Path(path),
        definition=others.get("definition", "published"),
        ideal=others.get("ideal", "beam"),
        question_ids=ids or tuple(f"EQ{i:03d}" for i in range(count)),
        values={measure: np.array(one) for measure, one in of.items()},
        ideals={},
        warnings=(),
    )


@pytest.fixture
def four() -> list[Scores]:
    drawn = np.random.default_rng(2).random((4, 2, 20))
    return [
        scores({"exact": exact.tolist(), "partial": partial.tolist()}, tag=f"r{i}", path=f"{i}.tsv")
        for i, (exact, partial) in enumerate(drawn)
    ]


def pairs_of(found: Comparison, measure: str) -> list[tuple[int, int]]:
    return [(one.run, one.against) for one in found.contrasts if one.measure == measure]


def test_every_pair_without_a_baseline(four: list[Scores]) -> None:
    found = compare(four, resamples=RESAMPLES)
    assert pairs_of(found, "exact") == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert [one.measure for one in found.contrasts] == ["exact"] * 6 + ["partial"] * 6


def test_every_other_run_against_the_baseline(four: list[Scores]) -> None:
    found = compare(four, 2, resamples=RESAMPLES)
    assert pairs_of(found, "exact") == pairs_of(found, "partial") == [(0, 2), (1, 2), (3, 2)]


def test_figures_are_those_of_the_tests(four: list[Scores]) -> None:
    found = compare(four, 0, confidence=0.9, resamples=RESAMPLES, seed=5)
    for measure in ("exact", "partial"):
        of_measure = [one for one in found.contrasts if one.measure == measure]
        difference = np.array([one.values[measure] - four[0].values[measure] for one in four[1:]])
        p = randomisation_test(difference, RESAMPLES, 5)
        assert [one.p for one in of_measure] == p.tolist()
        assert [one.p_holm for one in of_measure] == holm(p).tolist()
        assert np.array([(one.low, one.high) for one in of_measure]) == pytest.approx(
            paired_bootstrap(difference, 0.9, RESAMPLES, 5), abs=1e-13
        )
        assert [one.difference for one in of_measure] == pytest.approx(
            [one.mean(measure) - four[0].mean(measure) for one in four[1:]], abs=1e-14
        )


def test_ties_are_within_a_billionth() -> None:
    found = compare([scores([0.5, 0.5, 0.5, 0.5, 0.9]), scores([0.5, 0.5 + 1e-10, 0.5 - 1e-8, 0.6, 0.1])])
    assert [(one.wins, one.ties, one.losses) for one in found.contrasts] == [(2, 2, 1)]


values = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 25).flatmap(
        lambda n: st.lists(st.lists(values, min_size=n, max_size=n), min_size=2, max_size=4)
    )
)
def test_any_runs(rows: list[list[float]]) -> None:
    runs = [scores(row, f"r{i}") for i, row in enumerate(rows)]
    found = compare(runs, resamples=200)
    for one in found.contrasts:
        assert one.wins + one.ties + one.losses == len(rows[0])
        assert 0 < one.p <= one.p_holm <= 1
        assert one.low - 1e-12 <= one.difference <= one.high + 1e-12
    swapped = {(one.against, one.run): one for one in compare(runs[::-1], resamples=200).contrasts}
    last = len(rows) - 1
    for one in found.contrasts:
        other = swapped[last - one.run, last - one.against]
        assert (one.p, one.wins, one.losses) == (other.p, other.losses, other.wins)
        assert (one.difference, one.low, one.high) == pytest.approx(
            (-other.difference, -other.high, -other.low), abs=1e-9
        )
    for form, table in product(FORMATS, [*comparison_tables(found), *question_tables(found)]):
        assert "nan" not in render([table], form).lower()


def test_one_question_and_no_difference() -> None:
    one = compare([scores([0.2]), scores([0.7])]).contrasts[0]
    assert (one.p, one.p_holm, one.losses) == (1, 1, 1)
    assert (one.low, one.high) == pytest.approx((-0.5, -0.5))
    same = compare([scores([0.2] * 30), scores([0.2] * 30)]).contrasts[0]
    assert (same.p, same.difference, same.low, same.high, same.ties) == (1, 0, 0, 0, 30)


def test_questions_are_matched_by_id() -> None:
    found = compare([scores([0.1, 0.9], ids=("EQ1", "EQ2")), scores([0.9, 0.1], ids=("EQ2", "EQ1"))])
    assert found.contrasts[0].ties == 2
    assert found.question_ids == ("EQ1", "EQ2")


def test_measures_as_chosen(four: list[Scores]) -> None:
    found = compare(four, measures=["partial", "partial"], resamples=RESAMPLES)
    assert list(found.values) == ["partial"]
    # The same figures, whatever else is compared.
    every = compare(four, resamples=RESAMPLES)
    assert [one.p_holm for one in found.contrasts] == [one.p_holm for one in every.contrasts[6:]]


@pytest.mark.parametrize(
    ("runs", "options", "said"),
    [
        ([scores([0.1])], {}, "1 run to compare, expected two or more"),
        ([scores([0.1])] * 2, {"baseline": 2}, "baseline 2, expected the position of one of 2 runs"),
        ([scores([0.1])] * 2, {"measures": ["ndcg"]}, "measure 'ndcg', the published definition has: exact"),
        (
            [scores([0.1, 0.2], path="a.tsv"), scores([0.1], path="b.tsv")],
            {},
            "b.tsv: EQ001 is not scored, in a.tsv it is, expected the same questions for all runs",
        ),
        (
            [scores([0.1], path="a.tsv"), scores([0.1, 0.2], path="b.tsv")],
            {},
            "a.tsv: EQ001 is not scored, in b.tsv it is",
        ),
        (
            [scores([0.1], path="a.tsv"), scores([0.1], path="b.tsv", definition="tac2020")],
            {},
            "b.tsv: scored with definition 'tac2020', a.tsv with 'published', expected the same",
        ),
        ([scores([0.1]), scores([0.1], ideal="best")], {}, "run.tsv: scored with ideal 'best'"),
        (
            [scores({"exact": [0.1], "partial": [0.1]}), scores([0.1])],
            {},
            "scored by exact, run.tsv by exact, partial, expected the same measures",
        ),
    ],
)
def test_what_cannot_be_compared(runs: list[Scores], options: dict, said: str) -> None:
    with pytest.raises(EpicqaError) as error:
        compare(runs, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_names_differ() -> None:
    found = compare(
        [
            scores([0.1], "a", "x/1.tsv"),
            scores([0.1], "b", "x/2.tsv"),
            scores([0.1], "b", "x/3.tsv"),
            scores([0.1], "c", "x/4.tsv"),
            scores([0.1], "c", "y/4.tsv"),
            scores([0.1], "d", "x/5.tsv"),
            scores([0.1], "d", "x/5.tsv"),
        ],
        0,
        resamples=RESAMPLES,
    )
    assert found.names == (
        "a",
        "b (2.tsv)",
        "b (3.tsv)",
        "c (x/4.tsv)",
        "c (y/4.tsv)",
        "d (x/5.tsv) (6)",
        "d (x/5.tsv) (7)",
    )


def test_tables(four: list[Scores]) -> None:
    means, exact, partial = comparison_tables(compare(four, resamples=RESAMPLES))
    assert [row[0] for row in means.rows] == ["r0", "r1", "r2", "r3"]
    assert means.rows[1][1:] == (four[1].mean("exact"), four[1].mean("partial"))
    assert (len(exact.rows), len(partial.rows)) == (6, 6)
    assert "adjusted for 6 tests of the measure" in " ".join(exact.notes)
    exact, partial = comparison_tables(compare(four, 2, resamples=RESAMPLES))
    assert [row[0] for row in partial.rows] == ["r2", "r0", "r1", "r3"]
    assert partial.rows[0][2:] == (None,) * 6
    assert partial.title == "NDNS partial, published definition: runs against r2"


def test_notes_say_what_was_done() -> None:
    few = compare([scores([0.1, 0.3, 0.2, 0.1]), scores([0.2, 0.4, 0.3, 0.2])])
    notes = contrasts_table(few).notes
    assert notes[0] == "4 questions, NDNS normalised by the beam's ideal; one missing from a run counts 0."
    assert "all 16 swaps" in notes[2]
    assert notes[4] == "With 4 questions no p is below 0.125."
    assert few.contrasts[0].p == 0.125
    drawn = compare([scores([0.1] * 20), scores([0.2] * 20)], confidence=0.99, resamples=500, seed=3)
    notes = contrasts_table(drawn).notes
    assert "99% interval" in notes[1]
    assert "500 resamples, seed 3" in notes[2]
    assert len(notes) == 4


def test_values_by_question() -> None:
    found = compare([scores([0.1, 0.5], "a"), scores([0.2, 0.5], "question")])
    (wide,) = question_tables(found)
    assert [column.heading for column in wide.columns] == ["question", "a", "question", "best"]
    assert wide.rows == (("EQ000", 0.1, 0.2, "question"), ("EQ001", 0.5, 0.5, None))
    assert values_table(found).rows[:2] == (("exact", "EQ000", "a", 0.1), ("exact", "EQ000", "question", 0.2))
    record = comparison_record(found, per_question=True)
    assert record["runs"][1]["questions"] == {"EQ000": {"exact": 0.2}, "EQ001": {"exact": 0.5}}
    assert "questions" not in comparison_record(found)["runs"][0]
    json.dumps(record)


def test_baseline_joins_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a, b, c = Path("a"), Path("b"), Path("c")
    assert joined_runs([a, b], None) == ([a, b], None)
    assert joined_runs([a, b], tmp_path / "b") == ([a, b], 1)
    assert joined_runs([a, b], c) == ([c, a, b], 0)
    assert joined_runs([a], b) == ([b, a], 0)
    for runs, baseline, said in [
        ([a, Path("x/../a")], None, "x/../a: given twice (as a)"),
        ([a], None, "a: nothing to compare with"),
        ([a], a, "a: nothing to compare with"),
        ([], None, "no run: nothing to compare with"),
    ]:
        with pytest.raises(EpicqaError) as error:
            joined_runs(runs, baseline)
        assert said in str(error.value)


def test_judgments_that_all_name(tmp_path: Path) -> None:
    for name, judgments in [("a", "j.json"), ("b", str(tmp_path / "j.json")), ("c", "other.json")]:
        manifest = {"epicqa_manifest": 1, "judgments": judgments}
        (tmp_path / f"{name}.json").write_text(json.dumps(manifest))
    a, b, c = (tmp_path / f"{name}.tsv" for name in "abc")
    assert common_judgments([a, b]) == tmp_path / "j.json"
    with pytest.raises(EpicqaError, match=r"c\.tsv: its judgments are .*other\.json, .* pass --judgments"):
        common_judgments([a, b, c])


def test_runs_are_scored_on_the_questions_of_all(tmp_path: Path) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    lines = (GOLDEN / "synthetic_a.tsv").read_text().splitlines(keepends=True)
    expert, one = tmp_path / "expert.tsv", tmp_path / "one.tsv"
    expert.write_text("".join(line for line in lines if line.startswith("EQ")))
    one.write_text("".join(line for line in lines if line.startswith("CQ002")) + "CQ999" + lines[0][5:])
    runs = [read_run(expert), read_run(one)]
    both = score_together(runs, judgments, plan_measures([]))
    assert [len(of.question_ids) for of in both] == [24, 24]
    assert np.count_nonzero(both[0].values["exact"]) == 12
    assert np.count_nonzero(both[1].values["exact"]) == 1
    assert any("no judgments, left out: CQ999" in str(warning) for warning in both[1].warnings)
    only = score_together(runs, judgments, plan_measures([], "tac2020"), "expert")
    assert {kind[:2] for kind in only[1].question_ids} == {"EQ"}
    assert only[0].definition == "tac2020"
    alone = score_together(runs[:1], judgments, plan_measures([]))
    assert len(alone[0].question_ids) == 12
