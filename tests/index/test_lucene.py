"""Lucene indexes: document numbers are rows, whatever the shards, the threads and the interruptions."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.index import jvm, lucene
from epicqa.index.lucene import LuceneIndex, build_lucene, indexed_text, shard_bounds
from epicqa.questions import find_questions

K1, B = 0.9, 0.4
QUESTIONS = [question.question for question in find_questions("all")]


@pytest.fixture(scope="module")
def store(sample_store: CorpusStore) -> CorpusStore:
    return sample_store


@pytest.fixture(scope="module")
def whole(store: CorpusStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's index, of one shard."""
    folder = tmp_path_factory.mktemp("whole") / "lucene"
    build_lucene(store, folder, threads=1)
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Shards and batches so small that the sample has several of them."""
    monkeypatch.setattr(lucene, "SHARD_ROWS", 150)
    monkeypatch.setattr(lucene, "_BATCH", 40)
    return monkeypatch


def corpus(folder: Path, documents: Sequence[dict[str, Any]]) -> CorpusStore:
    folder.mkdir()
    source = folder / "documents.jsonl"
    source.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in documents), "utf-8")
    build_corpus([source], folder / "corpus", workers=1, strict=True)
    return CorpusStore.open(folder / "corpus")


def document(document_id: str, title: str | None, sentences: Sequence[str]) -> dict[str, Any]:
    """A document of one context."""
    context_id = f"{document_id}-C000"
    spans, at = [], 0
    for number, sentence in enumerate(sentences):
        end = at + len(sentence)
        spans.append({"sentence_id": f"{context_id}-S{number:03d}", "start": at, "end": end})
        at = end + 1
    context = {
        "section": None,
        "context_id": context_id,
        "text": " ".join(sentences),
        "sentences": spans,
    }
    return {"document_id": document_id, "metadata": {"title": title}, "contexts": [context]}


def searched(
    folder: Path, texts: Sequence[str], depth: int, threads: int = 1
) -> list[tuple[list[int], list[float]]]:
    index = LuceneIndex(folder)
    try:
        queries = [index.text_query(text) for text in texts]
        found = index.search(queries, depth, k1=K1, b=B, threads=threads)
        return [(rows.tolist(), scores.tolist()) for rows, scores in found]
    finally:
        index.close()


def stored_ids(folder: Path) -> list[str]:
    index = LuceneIndex(folder)
    try:
        with jvm.calling():
            fields = index.reader.storedFields()
            return [str(fields.document(row).get("id")) for row in range(index.reader.maxDoc())]
    finally:
        index.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_numbers_are_rows_and_results_the_same_for_any_shards_and_threads(
    store: CorpusStore, whole: Path, small: pytest.MonkeyPatch, tmp_path: Path, threads: int
) -> None:
    small.setattr(lucene, "SHARD_ROWS", 350)
    small.setattr(lucene, "_BUFFER_MB", 0.1)  # Several segments a shard.
    assert len(shard_bounds(store.n_sentences)) == 3
    told: list[int] = []
    build_lucene(store, tmp_path / "lucene", threads=threads, progress=told.append)
    assert sum(told) == store.n_sentences
    assert stored_ids(tmp_path / "lucene") == [str(row) for row in range(store.n_sentences)]
    assert [path.name for path in tmp_path.iterdir()] == ["lucene"]
    expected = searched(whole, QUESTIONS, 1000)
    for searching in (1, 2):
        assert searched(tmp_path / "lucene", QUESTIONS, 1000, searching) == expected
        assert searched(whole, QUESTIONS, 1000, searching) == expected
    index = LuceneIndex(tmp_path / "lucene")
    try:  # Every score once more, by a search that keeps a few hits only.
        queries = [index.text_query(text) for text in QUESTIONS]
        for (rows, scores), (all_rows, all_scores) in zip(
            index.search(queries, 7, k1=K1, b=B), expected, strict=True
        ):
            assert (rows.tolist(), scores.tolist()) == (all_rows[:7], all_scores[:7])
        assert rows.dtype == np.int64 and scores.dtype == np.float32
    finally:
        index.close()


def test_rankings_fall_and_ties_go_to_the_lower_row(whole: Path) -> None:
    for rows, scores in searched(whole, QUESTIONS, 1000):
        assert list(zip(np.negative(scores), rows, strict=True)) == sorted(
            zip(np.negative(scores), rows, strict=True)
        )
        assert len(rows) > 50 and len(set(rows)) == len(rows)


def test_ties_go_to_the_lower_row_at_the_cut_too(small: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sentences of three kinds, in turn, over seven shards."""
    kinds = ["Masks help.", "Masks help, masks.", "Nothing of the kind."]
    documents = [
        document(f"d{number}", None, [kinds[(number + place) % 3] for place in range(10)])
        for number in range(100)
    ]
    store = corpus(tmp_path / "many", documents)
    build_lucene(store, tmp_path / "lucene", threads=2)
    texts = list(store.iter_sentences(0, store.n_sentences))
    better, worse = ([row for row, text in enumerate(texts) if text == kind] for kind in (kinds[1], kinds[0]))
    for depth in (1, 50, len(better) - 1, len(better) + 1, len(better) + 77, 1000):
        [(rows, scores)] = searched(tmp_path / "lucene", ["masks"], depth)
        assert rows == (better + worse)[:depth]
        assert len(set(scores)) == (1 if depth <= len(better) else 2)


def test_equal_to_anserinis_own_searcher_up_to_ties(whole: Path) -> None:
    depth = 100
    ours = searched(whole, QUESTIONS, 10_000)
    with jvm.calling():
        searcher = jvm.load("io.anserini.search.SimpleSearcher")(str(whole))
        searcher.set_bm25(K1, B)
        for text, (rows, scores) in zip(QUESTIONS, ours, strict=True):
            hits = searcher.search(text, depth)
            # Anserini breaks ties by the id's text and afterwards changes scores by up to 1e-4.
            assert [hit.score for hit in hits] == pytest.approx(scores[:depth], abs=2e-4)
            score = dict(zip(rows, scores, strict=True))
            assert [score[int(hit.lucene_docid)] for hit in hits] == scores[:depth]
        searcher.close()


def test_k1_and_b_are_used(whole: Path) -> None:
    index = LuceneIndex(whole)
    try:
        queries = [index.text_query(QUESTIONS[0])]
        [(_, some)] = index.search(queries, 10, k1=0.9, b=0.4)
        [(_, others)] = index.search(queries, 10, k1=2.0, b=0.9)
        assert some.tolist() != others.tolist()
    finally:
        index.close()


def interrupt_after(count: int) -> Callable[[int], None]:
    def progress(added: int) -> None:
        nonlocal count
        count -= 1
        if not count:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("moment", [1, 25])
def test_an_interrupted_build_goes_on(
    store: CorpusStore, whole: Path, small: pytest.MonkeyPatch, tmp_path: Path, moment: int, threads: int
) -> None:
    folder = tmp_path / "lucene"
    with pytest.raises(KeyboardInterrupt):
        build_lucene(store, folder, threads=threads, progress=interrupt_after(moment))
    assert not folder.exists()
    kept = {path.name for path in (tmp_path / "lucene-shards").iterdir() if path.suffix != ".tmp"}
    assert bool(kept) == (moment > 1)
    written: list[str] = []
    writer = lucene._writer
    small.setattr(lucene, "_writer", lambda path: written.append(path.stem) or writer(path))
    told: list[int] = []
    build_lucene(store, folder, threads=threads, progress=told.append)
    assert kept.isdisjoint(written) and sum(told) == store.n_sentences
    assert [path.name for path in tmp_path.iterdir()] == ["lucene"]
    assert searched(folder, QUESTIONS, 1000) == searched(whole, QUESTIONS, 1000)
    written.clear()
    build_lucene(store, folder)
    assert not written


def test_an_interrupt_at_any_step_of_a_shard_is_just_that(
    store: CorpusStore, small: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also while the writer's last segment is under way, when taking back may meet a closed writer."""
    for moment in range(2, 12):
        folder = tmp_path / str(moment) / "lucene"
        with pytest.raises(KeyboardInterrupt):
            build_lucene(store, folder, threads=2, progress=interrupt_after(moment))
        assert not folder.exists()
    build_lucene(store, folder, threads=2)
    assert stored_ids(folder) == [str(row) for row in range(store.n_sentences)]


def test_interrupted_while_joining(store: CorpusStore, small: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a killed join left is not taken for an index, and no shard is written again."""
    folder, join = tmp_path / "lucene", lucene._join

    def killed(shards: Sequence[Path], target: Path) -> None:
        join(shards[:2], target)
        raise KeyboardInterrupt

    with small.context() as patch:
        patch.setattr(lucene, "_join", killed)
        with pytest.raises(KeyboardInterrupt):
            build_lucene(store, folder)
    assert not folder.exists()
    small.setattr(lucene, "_write_shards", lambda store, shards, threads, progress: None)
    build_lucene(store, folder)
    assert stored_ids(folder) == [str(row) for row in range(store.n_sentences)]


KILLED = """
import os, sys
from pathlib import Path
from epicqa.corpus.store import CorpusStore
from epicqa.index import lucene
lucene.SHARD_ROWS, lucene._BATCH = 150, 40
count = 0
def progress(added):
    global count
    count += 1
    if count == 20:
        os.kill(os.getpid(), 9)
lucene.build_lucene(CorpusStore.open(Path(sys.argv[1])), Path(sys.argv[2]), threads=2, progress=progress)
"""


def test_a_killed_build_goes_on(
    store: CorpusStore, whole: Path, small: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "lucene"
    command = [sys.executable, "-c", KILLED, str(store.folder), str(folder)]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    assert not folder.exists() and list((tmp_path / "lucene-shards").glob("shard-???"))
    build_lucene(store, folder)
    assert searched(folder, QUESTIONS, 1000) == searched(whole, QUESTIONS, 1000)


def test_texts_that_are_hard_to_pass_to_java(whole: Path) -> None:
    index = LuceneIndex(whole)
    try:
        assert index.terms("β-\U0001d6fd \U0001f637 naïve 冠状") == [
            "β",
            "\U0001d6fd",
            "\U0001f637",
            "naïv",
            "冠",
            "状",
        ]
        assert index.terms("mask\0s hands\0") == ["mask", "s", "hand"]
        assert index.terms("a\ud800b \udfff masks") == ["b", "mask"]
        for text in ("", " ", "\0", "\ud800", "the of and", "?!", "AND OR NOT", '*:* +(~^["', "\x01"):
            [(rows, scores)] = index.search([index.text_query(text)], 10, k1=K1, b=B)
            assert rows.tolist() == [] == scores.tolist(), text
        words = [f"mask{number}" for number in range(3000)]
        [(rows, _)] = index.search([index.text_query(" ".join([*words, "masks"]))], 10, k1=K1, b=B)
        [(alone, _)] = index.search([index.text_query("masks")], 10, k1=K1, b=B)
        assert len(alone) and rows.tolist() == alone.tolist()
        assert index.search([], 10, k1=K1, b=B) == []
    finally:
        index.close()


def test_text_outside_ascii_is_found(tmp_path: Path) -> None:
    sentences = [
        "Plain words only.",
        "Die Übertragung über Oberflächen.",
        "La vacunación de los niños.",
        "口罩 helps.",
        "The symbol \U0001d6fd and a face \U0001f637 occur.",
        "Ελληνικά και вирус.",
        'Quotes " and \\ and \u2028 stay.',
    ]
    store = corpus(tmp_path / "texts", [document("d\U0001f9a0", "Título \U0001d49c", sentences)])
    build_lucene(store, tmp_path / "lucene")
    for query, row in [
        ("übertragung", 1),
        ("niños", 2),
        ("口罩", 3),
        ("\U0001d6fd", 4),
        ("\U0001f637", 4),
        ("вирус", 5),
        ("quotes stay", 6),
    ]:
        [(rows, _)] = searched(tmp_path / "lucene", [query], 10)
        assert rows == [row], query
    [(rows, _)] = searched(tmp_path / "lucene", ["título \U0001d49c"], 10)
    assert sorted(rows) == list(range(len(sentences)))


def test_titles_are_indexed_before_sentences(tmp_path: Path) -> None:
    assert indexed_text("Masks", "They help.") == "Masks\nThey help."
    assert indexed_text(None, "They help.") == indexed_text("", "They help.") == "They help."
    documents = [document("one", "Masks", ["They help."]), document("two", None, ["They help."])]
    build_lucene(corpus(tmp_path / "two", documents), tmp_path / "lucene")
    assert searched(tmp_path / "lucene", ["masks"], 10)[0][0] == [0]
    assert searched(tmp_path / "lucene", ["help"], 10)[0][0] == [1, 0]


@pytest.mark.parametrize(("count", "shards"), [(1, 1), (200_000, 1), (200_001, 2), (629_431, 4), (10**8, 8)])
def test_shards_cover_the_rows(count: int, shards: int) -> None:
    bounds = shard_bounds(count)
    assert len(bounds) == shards and bounds[0][0] == 0 and bounds[-1][1] == count
    assert all(before[1] == after[0] for before, after in pairwise(bounds))
    assert all(first < last for first, last in bounds)


def test_frequency_and_weights(whole: Path, store: CorpusStore) -> None:
    index = LuceneIndex(whole)
    try:
        holding = [
            row
            for row, (title, text) in enumerate(store.iter_titled(0, store.n_sentences))
            if "steel" in index.terms(indexed_text(title, text))
        ]
        assert index.frequency("steel") == len(holding) > 0 == index.frequency("nosuchterm")
        single, double = index.search(
            [index.weighted_query({"steel": 1.0}), index.weighted_query({"steel": 2.0, "nosuchterm": 9.0})],
            1000,
            k1=K1,
            b=B,
        )
        assert sorted(single[0].tolist()) == holding
        assert double[0].tolist() == single[0].tolist() and np.allclose(double[1], 2 * single[1])
        [(none, _)] = index.search([index.weighted_query({})], 10, k1=K1, b=B)
        assert not len(none)
    finally:
        index.close()


@pytest.mark.parametrize("how", ["no folder", "empty", "cut", "zeros", "gone", "terms"])
def test_a_damaged_index_is_one_line(whole: Path, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "lucene"
    if how == "empty":
        folder.mkdir()
    elif how != "no folder":
        shutil.copytree(whole, folder)
        for path in folder.glob("*.tim" if how == "terms" else "*.doc"):
            data = path.read_bytes()
            if how == "gone":
                path.unlink()
            elif how == "terms":  # The size and the footer are right: only a search meets it.
                path.write_bytes(data[:100] + b"\xff" * (len(data) - 116) + data[-16:])
            else:
                path.write_bytes(data[: len(data) // 2] if how == "cut" else bytes(len(data)))
    with pytest.raises(
        EpicqaError, match=r"no readable Lucene index \(.*\); build the index again"
    ) as caught:
        searched(folder, QUESTIONS, 100)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(folder))


OTHER_JAR = """
import json, sys
from pathlib import Path
from epicqa.corpus.store import CorpusStore
from epicqa.index import jvm, lucene
from epicqa.questions import find_questions
from epicqa.retrieve.bm25 import Rm3, bm25_search
lucene.SHARD_ROWS, lucene._BATCH = 150, 40
store, folder = CorpusStore.open(Path(sys.argv[1])), Path(sys.argv[2])
lucene.build_lucene(store, folder)
index = lucene.LuceneIndex(folder)
texts = [question.question for question in find_questions("all")]
found = [bm25_search(index, texts, 1000, k1=0.9, b=0.4, rm3=rm3, store=store) for rm3 in (None, Rm3())]
text = [[[one.first.tolist(), one.score.tolist()] for one in rankings] for rankings in found]
print(json.dumps([jvm.anserini_jar().name, text]))
"""


def test_the_jar_of_pyserini_2(store: CorpusStore, tmp_path: Path) -> None:
    """Its Java side alone: the sample, built and searched with it, gives what the installed jar gives."""
    folder = os.environ.get("ANSERINI_CLASSPATH_2X")
    if not folder:
        pytest.skip("ANSERINI_CLASSPATH_2X names no folder with an anserini-2 jar")
    found = []
    for number, classpath in enumerate((None, folder)):
        environment = {name: value for name, value in os.environ.items() if name != "ANSERINI_CLASSPATH"}
        if classpath:
            environment["ANSERINI_CLASSPATH"] = classpath
        command = [sys.executable, "-c", OTHER_JAR, str(store.folder), str(tmp_path / str(number))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        found.append(json.loads(done.stdout))
    assert found[1][0].startswith("anserini-2")
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        for (rows, scores), (other_rows, other_scores) in zip(ours, theirs, strict=True):
            assert rows == other_rows
            assert scores == pytest.approx(other_scores, rel=1e-6)
