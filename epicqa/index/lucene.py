"""Sentences in Lucene: built by Anserini's classes, searched for (row, score) pairs.

A sentence's Lucene document number is its row: shards of consecutive rows are each written by one thread,
merges join neighbours only, and shards are joined in order. Lucene breaks ties by the lower number, so equal
scores go to the lower row at the cut, too, and no stored field is read at query time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from epicqa.corpus.store import CorpusStore
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, sync_folder
from epicqa.index import jvm

FIELD = "contents"
SHARD_ROWS = 200_000
MOST_SHARDS = 8
_BATCH = 4000
_BUFFER_MB = 96.0

Hits = tuple[NDArray[np.int64], NDArray[np.float32]]
"""Rows and BM25 scores, best first, equal scores by row."""


def _directory(folder: Path) -> Any:
    path = jvm.load("java.nio.file.Paths").get(str(folder.absolute()))
    return jvm.load("org.apache.lucene.store.FSDirectory").open(path)


def _analyzer() -> Any:
    return jvm.load("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()


def indexed_text(title: str | None, sentence: str) -> str:
    """What is indexed of a sentence: its document's title goes before it."""
    return f"{title}\n{sentence}" if title else sentence


def shard_bounds(n_sentences: int) -> list[tuple[int, int]]:
    """Row ranges of the shards: they depend on the collection's size alone, not on threads."""
    count = min(MOST_SHARDS, max(1, -(-n_sentences // SHARD_ROWS)))
    cuts = [n_sentences * at // count for at in range(count + 1)]
    return list(pairwise(cuts))


def build_lucene(
    store: CorpusStore, folder: Path, *, threads: int = 2, progress: Callable[[int], None] | None = None
) -> None:
    """Index title and text of every sentence into ``folder``, or go on where an interrupted build stopped.

    Args:
        store: the sentences.
        folder: made, whole or not at all; shards lie beside it until then.
        threads: shards written at a time.
        progress: called with the number of sentences just added.

    Raises:
        OSError: the disk is full; finished shards stay.
    """
    if folder.exists():
        return
    shards = folder.with_name(folder.name + "-shards")
    shards.mkdir(parents=True, exist_ok=True)
    bounds = shard_bounds(store.n_sentences)
    paths = [shards / f"shard-{number:03d}" for number in range(len(bounds))]
    temporary = folder.with_name(folder.name + ".tmp")
    with jvm.calling():
        _write_shards(store, list(zip(paths, bounds, strict=True)), max(1, threads), progress)
        remove_tree(temporary)
        if len(paths) == 1:
            paths[0].rename(temporary)
        else:
            _join(paths, temporary)
        _verify(temporary, store.n_sentences)
    temporary.rename(folder)
    sync_folder(folder.parent)
    remove_tree(shards)


def _writer(folder: Path) -> Any:
    config = jvm.load("org.apache.lucene.index.IndexWriterConfig")(_analyzer())
    config.setRAMBufferSizeMB(_BUFFER_MB)
    config.setUseCompoundFile(False)
    # This policy merges neighbours only, which keeps documents in the order of their rows.
    config.setMergePolicy(jvm.load("org.apache.lucene.index.LogByteSizeMergePolicy")())
    return jvm.load("org.apache.lucene.index.IndexWriter")(_directory(folder), config)


def _write_shards(
    store: CorpusStore,
    shards: list[tuple[Path, tuple[int, int]]],
    threads: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Write the shards that are not there yet, ``threads`` at a time, each by a Java thread of its own."""
    waiting = []
    for path, (first, last) in shards:
        if path.exists():
            if progress:
                progress(last - first)
        else:
            waiting.append((path, first, last))
    active: list[_Shard] = []
    try:
        while waiting or active:
            while waiting and len(active) < threads:
                active.append(_Shard(*waiting.pop(0)))
            for shard in tuple(active):
                added = shard.step(store)
                if progress:
                    progress(added)
                if shard.done:
                    active.remove(shard)
                    shard.finish()
    finally:
        for shard in active:
            shard.abandon()


class _Shard:
    """A shard being written: Python makes batches while Java indexes the ones before."""

    AHEAD = 2

    def __init__(self, path: Path, first: int, last: int) -> None:
        self._path = path
        self._temporary = path.with_suffix(".tmp")
        self._at, self._last = first, last
        self._pending: deque[tuple[Any, int]] = deque()
        remove_tree(self._temporary)
        self._writer = _writer(self._temporary)
        self._add = _batch_adder(self._writer)
        self._pool = jvm.Pool(1)

    @property
    def done(self) -> bool:
        return self._at == self._last and not self._pending

    def step(self, store: CorpusStore) -> int:
        """Start the next batch, if there is one; wait for the oldest when there is enough under way."""
        more = self._at < self._last
        if more:
            end = min(self._last, self._at + _BATCH)
            batch = [
                {"id": str(row), FIELD: indexed_text(title, text)}
                for row, (title, text) in enumerate(store.iter_titled(self._at, end), self._at)
            ]
            text = orjson.dumps(batch).decode()
            self._pending.append((self._pool.submit(self._add.bindTo(text)), end - self._at))
            self._at = end
            if end == self._last:
                # Its last segment is written by its own thread, too: shards end at the same time.
                close = jvm.method("org.apache.lucene.index.IndexWriter", "close", "()V").bindTo(self._writer)
                self._pending.append((self._pool.submit(close), 0))
        if more and len(self._pending) <= self.AHEAD:
            return 0
        task, added = self._pending.popleft()
        task.get()
        return added

    def finish(self) -> None:
        self._pool.close()
        self._temporary.rename(self._path)

    def abandon(self) -> None:
        from jnius import JavaException

        self._pool.close()
        # An interrupted close may have ended the writer already; its folder is written anew in any case.
        with suppress(JavaException):
            self._writer.rollback()


def _batch_adder(writer: Any) -> Any:
    """A Java function of one string, a JSON list, that adds its members in order.

    It is put together from method handles, so that a batch of thousands crosses into Java once:
    for each node of readTree(text): writer.addDocument(generator.createDocument(new Document(node))).
    """
    node = "Lcom/fasterxml/jackson/databind/JsonNode;"
    source = "io.anserini.collection.JsonCollection$Document"
    document = "Lorg/apache/lucene/document/Document;"
    parse = jvm.method(
        "com.fasterxml.jackson.databind.ObjectMapper", "readTree", f"(Ljava/lang/String;){node}"
    ).bindTo(jvm.load("com.fasterxml.jackson.databind.ObjectMapper")())
    create = jvm.method(
        "io.anserini.index.generator.DefaultLuceneDocumentGenerator",
        "createDocument",
        f"(Lio/anserini/collection/SourceDocument;){document}",
    ).bindTo(jvm.load("io.anserini.index.generator.DefaultLuceneDocumentGenerator")())
    add = jvm.method("org.apache.lucene.index.IndexWriter", "addDocument", "(Ljava/lang/Iterable;)J").bindTo(
        writer
    )
    each = jvm.chain(
        jvm.constructor(source, f"({node})V"),
        create.asType(jvm.signature(f"(L{source.replace('.', '/')};){document}")),
        add.asType(jvm.signature(f"({document})V")),
    )
    loop = jvm.load("java.lang.invoke.MethodHandles").iteratedLoop(
        None, None, each.asType(jvm.signature("(Ljava/lang/Object;)V"))
    )
    return jvm.chain(parse, loop.asType(jvm.signature(f"({node})V")))


def _join(shards: Sequence[Path], folder: Path) -> None:
    from jnius import cast

    writer = _writer(folder)
    try:
        writer.addIndexes(*(cast("org.apache.lucene.store.Directory", _directory(path)) for path in shards))
    finally:
        writer.close()


def _verify(folder: Path, n_sentences: int) -> None:
    """Check on a sample, every shard's ends in it, that document numbers are rows."""
    index = LuceneIndex(folder)
    try:
        ends = [row for bounds in shard_bounds(n_sentences) for row in (bounds[0], bounds[1] - 1)]
        sample = np.random.default_rng(0).integers(n_sentences, size=min(2000, n_sentences)).tolist()
        fields = index.reader.storedFields()
        if index.reader.maxDoc() != n_sentences or any(
            fields.document(row).get("id") != str(row) for row in (*ends, *sample)
        ):
            raise RuntimeError(f"{folder}: Lucene's document numbers are not the rows of the corpus")
    finally:
        index.close()


class LuceneIndex:
    """A Lucene index made by ``build_lucene``, open for searching; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Open.

        Raises:
            EpicqaError: there is no index, or it is damaged.
        """
        self._folder = folder
        with self._reading():
            self.reader = jvm.load("org.apache.lucene.index.DirectoryReader").open(_directory(folder))
            self._analyzer = _analyzer()
            self._generator = jvm.load("io.anserini.search.query.BagOfWordsQueryGenerator")()
            self._analyze = jvm.load("io.anserini.analysis.AnalyzerUtils").analyze
            self._mapper = jvm.load("com.fasterxml.jackson.databind.ObjectMapper")()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Use the bridge; what Java cannot read is damaged."""
        with jvm.calling():
            from jnius import JavaException

            try:
                yield
            except JavaException as error:
                raise EpicqaError(
                    f"{self._folder}: no readable Lucene index ({jvm.reason(error)}); build the index again"
                ) from None

    @jvm.calling()
    def close(self) -> None:
        self.reader.close()

    @jvm.calling()
    def terms(self, text: str) -> list[str]:
        """The index terms of a text, in order, with repeats."""
        return [str(term) for term in self._analyze(self._analyzer, _clean(text)).toArray()]

    @jvm.calling()
    def frequency(self, term: str) -> int:
        """The number of sentences that hold an index term."""
        return int(self.reader.docFreq(jvm.load("org.apache.lucene.index.Term")(FIELD, term)))

    @jvm.calling()
    def text_query(self, text: str) -> Any:
        """The disjunction of a text's terms, each weighted by how often it occurs."""
        return self._generator.buildQuery(FIELD, self._analyzer, _clean(text))

    @jvm.calling()
    def weighted_query(self, weights: Mapping[str, float]) -> Any:
        """The disjunction of index terms with weights of their own."""
        builder = jvm.load("org.apache.lucene.search.BooleanQuery$Builder")()
        should = jvm.load("org.apache.lucene.search.BooleanClause$Occur").SHOULD
        term_class = jvm.load("org.apache.lucene.index.Term")
        term_query = jvm.load("org.apache.lucene.search.TermQuery")
        boost_query = jvm.load("org.apache.lucene.search.BoostQuery")
        for term, weight in weights.items():
            builder.add(boost_query(term_query(term_class(FIELD, term)), weight), should)
        return builder.build()

    def search(
        self, queries: Sequence[Any], depth: int, *, k1: float, b: float, threads: int = 2
    ) -> list[Hits]:
        """The best sentences of each query by BM25 (Robertson and Zaragoza, 2009).

        A whole list crosses from Java as one JSON string; while Python reads it, Java's threads go on.

        Args:
            queries: of ``text_query`` or ``weighted_query``.
            depth: sentences a query at most; fewer when fewer hold any of its terms.
            k1, b: BM25's term saturation and length normalisation.
            threads: queries searched at a time.
        """
        with self._reading():
            return self._search(queries, depth, k1, b, threads)

    def _search(self, queries: Sequence[Any], depth: int, k1: float, b: float, threads: int) -> list[Hits]:
        pool = jvm.Pool(max(1, threads))
        try:
            search = self._searching(min(depth, self.reader.maxDoc()), k1, b)
            tasks = [pool.submit(search.bindTo(query)) for query in queries]
            return [_hits(task.get()) for task in tasks]
        finally:
            pool.close()

    def _searching(self, depth: int, k1: float, b: float) -> Any:
        """A Java function from a query to its best sentences, written as JSON."""
        from jnius import cast

        reader = cast("org.apache.lucene.index.IndexReader", self.reader)
        searcher = jvm.load("org.apache.lucene.search.IndexSearcher")(reader)
        searcher.setSimilarity(jvm.load("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        search = jvm.method(
            "org.apache.lucene.search.IndexSearcher",
            "search",
            "(Lorg/apache/lucene/search/Query;I)Lorg/apache/lucene/search/TopDocs;",
        ).bindTo(searcher)
        # A plain int among variable arguments crashes the bridge.
        number = jvm.load("java.lang.Integer")(depth)
        search = jvm.load("java.lang.invoke.MethodHandles").insertArguments(search, 1, number)
        write = jvm.method(
            "com.fasterxml.jackson.databind.ObjectMapper",
            "writeValueAsString",
            "(Ljava/lang/Object;)Ljava/lang/String;",
        ).bindTo(self._mapper)
        return jvm.chain(
            search,
            write.asType(jvm.signature("(Lorg/apache/lucene/search/TopDocs;)Ljava/lang/String;")),
        )


def _hits(text: str) -> Hits:
    found = orjson.loads(text)["scoreDocs"]
    rows = np.fromiter((hit["doc"] for hit in found), np.int64, len(found))
    scores = np.fromiter((hit["score"] for hit in found), np.float32, len(found))
    return rows, scores


def _clean(text: str) -> str:
    """A text without what cannot cross into Java: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
