"""Models by name, loaded from safetensors files only and with no code of theirs run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from epicqa.errors import EpicqaError
from epicqa.models.encoder import Encoder, TransformerEncoder, open_static
from epicqa.models.places import resolve
from epicqa.models.quiet import quiet

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

__all__ = ["Encoder", "load_cross_encoder", "load_encoder", "resolve"]


def load_encoder(name: str) -> Encoder:
    """The encoder of that name (see ``places.resolve``).

    Raises:
        EpicqaError: there is no such model, or it may not or cannot be loaded.
    """
    folder = resolve(name, "sentence-transformers")
    static = open_static(name, folder)
    if static is not None:
        return static
    return TransformerEncoder(name, folder, _load("SentenceTransformer", name, folder))


def load_cross_encoder(name: str) -> CrossEncoder:
    """The cross-encoder of that name, float32, from the same places in the same order.

    Raises:
        EpicqaError: there is no such model, or it may not or cannot be loaded.
    """
    return _load("CrossEncoder", name, resolve(name, "cross-encoder"))


def _load(kind: str, name: str, folder: Path) -> Any:
    with quiet():
        import sentence_transformers

        # Imported inside: it starts the libraries that `quiet` then knows of.
        with quiet():
            try:
                model = getattr(sentence_transformers, kind)(
                    str(folder),
                    local_files_only=True,
                    trust_remote_code=False,
                    model_kwargs={"use_safetensors": True},
                )
            except Exception as error:  # whatever a foreign folder provokes in three libraries
                line = next(iter(str(error).splitlines()), "") or type(error).__name__
                raise EpicqaError(f"model {name!r} cannot be loaded from {folder}: {line}") from None
    return model.float().eval()
