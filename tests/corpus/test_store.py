import itertools
import json
import lzma
import pickle
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicqa.corpus.build import build_corpus
from epicqa.corpus.model import Document
from epicqa.corpus.sources import parse, records
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.ids import ContextId, SentenceId

Make = Callable[..., dict[str, Any]]


def check(store: CorpusStore, documents: list[Document]) -> None:
    """Every answer of the store against the documents themselves."""
    texts, titled = [], []
    row = context_row = 0
    assert store.n_documents == len(documents)
    for document_row, document in enumerate(documents):
        assert store.document_row(document.document_id) == document_row
        assert store.document_id(document_row) == document.document_id
        assert store.title(document_row) == document.title
        assert store.url(document_row) == document.url
        assert store.metadata(document_row) == dict(document.metadata)
        assert store.document_first[document_row] == context_row
        for context in document.contexts:
            assert store.context_text(context_row) == context.text
            assert store.section(context_row) == context.section
            assert store.context_document[context_row] == document_row
            number = int(store.context_number[context_row])
            assert str(ContextId(document.document_id, number)) == context.context_id
            assert store.context_first[context_row] == row
            for sentence in context.sentences:
                text = context.text[sentence.start : sentence.end]
                assert store.sentence_text(row) == text
                assert store.sentence_id(row) == sentence.sentence_id
                assert store.row(sentence.sentence_id) == row
                assert store.sentence_context[row] == context_row
                assert sentence.sentence_id.endswith(f"-S{store.sentence_number[row]:03d}")
                assert (store.sentence_start[row], store.sentence_end[row]) == (sentence.start, sentence.end)
                texts.append(text)
                titled.append((document.title, text))
                row += 1
            context_row += 1
    assert (store.n_contexts, store.n_sentences) == (context_row, row)
    assert store.document_first[-1] == context_row
    assert store.context_first[-1] == row
    assert list(store.iter_sentences(0, row)) == texts
    assert list(store.iter_titled(0, row)) == titled
    assert list(store.iter_sentences(row // 3, row // 2)) == texts[row // 3 : row // 2]


def parsed(source: Path) -> list[Document]:
    return [parse(record.raw) for record in records(source)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, document: Make) -> Path:
    folder = tmp_path_factory.mktemp("built")
    uuid = "4f0f5f2c-9c1b-4a63-8f6e-8e0f1c2d3e4f"
    made = [
        document(uuid, [["Ünï 😀 one.", "Two."], ["𝛼."]], urls=["https://a.org", "https://b.org"]),
        document("b:c"),
    ]
    made[0]["contexts"][0]["section"] = None
    made[0]["contexts"][1]["sentences"] = [
        {"sentence_id": f"{uuid}-C001-S998", "start": 0, "end": 1},
        {"sentence_id": f"{uuid}-C001-S999", "start": 1, "end": 2},
    ]
    made[1]["metadata"]["title"] = None
    (folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in made))
    build_corpus([folder / "d.jsonl"], folder / "corpus")
    return folder


def test_uuid_null_section_adjoining_spans_astral(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    check(store, parsed(built / "d.jsonl"))
    assert store.sentence_text(1) == "Two."
    assert (store.section(0), store.section(1), store.title(1)) == (None, "Body", None)
    assert store.metadata(0) == {"urls": ["https://a.org", "https://b.org"]}


def test_real_documents(tmp_path: Path, shared: Path) -> None:
    source = shared / "epicqa/documents"
    build_corpus([source], tmp_path / "c")
    check(CorpusStore.open(tmp_path / "c"), parsed(source))


def test_mini_general(tmp_path: Path, shared: Path) -> None:
    source = tmp_path / "general.jsonl"
    with lzma.open(shared / "mini/general.jsonl.xz") as stream:
        source.write_bytes(b"".join(itertools.islice(stream, 300)))
    summary = build_corpus([source], tmp_path / "c")
    assert (summary.documents, summary.skipped) == (300, 0)
    check(CorpusStore.open(tmp_path / "c"), parsed(source))


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
ids = st.one_of(words, st.text("ab-C0S:é", min_size=1, max_size=12), st.uuids().map(str)).filter(
    lambda text: not any(map(str.isspace, text))
)


@st.composite
def made_documents(draw: st.DrawFn) -> list[dict[str, Any]]:
    found = []
    for document_id in draw(st.lists(ids, min_size=1, max_size=5, unique=True)):
        contexts = []
        numbers = draw(st.sets(st.integers(0, 2000), min_size=1, max_size=3))
        for number in sorted(numbers):
            text, sentences = "", []
            first = draw(st.integers(0, 1500))
            for index, (gap, sentence) in enumerate(
                draw(
                    st.lists(st.tuples(words | st.just(""), words.filter(str.strip)), min_size=1, max_size=4)
                )
            ):
                text += gap
                sentence_id = SentenceId(document_id, number, first + index)
                start, text = len(text), text + sentence
                sentences.append({"sentence_id": str(sentence_id), "start": start, "end": len(text)})
            contexts.append(
                {
                    "section": draw(st.none() | words),
                    "context_id": str(ContextId(document_id, number)),
                    "text": text + draw(st.just("") | words),
                    "sentences": sentences,
                }
            )
        metadata = {"title": draw(st.none() | words), "url": draw(st.none() | words), "more": draw(words)}
        found.append({"document_id": document_id, "metadata": metadata, "contexts": contexts})
    return found


@given(made_documents())
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_any_documents_come_back(made: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in made))
        assert build_corpus([folder / "d.jsonl"], folder / "c", workers=1).skipped == 0
        check(CorpusStore.open(folder / "c"), parsed(folder / "d.jsonl"))


def test_unknown_and_malformed_ids(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    uuid = store.document_id(0)
    assert store.row(f"{uuid}-C0001-S0998") == 2
    for unknown in (
        "no-C000-S000",
        "b:c-C001-S000",
        "b:c-C000-S002",
        f"{uuid}-C001-S997",
        f"{uuid}-C001-S1000",
        f"{uuid}-C002-S000",
        f"{uuid}-C000-S999999999",
    ):
        with pytest.raises(KeyError):
            store.row(unknown)
    for malformed in ("", "b:c", "b:c-C000", "b:c-C000-S", "b:c-C000-S000 "):
        with pytest.raises(ValueError, match="malformed"):
            store.row(malformed)
    with pytest.raises(KeyError):
        store.document_row("")


def test_rows_outside(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    for row in (-1, store.n_sentences):
        with pytest.raises(IndexError):
            store.sentence_text(row)
        with pytest.raises(IndexError):
            store.sentence_id(row)
    for read in (store.title, store.document_id, store.context_text):
        with pytest.raises(IndexError):
            read(-1)
        with pytest.raises(IndexError):
            read(1000)
    for start, stop in ((-1, 2), (3, 2), (0, store.n_sentences + 1)):
        with pytest.raises(IndexError):
            list(store.iter_sentences(start, stop))
    assert list(store.iter_titled(2, 2)) == []


def test_columns_are_views_of_the_files(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    dtypes = {
        "sentence_context": np.int32,
        "sentence_number": np.int32,
        "sentence_start": np.int32,
        "sentence_end": np.int32,
        "context_document": np.int32,
        "context_number": np.int32,
        "context_first": np.int64,
        "document_first": np.int64,
    }
    for name, dtype in dtypes.items():
        column = getattr(store, name)
        assert column.dtype == dtype
        assert not column.flags.owndata
        assert not column.flags.writeable
        assert column.flags.aligned


def test_numpy_rows_are_rows(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    row = np.int64(1)
    assert store.sentence_text(row) == "Two."
    assert store.row(store.sentence_id(row)) == 1
    assert store.title(store.context_document[0]) == "A title"


def test_pickle_carries_the_path(built: Path) -> None:
    store = CorpusStore.open(built / "corpus")
    pickled = pickle.dumps(store)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).sentence_text(1) == "Two."


@pytest.mark.parametrize("table", ["documents", "contexts", "sentences"])
@pytest.mark.parametrize("damage", ["missing", "cut", "empty", "footer", "other table"])
def test_damaged_files(tmp_path: Path, built: Path, table: str, damage: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(built / "corpus", folder)
    path = folder / f"{table}.arrow"
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(whole[:-10])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "footer":
        path.write_bytes(whole[:-200] + b"\xff" * 200)
    else:
        summary = json.loads((folder / "corpus.json").read_bytes())
        other = folder / ("contexts.arrow" if table == "documents" else "documents.arrow")
        summary["bytes"][table] = other.stat().st_size
        (folder / "corpus.json").write_text(json.dumps(summary))
        path.write_bytes(other.read_bytes())
    with pytest.raises(EpicqaError) as error:
        CorpusStore.open(folder)
    assert str(error.value).startswith(str(path))
    assert "build the corpus again" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        (None, "no corpus here"),
        (b"", "damaged"),
        (b"[]", "damaged"),
        (b"{}", "damaged"),
        (b'{"version": 99}', "corpus format 99, expected 1"),
    ],
)
def test_damaged_summary(tmp_path: Path, built: Path, summary: bytes | None, reason: str) -> None:
    folder = tmp_path / "c"
    shutil.copytree(built / "corpus", folder)
    if summary is None:
        (folder / "corpus.json").unlink()
    else:
        (folder / "corpus.json").write_bytes(summary)
    with pytest.raises(EpicqaError, match=reason):
        CorpusStore.open(folder)
