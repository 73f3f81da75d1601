"""``epicqa run`` on the real sample index: the same in every process, after a kill and from its manifest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from epicqa import sample
from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.index import build
from epicqa.index.build import BuildOptions, build_index, open_index
from epicqa.running import make_run
from epicqa.runs import parse_run


def few(path: Path, count: int = 2) -> Path:
    path.write_text(json.dumps(json.loads(sample.questions_path("expert").read_text("utf-8"))[:count]))
    return path


def journals(home: Path) -> list[Path]:
    return list((home / "cache" / "runs").glob("*"))


@pytest.fixture(scope="module")
def whole(sample_indexes: Path, plain: dict, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The run of the expert questions of the sample with tag x, made in this process by two threads."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(sample_indexes.parent))
        patch.setenv("EPICQA_CACHE", str(folder))
        return make_run(Config(**plain), output=folder / "x.tsv", tag="x").path.read_bytes()


def test_fresh_processes_threads_and_a_rebuilt_index_do_not_matter(
    home: Path, fresh: Callable, whole: bytes, plain_flags: list, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = fresh("run", *plain_flags, "--threads", 1, "--tag", "x")
    assert made.out == f"{home / 'runs' / 'x.tsv'}: 12,000 passages for 12 questions\n"
    assert (home / "runs" / "x.tsv").read_bytes() == whole
    other = tmp_path_factory.mktemp("rebuilt")
    shutil.copytree(home / "indexes" / "sample", other / "indexes" / "sample")
    environment = {**os.environ, "EPICQA_HOME": str(other), "OMP_NUM_THREADS": "1"}
    fresh("index", "--force", "--threads", 2, env=environment)
    generations = list((other / "indexes" / "sample").glob("generation-*"))
    assert [path.name for path in generations] == ["generation-000002"]
    # From another folder, and with the manifest for all settings.
    again = fresh(
        *("run", "--config", home / "runs" / "x.json", "--threads", 2, "--output", "y.tsv"),
        env=environment,
        cwd=other,
    )
    assert "note:" not in again.err
    assert (other / "y.tsv").read_bytes() == whole
    manifests = [json.loads(path.read_text()) for path in (home / "runs" / "x.json", other / "y.json")]
    for manifest in manifests:
        manifest.pop("seconds")
    assert manifests[0] == manifests[1]


def test_a_budgeted_rerank_of_another_run_repeats_in_a_fresh_process(
    home: Path, fresh: Callable, plain: dict, tiny_reranker: Path, tmp_path: Path
) -> None:
    questions = few(home / "few.json")
    base = make_run(Config(**plain, questions=str(questions), diversity="none"), tag="base")
    config = Config(
        questions=str(questions),
        source_run=str(base.path),
        reranker=str(tiny_reranker),
        bi_encoder="static",
        rerank_depth=1000,
        max_sentences=3,
    )
    # The budget pays for the loading of models, too; this run has done it.
    make_run(replace(config, rerank_depth=1), tag="loaded")
    made = make_run(replace(config, budget=0.5), tag="budget")
    reached = json.loads(made.manifest.read_text())["reranked"]
    assert len(reached) == 2 and all(0 <= depth <= 1000 for depth in reached.values()) and reached["EQ001"]
    fresh("run", "--config", made.manifest, "--output", tmp_path / "again.tsv", "--threads", 1)
    assert (tmp_path / "again.tsv").read_bytes() == made.path.read_bytes()
    assert json.loads((tmp_path / "again.json").read_text())["reranked"] == reached


def test_the_whole_default_repeats_in_a_fresh_process(home: Path, epicqa: Callable, fresh: Callable) -> None:
    few(home / "one.json", 1)
    made = fresh("run", "--questions", "one.json", "--tag", "x", "--budget", "5m", "--audience", "expert")
    assert made.out.endswith("x.tsv: 1,000 passages for 1 questions\n") and made.err == ""
    noted = json.loads((home / "runs" / "x.json").read_text())
    assert noted["reranked"] == {"EQ001": 400} and noted["reranker"] and noted["bi_encoder"]
    assert (noted["config"]["budget"], noted["config"]["audience"]) == (300.0, "expert")
    again = epicqa("run", "--config", "runs/x.json", "--output", "again.tsv")
    assert (again.status, again.err) == (0, "")
    assert (home / "again.tsv").read_bytes() == (home / "runs" / "x.tsv").read_bytes()
    assert epicqa("check", "runs/x.tsv").out == "runs/x.tsv: valid\n"


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "epicqa", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_answers(home: Path, process: subprocess.Popen[str], count: int) -> None:
    """Until the journal holds as many."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and process.poll() is None:
        if any(path.read_bytes().count(b"\n") >= count for path in journals(home)):
            return
        time.sleep(0.005)
    pytest.fail(f"no answers were noted: {process.communicate()}")


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_goes_on(
    home: Path, fresh: Callable, whole: bytes, plain: dict, plain_flags: list, stop: signal.Signals
) -> None:
    arguments = ("run", "--tag", "x", *plain_flags)
    with start(*arguments) as process:
        wait_for_answers(home, process, 2)
        process.send_signal(stop)
        _, err = process.communicate(timeout=60)
    if stop == signal.SIGINT:
        assert process.returncode == 1
        assert err.splitlines()[-1] == "epicqa: interrupted; the same command goes on where it stopped"
        assert "Traceback" not in err
    else:
        assert process.returncode == -signal.SIGKILL
    assert not (home / "runs").exists()
    (journal,) = journals(home)
    assert 2 <= journal.read_bytes().count(b"\n") < 12
    if stop == signal.SIGKILL:
        fresh(*arguments)
    else:
        make_run(Config(**plain), tag="x")
    assert journals(home) == []
    assert (home / "runs" / "x.tsv").read_bytes() == whole
    assert sorted(path.name for path in (home / "runs").iterdir()) == ["x.json", "x.tsv"]


def test_run_score_and_check(home: Path, epicqa: Callable, plain_flags: list) -> None:
    run = ("run", *plain_flags)
    assert (
        epicqa(*run, "--depth", 50).out
        == f"{home / 'runs' / 'sample-expert.tsv'}: 600 passages for 12 questions\n"
    )
    scored = epicqa("score", "runs/sample-expert.tsv", "--format", "json")
    (record,) = json.loads(scored.out)
    assert len(record["questions"]) == 12 and record["mean"]["exact"] > 0.3
    checked = epicqa("check", "runs/sample-expert.tsv")
    assert checked.status == 0 and checked.out.endswith("sample-expert.tsv: valid\n")
    shutil.copy(sample.judgments_path(), home / "j.json")
    epicqa(*run, "--depth", 50, "--judgments", "j.json", "--tag", "noted", "--description", "a line")
    assert json.loads(epicqa("score", "runs/noted.tsv", "--format", "json").out)[0]["mean"] == record["mean"]
    assert json.loads((home / "runs" / "noted.json").read_text())["config"]["description"] == "a line"
    # Questions of a file are not the sample's, whatever they are.
    epicqa(*run, "--depth", 5, "--questions", few(home / "few.json"))
    assert "judgments unknown (its manifest names none)" in epicqa("score", "runs/sample-few.tsv").line()


@pytest.mark.parametrize(
    "flags",
    [
        "--max-sentences 3 --diversity none",
        "--max-sentences 3 --mmr-weight .5 --retriever dense",
        "--retriever bm25 --diversity novelty",
        "--bi-encoder static --rerank-depth 10 --max-sentences 3 --audience general",
        "--bi-encoder static --rerank-fields all --diversity mmr --length-weight 0 --budget 1.5h",
        "--bi-encoder minilm --rerank-depth 5 --first-weight 0 --bi-encoder-weight .5",
        "--fusion rrf --rm3 --fields question --depth 7",
        "--fusion minmax --no-rm3 --fields question+query --dense-weight .2",
    ],
)
def test_runs_are_valid_and_whole(home: Path, epicqa: Callable, plain_flags: list, flags: str) -> None:
    few(home / "few.json", 3)
    made = epicqa("run", "--questions", "few.json", "--tag", "x", *plain_flags, *flags.split())
    depth = 7 if "--depth" in flags else 1000
    assert made.out.endswith(f"x.tsv: {3 * depth:,} passages for 3 questions\n") and "note" not in made.err
    checked = epicqa("check", "runs/x.tsv")
    assert checked.status == 0 and checked.out == "runs/x.tsv: valid\n"
    assert depth == 7 or checked.err == ""


def test_an_index_without_vectors(home: Path, epicqa: Callable, plain_flags: list) -> None:
    run = ("run", "--index", "bare", *plain_flags)
    for flags, diversity in (((), "none"), (("--bi-encoder", "static"), "novelty")):
        made = epicqa(*run, *flags)
        assert made.status == 0 and "12 questions" in made.out
        notes = [line for line in made.err.splitlines() if line.startswith("note: ")]
        assert len(notes) == 1 and "found by BM25 alone, and depth is filled by what it finds" in notes[0]
        assert epicqa("check", "runs/bare-expert.tsv").status == 0
        noted = json.loads((home / "runs" / "bare-expert.json").read_text())
        assert noted["config"]["diversity"] == diversity
    wrong = [("--retriever", "dense"), ("--retriever", "hybrid"), ("--diversity", "mmr")]
    for flags in (*wrong, ("--diversity", "novelty")):
        assert epicqa(*run, *flags).line().startswith("index 'bare' has no vectors")


def test_flags_win_over_the_file(home: Path, epicqa: Callable, plain: dict) -> None:
    few(home / "few.json")
    lines = ['questions = "few.json"', "depth = 3", "rm3 = true", "max_sentences = 2"]
    lines += [f'{name} = "{value}"' for name, value in plain.items()]
    (home / "c.toml").write_text("\n".join(lines))
    assert ": 6 passages for 2 questions" in epicqa("run", "--config", "c.toml").out
    made = epicqa("run", "--config", "c.toml", "--depth", 4, "--no-rm3", "--tag", "b")
    assert ": 8 passages for 2 questions" in made.out
    config = json.loads((home / "runs" / "b.json").read_text())["config"]
    assert (config["depth"], config["rm3"], config["max_sentences"]) == (4, False, 2)
    assert ": 10 passages" in epicqa("run", "--config", "runs/b.json", "--depth", 5, "--tag", "c").out


def test_bad_input_is_one_line_and_nothing_is_written(home: Path, epicqa: Callable) -> None:
    few(home / "few.json")
    (home / "bad.toml").write_text("k1 = nan")
    (home / "bad.tsv").write_text("EQ001 Q0 x-C000-S000:x-C000-S000 1 1 t\n")
    (home / "bad.json").write_text("{}")
    # The manifest of a run by an earlier version.
    (home / "old.json").write_text('{"epicqa_manifest": 1, "tag": "t", "config": {"diversity": 0.3}}')
    before = sorted(home.rglob("*"))
    for arguments, message in (
        (["--config", "bad.toml"], "bad.toml: k1 is nan, expected 0 to 100"),
        (["--config", "bad.json"], "bad.json: no 'config'"),
        (["--depth", "0"], "depth is 0, expected 1 to 1000"),
        (["--depth", "1001"], "depth is 1001, expected 1 to 1000"),
        (["--config", "old.json"], "old.json: diversity = 0.3, expected mmr, novelty, none"),
        (["--mmr-weight", "nan"], "mmr_weight is nan, expected 0 to 1"),
        (["--rerank-depth", "0"], "rerank_depth is 0, expected 1 to 1000"),
        (["--budget", "999999999h"], "expected 0 to 1000000000.0"),
        (["--tag", "a b"], "run tag 'a b'"),
        (["--questions", "absent.json"], "absent.json: No such file"),
        (["--questions", "bad.json"], "bad.json: a JSON dict"),
        (["--index", "mine"], "expert questions of which data set?"),
        (["--data", "absent"], "absent/ae/expert_questions.json: No such file"),
        (["--from", "bad.tsv"], "/bad.tsv:1: unknown sentence x-C000-S000, expected one of the index"),
        (["--from", "absent.tsv"], "absent.tsv: No such file"),
        (["--reranker", "./absent"], "unknown model './absent'"),
        (["--bi-encoder", "./absent"], "unknown model './absent'"),
        (["--judgments", "absent"], "absent: no such file, expected judgments"),
        (["--output", "few.json/x.tsv"], "few.json is not a folder that can be written"),
        (["--output", "x.json"], "x.json: a run named .json would overwrite its manifest"),
        (["--output", "few.tsv"], "few.json, which is none; expected another --output"),
    ):
        line = epicqa("run", *arguments).line()
        assert message in line, line
    assert sorted(home.rglob("*")) == before


COLLECTIONS = {
    "ae": ("cord19", "general"),
    "e2e": ("cord19", "ask_science", "ccns_trec", "chqa"),
}


def paper(name: str, *sentences: str) -> str:
    context, spans, at = f"{name}-C000", [], 0
    for number, sentence in enumerate(sentences):
        spans.append({"sentence_id": f"{context}-S{number:03d}", "start": at, "end": at + len(sentence)})
        at += len(sentence) + 1
    contexts = [{"section": None, "context_id": context, "text": " ".join(sentences), "sentences": spans}]
    return json.dumps({"document_id": name, "metadata": {"title": f"On {name}"}, "contexts": contexts})


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up data set in the published layout, and a home without an index, the current folder."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    for task, names in COLLECTIONS.items():
        for name in names:
            (folder / task / name).mkdir(parents=True)
            for number in (1, 2):
                text = paper(f"{task}-{name}-{number}", "The virus lives on steel.", f"Masks help {number}.")
                (folder / task / name / f"{number}.json").write_text(text)
        for kind in ("expert", "general"):
            first = {"ae": 0, "e2e": 100}[task]
            texts = {"question": "How long does it live on steel?", "query": "steel", "background": ""}
            ids = [f"{'E' if kind == 'expert' else 'C'}Q{first + number:03d}" for number in (1, 2)]
            records = [{"question_id": one, **texts} for one in ids]
            (folder / task / f"{kind}_questions.json").write_text(json.dumps(records))
    return folder


def retrieved(run: Path) -> set[str]:
    """The documents in a run."""
    return {row.split("\t")[2].split("-C000")[0] for row in run.read_text().splitlines()}


def built(name: str) -> tuple[str, int]:
    """An index's generation, and how many documents it has."""
    index = open_index(name)
    return index.folder.name, index.manifest["documents"]


def test_the_published_data_set_just_works(
    data: Path, epicqa: Callable, plain_flags: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("run", "--task", "e2e", *plain_flags)
    made = epicqa(*run, "--data", data)
    assert (made.status, made.err) == (0, "")
    path = Path.cwd() / "runs" / "e2e-expert.tsv"
    assert made.out == f"{path}: 8 passages for 2 questions\n"
    assert retrieved(path) == {"e2e-cord19-1", "e2e-cord19-2"}
    noted = json.loads(path.with_suffix(".json").read_text())
    assert (noted["index"], noted["config"]["index"], noted["tag"]) == ("e2e-expert",) * 3
    assert noted["questions"]["ids"] == ["EQ101", "EQ102"]
    assert noted["index_fingerprint"] == open_index("e2e-expert").fingerprint
    assert open_index("e2e-expert").manifest["dense"]["model"] == "static"
    assert epicqa("check", path).status == 0
    whole = path.read_bytes()
    # Nothing has changed, so nothing is built; nor for the same folder by another path, or a manifest.
    with monkeypatch.context() as patch:
        patch.setattr(build, "_steps", None)
        patch.setenv("EPICQA_DATA", os.path.relpath(data))
        assert epicqa(*run).out == made.out
        assert epicqa("run", "--config", path.with_suffix(".json")).out == made.out
        assert path.read_bytes() == whole
    # What `data check` advises is the same index.
    told = epicqa("index", data / "e2e" / "cord19", "--name", "e2e-expert", "--json")
    assert json.loads(told.out)["fingerprint"] == noted["index_fingerprint"]
    assert built("e2e-expert") == ("generation-000001", 2)
    general = epicqa(*run, "--data", data, "--questions", "general")
    assert general.status == 0 and general.out.endswith("e2e-general.tsv: 24 passages for 2 questions\n")
    found = retrieved(path.with_name("e2e-general.tsv"))
    assert found == {f"e2e-{name}-{number}" for name in COLLECTIONS["e2e"][1:] for number in (1, 2)}
    for kind, documents in (("expert", "ae-cord19"), ("general", "ae-general")):
        epicqa("run", "--data", data, "--questions", kind, *plain_flags)
        assert retrieved(path.with_name(f"ae-{kind}.tsv")) == {f"{documents}-1", f"{documents}-2"}


def test_the_index_follows_the_documents_and_keeps_its_model(data: Path, plain: dict) -> None:
    config = Config(**plain, data=str(data))
    places = [data / "ae" / "cord19"]
    build_index(places, "ae-expert", BuildOptions("none", threads=1))
    assert make_run(config).notes[0].startswith("index 'ae-expert' has no vectors")
    assert built("ae-expert") == ("generation-000001", 2)
    (places[0] / "3.json").write_text(paper("late", "Steel is cold."))
    (places[0] / "4.json").write_text("{}")
    made = make_run(config)
    assert "index 'ae-expert' lacks 1 documents that could not be used, see " in made.notes[-1]
    assert built("ae-expert") == ("generation-000002", 3) and "late" in retrieved(made.path)
    assert open_index("ae-expert").manifest["dense"] is None
    build_index(places, "ae-expert", BuildOptions(titles=False, vectors="sq8", threads=1))
    assert built("ae-expert")[0] == "generation-000003"
    shutil.move(places[0], data / "elsewhere")
    (data / "ae" / "cord19.jsonl").write_text(paper("one", "Steel.") + "\n")
    assert retrieved(make_run(config).path) == {"one"}
    dense = open_index("ae-expert").manifest["dense"]
    assert (dense["titles"], dense["kind"]) == (False, "sq8")
    # A damaged one is built anew, as epicqa index takes it.
    (open_index("ae-expert").folder / "index.json").write_text("{}")
    assert retrieved(make_run(config).path) == {"one"}
    assert open_index("ae-expert").manifest["dense"]["kind"] == "flat"


def test_a_part_of_a_collection_is_told(data: Path, plain: dict) -> None:
    for name in ("ask_science", "chqa"):
        shutil.rmtree(data / "e2e" / name)
    made = make_run(Config(**plain, data=str(data), task="e2e", questions="general"))
    assert made.notes == (
        "index 'e2e-general' lacks e2e/ask_science, e2e/chqa; epicqa data check tells where it is from",
    )
    assert retrieved(made.path) == {"e2e-ccns_trec-1", "e2e-ccns_trec-2"}


def test_an_interrupted_build_goes_on(data: Path, plain: dict) -> None:
    config = Config(**plain, data=str(data))
    told: list[str] = []

    def stop(step: str, done: int, total: int | None) -> None:
        told.append(step)
        if step == "encoding sentences":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_run(config, building=stop)
    assert told[0] == "reading documents" and not Path("runs").exists()
    (work,) = Path("indexes/ae-expert").glob("building-*")
    corpus = (work / "corpus" / "corpus.json").stat().st_ino
    make_run(config)
    assert (open_index("ae-expert").folder / "corpus" / "corpus.json").stat().st_ino == corpus


def test_what_is_wrong_is_told_before_the_index_is_built(data: Path, epicqa: Callable) -> None:
    run = ("run", "--data", data)
    all_kinds = "have a collection of their own, expected --questions expert or general, or --index NAME"
    assert all_kinds in epicqa(*run, "--questions", "all").line()
    line = epicqa(*run, "--task", "all").line()
    assert line.startswith(f"{data}: ") and "expected --task ae or e2e, or --index NAME to ask" in line
    both = epicqa(*run, "--task", "all", "--questions", "all").line()
    assert "expected --task ae or e2e and --questions expert or general, or" in both
    (data / "ae" / "expert_questions.json").write_text("{")
    assert "expert_questions.json:1: broken JSON" in epicqa(*run).line()
    (data / "ae" / "expert_questions.json").unlink()
    assert "expert_questions.json: No such file" in epicqa(*run).line()
    run = (*run, "--task", "e2e")
    assert "run tag 'a b'" in epicqa(*run, "--tag", "a b").line()
    assert "absent: no such file, expected judgments" in epicqa(*run, "--judgments", "absent").line()
    assert "unknown model './absent'" in epicqa(*run, "--reranker", "./absent").line()
    assert list(Path.cwd().iterdir()) == []


def test_a_named_index_or_a_file_of_questions_has_no_collection(
    data: Path, home: Path, epicqa: Callable, plain_flags: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``home`` has the sample's index; nothing may be built."""
    monkeypatch.setattr(build, "_build", None)
    run = ("run", *plain_flags, "--depth", 2)
    assert "for 2 questions" in epicqa(*run, "--index", "mine", "--data", data).out
    assert "for 4 questions" in epicqa(*run, "--index", "mine", "--data", data, "--questions", "all").out
    made = epicqa(*run, "--questions", data / "ae" / "expert_questions.json", "--data", data)
    assert made.out.endswith("sample-expert_questions.tsv: 4 passages for 2 questions\n")
    for task, names in COLLECTIONS.items():
        for name in names:
            shutil.rmtree(data / task / name)
    # Questions alone are asked of the index that is there, as ever.
    made = epicqa(*run, "--data", data, "--task", "all", "--questions", "all")
    assert made.out.endswith("sample-all-all.tsv: 16 passages for 8 questions\n")


def test_documents_that_are_none_are_one_line(data: Path, plain: dict) -> None:
    for path in (data / "ae" / "cord19").iterdir():
        path.write_text("{}")
    with pytest.raises(EpicqaError, match="no valid document, 2 skipped"):
        make_run(Config(**plain, data=str(data)))
    assert parse_run(make_run(Config(**plain, data=str(data), questions="general")).path)[0].questions
