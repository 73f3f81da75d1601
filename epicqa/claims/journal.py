"""The predictions of claims under way, on disk, so that an interrupted command goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epicqa.claims.scifact import Claim, PredictedEvidence, Prediction
from epicqa.files import digest_of
from epicqa.journal import Lines


class ClaimJournal:
    """Predictions that are decided by the same things.

    Attributes:
        done: those noted so far, by claim.
    """

    def __init__(self, claims: Sequence[Claim], *decided_by: Any) -> None:
        """Find what was noted before.

        Args:
            claims: what is verified.
            decided_by: all else that decides the predictions, as JSON can hold it.
        """
        key = digest_of([[[one.claim_id, one.text] for one in claims], *decided_by])
        self._lines = Lines("claims", key[:24])
        self.done: dict[int, Prediction] = {}
        for noted in self._lines.found:
            try:
                evidence = {
                    int(doc_id): PredictedEvidence(label, tuple(sentences))
                    for doc_id, label, sentences in noted["evidence"]
                }
                self.done[noted["id"]] = Prediction(noted["id"], evidence)
            except (ValueError, KeyError, TypeError):
                continue

    def note(self, made: Sequence[Prediction]) -> None:
        """Add predictions."""
        for one in made:
            evidence = [(doc_id, told.label, told.sentences) for doc_id, told in one.evidence.items()]
            self._lines.note({"id": one.claim_id, "evidence": evidence})

    def remove(self) -> None:
        self._lines.remove()
