import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.ranking import Ranking
from epicqa.runs import (
    RunError,
    check_run,
    judgments_of,
    manifest_path,
    parse_run,
    read_manifest,
    read_run,
    run_rankings,
    write_run,
)

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    """Documents a-b and c, two contexts each of four sentences: 16 rows."""
    folder = tmp_path_factory.mktemp("corpus")
    text = "One. Two. Tri. Qua."
    documents = [
        {
            "document_id": name,
            "metadata": {"title": None, "urls": []},
            "contexts": [
                {
                    "section": None,
                    "context_id": f"{name}-C{c:03d}",
                    "text": text,
                    "sentences": [
                        {"sentence_id": f"{name}-C{c:03d}-S{s:03d}", "start": s * 5, "end": s * 5 + 4}
                        for s in range(4)
                    ],
                }
                for c in range(2)
            ],
        }
        for name in ("a-b", "c")
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    build_corpus([folder / "d.jsonl"], folder / "corpus", workers=1, strict=True)
    return CorpusStore.open(folder / "corpus")


def write(tmp_path: Path, *lines: str, end: str = "\n") -> Path:
    path = tmp_path / "run.tsv"
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def line(passage: str, rank: object = 1, score: object = 1.0, question: str = "EQ001", tag: str = "t") -> str:
    return f"{question}\tQ0\t{passage}\t{rank}\t{score}\t{tag}"


ONE = "c-C000-S000:c-C000-S000"
TWO = "c-C000-S001:c-C000-S001"


# Reading.


def test_sorted_by_score_then_rank_then_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        line("c-C000-S000:c-C000-S000", 9, "9.5"),
        line("c-C000-S001:c-C000-S001", 1, "10.2"),
        line("c-C000-S002:c-C000-S002", 8, "9.50"),
        line("c-C000-S003:c-C000-S003", 8, "95e-1"),
    )
    passages = read_run(path).questions["EQ001"]
    assert passages.line.tolist() == [2, 3, 4, 1]
    assert passages.score_text.tolist() == [b"10.2", b"9.50", b"95e-1", b"9.5"]


def test_white_space_marks_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.tsv"
    path.write_bytes(b"\xef\xbb\xbf\r\n" + f"  {line(ONE)}  \r\n\r\n".replace("\t", "   ").encode())
    run = read_run(path)
    assert (run.tag, list(run.questions), run.questions["EQ001"].line.tolist()) == ("t", ["EQ001"], [2])


def test_odd_document_ids(tmp_path: Path) -> None:
    # ':' and '-' inside, another padding, letters outside ASCII.
    ids = [
        "http://x:1-C000-S001:http://x:1-C000-S002",
        "1f2e-4a-C0007-S0001:1f2e-4a-C007-S1000",
        "éß-C000-S000:éß-C000-S000",
    ]
    run = read_run(write(tmp_path, *(line(passage, i, -i) for i, passage in enumerate(ids))))
    passages = run.questions["EQ001"]
    assert [run.sentence_ids(passages, i) for i in range(3)] == [
        ("http://x:1-C000-S001", "http://x:1-C000-S002"),
        ("1f2e-4a-C007-S001", "1f2e-4a-C007-S1000"),
        ("éß-C000-S000", "éß-C000-S000"),
    ]
    assert passages.first_context.tolist() == passages.last_context.tolist()


@pytest.mark.parametrize(
    ("bad", "kind", "said"),
    [
        ("EQ001 Q0 x 1 1", "columns", "5 columns, expected 6"),
        (line("c-C000-S000"), "malformed", "malformed passage 'c-C000-S000'"),
        (line("c-C-S000:c-C-S000"), "malformed", "malformed passage"),
        (line("c-C000-S000:c-C000-S000:"), "malformed", "malformed passage"),
        (line("a\xa0b-C000-S000:a\xa0b-C000-S000"), "malformed", "malformed passage"),
        (line("c-C000-S002:c-C000-S001"), "order", "ends before it starts"),
        (line(ONE, rank="1.5"), "rank", "rank '1.5', expected a whole number"),
        (line(ONE, rank="9" * 30), "rank", "expected a whole number"),
        (line(ONE, score="nan"), "score", "score 'nan', expected a finite number"),
        (line(ONE, score="inf"), "score", "finite"),
        (line(ONE, score="1e999"), "score", "finite"),
        (line(ONE, score="1_0"), "score", "finite"),
        (line(ONE, score="high"), "score", "finite"),
        (line(ONE, score="١"), "score", "finite"),
    ],
)
def test_unreadable_lines(tmp_path: Path, bad: str, kind: str, said: str) -> None:
    path = write(tmp_path, line(TWO), "", bad)
    with pytest.raises(RunError) as error:
        read_run(path)
    (problem,) = error.value.problems
    assert problem.kind == kind
    assert str(error.value).startswith(f"{path}:3: ")
    assert said in str(error.value)


def test_the_padding_of_ids_is_told_once(tmp_path: Path) -> None:
    run = read_run(write(tmp_path, line(ONE), line("c-C0-S1:c-C0-S2", 2), line("c-C000-S3:c-C000-S04", 3)))
    (note,) = run.notes
    assert (note.line, note.kind, note.fatal) == (2, "padding", False)
    assert run.contexts == ("c-C000",)
    assert read_run(write(tmp_path, line(ONE), line("c-C1000-S1000:c-C1000-S1001", 2))).notes == ()


def test_all_unreadable_lines_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "x", line(ONE, rank="r", score="nan"), line("q"))
    with pytest.raises(RunError) as error:
        read_run(path)
    assert [(problem.line, problem.kind) for problem in error.value.problems] == [
        (1, "columns"),
        (2, "rank"),
        (2, "score"),
        (3, "malformed"),
    ]
    assert str(error.value).endswith("(and 3 more problems)")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "run.tsv: empty"),
        (b"\n \n", "run.tsv: empty"),
        (b"\xef\xbb\xbf", "run.tsv: empty"),
        (b"a\n\xff\xfea", "run.tsv:2: not UTF-8"),
    ],
)
def test_files_that_are_no_runs(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "run.tsv"
    path.write_bytes(data)
    with pytest.raises(EpicqaError, match=said):
        read_run(path)
    with pytest.raises(EpicqaError, match="No such file"):
        read_run(tmp_path / "absent")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet="EQ01\tc-C000S:nae.\n ", max_size=120).map(str.encode))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.tsv"
    path.write_bytes(data)
    try:
        check_run(path)
    except EpicqaError as error:
        assert "\n" not in str(error)


def test_a_full_run_reads_in_about_a_second(tmp_path: Path) -> None:
    lines = [
        line(f"d{i % 7919}-C{q:03d}-S{i:03d}:d{i % 7919}-C{q:03d}-S{i + 1:03d}", i, 1001 - i, f"EQ{q:03d}")
        for q in range(87)
        for i in range(1, 1001)
    ]
    path = write(tmp_path, *lines)
    start = time.process_time()
    run = read_run(path)
    assert time.process_time() - start < 3  # about 0.4 s alone on one core
    assert sum(map(len, run.questions.values())) == 87_000


def test_golden_runs_read() -> None:
    run = read_run(GOLDEN / "synthetic_a.tsv")
    assert (run.tag, len(run.questions)) == ("synthetic_a", 24)


# Writing.


def test_text_score_and_rank_order_agree(tmp_path: Path, store: CorpusStore) -> None:
    rows = np.arange(16)
    ranking = Ranking.of_sentences(np.resize(rows, 1000), np.zeros(1000))
    path = tmp_path / "r" / "run.tsv"
    write_run(path, "tag", {"EQ002": ranking, "EQ001": ranking[:3]}, store)
    text = path.read_text().splitlines()
    assert text[0] == "EQ002\tQ0\ta-b-C000-S000:a-b-C000-S000\t1\t1.000000\ttag"
    assert text[999].split("\t")[3:5] == ["1000", "0.001000"]
    scores = [row.split("\t")[4] for row in text[:1000]]
    assert scores == sorted(set(scores), reverse=True)
    assert scores == sorted(scores, key=float, reverse=True)
    assert read_run(path).questions["EQ002"].rank.tolist() == list(range(1, 1001))
    assert [file.name for file in path.parent.iterdir()] == ["run.tsv"]


def test_rankings_survive_the_file(tmp_path: Path, store: CorpusStore) -> None:
    ranking = Ranking(np.array([5, 0, 12]), np.array([7, 0, 15]), np.array([3.0, 2.0, 1.0]))
    path = tmp_path / "run.tsv"
    write_run(path, "tag", {"CQ001": ranking}, store)
    (back,) = run_rankings(read_run(path), store).values()
    assert (back.first.tolist(), back.last.tolist()) == ([5, 0, 12], [7, 0, 15])


def test_scores_beyond_float32_keep_their_order(tmp_path: Path, store: CorpusStore) -> None:
    path = tmp_path / "run.tsv"
    path.write_text(
        "EQ001 Q0 a-b-C000-S000:a-b-C000-S000 1 1e300 t\nEQ001 Q0 a-b-C000-S001:a-b-C000-S001 2 1 t\n"
    )
    (back,) = run_rankings(read_run(path), store).values()
    assert np.isfinite(back.score).all()
    assert back.score[0] > back.score[1]


def test_what_cannot_be_written(tmp_path: Path, store: CorpusStore) -> None:
    many = Ranking.of_sentences(np.zeros(1001, dtype=int), np.zeros(1001))
    with pytest.raises(EpicqaError, match="EQ001: 1001 passages"):
        write_run(tmp_path / "run.tsv", "tag", {"EQ001": many}, store)
    with pytest.raises(EpicqaError, match="run tag 'a b', expected one word"):
        write_run(tmp_path / "run.tsv", "a b", {}, store)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("passage", "said"),
    [
        ("c-C000-S003:c-C000-S004", ":2: unknown sentence c-C000-S004"),
        ("x-C000-S003:x-C000-S003", ":2: unknown sentence x-C000-S003"),
        ("c-C000-S003:c-C001-S000", ":2: c-C000-S003:c-C001-S000 spans contexts"),
    ],
)
def test_rankings_of_a_foreign_run(tmp_path: Path, store: CorpusStore, passage: str, said: str) -> None:
    run = read_run(write(tmp_path, line(ONE), line(passage)))
    with pytest.raises(EpicqaError, match=said):
        run_rankings(run, store)


# Checking.


def test_a_valid_run(tmp_path: Path, store: CorpusStore) -> None:
    path = tmp_path / "run.tsv"
    every = Ranking.of_sentences(np.arange(16), np.zeros(16))
    write_run(path, "tag", {"EQ001": every}, store)
    assert check_run(path, store, ["EQ001"]) == []


def test_every_problem_with_its_line(tmp_path: Path, store: CorpusStore) -> None:
    path = write(
        tmp_path,
        line(ONE, 1, 9),
        line("c-C000-S002:c-C000-S003", 2, 8),
        line(ONE, 3, 7),  # 3: repeats 1
        line("c-C000-S001:c-C000-S002", 4, 6),  # 4: overlaps 2
        line("c-C000-S003:c-C001-S000", 5, 5),  # 5: spans contexts
        line("c-C000-S004:c-C000-S004", 6, 4),  # 6: not in the index
        line("c-C001-S000:c-C001-S000", 7, "NaN"),  # 7
        line("c-C001-S000:c-C001-S000", 8, 3, tag="u"),  # 8: another tag
        line(ONE, 1, 1, question="EQ999"),  # 9: not asked
        line("c-C000-S003:c-C000-S001", "x", 1),  # 10: two problems
        "EQ001 Q0",  # 11
    )
    problems = check_run(path, store, ["EQ001", "EQ002"])
    assert [(problem.line, problem.kind) for problem in problems if problem.fatal] == [
        (3, "repeats"),
        (4, "overlaps"),
        (5, "span"),
        (6, "unknown"),
        (7, "score"),
        (8, "tags"),
        (9, "question"),
        (10, "order"),
        (10, "rank"),
        (11, "columns"),
    ]
    warnings = [(problem.kind, str(problem)) for problem in problems if not problem.fatal]
    assert warnings == [
        ("short", f"{path}: EQ001: 7 passages, the index could give 18"),
        ("missing", f"{path}: no passages for 1 of 2 questions: EQ002"),
    ]


def test_every_problem_of_a_file_in_the_usual_shape(tmp_path: Path, store: CorpusStore) -> None:
    path = write(
        tmp_path,
        line(ONE, 1, 9),
        line(TWO, 1, 8, question="EQ002"),
        line("c-C000-S002:c-C000-S003", 2, 8),
        line(ONE, 3, 7),  # 4: repeats 1
        line("c-C000-S001:c-C000-S002", 4, 6),  # 5: overlaps 3
        line("c-C000-S003:c-C001-S000", 5, 5),  # 6: spans contexts
        line("c-C001-S003:c-C001-S004", 6, 4),  # 7: one not in the index
        line("c-C001-S000:c-C001-S000", 8, 3, tag="u"),  # 8: another tag
        line("a-b-C000-S000:a-b-C000-S000", 7, 2),  # 9: ranks and scores disagree
        line(ONE, 2, "10", question="EQ002"),  # 10: texts and scores disagree
        line(ONE, 1, 1, question="EQ999"),  # 11: not asked
    )
    problems = check_run(path, store, ["EQ001", "EQ002"])
    assert [(problem.line, problem.kind) for problem in problems] == [
        (2, "ranks"),
        (4, "repeats"),
        (5, "overlaps"),
        (6, "span"),
        (7, "unknown"),
        (8, "tags"),
        (9, "ranks"),
        (10, "text-order"),
        (11, "question"),
        (None, "short"),
        (None, "short"),
    ]
    path.write_bytes(path.read_bytes() + b"\n \n")
    assert check_run(path, store, ["EQ001", "EQ002"]) == problems


def test_too_many_passages(tmp_path: Path, store: CorpusStore) -> None:
    path = write(tmp_path, line(ONE, 1, 2), line(TWO, 2, 1))
    (problem,) = [found for found in check_run(path, store, depth=1) if found.fatal]
    assert str(problem) == f"{path}:2: EQ001: 2 passages, expected at most 1"


def test_orders_that_disagree_are_warnings(tmp_path: Path) -> None:
    path = write(tmp_path, line(ONE, 1, "9.5"), line(TWO, 2, "10.5"))
    problems = check_run(path)
    assert [(problem.line, problem.kind, problem.fatal) for problem in problems] == [
        (1, "ranks", False),
        (2, "text-order", False),
    ]


def plain_overlaps(passages: list[tuple[str, int, int]]) -> set[int]:
    return {
        j + 1
        for j, (context, first, last) in enumerate(passages)
        for other, start, stop in passages[:j]
        if other == context and start <= last and stop >= first
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a-C000", "a-C001"]), st.integers(0, 12), st.integers(0, 4)),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_overlaps_against_a_plain_reference(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, int, int]], random: object
) -> None:
    passages = [(context, first, first + more) for context, first, more in drawn]
    folder = tmp_path_factory.getbasetemp()
    lines = [line(f"{c}-S{a:03d}:{c}-S{b:03d}", i, (i * 7) % 5) for i, (c, a, b) in enumerate(passages)]
    problems = check_run(write(folder, *lines))
    assert {problem.line for problem in problems if problem.fatal} == plain_overlaps(passages)


# Manifests.


def test_judgments_through_the_manifest(tmp_path: Path) -> None:
    run = tmp_path / "my.run.tsv"
    assert manifest_path(run) == tmp_path / "my.run.json"
    assert read_manifest(run) is None
    with pytest.raises(EpicqaError, match=r"no manifest my\.run\.json beside it\), pass --judgments"):
        judgments_of(run)
    for named, expected in [
        ("sample", "judgments.json"),
        ("sub/j.json", str(tmp_path / "sub" / "j.json")),
        ("/abs/j.json", "/abs/j.json"),
    ]:
        manifest_path(run).write_text(json.dumps({"epicqa_manifest": 1, "judgments": named}))
        assert str(judgments_of(run)).endswith(expected)
    manifest_path(run).write_text(json.dumps({"epicqa_manifest": 1, "judgments": None}))
    with pytest.raises(EpicqaError, match="its manifest names none"):
        judgments_of(run)


def test_manifests_that_are_none(tmp_path: Path) -> None:
    run = tmp_path / "run.tsv"
    manifest_path(run).write_text('{"something": "else"}')
    assert read_manifest(run) is None
    manifest_path(run).write_text('{"epicqa_manifest": 9}')
    with pytest.raises(EpicqaError, match="manifest of version 9, this epicqa reads version 1"):
        read_manifest(run)
    for key, value in [("index", 7), ("questions", []), ("questions", {"ids": "EQ001"}), ("config", "x")]:
        manifest_path(run).write_text(json.dumps({"epicqa_manifest": 1, key: value}))
        with pytest.raises(EpicqaError, match=f"{key!r} is not a"):
            read_manifest(run)
    manifest_path(run).write_text("{")
    with pytest.raises(EpicqaError, match=r"run\.json:1: broken JSON"):
        read_manifest(run)
    assert read_manifest(tmp_path / "run.json") is None


def test_parse_keeps_the_good_lines(tmp_path: Path) -> None:
    run, problems = parse_run(write(tmp_path, line(ONE), "bad"))
    assert len(run.questions["EQ001"]) == 1
    assert len(problems) == 1
