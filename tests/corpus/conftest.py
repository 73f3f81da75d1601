"""Documents to build from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def _document(
    document_id: str = "doc", texts: Sequence[Sequence[str]] = (("One here.", "Two here."),), **metadata: Any
) -> dict[str, Any]:
    contexts = []
    for number, sentences in enumerate(texts):
        context_id = f"{document_id}-C{number:03d}"
        spans, at = [], 0
        for index, sentence in enumerate(sentences):
            end = at + len(sentence)
            spans.append({"sentence_id": f"{context_id}-S{index:03d}", "start": at, "end": end})
            at = end + 1
        text = " ".join(sentences)
        contexts.append({"section": "Body", "context_id": context_id, "text": text, "sentences": spans})
    return {"document_id": document_id, "metadata": {"title": "A title", **metadata}, "contexts": contexts}


@pytest.fixture(scope="session")
def document() -> Callable[..., dict[str, Any]]:
    """A document in the track's form: one list of sentences a context, joined by spaces."""
    return _document
