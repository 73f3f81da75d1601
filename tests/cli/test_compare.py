"""``epicqa compare`` as a user runs it, on the three golden runs."""

import csv
import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"
JUDGMENTS = GOLDEN / "synthetic_judgments.json"
RUNS = [GOLDEN / f"synthetic_{name}.tsv" for name in "abc"]
WITH = ("--judgments", JUDGMENTS)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))


def golden() -> dict[tuple[str, str, str], float]:
    """Values of the published definition by tag, question, measure."""
    found = {}
    for name in "abc":
        for kind in ("consumer", "expert"):
            for row in (GOLDEN / f"published_{name}_{kind}.tsv").read_text().splitlines():
                tag, question, measure, value = row.split("\t")[:4]
                found[tag, question, measure] = float(value)
    return found


def test_json_holds_the_golden_values(epicqa: Callable) -> None:
    ended = epicqa("compare", *RUNS, *WITH, "--per-question", "--format", "json")
    assert ended.status == 0
    (record,) = json.loads(ended.out)
    assert (record["definition"], record["ideal"], record["baseline"]) == ("published", "beam", None)
    expected = {key: value for key, value in golden().items() if key[1] != "MEAN"}
    found = {
        (run["tag"], question, measure): value
        for run in record["runs"]
        for question, values in run["questions"].items()
        for measure, value in values.items()
    }
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
    assert len(record["contrasts"]) == 9
    first = record["contrasts"][0]
    assert (first["run"], first["against"], first["measure"]) == ("synthetic_a", "synthetic_b", "exact")
    differences = [
        expected["synthetic_a", question, "exact"] - expected["synthetic_b", question, "exact"]
        for question in record["questions"]
    ]
    assert first["difference"] == pytest.approx(sum(differences) / 24, abs=1e-12)
    assert first["wins"] == sum(one > 1e-9 for one in differences) == 12
    assert first["losses"] == sum(one < -1e-9 for one in differences) == 11
    assert first["low"] < first["difference"] < first["high"]
    assert 0 < first["p"] <= first["p_holm"] <= 1


def test_table_against_a_baseline(epicqa: Callable) -> None:
    ended = epicqa("compare", *RUNS, *WITH, "--baseline", RUNS[1], "--questions", "expert", "-m", "exact")
    lines = ended.out.splitlines()
    assert lines[0] == "NDNS exact, published definition: runs against synthetic_b"
    assert " ".join(lines[1].split()) == "run mean diff. 95% low 95% high p p (Holm) W/T/L"
    means = golden()
    for line, name in zip(lines[3:6], "bac", strict=True):
        values = [means[f"synthetic_{name}", f"EQ{i:03d}", "exact"] for i in range(1, 25, 2)]
        assert line.split()[:2] == [f"synthetic_{name}", f"{sum(values) / 12:.4f}"]
    assert lines[3].split()[2:] == ["-"] * 6
    assert "all 4096 swaps; Holm: adjusted for 2 tests" in ended.out
    assert ended.err.startswith("warning: ")


def test_table_of_every_pair(epicqa: Callable) -> None:
    ended = epicqa("compare", *RUNS, *WITH, "-m", "exact", "-m", "relaxed", "--per-question")
    titles = [line for line in ended.out.splitlines() if "definition" in line]
    assert titles == [
        "Means, published definition",
        "NDNS exact, published definition: every pair of runs",
        "NDNS relaxed, published definition: every pair of runs",
        "NDNS exact by question, published definition",
        "NDNS relaxed by question, published definition",
    ]
    assert "no passages, counts 0: EQ005, CQ010, EQ015, CQ020" in ended.err


def test_baseline_beside_the_runs(epicqa: Callable) -> None:
    rows = epicqa("compare", RUNS[0], "--baseline", RUNS[2], *WITH, "--format", "tsv").out.splitlines()
    assert [row.split("\t")[:3] for row in rows[1:]] == [
        [measure, "synthetic_a", "synthetic_c"] for measure in ("exact", "partial", "relaxed")
    ]


def test_other_definition_and_ideal(epicqa: Callable) -> None:
    ended = epicqa("compare", *RUNS, *WITH, "--definition", "tac2020", "--format", "tsv")
    rows = [row.split("\t") for row in ended.out.splitlines()[1:]]
    assert list(dict.fromkeys(row[0] for row in rows)) == [
        *("exact", "partial", "relaxed", "ndcg-exact", "ndcg")
    ]
    (best,) = json.loads(epicqa("compare", *RUNS, *WITH, "--ideal", "best", "--format", "json").out)
    (beam,) = json.loads(epicqa("compare", *RUNS, *WITH, "--format", "json").out)
    assert best["ideal"] == "best"
    for one, other in zip(best["runs"], beam["runs"], strict=True):
        assert all(one["mean"][measure] <= other["mean"][measure] + 1e-12 for measure in one["mean"])


def test_files(epicqa: Callable, tmp_path: Path) -> None:
    for form in ("table", "tsv", "csv", "json", "latex"):
        path = tmp_path / f"out.{form}"
        arguments = ("compare", *RUNS, *WITH, "--format", form, "--resamples", "200")
        ended = epicqa(*arguments, "-o", path)
        assert (ended.status, ended.out) == (0, "")
        assert path.read_text() == epicqa(*arguments).out
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == 9
    assert float(rows[0]["mean"]) - float(rows[0]["mean_against"]) == pytest.approx(
        float(rows[0]["difference"]), abs=1e-12
    )
    latex = (tmp_path / "out.latex").read_text()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\label{tab:") == 4
    assert r"synthetic\_a & \textbf{0.3619}" in latex


def test_values_as_csv(epicqa: Callable) -> None:
    ended = epicqa("compare", *RUNS, *WITH, "--per-question", "--format", "csv", "-m", "exact")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert len(rows) == 24 * 3
    expected = golden()
    for row in rows:
        assert float(row["value"]) == pytest.approx(expected[row["run"], row["question"], "exact"], abs=1e-12)


def test_same_seed_same_output(epicqa: Callable) -> None:
    arguments = ("compare", *RUNS, *WITH, "--resamples", "500", "--format", "tsv")
    assert epicqa(*arguments, "--seed", "1").out == epicqa(*arguments, "--seed", "1").out
    assert epicqa(*arguments, "--seed", "1").out != epicqa(*arguments, "--seed", "2").out


def test_same_tags_and_hostile_ones(epicqa: Callable, tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{name}.tsv" for name in ("one", "two", "three"))
    text = RUNS[0].read_text()
    first.write_text(text)
    second.write_text(text)
    third.write_text(text.replace("synthetic_a", "=\\x[red]\x1b[1m<b>"))
    ended = epicqa("compare", first, second, third, *WITH, "-m", "exact", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [row["run"] for row in rows] == [*["synthetic_a (one.tsv)"] * 2, "synthetic_a (two.tsv)"]
    assert rows[1]["against"] == "'=\\x[red] [1m<b>"
    assert [row["ties"] for row in rows] == ["24"] * 3
    table = epicqa("compare", first, third, *WITH, "-m", "exact").out
    assert "=\\x[red] [1m<b>" in table
    assert r"=\textbackslash{}x{[}red{]} {[}1m\textless{}b\textgreater{}" in (
        epicqa("compare", first, third, *WITH, "-m", "exact", "--format", "latex").out
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((RUNS[0], *WITH), "synthetic_a.tsv: nothing to compare with, expected two runs or more"),
        ((RUNS[0], RUNS[0], *WITH), "given twice"),
        (
            (*RUNS, *WITH, "-m", "ndcg"),
            "measure ndcg: not of the published definition, expected one of exact, partial, relaxed",
        ),
        (RUNS, "judgments unknown"),
        ((RUNS[0], "absent.tsv", *WITH), "absent.tsv: No such file"),
        ((*RUNS, "--judgments", "absent.json"), "absent.json: No such file"),
    ],
)
def test_bad_input_is_one_line(epicqa: Callable, arguments: tuple, said: str) -> None:
    ended = epicqa("compare", *arguments)
    assert (ended.status, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith("epicqa: ")
    assert said in last


def test_unreadable_runs_are_refused_with_every_line(epicqa: Callable, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tsv"
    broken.write_text("EQ001\nEQ001 Q0 a 1 1 t\n")
    ended = epicqa("compare", RUNS[0], broken, *WITH)
    assert (ended.status, ended.out) == (2, "")
    assert [line.split(": ")[1] for line in ended.err.splitlines()] == [f"{broken}:1", f"{broken}:2"]


def test_help_states_tests_and_ties(epicqa: Callable) -> None:
    said = " ".join(epicqa("compare", "--help").out.split())
    for part in ("bootstrap", "randomisation test", "Holm's correction", "at most 1e-9 is a tie"):
        assert part in said


def test_ten_runs_take_a_moment(epicqa: Callable, tmp_path: Path) -> None:
    text = RUNS[2].read_text()
    paths = [tmp_path / f"{i}.tsv" for i in range(7)]
    for i, path in enumerate(paths):
        path.write_text(text.replace("synthetic_c", f"copy{i}"))
    epicqa("compare", *RUNS, *WITH, "--resamples", "100")
    started = time.process_time()
    ended = epicqa("compare", *RUNS, *paths, *WITH, "--format", "tsv")
    # CPU of both cores, with room for a busy machine; alone it is about one second.
    assert time.process_time() - started < 6
    assert len(ended.out.splitlines()) == 1 + 3 * 45


def test_measures_of_nuggets_and_of_documents(epicqa: Callable, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    documents = sorted({line.split()[2].split("-C")[0] for line in RUNS[0].read_text().splitlines()[:60]})
    qrels.write_text("".join(f"EQ001 1 {name} {i % 3 - 1}\n" for i, name in enumerate(documents)))
    measures = ("-m", "exact", "-m", "StRecall@20", "-m", "nDCG@10", "-m", "AP")
    ended = epicqa("compare", *RUNS[:2], *WITH, *measures, "--qrels", qrels, "--format", "json")
    assert ended.status == 0, ended.err
    nuggets, of_documents = json.loads(ended.out)
    assert list(nuggets["runs"][0]["mean"]) == ["exact", "StRecall@20"]
    assert list(of_documents["runs"][0]["mean"]) == ["nDCG@10", "AP"]
    assert (len(nuggets["questions"]), of_documents["questions"]) == (24, ["EQ001"])
    scored = epicqa("score", *RUNS[:2], *WITH, *measures, "--qrels", qrels, "--format", "tsv").out
    means = {
        tuple(row.split("\t")[:3]): float(row.split("\t")[3])
        for row in scored.splitlines()
        if "\tMEAN\t" in row
    }
    for record in (nuggets, of_documents):
        for run in record["runs"]:
            for measure, mean in run["mean"].items():
                assert means[run["tag"], "MEAN", measure] == mean
    flat = epicqa("compare", *RUNS[:2], *WITH, *measures, "--qrels", qrels, "--format", "csv").out
    assert [row.split(",")[0] for row in flat.splitlines()] == [
        *("measure", "exact", "StRecall@20", "nDCG@10", "AP")
    ]
    assert (
        "documents, by their first passages"
        in epicqa("compare", *RUNS[:2], *WITH, *measures, "--qrels", qrels).out
    )
