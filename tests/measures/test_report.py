"""Reports: what is in them, that they need nothing else, and that folders are replaced as a whole."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from epicqa import __version__, sample
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.files import sha256_of
from epicqa.measures import Judgments, Scores, read_judgments, score_run
from epicqa.measures import report as report_module
from epicqa.measures.compare import compare
from epicqa.measures.plots import Plot, discovery_curve, gain_by_length, question_bars
from epicqa.measures.report import PAGE, check_folder, write_report
from epicqa.measures.tables import Column, Table
from epicqa.ranking import Ranking
from epicqa.runs import Run, read_run, write_run

GOLDEN = Path(__file__).parent.parent / "golden"
TABLES = ("means", "per-question", "nuggets-first-rank", "discovery", "gain-by-length")
PLOTS = ("per-question", "discovery", "gain-by-length")
EVIL = "<script>alert(1)</script>$x^2$]]>&amp;<!--"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def some_plots() -> list[Plot]:
    return [
        question_bars("exact", ["a"], ["EQ001"], np.array([[0.5]]), [0.5]),
        discovery_curve(["a"], np.zeros((1, 1)), np.ones(1)),
        gain_by_length("exact", ["a"], ["1"], np.array([[0.5]]), np.array([[1]])),
    ]


@pytest.fixture
def drawn(some_plots: list[Plot], monkeypatch: pytest.MonkeyPatch) -> None:
    """Plots that were drawn before, for tests of other parts of a report: they take the most time."""
    monkeypatch.setattr(report_module, "_plots", lambda material: some_plots)


class Page(HTMLParser):
    """Tags with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.source = path.read_text("utf-8")
        self.feed(self.source)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "link", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def check_page(path: Path) -> Page:
    """What holds of every page: it stands alone, hides nothing that runs, and tells what its parts are."""
    page = Page(path)
    assert not page.open
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(names)
    folder = path.parent
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "xlink:href"):
                assert value and (value.startswith("#") or (folder / value).is_file()), (tag, value)
                if value.startswith("#"):
                    assert f'id="{value[1:]}"' in page.source
            if name in ("href", "src", "style", "content") or name.startswith("xml"):
                assert "http" not in (value or ""), (tag, name, value)
    assert "url(http" not in page.source and "@import" not in page.source
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(attributes.get("scope") for tag, attributes in page.tags if tag == "th")
    svgs = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(svgs) == 3
    assert all(one["role"] == "img" and one["aria-label"] for one in svgs)
    assert names.count("caption") == names.count("table")
    return page


def check_files(folder: Path, tables: tuple[str, ...] = TABLES) -> None:
    """Tables and plots are all there and can be read."""
    expected = {PAGE, *(f"{name}.{end}" for name in tables for end in ("csv", "json", "tex"))}
    expected |= {f"{name}.{end}" for name in PLOTS for end in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == expected
    for name in PLOTS:
        ElementTree.parse(folder / f"{name}.svg")
        with Image.open(folder / f"{name}.png") as image:
            image.verify()
    for name in tables:
        assert json.loads((folder / f"{name}.json").read_text("utf-8"))
        rows = list(csv.reader(io.StringIO((folder / f"{name}.csv").read_bytes().decode())))
        assert len({len(row) for row in rows}) == 1
        assert (folder / f"{name}.tex").read_text("utf-8").count(r"\begin{tabular}") == 1


def records(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / f"{name}.csv").read_bytes().decode())))


def golden(
    definition: str = "published", ideal: str = "beam", names: str = "abc"
) -> tuple[list[Scores], list[Run], Judgments]:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    runs = [read_run(GOLDEN / f"synthetic_{name}.tsv") for name in names]
    questions = list(judgments.questions)
    scores = [score_run(run, judgments, questions, definition=definition, ideal=ideal) for run in runs]
    return scores, runs, judgments


def test_golden_runs(tmp_path: Path) -> None:
    scores, runs, judgments = golden()
    folder = tmp_path / "deep" / "report"
    path = write_report(folder, scores, runs, judgments, compare(scores, 0, resamples=1000))
    assert path == folder / PAGE
    check_files(folder, (*TABLES, "comparison"))
    page = check_page(path)
    for said in (
        "NDNS of 3 runs",
        "published definition, 24 questions, ideal by beam search",
        "Passages are taken by score as a number, best first; equal scores by rank, then by line.",
        "track's beam search, width 10",
        f"epicqa {__version__}",
        judgments.fingerprint,
        *(sha256_of(run.path) for run in runs),
        "no passages, counts 0: ",
        "more of this kind (annotated-twice)",
        "runs against synthetic_a",
        "NDNS partial by question",
    ):
        assert said in page.text, said
    assert [path.name for path in folder.parent.iterdir()] == ["report"]

    means = records(folder, "means")
    assert [row["run"] for row in means] == ["synthetic_a", "synthetic_b", "synthetic_c"]
    for row, one in zip(means, scores, strict=True):
        assert row["questions"] == "24"
        for measure in one.values:
            assert float(row[measure]) == one.mean(measure)
            assert f"{one.mean(measure):.4f}" in page.text
    by_question = records(folder, "per-question")
    assert len(by_question) == 72
    assert float(by_question[4]["exact"]) == scores[1].values["exact"][1]


def test_first_ranks_and_discovery_agree(tmp_path: Path, drawn: None) -> None:
    scores, runs, judgments = golden(names="a")
    write_report(tmp_path / "r", scores, runs, judgments)
    ranks: dict[str, list[int]] = {}
    for row in records(tmp_path / "r", "nuggets-first-rank"):
        found = row["rank:synthetic_a"]
        ranks.setdefault(row["question"], []).append(int(found) if found else 10**6)
    assert len(ranks) == 24
    for row in records(tmp_path / "r", "discovery"):
        share = np.mean([np.mean(np.array(of_one) <= int(row["rank"])) for of_one in ranks.values()])
        assert float(row["share:synthetic_a"]) == pytest.approx(share, rel=1e-12)
        assert float(row["ideal"]) >= float(row["share:synthetic_a"])


def test_gain_by_length(tmp_path: Path, drawn: None) -> None:
    scores, runs, judgments = golden(names="ab")
    write_report(tmp_path / "r", scores, runs, judgments)
    rows = records(tmp_path / "r", "gain-by-length")
    for run in runs:
        mine = [row for row in rows if row["run"] == run.tag]
        counted = sum(int(row["passages"]) for row in mine)
        judged = [len(run.questions[name]) for name in judgments.questions if name in run.questions]
        across = sum(
            int((run.questions[name].first_context != run.questions[name].last_context).sum())
            for name in judgments.questions
            if name in run.questions
        )
        assert counted == sum(judged) - across
        assert all(int(row["stating"]) <= int(row["passages"]) for row in mine)


@pytest.mark.parametrize(("definition", "ideal"), [("tac2020", "beam"), ("published", "best")])
def test_other_definition_and_ideal(tmp_path: Path, definition: str, ideal: str, drawn: None) -> None:
    scores, runs, judgments = golden(definition, ideal, "b")
    page = check_page(write_report(tmp_path / "r", scores, runs, judgments))
    assert "NDNS of a run" in page.text
    assert f"{definition} definition, 24 questions, ideal by {ideal} search" in page.text
    assert ("by the score's text" in page.text) == (definition == "tac2020")
    assert ("a stronger search" in page.text) == (ideal == "best")
    assert ("exact: the ideal lies " in page.text) == (ideal == "best")
    assert ("seen nuggets count again" in page.text) == (definition == "tac2020")
    assert set(records(tmp_path / "r", "means")[0]) == {"run", "questions", *scores[0].values}


def test_sample_run(tmp_path: Path, sample_store: CorpusStore, drawn: None) -> None:
    judgments = read_judgments(sample.judgments_path())
    path = tmp_path / "sample.tsv"
    every = Ranking.of_sentences(np.arange(sample_store.n_sentences)[:1000], np.zeros(1000))
    expert = [name for name in judgments.questions if name.startswith("EQ")]
    write_run(path, "sample", dict.fromkeys(expert, every), sample_store)
    run = read_run(path)
    scores = score_run(run, judgments)
    page = check_page(write_report(tmp_path / "r", [scores], [run], judgments))
    check_files(tmp_path / "r")
    assert "viable virus was recovered from stainless steel" in page.text


def hostile(tmp_path: Path, tags: tuple[str, ...]) -> tuple[list[Scores], list[Run], Judgments]:
    path = tmp_path / "judgments.json"
    question = {
        "question_id": f"EQ1{EVIL}",
        "nuggets": [
            {"nugget_id": f"{EVIL}{i}", "nugget": f"{EVIL} \x00\x1b[2J \ud800 {i}"} for i in range(2)
        ],
        "annotations": [
            {"sentence_id": f"{EVIL}-C000-S00{i}", "nugget_ids": [f"{EVIL}{i}"]} for i in range(2)
        ],
    }
    path.write_text(json.dumps([question]))
    judgments = read_judgments(path)
    runs = []
    for i, tag in enumerate(tags):
        run_path = tmp_path / f"run{i}.tsv"
        run_path.write_text(f"EQ1{EVIL} Q0 {EVIL}-C000-S000:{EVIL}-C000-S000 1 1 {tag}\n")
        runs.append(read_run(run_path))
    return [score_run(run, judgments) for run in runs], runs, judgments


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    tags = (EVIL, EVIL, 'id="x"url(#y)#111112', "\x01\x1b[1m漢字\u202e", "x" * 400, r"\frac{1}{0}$\bad$%_#")
    scores, runs, judgments = hostile(tmp_path, tags)
    extra = [Table(EVIL, (Column(EVIL), Column("n")), ((EVIL, 1.5),), (EVIL,))]
    path = write_report(
        tmp_path / "r", scores, runs, judgments, compare(scores, resamples=100), extra_tables=extra
    )
    page = check_page(path)
    assert "<script" not in page.source
    assert EVIL in page.text
    # What tells the runs apart is the file.
    assert f"{EVIL} ({runs[1].path.name})" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]", page.source)
    check_files(tmp_path / "r", (*TABLES, "comparison", "more-1-script-alert-1-script-x-2-amp"))
    for name in PLOTS:
        svg = ElementTree.parse(tmp_path / "r" / f"{name}.svg")
        words = "".join(svg.getroot().itertext())
        assert EVIL[:20] in words
        assert "#111112" in words or name != "discovery"
    tex = (tmp_path / "r" / "means.tex").read_text()
    assert r"\textless{}script\textgreater{}" in tex and "$x" not in tex.replace(r"\$x", "")


def test_same_bytes_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    scores, runs, judgments = golden(names="ab")
    write_report(tmp_path / "1", scores, runs, judgments)
    # Settings of the user's own change nothing, and stay as they are.
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path"}):
        write_report(tmp_path / "2", *golden(names="ab"))
        assert matplotlib.rcParams["font.size"] == 20
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "2").iterdir())
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_an_earlier_report_is_replaced_as_a_whole(tmp_path: Path, drawn: None) -> None:
    scores, runs, judgments = golden(names="ab")
    folder = tmp_path / "r"
    folder.mkdir()
    write_report(folder, scores, runs, judgments, compare(scores, resamples=100))
    assert (folder / "comparison.csv").exists()
    write_report(folder, scores[:1], runs[:1], judgments)
    check_files(folder)
    assert "NDNS of a run" in (folder / PAGE).read_text()


@pytest.mark.parametrize("name", ["notes.txt", ".git", "means.csv", "report.html"])
def test_other_folders_are_refused(tmp_path: Path, name: str, drawn: None) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(
        EpicqaError, match=f"{folder}: holds {re.escape(name)}, which is of no earlier report"
    ):
        write_report(folder, *golden(names="a"))
    assert (folder / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["r"]


def test_a_note_in_an_earlier_report_is_not_lost(tmp_path: Path, drawn: None) -> None:
    folder = tmp_path / "r"
    write_report(folder, *golden(names="a"))
    check_folder(folder)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(EpicqaError, match=r"holds notes\.txt"):
        check_folder(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(EpicqaError, match="there and not a folder"):
        check_folder(tmp_path / "file")


def test_a_failure_leaves_the_earlier_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: None
) -> None:
    folder = tmp_path / "r"
    write_report(folder, *golden(names="a"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    rename = Path.rename

    def full(self: Path, target: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise OSError("no space")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="no space"):
        write_report(folder, *golden(names="b"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"r", "cache"}


def test_through_a_link(tmp_path: Path, drawn: None) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_report(tmp_path / "link", *golden(names="a"))
    assert (tmp_path / "link").is_symlink()
    check_files(tmp_path / "real")


def test_runs_of_different_questions(tmp_path: Path, drawn: None) -> None:
    _, runs, judgments = golden(names="ab")
    expert = [name for name in judgments.questions if name.startswith("EQ")]
    general = [name for name in judgments.questions if name.startswith("CQ")]
    scores = [score_run(run, judgments, chosen) for run, chosen in zip(runs, (expert, general), strict=True)]
    page = check_page(write_report(tmp_path / "r", scores, runs, judgments))
    assert "scored on different questions, so their means cannot be compared" in page.text
    assert len(records(tmp_path / "r", "per-question")) == 24


def test_scores_that_do_not_belong_together(tmp_path: Path, drawn: None) -> None:
    scores, runs, judgments = golden(names="ab")
    (released,), _, _ = golden("tac2020", names="b")
    with pytest.raises(EpicqaError, match="scores with definition published and tac2020, expected one"):
        write_report(tmp_path / "r", [scores[0], released], runs, judgments)
    (best,), _, _ = golden(ideal="best", names="b")
    with pytest.raises(EpicqaError, match="scores with ideal beam and best"):
        write_report(tmp_path / "r", [scores[0], best], runs, judgments)
    with pytest.raises(ValueError, match="2 scores of 1 runs"):
        write_report(tmp_path / "r", scores, runs[:1], judgments)
    assert not (tmp_path / "r").exists()


def test_run_that_finds_nothing(tmp_path: Path) -> None:
    _, _, judgments = golden(names="a")
    path = tmp_path / "run.tsv"
    path.write_text("EQ001 Q0 z-C000-S000:z-C001-S002 1 1 nothing\n")
    run = read_run(path)
    page = check_page(write_report(tmp_path / "r", [score_run(run, judgments)], [run], judgments))
    assert "0.0000" in page.text
    check_files(tmp_path / "r")


def test_other_measures_as_further_tables(tmp_path: Path, drawn: None) -> None:
    scores, runs, judgments = golden(names="a")
    extra = [
        Table("Documents: nDCG@10", (Column("run"), Column("nDCG@10", form=".4f")), (("a", 0.51234),)),
        Table("Documents: nDCG@10", (Column("run"), Column("none")), (("a", None),), label="again"),
    ]
    page = check_page(write_report(tmp_path / "r", scores, runs, judgments, extra_tables=extra))
    assert "More results" in page.text and "0.5123" in page.text
    check_files(tmp_path / "r", (*TABLES, "more-1-documents-ndcg-10", "more-2-again"))


def test_measures_other_than_ndns(tmp_path: Path, drawn: None) -> None:
    (one,), runs, judgments = golden(names="a")
    other = replace(one, values={"alpha_nDCG@20": one.values["exact"] / 2})
    page = check_page(write_report(tmp_path / "r", [other], runs, judgments))
    assert "Scores of a run" in page.text and "alpha_nDCG@20 by question" in page.text
    assert "exact: every sentence counts" in page.text


def test_page_is_drawn_from_the_package() -> None:
    """The template lies where the package's data is looked for."""
    assert (Path(report_module.__file__).parent / "report.html.j2").is_file()


def test_plots_of_ten_runs_and_many_questions() -> None:
    rng = np.random.default_rng(0)
    names = [f"run_{i}" for i in range(10)]
    values = rng.random((10, 80))
    values[0, 3] = np.nan
    bars = question_bars("NDNS exact", names, [f"EQ{i:03d}" for i in range(80)], values, [0.5] * 10)
    curve = discovery_curve(names, np.sort(rng.random((10, 30)), axis=1), np.ones(30))
    length = gain_by_length(
        "exact", names, ["1", "2"], np.full((10, 2), np.nan), np.zeros((10, 2), dtype=np.int64)
    )
    for plot in (bars, curve, length):
        root = ElementTree.fromstring(plot.inline())
        words = [element.text for element in root.iter("text")]
        assert sum(any(name in (word or "") for word in words) for name in names) == 10
        assert not {"http", "#111112"} & set(re.findall("http|#111112", plot.inline()))
        colours = set(re.findall("stroke: (#[0-9a-fA-F]{6})", plot.inline())) - {"#808080"}
        assert len({colour.upper() for colour in colours}) <= 6
    assert "EQ079" in "".join(ElementTree.fromstring(bars.svg).itertext())


def test_plots_of_one_question_and_one_rank() -> None:
    bars = question_bars("exact", ["a"], ["EQ001"], np.array([[np.nan]]), [0.0])
    curve = discovery_curve(["a"], np.zeros((1, 1)), np.ones(1))
    for plot in (bars, curve):
        ElementTree.fromstring(plot.svg)
