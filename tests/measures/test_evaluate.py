import json
from pathlib import Path

import numpy as np
import pytest

from epicqa.errors import EpicqaError
from epicqa.measures import Judgments, read_judgments, score_run
from epicqa.measures.evaluate import CONDENSED, plan_measures, score_documents_of, score_passages
from epicqa.measures.nuggets import score_nuggets
from epicqa.measures.pools import condensed, read_pools
from epicqa.runs import Run, read_run

GOLDEN = Path(__file__).parent.parent / "golden"
QRELS = Path("qrels.txt")


@pytest.fixture(scope="module")
def judgments() -> Judgments:
    return read_judgments(GOLDEN / "synthetic_judgments.json")


@pytest.fixture(scope="module")
def run() -> Run:
    return read_run(GOLDEN / "synthetic_b.tsv")


# What is planned.


def test_nothing_named_is_the_definition() -> None:
    plan = plan_measures([])
    assert (plan.definition, plan.ideal, plan.complete) == ("published", "beam", True)
    assert plan.names == plan.ndns == ("exact", "partial", "relaxed")
    assert plan.nuggets == plan.documents == ()
    plan = plan_measures((), "tac2020", "best", complete=False)
    assert (plan.definition, plan.ideal, plan.complete) == ("tac2020", "best", False)
    assert plan.names == ("exact", "partial", "relaxed", "ndcg-exact", "ndcg")


def test_measures_are_parted_and_stay_in_order() -> None:
    names = ["nDCG@10", "alpha_nDCG@5", "relaxed", "AP", "NuggetRecall@10", "exact", "MAP", "relaxed", "AP"]
    plan = plan_measures(names, qrels=QRELS)
    assert plan.names == ("alpha_nDCG@5", "relaxed", "NuggetRecall@10", "exact")
    assert plan.ndns == ("relaxed", "exact")
    assert list(map(str, plan.nuggets)) == ["alpha_nDCG@5", "NuggetRecall@10"]
    assert list(map(str, plan.documents)) == ["nDCG@10", "AP"]
    plan = plan_measures(["AP"], qrels=QRELS)
    assert plan.names == plan.ndns == plan.nuggets == ()


def test_one_measure_written_in_two_ways_is_one() -> None:
    plan = plan_measures(["NDNS@1000", 'NDNS(variant="exact")@1000', "NDNS(variant='exact') @ 1000"])
    assert plan.names == ("NDNS@1000",)


@pytest.mark.parametrize(
    ("names", "definition", "qrels", "said"),
    [
        (
            ["ndcg"],
            "published",
            None,
            "ndcg: not of the published definition, expected one of exact, partial, r",
        ),
        (["exact", "ndcg-exact"], "published", None, "ndcg-exact: not of the published definition"),
        (["AP"], "published", None, "AP: computed from document judgments, pass --qrels FILE"),
        (["exact", "P@5", "AP"], "tac2020", None, "P@5: computed from document judgments"),
        (
            [],
            "published",
            QRELS,
            "qrels.txt: no measure needs document judgments, pass one such as -m nDCG@10",
        ),
        (["exact", "alpha_nDCG@5"], "published", QRELS, "qrels.txt: no measure needs document judgments"),
        (["exakt"], "published", None, "unknown measure 'exakt'"),
        (["exact "], "published", None, "unknown measure 'exact '"),
        (["alpha_nDCG@21"], "published", None, "cutoff = 21, not a whole number from 1 to 20"),
    ],
)
def test_what_cannot_be_planned(names: list[str], definition: str, qrels: Path | None, said: str) -> None:
    with pytest.raises(EpicqaError) as error:
        plan_measures(names, definition, qrels=qrels)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


# What is computed.


@pytest.mark.parametrize("definition", ["published", "tac2020"])
def test_values_are_those_of_the_functions_beneath(run: Run, judgments: Judgments, definition: str) -> None:
    plan = plan_measures(["alpha_nDCG@5", "partial", "NuggetRecall@10", "exact"], definition)
    scores = score_passages(run, judgments, plan)
    assert list(scores.values) == list(plan.names)
    assert list(scores.ideals) == ["exact", "partial"]
    assert (scores.definition, scores.notes) == (definition, ())
    ndns = score_run(run, judgments, definition=definition)
    nuggets = score_nuggets(run, judgments, plan.nuggets)
    assert scores.question_ids == ndns.question_ids == nuggets.question_ids
    assert scores.warnings[:-1] == ndns.warnings
    assert [scores.warnings[-1].kind, scores.warnings[-1].line] == ["overlaps", 6]
    for name, values in scores.values.items():
        expected = ndns.values[name] if name in ndns.values else nuggets.values[name]
        assert values.tolist() == expected.tolist()


def test_nugget_measures_alone(run: Run, judgments: Judgments) -> None:
    scores = score_passages(run, judgments, plan_measures(["StRecall@5"]))
    assert (list(scores.values), scores.ideals) == (["StRecall@5"], {})
    assert scores.mean("StRecall@5") == pytest.approx(np.mean(scores.values["StRecall@5"]))


@pytest.mark.parametrize("name", ["exact", "alpha_nDCG@5"])
def test_questions_that_are_asked_for(judgments: Judgments, name: str) -> None:
    run = read_run(GOLDEN / "synthetic_c.tsv")
    chosen = ["EQ005", "EQ003", "nope"]
    scores = score_passages(run, judgments, plan_measures([name]), chosen)
    assert scores.question_ids == ("EQ003", "EQ005")
    assert scores.values[name][1] == 0
    answered = score_passages(run, judgments, plan_measures([name], complete=False), chosen)
    assert answered.question_ids == ("EQ003",)
    assert answered.values[name].tolist() == scores.values[name][:1].tolist()
    with pytest.raises(EpicqaError, match="no question to score"):
        score_passages(run, judgments, plan_measures([name], complete=False), ["EQ005"])
    with pytest.raises(EpicqaError, match="no question to score"):
        score_passages(run, judgments, plan_measures([name]), [])


def test_pools_add_the_share_judged(run: Run, judgments: Judgments, tmp_path: Path) -> None:
    path = tmp_path / "pools.json"
    path.write_text(json.dumps({name: [] for name in judgments.questions}))
    pools = read_pools(path, judgments)
    plan = plan_measures(["NuggetRecall@5", "exact"])
    plain = score_passages(run, judgments, plan)
    whole = score_passages(run, judgments, plan, pools=pools)
    assert list(whole.values) == ["NuggetRecall@5", "exact", "judged@20"]
    assert whole.notes == ()
    for name, values in plain.values.items():
        assert whole.values[name].tolist() == values.tolist()
    # Of the annotated contexts alone: what is left out gained nothing, so nothing falls.
    short, _ = condensed(run, pools)
    judged = score_passages(short, judgments, plan, pools=pools, whole=run)
    assert judged.notes == (CONDENSED,)
    assert judged.values["judged@20"].tolist() == whole.values["judged@20"].tolist()
    assert (judged.values["exact"] >= whole.values["exact"]).all()
    assert judged.mean("exact") > whole.mean("exact")


def test_documents_of_several_runs(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("EQ001 1 a 1\nEQ001 2 a 1\nCQ001 0.5 b 2\nCQ001 1 a -1\n")
    passages, documents = tmp_path / "passages.tsv", tmp_path / "documents.tsv"
    passages.write_text(
        "EQ001 Q0 b-C000-S000:b-C000-S000 1 9 p\nEQ001 Q0 a-C000-S000:a-C000-S000 2 8 p\n"
        "EQ001 Q0 b-C001-S000:b-C001-S000 3 7 p\nCQ001 Q0 b-C000-S000:b-C000-S000 1 9 p\n"
    )
    documents.write_text("EQ001 Q0 a 1 9 d\n")
    plan = plan_measures(["RR", "P@2"], qrels=qrels)
    scores, odd = score_documents_of([passages, documents], qrels, plan)
    assert [(one.tag, one.definition, one.ideal, one.ideals) for one in scores] == [
        ("p", "documents", "", {}),
        ("d", "documents", "", {}),
    ]
    assert [problem.kind for problem in odd] == ["judged-twice"]
    assert scores[0].question_ids == ("EQ001", "CQ001")
    assert scores[0].values["RR"].tolist() == [0.5, 1.0]
    assert scores[0].mean("P@2") == 0.5
    # A run of expert questions is scored on those.
    assert scores[1].question_ids == ("EQ001",)
    scores, _ = score_documents_of([passages, documents], qrels, plan, "all")
    assert [one.values["RR"].tolist() for one in scores] == [[0.5, 1.0], [1.0, 0.0]]
    (scores, *_), _ = score_documents_of([passages], qrels, plan, "general")
    assert (scores.question_ids, scores.values["RR"].tolist()) == (("CQ001",), [1.0])
