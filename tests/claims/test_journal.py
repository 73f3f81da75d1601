"""Predictions of an interrupted command come back, and only for the same work."""

from epicqa.claims import fever
from epicqa.claims.journal import FEVER, SCIFACT, ClaimJournal
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS, Claim, PredictedEvidence, Prediction

CLAIMS = [Claim(number, f"Claim {number}.", (), {}) for number in range(3)]
MADE = [
    Prediction(0, {7: PredictedEvidence(SUPPORTS, (3, 0)), 5: PredictedEvidence(REFUTES, (1,))}),
    Prediction(1, {}),
]


def test_what_was_noted_comes_back_for_the_same_work() -> None:
    assert ClaimJournal(SCIFACT, CLAIMS, "a", 0.5).done == {}
    ClaimJournal(SCIFACT, CLAIMS, "a", 0.5).note(MADE)
    again = ClaimJournal(SCIFACT, CLAIMS, "a", 0.5)
    assert list(again.done.values()) == MADE
    assert list(again.done[0].evidence) == [7, 5]
    for other in (ClaimJournal(SCIFACT, CLAIMS, "a", 0.6), ClaimJournal(SCIFACT, CLAIMS[:2], "a", 0.5)):
        assert other.done == {}
    again.remove()
    assert ClaimJournal(SCIFACT, CLAIMS, "a", 0.5).done == {}


def test_fever_has_a_form_of_its_own() -> None:
    claims = [fever.Claim(number, "A claim.", None, ()) for number in range(2)]
    made = [
        fever.Prediction(0, REFUTES, (fever.Sentence("Zéline_-LRB-b-RRB-", 3), fever.Sentence("C", 0))),
        fever.Prediction(1, NOINFO, ()),
    ]
    ClaimJournal(FEVER, claims, 1).note(made)
    again = ClaimJournal(FEVER, claims, 1)
    assert list(again.done.values()) == made
    assert isinstance(again.done[0].evidence, tuple)
    again.remove()
    assert ClaimJournal(FEVER, claims, 1).done == {}
