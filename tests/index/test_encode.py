"""Encoding in chunks: resumption, staleness, form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.index.encode import chunk_paths, encode_corpus, open_chunk, titled
from epicqa.models.resolve import load_encoder


@dataclass
class Store:
    """A corpus of three-sentence documents."""

    n_sentences: int
    fingerprint: str = "a"

    def iter_sentences(self, start: int, stop: int) -> Iterator[str]:
        return (text for _, text in self.iter_titled(start, stop))

    def iter_titled(self, start: int, stop: int) -> Iterator[tuple[str | None, str]]:
        for row in range(start, stop):
            yield (None if row % 2 else f"Virus {row // 3}"), f"Sentence {row} speaks of masks."


@dataclass
class Counting:
    """The shipped encoder, with its calls counted."""

    inner: object = field(default_factory=lambda: load_encoder("static"))
    seen: list[int] = field(default_factory=list)
    fingerprint: str = "f"

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen.append(len(texts))
        return self.inner.encode(texts)


@pytest.fixture
def encoder() -> Counting:
    return Counting()


def held(folder: Path) -> NDArray[np.float16]:
    return np.concatenate([open_chunk(path) for path in chunk_paths(folder)])


def test_chunks_hold_every_row_in_order(tmp_path: Path, encoder: Counting) -> None:
    store, done = Store(250), []
    paths = encode_corpus(store, encoder, tmp_path, with_title=False, chunk=100, progress=done.append)
    assert [path.name for path in paths] == [f"chunk-00000{number}.npy" for number in range(3)]
    assert paths == chunk_paths(tmp_path) and done == [100, 100, 50] == encoder.seen
    vectors = held(tmp_path)
    assert vectors.dtype == np.float16
    expected = encoder.inner.encode(list(store.iter_sentences(0, 250)))
    assert np.array_equal(vectors, expected.astype(np.float16))
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in paths} | {"chunks.json"}


def test_titles_count_when_asked(tmp_path: Path, encoder: Counting) -> None:
    assert (
        titled("Masks", "They work.") == "Masks. They work." and titled(None, "x") == titled("", "x") == "x"
    )
    encode_corpus(Store(10), encoder, tmp_path, with_title=True)
    expected = encoder.inner.encode([titled(*pair) for pair in Store(10).iter_titled(0, 10)])
    assert np.array_equal(held(tmp_path), expected.astype(np.float16))


def test_interrupted_encoding_goes_on(tmp_path: Path, encoder: Counting) -> None:
    encode_corpus(Store(250), encoder, tmp_path, with_title=True, chunk=100)
    whole = [path.read_bytes() for path in chunk_paths(tmp_path)]
    encoder.seen.clear()
    (tmp_path / "chunk-000001.npy").unlink()
    (tmp_path / "chunk-000002.npy").write_bytes(whole[2][:500])
    (tmp_path / ".chunk-000001.npy.123.tmp").write_bytes(b"half")
    encode_corpus(Store(250), encoder, tmp_path, with_title=True, chunk=100)
    assert encoder.seen == [100, 50]
    assert [path.read_bytes() for path in chunk_paths(tmp_path)] == whole
    assert not list(tmp_path.glob(".*"))


def test_failure_leaves_whole_chunks_only(tmp_path: Path, encoder: Counting) -> None:
    class Failing(Counting):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(self.seen) == 1:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        encode_corpus(Store(250), Failing(), tmp_path, with_title=True, chunk=100)
    assert [path.name for path in chunk_paths(tmp_path)] == ["chunk-000000.npy"]
    encode_corpus(Store(250), encoder, tmp_path, with_title=True, chunk=100)
    assert encoder.seen == [100, 50]


@pytest.mark.parametrize("change", ["corpus", "model", "titles", "chunk", "shorter"])
def test_stale_chunks_are_made_anew(tmp_path: Path, encoder: Counting, change: str) -> None:
    encode_corpus(Store(250), encoder, tmp_path, with_title=True, chunk=100)
    encoder.seen.clear()
    store = Store(250, "b" if change == "corpus" else "a")
    if change == "model":
        encoder.fingerprint = "g"
    if change == "shorter":
        store.n_sentences = 90
    size = 80 if change == "chunk" else 100
    encode_corpus(store, encoder, tmp_path, with_title=change != "titles", chunk=size)
    assert sum(encoder.seen) == store.n_sentences == len(held(tmp_path))


def test_empty_corpus_has_no_chunks(tmp_path: Path, encoder: Counting) -> None:
    assert encode_corpus(Store(0), encoder, tmp_path, with_title=True) == []
    with pytest.raises(EpicqaError, match="no vectors"):
        chunk_paths(tmp_path)


def test_a_built_corpus_is_encoded(tmp_path: Path, encoder: Counting) -> None:
    source = tmp_path / "two.jsonl"
    source.write_text(
        '{"id": "a", "title": "Masks", "text": "They work. Wear one."}\n{"id": "b", "text": "Wash hands."}\n'
    )
    build_corpus([source], tmp_path / "corpus", workers=1)
    store = CorpusStore.open(tmp_path / "corpus")
    encode_corpus(store, encoder, tmp_path / "chunks", with_title=True)
    expected = encoder.inner.encode(["Masks. They work.", "Masks. Wear one.", "Wash hands."])
    assert np.array_equal(held(tmp_path / "chunks"), expected.astype(np.float16))
