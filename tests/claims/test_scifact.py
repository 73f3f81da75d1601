"""Readers and writers of SciFact's files."""

import gzip
import json
import lzma
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.claims.scifact import (
    ABSTRACTS,
    FULL,
    LABELS,
    NOINFO,
    RATIONALES,
    REFUTES,
    SUPPORTS,
    Abstract,
    Claim,
    PredictedEvidence,
    Prediction,
    Rationale,
    merge_predictions,
    read_abstracts,
    read_claims,
    read_predictions,
    write_predictions,
)
from epicqa.errors import EpicqaError

ABSTRACT = {"doc_id": 7, "title": "Masks", "abstract": ["One.", "Two.", "Tri."], "structured": True}
CLAIM = {
    "id": 3,
    "claim": "Masks help.",
    "evidence": {"7": [{"sentences": [0, 1], "label": "SUPPORT"}, {"sentences": [2], "label": "SUPPORT"}]},
    "cited_doc_ids": [7],
}
PREDICTION = {"id": 3, "evidence": {"7": {"sentences": [2, 0], "label": "CONTRADICT"}}}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def lines(*records: object, name: str = "f.jsonl") -> Path:
        path = tmp_path / name
        texts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
        path.write_bytes(b"\n".join(texts) + b"\n")
        return path

    return lines


def refused(read: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(EpicqaError) as error:
        read(*arguments)
    message = str(error.value)
    assert "\n" not in message and "expected" in message
    return message


def abstract(count: int = 3, doc_id: int = 7) -> Abstract:
    return Abstract(doc_id, "", tuple("x" for _ in range(count)), False)


def test_reading(write: Write) -> None:
    (read,) = read_abstracts(write(ABSTRACT)).values()
    assert read == Abstract(7, "Masks", ("One.", "Two.", "Tri."), True)
    (claim,) = read_claims(write(CLAIM), {7: read})
    assert claim == Claim(
        3, "Masks help.", (7,), {7: (Rationale((0, 1), SUPPORTS), Rationale((2,), SUPPORTS))}
    )
    predictions = read_predictions(write(PREDICTION), [claim], {7: read})
    assert predictions.shape == FULL
    assert predictions.predictions == (Prediction(3, {7: PredictedEvidence(REFUTES, (2, 0))}),)


def test_test_claims_have_no_evidence(write: Write) -> None:
    (claim,) = read_claims(write({"id": 0, "claim": " Masks help.\n"}))
    assert claim == Claim(0, "Masks help.", (), {}, judged=False)
    (claim,) = read_claims(write({"id": 0, "claim": "x", "evidence": {}, "cited_doc_ids": [5, 5, 4]}))
    assert claim.judged and claim.cited_doc_ids == (5, 4)


@pytest.mark.parametrize(
    ("spelling", "label"),
    [("SUPPORT", SUPPORTS), ("SUPPORTS", SUPPORTS), ("CONTRADICT", REFUTES), ("REFUTES", REFUTES)],
)
def test_both_spellings(write: Write, spelling: str, label: str) -> None:
    (claim,) = read_claims(
        write({"id": 1, "claim": "x", "evidence": {"7": [{"sentences": [1], "label": spelling}]}})
    )
    assert claim.evidence[7][0].label == label
    one = {"id": 1, "evidence": {"7": {"sentences": [], "label": spelling}}}
    assert read_predictions(write(one)).predictions[0].evidence[7].label == label


def test_shapes_of_the_pipeline(write: Write) -> None:
    rationales = read_predictions(write({"claim_id": 1, "evidence": {"7": [2, 0], "8": []}}))
    assert rationales.shape == RATIONALES
    assert rationales.predictions[0].evidence == {
        7: PredictedEvidence(None, (2, 0)),
        8: PredictedEvidence(None, ()),
    }
    for spelling in ("NOT_ENOUGH_INFO", "NOINFO", "NEI"):
        said = {"7": {"label": "REFUTES", "confidence": 0.5}, "8": {"label": spelling, "confidence": 1}}
        labels = read_predictions(write({"claim_id": 1, "labels": said}))
        assert labels.shape == LABELS
        assert [one.label for one in labels.predictions[0].evidence.values()] == [REFUTES, NOINFO]
    merged = merge_predictions(rationales, labels)
    assert merged.shape == FULL
    assert merged.predictions == (Prediction(1, {7: PredictedEvidence(REFUTES, (2, 0))}),)
    retrieved = read_predictions(write({"claim_id": 1, "doc_ids": [8, 7]}))
    assert (retrieved.shape, list(retrieved.predictions[0].evidence)) == (ABSTRACTS, [8, 7])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"claim_id": 2, "labels": {"7": {"label": "NEI"}}}, "claim 1: not in both"),
        ({"claim_id": 1, "labels": {"8": {"label": "NEI"}}}, "claim 1: document 7 is not in both"),
        ({"id": 1, "evidence": {}}, "full, expected lines of"),
    ],
)
def test_what_cannot_be_merged(write: Write, labels: object, said: str) -> None:
    rationales = read_predictions(write({"claim_id": 1, "evidence": {"7": []}}, name="r.jsonl"))
    path = write(labels, name="l.jsonl")
    message = refused(merge_predictions, rationales, read_predictions(path))
    assert message.startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.ZstdCompressor().compress)],
)
def test_compressed(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"c.jsonl{suffix}"
    path.write_bytes(pack(b"\xef\xbb\xbf\r\n" + json.dumps(CLAIM).encode() + b"\r\n\n"))
    assert [claim.claim_id for claim in read_claims(path)] == [3]
    path.write_bytes(path.read_bytes()[:-9])
    assert refused(read_claims, path).startswith(f"{path}: damaged or cut short")


EVERY = pytest.mark.parametrize("read", [read_claims, read_abstracts, read_predictions])


@EVERY
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id": 1', "broken JSON (Expecting"),
        (b"[1]", "a JSON list"),
        (b"1" * 5000, "Exceeds the limit"),
        (b"[" * 100_000, "JSON nested too deeply"),
        (b'{"id": 1, "id": 2}', "the key 'id' is repeated in one object"),
        (b'{"id": "\xff"}', "not UTF-8"),
    ],
    ids=["broken", "list", "digits", "deep", "key", "bytes"],
)
def test_lines_that_are_no_objects(
    write: Write, read: Callable[[Path], object], line: bytes, said: str
) -> None:
    good = {read_claims: CLAIM, read_abstracts: ABSTRACT, read_predictions: PREDICTION}[read]
    path = write(good, b"", line)
    assert refused(read, path).startswith(f"{path}:3: {said}")


@EVERY
def test_files_with_nothing_in_them(write: Write, read: Callable[[Path], object]) -> None:
    path = write(b" ")
    assert refused(read, path).startswith(f"{path}: empty, expected")
    assert "No such file" in refused(read, path.with_name("none.jsonl"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"doc_id": None}, "'doc_id' is None, expected a whole number from 0"),
        ({"doc_id": True}, "'doc_id' is True, expected a whole number"),
        ({"doc_id": 10**18}, "'doc_id' is 1000000000000000000, expected a whole number"),
        ({"doc_id": 7}, "document 7: also on line 1, expected each document once"),
        ({"title": 5}, "document 8: 'title' is 5, expected text"),
        ({"title": "\ud800"}, "document 8: 'title' has half a surrogate pair"),
        ({"abstract": "One."}, "document 8: 'abstract' is 'One.', expected a list of sentences"),
        ({"abstract": ["a", None]}, "document 8: sentence 1 is None, expected text"),
        ({"structured": 1}, "document 8: 'structured' is 1, expected true or false"),
    ],
    ids=str,
)
def test_bad_abstracts(write: Write, change: dict[str, Any], said: str) -> None:
    path = write(ABSTRACT, ABSTRACT | {"doc_id": 8} | change)
    assert refused(read_abstracts, path).startswith(f"{path}:2: {said}")


def rationale(sentences: Any, label: Any = "SUPPORT") -> dict[str, Any]:
    return {"sentences": sentences, "label": label}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "4"}, "'id' is '4', expected a whole number from 0"),
        ({"id": -1}, "'id' is -1, expected a whole number from 0"),
        ({"id": 3}, "claim 3: also on line 1, expected each claim once"),
        ({"claim": " \n"}, "claim 4: no text, expected the claim"),
        ({"claim": None}, "claim 4: 'claim' is None, expected text"),
        ({"claim": "\udc00"}, "claim 4: 'claim' has half a surrogate pair"),
        ({"cited_doc_ids": {}}, "claim 4: 'cited_doc_ids' is {}, expected a list of document numbers"),
        ({"cited_doc_ids": ["7"]}, "claim 4: document '7', expected a whole number"),
        ({"cited_doc_ids": [9]}, "claim 4: document 9 is unknown, expected one of the corpus"),
        ({"evidence": []}, "claim 4: 'evidence' is [], expected an object"),
        ({"evidence": {"07": []}}, "claim 4: document '07', expected a whole number"),
        ({"evidence": {"9": []}}, "claim 4: document 9 is unknown"),
        ({"evidence": {"7": []}}, "claim 4: document 7: no rationale, expected one or more"),
        ({"evidence": {"7": {}}}, "claim 4: document 7 is {}, expected a list of rationales"),
        ({"evidence": {"7": [3]}}, "claim 4: document 7: a rationale is 3, expected an object"),
        ({"evidence": {"7": [rationale([])]}}, "claim 4: document 7: a rationale without sentences"),
        (
            {"evidence": {"7": [rationale(0)]}},
            "claim 4: document 7: 'sentences' is 0, expected a list of whole numbers from 0",
        ),
        ({"evidence": {"7": [rationale([3])]}}, "claim 4: document 7: sentence 3, expected one of the 3"),
        ({"evidence": {"7": [rationale([-1])]}}, "claim 4: document 7: sentence -1, expected a whole"),
        ({"evidence": {"7": [rationale([1.0])]}}, "claim 4: document 7: sentence 1.0, expected a whole"),
        ({"evidence": {"7": [rationale([1, 1])]}}, "claim 4: document 7: sentence 1 is repeated"),
        (
            {"evidence": {"7": [rationale([0, 1]), rationale([2, 1])]}},
            "claim 4: document 7: sentence 1 is in two rationales, expected each in one",
        ),
        (
            {"evidence": {"7": [rationale([0]), rationale([1], "REFUTES")]}},
            "claim 4: document 7: rationales of both labels, expected one label",
        ),
        (
            {"evidence": {"7": [rationale([0], "NOINFO")]}},
            "claim 4: document 7: label 'NOINFO', expected SUPPORT or SUPPORTS or CONTRADICT or REFUTES",
        ),
        ({"evidence": {"7": [rationale([0], [])]}}, "claim 4: document 7: label [], expected SUPPORT"),
    ],
    ids=str,
)
def test_bad_claims(write: Write, change: dict[str, Any], said: str) -> None:
    path = write(CLAIM, CLAIM | {"id": 4} | change)
    assert refused(read_claims, path, {7: abstract()}).startswith(f"{path}:2: {said}")


def test_evidence_in_some_lines_only(write: Write) -> None:
    bare = {"id": 4, "claim": "x"}
    path = write(CLAIM, bare)
    assert refused(read_claims, path).startswith(f"{path}:2: claim 4: has no 'evidence', expected it in all")
    path = write(bare, CLAIM)
    assert refused(read_claims, path).startswith(f"{path}:2: claim 3: has 'evidence', expected it in all")


def full(sentences: Any, label: Any = "SUPPORT", doc_id: str = "7") -> dict[str, Any]:
    return {"id": 4, "evidence": {doc_id: {"sentences": sentences, "label": label}}}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"id": 4}, "an object of 'id', expected predictions, lines of"),
        ({"claim_id": 4, "evidence": {}, "labels": {}}, "an object of 'claim_id', 'evidence', 'labels'"),
        ({"id": 4.0, "evidence": {}}, "'id' is 4.0, expected a whole number"),
        ({"claim_id": 4, "evidence": {}}, 'claim 4: a line of {"claim_id", "evidence"'),
        ({"id": 3, "evidence": {}}, "claim 3: also on line 1, expected each claim once"),
        ({"id": 9, "evidence": {}}, "claim 9: no such claim, expected one of the claims' file"),
        ({"id": 2, "evidence": {}}, "claim 2: stands after claim 3, expected the order of the claims' file"),
        ({"id": 4, "evidence": None}, "claim 4: 'evidence' is None, expected an object"),
        ({"id": 4, "evidence": {"7": [1]}}, "claim 4: document 7 is [1], expected an object"),
        (full([0], doc_id="9"), "claim 4: document 9 is unknown, expected one of the corpus"),
        (full([0], doc_id="x"), "claim 4: document 'x', expected a whole number from 0"),
        (full([3]), "claim 4: document 7: sentence 3, expected one of the 3 there, counted from 0"),
        (full([True]), "claim 4: document 7: sentence True, expected a whole number"),
        (full([0, 2, 0]), "claim 4: document 7: sentence 0 is repeated, expected each once"),
        (full(None), "claim 4: document 7: 'sentences' is None, expected a list"),
        (full([0], "NOT_ENOUGH_INFO"), "claim 4: document 7: label 'NOT_ENOUGH_INFO', expected SUPPORT"),
        (full([0], "support"), "claim 4: document 7: label 'support', expected SUPPORT"),
        (full([0], "x" * 99), f"claim 4: document 7: label '{'x' * 36}..., expected SUPPORT"),
    ],
    ids=str,
)
def test_bad_predictions(write: Write, line: dict[str, Any], said: str) -> None:
    claims = [Claim(i, "x", (), {}) for i in (2, 3, 4)]
    path = write(PREDICTION, line)
    assert refused(read_predictions, path, claims, {7: abstract()}).startswith(f"{path}:2: {said}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"claim_id": 1, "evidence": {"7": {}}}, "document 7: 'sentences' is {}, expected a list"),
        ({"claim_id": 1, "labels": {"7": "SUPPORT"}}, "document 7 is 'SUPPORT', expected an object"),
        ({"claim_id": 1, "labels": {"7": {"label": "?"}}}, "document 7: label '?', expected SUPPORT"),
        ({"claim_id": 1, "labels": []}, "'labels' is [], expected an object"),
        ({"claim_id": 1, "doc_ids": [7, 7]}, "document 7 is repeated, expected each once"),
        ({"claim_id": 1, "doc_ids": "7"}, "'doc_ids' is '7', expected a list"),
        ({"claim_id": 1, "doc_ids": ["7"]}, "document '7', expected a whole number"),
    ],
    ids=str,
)
def test_bad_steps_of_the_pipeline(write: Write, line: dict[str, Any], said: str) -> None:
    path = write(line)
    assert refused(read_predictions, path).startswith(f"{path}:1: claim 1: {said}")


def test_claims_may_be_left_out_and_stand_in_any_order_of_their_own(write: Write) -> None:
    claims = [Claim(i, "x", (), {}) for i in (5, 2, 9)]
    read = read_predictions(write({"id": 5, "evidence": {}}, {"id": 9, "evidence": {}}), claims)
    assert [one.claim_id for one in read.predictions] == [5, 9]


def test_writing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "p.jsonl"
    written = [
        Prediction(9, {12: PredictedEvidence(REFUTES, (4, 0)), 7: PredictedEvidence(SUPPORTS, ())}),
        Prediction(2, {5: PredictedEvidence(NOINFO, None)}),
    ]
    write_predictions(path, written)
    assert path.read_text() == (
        '{"id": 9, "evidence": {"7": {"sentences": [], "label": "SUPPORT"}, '
        '"12": {"sentences": [4, 0], "label": "CONTRADICT"}}}\n'
        '{"id": 2, "evidence": {}}\n'
    )
    with pytest.raises(ValueError, match="claim 1: label or sentences of 5 are missing"):
        write_predictions(path, [*written, Prediction(1, {5: PredictedEvidence(SUPPORTS, None)})])
    assert len(read_predictions(path).predictions) == 2
    assert [one.name for one in path.parent.iterdir()] == ["p.jsonl"]
    assert "written plain" in refused(write_predictions, path.with_name("p.jsonl.gz"), written)


EVIDENCE = st.builds(
    PredictedEvidence,
    st.sampled_from([SUPPORTS, REFUTES]),
    st.lists(st.integers(0, 20), unique=True, max_size=5).map(tuple),
)


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            Prediction, st.integers(0, 999), st.dictionaries(st.integers(0, 10**9), EVIDENCE, max_size=3)
        ),
        unique_by=lambda one: one.claim_id,
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read(predictions: list[Prediction]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.jsonl"
        write_predictions(path, predictions)
        read = read_predictions(path)
        assert list(read.predictions) == predictions
        before = path.read_bytes()
        write_predictions(path, read.predictions)
        assert path.read_bytes() == before


KEYS = st.sampled_from(
    ["id", "claim_id", "claim", "doc_ids", "evidence", "labels", "label", "sentences", "7", "abstract"]
)
LEAVES = st.sampled_from([None, True, -1, 0, 3, 7, 0.5, math.inf, "7", "SUPPORT", "", "\ud800"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
LINES = st.one_of(
    st.dictionaries(KEYS, VALUES, max_size=4).map(lambda one: json.dumps(one).encode()),
    st.binary(max_size=20),
)


@EVERY
@settings(max_examples=60)
@given(lines=st.lists(LINES, max_size=3))
def test_any_bytes_are_read_or_refused(read: Callable[[Path], object], lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.jsonl"
        path.write_bytes(b"\n".join(lines))
        try:
            read(path)
        except EpicqaError as error:
            assert str(error).startswith(f"{path}:") and "\n" not in str(error)


def test_the_real_files(shared: Path) -> None:
    folder = shared / "scifact"
    abstracts = read_abstracts(folder / "corpus.jsonl.gz")
    assert (len(abstracts), sum(len(one.sentences) for one in abstracts.values())) == (5183, 45952)
    counts = {}
    for part in ("train", "dev", "test"):
        claims = read_claims(folder / f"claims_{part}.jsonl", abstracts)
        counts[part] = (len(claims), all(one.judged for one in claims))
        if part == "dev":
            for path in (folder / "systems").iterdir():
                assert len(read_predictions(path, claims, abstracts).predictions) == 300
    assert counts == {"train": (809, True), "dev": (300, True), "test": (300, False)}
