"""Vectors in FAISS: built by streaming, searched with a stated rule for ties."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.files import replacing
from epicqa.index.encode import chunk_paths, open_chunk

Kind = Literal["flat", "sq8", "ivf", "hnsw"]
KINDS: tuple[Kind, ...] = get_args(Kind)

FILE = "vectors.faiss"
DECIMALS = 5
_UNIT = 10.0**-DECIMALS
_SAMPLE = 65_536
_RECALL_DEPTH = 1000
_RECALL_QUERIES = 50
# FAISS's own marks of flat inner product and of scalar quantisation.
_MAPPED = {b"IxFI", b"IxSQ"}
# Fetched beyond k at first: real rankings hold tens of ties.
_SPARE = 64


def default_kind(count: int) -> Kind:
    """Exact below 100,000 vectors, 8-bit quantisation from there on."""
    return "flat" if count < 100_000 else "sq8"


def import_faiss() -> Any:
    """The faiss module.

    Raises:
        EpicqaError: both a CPU and a GPU distribution are installed (they are one module and overwrite each
            other), or none.
    """
    # The names of folders alone: reading every package's metadata takes a quarter of a second.
    places = [Path(place) for place in sys.path]
    names = {
        found.name.split("-")[0].lower().replace("_", "-")
        for place in places
        for found in place.glob("faiss*.dist-info")
    }
    gpu = sorted(name for name in names if name.startswith("faiss-gpu"))
    if gpu and "faiss-cpu" in names:
        raise EpicqaError(
            f"faiss-cpu and {gpu[0]} are both installed and overwrite each other, expected one: "
            f"pip uninstall faiss-cpu {' '.join(gpu)}, then install the one you want"
        )
    if sys.platform == "darwin":
        # PyTorch and FAISS each carry an OpenMP there, and the second to load ends the process.
        os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    try:
        import faiss
    except ImportError as error:
        raise EpicqaError(f"faiss cannot be imported ({error}), expected: pip install faiss-cpu") from None
    return faiss


@dataclass(frozen=True, slots=True)
class VectorReport:
    """What was built.

    Attributes:
        kind: flat, sq8, ivf or hnsw.
        dimension: numbers a vector.
        count: vectors.
        recall: share of the exact top 1000 that is found, the mean over 50 sentences; None when not measured
            or exact.
    """

    kind: Kind
    dimension: int
    count: int
    recall: float | None


def build_vectors(
    chunks: Path, out: Path, kind: Kind, *, threads: int, seed: int = 20200401, measure: bool = True
) -> VectorReport:
    """Build ``vectors.faiss`` in ``out`` from encoded chunks.

    The quantiser is trained once, on a sample of the whole collection; chunks are added one after another.
    The file is the same whatever the number of threads and the size of chunks.

    Args:
        chunks: folder of ``encode_corpus``.
        out: folder of the index.
        threads: FAISS threads; HNSW is built by one, whole and in memory.
        seed: of the sample, the clustering and the queries for recall.
        measure: whether to measure the recall of an approximate kind.

    Raises:
        EpicqaError: no chunks, damaged ones, or an unknown kind.
        OSError: the disk is full.
    """
    if kind not in KINDS:
        raise EpicqaError(f"unknown kind of vectors {kind!r}, expected one of {', '.join(KINDS)}")
    faiss = import_faiss()
    source = _Chunks(chunks)
    with _faiss_threads(faiss, threads):
        index = _new_index(faiss, kind, source, seed)
        if kind == "hnsw":
            # Its graph depends on the order of insertions, and one call draws the levels of all it adds.
            with _faiss_threads(faiss, 1):
                index.add(source.take(np.arange(source.count)))
        else:
            for block in source.blocks():
                index.add(block)
        path = out / FILE
        with replacing(path) as temporary, temporary.open("wb") as file:
            # FAISS's own writer drops a full disk's error when it closes a file.
            faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))
        del index
        recall = _recall(faiss, source, path, seed) if measure and kind != "flat" else None
    return VectorReport(kind, source.dimension, source.count, recall)


class VectorIndex:
    """A built index, opened for search."""

    def __init__(self, index: Any, faiss: Any) -> None:
        self._index = index
        self._faiss = faiss
        self._ivf = isinstance(index, faiss.IndexIVF)
        self._hnsw = isinstance(index, faiss.IndexHNSW)
        self.dimension = int(index.d)

    @classmethod
    def open(cls, path: Path) -> VectorIndex:
        """Open ``vectors.faiss``, given itself or its folder; exact and 8-bit vectors stay on disk, mapped.

        Raises:
            EpicqaError: it is missing or damaged.
        """
        path = path / FILE if path.is_dir() else path
        if not path.is_file():
            raise EpicqaError(f"{path}: no such file, expected a vector index")
        faiss = import_faiss()
        try:
            with path.open("rb") as file:
                mapped = file.read(4) in _MAPPED
            # The flag came with FAISS 1.11. Only these kinds notice a file that is a few bytes short.
            flags = getattr(faiss, "IO_FLAG_MMAP_IFC", 0) if mapped else 0
            index = faiss.read_index(str(path), flags)
        except (RuntimeError, MemoryError):
            raise EpicqaError(f"{path}: damaged, expected a FAISS index; build it again") from None
        return cls(index, faiss)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The k best rows of each query by inner product; ties go to the lower row, also at the cut.

        FAISS's own scores differ by some 1e-7 between batches, enough to move a rounded one. So it only
        picks candidates; their scores are computed again in float64, each alone, and rounded to 1e-5 before
        sorting. Candidates are doubled until the last one is clearly below the cut.

        Args:
            queries: float32[q, dimension].
            k: rows wanted.

        Returns:
            For each query rows, int64[n], and scores, float32[n]; n < k only when the index gives no more
            (all rows of an exact or 8-bit one; a graph or cells may lead to fewer).
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.dimension:
            raise EpicqaError(
                f"queries of shape {queries.shape}, expected [n, {self.dimension}]: another model's?"
            )
        none = (np.zeros(0, np.int64), np.zeros(0, np.float32))
        found = [none] * len(queries)
        total = len(self)
        k = min(k, total)
        if k <= 0:
            return found
        # A query alone probes the same cells; a batch may not, by rounding of the distances to centroids.
        step = 1 if self._ivf else 64
        for start in range(0, len(queries), step):
            open_queries = np.arange(start, min(start + step, len(queries)))
            fetch = min(total, k + _SPARE)
            while len(open_queries):
                scores, rows = self._fetch(queries[open_queries], fetch)
                left = []
                for query, raw, candidates in zip(open_queries, scores, rows, strict=True):
                    result = self._settle(queries[query], raw, candidates, k, fetch == total)
                    if result is None:
                        left.append(query)
                    else:
                        found[query] = result
                open_queries = np.array(left, dtype=np.int64)
                fetch = min(total, 2 * fetch)
        return found

    def reconstruct(self, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        """Vectors of rows, float32[m, dimension], as the index holds them."""
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if not len(rows):
            return np.zeros((0, self.dimension), dtype=np.float32)
        if rows.min() < 0 or rows.max() >= len(self):
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {len(self)} vectors")
        return np.asarray(self._index.reconstruct_batch(rows), dtype=np.float32)

    def _fetch(self, queries: NDArray[np.float32], fetch: int) -> tuple[NDArray, NDArray]:
        if self._hnsw:
            parameters = self._faiss.SearchParametersHNSW(efSearch=max(128, 2 * fetch))
            return self._index.search(queries, fetch, params=parameters)
        return self._index.search(queries, fetch)

    def _settle(
        self, query: NDArray[np.float32], raw: NDArray, rows: NDArray, k: int, everything: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """The best k of the candidates; None when rows beyond them might tie with the last."""
        valid = rows >= 0
        everything = everything or not valid.all()
        rows, raw = rows[valid].astype(np.int64), raw[valid]
        product = np.einsum("ij,j->i", self.reconstruct(rows), query, dtype=np.float64)
        scores = np.round(product, DECIMALS)
        order = np.lexsort((rows, -scores))[:k]
        # A row that was not fetched scores at most raw[-1] and FAISS's error, which one unit covers.
        if not everything and len(order) and raw[-1] > scores[order[-1]] - 2 * _UNIT:
            return None
        return rows[order], scores[order].astype(np.float32)


class _Chunks:
    """The chunks of a folder as one array."""

    def __init__(self, folder: Path) -> None:
        self.paths = chunk_paths(folder)
        shapes = [open_chunk(path).shape for path in self.paths]
        self.dimension = shapes[0][1]
        for path, shape in zip(self.paths, shapes, strict=True):
            if shape[1] != self.dimension:
                raise EpicqaError(
                    f"{path}: {shape[1]} numbers a vector, expected {self.dimension} as before it"
                )
        self.first = np.cumsum([0] + [shape[0] for shape in shapes])
        self.count = int(self.first[-1])

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        for path in self.paths:
            yield np.ascontiguousarray(open_chunk(path), dtype=np.float32)

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of ascending rows."""
        parts = []
        for path, start, stop in zip(self.paths, self.first, self.first[1:], strict=False):
            inside = rows[(rows >= start) & (rows < stop)]
            if len(inside):
                parts.append(open_chunk(path)[inside - start].astype(np.float32))
        return np.concatenate(parts)

    def sample(self, size: int, seed: int) -> NDArray[np.float32]:
        rows = np.random.default_rng(seed).choice(self.count, min(size, self.count), replace=False)
        return self.take(np.sort(rows))


def _new_index(faiss: Any, kind: Kind, source: _Chunks, seed: int) -> Any:
    dimension, product = source.dimension, faiss.METRIC_INNER_PRODUCT
    if kind == "flat":
        return faiss.IndexFlatIP(dimension)
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, 32, product)
        index.hnsw.efConstruction = 80
        return index
    if kind == "sq8":
        index = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_8bit, product)
        index.train(source.sample(_SAMPLE, seed))
        return index
    cells = max(1, min(int(4 * source.count**0.5), source.count // 39))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, cells, product)
    index.cp.seed = seed
    index.cp.min_points_per_centroid = 1
    index.nprobe = max(8, cells // 8)
    index.train(source.sample(max(_SAMPLE, 39 * cells), seed))
    # Without it no vector can be had by its row.
    index.set_direct_map_type(faiss.DirectMap.Array)
    return index


def _recall(faiss: Any, source: _Chunks, path: Path, seed: int) -> float:
    """Share of the exact top 1000 found, over sampled sentences; a row that ties at the cut counts."""
    queries = source.sample(_RECALL_QUERIES, seed + 1)
    depth = min(_RECALL_DEPTH, source.count)
    best = np.full((len(queries), depth), -np.inf, dtype=np.float32)
    for block in source.blocks():
        scores, _ = faiss.knn(queries, block, min(depth, len(block)), metric=faiss.METRIC_INNER_PRODUCT)
        best = -np.sort(-np.concatenate([best, scores], axis=1), axis=1)[:, :depth]
    hits = 0
    for query, (rows, _), exact in zip(
        queries, VectorIndex.open(path).search(queries, depth), best, strict=True
    ):
        hits += int((source.take(np.sort(rows)) @ query >= exact[-1] - 1e-6).sum())
    return hits / (depth * len(queries))


@contextmanager
def _faiss_threads(faiss: Any, threads: int) -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
