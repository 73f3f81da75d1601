"""Cross-encoders run as fast as the machine lets them: by PyTorch in its best precision, or by OpenVINO.

OpenVINO runs on CPUs and is optional; where it is installed, both are timed once and the faster is kept.
Exported graphs and what was measured lie in the cache folder, never in a model's own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from epicqa import sample
from epicqa.errors import EpicqaError
from epicqa.files import cache_folder, digest_of, remove_tree, write_bytes
from epicqa.models import resolve
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
    installed = find_spec("openvino") is not None
    if backend == "openvino" and not installed:
        raise EpicqaError(
            'back end openvino: the package openvino is missing, expected: pip install "epicqa[openvino]"'
        )
    model = resolve.load_cross_encoder(name)
    device = model.device.type
    if backend == "torch" or (backend == "auto" and not (installed and device == "cpu")):
        return Loaded(model, "torch", best_precision(device))
    mark = fingerprint(resolve.resolve(name, "cross-encoder"))
    if backend == "openvino":
        _run_by_graph(model, mark)
        return Loaded(model, "openvino", best_precision("cpu"))
    measured = _measured(model, mark)
    # PyTorch's float32 agrees with itself, so there is always one.
    best = max(
        (one for one in measured if one.correlation >= _CORRELATION), key=lambda one: one.pairs_per_second
    )
    if best.backend == "openvino":
        _run_by_graph(model, mark)
    return Loaded(model, best.backend, best.precision, measured)


def _measured(model: CrossEncoder, mark: str) -> tuple[Measured, ...]:
    """What was measured of a model on this machine, from the cache or now."""
    import torch

    key = [mark, _processor(), torch.get_num_threads(), _versions("epicqa", "numpy", "sentence-transformers")]
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
    part = _transformer(model)
    network, best = part.model, best_precision("cpu")
    networks: dict[tuple[Backend, Precision], Any] = {("torch", "float32"): network, ("torch", best): network}
    # One that OpenVINO cannot convert is PyTorch's.
    with contextlib.suppress(EpicqaError):
        networks["openvino", best] = _graph(model, mark)
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


def _versions(*more: str) -> dict[str, str]:
    return {name: version(name) for name in ("openvino", "torch", "transformers", *more)}


def _transformer(model: CrossEncoder) -> Any:
    """The module that holds the network, whose ``model`` is what a graph takes the place of."""
    return next(iter(model.children()))


def _openvino() -> Any:
    """The package, which otherwise reports every import to its makers over the network."""
    # With its reporter out of reach it takes a stub instead.
    modules: dict[str, Any] = sys.modules
    reporter = modules.get("openvino_telemetry")
    modules["openvino_telemetry"] = None
    try:
        return importlib.import_module("openvino")
    finally:
        del modules["openvino_telemetry"]
        if reporter is not None:
            modules["openvino_telemetry"] = reporter


def _run_by_graph(model: CrossEncoder, mark: str) -> None:
    part = _transformer(model)
    part.model = _graph(model.to("cpu"), mark)


def _graph(model: CrossEncoder, mark: str) -> Any:
    """A module that takes a network's inputs and gives its logits, computed by OpenVINO.

    Raises:
        EpicqaError: OpenVINO cannot convert or compile the network.
    """
    import torch

    openvino = _openvino()
    part = _transformer(model)
    if getattr(part, "transformer_task", None) != "sequence-classification":
        raise EpicqaError("back end openvino: the model has no classification head, expected back end torch")
    network = part.model
    accepted = signature(network.forward).parameters
    names = [name for name in model.tokenizer.model_input_names if name in accepted]
    settings = {
        "INFERENCE_PRECISION_HINT": {"bfloat16": "bf16", "float32": "f32"}[best_precision("cpu")],
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "PERFORMANCE_HINT": "LATENCY",
    }
    try:
        compiled = openvino.Core().compile_model(_exported(model, names, mark), "CPU", settings)
    except Exception as error:  # whatever a network provokes in a foreign compiler
        line = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise EpicqaError(f"back end openvino: the model cannot be converted: {line}") from None
    request = compiled.create_infer_request()
    # A request computes one batch at a time, whoever asks.
    lock = Lock()

    class Graph(torch.nn.Module):
        config = network.config
        device = torch.device("cpu")

        def forward(self, **features: Any) -> dict[str, torch.Tensor]:
            with lock:
                found = request.infer([features[name].numpy() for name in names])[0]
                return {"logits": torch.from_numpy(np.array(found, dtype=np.float32))}

    return Graph().eval()


def _exported(model: CrossEncoder, names: list[str], mark: str) -> Any:
    """The network as OpenVINO's own, from the cache or converted now: rows of tokens in, logits out."""
    openvino = _openvino()
    folder = cache_folder() / "graphs" / digest_of([mark, names, _versions()])
    with contextlib.suppress(RuntimeError):
        return openvino.Core().read_model(folder / "model.xml")
    graph = _converted(model, names)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    # A graph that cannot be kept is converted again the next time.
    with contextlib.suppress(OSError, RuntimeError):
        temporary.mkdir(parents=True, exist_ok=True)
        openvino.save_model(graph, temporary / "model.xml", compress_to_fp16=False)
        remove_tree(folder)
        temporary.rename(folder)
    remove_tree(temporary)
    return graph


def _converted(model: CrossEncoder, names: list[str]) -> Any:
    import torch

    openvino = _openvino()
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = _transformer(model).model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.network(**dict(zip(names, inputs, strict=True)), return_dict=True).logits

    # Rows of two lengths, so that what padding does is in the trace.
    example = model.preprocess(_uneven_pairs())
    # Not `openvino.convert_model`: that reports its use to its makers over the network.
    front = FrontEndManager().load_by_framework("pytorch")
    with quiet(), torch.no_grad():
        # Held until the graph is whole, or the front end reads freed memory.
        decoder = TorchScriptPythonDecoder(
            Logits().eval(), example_input=tuple(example[name] for name in names), shared_memory=False
        )
        graph = front.convert(front.load(decoder))
    for entry in graph.inputs:
        entry.get_node().set_element_type(openvino.Type.i64)
        entry.get_node().set_partial_shape(openvino.PartialShape([-1, -1]))
    graph.validate_nodes_and_infer_types()
    return graph
