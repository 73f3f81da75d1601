"""Predictions of an interrupted command come back, and only for the same work."""

from epicqa.claims.journal import ClaimJournal
from epicqa.claims.scifact import REFUTES, SUPPORTS, Claim, PredictedEvidence, Prediction

CLAIMS = [Claim(number, f"Claim {number}.", (), {}) for number in range(3)]
MADE = [
    Prediction(0, {7: PredictedEvidence(SUPPORTS, (3, 0)), 5: PredictedEvidence(REFUTES, (1,))}),
    Prediction(1, {}),
]


def test_what_was_noted_comes_back_for_the_same_work() -> None:
    assert ClaimJournal(CLAIMS, "a", 0.5).done == {}
    ClaimJournal(CLAIMS, "a", 0.5).note(MADE)
    again = ClaimJournal(CLAIMS, "a", 0.5)
    assert list(again.done.values()) == MADE
    assert list(again.done[0].evidence) == [7, 5]
    for other in (ClaimJournal(CLAIMS, "a", 0.6), ClaimJournal(CLAIMS[:2], "a", 0.5)):
        assert other.done == {}
    again.remove()
    assert ClaimJournal(CLAIMS, "a", 0.5).done == {}
