import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from click.testing import CliRunner, Result

from epicqa.cli.score import score_command as score
from epicqa.errors import EpicqaError
from epicqa.measures import read_judgments
from epicqa.measures.evaluate import CONDENSED
from epicqa.measures.ideal import ideal_of
from epicqa.measures.ndns import PUBLISHED, TAC2020
from epicqa.runs.read import COLUMNS

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = f"expected a run file, lines of {COLUMNS}"
JUDGMENTS = GOLDEN / "synthetic_judgments.json"
RUNS = {name: GOLDEN / f"synthetic_{name}.tsv" for name in "abc"}
WITH = ("--judgments", JUDGMENTS)
KINDS = pytest.mark.parametrize(("kind", "choice"), [("expert", "expert"), ("consumer", "general")])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(score, [str(argument) for argument in arguments])


def golden(kind: str, name: str = "a") -> dict[tuple[str, ...], float]:
    rows = (GOLDEN / f"published_{name}_{kind}.tsv").read_text().splitlines()
    return {tuple(row.split("\t")[:3]): float(row.split("\t")[3]) for row in rows}


@KINDS
def test_tsv(kind: str, choice: str) -> None:
    result = run(
        *(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS),
        *("--questions", choice, "--format", "tsv"),
    )
    assert result.exit_code == 0
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert {tuple(row[:3]): float(row[3]) for row in rows} == pytest.approx(golden(kind), rel=0, abs=1e-12)
    assert [row[1:3] for row in rows[-3:]] == [["MEAN", name] for name in ("exact", "partial", "relaxed")]


def test_several_runs_put_the_means_last() -> None:
    paths = [GOLDEN / f"synthetic_{name}.tsv" for name in "ab"]
    result = run(*paths, "--judgments", JUDGMENTS, "--format", "tsv")
    rows = [line.split("\t")[:2] for line in result.stdout.splitlines()]
    assert len(rows) == 2 * 25 * 3
    assert rows[-6:] == [["synthetic_a", "MEAN"]] * 3 + [["synthetic_b", "MEAN"]] * 3


def test_json() -> None:
    result = run(
        GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--questions", "expert", "--format", "json"
    )
    (record,) = json.loads(result.stdout)
    assert (record["tag"], record["definition"], len(record["questions"])) == ("synthetic_a", "published", 12)
    assert record["mean"]["exact"] == pytest.approx(golden("expert")["synthetic_a", "MEAN", "exact"])


def test_table() -> None:
    result = run(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--questions", "expert")
    assert "synthetic_a: NDNS, published definition" in result.stdout
    assert "EQ023" in result.stdout
    assert f"{golden('expert')['synthetic_a', 'MEAN', 'exact']:.4f}" in result.stdout


def test_repeated_warnings_are_cut_short() -> None:
    result = run(GOLDEN / "synthetic_a.tsv", "--judgments", JUDGMENTS, "--format", "tsv")
    lines = result.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert sum("annotated twice" in line for line in lines) == 10
    assert "warning: 23 more of this kind (annotated-twice)" in lines
    assert sum(f"{GOLDEN / 'synthetic_a.tsv'}:" in line for line in lines) <= 20


def test_unreadable_runs_are_refused_with_every_line(tmp_path: Path) -> None:
    first, second = tmp_path / "1.tsv", tmp_path / "2.tsv"
    first.write_text("EQ001 Q0 a 1 1 t\nEQ001 Q0 a-C000-S001:a-C000-S000 1 nan t\n")
    second.write_text("EQ001\n")
    result = run(first, second, "--judgments", JUDGMENTS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.split(": ")[:2] for line in result.stderr.splitlines()] == [
        ["epicqa", f"{first}:1"],
        ["epicqa", f"{first}:2"],
        ["epicqa", f"{first}:2"],
        ["epicqa", f"{second}:1"],
    ]


def test_what_check_refuses_is_only_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    judged = json.loads(JUDGMENTS.read_text())[4]
    assert judged["question_id"] == "EQ005"
    context = judged["annotations"][0]["sentence_id"].rpartition("-S")[0]
    path.write_text(
        f"EQ005 Q0 {context}-S000:{context}-S009 1 9 t\n"
        f"EQ005 Q0 {context}-S001:{context}-S001 2 8 u\n"
        f"EQ005 Q0 {context}-S003:{context}-S003 3 7 t\n"
        f"EQ005 Q0 {context}-S010:{context}-S010 4 6 t\n"
        "EQ005 Q0 a-C000-S001:a-C001-S001 5 5 t\n"
        "EQ777 Q0 a-C000-S001:a-C000-S001 3 7 t\n"
    )
    result = run(path, "--judgments", JUDGMENTS, "--format", "tsv")
    assert result.exit_code == 0
    for said in [
        ":2: run tag 'u'",
        ":2: 2 passages share sentences with another of their question",
        ":5: a-C000-S001:a-C001-S001 ",
    ]:
        assert f"{path}{said}" in result.stderr
    assert f"{path}: no judgments, left out: EQ777" in result.stderr


def test_judgments_through_the_manifest(tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    path.write_bytes((GOLDEN / "synthetic_c.tsv").read_bytes())
    result = run(path)
    assert isinstance(result.exception, EpicqaError)
    assert "pass --judgments FILE" in str(result.exception)
    manifest = {"epicqa_manifest": 1, "judgments": str(JUDGMENTS)}
    path.with_suffix(".json").write_text(json.dumps(manifest))
    result = run(path, "--questions", "expert", "--format", "tsv")
    assert result.exit_code == 0
    assert "no passages, counts 0: EQ005, EQ015" in result.stderr


@pytest.mark.parametrize(
    ("judgments", "said"),
    [("absent.json", "absent.json: No such file"), (GOLDEN / "synthetic_a.tsv", "broken JSON")],
)
def test_bad_judgments_from_the_shell(fresh: Callable, judgments: object, said: str) -> None:
    assert said in fresh("score", RUNS["b"], "--judgments", judgments, status=2).line()


def test_from_the_shell(fresh: Callable) -> None:
    done = fresh("score", RUNS["b"], *WITH, "--questions", "expert", "--format", "tsv")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert {tuple(row[:3]): float(row[3]) for row in rows} == pytest.approx(golden("expert", "b"), abs=1e-12)


Values = dict[tuple[str, str, str], float]


def values_of(done: Any) -> Values:
    """What a command printed as TSV: tag, question, measure -> value."""
    assert done.status == 0, done.err
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert len({tuple(row[:3]) for row in rows}) == len(rows)
    return {(tag, question, measure): float(value) for tag, question, measure, value in rows}


def tsv(epicqa: Callable, *arguments: object) -> Values:
    return values_of(epicqa("score", *arguments, "--format", "tsv"))


def of_measure(values: Values, name: str) -> dict[str, float]:
    """Question -> value; the mean among them."""
    return {question: value for (_, question, measure), value in values.items() if measure == name}


def write_judgments(path: Path, *questions: tuple[str, dict[str, list[str]]]) -> Path:
    """Questions with sentence id -> nuggets."""
    path.write_text(
        json.dumps(
            [
                {
                    "question_id": name,
                    "nuggets": [
                        {"nugget_id": one, "nugget": one}
                        for one in sorted({one for of_sentence in sentences.values() for one in of_sentence})
                    ],
                    "annotations": [
                        {"sentence_id": sentence, "nugget_ids": nuggets}
                        for sentence, nuggets in sentences.items()
                    ],
                }
                for name, sentences in questions
            ]
        )
    )
    return path


def write_run(path: Path, *passages: tuple[str, str]) -> Path:
    """Question and context of each passage, best first; a passage is the context's first sentence."""
    path.write_text(
        "".join(
            f"{question} Q0 {context}-S000:{context}-S000 {rank} {1000 - rank} {path.stem}\n"
            for rank, (question, context) in enumerate(passages, 1)
        )
    )
    return path


# Definitions.


@KINDS
@pytest.mark.parametrize("name", RUNS)
def test_tac2020_to_the_last_bit(epicqa: Callable, name: str, kind: str, choice: str) -> None:
    done = epicqa(
        "score", RUNS[name], *WITH, "--definition", "tac2020", "--questions", choice, "--format", "tsv"
    )
    assert done.status == 0
    label = {variant.name: variant.label for variant in TAC2020}
    rows = [line.split("\t") for line in done.out.splitlines()]
    script = (GOLDEN / f"tac2020_{name}_{kind}.tsv").read_text().splitlines()
    assert sorted(f"{row[0]}\t{row[1]}\t{label[row[2]]}\t{row[3]}" for row in rows) == sorted(script)
    assert [row[2] for row in rows[:5]] == list(label)


@KINDS
def test_ideal_file_byte_for_byte(epicqa: Callable, tmp_path: Path, kind: str, choice: str) -> None:
    path = tmp_path / "new" / "ideal.tsv"
    options = (*WITH, "--definition", "tac2020", "--questions", choice, "--ideal-file", path)
    golden = (GOLDEN / f"tac2020_ideal_{kind}.tsv").read_bytes()
    # The run without passages for some questions and several runs give the same file.
    for runs in ([RUNS["a"]], [RUNS["c"]], [RUNS["c"], RUNS["a"]]):
        assert epicqa("score", *runs, *options).status == 0
        assert path.read_bytes() == golden
    assert [one.name for one in path.parent.iterdir()] == ["ideal.tsv"]


@pytest.mark.parametrize(
    "options",
    [(), ("--definition", "published"), ("--definition", "tac2020", "--ideal", "best")],
)
def test_ideal_files_are_of_the_script_only(
    epicqa: Callable, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "ideal.tsv"
    said = epicqa("score", RUNS["a"], *WITH, *options, "--ideal-file", path).line()
    assert said == "--ideal-file is the released script's, pass --definition tac2020 --ideal beam"
    assert not path.exists()


def test_the_best_ideal_says_how_far_above_the_beam_it_is(epicqa: Callable) -> None:
    beam, best = (
        json.loads(epicqa("score", RUNS["a"], *WITH, "--ideal", ideal, "--format", "json").out)[0]
        for ideal in ("beam", "best")
    )
    assert (beam["ideal"], beam["notes"], best["ideal"]) == ("beam", [], "best")
    above = {name: {} for name in ("exact", "partial", "relaxed")}
    for question, of_question in beam["ideal_dns"].items():
        for name, dns in of_question.items():
            above[name][question] = 100 * (best["ideal_dns"][question][name] / dns - 1)
            assert above[name][question] >= 0
            assert best["questions"][question][name] <= beam["questions"][question][name]
    assert best["notes"] == [
        f"{name}: the ideal lies {statistics.mean(of_name.values()):.2f}% above the beam's in the mean, "
        f"at most {max(of_name.values()):.2f}% ({max(of_name, key=of_name.__getitem__)})."
        for name, of_name in above.items()
    ]
    table = epicqa("score", RUNS["a"], *WITH, "--ideal", "best").out
    assert table.startswith("synthetic_a: NDNS, published definition, ideal: best\n")
    assert all(f"\n{note}\n" in table for note in best["notes"])


def test_questions_without_passages_count_or_not(epicqa: Callable) -> None:
    options = (RUNS["c"], *WITH, "--questions", "expert", "--format", "tsv")
    complete, answered = epicqa("score", *options, "--complete"), epicqa("score", *options, "--answered")
    assert epicqa("score", *options).out == complete.out
    for done, count, said in [(complete, 12, "counts 0"), (answered, 10, "left out")]:
        assert f"warning: {RUNS['c']}: no passages, {said}: EQ005, EQ015\n" in done.err
        values = of_measure(values_of(done), "exact")
        mean = values.pop("MEAN")
        assert len(values) == count
        assert mean == pytest.approx(sum(values.values()) / count, abs=1e-12)
    assert of_measure(values_of(complete), "exact")["EQ005"] == 0


def test_kinds_of_questions(epicqa: Callable, tmp_path: Path) -> None:
    expert = tmp_path / "expert.tsv"
    lines = RUNS["a"].read_text().splitlines(keepends=True)
    expert.write_text("".join(line for line in lines if line.startswith("EQ")))
    names = [f"EQ{number:03d}" for number in range(1, 24, 2)] + ["MEAN"]
    assert list(of_measure(tsv(epicqa, expert, *WITH), "exact")) == names
    assert list(of_measure(tsv(epicqa, RUNS["a"], *WITH, "--questions", "expert"), "exact")) == names
    assert len(of_measure(tsv(epicqa, expert, *WITH, "--questions", "all"), "exact")) == 25
    both = tsv(epicqa, RUNS["a"], *WITH)
    assert both == tsv(epicqa, RUNS["a"], *WITH, "--questions", "all")


def test_without_gold_a_question_is_left_out_and_said_once(epicqa: Callable, tmp_path: Path) -> None:
    judgments = write_judgments(
        tmp_path / "j.json", ("EQ001", {"a-C000-S000": ["n"]}), ("EQ002", {}), ("EQ003", {"a-C000-S000": []})
    )
    runs = [write_run(tmp_path / f"{name}.tsv", ("EQ001", "a-C000"), ("EQ002", "a-C000")) for name in "xy"]
    done = epicqa("score", *runs, "--judgments", judgments, "--format", "tsv")
    assert list(of_measure(values_of(done), "exact")) == ["EQ001", "MEAN"]
    assert done.err.count("no nuggets, left out: EQ002, EQ003") == 1
    assert done.err.count("annotated with no nuggets, counts as filler") == 1
    only = write_judgments(tmp_path / "none.json", ("EQ002", {}))
    ended = epicqa("score", runs[0], "--judgments", only)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == (
        f"epicqa: {runs[0]}: no question to score, expected some that {only} has nuggets for"
    )


# Measures.


def test_measures_in_the_order_asked_for(epicqa: Callable) -> None:
    measures = ["alpha_nDCG@20", "exact", "NuggetRecall@10", "StRecall@5", "exact"]
    values = tsv(epicqa, RUNS["a"], *WITH, *(part for name in measures for part in ("-m", name)))
    assert list(dict.fromkeys(name for _, _, name in values)) == measures[:4]
    assert of_measure(values, "exact") == of_measure(tsv(epicqa, RUNS["a"], *WITH), "exact")
    for name in measures[:4]:
        found = of_measure(values, name)
        mean = found.pop("MEAN")
        assert 0 < mean < 1
        assert mean == pytest.approx(sum(found.values()) / 24, abs=1e-12)


def test_ndns_to_a_cutoff(epicqa: Callable, tmp_path: Path) -> None:
    values = tsv(
        epicqa, RUNS["a"], *WITH, "-m", 'NDNS(variant="exact")@20', "-m", "NDNS(variant='partial')@1000"
    )
    assert list(dict.fromkeys(name for _, _, name in values)) == ["NDNS@20", "NDNS(variant='partial')@1000"]
    whole = tsv(epicqa, RUNS["a"], *WITH)
    assert of_measure(values, "NDNS(variant='partial')@1000") == pytest.approx(of_measure(whole, "partial"))
    # The first 20 passages by the ideal of 20.
    short = tmp_path / "short.tsv"
    lines = RUNS["a"].read_text().splitlines(keepends=True)
    short.write_text("".join(line for line in lines if int(line.split("\t")[3]) <= 20))
    (record,) = json.loads(epicqa("score", short, *WITH, "--format", "json").out)
    judgments = read_judgments(JUDGMENTS)
    for question, of_question in record["questions"].items():
        dns = of_question["exact"] * record["ideal_dns"][question]["exact"]
        best = ideal_of(judgments.questions[question], PUBLISHED[0], depth=20).dns
        assert of_measure(values, "NDNS@20")[question] == pytest.approx(dns / best, abs=1e-12)


def test_measures_of_the_script(epicqa: Callable) -> None:
    values = tsv(epicqa, RUNS["b"], *WITH, "--definition", "tac2020", "-m", "ndcg", "-m", "StRecall@5")
    script = (GOLDEN / "tac2020_b_expert.tsv").read_text().splitlines()
    for row in (line.split("\t") for line in script):
        if row[2] == "NDCG" and row[1] != "MEAN":
            assert values["synthetic_b", row[1], "ndcg"] == float(row[3])
    assert len(of_measure(values, "StRecall@5")) == 25


def test_document_measures_of_passages_against_a_plain_loop(epicqa: Callable, tmp_path: Path) -> None:
    ranked: dict[str, list[str]] = {}
    for line in RUNS["a"].read_text().splitlines():
        question, _, passage = line.split("\t")[:3]
        document = passage.partition(":")[0].rpartition("-S")[0].rpartition("-C")[0]
        if document not in ranked.setdefault(question, []):
            ranked[question].append(document)
    random = np.random.default_rng(3)
    graded = {
        question: {
            document: int(random.integers(-1, 3)) for document in random.permutation(ranked[question])[:20]
        }
        for question in ("EQ001", "CQ012", "EQ007")
    } | {"EQ099": {"x": 1}}
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(
        "".join(
            f"{question} {i % 3 * 0.5 + 0.5:g} {document} {grade}\n"
            for question, of_question in graded.items()
            for i, (document, grade) in enumerate(of_question.items())
        )
    )
    done = epicqa("score", RUNS["a"], "--qrels", qrels, "-m", "nDCG@10", "-m", "AP", "--format", "tsv")
    values = values_of(done)
    assert f"{RUNS['a']}: no documents, counts 0: EQ099" in done.err
    assert [key[1] for key in values if key[2] == "AP"] == [*graded, "MEAN"]
    for question, of_question in graded.items():
        gains = [max(of_question.get(document, 0), 0) for document in ranked.get(question, [])]
        best = sorted((max(grade, 0) for grade in of_question.values()), reverse=True)
        dcg, ideal = (
            sum(gain / math.log2(rank + 1) for rank, gain in enumerate(column[:10], 1))
            for column in (gains, best)
        )
        hits = np.cumsum(np.array(gains) > 0)
        precision = sum(hits[i] / (i + 1) for i, gain in enumerate(gains) if gain > 0) / sum(
            gain > 0 for gain in best
        )
        # trec_eval gives AP to many digits, nDCG too.
        assert values["synthetic_a", question, "nDCG@10"] == pytest.approx(dcg / ideal, abs=1e-9)
        assert values["synthetic_a", question, "AP"] == pytest.approx(precision, abs=1e-9)


def test_nugget_and_document_measures_together(epicqa: Callable, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("EQ001 1 714d8363 1\nEQ001 1 zzz 0\n")
    options = (*WITH, "--qrels", qrels, "-m", "nDCG@10", "-m", "exact", "-m", "P@5")
    values = tsv(epicqa, RUNS["a"], *options)
    assert {name: len(of_measure(values, name)) for _, _, name in values} == {
        "exact": 25,
        "nDCG@10": 2,
        "P@5": 2,
    }
    assert values["synthetic_a", "EQ001", "P@5"] == 0.2
    table = epicqa("score", RUNS["a"], *options).out
    assert "synthetic_a: NDNS, published definition" in table
    assert "\nsynthetic_a: documents, by their first passages\n" in table
    records = json.loads(epicqa("score", RUNS["a"], *options, "--format", "json").out)
    assert [(one["definition"], one["ideal"]) for one in records] == [
        ("published", "beam"),
        ("documents", None),
    ]


def test_trec_covid(epicqa: Callable, shared: Path) -> None:
    folder = shared / "trec-covid"
    runs = [folder / "runs" / f"round1.{tag}.txt.gz" for tag in ("T5R1", "BM25R2", "bm25_baseline")]
    qrels = folder / "qrels" / "qrels.covid-round1.txt.gz"
    options = (*runs, "--qrels", qrels, "-m", "AP", "-m", "nDCG@10")
    values = tsv(epicqa, *options)
    for tag, golden_values in [
        ("T5R1", (0.1919, 0.5223)),
        ("BM25R2", (0.1628, 0.3180)),
        ("bm25_baseline", (0.0981, 0.4226)),
    ]:
        assert tuple(round(values[tag, "MEAN", name], 4) for name in ("AP", "nDCG@10")) == golden_values
    assert len(values) == 3 * 31 * 2
    means = epicqa("score", *options).out.rpartition("\n\n")[2].splitlines()
    assert means[0] == "Means: documents, by their first passages"
    assert [line.split() for line in means[3:]] == [
        ["T5R1", "30", "0.1919", "0.5223"],
        ["BM25R2", "30", "0.1628", "0.3180"],
        ["bm25_baseline", "30", "0.0981", "0.4226"],
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-m", "Exact"], "unknown measure 'Exact', expected one of ir-measures such as "),
        (["-m", "exact", "-m", ""], "unknown measure ''"),
        (
            ["-m", "ndcg"],
            "measure ndcg: not of the published definition, expected one of exact, partial, relaxed",
        ),
        (["-m", "nDCG@10"], "measure nDCG@10: computed from document judgments, pass --qrels FILE"),
        (["-m", "alpha_nDCG"], "measure 'alpha_nDCG': cutoff is missing"),
        (["-m", "nDCG@"], "measure 'nDCG@': not of the form Name(parameter=value)@cutoff"),
        (["-m", "nDCG(1/0)"], "measure 'nDCG(1/0)': "),
        (["-m", "RBP(p=2.0)"], "measure 'RBP(p=2.0)': p = 2.0, not a number"),
        (["--qrels", JUDGMENTS], "no measure needs document judgments, pass one such as -m nDCG@10"),
        (["--qrels", JUDGMENTS, "-m", "exact"], "no measure needs document judgments"),
        (["--qrels", JUDGMENTS, "-m", "AP"], f"{JUDGMENTS}:1: 1 columns, expected 4: topic round document"),
        (["--qrels", GOLDEN, "-m", "AP"], f"{GOLDEN}: Is a directory"),
        (["--judged-only"], "--judged-only needs to know what was judged, pass --pools FILE"),
        (["--pools", "absent.json"], "absent.json: No such file or directory"),
        (["--pools", GOLDEN], f"{GOLDEN}: Is a directory"),
        (["--pools", JUDGMENTS], f"{JUDGMENTS}: a JSON list, expected a JSON object of question id -> list"),
        (["--qrels", RUNS["a"], "-m", "AP", "--pools", JUDGMENTS], "--pools is for nugget measures"),
        (["--qrels", RUNS["a"], "-m", "AP", "--report", "r"], "--report is for nugget measures"),
    ],
    ids=str,
)
def test_measures_and_options_that_do_not_go_together(
    epicqa: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[object], said: str
) -> None:
    # Judgments about which there is nothing to warn of.
    judgments = write_judgments(tmp_path / "j.json", ("EQ001", {"a-C000-S000": ["n"]}))
    monkeypatch.chdir(tmp_path)
    assert said in epicqa("score", RUNS["a"], "--judgments", judgments, *options, "-o", "out.tsv").line()
    assert [one.name for one in tmp_path.iterdir()] == ["j.json"]


@pytest.mark.parametrize("option", ["--definition", "--ideal", "--questions", "--format"])
def test_unknown_choices(epicqa: Callable, option: str) -> None:
    done = epicqa("score", RUNS["a"], *WITH, option, "nope")
    assert (done.status, done.out) == (2, "")
    assert f"Invalid value for '{option}': 'nope' is not one of" in done.err


# Pools.


def test_pools(epicqa: Callable, tmp_path: Path) -> None:
    judgments = write_judgments(
        tmp_path / "j.json", ("EQ001", {"a-C000-S000": ["n"]}), ("EQ002", {"a-C000-S000": ["n"]})
    )
    pools = tmp_path / "pools.json.gz"
    pools.write_bytes(gzip.compress(b'{"EQ001": ["b-C0"]}'))
    runs = [
        write_run(
            tmp_path / f"{name}.tsv",
            *(("EQ001", context) for context in ("x-C000", "b-C000", "y-C000", "a-C000")),
            ("EQ002", "x-C000"),
            ("EQ002", "a-C000"),
        )
        for name in "uv"
    ]
    options = (*runs, "--judgments", judgments, "--pools", pools, "-m", "exact", "-m", "StRecall@1")
    whole, judged = (epicqa("score", *options, *more, "--format", "tsv") for more in ((), ("--judged-only",)))
    values = values_of(whole)
    assert list(dict.fromkeys(name for _, _, name in values)) == ["exact", "StRecall@1", "judged@20"]
    assert of_measure(values, "judged@20") == {"EQ001": 0.5, "EQ002": 0.0, "MEAN": 0.25}
    assert values["u", "EQ001", "exact"] == pytest.approx(1 / math.log2(5))
    assert whole.err == ""
    values = values_of(judged)
    assert of_measure(values, "judged@20") == {"EQ001": 0.5, "EQ002": 0.0, "MEAN": 0.25}
    assert values["u", "EQ001", "exact"] == pytest.approx(1 / math.log2(3))
    # Without a pool nothing is left out.
    assert values["u", "EQ002", "exact"] == pytest.approx(1 / math.log2(3))
    assert f"warning: {pools}: no pool, not condensed: EQ002\n" in judged.err
    table = epicqa("score", *options, "--judged-only").out
    assert table.count(f"\n{CONDENSED}\n") == 1
    for record in json.loads(epicqa("score", *options, "--judged-only", "--format", "json").out):
        assert record["notes"] == [CONDENSED]
        assert record["mean"]["judged@20"] == 0.25


def test_a_question_of_which_nothing_is_left_counts_0(epicqa: Callable, tmp_path: Path) -> None:
    judgments = write_judgments(
        tmp_path / "j.json", ("EQ001", {"a-C000-S000": ["n"]}), ("EQ002", {"a-C000-S000": ["n"]})
    )
    pools = tmp_path / "pools.json"
    pools.write_text('{"EQ001": [], "EQ002": []}')
    run = write_run(tmp_path / "r.tsv", ("EQ001", "x-C000"), ("EQ002", "a-C000"))
    measures = ["exact", "alpha_nDCG@20", "NDNS@5", "NuggetRecall@5", "P_IA@5", "NRBP"]
    options = [part for name in measures for part in ("-m", name)]
    values = tsv(epicqa, run, "--judgments", judgments, "--pools", pools, "--judged-only", *options)
    for name in [*measures, "judged@20"]:
        found = of_measure(values, name)
        assert found["EQ001"] == 0 < found["EQ002"]
        assert found["MEAN"] == found["EQ002"] / 2


def test_the_mini_collection(epicqa: Callable, shared: Path, tmp_path: Path) -> None:
    folder = shared / "mini"
    pools = json.loads((folder / "pools.dev.json").read_text())
    passages = [(question, context) for question, contexts in pools.items() for context in contexts]
    run = write_run(tmp_path / "pool.tsv", *passages)
    options = (run, "--judgments", folder / "judgments.dev.json", "--pools", folder / "pools.dev.json")
    values = tsv(epicqa, *options)
    assert set(of_measure(values, "judged@20").values()) == {1.0}
    assert len(of_measure(values, "judged@20")) == len(pools) + 1
    assert values["pool", "MEAN", "exact"] > 0
    assert tsv(epicqa, *options, "--judged-only") == values


# Formats.


def test_json_holds_what_tsv_holds(epicqa: Callable) -> None:
    options = (RUNS["a"], RUNS["c"], *WITH, "--answered")
    values = tsv(epicqa, *options)
    records = json.loads(epicqa("score", *options, "--format", "json").out)
    assert [record["run"] for record in records] == [str(RUNS["a"]), str(RUNS["c"])]
    found = {
        (record["tag"], question, name): value
        for record in records
        for question, of_question in (record["questions"] | {"MEAN": record["mean"]}).items()
        for name, value in of_question.items()
    }
    assert found == values
    judgments = read_judgments(JUDGMENTS)
    for question, dns in records[1]["ideal_dns"].items():
        assert dns == {one.name: ideal_of(judgments.questions[question], one).dns for one in PUBLISHED}
    assert list(records[1]["ideal_dns"]) == list(records[1]["questions"])


def test_csv_holds_what_tsv_holds(epicqa: Callable) -> None:
    options = (RUNS["a"], RUNS["b"], *WITH, "--definition", "tac2020")
    rows = list(csv.DictReader(io.StringIO(epicqa("score", *options, "--format", "csv").out)))
    found = {(row["run"], row["question"], row["measure"]): float(row["value"]) for row in rows}
    assert found == tsv(epicqa, *options)
    assert len(rows) == len(found)


def test_latex(epicqa: Callable) -> None:
    text = epicqa(
        "score", RUNS["a"], RUNS["b"], *WITH, "-m", "exact", "-m", "StRecall@5", "--format", "latex"
    ).out
    assert text.count(r"\begin{tabular}") == text.count(r"\end{table}") == 3
    assert r"synthetic\_a" in text and "synthetic_a" not in text
    assert len(set(re.findall(r"\\label\{([^}]*)\}", text))) == 3
    assert f"MEAN & {golden('expert')['synthetic_a', 'MEAN', 'exact']:.4f}"[:6] in text


def test_several_runs_have_a_table_of_means(epicqa: Callable) -> None:
    text = epicqa("score", *RUNS.values(), *WITH, "--questions", "expert").out
    means = text.rpartition("\n\n")[2].splitlines()
    assert means[0] == "Means: NDNS, published definition"
    assert means[1].split() == ["run", "questions", "exact", "partial", "relaxed"]
    for line, name in zip(means[3:], "abc", strict=True):
        expected = golden("expert", name)
        values = [expected[f"synthetic_{name}", "MEAN", one] for one in ("exact", "partial", "relaxed")]
        assert line.split() == [f"synthetic_{name}", "12", *(f"{value:.4f}" for value in values)]
    assert text.count("MEAN") == 3
    assert "Means" not in epicqa("score", RUNS["a"], *WITH).out


def test_runs_of_one_tag_are_told_apart(epicqa: Callable, tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_bytes(RUNS["b"].read_bytes().replace(b"\tsynthetic_b", b"\tsynthetic_a"))
    means = epicqa("score", RUNS["a"], other, *WITH).out.rpartition("\n\n")[2]
    assert "synthetic_a (synthetic_a.tsv)" in means
    assert "synthetic_a (other.tsv)" in means


def test_a_table_in_a_pipe_is_not_cut(
    epicqa: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    tag = "a-long-tag-" * 20
    run = tmp_path / "run.tsv"
    run.write_bytes(RUNS["a"].read_bytes().replace(b"synthetic_a", tag.encode()))
    measures = ["exact", "partial", "relaxed", *(f"alpha_nDCG@{k}" for k in range(1, 20))]
    text = epicqa("score", run, RUNS["b"], *WITH, *(part for name in measures for part in ("-m", name))).out
    assert all(name in text for name in measures)
    assert "…" not in text
    assert tag in text.rpartition("\n\n")[2]
    assert len({len(line) for line in text.splitlines() if line.startswith(("EQ", "MEAN"))}) == 1


def test_compressed_files(epicqa: Callable, tmp_path: Path) -> None:
    for suffix, compress in [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ]:
        run, judgments = tmp_path / f"run.tsv{suffix}", tmp_path / f"judgments.json{suffix}"
        run.write_bytes(compress(RUNS["c"].read_bytes()))
        judgments.write_bytes(compress(JUDGMENTS.read_bytes()))
        assert tsv(epicqa, run, "--judgments", judgments) == tsv(epicqa, RUNS["c"], *WITH)
        run.write_bytes(run.read_bytes()[:-20])
        said = epicqa("score", run, "--judgments", judgments).line()
        assert said.startswith(f"{run}: ") and said.endswith(f", expected a run file, lines of {COLUMNS}")


@pytest.mark.parametrize("spelling", ["crlf", "blank lines", "byte order mark", "no final newline", "spaces"])
def test_other_spellings_of_a_run(epicqa: Callable, tmp_path: Path, spelling: str) -> None:
    data = RUNS["b"].read_bytes()
    run = tmp_path / "run.tsv"
    run.write_bytes(
        {
            "crlf": data.replace(b"\n", b"\r\n"),
            "blank lines": b"\n" + data.replace(b"\n", b"\n \n"),
            "byte order mark": b"\xef\xbb\xbf" + data,
            "no final newline": data[:-1],
            "spaces": data.replace(b"\t", b"   "),
        }[spelling]
    )
    assert tsv(epicqa, run, *WITH) == tsv(epicqa, RUNS["b"], *WITH)


def test_unpadded_ids_are_said_and_score_alike(epicqa: Callable, tmp_path: Path) -> None:
    run = tmp_path / "run.tsv"
    run.write_text(re.sub("-(C|S)0{0,2}([0-9]+)", r"-\1\2", RUNS["b"].read_text()))
    assert run.read_text() != RUNS["b"].read_text()
    done = epicqa("score", run, *WITH, "--format", "tsv")
    assert values_of(done) == tsv(epicqa, RUNS["b"], *WITH)
    assert "numbers of an id not padded to three digits" in done.err


# Output.


@pytest.mark.parametrize("form", ["table", "tsv", "csv", "json", "latex"])
def test_output_goes_to_a_file(epicqa: Callable, tmp_path: Path, form: str) -> None:
    path = tmp_path / "new" / "out"
    printed = epicqa("score", RUNS["a"], *WITH, "--format", form)
    done = epicqa("score", RUNS["a"], *WITH, "--format", form, "-o", path)
    assert (done.status, done.out, done.err) == (0, "", printed.err)
    assert path.read_text() == printed.out
    assert [one.name for one in path.parent.iterdir()] == ["out"]


def test_output_is_whole_or_not_at_all(epicqa: Callable, tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    broken = tmp_path / "broken.tsv"
    broken.write_text("EQ001\n")
    for arguments in [(broken, *WITH), (RUNS["a"], "--judgments", broken), (RUNS["a"], *WITH, "-m", "nope")]:
        assert epicqa("score", *arguments, "-o", path).status == 2
        assert path.read_text() == "old"
    folder = tmp_path / "folder"
    folder.mkdir()
    for bad in (folder, path / "below"):
        done = epicqa("score", RUNS["a"], *WITH, "-o", bad)
        assert (done.status, done.out) == (2, "")
        assert done.err.splitlines()[-1].startswith("epicqa: ")
    assert {one.name for one in tmp_path.iterdir()} == {"out", "broken.tsv", "folder"}


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_empty_runs(epicqa: Callable, tmp_path: Path, content: bytes) -> None:
    run = tmp_path / "run.tsv"
    run.write_bytes(content)
    assert epicqa("score", run, *WITH).line() == (f"{run}: empty, expected lines of {COLUMNS}")


def test_files_that_are_no_runs(epicqa: Callable, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)) * 40)
    assert epicqa("score", binary, *WITH).line().startswith(f"{binary}:2: not UTF-8, {EXPECTED}")
    assert epicqa("score", tmp_path, *WITH).line() == f"{tmp_path}: Is a directory, {EXPECTED}"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "Too many levels of symbolic links" in epicqa("score", loop, *WITH).line()
    absent = tmp_path / "absent"
    assert epicqa("score", absent, *WITH).line() == f"{absent}: No such file or directory, {EXPECTED}"


def test_warnings_are_said_once(epicqa: Callable) -> None:
    one = epicqa("score", RUNS["a"], *WITH).err.splitlines()
    both = epicqa("score", RUNS["a"], RUNS["b"], RUNS["a"], *WITH).err.splitlines()
    assert len(set(both)) == len(both)
    assert set(one) <= set(both)
    for line in both:
        assert line.startswith("warning: ")


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "epicqa", "score", *map(str, (RUNS["a"], *WITH))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert all(line.startswith("warning: ") for line in process.stderr.read().splitlines())


def test_terminals_of_an_old_encoding(fresh: Callable, tmp_path: Path) -> None:
    run = tmp_path / "rün.tsv"
    run.write_bytes(RUNS["b"].read_bytes().replace(b"synthetic_b", "tüg→".encode()))
    # What click takes for a mistake, such as ASCII, it writes as UTF-8.
    for encoding, written, tag in [("latin-1", "latin-1", r"tüg\u2192"), ("ascii", "utf-8", "tüg→")]:
        environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
        for form in ("table", "tsv"):
            done = fresh("score", run, *WITH, "--format", form, env=environment, encoding=written)
            assert tag in done.out


def test_an_odd_question_id_is_no_crash(epicqa: Callable, tmp_path: Path) -> None:
    judgments = tmp_path / "j.json"
    judgments.write_text(
        '[{"question_id": "EQ\\ud800", "nuggets": [{"nugget_id": "n", "nugget": "N"}],'
        ' "annotations": [{"sentence_id": "a-C000-S000", "nugget_ids": ["n"]}]}]'
    )
    done = epicqa("score", RUNS["a"], "--judgments", judgments, "--format", "tsv")
    assert done.status == 2 and done.err.count("\n") == 1


@pytest.mark.parametrize("question_id", ["EQ\n01", "EQ\t01", "EQ\x1b[31m"])
def test_control_characters_never_reach_the_terminal(
    epicqa: Callable, tmp_path: Path, question_id: str
) -> None:
    judgments = write_judgments(
        tmp_path / "j.json", (question_id, {"a-C000-S000": ["n"]}), ("EQ001", {"a-C000-S000": ["n"]})
    )
    run = write_run(tmp_path / "r.tsv", ("EQ001", "a-C000"))
    done = epicqa("score", run, "--judgments", judgments, "--format", "tsv", "-o", tmp_path / "out")
    assert all(line.startswith(("warning: ", "epicqa: ")) for line in done.err.splitlines())
    assert "\x1b" not in done.err
    if done.status == 0:
        text = (tmp_path / "out").read_text()
        assert all(line.count("\t") == 3 for line in text.splitlines()) and "\x1b" not in text


@pytest.mark.parametrize("output", ["", "/", "."])
def test_outputs_without_a_name(
    epicqa: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = epicqa("score", RUNS["a"], *WITH, "-o", output)
    assert (done.status, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("epicqa: ")


def test_a_folder_as_output_is_named(epicqa: Callable, tmp_path: Path) -> None:
    done = epicqa("score", RUNS["a"], *WITH, "-o", tmp_path)
    assert done.err.splitlines()[-1].startswith(f"epicqa: {tmp_path}: Is a directory")


def test_output_through_a_link_and_into_a_pipe(epicqa: Callable, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    assert epicqa("score", RUNS["a"], *WITH, "--format", "tsv", "-o", link).status == 0
    assert link.is_symlink() and target.read_text().startswith("synthetic_a\t")


@pytest.mark.parametrize("options", [["-m", "alpha_nDCG@20"], ["-m", "AP", "--qrels", "q.txt"]])
def test_no_empty_ideal_file(
    epicqa: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("EQ001 1 a 1\n")
    arguments = (RUNS["a"], *WITH, "--definition", "tac2020", *options, "--ideal-file", "ideal.tsv")
    done = epicqa("score", *arguments)
    assert done.status == 2 or Path("ideal.tsv").read_bytes()


def test_that_a_pool_is_missing_is_said_once(epicqa: Callable, tmp_path: Path) -> None:
    judgments = write_judgments(tmp_path / "j.json", ("EQ001", {"a-C000-S000": ["n"]}))
    pools = tmp_path / "pools.json"
    pools.write_text("{}")
    runs = [write_run(tmp_path / f"{name}.tsv", ("EQ001", "a-C000")) for name in "uv"]
    done = epicqa("score", *runs, "--judgments", judgments, "--pools", pools, "--judged-only")
    assert done.err.count("no pool, not condensed: EQ001") == 1


def test_the_status_when_a_reader_has_enough() -> None:
    command = [sys.executable, "-m", "epicqa", "score", *map(str, (RUNS["a"], *WITH))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.close()
    assert process.returncode == 0
