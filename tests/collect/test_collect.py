"""Collecting as a whole: what comes out, again and again, also after kills, and what is reported."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import sha1
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicqa.collect import Settings, collect, job
from epicqa.collect.layout import MARK, NEAR_DUPLICATES, REPORT, file_name, read_collected
from epicqa.collect.terms import matches
from epicqa.collect.url_ids import read_url_ids
from epicqa.corpus.drafts import clean
from epicqa.corpus.model import Document
from epicqa.corpus.sources import parse, records
from epicqa.corpus.sources.merge import Merge
from epicqa.errors import EpicqaError

Lines = Callable[..., Any]
Write = Callable[..., Path]

WORDS = (
    "patients",
    "viral",
    "load",
    "nasal",
    "swab",
    "fever",
    "cough",
    "mask",
    "vaccine",
    "dose",
    "trial",
    "lung",
)


def text(seed: int, length: int = 40) -> str:
    """Words in an order of its own: two texts share no five in a row but by chance."""
    digest = b"".join(sha1(b"%d %d" % (seed, at)).digest() for at in range(length // 20 + 1))
    return " ".join(f"{WORDS[byte % len(WORDS)]}{byte % 7}" for byte in digest[:length]).capitalize() + "."


def plain(number: int, *texts: int, title: str = "A title") -> dict[str, Any]:
    """A document as ``epicqa index`` takes it, a paragraph a text."""
    return {"id": f"d{number}", "title": title, "text": "\n\n".join(map(text, texts or (number,)))}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def documents(folder: Path) -> list[Document]:
    return [parse(one.raw) for one in records(folder)]


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


def report(out: Path) -> list[list[str]]:
    assert (out / REPORT).read_text().startswith("place\tdocument\tkind\treason\n")
    return table(out / REPORT)


def left(out: Path) -> Path:
    """Where the work lies until it is whole."""
    return out.with_name(f".{out.name}.collecting")


def check(out: Path, done: Any) -> list[Document]:
    """Whatever is told about a collection is so on disk; its documents."""
    found = documents(out)
    assert done == read_collected(out)
    counts = (done.documents, done.contexts, done.sentences)
    contexts = [context for one in found for context in one.contexts]
    assert counts == (len(found), len(contexts), sum(len(one.sentences) for one in contexts))
    assert len({one.document_id for one in found}) == len(found)
    near = table(out / NEAR_DUPLICATES)
    assert done.near_duplicates == Counter(row[0] for row in near)
    assert done.dropped == Counter(row[0] for row in near if row[4] == "yes")
    kinds = Counter(row[2] for row in report(out))
    assert kinds == {kind: count for kind, count in done.left_out.items() if kind != "filtered"}
    assert not left(out).exists()
    return found


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts for a small collection."""
    monkeypatch.setattr(job, "BATCH_PIECES", 3)


@pytest.fixture
def papers(write: Write) -> list[Path]:
    """Two files: documents, a duplicate, something broken, a near-duplicate document and context."""
    return [
        write("one.jsonl", *(plain(number) for number in range(8)), {"id": "broken"}, plain(20, 0)),
        write("two.jsonl", plain(3), *(plain(number, number, 5) for number in range(8, 12))),
    ]


# What comes out.


TEXTS = st.sampled_from(["Covid here. Two.", "Nothing.", " \n", "", "Long covid.", "SARS"])
ONE = st.one_of(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", "c", "x y"]) | st.none(),
            "title": st.sampled_from([None, "Covid", "Other"]),
            "texts": st.lists(TEXTS, max_size=3),
        }
    ),
    st.fixed_dictionaries({"left_out": st.sampled_from(["broken", "too large", "filtered"])}),
    st.fixed_dictionaries(
        {"raise": st.sampled_from(["ValueError", "RecursionError", "MemoryError", "OSError"])}
    ),
)
FILES = st.lists(st.lists(st.lists(ONE, max_size=3), max_size=5), min_size=1, max_size=2)
HOW = st.builds(
    Settings,
    terms=st.sampled_from([(), ("covid",)]),
    where=st.sampled_from(["any", "title", "text", "both"]),
    jsonl=st.booleans(),
    duplicate_documents=st.just("off"),
    duplicate_contexts=st.just("off"),
)


def expected(
    given_files: Sequence[Sequence[Sequence[dict[str, Any]]]], how: Settings
) -> tuple[dict[str, list[str]], list[list[str]], int]:
    """The texts of each document, the report's places and kinds in order, the filtered: plainly."""
    found: dict[str, list[str]] = {}
    rows, filtered = [], 0
    for number, lines in enumerate(given_files):
        for at, line in enumerate(lines, 1):
            place = f"{number}.jsonl:{at}"
            for one in line:
                if "raise" in one:
                    rows.append([place, "", "broken"])
                    break
                if one.get("left_out") == "filtered":
                    filtered += 1
                elif "left_out" in one:
                    rows.append([place, "", one["left_out"]])
                elif not matches(one["title"], one["texts"], how.terms, how.where):
                    filtered += 1
                else:
                    texts = [piece for piece in map(clean, one["texts"]) if piece]
                    name = one["id"] or sha1("".join(texts).encode()).hexdigest()
                    if name == "x y":
                        rows.append([place, "", "broken"])
                    elif not texts:
                        rows.append([place, name, "no text"])
                    elif name in found:
                        rows.append([place, name, "duplicate"])
                    else:
                        found[name] = texts
    return found, rows, filtered


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES, HOW)
def test_as_the_plain_reference(
    tmp_path: Path, lines: Lines, given_files: list[list[list[dict[str, Any]]]], how: Settings
) -> None:
    inputs = []
    for number, given_lines in enumerate(given_files):
        inputs.append(tmp_path / f"{number}.jsonl")
        inputs[-1].write_text("".join(json.dumps(line) + "\n" for line in given_lines))
    found, rows, filtered = expected(given_files, how)
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    if not found:
        with pytest.raises(EpicqaError, match=r"^no document was collected \([^\n]*$"):
            collect(lines(), inputs, out, how, workers=1)
        assert not out.exists()
        return
    done = collect(lines(), inputs, out, how, workers=1)
    written = check(out, done)
    assert {one.document_id: [context.text for context in one.contexts] for one in written} == found
    # Duplicates of a batch are told after what else was left out of it.
    assert sorted(row[:3] for row in report(out)) == sorted(rows)
    assert done.left_out.get("filtered", 0) == filtered
    assert (out / NEAR_DUPLICATES).read_text() == "what\tid\tnear\tsimilarity\tdropped\n"
    if how.jsonl:
        assert [one.document_id for one in written] == list(found)
        assert len(files(out)) == 4
    else:
        assert set(files(out)) == {*map(file_name, found), REPORT, NEAR_DUPLICATES, MARK}


def test_sizes_of_contexts_and_sentences(tmp_path: Path, write: Write, lines: Lines) -> None:
    path = write("a.jsonl", [{"id": "d", "texts": ["One two three four five six. Two. Three. Four. Five."]}])
    how = Settings(max_sentences=2, max_characters=20)
    (one,) = check(tmp_path / "out", collect(lines(), [path], tmp_path / "out", how, workers=1))
    assert [[context.text[s.start : s.end] for s in context.sentences] for context in one.contexts] == [
        ["One two three four", "five six."],
        ["Two.", "Three."],
        ["Four.", "Five."],
    ]


def test_files_and_jsonl_hold_the_same(tmp_path: Path, papers: list[Path]) -> None:
    found = []
    for jsonl in (False, True):
        out = tmp_path / f"out{jsonl}"
        done = collect(Merge(), papers, out, Settings(jsonl=jsonl), workers=1)
        found.append({one.document_id: one for one in check(out, done)})
    assert found[0] == found[1] and list(found[1])[:3] == ["d0", "d1", "d2"]
    lines = (tmp_path / "outTrue" / "documents.jsonl").read_bytes().splitlines(keepends=True)
    named = files(tmp_path / "outFalse")
    assert all(named[f"{parse(line).document_id}.json"] == line for line in lines)


NASTY = [
    *(
        "a/b",
        "..",
        ".",
        ".x",
        "-rf",
        "~",
        "ü",
        "😀",
        "A",
        "a",
        "a%2Fb",
        "a\\b",
        "\x01",
        "a\u200bb",
        "*?:|<>\"'",
    ),
    *("x" * 300, "ü" * 300, "x" * 299 + "/", "x" * 200, "x" * 250),
    *("report.tsv", "documents.jsonl", "https://a.b/c?d=e#f"),
]


def test_files_of_any_id(tmp_path: Path, write: Write, lines: Lines) -> None:
    path = write("a.jsonl", [{"id": name, "texts": [f"Text {n}."]} for n, name in enumerate(NASTY)])
    out = tmp_path / "out"
    done = collect(lines(), [path], out, workers=1)
    assert {one.document_id for one in check(out, done)} == set(NASTY)
    made = [name for name in files(out) if name.endswith(".json") and name != MARK]
    assert len(made) == len(NASTY) and not any(name.startswith(".") for name in made)
    assert {"a.json", "A.json", "-rf.json"} <= set(made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]


@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1), max_size=5, unique=True))
def test_file_names_differ(ids: list[str]) -> None:
    names = [file_name(one) for one in ids]
    assert len(set(names)) == len(ids)
    assert all("/" not in name and "\0" not in name and not name.startswith(".") for name in names)
    assert all(name.endswith(".json") and len(os.fsencode(name)) <= 255 for name in names)


def test_ids_do_not_depend_on_the_order_of_inputs(tmp_path: Path, write: Write, lines: Lines) -> None:
    inputs = [
        write(
            f"{n}.jsonl", [{"title": f"T{n}", "texts": [text(n), text(n + 50)]}], [{"texts": [text(n + 9)]}]
        )
        for n in range(4)
    ]
    found = []
    for number, order in enumerate((inputs, inputs[::-1])):
        out = tmp_path / f"out{number}"
        found.append({one.document_id: one for one in check(out, collect(lines(), order, out, workers=1))})
    assert found[0] == found[1] and len(found[0]) == 8


def test_a_source_that_raises_leaves_the_others(tmp_path: Path, write: Write, lines: Lines) -> None:
    errors = {
        "RecursionError": "too deep",
        "ValueError": "two\nlines \ud800",
        "KeyError": "",
        "UnicodeError": "x",
    }
    lines_of_errors = (
        [{"id": f"before{error}", "texts": ["A."]}, {"raise": error, "message": message}, {"texts": ["B."]}]
        for error, message in errors.items()
    )
    path = write(
        "a.jsonl",
        *lines_of_errors,
        [{"id": "a\ud800", "texts": ["Half a pair."]}, {"id": "beside", "texts": ["C."]}],
        [{"left_out": "broken", "reason": "\udfff", "id": "\ud800"}, {"id": "after", "texts": ["C."]}],
        [{"id": "odd", "texts": ["D."], "metadata": {"deep": "\ud800"}}, {"id": "last", "texts": ["D."]}],
    )
    done = collect(lines(), [path], tmp_path / "out", workers=1)
    found = {one.document_id for one in check(tmp_path / "out", done)}
    assert {*(f"before{error}" for error in errors), "beside", "after", "last"} <= found
    rows = report(tmp_path / "out")
    assert [row[0] for row in rows] == [f"a.jsonl:{n}" for n in range(1, 8)]
    assert all(row[2] == "broken" and row[3] for row in rows)
    assert rows[0][3] == "cannot be read: RecursionError: too deep"


def test_documents_of_one_id_are_reported_with_both_places(
    tmp_path: Path, write: Write, lines: Lines
) -> None:
    one = {"id": "d", "texts": ["First."]}
    path = write("a.jsonl", [one, one], [{"id": "e", "texts": ["Other."]}], [one])
    done = collect(lines(), [path, path], tmp_path / "out", workers=1)
    assert (done.documents, done.left_out) == (2, {"duplicate": 6})
    check(tmp_path / "out", done)
    assert report(tmp_path / "out") == [
        [f"a.jsonl:{at}", name, "duplicate", f"this id came before, in a.jsonl:{first}"]
        for at, name, first in [(1, "d", 1), (3, "d", 1), (1, "d", 1), (1, "d", 1), (2, "e", 2), (3, "d", 1)]
    ]


# Near-duplicates.


def near_reference(
    given_documents: dict[str, list[int]], how: Settings
) -> tuple[dict[str, list[int]], list[list[str]]]:
    """What stays of documents of unlike texts, and what is told: equal documents, equal texts."""
    told, stay, compared = [], dict(given_documents), dict(given_documents)
    if how.duplicate_documents != "off":
        seen: dict[tuple[int, ...], str] = {}
        for name, texts in given_documents.items():
            first = seen.setdefault(tuple(texts), name)
            if first != name:
                drop = how.duplicate_documents == "drop"
                told.append(["document", name, first, "1.00", "yes" if drop else "no"])
                del compared[name]
                if drop:
                    del stay[name]
    numbers = {name: list(range(len(texts))) for name, texts in stay.items()}
    if how.duplicate_contexts != "off":
        drop = how.duplicate_contexts == "drop"
        firsts: dict[int, str] = {}
        for name, texts in (stay if drop else compared).items():
            for number, one in enumerate(texts):
                context = f"{name}-C{number:03d}"
                first = firsts.setdefault(one, context)
                if first != context:
                    told.append(["context", context, first, "1.00", "yes" if drop else "no"])
                    if drop:
                        numbers[name].remove(number)
    return {name: found for name, found in numbers.items() if found}, told


HANDLINGS = list(product(("off", "report", "drop"), repeat=2))


SOME = st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(sorted)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SOME, min_size=1, max_size=7), st.sampled_from(HANDLINGS))
def test_near_duplicates_as_the_plain_reference(
    tmp_path: Path,
    small_batches: None,
    write: Write,
    given_texts: list[list[int]],
    handling: tuple[Any, Any],
) -> None:
    how = Settings(duplicate_documents=handling[0], duplicate_contexts=handling[1])
    given_documents = {f"d{number}": texts for number, texts in enumerate(given_texts)}
    path = write("a.jsonl", *(plain(number, *texts) for number, texts in enumerate(given_texts)))
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    found = check(tmp_path / "out", collect(Merge(), [path], tmp_path / "out", how, workers=1))
    stay, told = near_reference(given_documents, how)
    assert table(tmp_path / "out" / NEAR_DUPLICATES) == told
    assert {
        one.document_id: [int(context.context_id[-3:]) for context in one.contexts] for one in found
    } == stay
    for one in found:
        for context in one.contexts:
            assert context.text == text(given_documents[one.document_id][int(context.context_id[-3:])])


def test_near_is_a_matter_of_degree(tmp_path: Path, write: Write) -> None:
    whole = text(1, 200)
    path = write(
        "a.jsonl",
        {"id": "first", "text": whole},
        {"id": "near", "text": whole.replace(" ", "\n", 3).upper().replace(".", " indeed!")},
        {"id": "half", "text": " ".join(whole.split()[:100]) + " " + text(2, 100)},
        {"id": "short", "text": "Seven words are too few to tell."},
        {"id": "short too", "text": "x"},
        {"id": "short2", "text": "Seven words are too few to tell."},
    )
    done = collect(Merge(), [path], tmp_path / "out", Settings(duplicate_documents="drop"), workers=1)
    check(tmp_path / "out", done)
    (row,) = table(tmp_path / "out" / NEAR_DUPLICATES)
    assert (row[:3], row[4]) == (["document", "near", "first"], "yes") and 0.9 <= float(row[3]) <= 1
    assert (done.documents, done.left_out) == (4, {"broken": 1})
    loose = Settings(duplicate_documents="drop", similarity=0.2)
    done = collect(Merge(), [path], tmp_path / "out", loose, workers=1)
    assert [row[1] for row in table(tmp_path / "out" / NEAR_DUPLICATES)] == ["near", "half"]


def test_short_contexts_make_documents_differ(tmp_path: Path, write: Write) -> None:
    """Those of pages are often list items, too short for a signature of their own."""

    def page_of(name: str, first: int) -> dict[str, str]:
        items = [text(number, 5) for number in range(first, first + 12)]
        return {"id": name, "text": "\n\n".join([text(99), *items])}

    path = write("a.jsonl", page_of("a", 0), page_of("b", 20), page_of("c", 20))
    done = collect(Merge(), [path], tmp_path / "out", Settings(duplicate_documents="drop"), workers=1)
    check(tmp_path / "out", done)
    assert [row[1:3] for row in table(tmp_path / "out" / NEAR_DUPLICATES) if row[0] == "document"] == [
        ["c", "b"]
    ]


def test_parts_without_a_document(tmp_path: Path, small_batches: None, write: Write, lines: Lines) -> None:
    """Signatures of nothing are as good as others."""
    nothing = [{"id": "x", "texts": ["Nothing."]}]
    some = [{"id": "y", "texts": [text(1)]}], [{"id": "z", "texts": [text(1)]}]
    path = write("a.jsonl", *[nothing] * 4, some[0], *[nothing] * 7, some[1], *[nothing] * 5)
    how = Settings(terms=("fever", "cough", *WORDS, *(f"{word}{n}" for word in WORDS for n in range(7))))
    done = collect(lines(), [path], tmp_path / "out", how, workers=1)
    check(tmp_path / "out", done)
    assert (done.documents, done.left_out, done.near_duplicates) == (2, {"filtered": 16}, {"document": 1})


# The same again.


def test_one_or_two_workers(tmp_path: Path, small_batches: None, papers: list[Path]) -> None:
    how = Settings(duplicate_documents="drop", duplicate_contexts="drop")
    one = collect(Merge(), papers, tmp_path / "one", how, workers=1)
    check(tmp_path / "one", one)
    assert one.dropped == {"document": 1, "context": 4} and one.left_out == {"broken": 1, "duplicate": 1}
    two = collect(Merge(), papers, tmp_path / "two", how, workers=2)
    assert files(tmp_path / "two") == files(tmp_path / "one")
    assert (two.key, two.documents) == (one.key, one.documents)


def test_workers_meet_drafts_and_the_table_of_ids(
    tmp_path: Path, small_batches: None, write: Write, lines: Lines
) -> None:
    path = write("a.jsonl", *([{"url": f"http://a/{n}", "texts": [text(n)]}] for n in range(10)))
    (tmp_path / "ids.tsv").write_text("http://a/4\tfour\n")
    shutil.copy(tmp_path / "ids.tsv", tmp_path / "ids2.tsv")
    collect(lines(), [path], tmp_path / "one", url_ids=tmp_path / "ids.tsv", workers=1)
    collect(lines(), [path], tmp_path / "two", url_ids=tmp_path / "ids2.tsv", workers=2)
    assert files(tmp_path / "two") == files(tmp_path / "one") and "four.json" in files(tmp_path / "one")
    assert (tmp_path / "ids.tsv").read_bytes() == (tmp_path / "ids2.tsv").read_bytes()


def test_interrupted_at_any_point(
    tmp_path: Path, small_batches: None, write: Write, papers: list[Path], lines: Lines
) -> None:
    """The next run goes on and does nothing twice; until then the collection that was there stays."""
    pages = [
        [{"url": f"http://a/{n}", "texts": [text(n % 7), text(n)]}, {"left_out": "broken"}] for n in range(10)
    ]
    path, log = write("pages.jsonl", *pages), tmp_path / "log"
    told: list[str] = []
    how = Settings(duplicate_contexts="drop")

    def run(out: Path, progress: Any, source: Any = None) -> Any:
        source = source or lines(log=str(log))
        return collect(source, [path], out, how, url_ids=tmp_path / "ids.tsv", workers=1, progress=progress)

    def start_table() -> None:
        (tmp_path / "ids.tsv").write_text("http://a/3\tthree\n")
        log.write_text("")

    start_table()
    run(tmp_path / "whole", lambda step, done, total: told.append(step))
    wanted, wanted_table = files(tmp_path / "whole"), (tmp_path / "ids.tsv").read_text()
    drafted = Counter(log.read_text().splitlines())
    assert "three.json" in wanted and len(told) >= 9 and set(drafted.values()) == {1}
    for at in range(len(told)):
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        if at % 2:
            collect(Merge(), papers, out, workers=1)
        old = files(out) if at % 2 else None
        start_table()
        calls = []

        def interrupt(
            step: str, done: int, total: int | None, at: int = at, calls: list[str] = calls
        ) -> None:
            calls.append(step)
            if len(calls) > at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(out, interrupt)
        assert (files(out) if out.exists() else None) == old
        assert (tmp_path / "ids.tsv").read_text() == "http://a/3\tthree\n"
        run(out, None)
        assert files(out) == wanted and (tmp_path / "ids.tsv").read_text() == wanted_table
        # What came just before the interrupt may be done, and not told yet.
        again = Counter(log.read_text().splitlines())
        assert again == drafted, told[at]
        assert not left(out).exists()


@pytest.mark.parametrize("at", [0, 1])
def test_an_error_while_the_collection_is_put_in_its_place(
    tmp_path: Path, papers: list[Path], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    collect(Merge(), papers, tmp_path / "whole", workers=1)
    out = tmp_path / "out"
    collect(Merge(), papers[:1], out, workers=1)
    old = files(out)
    rename, calls = Path.rename, []

    def failing(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > at:
            raise OSError("no")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with pytest.raises(OSError, match="no"):
            collect(Merge(), papers, out, workers=1)
    # Whatever is done next: nobody loses the old collection for one that does not come.
    with pytest.raises(EpicqaError, match="no document was collected"):
        collect(Merge(), papers, out, Settings(terms=("nowhere",)), workers=1)
    assert files(out) == old
    collect(Merge(), papers, out, workers=1)
    assert files(out) == files(tmp_path / "whole")
    assert not left(out).exists()


# Kills itself at the nth call of progress, or as it is about to rename a folder for the nth time.
DRIVER = """
import os, signal, sys
from contextlib import contextmanager
from pathlib import Path
from epicqa.cli import main, progress
from epicqa.collect import job

if __name__ == "__main__":
    what, number = sys.argv[1], int(sys.argv[2])
    job.BATCH_PIECES = 3
    calls = 0

    def count(*told):
        global calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def steps(transient=False):
        yield count if what == "progress" else (lambda *told: None)

    progress.steps = steps
    if what == "rename":
        rename = Path.rename
        Path.rename = lambda self, target: (count(), rename(self, target))[1]
    sys.argv[1:] = sys.argv[3:]
    main()
"""


@pytest.mark.parametrize(
    ("what", "number", "threads"),
    [("progress", 3, 2), ("progress", 8, 1), ("rename", 1, 1), ("rename", 2, 1)],
)
def test_killed_and_finished(
    tmp_path: Path, small_batches: None, papers: list[Path], what: str, number: int, threads: int
) -> None:
    collect(Merge(), papers, tmp_path / "whole", workers=1)
    out = tmp_path / "out"
    collect(Merge(), papers[:1], out, workers=1)
    old = files(out)
    command = ["collect", "merge", *papers, "-o", out, "--threads", threads]
    process = subprocess.run(
        [sys.executable, "-c", DRIVER, what, str(number), *map(str, command)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert left(out).exists()
    # Between the two renames there is nothing for a moment.
    assert (files(out) == old) if (what, number) != ("rename", 2) else not out.exists()
    if what == "progress":
        # Some of the work is done, and stays.
        assert list((left(out) / "parts").glob("*.json"))
    done = collect(Merge(), papers, out, workers=1)
    check(out, done)
    assert files(out) == files(tmp_path / "whole")


def test_unchanged_changed_and_forced(
    tmp_path: Path, write: Write, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = tmp_path / "log", tmp_path / "out"
    path = write("a.jsonl", [{"id": "d", "texts": ["One. Two."]}])
    other = write("b.jsonl", [{"id": "e", "texts": ["One. Two."]}])

    def runs(inputs: Sequence[Path] = (path,), how: Settings | None = None, **others: Any) -> bool:
        """Whether anything was done."""
        before = (out / "d.json").stat().st_mtime_ns if (out / "d.json").exists() else 0
        log.write_text("")
        done = collect(lines(log=str(log)), inputs, out, how, workers=1, **others)
        check(out, done)
        worked = bool(log.read_text())
        assert worked == ((out / "d.json").stat().st_mtime_ns != before)
        return worked

    assert runs()
    assert not runs()
    assert not runs(how=Settings())
    monkeypatch.chdir(tmp_path)
    assert not runs((Path("a.jsonl"),))
    assert runs(force=True)
    assert not runs()
    for how in (
        Settings(terms=("one",)),
        Settings(terms=("one",), where="text"),
        Settings(max_sentences=1),
        Settings(max_characters=3),
        Settings(max_file_size=5000),
        Settings(duplicate_documents="off"),
        Settings(duplicate_contexts="drop"),
        Settings(similarity=0.8),
    ):
        assert runs(how=how) and not runs(how=how)
    assert runs((path, other)) and not runs((path, other))
    assert runs((other, path)) and not runs((other, path))
    assert runs((path,))
    os.utime(path, ns=(1, 1))
    assert runs() and not runs()
    (out / MARK).write_text("{")
    assert runs() and not runs()
    shutil.rmtree(out)
    assert runs()


def test_another_job_in_the_work_folder_is_swept(
    tmp_path: Path, small_batches: None, papers: list[Path]
) -> None:
    """What an interrupted run of other settings left is of no use."""

    def interrupt(step: str, done: int, total: int | None) -> None:
        if done > 3:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        collect(Merge(), papers, out, Settings(max_file_size=5000), workers=1, progress=interrupt)
    (left(out) / "parts" / ".000000.jsonl.1.tmp").touch()
    assert len(list((left(out) / "parts").glob("*.json"))) >= 2
    collect(Merge(), papers, out, workers=1)
    collect(Merge(), papers, tmp_path / "whole", workers=1)
    assert files(out) == files(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jsonl", "out", "two.jsonl", "whole"]


def test_a_second_process_is_told_so(tmp_path: Path, papers: list[Path]) -> None:
    told = []

    def another(step: str, done: int, total: int | None) -> None:
        if not told:
            command = [*("-m", "epicqa", "collect", "merge"), *papers, "-o", tmp_path / "out", "--threads", 1]
            ended = subprocess.run(
                [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=120
            )
            told.append((ended.returncode, ended.stdout, ended.stderr))

    done = collect(Merge(), papers, tmp_path / "out", workers=1, progress=another)
    line = f"epicqa: {tmp_path / 'out'}: another process collects into it; wait for it to end\n"
    assert told == [(2, "", line)]
    check(tmp_path / "out", done)


# Where it may lie.


def test_bad_places(tmp_path: Path, papers: list[Path]) -> None:
    def refused(inputs: Sequence[Path], out: Path) -> str:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(EpicqaError) as error:
            collect(Merge(), inputs, out, workers=1)
        assert sorted(tmp_path.rglob("*")) == before
        assert "\n" not in str(error.value)
        return str(error.value)

    out, absent = tmp_path / "out", tmp_path / "absent"
    assert refused([absent], out) == f"{absent}: no such file or folder"
    assert refused(papers, papers[0]) == f"{papers[0]}: a file, expected a folder for the collection"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    assert "holds files of something else" in refused(papers, tmp_path / "full")
    assert "lies in the input" in refused([tmp_path], out)
    assert "lies in the input" in refused([tmp_path], tmp_path / "full" / "deeper")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    assert "holds files of something else" in refused(papers, tmp_path / "link")
    collect(Merge(), papers, out, workers=1)
    assert "lies in the input" in refused([out], out)
    assert "lies in the input" in refused([out / "d0.json"], out)
    (tmp_path / "other").symlink_to(out)
    assert "lies in the input" in refused([tmp_path / "other"], out)
    assert refused(papers, Path("/")).startswith("/: ")


def test_good_places(tmp_path: Path, papers: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A new folder below new ones, an empty one, a link, the current one; names that are not UTF-8."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    for out in (tmp_path / "new" / "er", tmp_path / "link", odd):
        check(out.resolve(), collect(Merge(), papers, out, workers=1))
    assert (tmp_path / "link").is_symlink() and "d0.json" in files(tmp_path / "empty")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    check(tmp_path / "here", collect(Merge(), papers, Path(), workers=1))


def test_inputs_of_odd_names(tmp_path: Path, papers: list[Path]) -> None:
    inputs = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    inputs.mkdir()
    broken, archive = inputs / "a\nb\tc.json", inputs / os.fsdecode(b"\xfe.tar")
    broken.write_text("{")
    shutil.copy(papers[0], inputs / os.fsdecode(b"caf\xe9.jsonl"))
    with tarfile.open(archive, "w") as file:
        file.add(papers[1], "two.jsonl")
    archive.write_bytes(archive.read_bytes()[:3000])
    done = collect(Merge(), [inputs, archive], tmp_path / "out", workers=1)
    check(tmp_path / "out", done)
    rows = report(tmp_path / "out")
    assert done.documents == 9 and all(row[0].startswith(f"{tmp_path}/\\xff/") for row in rows)
    places = {row[0].removeprefix(f"{tmp_path}/\\xff/") for row in rows}
    assert {"a b c.json", "caf\\xe9.jsonl:9"} < places and any(one.startswith("\\xfe.tar") for one in places)


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path, papers: list[Path]) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "c"):
        shutil.copy(papers[name == "c"], tmp_path / "in" / f"{name}.jsonl")
    (tmp_path / "in" / "b.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    (tmp_path / "in" / "notes").symlink_to(tmp_path / "nowhere")
    done = collect(Merge(), [tmp_path / "in"], tmp_path / "out", workers=1)
    check(tmp_path / "out", done)
    assert done.documents == 13
    assert [row[2] for row in report(tmp_path / "out") if row[0] == f"{tmp_path}/in/b.jsonl"] == ["broken"]


def test_nothing_to_collect(tmp_path: Path, write: Write, lines: Lines) -> None:
    path = write("a.jsonl", [{"id": "d", "texts": ["One."]}], [{"left_out": "broken", "reason": "why"}])
    out = tmp_path / "out"
    with pytest.raises(EpicqaError) as error:
        collect(lines(), [path], out, Settings(terms=("covid",)), workers=1)
    assert str(error.value) == (
        "no document was collected (1 broken, 1 filtered); the first is a.jsonl:2: why"
    )
    with pytest.raises(EpicqaError, match=r"^no document was collected \(nothing was there to read\)$"):
        collect(lines(), [], out, workers=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl"]
    collect(lines(), [path], out, workers=1)
    old = files(out)
    with pytest.raises(EpicqaError):
        collect(lines(), [path], out, Settings(terms=("covid",)), workers=1)
    assert files(out) == old


# Ids of addresses.


def page(url: str | None, *texts: int, **others: Any) -> list[dict[str, Any]]:
    return [{"url": url, "texts": [text(one) for one in texts], **others}]


def ids_of(out: Path) -> dict[str | None, str]:
    return {one.url: one.document_id for one in documents(out)}


def test_a_page_keeps_its_id_when_its_text_changes(tmp_path: Path, write: Write, lines: Lines) -> None:
    ids, out = tmp_path / "ids.tsv", tmp_path / "out"
    path = write(
        "a.jsonl", page("http://a/", 1), page("http://b/", 2), page(None, 3), page("http://c/", 4, id="own")
    )
    check(out, collect(lines(), [path], out, url_ids=ids, workers=1))
    first = read_url_ids(ids)
    assert list(first) == ["http://a/", "http://b/", "http://c/"] and first["http://c/"] == "own"
    assert first["http://a/"] == sha1(text(1).encode()).hexdigest() == ids_of(out)["http://a/"]
    state = ids.stat().st_mtime_ns
    collect(lines(), [path], out, url_ids=ids, workers=1)
    assert ids.stat().st_mtime_ns == state
    # Another text, one page less, one more.
    path = write("a.jsonl", page("http://d/", 5), page("http://a/", 6))
    check(out, collect(lines(), [path], out, url_ids=ids, workers=1))
    assert ids_of(out) == {"http://a/": first["http://a/"], "http://d/": sha1(text(5).encode()).hexdigest()}
    assert read_url_ids(ids) == {**first, "http://d/": sha1(text(5).encode()).hexdigest()}
    assert list(read_url_ids(ids)) == [*first, "http://d/"]
    # The user's own words.
    ids.write_text("http://a/\tmy-own\n")
    check(out, collect(lines(), [path], out, url_ids=ids, workers=1))
    assert ids_of(out)["http://a/"] == "my-own"


def test_the_table_stays_when_the_run_fails(tmp_path: Path, write: Write, lines: Lines) -> None:
    ids, out = tmp_path / "ids.tsv", tmp_path / "out"
    path = write("a.jsonl", page("http://a/", 1))
    with pytest.raises(EpicqaError):
        collect(lines(), [path], out, Settings(terms=("nowhere",)), url_ids=ids, workers=1)
    assert not ids.exists()
    ids.write_text("http://b/\tb\n\nhttp://c/\tc\n")
    before = ids.read_bytes()
    with pytest.raises(EpicqaError):
        collect(lines(), [path], out, Settings(terms=("nowhere",)), url_ids=ids, workers=1)
    assert ids.read_bytes() == before
    ids.write_text("http://b/ b\n")
    with pytest.raises(EpicqaError, match=r"ids\.tsv:1: expected an address, a tab and a document id"):
        collect(lines(), [path], out, url_ids=ids, workers=1)
    assert ids.read_text() == "http://b/ b\n" and not out.exists()


def test_addresses_that_are_not_as_they_should_be(tmp_path: Path, write: Write, lines: Lines) -> None:
    """They are kept all the same, and the table can be read again."""
    ids, out = tmp_path / "ids.tsv", tmp_path / "out"
    urls = [
        " http://a/ ",
        "http://b/\tx",
        "http://c/\ny",
        "\x00http://d/",
        "http://e/\ud800",
        " ",
        "http://f/\r",
    ]
    path = write("a.jsonl", *(page(url, n) for n, url in enumerate(urls)))
    collect(lines(), [path], out, url_ids=ids, workers=1)
    first = ids_of(out)
    assert len(first) == len(urls)
    path = write("a.jsonl", *(page(url, n + 20) for n, url in enumerate(urls)))
    collect(lines(), [path], out, url_ids=ids, workers=1)
    again = ids_of(out)
    assert {url: name for url, name in again.items() if url} == {
        url: name for url, name in first.items() if url
    }


def test_pages_of_one_text_do_not_share_an_id_for_good(tmp_path: Path, write: Write, lines: Lines) -> None:
    ids, out = tmp_path / "ids.tsv", tmp_path / "out"
    path = write("a.jsonl", page("http://a/", 1), page("http://b/", 1))
    done = collect(lines(), [path], out, url_ids=ids, workers=1)
    assert (done.documents, done.left_out) == (1, {"duplicate": 1})
    path = write("a.jsonl", page("http://a/", 1), page("http://b/", 2))
    done = collect(lines(), [path], out, url_ids=ids, workers=1)
    assert (done.documents, done.left_out) == (2, {})


def test_a_table_inside_the_collection_or_an_input(tmp_path: Path, write: Write, lines: Lines) -> None:
    """The first would go with the old collection, the second makes every run a new one: refused, or right."""
    path = write("a.jsonl", page("http://a/", 1))
    out = tmp_path / "out"
    ids = out / "ids.tsv"
    for _ in range(2):
        try:
            collect(lines(), [path], out, url_ids=ids, workers=1, force=True)
        except EpicqaError as error:
            assert "\n" not in str(error) and not out.exists()
        else:
            assert list(read_url_ids(ids)) == ["http://a/"]
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "a.json").write_text(json.dumps(plain(1)))
    states = []
    for _ in range(2):
        try:
            collect(Merge(), [inputs], tmp_path / "out2", url_ids=inputs / "ids.tsv", workers=1)
        except EpicqaError as error:
            assert "\n" not in str(error) and not (tmp_path / "out2").exists()
        else:
            states.append((tmp_path / "out2" / "d1.json").stat().st_mtime_ns)
    assert len(set(states)) <= 1


# Merging, the one source of these tests that is real.


def test_merge_keeps_what_is_there(tmp_path: Path, papers: list[Path]) -> None:
    """Also contexts with gaps, and again as often as one likes."""
    how = Settings(duplicate_contexts="drop", duplicate_documents="drop")
    first = collect(Merge(), papers, tmp_path / "one", how, workers=1)
    second = collect(Merge(), [tmp_path / "one"], tmp_path / "two", Settings(jsonl=True), workers=1)
    third = collect(Merge(), [tmp_path / "two", *papers], tmp_path / "three", workers=1)
    assert second.near_duplicates == {} and second.documents == first.documents
    kept = {one.document_id: one for one in documents(tmp_path / "one")}
    assert {one.document_id: one for one in documents(tmp_path / "two")} == kept
    again = {one.document_id: one for one in documents(tmp_path / "three")}
    assert again.items() >= kept.items() and again.keys() - kept.keys() == {"d20"}
    assert third.left_out == {"broken": 1, "duplicate": 13}


def test_merge_leaves_out_what_is_too_large(tmp_path: Path, write: Write) -> None:
    path = write("a.jsonl", plain(1), plain(2, *range(30)), plain(3))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.json").write_text(json.dumps(plain(4, *range(30))))
    done = collect(
        Merge(), [path, tmp_path / "in"], tmp_path / "out", Settings(max_file_size=1000), workers=1
    )
    check(tmp_path / "out", done)
    assert (done.documents, done.left_out) == (2, {"too large": 2})
    assert [row[0] for row in report(tmp_path / "out")] == [f"{path}:2", f"{tmp_path}/in/b.json"]
    assert all(row[3].endswith("see --max-file-size") for row in report(tmp_path / "out"))


def test_merge_keeps_what_came_before_damage(tmp_path: Path, papers: list[Path]) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as file:
        for number in range(3):
            file.add(papers[0], f"{number}.jsonl")
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    done = collect(Merge(), [archive, papers[1]], tmp_path / "out", workers=1)
    check(tmp_path / "out", done)
    assert done.documents == 13
    (row,) = [row for row in report(tmp_path / "out") if "cut short" in row[3]]
    assert row[0] in (str(archive), f"{archive}!1.jsonl", f"{archive}!2.jsonl") and row[2] == "broken"
