"""Runs as a job, on the real sample index, in this process; fresh processes are in cli/test_run.py."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from epicqa import running, sample
from epicqa.config import Config, load_config
from epicqa.errors import EpicqaError
from epicqa.index.build import open_index
from epicqa.models.places import fingerprint, resolve
from epicqa.questions import read_questions
from epicqa.rank import budget
from epicqa.running import _Asked, _default_tag, default_index, make_run
from epicqa.runs import check_runs, judgments_of, parse_run

EXPERT = read_questions(sample.questions_path("expert"))


@pytest.fixture
def few(home: Path) -> str:
    """A file of the sample's first three expert questions."""
    path = home / "few.json"
    path.write_text(json.dumps(json.loads(sample.questions_path("expert").read_text("utf-8"))[:3]))
    return str(path)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the questions that the pipeline was asked."""
    asked: list[str] = []
    answer = running.Pipeline.answer

    def noting(self, questions, **others):
        asked.extend(question.question_id for question in questions)
        return answer(self, questions, **others)

    monkeypatch.setattr(running.Pipeline, "answer", noting)
    return asked


def stop_after(count: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done == count:
            raise KeyboardInterrupt

    return progress


def journals(home: Path) -> list[Path]:
    return list((home / "cache" / "runs").glob("*"))


def refused(config: Config, **others) -> str:
    """The one line that a run is refused with; nothing may have been written or left."""
    before = {path for path in Path.cwd().rglob("*") if path.is_file()}
    with pytest.raises(EpicqaError) as error:
        make_run(config, **others)
    assert {path for path in Path.cwd().rglob("*") if path.is_file()} == before
    assert "\n" not in str(error.value)
    return str(error.value)


def manifest(path: Path) -> dict:
    return json.loads(path.with_suffix(".json").read_text())


def test_a_run_of_the_sample(home: Path, plain: dict) -> None:
    told: list[tuple[int, int]] = []
    made = make_run(Config(**plain, depth=20), progress=lambda done, total: told.append((done, total)))
    assert made.path == home / "runs" / "sample-expert.tsv"
    assert (made.questions, made.passages, made.notes) == (12, 240, ())
    assert told == [(done, 12) for done in range(13)]
    rows = [line.split("\t") for line in made.path.read_text().splitlines()]
    for number, question in enumerate(EXPERT):
        mine = rows[20 * number : 20 * number + 20]
        assert {row[0] for row in mine} == {question.question_id}
        assert [row[3] for row in mine] == [str(rank) for rank in range(1, 21)]
        scores = [row[4] for row in mine]
        assert len({len(score) for score in scores}) == 1
        assert all(float(a) > float(b) and a > b for a, b in itertools.pairwise(scores))
    assert {(row[1], row[5]) for row in rows} == {("Q0", "sample-expert")}
    noted = manifest(made.path)
    assert noted["judgments"] == "sample" and judgments_of(made.path) == sample.judgments_path()
    assert noted["index_fingerprint"] == open_index("sample").fingerprint
    assert noted["config"]["retriever"] == "hybrid" and noted["config"]["index"] == "sample"
    assert noted["dense"]["fingerprint"] and noted["versions"]["pyserini"]
    assert noted["questions"]["ids"] == [question.question_id for question in EXPERT]
    problems = check_runs([made.path])[made.path]
    assert {problem.kind for problem in problems} == {"short"}
    assert journals(home) == []


@pytest.mark.parametrize(("choice", "ids"), [("expert", "EQ"), ("general", "CQ"), ("all", "EQ CQ")])
def test_kinds_of_questions(home: Path, choice: str, ids: str, plain: dict) -> None:
    made = make_run(Config(**plain, questions=choice, depth=1))
    found = list(parse_run(made.path)[0].questions)
    assert list(dict.fromkeys(one[:2] for one in found)) == ids.split()
    assert len(found) == 12 * len(ids.split())
    assert made.path.name == f"sample-{choice}.tsv"
    assert check_runs([made.path])[made.path][-1].kind == "short"


@pytest.mark.parametrize(
    ("index", "questions", "tag"),
    [
        ("sample", "expert", "sample-expert"),
        ("_x", "general", "x-general"),
        ("a" * 64, "expert", "aaaaaaaaaaaaaaaaa-expert"),
        ("a" * 64, "general", "aaaaaaaaaaaaaaaa-general"),
        ("covid", "../some where/my questions!.json", "covid-my_questions_"),
        ("covid", "x" * 30 + ".json", "covid-xxxxxxxxxxxxxxxx"),
    ],
)
def test_default_tags_are_what_tac_takes_and_tell_kinds_apart(index: str, questions: str, tag: str) -> None:
    named = questions in ("expert", "general")
    assert _default_tag(Config(index=index, questions=questions), _Asked((), (), named, None)) == tag
    assert len(tag) <= 24


def test_parts_of_the_official_set_get_tags_of_their_own() -> None:
    asked = _Asked((), (), True, "data")
    tags = [_default_tag(Config(index="c", task=task), asked) for task in ("ae", "e2e", "all")]
    assert tags == ["c-expert", "c-e2e-expert", "c-all-expert"]


def test_official_layout(home: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, plain: dict) -> None:
    data = shared / "epicqa" / "questions"
    made = make_run(Config(**plain, depth=1, data=str(data)))
    assert made.questions == 45 and manifest(made.path)["judgments"] is None
    made = make_run(Config(**plain, depth=1, data=str(data), task="e2e", questions="all"))
    assert made.questions == 60 and "EQ101" in parse_run(made.path)[0].questions
    monkeypatch.setenv("EPICQA_DATA", str(data))
    # The sample keeps to its own questions, for which it has judgments.
    made = make_run(Config(**plain, depth=1))
    assert made.questions == 12 and manifest(made.path)["judgments"] == "sample"
    made = make_run(Config(**plain, depth=1, index="mine"))
    assert made.questions == 45 and manifest(made.path)["config"]["data"] == str(data)
    first = made.path.read_bytes()
    # A manifest remembers where the questions came from.
    monkeypatch.delenv("EPICQA_DATA")
    repeat = made.manifest
    assert make_run(load_config(repeat, {}), repeat=repeat).path.read_bytes() == first
    assert "expert_questions.json: No such file" in refused(Config(data=str(home), index="mine"))


def test_questions_of_which_data_set(home: Path) -> None:
    message = refused(Config(index="mine"))
    assert message.startswith("expert questions of which data set?")
    assert "--data DIR, EPICQA_DATA, or a question file" in message


def test_a_file_of_questions(home: Path, few: str, plain: dict) -> None:
    made = make_run(Config(**plain, questions="few.json", depth=5, index="mine"))
    assert list(parse_run(made.path)[0].questions) == [question.question_id for question in EXPERT[:3]]
    noted = manifest(made.path)
    assert noted["tag"] == "mine-few" and noted["judgments"] is None
    assert noted["config"]["questions"] == few
    # The sample's questions by path are a file like any other.
    made = make_run(Config(**plain, questions=str(sample.questions_path("expert")), depth=5))
    assert manifest(made.path)["judgments"] is None
    assert "absent.json" in refused(Config(questions="absent.json"))


def test_judgments_are_noted_with_their_whole_path(home: Path, few: str, plain: dict) -> None:
    shutil.copy(sample.judgments_path(), home / "j.json")
    made = make_run(Config(**plain, questions=few, depth=5, judgments="j.json"))
    assert manifest(made.path)["judgments"] == str(home / "j.json") == str(judgments_of(made.path))
    assert "absent.json: no such file, expected judgments" in refused(Config(judgments="absent.json"))


@pytest.mark.parametrize("settings", [{}, {"bi_encoder": "static", "rerank_depth": 20}], ids=str)
def test_an_interrupted_run_goes_on(
    home: Path, few: str, answered: list[str], plain: dict, settings: dict
) -> None:
    config = Config(**plain | settings, questions=few, depth=30)
    whole = make_run(config, output=home / "whole.tsv").path.read_bytes()
    ids = [question.question_id for question in EXPERT[:3]]
    for cut in (0, 1, -1):
        with pytest.raises(KeyboardInterrupt):
            make_run(config, output=home / "cut.tsv", progress=stop_after(2))
        (journal,) = journals(home)
        assert not (home / "cut.tsv").exists() and not (home / "cut.json").exists()
        data = journal.read_bytes()
        if cut:
            journal.write_bytes(data[:-100] if cut == 1 else data + b'{"id": "EQ')
        answered.clear()
        made = make_run(config, output=home / "cut.tsv")
        assert answered == (ids[1:] if cut == 1 else ids[2:])
        assert made.path.read_bytes() == whole and (made.questions, made.passages) == (3, 90)
        assert manifest(made.path)["reranked"] == (dict.fromkeys(ids, 20) if settings else None)
        assert journals(home) == []
        made.path.unlink()
        made.manifest.unlink()


def test_a_journal_is_for_the_same_run_only(
    home: Path, few: str, answered: list[str], tiny_reranker: Path, plain: dict
) -> None:
    model = home / "model"
    shutil.copytree(tiny_reranker, model)
    settings = plain | {"questions": few, "depth": 5, "pool": 50, "reranker": "model", "rerank_depth": 3}
    config = Config(**settings)
    with pytest.raises(KeyboardInterrupt):
        make_run(config, progress=stop_after(2))

    def resumes(config: Config) -> bool:
        answered.clear()
        make_run(config, output=home / "x.tsv", progress=None)
        return len(answered) < 3

    for other in (
        {"depth": 6},
        {"pool": 51},
        {"reranker": "none"},
        {"bi_encoder": "static"},
        {"budget": 100.0},
        {"audience": "expert"},
        {"index": "bare"},
    ):
        assert not resumes(Config(**settings | other))
    questions = json.loads(Path(few).read_text())
    changed = [*questions[:2], {**questions[2], "background": questions[2]["background"] + " And why?"}]
    Path(few).write_text(json.dumps(changed))
    assert not resumes(config)
    Path(few).write_text(json.dumps(questions))
    settings = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**settings, "x": 1}))
    assert not resumes(config)
    shutil.copy(tiny_reranker / "tokenizer_config.json", model)
    assert resumes(config)


def test_places_that_cannot_be_written(
    home: Path, few: str, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(questions=few, depth=5)
    (home / "file").write_text("x")
    (home / "folder.tsv").mkdir()
    for output, message in (
        ("x.json", "would overwrite its manifest"),
        ("folder.tsv", "there and not a file"),
        ("/dev/null", "there and not a file"),
        ("file/x.tsv", "not a folder that can be written"),
        ("few.tsv", f"its manifest would overwrite {home / 'few.json'}, which is none"),
    ):
        assert message in refused(config, output=home / output)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != home and access(path, mode))
    assert f"{home} is not a folder that can be written" in refused(config, output=home / "new" / "x.tsv")
    assert answered == []
    monkeypatch.undo()


def test_a_new_folder_is_made(home: Path, few: str, plain: dict) -> None:
    made = make_run(Config(**plain, questions=few, depth=5), output=Path("new/er/x.tsv"), tag="x")
    assert sorted(path.name for path in (home / "new" / "er").iterdir()) == ["x.json", "x.tsv"]
    assert made.path == Path("new/er/x.tsv")
    # One's own run is replaced.
    make_run(Config(**plain, questions=few, depth=6), output=Path("new/er/x.tsv"), tag="x")
    assert len(made.path.read_text().splitlines()) == 18


@pytest.mark.parametrize("tag", ["a b", "", "a/b", "ä", "a\n"])
def test_bad_tags(home: Path, tag: str, plain: dict) -> None:
    if tag:
        assert refused(Config(), tag=tag).startswith(f"run tag {tag!r}")
    else:
        assert make_run(Config(**plain, depth=1), tag=tag).path.name == "sample-expert.tsv"


def test_nothing_found_is_not_written(home: Path, plain: dict) -> None:
    path = home / "q.json"
    path.write_text(json.dumps([{"question_id": "Q1", "question": "zzzz", "query": "", "background": ""}]))
    for settings in ({}, {"bi_encoder": "static", "max_sentences": 3}):
        message = refused(Config(**plain | settings, questions=str(path), index="bare"))
        assert message.endswith("not written, no passage was found for any question")


def test_questions_of_no_words_are_answered(home: Path, plain: dict, tiny_reranker: Path) -> None:
    path = home / "q.json"
    texts = ["?!", "\U0001f637", "a" * 20_000, "\0", "\u202e"]
    records = [
        {"question_id": f"Q{number}", "question": text, "query": "", "background": ""}
        for number, text in enumerate(texts)
    ]
    path.write_text(json.dumps(records))
    for settings in (plain, {"reranker": str(tiny_reranker), "rerank_depth": 5}):
        made = make_run(Config(**settings, questions=str(path), rm3=True))
        assert check_runs([made.path])[made.path] == []
    records[0]["question"] = "half \ud83d"
    path.write_text(json.dumps(records))
    assert refused(Config(questions=str(path))).endswith(
        "question 1: half a surrogate pair, expected Unicode text"
    )


def source(home: Path, lines: list[str]) -> str:
    (home / "other.txt").write_text("".join(f"{line}\n" for line in lines))
    return str(home / "other.txt")


def test_from_another_systems_run(home: Path, plain: dict) -> None:
    store = open_index("sample").store
    name = [store.sentence_id(row) for row in range(40)]
    span = [f"{one}:{one}" for one in name]
    last = int(store.context_first[1]) - 1
    assert last >= 2
    one, two, three = (question.question_id for question in EXPERT[:3])
    run = source(
        home,
        [
            # Scores decide, then ranks: 10 before 9, though not as text; ties and overlaps.
            f"{one} Q0 {span[10]} 1 9 them",
            f"{one} Q0 {name[0]}:{name[last]} 2 10.5 them",
            f"{one} Q0 {span[1]} 3 10 them",
            f"{one} Q0 {span[20]} 5 9 them",
            f"{one} Q0 {span[20]} 4 9 them",
            f"{three}   Q0\t{span[30]} 1 -1e30 them",
            f"{three} Q0 {span[31]} 2 1e30 them",
            "",
            f"CQ999 Q0 {span[5]} 1 1 them",
        ],
    )
    made = make_run(Config(**plain, source_run="other.txt", diversity="none"), tag="mine")
    assert len(made.notes) == 2
    assert two in made.notes[0] and one not in made.notes[0] and made.notes[1].endswith("left out: CQ999")
    rows = [line.split("\t") for line in made.path.read_text().splitlines()]
    assert [(row[0], row[2]) for row in rows] == [
        (one, f"{name[0]}:{name[last]}"),
        (one, span[10]),
        (one, span[20]),
        (three, span[31]),
        (three, span[30]),
    ]
    problems = check_runs([made.path])[made.path]
    assert {problem.kind for problem in problems if problem.fatal} == set()
    noted = manifest(made.path)
    assert noted["config"]["source_run"] == run and noted["source_run"]
    compared = {"bi_encoder": "static"}
    for settings in ({"mmr_weight": 0.9}, compared, compared | {"index": "bare"}):
        spread = make_run(Config(**plain | settings, source_run=run, depth=2), tag="spread")
        assert spread.passages == 4


def test_from_a_run_of_ours_and_back(home: Path, plain: dict) -> None:
    base = make_run(Config(**plain | {"bi_encoder": "static"}, rerank_depth=10, depth=50, max_sentences=2))
    spans = [line.split("\t")[2].split(":") for line in base.path.open()]
    assert any(first != last for first, last in spans)
    message = refused(Config(source_run=str(base.path)))
    assert message.endswith("would overwrite the run it is made from, expected another --tag or --output")
    given = plain | {"source_run": str(base.path), "depth": 50}
    again = make_run(Config(**given, diversity="none"), tag="again")
    assert [line.split("\t")[:5] for line in again.path.open()] == [
        line.split("\t")[:5] for line in base.path.open()
    ]
    key = {(row[0], row[2]) for row in map(str.split, base.path.open())}
    texts = {base.path.read_bytes()}
    for number, settings in enumerate(({"mmr_weight": 0.5}, {"bi_encoder": "static", "rerank_depth": 20})):
        made = make_run(Config(**given | settings), tag="shuffled", output=home / f"{number}.tsv")
        assert {(row[0], row[2]) for row in map(str.split, made.path.open())} == key
        texts.add(made.path.read_bytes())
        repeated = make_run(load_config(made.manifest, {}), repeat=made.manifest, output=home / "r.tsv")
        assert repeated.path.read_bytes() == made.path.read_bytes() and repeated.notes == ()
    assert len(texts) == 3


def test_bad_runs_to_start_from(home: Path, plain: dict) -> None:
    first = open_index("sample").store.sentence_id(0)
    question = EXPERT[0].question_id
    for line, message in (
        (
            f"{question} Q0 nowhere-C000-S000:nowhere-C000-S000 1 1 t",
            "other.txt:2: unknown sentence nowhere-C000-S000",
        ),
        (f"{question} Q0 {first} 1 1 t", "other.txt:2: "),
        (f"{question} Q0 {first}:{first} 1 nan t", "other.txt:2: score 'nan'"),
        (f"{question} Q0 {first}:{first} 1 t", "other.txt:2: 5 columns"),
    ):
        run = source(home, [f"{question} Q0 {first}:{first} 1 2 t", line])
        assert message in refused(Config(source_run=run), tag="x")
    assert "no passage was found" in refused(
        Config(**plain, source_run=source(home, [f"XX1 Q0 {first}:{first} 1 2 t"])), tag="x"
    )
    assert "absent.tsv: No such file" in refused(Config(source_run="absent.tsv"))


def test_a_budget_is_replayed(
    home: Path, few: str, plain: dict, tiny_reranker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each look at the clock finds it a second on: depths do not depend on this machine.
    ticks = itertools.count()
    config = Config(
        **plain | {"reranker": str(tiny_reranker), "bi_encoder": "static"},
        questions=few,
        rerank_depth=300,
        budget=30,
        depth=300,
    )
    ids = [question.question_id for question in EXPERT[:3]]
    with monkeypatch.context() as patch:
        patch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        made = make_run(config, tag="budget")
    reached = manifest(made.path)["reranked"]
    assert list(reached) == ids and len(set(reached.values())) > 1
    assert all(0 < depth <= 300 for depth in reached.values()) and min(reached.values()) < 128, reached
    assert manifest(made.path)["config"]["budget"] == 30.0

    def repeat(tag: str | None = None, **flags):
        again = make_run(
            load_config(made.manifest, flags), repeat=made.manifest, output=home / "again.tsv", tag=tag
        )
        return again, manifest(again.path)["reranked"]

    again, depths = repeat()
    assert depths == reached and again.notes == () and again.path.read_bytes() == made.path.read_bytes()
    again, depths = repeat(depth=10)
    assert depths == reached and again.passages == 30
    beginning = [line.split() for line in made.path.open() if int(line.split()[3]) <= 10]
    assert [row[:4] for row in map(str.split, again.path.open())] == [row[:4] for row in beginning]
    # Flags win over the file: another budget is a budget of its own, and so is it with other models.
    assert repeat(rerank_depth=7)[1] == dict.fromkeys(ids, 7)
    assert repeat(budget=1e6)[1] == dict.fromkeys(ids, 300)
    assert repeat(budget=0)[1] == dict.fromkeys(ids, 0)
    noted = manifest(made.path)
    made.manifest.write_text(json.dumps({**noted, "reranked": {ids[0]: "x"}}))
    with pytest.raises(EpicqaError, match="'reranked' is not a depth"):
        repeat()
    changed = {"reranked": None, "run_sha256": "0", "reranker": "0", "bi_encoder": "0"}
    made.manifest.write_text(json.dumps(noted | changed))
    notes = repeat()[0].notes
    assert len(notes) == 1 and notes[0].endswith("what differs: bi_encoder, reranker")


def test_an_interrupted_run_keeps_the_depths_that_its_budget_reached(
    home: Path, few: str, plain: dict, tiny_reranker: Path
) -> None:
    config = Config(**plain | {"reranker": str(tiny_reranker)}, questions=few, budget=0.0, depth=20)
    with pytest.raises(KeyboardInterrupt):
        make_run(config, tag="x", progress=stop_after(2))
    (journal,) = journals(home)
    lines = journal.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[0])["reranked"] == 0
    journal.write_bytes(lines[0].replace(b'"reranked":0', b'"reranked":9'))
    made = make_run(config, tag="x")
    assert list(manifest(made.path)["reranked"].values()) == [9, 0, 0]


def test_models_that_are_not_there(home: Path, few: str, plain: dict, tiny_reranker: Path) -> None:
    for name in ("reranker", "bi_encoder"):
        for model, message in (
            (
                "./absent",
                "unknown model './absent', expected static, epicqa, claims, minilm, a model folder,",
            ),
            ("", f"{home}: no model there, expected modules.json or config.json"),
            ("json", "package json carries no model"),
        ):
            assert refused(Config(**plain | {name: model}, questions=few)).startswith(message)
    wrong = [({"reranker": "static"}, "model 'static' cannot be loaded")]
    if not find_spec("openvino"):
        other = {"reranker": str(tiny_reranker), "backend": "openvino"}
        wrong.append((other, "back end openvino: the package openvino is missing"))
    for settings, message in wrong:
        with pytest.raises(EpicqaError) as error:
            make_run(Config(**plain | settings, questions=few))
        assert str(error.value).startswith(message) and "\n" not in str(error.value)
    assert not (home / "runs").exists()


def test_the_whole_default(home: Path) -> None:
    path = home / "one.json"
    path.write_text(json.dumps(json.loads(sample.questions_path("expert").read_text("utf-8"))[:1]))
    made = make_run(Config(questions=str(path)))
    noted = manifest(made.path)
    assert noted["reranker"] == fingerprint(resolve("epicqa"))
    assert noted["bi_encoder"] == fingerprint(resolve("minilm"))
    assert noted["reranked"] == {EXPERT[0].question_id: 400}
    chosen = {"reranker": "epicqa", "bi_encoder": "minilm", "diversity": "novelty", "budget": None}
    assert {name: noted["config"][name] for name in chosen} == chosen
    assert check_runs([made.path])[made.path] == []
    repeated = make_run(load_config(made.manifest, {}), repeat=made.manifest, output=home / "r.tsv")
    assert repeated.path.read_bytes() == made.path.read_bytes() and repeated.notes == ()


def test_a_repeat_tells_what_has_changed(home: Path, few: str, plain: dict) -> None:
    made = make_run(Config(**plain, questions=few, depth=5), tag="once")
    config, repeat = load_config(made.manifest, {}), made.manifest
    shutil.copy(repeat, home / "kept.json")
    again = make_run(config, repeat=home / "kept.json")
    assert again.path == made.path and again.notes == ()
    questions = json.loads(Path(few).read_text())
    questions[0]["question"] = "Do masks work?"
    Path(few).write_text(json.dumps(questions))
    (note,) = make_run(config, repeat=home / "kept.json").notes
    assert note == f"the run is not the one of {home / 'kept.json'}; what differs: questions"
    (note,) = make_run(
        load_config(repeat, {"index": "mine", "diversity": "none", "retriever": "bm25"}), repeat=repeat
    ).notes[1:]
    assert note == f"index 'mine' is not the one of {repeat}"


@pytest.mark.parametrize(
    "content",
    [
        '{"config": {}}',
        '{"epicqa_manifest": 1, "config": {}}',
        '{"epicqa_manifest": 1, "tag": 5, "config": {}}',
        "{}",
        "[]",
    ],
)
def test_what_is_no_manifest_is_not_repeated(home: Path, content: str) -> None:
    (home / "m.json").write_text(content)
    assert "m.json" in refused(Config(), repeat=home / "m.json")


def test_missing_and_default_indexes(home: Path) -> None:
    assert default_index() == "sample"
    assert refused(Config(index="absent")).startswith("no index 'absent'")
    (home / "indexes").unlink()
    assert default_index() == "default"
    assert "there: none yet" in refused(Config())
