"""A trained claim model: what it says of claims and sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epicqa.claims.encoding import ClaimInput, windows_of
from epicqa.claims.network import (
    LABEL_ORDER,
    Network,
    Reads,
    Settings,
    batches_of,
    open_network,
    read_settings,
)
from epicqa.errors import EpicqaError
from epicqa.models.places import resolve
from epicqa.models.precision import autocast_for, best_precision

if TYPE_CHECKING:
    from epicqa.claims.examples import Example

# Tokens of one pass through the network, padding included.
_TOKENS = {"cpu": 4096, "cuda": 65536}


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a model says of one input.

    Attributes:
        sentences: float64[n]: the probability of each sentence that it is a rationale's; None of a model that
            labels only.
        labels: float64[3]: the probabilities of `epicqa.claims.network.LABEL_ORDER`; None of a model that
            selects only.
    """

    sentences: NDArray[np.float64] | None
    labels: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class ClaimModel:
    """A model in memory; ``name`` is what it was asked for by."""

    name: str
    settings: Settings
    network: Network
    tokenizer: Any

    def read(
        self, inputs: Sequence[ClaimInput], progress: Callable[[int, int], None] | None = None
    ) -> list[Reading]:
        """Read inputs, each as the model's kind has it.

        A rationale model reads each sentence by itself. Of an input that takes several windows the label is
        that of the window with the least probability of `NOINFO`. One without sentences is `NOINFO` for sure
        unless the model reads claims only.

        Args:
            inputs: claims and sentences.
            progress: called with the windows done and all there are.

        Raises:
            EpicqaError: a claim is too long.
        """
        import torch

        kind, reads = self.settings.kind, self.settings.reads
        given = [shown(one, reads) for one in inputs]
        owners = list(range(len(given)))
        if kind == "rationale":
            owners = [place for place, one in enumerate(given) for _ in one.sentences]
            given = [ClaimInput(one.claim, (sentence,)) for one in given for sentence in one.sentences]
        windows = windows_of(self.tokenizer, given, self.settings.max_length)
        device = next(self.network.parameters()).device.type
        sentences: list[list[float]] = [[] for _ in windows]
        labels = np.zeros((len(windows), len(LABEL_ORDER)))
        done = 0
        with torch.inference_mode(), autocast_for(device, best_precision(device)):
            for places in batches_of(windows, _TOKENS[device]):
                batch = [windows[place] for place in places]
                logits, found = self.network(batch, self.tokenizer.pad_token_id)
                labels[places] = torch.softmax(found, dim=1).double().cpu().numpy()
                probabilities = torch.sigmoid(logits).double().cpu().tolist()
                for place, one, row in zip(places, batch, probabilities, strict=True):
                    sentences[place] = row[: len(one.spans)]
                done += len(places)
                if progress:
                    progress(done, len(windows))
        by_owner: list[list[int]] = [[] for _ in inputs]
        for place, window in enumerate(windows):
            by_owner[owners[window.source]].append(place)
        return [
            Reading(
                _joined([sentences[place] for place in places]) if kind != "label" else None,
                self._label(one, labels[places]) if kind != "rationale" else None,
            )
            for one, places in zip(inputs, by_owner, strict=True)
        ]

    def _label(self, one: ClaimInput, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        if not one.sentences and self.settings.reads != "claim":
            return np.array([0.0, 1.0, 0.0])
        best: NDArray[np.float64] = labels[np.argmin(labels[:, 1])]
        return best


def shown(one: ClaimInput | Example, reads: Reads) -> ClaimInput:
    """What of a claim and sentences a model that reads so is given."""
    return ClaimInput(one.claim if reads != "sentences" else "", one.sentences if reads != "claim" else ())


def load_claim_model(name: str) -> ClaimModel:
    """The claim model of that name (see `epicqa.models.places.resolve`).

    Raises:
        EpicqaError: there is no such model, it is none of claims, or it cannot be loaded.
    """
    import torch

    folder = resolve(name)
    settings = read_settings(folder)
    if settings is None:
        raise EpicqaError(f"{folder}: no claim model, expected one that epicqa claims train made")
    network, tokenizer, _ = open_network(folder)
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    return ClaimModel(name, settings, network.eval(), tokenizer)


def _joined(parts: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    return np.array([one for part in parts for one in part], dtype=np.float64)
