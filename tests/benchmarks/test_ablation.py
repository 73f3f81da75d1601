"""The ablation on a small made-up copy of the data, with a reranker of random weights."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.quality import ablation, collections
from benchmarks.quality.ablation import ROWS, main, rows_of
from benchmarks.quality.ablation_table import BASELINE, RESAMPLES
from benchmarks.quality.data import same
from epicqa import pipeline, sample
from epicqa.cli.score import score_command
from epicqa.config import Config, as_dict
from epicqa.corpus.sources import parse
from epicqa.index.build import open_index
from epicqa.measures import read_judgments
from epicqa.measures.significance import paired_bootstrap
from epicqa.pipeline import settle
from epicqa.running import make_run

ARTICLES = [
    (
        "On masks\n\nMasks filter the air. They must fit.\nAnd be dry.\n\nFitting masks stop drops of spit.",
        [("What do masks stop?", "drops of spit"), ("What do masks filter?", "the air. They")],
    ),
    ("On soap\n\nSoap destroys the envelope of a virus. So does alcohol.", [("What helps?", "Soap")]),
    ("On more soap\n\nNothing new. Soap works for all hands.", [("What helps?", "Soap works")]),
]


def covidqa_file(articles: list[tuple[str, list[tuple[str, str]]]]) -> bytes:
    paragraphs = [
        {
            "document_id": number,
            "context": text,
            "qas": [
                {"question": question, "answers": [{"text": answer, "answer_start": text.index(answer)}]}
                for question, answer in asked
            ],
        }
        for number, (text, asked) in enumerate(articles)
    ]
    return gzip.compress(json.dumps({"data": [{"paragraphs": paragraphs}]}).encode())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real data's layout; the mini collection is the sample, with two judged questions of each kind."""
    data = tmp_path_factory.mktemp("data")

    def put(name: str, content: bytes | str | Any) -> None:
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)

    documents = sample.documents_path().read_bytes()
    judged = json.loads(sample.judgments_path().read_bytes())
    two = [one for one in judged if one["question_id"][-1] in "12" and one["question_id"][-2] == "0"]
    pools = {one["question_id"]: [one["annotations"][0]["sentence_id"].rpartition("-S")[0]] for one in two}
    put("mini/judgments.dev.json", two)
    put("mini/pools.dev.json", pools)
    put("mini/exclude.txt", "covidqa_squad\t0\n")
    for kind in ("expert", "general"):
        put(f"mini/{kind}.jsonl.xz", lzma.compress(documents))
        questions = json.loads(sample.questions_path(kind).read_bytes())
        put(f"epicqa/questions/ae/{kind}_questions.json", questions[:3])
        put(f"epicqa/questions/e2e/{kind}_questions.json", questions[3:5])
    put("pairs/covidqa_squad.json.gz", covidqa_file(ARTICLES))
    put("epicqa/healthver-derived/documents.jsonl.gz", gzip.compress(documents))
    expert = json.loads(sample.questions_path("expert").read_bytes())
    put("epicqa/healthver-derived/questions.json", expert[2:6])
    put("epicqa/healthver-derived/judgments.json", judged[2:5])
    papers = [
        {"cord_uid": "aaa", "title": "Masks", "abstract": "Masks stop drops. They do so well."},
        {"cord_uid": "bbb", "title": "Nothing but a title on masks"},
        {"cord_uid": "ccc", "title": "Soap", "abstract": "", "journal": "X"},
    ]
    lines = "".join(json.dumps(paper) + "\n" for paper in papers)
    put("cord19/cord19_titles_abstracts.jsonl.gz", gzip.compress(lines.encode()))
    put("cord19/qrels.covid-complete.held.txt", "1 1 bbb 2\n1 1 ccc 0\n2 1 ccc 1\n")
    topics = (
        '<topics><topic number="1"><query>masks</query><question>do masks work</question>'
        '<narrative>\nseeking studies of masks </narrative></topic><topic number="2"><query>soap</query>'
        "<question>does soap work</question><narrative>n</narrative></topic></topics>"
    )
    put("trec-covid/topics/topics.covid-round5.xml", topics)
    return data


class Ablated:
    """The ablation run in a folder.

    Attributes:
        out: what it wrote.
        printed: its tables.
        windows: how often the cross-encoder was given a question and the same texts.
    """

    def __init__(self, out: Path, printed: str, windows: Counter[tuple[str, ...]]) -> None:
        self.out = out
        self.printed = printed
        self.windows = windows
        self.record = json.loads((out / "ablation.json").read_bytes())

    def rows(self, name: str) -> dict[str, Any]:
        return dict(self.record["sets"][name]["rows"])


def printed_by(*arguments: object) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        main([str(one) for one in arguments])
    return out.getvalue()


@pytest.fixture(scope="module")
def ablated(data: Path, tiny_reranker: Path, tmp_path_factory: pytest.TempPathFactory) -> Ablated:
    """All rows on all sets."""
    out = tmp_path_factory.mktemp("ablated")
    windows: Counter[tuple[str, ...]] = Counter()
    scores = pipeline.cross_encoder_scores

    def counting(loaded, question, texts):
        windows[question, *texts] += 1
        return scores(loaded, question, texts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(out))
        patch.setattr(pipeline, "cross_encoder_scores", counting)
        printed = printed_by(out, data, "--bi-encoder", "static", "--reranker", tiny_reranker)
    return Ablated(out, printed, windows)


@pytest.fixture
def home(ablated: Ablated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what was written, to go on from."""
    out = tmp_path / "out"
    shutil.copytree(ablated.out, out)
    monkeypatch.setenv("EPICQA_HOME", str(out))
    return out


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the questions that were answered anew."""
    asked: list[str] = []
    answer = pipeline.Pipeline.answer

    def noting(self, questions, **others):
        asked.extend(one.question_id for one in questions)
        return answer(self, questions, **others)

    monkeypatch.setattr(pipeline.Pipeline, "answer", noting)
    return asked


def test_rows(ablated: Ablated) -> None:
    assert (
        *("question", "fields", "dense", "fusion", "context", "bi-encoder", "cross-encoder", "length"),
        *("mmr", "novelty", "spans", "expert", "general", "alone", "rm3", "hltri"),
    ) == ROWS
    assert list(ablated.record["sets"]) == list(collections.SETS)
    for name in collections.SETS:
        assert list(ablated.rows(name)) == list(ROWS)
    rows = {row.name: as_dict(row.config) for row in rows_of(Config())}

    def changed(row: str, other: str) -> dict[str, Any]:
        return {key: value for key, value in rows[row].items() if value != rows[other][key]}

    default = as_dict(Config())
    assert changed("fields", "question") == {"fields": "all"}
    assert changed("dense", "fields") == {"retriever": "dense"}
    assert changed("fusion", "fields") == {"retriever": "hybrid"}
    assert changed("context", "fusion") == {"context_weight": default["context_weight"]}
    assert changed("bi-encoder", "context") == {"bi_encoder": "minilm"}
    assert changed("cross-encoder", "bi-encoder") == {"reranker": "epicqa"}
    assert changed("length", "cross-encoder") == {"length_weight": default["length_weight"]}
    assert changed("mmr", "length") == {"diversity": "mmr"}
    assert changed("novelty", "length") == {"diversity": "novelty"}
    assert changed("spans", "novelty") == {"max_sentences": 3}
    assert changed("expert", "novelty") == {"audience": "expert"}
    assert changed("general", "novelty") == {"audience": "general"}
    assert changed("alone", "cross-encoder") == {"first_weight": 0, "bi_encoder": "none"}


def test_novelty_is_the_default(ablated: Ablated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(ablated.out))
    index = open_index("mini-general")
    (novelty,) = [row.config for row in rows_of(Config()) if row.name == "novelty"]
    assert settle(novelty, index)[0] == settle(Config(), index)[0]


@pytest.mark.parametrize(
    ("name", "measures", "options"),
    [
        (
            "mini-general",
            ("exact", "partial", "relaxed", "alpha_nDCG@20", "NuggetRecall@1000", "judged@20"),
            ("--judgments", "mini/judgments.dev.json", "--pools", "mini/pools.dev.json"),
        ),
        ("healthver", ("exact",), ("--judgments", "epicqa/healthver-derived/judgments.json")),
        ("trec-covid", ("nDCG@10",), ("--qrels", "cord19/qrels.covid-complete.held.txt")),
    ],
)
def test_figures_are_those_of_epicqa_score(
    ablated: Ablated, data: Path, name: str, measures: tuple[str, ...], options: tuple[str, ...]
) -> None:
    places = [str(data / one) if i % 2 else one for i, one in enumerate(options)]
    asked = [part for one in measures if one != "judged@20" for part in ("-m", one)]
    for row in ablated.rows(name).values():
        result = CliRunner().invoke(score_command, [row["run"], *places, *asked, "--format", "json"])
        assert result.exit_code == 0, result.output
        (scored,) = json.loads(result.stdout)
        assert {key: one["mean"] for key, one in row["measures"].items()} == scored["mean"]
        for measure in measures:
            values = [one[measure] for one in scored["questions"].values()]
            assert row["measures"][measure]["values"] == values


def test_a_run_is_that_of_epicqa_run(
    ablated: Ablated, data: Path, tiny_reranker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(ablated.out))
    for name in ("mmr", "spans", "alone"):
        base = Config(bi_encoder="static", reranker=str(tiny_reranker))
        (row,) = [one for one in rows_of(base) if one.name == name]
        config = as_dict(row.config) | {
            "index": "mini-general",
            "questions": str(data / "epicqa/questions/ae/general_questions.json"),
        }
        made = make_run(Config(**config), tag=name, output=tmp_path / f"{name}.tsv")
        lines = made.path.read_text().splitlines()
        ours = Path(ablated.rows("mini-general")[name]["run"]).read_text().splitlines()
        assert ours == [line for line in lines if line.startswith(("CQ001", "CQ002"))]


def test_intervals_and_differences(ablated: Ablated) -> None:
    rows = ablated.rows("mini-general")
    for row, other in (("dense", BASELINE), ("mmr", BASELINE), ("mmr", "length"), ("expert", "novelty")):
        found = rows[row]["measures"]["exact"]
        base = rows[other]["measures"]["exact"]
        low, high = paired_bootstrap(found["values"], resamples=RESAMPLES)
        assert (found["low"], found["high"]) == (low, high)
        difference = np.array(found["values"]) - base["values"]
        gain = rows[row]["percent_over"][other]["exact"]
        assert gain["mean"] == pytest.approx(100 * difference.mean() / base["mean"])
        ends = 100 * paired_bootstrap(difference, resamples=RESAMPLES) / base["mean"]
        assert [gain["low"], gain["high"]] == pytest.approx(list(ends))
    assert {name: list(row["percent_over"]) for name, row in rows.items()} == {
        **{name: [BASELINE] for name in ROWS},
        BASELINE: [],
        **{name: [BASELINE, "length"] for name in ("mmr", "novelty")},
        **{name: [BASELINE, "novelty"] for name in ("spans", "expert", "general")},
    }


def test_models_score_once(ablated: Ablated) -> None:
    assert len(ablated.windows) > 5
    assert set(ablated.windows.values()) == {1}


def test_tables(ablated: Ablated) -> None:
    lines = ablated.printed.splitlines()
    assert all(len(line) <= 120 for line in lines)
    assert lines[0] == "All sets, main measure"
    assert lines[1].split("  ")[0] == "row"
    headings = ("mini-expert exact", "mini-general exact", "covidqa exact", "healthver exact")
    assert all(heading in lines[1] for heading in (*headings, "trec-covid nDCG@10"))
    rows = ablated.rows("mini-general")
    for row in rows_of(Config()):
        found = rows[row.name]["measures"]["exact"]
        cell = f"{found['mean']:.3f} ({found['low']:.2f}-{found['high']:.2f})".replace("0.", ".")
        assert any(line.startswith(f"{row.label} ") and cell in line for line in lines)
    assert any(line.startswith("+ mmr / + length ") for line in lines)
    # Of the sets with one measure, the first tables tell all.
    assert [line.split(":")[0] for line in lines if line.endswith(" sentences")] == [
        "mini-expert",
        "mini-general",
        "covidqa",
    ]
    notes = ablated.printed.replace("\n", " ")
    assert "weights were chosen on these judgments" in notes
    assert all(f" {name}: No model was trained on its" in notes for name in collections.SETS)


def test_markdown(home: Path, data: Path, tiny_reranker: Path, answered: list[str]) -> None:
    printed = printed_by(
        *(home, data, "--bi-encoder", "static", "--reranker", tiny_reranker),
        *("--only", "healthver", "--rows", "fields,length,mmr,alone", "--markdown"),
    )
    assert not answered
    lines = printed.splitlines()
    assert lines[0].startswith("**healthver: 3 questions, ")
    assert lines[2:4] == ["| row | exact |", "|---|---|"]
    labels = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    table = ["row", "BM25, all fields", "+ length", "+ mmr", "", "cross-encoder alone"]
    differences = ["row", "+ length", "+ mmr", "", "cross-encoder alone", "", "+ mmr / + length"]
    assert labels == table + differences


def test_nothing_is_answered_twice(
    home: Path, ablated: Ablated, data: Path, tiny_reranker: Path, answered: list[str]
) -> None:
    again = printed_by(home, data, "--bi-encoder", "static", "--reranker", tiny_reranker)
    assert not answered
    assert again == ablated.printed


def test_an_interrupted_benchmark_goes_on(
    home: Path,
    ablated: Ablated,
    data: Path,
    tiny_reranker: Path,
    answered: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.rmtree(home / "runs")
    (home / "ablation.json").unlink()
    command = (home, data, "--bi-encoder", "static", "--reranker", tiny_reranker, "--only", "mini-general")
    write = ablation.write_run

    def stopping(path, tag, rankings, store):
        if tag == "mmr":
            raise KeyboardInterrupt
        write(path, tag, rankings, store)

    with monkeypatch.context() as patch:
        patch.setattr(ablation, "write_run", stopping)
        with pytest.raises(KeyboardInterrupt):
            printed_by(*command)
    assert len(list((home / "runs" / "mini-general").iterdir())) == ROWS.index("mmr")
    answered.clear()
    printed_by(*command)
    assert answered == ["CQ001", "CQ002"] * len(ROWS[ROWS.index("mmr") :])
    found = json.loads((home / "ablation.json").read_bytes())["sets"]["mini-general"]["rows"]
    for name, row in ablated.rows("mini-general").items():
        assert found[name]["measures"] == row["measures"]
        assert Path(found[name]["run"]).read_bytes() == Path(row["run"]).read_bytes()


def test_what_decides_a_run_makes_it_anew(
    home: Path,
    data: Path,
    tiny_reranker: Path,
    tmp_path: Path,
    answered: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = tmp_path / "data"
    shutil.copytree(data, changed)
    questions = changed / "epicqa/questions/ae/general_questions.json"
    texts = json.loads(questions.read_bytes())
    texts[1]["background"] += " and doors"
    questions.write_text(json.dumps(texts))
    # Documents at another place are indexed anew; what decides is what the index holds.
    command = ("--only", "mini-general", "--bi-encoder", "static")
    printed_by(home, changed, *command, "--rows", "question,fields")
    assert answered == ["CQ001", "CQ002"] * 2
    answered.clear()
    printed_by(home, data, *command, "--rows", "fields,bi-encoder,alone", "--reranker", tiny_reranker)
    assert not answered
    model = tmp_path / "model"
    shutil.copytree(tiny_reranker, model)
    (model / "tokenizer_config.json").write_text((model / "tokenizer_config.json").read_text() + "\n")
    printed_by(home, data, *command, "--rows", "fields,bi-encoder,alone", "--reranker", model)
    assert answered == ["CQ001", "CQ002"]
    answered.clear()
    monkeypatch.setattr(ablation, "_code", lambda: ["another formula"])
    printed_by(home, data, *command, "--rows", "dense")
    assert answered == ["CQ001", "CQ002"]


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        ("mini/general.jsonl.xz", "mini-general"),
        ("mini/pools.dev.json", "mini-expert"),
        ("epicqa/questions", "mini-expert"),
        ("pairs/covidqa_squad.json.gz", "covidqa"),
        ("mini/exclude.txt", "covidqa"),
        ("epicqa/healthver-derived/judgments.json", "healthver"),
        ("trec-covid/topics/topics.covid-round5.xml", "trec-covid"),
        ("cord19/qrels.covid-complete.held.txt", "trec-covid"),
    ],
)
def test_missing_data_is_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, name: str
) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    there = tmp_path / "data"
    shutil.copytree(data, there)
    path = there / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stopped:
        main([str(out), str(there), "--only", name, "--reranker", "none", "--bi-encoder", "none"])
    assert stopped.value.code == f"{path}: not there, expected the real data in {there}"
    assert not out.exists()


def test_a_missing_model_is_one_line(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "out"), str(data), "--reranker", "./nowhere"])
    assert str(stopped.value.code).startswith("unknown model './nowhere'")
    assert "\n" not in str(stopped.value.code)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--only", "--rows"])
def test_an_unknown_name(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path), option, "healthver,nonsense" if option == "--only" else "mmr,nonsense"])
    assert "'nonsense', expected some of " in capsys.readouterr().err


# What is asked of what.


def test_covidqa(data: Path, tmp_path: Path) -> None:
    found = collections.held_covidqa(data, tmp_path)
    documents = [parse(line) for line in found.source.read_bytes().splitlines()]
    texts = {
        sentence.sentence_id: context.text[sentence.start : sentence.end]
        for document in documents
        for context in document.contexts
        for sentence in context.sentences
    }
    whole = " ".join(text for text, _ in ARTICLES)
    assert same("".join(texts.values())) == same(whole)
    assert [len(document.contexts) for document in documents] == [3, 2, 2]
    assert [document.title for document in documents] == ["On masks", "On soap", "On more soap"]
    assert found.judgments is not None
    judged = read_judgments(found.judgments).questions
    assert sorted(judged) == [one.question_id for one in found.questions]
    stated = {}
    for question, raw in zip(found.questions, json.loads(found.judgments.read_bytes()), strict=True):
        assert raw["question_id"] == question.question_id
        stated[question.question] = {texts[one["sentence_id"]] for one in raw["annotations"]}
        assert len(judged[question.question_id].nuggets) == 1
    assert stated == {
        "What do masks stop?": {"Fitting masks stop drops of spit."},
        "What do masks filter?": {"Masks filter the air.", "They must fit."},
        "What helps?": {"Soap destroys the envelope of a virus.", "Soap works for all hands."},
    }


def test_covidqa_draws_by_seed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "DRAWN", 2)
    first, again = (collections.held_covidqa(data, tmp_path / name) for name in ("a", "b"))
    assert first.questions == again.questions
    assert len(first.questions) == 2


def test_reciprocal_rank(ablated: Ablated) -> None:
    found = ablated.rows("covidqa")["question"]["measures"]
    # With one nugget a question and single sentences, exact is 1 / log2(1 + rank) and MRR 1 / rank.
    ranks = 1 / np.array(found["MRR"]["values"])
    assert found["exact"]["values"] == pytest.approx(list(1 / np.log2(1 + ranks)))


def test_trec_covid(data: Path, tmp_path: Path) -> None:
    found = collections.trec_covid(data, tmp_path)
    first = found.questions[0]
    assert (first.question_id, first.question) == ("1", "do masks work")
    assert (first.query, first.background) == ("masks", "seeking studies of masks")
    documents = [parse(line) for line in found.source.read_bytes().splitlines()]
    assert [(one.document_id, one.title) for one in documents] == [
        ("aaa", "Masks"),
        ("bbb", "Nothing but a title on masks"),
        ("ccc", "Soap"),
    ]
    assert [one.contexts[0].text for one in documents][1:] == ["Nothing but a title on masks", "Soap"]


@pytest.mark.parametrize("make", [collections.held_covidqa, collections.trec_covid])
def test_an_equal_collection_keeps_its_time(
    make: Callable[[Path, Path], collections.Collection], data: Path, tmp_path: Path
) -> None:
    first = make(data, tmp_path).source.stat().st_mtime_ns
    assert make(data, tmp_path).source.stat().st_mtime_ns == first


def test_only_judged_questions_are_asked(data: Path, tmp_path: Path) -> None:
    mini = collections.mini(data, tmp_path, "general")
    assert [one.question_id for one in mini.questions] == ["CQ001", "CQ002"]
    assert [one.question_id for one in collections.healthver(data, tmp_path).questions] == [
        "EQ003",
        "EQ004",
        "EQ005",
    ]


def test_judgments_of_other_questions(data: Path, tmp_path: Path) -> None:
    there = tmp_path / "data"
    shutil.copytree(data, there)
    judgments = there / "epicqa/healthver-derived/judgments.json"
    judgments.write_text(json.dumps(json.loads(sample.judgments_path().read_bytes())[-1:]))
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "out"), str(there), "--reranker", "none", "--bi-encoder", "none"])
    assert str(stopped.value.code).endswith("judges none of the questions, expected nuggets of some")
