"""Cross-encoders run as fast as the machine lets them: by PyTorch in its best precision, or by OpenVINO.

OpenVINO runs on CPUs and is optional; where it is installed, both are timed once and the faster is kept.
Exported graphs and what was measured lie in the cache folder, never in a model's own.
"""

from __future__ import annotations

import contextlib
import platform
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from epicqa import sample
from epicqa.errors import EpicqaError
from epicqa.files import cache_folder, digest_of, write_bytes
from epicqa.models import resolve
from epicqa.models.graphs import graph_of, installed, run_by_graph, transformer_of, versions
from epicqa.models.places import fingerprint
from epicqa.models.precision import Precision, autocast_for, best_precision
from epicqa.models.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Backend = Literal["torch", "openvino"]
BACKENDS = ("auto", "torch", "openvino")

# What is timed: pairs of a question and this many words at most, until this many seconds or rounds.
_QUESTION = "How long does the coronavirus survive on surfaces, and does cleaning help?"
_PAIRS = 32
_WORDS = 30
_SECONDS = 5.0
_ROUNDS = 10
# Below it a back end ranks otherwise than float32 does, and its speed does not count.
_CORRELATION = 0.99


@dataclass(frozen=True)
class Measured:
    """How a back end did on the fixed pairs.

    Attributes:
        backend: what ran.
        precision: what it multiplied in.
        pairs_per_second: in the fastest round.
        correlation: Spearman's, of its logits with PyTorch's in float32.
        difference: the largest from those, absolute; None where one is not finite.
    """

    backend: Backend
    precision: Precision
    pairs_per_second: float
    correlation: float
    difference: float | None


@dataclass(frozen=True)
class Loaded:
    """A cross-encoder, ready to ``predict`` inside ``autocast()``.

    Attributes:
        model: the cross-encoder.
        backend: what runs it.
        precision: what it multiplies in; float32 weights either way.
        measured: what the choice rests on; empty where there was none to make.
    """

    model: CrossEncoder
    backend: Backend
    precision: Precision
    measured: tuple[Measured, ...] = ()

    def autocast(self) -> AbstractContextManager[Any]:
        """The block to put around ``model.predict``, best around many batches."""
        if self.backend != "torch":
            return nullcontext()
        return autocast_for(self.model.device.type, self.precision)


def load_cross_encoder(name: str, backend: str = "auto") -> Loaded:
    """The cross-encoder of that name (see ``places.resolve``), with the back end that is to run it.

    Args:
        name: what the user gave.
        backend: ``torch``, ``openvino`` (moves the model to the CPU), or ``auto``: on a CPU the faster of
            those that are installed, measured once for this model, processor, threads and packages and kept
            in the cache; PyTorch elsewhere.

    Raises:
        EpicqaError: there is no such model or back end, or it may not or cannot be loaded.
    """
    if backend not in BACKENDS:
        raise EpicqaError(
            f"back end {backend!r}: unknown, expected {', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}"
        )
    there = installed()
    if backend == "openvino" and not there:
        raise EpicqaError(
            'back end openvino: the package openvino is missing, expected: pip install "epicqa[openvino]"'
        )
    model = resolve.load_cross_encoder(name)
    device = model.device.type
    if backend == "torch" or (backend == "auto" and not (there and device == "cpu")):
        return Loaded(model, "torch", best_precision(device))
    mark = fingerprint(resolve.resolve(name, "cross-encoder"))
    if backend == "openvino":
        run_by_graph(model, mark, _uneven_pairs())
        return Loaded(model, "openvino", best_precision("cpu"))
    measured = _measured(model, mark)
    # PyTorch's float32 agrees with itself, so there is always one.
    best = max(
        (one for one in measured if one.correlation >= _CORRELATION), key=lambda one: one.pairs_per_second
    )
    if best.backend == "openvino":
        run_by_graph(model, mark, _uneven_pairs())
    return Loaded(model, best.backend, best.precision, measured)


def _measured(model: CrossEncoder, mark: str) -> tuple[Measured, ...]:
    """What was measured of a model on this machine, from the cache or now."""
    import torch

    own = {name: version(name) for name in ("epicqa", "numpy", "sentence-transformers")}
    key = [mark, _processor(), torch.get_num_threads(), versions() | own]
    path = cache_folder() / "backends" / f"{digest_of(key)}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return tuple(Measured(**one) for one in orjson.loads(path.read_bytes()))
    found = _measure(model, mark)
    # A cache that cannot be written costs the next one the same time again.
    with contextlib.suppress(OSError):
        write_bytes(path, orjson.dumps([asdict(one) for one in found]))
    return found


def _measure(model: CrossEncoder, mark: str) -> tuple[Measured, ...]:
    """Every back end on the fixed pairs, in turns, so that a busy moment slows all of them alike."""
    part = transformer_of(model)
    network, best = part.model, best_precision("cpu")
    networks: dict[tuple[Backend, Precision], Any] = {("torch", "float32"): network, ("torch", best): network}
    # One that OpenVINO cannot convert is PyTorch's.
    with contextlib.suppress(EpicqaError):
        networks["openvino", best] = graph_of(model, mark, _uneven_pairs())
    pairs = _pairs()
    logits: dict[tuple[Backend, Precision], NDArray[np.float64]] = {}
    seconds = dict.fromkeys(networks, np.inf)
    began = time.perf_counter()
    for turn in range(_ROUNDS + 1):
        for one, part.model in networks.items():
            start = time.perf_counter()
            with Loaded(model, *one).autocast():
                logits[one] = _logits(model, pairs)
            # The first round warms up.
            if turn:
                seconds[one] = min(seconds[one], time.perf_counter() - start)
        if turn and time.perf_counter() - began > _SECONDS:
            break
    # Some graphs fail only at rows that are padded much.
    for one, part.model in networks.items():
        with Loaded(model, *one).autocast():
            logits[one] = np.concatenate([logits[one], _logits(model, _uneven_pairs())])
    part.model = network
    truth = logits["torch", "float32"]
    return tuple(
        Measured(*one, len(pairs) / seconds[one], _correlation(truth, found), _difference(truth, found))
        for one, found in logits.items()
    )


def _texts() -> list[str]:
    """The bundled sample's first documents."""
    lines = sample.documents_path().read_bytes().splitlines()[:_PAIRS]
    return [" ".join(context["text"] for context in orjson.loads(line)["contexts"]) for line in lines]


def _pairs() -> list[tuple[str, str]]:
    """The fixed pairs that are timed."""
    return [(_QUESTION, " ".join(text.split()[:_WORDS])) for text in _texts()]


def _uneven_pairs() -> list[tuple[str, str]]:
    """A short pair, and one of some 500 tokens."""
    return [(_QUESTION, "Two to three days."), (_QUESTION, " ".join(" ".join(_texts()).split()[:400]))]


def _logits(model: CrossEncoder, pairs: list[tuple[str, str]]) -> NDArray[np.float64]:
    import torch

    with quiet():
        found = model.predict(pairs, show_progress_bar=False, activation_fn=torch.nn.Identity())
    return np.asarray(found, dtype=np.float64).reshape(-1)


def _correlation(truth: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    """Spearman's; 1 for equal scores, 0 where scores are all one or not finite and there is none."""
    from scipy.stats import spearmanr

    if np.array_equal(truth, found, equal_nan=True):
        return 1.0
    if not np.isfinite(found).all() or np.ptp(truth) == 0 or np.ptp(found) == 0:
        return 0.0
    return float(spearmanr(truth, found).statistic)


def _difference(truth: NDArray[np.float64], found: NDArray[np.float64]) -> float | None:
    largest = float(np.abs(found - truth).max())
    return largest if np.isfinite(largest) else None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
