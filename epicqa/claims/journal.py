"""The predictions of claims under way, on disk, so that an interrupted command goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from epicqa.claims import fever, scifact
from epicqa.files import digest_of
from epicqa.journal import Lines


class Asked(Protocol):
    """A claim of any task."""

    @property
    def claim_id(self) -> int: ...

    @property
    def text(self) -> str: ...


class Told(Protocol):
    """A prediction of any task."""

    @property
    def claim_id(self) -> int: ...


Made = TypeVar("Made", bound=Told)


@dataclass(frozen=True, slots=True)
class Form(Generic[Made]):
    """How predictions of a task are noted.

    Attributes:
        folder: of the cache.
        record: a prediction as JSON can hold it.
        made: the prediction of such a record; what is none raises ValueError, KeyError or TypeError.
    """

    folder: str
    record: Callable[[Made], dict[str, Any]]
    made: Callable[[Any], Made]


class ClaimJournal(Generic[Made]):
    """Predictions that are decided by the same things.

    Attributes:
        done: those noted so far, by claim.
    """

    def __init__(self, form: Form[Made], claims: Sequence[Asked], *decided_by: Any) -> None:
        """Find what was noted before.

        Args:
            form: the task's, `SCIFACT` or `FEVER`.
            claims: what is verified.
            decided_by: all else that decides the predictions, as JSON can hold it.
        """
        key = digest_of([[[one.claim_id, one.text] for one in claims], *decided_by])
        self._lines = Lines(form.folder, key[:24])
        self._form = form
        self.done: dict[int, Made] = {}
        for noted in self._lines.found:
            try:
                made = form.made(noted)
            except (ValueError, KeyError, TypeError):
                continue
            self.done[made.claim_id] = made

    def note(self, made: Sequence[Made]) -> None:
        """Add predictions."""
        for one in made:
            self._lines.note(self._form.record(one))

    def remove(self) -> None:
        self._lines.remove()


def _scifact_record(one: scifact.Prediction) -> dict[str, Any]:
    evidence = [(doc_id, told.label, told.sentences) for doc_id, told in one.evidence.items()]
    return {"id": one.claim_id, "evidence": evidence}


def _scifact_made(noted: Any) -> scifact.Prediction:
    evidence = {
        int(doc_id): scifact.PredictedEvidence(label, tuple(sentences))
        for doc_id, label, sentences in noted["evidence"]
    }
    return scifact.Prediction(noted["id"], evidence)


def _fever_record(one: fever.Prediction) -> dict[str, Any]:
    # Lists, as the journal takes no named tuples.
    return {
        "id": one.claim_id,
        "label": one.label,
        "evidence": [[*sentence] for sentence in one.evidence or ()],
    }


def _fever_made(noted: Any) -> fever.Prediction:
    evidence = tuple(fever.Sentence(page, line) for page, line in noted["evidence"])
    return fever.Prediction(noted["id"], noted["label"], evidence)


SCIFACT = Form("claims", _scifact_record, _scifact_made)
FEVER = Form("fever-claims", _fever_record, _fever_made)
