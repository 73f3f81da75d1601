import importlib
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from ir_measures import Qrel, ScoredDoc

from epicqa.errors import EpicqaError
from epicqa.measures import irm, read_judgments, score_run
from epicqa.measures.ideal import ideal_of
from epicqa.measures.locate import locate
from epicqa.measures.ndns import DEFINITIONS, dns
from epicqa.runs import read_run

GOLDEN = Path(__file__).parent.parent / "golden"

QRELS = [
    Qrel("EQ001", "a-C000-S001", 1, "N1"),
    Qrel("EQ001", "a-C000-S001", 1, "N2"),
    Qrel("EQ001", "b-C000-S000", 2, "N3"),
    Qrel("EQ002", "a-C000-S000", 1, "N7"),
]
RUN = [
    ScoredDoc("EQ001", "b-C000-S000:b-C000-S000", 9.5),
    ScoredDoc("EQ001", "a-C000-S001:a-C000-S001", 10.0),
]


def measure(text: str) -> Any:
    return ir_measures.parse_measure(text)


def values(text: str, qrels: Any, run: Any) -> dict[str, float]:
    found = {metric.query_id: metric.value for metric in ir_measures.iter_calc([measure(text)], qrels, run)}
    return dict(sorted(found.items()))


def of(question_ids: Iterable[str], rows: Iterable[Any]) -> Iterator[Any]:
    return (row for row in rows if row.query_id in question_ids)


def test_by_hand() -> None:
    # The run is the ideal: the sentence with two nuggets, worth 2 * 3 / 3, then the other, worth 1.
    ideal = 2 + 1 / math.log2(3)
    assert values("NDNS(variant='exact')@1000", QRELS, RUN) == {"EQ001": 1.0, "EQ002": 0.0}
    assert values("NuggetRecall@1", QRELS, RUN) == {"EQ001": pytest.approx(2 / 3), "EQ002": 0.0}
    # One nugget in two sentences: 1 * 2 / 3.
    only = [ScoredDoc("EQ001", "b-C000-S000:b-C000-S001", 1.0)]
    assert values("NDNS", QRELS, only) == {"EQ001": pytest.approx(2 / 3 / ideal), "EQ002": 0.0}
    assert values("NDNS@1", QRELS, only) == {"EQ001": pytest.approx(2 / 3 / 2), "EQ002": 0.0}
    assert measure("NDNS").calc_aggregate(QRELS, RUN) == 0.5


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize("definition", list(DEFINITIONS))
@pytest.mark.parametrize("ideal", ["beam", "best"])
def test_equals_score_run_on_golden(name: str, definition: str, ideal: str) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    run = read_run(GOLDEN / f"synthetic_{name}.tsv")
    scores = score_run(run, judgments, definition=definition, ideal=ideal)
    measures = {
        measure(
            f"NDNS(variant='{variant.name}',definition='{definition}',ideal='{ideal}')@1000"
        ): variant.name
        for variant in DEFINITIONS[definition]
    }
    rows = of(scores.question_ids, irm.qrel_rows(judgments))
    found = ir_measures.iter_calc(list(measures), rows, irm.run_rows(run, definition))
    got = {(measures[metric.measure], metric.query_id): metric.value for metric in found}
    expected = {
        (variant, question_id): value
        for variant, column in scores.values.items()
        for question_id, value in zip(scores.question_ids, column.tolist(), strict=True)
    }
    assert got == pytest.approx(expected, rel=0, abs=1e-12)
    means = ir_measures.calc_aggregate(
        list(measures), of(scores.question_ids, irm.qrel_rows(judgments)), irm.run_rows(run, definition)
    )
    for one, variant in measures.items():
        assert means[one] == pytest.approx(scores.mean(variant), rel=0, abs=1e-12)


@pytest.mark.parametrize("cutoff", [1, 3, 10])
def test_the_cutoff_ends_run_and_ideal(cutoff: int) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    run = read_run(GOLDEN / "synthetic_a.tsv")
    variant = DEFINITIONS["published"][1]
    expected = {}
    for question_id, question in judgments.questions.items():
        if len(question.number):
            located = locate(run, question)
            assert located is not None
            columns = (part[:cutoff] for part in (located.context, located.first, located.last))
            total = dns(question, *columns, [variant])[0]
            expected[question_id] = total / ideal_of(question, variant, depth=cutoff).dns
    got = values(f"NDNS(variant='partial')@{cutoff}", irm.qrel_rows(judgments), irm.run_rows(run))
    assert got == pytest.approx(expected, rel=0, abs=1e-12)


def test_real_judgments(shared: Path) -> None:
    judgments = read_judgments(shared / "mini" / "judgments.dev.json")
    run = read_run(GOLDEN / "synthetic_a.tsv")
    got = values("NDNS@1000", irm.qrel_rows(judgments), irm.run_rows(run))
    assert len(got) == sum(len(question.number) > 0 for question in judgments.questions.values())


def test_kinds_of_rows() -> None:
    expected = values("NDNS", QRELS, RUN)
    assert values("NDNS", iter(QRELS), iter(RUN)) == expected
    frame = pd.DataFrame(QRELS)
    assert values("NDNS", frame, pd.DataFrame(RUN)) == expected
    nested: dict[str, dict[str, float]] = {"EQ001": {row.doc_id: row.score for row in RUN}}
    assert values("NDNS", frame, nested) == expected
    numbered = frame.replace({"iteration": {"N1": 1, "N2": 2, "N7": 7}, "query_id": {"EQ001": 1, "EQ002": 2}})
    by_number = [ScoredDoc(1, row.doc_id, row.score) for row in RUN]  # type: ignore[arg-type]
    assert values("NDNS", numbered, by_number) == {1: 1.0, 2: 0.0}
    # A dict has no nugget ids: every sentence states the same one.
    plain = {"EQ001": {"a-C000-S001": 1, "b-C000-S000": 1}}
    assert values("NDNS", plain, [ScoredDoc("EQ001", "b-C000-S000:b-C000-S000", 1.0)]) == {"EQ001": 1.0}
    assert values("NDNS", [], RUN) == {}
    assert values("NDNS", QRELS, []) == {"EQ001": 0.0, "EQ002": 0.0}


def test_ties_stay_in_the_order_of_the_rows() -> None:
    named = ["a-C000-S001:a-C000-S001", "b-C000-S000:b-C000-S000", "x-C000-S000:x-C000-S000"]
    for rows in itertools.permutations(named):
        run = [ScoredDoc("EQ001", passage, 1.0) for passage in rows]
        falling = [ScoredDoc("EQ001", passage, -float(i)) for i, passage in enumerate(rows)]
        others = [ScoredDoc("EQ002", "a-C000-S000:a-C000-S000", 1.0)] * 3
        mixed = [one for pair in zip(run, others, strict=True) for one in pair]
        expected = values("NDNS", QRELS, falling)["EQ001"]
        assert values("NDNS", QRELS, run)["EQ001"] == expected
        assert values("NDNS", QRELS, mixed) == {"EQ001": expected, "EQ002": 1.0}


def test_what_states_nothing() -> None:
    # Below 0 a row does not count; 0 lets spans of the ideal reach out, which matters where n_s is always 1.
    more = [Qrel("EQ001", "a-C000-S003", 0, "N1"), Qrel("EQ003", "a-C000-S003", 0, "N1")]
    unread = [Qrel("EQ001", "nonsense", -1, "N9")]
    assert values("NDNS", [*unread, *QRELS, *more], RUN) == values("NDNS", QRELS, RUN)
    ndcg = "NDNS(variant='ndcg',definition='tac2020')"
    assert values(ndcg, QRELS + more, RUN)["EQ001"] < values(ndcg, QRELS, RUN)["EQ001"]


def test_passages_beyond_the_judged_sentences() -> None:
    across = [ScoredDoc("EQ001", "a-C000-S001:b-C000-S000", 2.0)]
    backwards = [ScoredDoc("EQ001", "a-C000-S001:a-C000-S000", 2.0)]
    for run in (across, backwards):
        assert values("NDNS", QRELS, run)["EQ001"] == 0
    long = [ScoredDoc("EQ001", "a-C000-S000:a-C0000-S999999999", 2.0)]
    assert 0 < values("NDNS", QRELS, long)["EQ001"] < 1e-8
    assert values("NDNS(variant='ndcg',definition='tac2020')@1", QRELS, long)["EQ001"] == 1
    deep = [ScoredDoc("EQ001", "x-C000-S000:x-C000-S000", 2.0)] * 1000
    assert values("NuggetRecall", QRELS, [*deep, *RUN])["EQ001"] == 1
    deep = [ScoredDoc("EQ001", "x-C000-S000:x-C000-S000", 20.0)] * 1000
    assert values("NuggetRecall", QRELS, [*deep, *RUN])["EQ001"] == 0


@pytest.mark.parametrize(
    ("qrels", "run", "said"),
    [
        ([Qrel("EQ001", "a-C000", 1, "N1")], RUN, "qrels rows of EQ001: malformed sentence id 'a-C000'"),
        (QRELS, [ScoredDoc("EQ001", "a", 1.0)], "run rows of EQ001: malformed passage 'a'"),
        (
            QRELS,
            [ScoredDoc("EQ001", "a-C000-S000", float("nan"))],
            "EQ001: a score is not a number",
        ),
    ],
)
def test_bad_rows(qrels: list[Qrel], run: list[ScoredDoc], said: str) -> None:
    with pytest.raises(EpicqaError, match=said):
        values("NDNS", qrels, run)


def test_rows_of_questions_without_judgments_are_not_read() -> None:
    assert values("NDNS", QRELS, [*RUN, ScoredDoc("EQ999", "nonsense", 1.0)])["EQ001"] == 1


def test_parameters() -> None:
    assert str(measure("NDNS(variant='exact')@1000")) == "NDNS@1000"
    text = "NDNS(variant='relaxed',ideal='best')@20"
    assert str(measure(text)) == text
    assert measure("NDNS") == irm.NDNS
    refused = [
        "NDNS@0",
        "NDNS@1001",
        "NDNS@1.5",
        "NDNS(variant='other')",
        "NDNS(definition='x')",
    ]
    refused += ["NuggetRecall@0", "NDNS(variant='ndcg')", "NDNS(variant='ndcg-exact',definition='published')"]
    for text in refused:
        with pytest.raises((AssertionError, ValueError)):
            ir_measures.calc_aggregate([measure(text)], QRELS, RUN)
    with pytest.raises(EpicqaError, match="expected one of exact, partial, relaxed"):
        irm.variant_of(measure("NDNS(variant='ndcg')"))
    assert "ndcg" in (irm.NDNS.SUPPORTED_PARAMS["variant"].choices)
    for one in (irm.NDNS, irm.NuggetRecall):
        assert one.__doc__ is not None
        assert all(word in one.__doc__ for word in ("Formula:", "Source:", "Range:", "Ties:"))


def test_what_is_needed_of_rows() -> None:
    assert set(ir_measures.qrel_inputs([irm.NDNS])) == {"query_id", "doc_id", "relevance", "iteration"}
    assert set(ir_measures.run_inputs([irm.NDNS])) == {"query_id", "doc_id", "score"}


def test_beside_other_measures_and_over_several_runs() -> None:
    measures = [measure("NDNS@5"), measure("NuggetRecall@5"), measure("NumRet")]
    assert ir_measures.calc_aggregate(measures, iter(QRELS), iter(RUN))[measures[0]] == 0.5
    evaluator = ir_measures.evaluator(measures[:2], iter(QRELS))
    assert evaluator.calc_aggregate(RUN) == evaluator.calc_aggregate(iter(RUN))
    assert evaluator.calc_aggregate(RUN[:1])[measures[0]] == pytest.approx(1 / (2 + 1 / math.log2(3)) / 2)


def test_a_reload_registers_once() -> None:
    known = len(ir_measures.DefaultPipeline.providers)
    reloaded = importlib.reload(irm)
    names = [provider.NAME for provider in ir_measures.DefaultPipeline.providers]
    assert (len(names), names.count("epicqa")) == (known, 1)
    assert measure("NDNS") == reloaded.NDNS
    assert ir_measures.providers.registry["epicqa"].supports(measure("NDNS@10"))
    assert values("NDNS@1000", QRELS, RUN)["EQ001"] == 1


def test_importing_is_enough() -> None:
    code = (
        "import ir_measures, epicqa.measures.irm\n"
        "m = ir_measures.parse_measure(\"NDNS(variant='exact')@1000\")\n"
        "q = [ir_measures.Qrel('1', 'a-C000-S000', 1, 'N1')]\n"
        "r = [ir_measures.ScoredDoc('1', 'a-C000-S000:a-C000-S000', 1.0)]\n"
        "print(ir_measures.calc_aggregate([m], q, r))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{NDNS@1000: 1.0}\n", "")


def test_nothing_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with irm.quiet():
        print("out")
        print("err", file=sys.stderr)
        os.write(2, b"from C")
        np.float64(1) / np.float64(0)
        ir_measures.logger.warning("logged")
    assert capfd.readouterr() == ("", "")
    assert ir_measures.logger.disabled is False
    with pytest.raises(EpicqaError, match=r"P_IA\(judged_only=True\)@5: cannot be computed"):
        irm.calculate([measure("P_IA(judged_only=True)@5")], QRELS, RUN)
