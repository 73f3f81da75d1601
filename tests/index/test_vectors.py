"""FAISS indexes against plain NumPy: ties, batches, threads, damage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from epicqa.errors import EpicqaError
from epicqa.index.vectors import (
    FILE,
    KINDS,
    VectorIndex,
    build_vectors,
    default_kind,
    import_faiss,
)


def unit(array: NDArray) -> NDArray[np.float32]:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def write_chunks(folder: Path, vectors: NDArray, size: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(vectors), size)):
        np.save(folder / f"chunk-{number:06d}.npy", vectors[start : start + size].astype(np.float16))
    return folder


def clustered(count: int, dimension: int = 32, seed: int = 1) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(50, dimension))
    return unit(centres[random.integers(0, 50, count)] + 0.5 * random.normal(size=(count, dimension)))


def brute(held: NDArray, query: NDArray, k: int) -> tuple[list[int], list[float]]:
    """The stated rule, one row after another."""
    scored = [(-round(float(row.astype(float) @ query.astype(float)), 5), n) for n, row in enumerate(held)]
    best = sorted(scored)[:k]
    return [n for _, n in best], [-score for score, _ in best]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    chunks = write_chunks(folder / "chunks", clustered(3000), 700)
    for kind in KINDS:
        build_vectors(chunks, folder / kind, kind, threads=2)
    return {kind: folder / kind for kind in KINDS}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    distinct=st.integers(1, 12),
    count=st.integers(1, 900),
    k=st.integers(1, 1000),
    kind=st.sampled_from(["flat", "sq8"]),
)
def test_ties_at_the_cut_go_to_the_lower_row(
    tmp_path_factory: pytest.TempPathFactory, seed: int, distinct: int, count: int, k: int, kind: str
) -> None:
    random = np.random.default_rng(seed)
    vectors = unit(random.normal(size=(distinct, 8)))[random.integers(0, distinct, count)]
    folder = tmp_path_factory.mktemp("ties")
    build_vectors(write_chunks(folder / "c", vectors, 100), folder, kind, threads=1, measure=False)
    index = VectorIndex.open(folder)
    queries = unit(random.normal(size=(3, 8)))
    held = index.reconstruct(np.arange(count))
    for query, (rows, scores) in zip(queries, index.search(queries, k), strict=True):
        expected_rows, expected_scores = brute(held, query, k)
        assert rows.tolist() == expected_rows
        assert np.allclose(scores, expected_scores, atol=1e-7)
        assert rows.dtype == np.int64 and scores.dtype == np.float32


@pytest.mark.parametrize("kind", ["flat", "sq8", "ivf"])
def test_thousands_of_identical_sentences(tmp_path: Path, kind: str) -> None:
    random = np.random.default_rng(3)
    vectors = unit(random.normal(size=(5000, 16)))
    same = np.sort(random.choice(5000, 2500, replace=False))
    vectors[same] = vectors[same[0]]
    build_vectors(write_chunks(tmp_path / "c", vectors, 1024), tmp_path, kind, threads=2, measure=False)
    ((rows, scores),) = VectorIndex.open(tmp_path).search(vectors[same[:1]], 1000)
    assert rows.tolist() == same[:1000].tolist() and len(set(scores.tolist())) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_batched_equals_single_and_reconstruct_is_near(built: dict[str, Path], kind: str) -> None:
    index = VectorIndex.open(built[kind] / FILE)
    queries = clustered(70, seed=2)
    together = index.search(queries, 300)
    for query, (rows, scores) in zip(queries, together, strict=True):
        ((alone_rows, alone_scores),) = index.search(query[None], 300)
        assert np.array_equal(rows, alone_rows) and np.array_equal(scores, alone_scores)
        assert (np.diff(scores) <= 0).all() and len(set(rows.tolist())) == len(rows) and rows.min() >= 0
    rows = np.array([2999, 0, 700, 0])
    assert np.allclose(index.reconstruct(rows), clustered(3000)[rows], atol=0.02)
    assert index.reconstruct(np.array([], dtype=np.int64)).shape == (0, 32)
    with pytest.raises(IndexError):
        index.reconstruct(np.array([3000]))


def test_search_equals_brute_force_and_a_short_index_gives_all(built: dict[str, Path]) -> None:
    for kind in ("flat", "sq8"):
        index = VectorIndex.open(built[kind])
        held = index.reconstruct(np.arange(len(index)))
        query = clustered(1, seed=9)
        for k in (1, 1000, 2999, 3000, 5000):
            ((rows, _),) = index.search(query, k)
            assert rows.tolist() == brute(held, query[0], k)[0]
        assert index.search(query, 0)[0][0].shape == (0,)
        assert index.search(np.zeros((0, 32), np.float32), 5) == []
        with pytest.raises(EpicqaError, match="another model"):
            index.search(np.zeros((1, 31), np.float32), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_matter(tmp_path: Path, kind: str) -> None:
    write_chunks(tmp_path / "chunks", clustered(3000), 700)
    np.save(tmp_path / "queries.npy", clustered(40, seed=2))
    code = f"""
import hashlib, sys, numpy as np
from pathlib import Path
from epicqa.index.vectors import VectorIndex, build_vectors
threads = int(sys.argv[1])
here = Path({str(tmp_path)!r})
build_vectors(here / "chunks", here / f"out{{threads}}", {kind!r}, threads=threads, measure=False)
print(hashlib.sha256((here / f"out{{threads}}" / "vectors.faiss").read_bytes()).hexdigest())
found = VectorIndex.open(here / f"out{{threads}}").search(np.load(here / "queries.npy"), 500)
print(hashlib.sha256(b"".join(part.tobytes() for pair in found for part in pair)).hexdigest())
"""
    root = str(Path(__file__).parents[2])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, threads],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": threads, "PYTHONPATH": root},
        ).stdout
        for threads in "12"
    ]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("kind", KINDS)
def test_streamed_chunks_equal_one(tmp_path: Path, kind: str) -> None:
    vectors = clustered(2500)
    for name, size in (("many", 300), ("one", 2500)):
        chunks = write_chunks(tmp_path / name, vectors, size)
        build_vectors(chunks, tmp_path / f"{name}-out", kind, threads=2, measure=False)
    assert (tmp_path / "many-out" / FILE).read_bytes() == (tmp_path / "one-out" / FILE).read_bytes()


def test_report_and_recall(tmp_path: Path) -> None:
    chunks = write_chunks(tmp_path / "chunks", clustered(6000), 1000)
    reports = {kind: build_vectors(chunks, tmp_path / kind, kind, threads=2) for kind in KINDS}
    for kind, report in reports.items():
        assert (report.kind, report.dimension, report.count) == (kind, 32, 6000)
    assert reports["flat"].recall is None
    assert reports["sq8"].recall > 0.95
    assert 0 < reports["ivf"].recall < reports["sq8"].recall
    assert reports["hnsw"].recall > 0.5
    for kind in ("sq8", "ivf"):
        held, exact = VectorIndex.open(tmp_path / kind), VectorIndex.open(tmp_path / "flat")
        queries = clustered(6000)[::120]
        shared = [
            len(set(a.tolist()) & set(b.tolist())) / 1000
            for (a, _), (b, _) in zip(held.search(queries, 1000), exact.search(queries, 1000), strict=True)
        ]
        assert abs(np.mean(shared) - reports[kind].recall) < 0.05


def test_default_kind() -> None:
    assert default_kind(99_999) == "flat" and default_kind(100_000) == "sq8"


def test_bad_input_is_one_line(tmp_path: Path, built: dict[str, Path]) -> None:
    with pytest.raises(EpicqaError, match="no such file"):
        VectorIndex.open(tmp_path / FILE)
    for kind in KINDS:
        whole = (built[kind] / FILE).read_bytes()
        for size in (0, 3, 40, len(whole) // 2, len(whole) - 1):
            (tmp_path / FILE).write_bytes(whole[:size])
            with pytest.raises(EpicqaError, match=r"damaged.*build it again"):
                VectorIndex.open(tmp_path)
    (tmp_path / FILE).write_bytes(b"not an index at all" * 100)
    with pytest.raises(EpicqaError, match="damaged"):
        VectorIndex.open(tmp_path)
    with pytest.raises(EpicqaError, match="expected one of flat, sq8, ivf, hnsw"):
        build_vectors(tmp_path, tmp_path, "pq", threads=1)  # type: ignore[arg-type]
    with pytest.raises(EpicqaError, match="no vectors"):
        build_vectors(tmp_path, tmp_path, "flat", threads=1)
    chunks = write_chunks(tmp_path / "gap", clustered(30), 10)
    (chunks / "chunk-000001.npy").unlink()
    with pytest.raises(EpicqaError, match=r"chunk-000001\.npy is missing"):
        build_vectors(chunks, tmp_path / "out", "flat", threads=1)
    (chunks / "chunk-000001.npy").write_bytes(b"rubbish")
    with pytest.raises(EpicqaError, match=r"chunk-000001\.npy: damaged"):
        build_vectors(chunks, tmp_path / "out", "flat", threads=1)
    assert not (tmp_path / "out").exists()


def test_both_faiss_distributions_clash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_faiss()
    info = tmp_path / "faiss_gpu_cu12-1.9.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faiss-gpu-cu12\nVersion: 1.9.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(EpicqaError, match="pip uninstall faiss-cpu faiss-gpu-cu12") as caught:
        import_faiss()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("order", ["torch, faiss", "faiss, torch"])
def test_faiss_and_torch_in_one_process(order: str) -> None:
    code = f"""
import {order.split(", ")[0]}
import {order.split(", ")[1]}
import numpy as np
faiss.omp_set_num_threads(2)
torch.set_num_threads(2)
for _ in range(3):
    x = np.random.default_rng(1).normal(size=(2000, 64)).astype("float32")
    torch.from_numpy(x) @ torch.from_numpy(x).T
    index = faiss.IndexScalarQuantizer(64, faiss.ScalarQuantizer.QT_8bit)
    index.train(x); index.add(x); index.search(x, 10)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
