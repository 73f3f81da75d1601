"""Cross-encoders converted for OpenVINO, an optional CPU library; graphs are kept in the cache folder."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from importlib.util import find_spec
from inspect import signature
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from epicqa import packages
from epicqa.errors import EpicqaError
from epicqa.files import cache_folder, digest_of, remove_tree
from epicqa.models.precision import best_precision
from epicqa.models.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


Pairs = list[tuple[str, str]]


def installed() -> bool:
    return find_spec("openvino") is not None


def versions() -> dict[str, str]:
    """Of the packages that a graph depends on."""
    return packages.versions(("openvino", "torch", "transformers"))


def transformer_of(model: CrossEncoder) -> Any:
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


def run_by_graph(model: CrossEncoder, mark: str, example: Pairs) -> None:
    """Have OpenVINO compute a model's logits, on the CPU; arguments as ``graph_of``."""
    part = transformer_of(model)
    part.model = graph_of(model.to("cpu"), mark, example)


def graph_of(model: CrossEncoder, mark: str, example: Pairs) -> Any:
    """A module that takes a network's inputs and gives its logits, computed by OpenVINO.

    Args:
        model: the cross-encoder.
        mark: its fingerprint.
        example: pairs of unlike length, so that what padding does is in the trace.

    Raises:
        EpicqaError: OpenVINO cannot convert or compile the network.
    """
    import torch

    openvino = _openvino()
    part = transformer_of(model)
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
        compiled = openvino.Core().compile_model(_exported(model, names, mark, example), "CPU", settings)
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


def _exported(model: CrossEncoder, names: list[str], mark: str, example: Pairs) -> Any:
    """The network as OpenVINO's own, from the cache or converted now: rows of tokens in, logits out."""
    openvino = _openvino()
    folder = cache_folder() / "graphs" / digest_of([mark, names, versions()])
    with contextlib.suppress(RuntimeError):
        return openvino.Core().read_model(folder / "model.xml")
    graph = _converted(model, names, example)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    # A graph that cannot be kept is converted again the next time.
    with contextlib.suppress(OSError, RuntimeError):
        temporary.mkdir(parents=True, exist_ok=True)
        openvino.save_model(graph, temporary / "model.xml", compress_to_fp16=False)
        remove_tree(folder)
        temporary.rename(folder)
    remove_tree(temporary)
    return graph


def _converted(model: CrossEncoder, names: list[str], example: Pairs) -> Any:
    import torch

    openvino = _openvino()
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = transformer_of(model).model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.network(**dict(zip(names, inputs, strict=True)), return_dict=True).logits

    traced = model.preprocess(example)
    # Not `openvino.convert_model`: that reports its use to its makers over the network.
    front = FrontEndManager().load_by_framework("pytorch")
    with quiet(), torch.no_grad():
        # Held until the graph is whole, or the front end reads freed memory.
        decoder = TorchScriptPythonDecoder(
            Logits().eval(), example_input=tuple(traced[name] for name in names), shared_memory=False
        )
        graph = front.convert(front.load(decoder))
    for entry in graph.inputs:
        entry.get_node().set_element_type(openvino.Type.i64)
        entry.get_node().set_partial_shape(openvino.PartialShape([-1, -1]))
    graph.validate_nodes_and_infer_types()
    return graph
