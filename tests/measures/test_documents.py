import csv
import gzip
import math
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures.documents import (
    DocumentRun,
    collapse,
    document_run,
    parse_measures,
    read_document_run,
    score_documents,
)
from epicqa.measures.irm import calculate
from epicqa.measures.qrels import Qrels, read_qrels
from epicqa.runs import RunError, read_run

GOLDEN = [
    ("round1", "T5R1", "covid-round1", {"AP": 0.1919, "nDCG@10": 0.5223}),
    ("round1", "BM25R2", "covid-round1", {"AP": 0.1628, "nDCG@10": 0.3180}),
    ("round1", "bm25_baseline", "covid-round1", {"AP": 0.0981, "nDCG@10": 0.4226}),
    ("round5", "covidex.r5.2s.lr", "covid-round5", {"AP": 0.3922, "nDCG@20": 0.8311}),
    ("round5", "bm25_bl_run5", "covid-round5", {"AP": 0.1586, "nDCG@20": 0.4867}),
]
LEADERBOARD = {"p@5": "P@5", "P@20": "P@20", "bpref": "Bpref", "map": "AP", "MAP": "AP"}
LEADERBOARD |= {"ndcg@10": "nDCG@10", "ndcg@20": "nDCG@20"}


def run_of(**documents: list[str]) -> DocumentRun:
    return DocumentRun("t", Path("run"), {name: tuple(found) for name, found in documents.items()})


def write(tmp_path: Path, text: str, name: str = "run.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(("round_", "tag", "judged", "golden"), GOLDEN)
def test_published_leaderboards(
    shared: Path, round_: str, tag: str, judged: str, golden: dict[str, float]
) -> None:
    folder = shared / "trec-covid"
    run = read_document_run(folder / "runs" / f"{round_}.{tag}.txt.gz")
    qrels = read_qrels(folder / "qrels" / f"qrels.{judged}.txt.gz")
    assert (run.tag, run.warnings) == (tag, ())
    with (folder / "runs" / f"leaderboard.{round_}.csv").open() as handle:
        rows = {row.get("run") or row["tag"]: row for row in csv.DictReader(handle)}
    published = {LEADERBOARD[name]: float(value) for name, value in rows[tag].items() if name in LEADERBOARD}
    graded = ["RBP(rel=1,p=0.5)", "RBP(rel=2,p=0.5)"]
    measures = parse_measures([*golden, *published, *graded, "Judged@10"])
    question_ids, values, warnings = score_documents(run, qrels, measures)
    assert (len(question_ids), warnings) == (len(qrels.topics), ())
    means = {name: value.mean() for name, value in values.items()}
    for name, value in (published | golden).items():
        assert means[name] == pytest.approx(value, abs=5.1e-5), name
    # The leaderboard's gains are grade / 2: the mean of RBP at both levels.
    rbp = float(rows[tag].get("RBP(p=.5)") or rows[tag]["rbp_p5"])
    assert sum(means[str(one)] for one in parse_measures(graded)) / 2 == pytest.approx(rbp, abs=5.1e-5)
    shallow = [[d in qrels.topics[q] for d in run.questions[q][:10]] for q in question_ids]
    assert values["Judged@10"].tolist() == pytest.approx([sum(row) / len(row) for row in shallow])


def test_first_passage_wins(tmp_path: Path) -> None:
    passages = [
        ("b-C000-S001:b-C000-S001", 2, "5"),
        ("a-C1-C001-S000:a-C1-C001-S002", 1, "5"),
        ("c-C000-S000:d-C000-S000", 9, "10.5"),
        ("a-C1-C000-S000:a-C1-C000-S000", 7, "9.5"),
        ("d-C000-S000:d-C000-S000", 3, "-1"),
        ("b-C009-S000:b-C009-S000", 3, "-1"),
    ]
    lines = [f"EQ001\tQ0\t{name}\t{rank}\t{score}\tt\n" for name, rank, score in passages]
    path = write(tmp_path, "".join(lines) + "CQ001 Q0 z-C000-S000:z-C000-S000 1 1 t\n")
    run = collapse(read_run(path))
    # A passage across documents is of its first end's.
    assert run.questions == {"EQ001": ("c", "a-C1", "b", "d"), "CQ001": ("z",)}
    assert (run.tag, run.path) == ("t", path)
    assert document_run(path).questions == run.questions


def test_a_broken_passage_does_not_make_documents_of_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, "EQ001 Q0 b-C000:b-C000 1 2 t\nEQ001 Q0 b-C000-S000:b-C000-S000 2 1 t\n")
    with pytest.raises(RunError, match=":1: malformed passage"):
        document_run(path)


def test_passages_after_the_first_1000_do_not_count(tmp_path: Path) -> None:
    lines = [f"EQ001 Q0 d{i}-C000-S000:d{i}-C000-S000 {i} {2000 - i} t" for i in range(1100)]
    assert len(collapse(read_run(write(tmp_path, "\n".join(lines)))).questions["EQ001"]) == 1000


def test_document_runs_are_read_by_score_then_rank_then_line(tmp_path: Path) -> None:
    text = (
        "\ufeff2 Q0 x 1 1 tag\r\n\r\n"
        "1 Q0 late 3 7 tag\n"
        "1\tQ0\tlater 3\t7.0  tag\n"
        "1 Q0 early 2 7e0 tag\n"
        "1 Q0 low 0 -2 tag\n"
        "1 Q0 high 9 10 tag\n"
        "1 Q0 low 1 9 other\n"
    )
    path = write(tmp_path, text)
    run = read_document_run(path)
    assert run.questions == {"2": ("x",), "1": ("high", "low", "early", "late", "later")}
    assert list(run.questions) == ["2", "1"]
    assert run.tag == "tag"
    assert [str(warning) for warning in run.warnings] == [
        f"{path}:8: run tag 'other', expected 'tag' throughout",
        f"{path}:6: low of topic 1 repeats line 8, the better one counts",
    ]
    assert document_run(path).questions == run.questions
    (tmp_path / "run.gz").write_bytes(gzip.compress(text.encode()))
    assert read_document_run(tmp_path / "run.gz").questions == run.questions


def test_bad_document_runs(tmp_path: Path) -> None:
    path = write(tmp_path, "1 Q0 a 1 nan t\n1 Q0 a x 1 t\n1 Q0 a\n1 Q0 a 1 1_0 t\n1 Q0 a 1 inf t\n")
    with pytest.raises(RunError) as error:
        read_document_run(path)
    assert [str(problem).removeprefix(f"{path}:") for problem in error.value.problems] == [
        "1: score 'nan', expected a finite number",
        "2: rank 'x', expected a whole number",
        "3: 3 columns, expected 6: topic Q0 document rank score tag",
        "4: score '1_0', expected a finite number",
        "5: score 'inf', expected a finite number",
    ]
    for bad, said in [("", "empty"), ("1 Q0\n", "2 columns")]:
        with pytest.raises(EpicqaError, match=said):
            document_run(write(tmp_path, bad))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([-1, 0, 1, 2, None]), min_size=1, max_size=30), st.integers(0, 3))
def test_equals_plain_formulas(grades: list[int | None], unseen: int) -> None:
    documents = [f"d{i:02d}" for i in range(len(grades))]
    judged = {d: grade for d, grade in zip(documents, grades, strict=True) if grade is not None}
    judged |= {f"missed{i}": 1 for i in range(unseen)}
    if not judged:
        judged = {"other": 0}
    names = ["AP", "P@5", "RR", "nDCG@10", "RBP(rel=1,p=0.5)", "Judged@7"]
    scores = score_documents(
        run_of(**{"1": documents}), Qrels(Path("q"), {"1": judged}), parse_measures(names)
    )
    gain = [max(grade or 0, 0) for grade in grades]
    relevant = [value > 0 for value in gain]
    total = sum(grade > 0 for grade in judged.values())
    precision = [sum(relevant[: i + 1]) / (i + 1) for i in range(len(gain))]
    ideal = sorted((max(grade, 0) for grade in judged.values()), reverse=True)

    def dcg(gains: list[int]) -> float:
        return sum(one / math.log2(i + 2) for i, one in enumerate(gains[:10]))

    expected = {
        "AP": sum(p for p, yes in zip(precision, relevant, strict=True) if yes) / total if total else 0,
        "P@5": sum(relevant[:5]) / 5,
        "RR": next((1 / (i + 1) for i, yes in enumerate(relevant) if yes), 0),
        "nDCG@10": dcg(gain) / dcg(ideal) if total else 0,
        "RBP(rel=1,p=0.5)": sum(0.5 ** (i + 1) * yes for i, yes in enumerate(relevant)),
        "Judged@7": sum(d in judged for d in documents[:7]) / min(7, len(documents)),
    }
    got = {name: scores.values[str(parse_measures([name])[0])].item() for name in names}
    assert got == pytest.approx(expected, abs=1e-9)


def test_ties_and_close_scores_stay_in_our_order(tmp_path: Path) -> None:
    # As 32-bit numbers all are equal, and by name z would come first.
    path = write(tmp_path, "".join(f"1 Q0 {d} {i} 0.1234567890{9 - i} t\n" for i, d in enumerate("abcz", 1)))
    scores = score_documents(read_document_run(path), Qrels(path, {"1": {"z": 1}}), parse_measures(["RR"]))
    assert scores.values["RR"].tolist() == [0.25]


def test_which_topics_count(tmp_path: Path) -> None:
    topics = {"EQ001": {"a": 1}, "EQ002": {"a": 1}, "EQ003": {"a": 0}, "CQ001": {"a": 1}}
    qrels = Qrels(Path("q"), topics)
    run = run_of(EQ001=["a"], EQ003=["a"], EQ009=["a"])
    measures = parse_measures(["AP", "Judged@5"])
    scores = score_documents(run, qrels, measures)
    assert scores.question_ids == ("EQ001", "EQ002", "EQ003")
    assert {name: values.tolist() for name, values in scores.values.items()} == {
        "AP": [1, 0, 0],
        "Judged@5": [1, 0, 1],
    }
    assert [str(warning) for warning in scores.warnings] == [
        "run: no documents, counts 0: EQ002",
        "q: no relevant document, counts as trec_eval counts it: EQ003",
        "run: no judgments, left out: EQ009",
    ]
    partial = score_documents(run, qrels, measures, complete=False)
    assert partial.question_ids == ("EQ001", "EQ003")
    assert "run: no documents, left out: EQ002" in map(str, partial.warnings)
    chosen = score_documents(run, qrels, measures, ["EQ001", "CQ001"])
    assert chosen.question_ids == ("EQ001", "CQ001")
    for questions in (["CQ001"], []):
        with pytest.raises(EpicqaError, match="run: no question to score, expected some that q has"):
            score_documents(run, qrels, measures, questions)


def test_expert_questions_against_topics_by_number(tmp_path: Path) -> None:
    qrels = Qrels(Path("q"), {"1": {"a": 1}, "2": {"a": 1}, "50": {"a": 1}})
    scores = score_documents(run_of(EQ002=["b", "a"]), qrels, parse_measures(["RR"]))
    assert (scores.question_ids, scores.values["RR"].tolist()) == (("EQ001", "EQ002"), [0, 0.5])
    assert [warning.kind for warning in scores.warnings] == ["unasked", "missing"]


def test_every_kind_of_provider_answers_for_its_question_and_says_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    names = ["AP", "RBP(rel=1)", "BPM(max_rel=2)@10", "Compat", "Judged@3", "RR@5", "Accuracy", "NumRet"]
    # Run by Perl.
    if shutil.which("perl"):
        names.append("ERR@10")
    measures = parse_measures(names)
    run = run_of(EQ001=["a"], EQ003=["x", "a", "y"])
    qrels = Qrels(Path("q"), {"EQ001": {"b": 1}, "EQ002": {"a": 1}, "EQ003": {"a": 3, "x": -1}})
    scores = score_documents(run, qrels, measures)
    assert capfd.readouterr() == ("", "")
    for name, values in scores.values.items():
        assert values.shape == (3,)
        assert values[1] == 0, name
        assert values[2] > 0 or name == "Accuracy", name


@pytest.mark.skipif(not shutil.which("perl"), reason="gdeval is written in Perl")
def test_gdeval(capfd: pytest.CaptureFixture[str]) -> None:
    measures = parse_measures(["ERR@10", "nDCG(dcg='exp-log2')@10"])
    run = run_of(EQ001=["a", "b"], EQ002=["a"])
    qrels = Qrels(Path("q"), {"EQ001": {"b": 4}, "EQ002": {"b": -1}})
    values = score_documents(run, qrels, measures).values
    assert values["ERR@10"].tolist() == pytest.approx([15 / 16 / 2, 0], abs=1e-5)
    assert values["nDCG(dcg='exp-log2')@10"].tolist() == pytest.approx([1 / math.log2(3), 0], abs=1e-5)
    qrels.topics["EQ002"]["c"] = 5
    for measure in measures:
        with pytest.raises(EpicqaError, match="gdeval computes it for grades up to 4, q has 5"):
            score_documents(run, qrels, [measure])
        with pytest.raises(EpicqaError, match="cannot be computed"):
            calculate([measure], {"1": {"a": 5}}, {"1": {"a": 1.0}})
    assert capfd.readouterr() == ("", "")


def test_equal_measures_are_one() -> None:
    assert list(map(str, parse_measures(["AP", "MAP", " nDCG@10", "AP(rel=1)", "NDCG@10"]))) == [
        "AP",
        "nDCG@10",
    ]


@pytest.mark.parametrize(
    ("name", "said", "example"),
    [
        ("RBP", "nothing installed computes it with these parameters", "RBP(rel=1)"),
        ("RBP(rel=1)@10", "nothing installed", "RBP(rel=1)"),
        ("P", "cutoff is missing", "P@10"),
        ("nDCG@0", "cutoff = 0, not a whole number from 1 to 1000000", "nDCG@10"),
        ("nDCG@True", "cutoff = True, not a whole number", "nDCG@10"),
        ("nDCG@1.5", "cutoff = 1.5, not a whole number", "nDCG@10"),
        ("AP@99999999999999999999", "not a whole number from 1 to 1000000", "AP@10"),
        ("AP(rel=0)", "cannot be computed (Argument relevance_level should be positive.)", "AP@10"),
        ("AP(level=2)", "no parameter 'level' (it has cutoff, rel, judged_only)", "AP@10"),
        ("nDCG(dcg='ln')", "dcg = 'ln' is not one of its values", "nDCG@10"),
        ("nDCG(gains={1:'x'})", "gains = {1: 'x'}, not whole numbers", "nDCG@10"),
        ("nDCG(10)", "not of the form Name(parameter=value)@cutoff", "nDCG@10"),
        ("nDCG@10; 1", "not of the form", "nDCG@10"),
        ("nDCG@" + "1" * 999, "not of the form", "nDCG@10"),
        ("BPM@5", "max_rel is missing", "BPM(max_rel=2)@10"),
        ("IPrec", "recall is missing", "IPrec@0.1"),
        ("alpha_nDCG", "cutoff is missing", "alpha_nDCG@10"),
        ("alpha_nDCG@21", "not a whole number from 1 to 20", "alpha_nDCG@10"),
        ("alpha_nDCG(rel=2)@20", "nuggets have no grades", "alpha_nDCG@10"),
        ("alpha_nDCG(alpha=1.5)@20", "not a number with a decimal point from 0.0 to 1.0", "alpha_nDCG@10"),
        ("StRecall(judged_only=True)@5", "no parameter 'judged_only'", "StRecall@10"),
        ("P_IA(judged_only=True)@5", "no judged_only", "P_IA@10"),
        ("NDNS@1001", "not a whole number from 1 to 1000", "NDNS@10"),
        ("NDNS(variant='ndcg')", "nothing installed computes it", "NDNS@10"),
        ("ndcg_cut_10", "unknown measure", "nDCG@10"),
        ("P_20", "unknown measure", "P@10"),
        ("", "unknown measure ''", "nDCG@10"),
        ("nonsense", "unknown measure", "nDCG@10"),
        ("(" * 300, "unknown measure", "nDCG@10"),
        ("a\0b\nc", r"unknown measure 'a\x00b\nc'", "AP@10"),
    ],
)
def test_bad_measures(name: str, said: str, example: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EpicqaError) as error:
        parse_measures(["AP", name])
    message = str(error.value)
    assert said in message
    assert f" such as {example}" in message
    assert "\n" not in message
    assert len(message) < 400
    assert capfd.readouterr() == ("", "")


def test_nugget_measures_are_refused() -> None:
    with pytest.raises(EpicqaError, match="StRecall@5: computed from nuggets"):
        score_documents(run_of(a=["b"]), Qrels(Path("q"), {"a": {"b": 1}}), parse_measures(["StRecall@5"]))
