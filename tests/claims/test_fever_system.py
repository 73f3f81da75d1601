"""FEVER's system on the small made-up Wikipedia, by models of random weights, against plain loops."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims import fever_system
from epicqa.claims.encoding import ClaimInput
from epicqa.claims.fever import Claim, Prediction, Sentence, read_claims
from epicqa.claims.fever_system import Verdict, as_record, decide, predict, summary, verdicts
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.pages import Parts, Premise, each_premises
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.errors import EpicqaError
from epicqa.index.build import Index

CLAIMS = read_claims(Path(__file__).parents[1] / "golden" / "fever" / "claims.jsonl")[:7]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 it makes a difference what else a batch holds."""
    monkeypatch.setattr("epicqa.claims.model.best_precision", lambda device: "float32")


@pytest.fixture(scope="module")
def models(tiny_claims: dict[str, Path]) -> dict[str, ClaimModel]:
    return {kind: load_claim_model(str(folder)) for kind, folder in tiny_claims.items()}


@pytest.fixture(scope="module")
def found(small: Index) -> dict[int, tuple[Premise, ...]]:
    """Premises of the claims; one has none."""
    those = dict(each_premises(CLAIMS, small, Parts(articles=False), threads=1))
    return those | {CLAIMS[2].claim_id: ()}


_EIGHTHS = st.integers(0, 8).map(lambda eighths: eighths / 8)


@given(st.lists(st.tuples(_EIGHTHS, _EIGHTHS, _EIGHTHS), max_size=9))
def test_decide_against_loops(rows: list[tuple[float, float, float]]) -> None:
    own = [LABEL_ORDER[row.index(max(row))] for row in rows]
    label = next((one for one in (SUPPORTS, REFUTES) if one in own), NOINFO)
    places = [place for place, one in enumerate(own) if one == label != NOINFO]
    places.sort(key=lambda place: (-max(rows[place]), place))
    assert decide(np.array(rows).reshape(-1, 3)) == (label, tuple(places[:5]))


@pytest.mark.parametrize("kind", ["label", "joint"])
def test_each_premise_is_read_by_itself(
    models: dict[str, ClaimModel], found: dict[int, tuple[Premise, ...]], kind: str
) -> None:
    model = models[kind]
    those = verdicts(CLAIMS, found.items(), model)
    assert [one.claim_id for one in those] == [claim.claim_id for claim in CLAIMS]
    for claim, one in zip(CLAIMS, those, strict=True):
        assert one.premises == found[claim.claim_id]
        assert one.probabilities.shape == (len(one.premises), 3)
        for premise, row in zip(one.premises, one.probabilities, strict=True):
            (alone,) = model.read([ClaimInput(claim.text, (premise.text,))])
            assert alone.labels is not None and np.allclose(row, alone.labels, atol=1e-5)
        assert (one.label, one.evidence) == decide(one.probabilities)
        prediction = one.prediction()
        assert prediction.label == one.label and (prediction.evidence == ()) == (one.label == NOINFO)
        assert set(prediction.evidence or ()) <= {premise.sentence for premise in one.premises}
    assert those[2].label == NOINFO and those[2].premises == ()


def test_premises_read_together(models: dict[str, ClaimModel], found: dict[int, tuple[Premise, ...]]) -> None:
    model = models["label"]
    labels = set()
    for claim, one in zip(CLAIMS, verdicts(CLAIMS, found.items(), model, together=True), strict=True):
        if not one.premises:
            assert one.label == NOINFO
            continue
        (whole,) = model.read([ClaimInput(claim.text, tuple(premise.text for premise in one.premises))])
        assert whole.labels is not None and np.allclose(one.probabilities, whole.labels, atol=1e-5)
        assert one.label == LABEL_ORDER[int(whole.labels.argmax())]
        assert one.evidence == (() if one.label == NOINFO else tuple(range(len(one.premises))))
        labels.add(one.label)
    assert labels


def test_batches_and_what_was_done_change_nothing(
    models: dict[str, ClaimModel], small: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def find(claims: Sequence[Claim]) -> Iterator[tuple[int, tuple[Premise, ...]]]:
        asked.extend(claim.claim_id for claim in claims)
        return each_premises(claims, small, threads=1)

    ids = [claim.claim_id for claim in CLAIMS]
    whole = list(predict(CLAIMS, find, models["label"]))
    assert [one.claim_id for one in whole] == asked == ids
    monkeypatch.setattr(fever_system, "_BATCH", 2)
    told: list[tuple[int, int]] = []
    noted: list[Prediction] = []
    each = predict(
        *(CLAIMS, find, models["label"]), note=noted.extend, progress=lambda *done: told.append(done)
    )
    # A batch is read when it is asked for.
    assert next(each) == whole[0] and noted == whole[:2]
    assert [whole[0], *each] == noted == whole
    assert told[-1] == (7, 7) and told == sorted(told)
    # A batch that is done in part is read again.
    asked.clear()
    done = {one.claim_id: one for one in whole[:3]}
    assert list(predict(CLAIMS, find, models["label"], done=done)) == whole
    assert asked == ids[2:]
    asked.clear()
    assert list(predict(CLAIMS, find, models["label"], done={one.claim_id: one for one in whole})) == whole
    assert asked == []
    assert list(predict([], find, models["label"])) == []


def test_what_cannot_be_read_is_refused_at_once(models: dict[str, ClaimModel]) -> None:
    def find(claims: Sequence[Claim]) -> list[tuple[int, tuple[Premise, ...]]]:
        raise AssertionError("nothing is looked for")

    with pytest.raises(EpicqaError, match="a rationale model, expected one that labels: of kind label or"):
        predict(CLAIMS, find, models["rationale"])
    with pytest.raises(EpicqaError, match=r"claim of .* tokens"):
        predict([*CLAIMS, Claim(1, "masks " * 600, None, ())], find, models["label"])
    with pytest.raises(ValueError, match=f"premises of claim 5, expected those of {CLAIMS[0].claim_id}"):
        verdicts(CLAIMS[:1], [(5, ())], models["label"])


def verdict(*rows: tuple[float, float, float]) -> Verdict:
    probabilities = np.array(rows).reshape(-1, 3)
    label, evidence = decide(probabilities)
    premises = tuple(
        Premise(Sentence("Tide_-LRB-film-RRB-", place), f"[ Tide (film) ] Line {place} .")
        for place in range(len(rows))
    )
    return Verdict(1, label, premises, probabilities, evidence)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "NOT ENOUGH INFO: no page was found."),
        ([(0, 1, 0)], "NOT ENOUGH INFO: none of the 1 sentences read is enough to support or refute it."),
        ([(0, 1, 0), (1, 0, 0), (0, 0, 1)], "SUPPORTS: of 3 sentences read, 1 supports it."),
        ([(0, 0, 1), (0, 0.5, 0.5), (0, 0.4, 0.6)], "REFUTES: of 3 sentences read, 2 refute it."),
    ],
)
def test_summary(rows: list[tuple[float, float, float]], said: str) -> None:
    assert summary(verdict(*rows)) == said


def test_record() -> None:
    record = as_record("x", "fever", verdict((0, 0.5, 0.5), (0, 0, 1), (0, 0.25, 0.75)))
    assert (record["claim"], record["index"], record["label"]) == ("x", "fever", "REFUTES")
    assert [one["evidence"] for one in record["premises"]] == [None, 1, 2]
    assert record["premises"][2] == {
        "page": "Tide_-LRB-film-RRB-",
        "line": 2,
        "title": "Tide (film)",
        "text": "[ Tide (film) ] Line 2 .",
        "label": "REFUTES",
        "probabilities": {"SUPPORTS": 0.0, "NOT ENOUGH INFO": 0.25, "REFUTES": 0.75},
        "evidence": 2,
    }
