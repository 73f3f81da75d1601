"""SciFact's measures by hand, against a second implementation, and their bootstrap."""

import json
import math
import statistics
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.scifact import (
    ABSTRACTS,
    FULL,
    LABELS,
    NOINFO,
    RATIONALES,
    REFUTES,
    SHAPES,
    SUPPORTS,
    Claim,
    PredictedEvidence,
    Prediction,
    Predictions,
    Rationale,
    merge_predictions,
    read_abstracts,
    read_claims,
    read_predictions,
)
from epicqa.claims.scifact_scores import (
    DEFINITIONS,
    LABEL_ONLY,
    LABEL_RATIONALE,
    MEASURES,
    MEASURES_OF,
    SELECTION_LABEL,
    SELECTION_ONLY,
    ClaimScores,
    bootstrap,
    score_claims,
)
from epicqa.errors import EpicqaError

BOTH = pytest.mark.parametrize("definition", DEFINITIONS)


def claim(claim_id: int = 1, label: str = SUPPORTS, **evidence: list[list[int]]) -> Claim:
    """A claim of one label; keywords are documents such as ``d7``, values their rationales."""
    found = {
        int(name[1:]): tuple(Rationale(tuple(sentences), label) for sentences in rationales)
        for name, rationales in evidence.items()
    }
    return Claim(claim_id, "x", (), found)


def said(claim_id: int = 1, **evidence: tuple[str | None, list[int] | None]) -> Prediction:
    return Prediction(
        claim_id,
        {
            int(name[1:]): PredictedEvidence(label, None if sentences is None else tuple(sentences))
            for name, (label, sentences) in evidence.items()
        },
    )


def score(
    claims: list[Claim], predictions: list[Prediction], definition: str = "paper", shape: str = FULL
) -> ClaimScores:
    return score_claims(Predictions(Path("p.jsonl"), shape, tuple(predictions)), claims, definition)


def totals(*arguments: Any) -> list[tuple[int, ...]]:
    """Right, predicted, gold of the four measures."""
    found = score(*arguments).totals()
    assert tuple(found) == MEASURES
    return list(found.values())


# By hand: sentences selected, sentences with label, abstracts by label, abstracts with rationale.


@BOTH
def test_right_in_everything(definition: str) -> None:
    scores = score([claim(d7=[[0, 1]])], [said(d7=(SUPPORTS, [1, 0]))], definition)
    assert list(scores.totals().values()) == [(2, 2, 2), (2, 2, 2), (1, 1, 1), (1, 1, 1)]
    names = [f"{measure}_{figure}" for measure in MEASURES for figure in ("p", "r", "f1")]
    assert list(scores.values().items()) == [(name, 1.0) for name in names]


@BOTH
def test_part_of_a_rationale_is_worth_nothing(definition: str) -> None:
    found = totals([claim(d7=[[0, 1]])], [said(d7=(SUPPORTS, [0]))], definition)
    assert found == [(0, 1, 2), (0, 1, 2), (1, 1, 1), (0, 1, 1)]


@BOTH
def test_extra_sentences_cost_precision_of_sentences_only(definition: str) -> None:
    found = totals([claim(d7=[[0, 1]])], [said(d7=(SUPPORTS, [0, 5, 1]))], definition)
    assert found == [(2, 3, 2), (2, 3, 2), (1, 1, 1), (1, 1, 1)]


@BOTH
def test_wrong_label_with_right_rationale(definition: str) -> None:
    found = totals([claim(d7=[[0, 1]])], [said(d7=(REFUTES, [0, 1]))], definition)
    assert found == [(2, 2, 2), (0, 2, 2), (0, 1, 1), (0, 1, 1)]


@BOTH
def test_several_rationales_in_one_abstract(definition: str) -> None:
    # [0, 1] is not whole, [4] is; one whole rationale is enough for the abstract.
    found = totals([claim(d7=[[0, 1], [4], [6]])], [said(d7=(SUPPORTS, [1, 4, 9]))], definition)
    assert found == [(1, 3, 4), (1, 3, 4), (1, 1, 1), (1, 1, 1)]


@BOTH
def test_abstracts_that_are_no_evidence_and_evidence_not_found(definition: str) -> None:
    claims = [claim(d7=[[0]], d8=[[1, 2]])]
    found = totals(claims, [said(d7=(SUPPORTS, [0]), d9=(REFUTES, [0, 3]))], definition)
    assert found == [(1, 3, 3), (1, 3, 3), (1, 2, 2), (1, 2, 2)]
    scores = score(claims, [said(d7=(SUPPORTS, [0]), d9=(REFUTES, [0, 3]))], definition).values()
    assert scores["sentence_selection_only_p"] == 1 / 3
    assert scores["abstract_label_rationale_f1"] == 0.5


@BOTH
def test_what_is_predicted_for_a_claim_without_evidence(definition: str) -> None:
    found = totals([claim()], [said(d7=(SUPPORTS, [0]))], definition)
    assert found == [(0, 1, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0)]


@BOTH
def test_a_label_without_sentences(definition: str) -> None:
    found = totals([claim(d7=[[0]])], [said(d7=(SUPPORTS, []))], definition)
    assert found == [(0, 0, 1), (0, 0, 1), (1, 1, 1), (0, 1, 1)]


@BOTH
def test_empty_predictions_score_0(definition: str) -> None:
    scores = score([claim(d7=[[0]]), claim(2)], [said(), said(2)], definition)
    assert list(scores.totals().values()) == [(0, 0, 1)] * 4
    assert set(scores.values().values()) == {0.0}


def test_three_sentences_are_considered_for_an_abstract_and_all_for_sentences() -> None:
    late = [said(d7=(SUPPORTS, [9, 8, 7, 0]))]
    for definition in DEFINITIONS:
        assert totals([claim(d7=[[0]])], late, definition) == [(1, 4, 1), (1, 4, 1), (1, 1, 1), (0, 1, 1)]
    # In the system's order, not that of the abstract.
    early = [said(d7=(SUPPORTS, [7, 8, 0, 9]))]
    assert totals([claim(d7=[[0]])], early)[3] == (1, 1, 1)
    assert totals([claim(d7=[[7, 9]])], early)[3] == (0, 1, 1)


def test_a_gold_rationale_of_four_sentences() -> None:
    long = [claim(d7=[[0, 1, 2, 3]])]
    assert totals(long, [said(d7=(SUPPORTS, [3, 2, 1, 0]))], "paper")[2:] == [(1, 1, 1), (0, 1, 1)]
    assert totals(long, [said(d7=(SUPPORTS, [3, 2, 1, 0]))], "leaderboard")[2:] == [(1, 1, 1), (1, 1, 1)]
    # The fifth sentence is too late for both.
    assert totals(long, [said(d7=(SUPPORTS, [9, 3, 2, 1, 0]))], "leaderboard")[3] == (0, 1, 1)
    # The shortest rationale of the abstract counts, not the longest.
    two = [claim(d7=[[0, 1, 2, 3], [5, 6]])]
    assert totals(two, [said(d7=(SUPPORTS, [3, 2, 1, 0]))], "leaderboard")[3] == (0, 1, 1)


def test_claims_left_out() -> None:
    claims = [claim(1, d7=[[0]]), claim(2, d8=[[1]]), claim(3)]
    predictions = [said(2, d8=(SUPPORTS, [1]))]
    scores = score(claims, predictions, "paper")
    assert scores.claim_ids == (2,) and set(scores.values().values()) == {1.0}
    with pytest.raises(EpicqaError, match=r"^p.jsonl: claim 1: it has no prediction \(nor have 1 others\)"):
        score(claims, predictions, "leaderboard")


def test_steps_of_a_pipeline() -> None:
    claims = [claim(d7=[[0]], d8=[[1]])]
    scores = score(claims, [said(d7=(None, [0]), d9=(None, [4]))], "paper", RATIONALES)
    assert scores.totals() == {SELECTION_ONLY: (1, 2, 2)}
    assert list(scores.values()) == [f"{SELECTION_ONLY}_{figure}" for figure in ("p", "r", "f1")]
    scores = score(
        claims, [said(d7=(SUPPORTS, None), d8=(NOINFO, None), d9=(REFUTES, None))], "paper", LABELS
    )
    assert scores.totals() == {LABEL_ONLY: (1, 2, 2)}


def test_what_cannot_be_scored() -> None:
    with pytest.raises(EpicqaError, match=r"^p.jsonl: retrieved abstracts, .* expected lines of \{\"id\""):
        score([claim()], [said()], "paper", ABSTRACTS)
    with pytest.raises(EpicqaError, match=r"^p.jsonl: claim 4: no such claim, expected"):
        score([claim()], [said(4)])
    with pytest.raises(EpicqaError, match=r"^p.jsonl: claim 1: its evidence is not known, expected"):
        score([Claim(1, "x", (), {}, judged=False)], [said()])
    assert MEASURES_OF.keys() == SHAPES.keys()


# A second implementation, of JSON as it is in the files.


def plain_scores(gold: list[dict], system: list[dict], definition: str) -> dict[str, float]:
    spelled = {"SUPPORTS": "SUPPORT", "REFUTES": "CONTRADICT"}
    by_claim = {line["id"]: line["evidence"] for line in system}
    if definition == "leaderboard":
        assert list(by_claim) == [line["id"] for line in gold]
    gold_sentences: set[tuple] = set()
    gold_abstracts: set[tuple] = set()
    sentences: set[tuple] = set()
    abstracts: set[tuple] = set()
    right: dict[str, set[tuple]] = {measure: set() for measure in MEASURES}
    for line in gold:
        if line["id"] not in by_claim:
            continue
        for document, rationales in line["evidence"].items():
            gold_abstracts.add((line["id"], document))
            for one in rationales:
                for sentence in one["sentences"]:
                    gold_sentences.add((line["id"], document, sentence))
        for document, one in by_claim[line["id"]].items():
            abstracts.add((line["id"], document))
            for sentence in one["sentences"]:
                sentences.add((line["id"], document, sentence))
            rationales = line["evidence"].get(document, [])
            label_is_right = False
            for rationale in rationales:
                label_is_right = spelled.get(one["label"], one["label"]) == rationale["label"]
            for rationale in rationales:
                missing = [
                    sentence for sentence in rationale["sentences"] if sentence not in one["sentences"]
                ]
                for sentence in [] if missing else rationale["sentences"]:
                    right[SELECTION_ONLY].add((line["id"], document, sentence))
                    if label_is_right:
                        right[SELECTION_LABEL].add((line["id"], document, sentence))
            if label_is_right:
                right[LABEL_ONLY].add((line["id"], document))
                limit = 3
                if definition == "leaderboard":
                    while all(len(rationale["sentences"]) > limit for rationale in rationales):
                        limit += 1
                considered = one["sentences"][:limit]
                for rationale in rationales:
                    if all(sentence in considered for sentence in rationale["sentences"]):
                        right[LABEL_RATIONALE].add((line["id"], document))
    found = {}
    for measure in MEASURES:
        of_sentences = measure.startswith("sentence")
        said_in_all = len(sentences if of_sentences else abstracts)
        gold_in_all = len(gold_sentences if of_sentences else gold_abstracts)
        p = len(right[measure]) / said_in_all if said_in_all else 0.0
        r = len(right[measure]) / gold_in_all if gold_in_all else 0.0
        found[f"{measure}_p"] = p
        found[f"{measure}_r"] = r
        found[f"{measure}_f1"] = 2 * p * r / (p + r) if p + r else 0.0
    return found


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def both(folder: Path, gold: list[dict], system: list[dict], definition: str) -> tuple[dict, dict]:
    """What the two implementations say of the same files."""
    for name, lines in (("gold", gold), ("system", system)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    claims = read_claims(folder / "gold")
    scores = score_claims(read_predictions(folder / "system", claims), claims, definition)
    return scores.values(), plain_scores(gold, system, definition)


@st.composite
def gold_abstract(draw: st.DrawFn) -> list[dict]:
    sentences = draw(st.permutations(range(8)))
    label = draw(st.sampled_from(["SUPPORT", "CONTRADICT"]))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    found = []
    for size in sizes:
        if part := sentences[:size]:
            found.append({"sentences": part, "label": label})
        sentences = sentences[size:]
    return found


DOCUMENTS = st.sampled_from(["1", "2", "3"])
SYSTEM = st.fixed_dictionaries(
    {
        "sentences": st.lists(st.integers(0, 8), unique=True, max_size=8),
        "label": st.sampled_from(["SUPPORT", "CONTRADICT", "SUPPORTS", "REFUTES"]),
    }
)


@BOTH
@given(data=st.data())
def test_two_implementations_agree(
    tmp_path_factory: pytest.TempPathFactory, definition: str, data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.integers(0, 20), unique=True, min_size=1, max_size=5))
    gold = [
        {"id": i, "claim": "x", "evidence": data.draw(st.dictionaries(DOCUMENTS, gold_abstract()))}
        for i in ids
    ]
    system = [{"id": i, "evidence": data.draw(st.dictionaries(DOCUMENTS, SYSTEM))} for i in ids]
    if definition == "paper":
        kept = data.draw(st.sets(st.sampled_from(ids), min_size=1))
        system = [line for line in system if line["id"] in kept]
    ours, plain = both(tmp_path_factory.getbasetemp(), gold, system, definition)
    assert ours == plain


SYSTEMS = ("roberta_large_mlm", "scibert")
SELECTIONS = ("roberta_large", "scibert_mlm")


@BOTH
@pytest.mark.parametrize(("labels", "rationales"), list(product(SYSTEMS, SELECTIONS)))
def test_the_published_systems(shared: Path, definition: str, labels: str, rationales: str) -> None:
    folder = shared / "scifact"
    claims = read_claims(folder / "claims_dev.jsonl")
    label_file = folder / "systems" / f"kgat_dev_{labels}.jsonl"
    rationale_file = folder / "systems" / f"rationale_selection_dev_{rationales}.jsonl"
    read_labels, read_rationales = (
        read_predictions(label_file, claims),
        read_predictions(rationale_file, claims),
    )
    ours = score_claims(merge_predictions(read_rationales, read_labels), claims, definition).values()
    gold = lines_of(folder / "claims_dev.jsonl")
    merged = []
    for one, other in zip(lines_of(label_file), lines_of(rationale_file), strict=True):
        evidence = {
            document: {"label": found["label"], "sentences": other["evidence"][document]}
            for document, found in one["labels"].items()
            if found["label"] != "NOT_ENOUGH_INFO"
        }
        merged.append({"id": one["claim_id"], "evidence": evidence})
    plain = plain_scores(gold, merged, definition)
    assert ours == plain and 0.3 < min(ours.values()) < max(ours.values()) < 0.9
    # Each step by itself.
    of_labels = score_claims(read_labels, claims, definition).values()
    assert of_labels == {name: value for name, value in plain.items() if name.startswith(LABEL_ONLY)}
    selected = [
        {
            "id": line["claim_id"],
            "evidence": {
                document: {"label": "SUPPORT", "sentences": sentences}
                for document, sentences in line["evidence"].items()
            },
        }
        for line in lines_of(rationale_file)
    ]
    of_rationales = score_claims(read_rationales, claims, definition).values()
    plain = plain_scores(gold, selected, definition)
    assert of_rationales == {name: value for name, value in plain.items() if name.startswith(SELECTION_ONLY)}


def test_retrieved_abstracts_are_not_scored(shared: Path) -> None:
    folder = shared / "scifact"
    abstracts = read_abstracts(folder / "corpus.jsonl.gz")
    claims = read_claims(folder / "claims_dev.jsonl", abstracts)
    shapes = []
    for path in sorted((folder / "systems").iterdir()):
        predictions = read_predictions(path, claims, abstracts)
        shapes.append(predictions.shape)
        if predictions.shape == ABSTRACTS:
            with pytest.raises(EpicqaError, match="retrieved abstracts"):
                score_claims(predictions, claims)
    assert shapes == [ABSTRACTS] * 3 + [LABELS] * 2 + [RATIONALES] * 2


# Bootstrap.


def some_scores(n: int = 7, seed: int = 3) -> ClaimScores:
    generator = np.random.default_rng(seed)
    right = generator.integers(0, 3, size=(n, len(MEASURES)))
    counts = np.stack(
        [
            right,
            right + generator.integers(0, 3, size=right.shape),
            right + generator.integers(0, 2, size=right.shape),
        ],
        axis=-1,
    )
    return ClaimScores("paper", tuple(range(n)), MEASURES, counts)


def spreads(scores: ClaimScores, **options: int) -> Mapping[str, tuple[float, float, float]]:
    return {name: (one.deviation, one.low, one.high) for name, one in bootstrap(scores, **options).items()}


@pytest.mark.parametrize("drawn", [1, 20, 1 << 21])
def test_bootstrap_is_that_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch, drawn: int) -> None:
    monkeypatch.setattr("epicqa.claims.scifact_scores._DRAWN", drawn)
    scores = some_scores()
    generator = np.random.default_rng(11)
    figures: dict[str, list[float]] = {name: [] for name in scores.values()}
    for _ in range(12):
        chosen = generator.integers(7, size=7).tolist()
        for m, measure in enumerate(MEASURES):
            right, predicted, gold = (sum(int(scores.counts[i, m, k]) for i in chosen) for k in range(3))
            p = right / predicted if predicted else 0.0
            r = right / gold if gold else 0.0
            figures[f"{measure}_p"].append(p)
            figures[f"{measure}_r"].append(r)
            figures[f"{measure}_f1"].append(2 * p * r / (p + r) if p + r else 0.0)
    found = spreads(scores, resamples=12, seed=11)
    assert list(found) == list(figures)
    for name, drawn_values in figures.items():
        ordered = sorted(drawn_values)
        ends = []
        for share in (0.025, 0.975):
            place = share * (len(ordered) - 1)
            below = math.floor(place)
            ends.append(ordered[below] + (place - below) * (ordered[below + 1] - ordered[below]))
        assert found[name] == pytest.approx((statistics.stdev(drawn_values), *ends), abs=1e-12)


def test_bootstrap_is_seeded_and_about_the_value() -> None:
    scores = some_scores(n=300)
    first = spreads(scores)
    assert first == spreads(scores) != spreads(scores, seed=1)
    for name, value in scores.values().items():
        deviation, low, high = first[name]
        assert low < value < high
        assert high - low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


def test_bootstrap_of_one_claim_or_of_nothing_right() -> None:
    scores = score([claim(d7=[[0]])], [said(d7=(SUPPORTS, [0]))])
    assert set(spreads(scores, resamples=5).values()) == {(0.0, 1.0, 1.0)}
    scores = score([claim(), claim(2)], [said(), said(2)])
    assert set(spreads(scores, resamples=5).values()) == {(0.0, 0.0, 0.0)}
