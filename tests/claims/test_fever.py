"""Readers and writers of FEVER's files, and the shared task's archive."""

import gzip
import json
import lzma
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.claims.fever import (
    FULL,
    LABELS,
    NOINFO,
    REFUTES,
    SUPPORTS,
    Claim,
    Prediction,
    Predictions,
    Sentence,
    read_claims,
    read_predictions,
    title_key,
    write_predictions,
    write_submission,
)
from epicqa.errors import EpicqaError

CLAIM = {
    "id": 3,
    "verifiable": "VERIFIABLE",
    "label": "SUPPORTS",
    "claim": "Soul Food is a film.",
    "evidence": [[[1, 2, "Soul_Food", 0], [1, 3, "Film", 4]], [[5, 6, "Fox", 0]]],
}
NEI = {"id": 4, "label": "NOT ENOUGH INFO", "claim": "x", "evidence": [[[7, None, None, None]]]}
PREDICTION = {"id": 3, "predicted_label": "REFUTES", "predicted_evidence": [["Fox", 0], ["Film", 4]]}

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


def test_reading(write: Write) -> None:
    sets = ((Sentence("Soul_Food", 0), Sentence("Film", 4)), (Sentence("Fox", 0),))
    claims = (Claim(3, "Soul Food is a film.", SUPPORTS, sets), Claim(4, "x", NOINFO, ()))
    assert read_claims(write(CLAIM, b"  ", NEI)) == claims
    path = write(b"", PREDICTION)
    found = (Prediction(3, REFUTES, (Sentence("Fox", 0), Sentence("Film", 4))),)
    assert read_predictions(path) == Predictions(path, FULL, found, (2,))


def test_test_claims_have_no_label(write: Write) -> None:
    assert read_claims(write({"id": 0, "claim": " x\n"})) == (Claim(0, "x", None, ()),)


def test_labels_only(write: Write) -> None:
    path = write({"id": 3, "predicted_label": "not enough info"}, {"id": 4, "predicted_label": "Supports"})
    read = read_predictions(path)
    assert read.shape == LABELS
    assert read.predictions == (Prediction(3, NOINFO, None), Prediction(4, SUPPORTS, None))


def test_evidence_of_what_cannot_be_verified(write: Write) -> None:
    # Sampled for training: a page that a system found, with or without a line.
    sampled = [[[1, None, "Fox", None]], [[1, None, "Fox", 2]]]
    (claim,) = read_claims(write(NEI | {"evidence": sampled}))
    assert claim.evidence == ((Sentence("Fox", 2),),)
    (claim,) = read_claims(write({"id": 4, "label": "NOT ENOUGH INFO", "claim": "x"}))
    assert claim.evidence == ()


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


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (b"{", "1: broken JSON"),
        ({"id": "3"}, "1: 'id' is '3', expected a whole number from 0"),
        (CLAIM | {"claim": " "}, "1: claim 3: no text, expected the claim"),
        (CLAIM | {"label": "SUPPORTED"}, "1: claim 3: 'label' is 'SUPPORTED', expected SUPPORTS, REFUTES or"),
        (CLAIM | {"label": None}, "1: claim 3: 'label' is None"),
        (CLAIM | {"evidence": []}, "1: claim 3: no evidence, expected a set of sentences"),
        (CLAIM | {"evidence": [[]]}, "1: claim 3: a set of evidence without sentences"),
        (CLAIM | {"evidence": {}}, "1: claim 3: 'evidence' is {}, expected a list of sets"),
        (CLAIM | {"evidence": [["Fox", 0]]}, "1: claim 3: evidence 'Fox', expected [annotation, evidence,"),
        (CLAIM | {"evidence": [[[1, 2, "Fox"]]]}, "1: claim 3: evidence [1, 2, 'Fox'], expected [annotation"),
        (
            CLAIM | {"evidence": [[[1, 2, "Fox", None]]]},
            "1: claim 3: 'line' is None, expected a whole number",
        ),
        (CLAIM | {"evidence": [[[1, 2, None, 0]]]}, "1: claim 3: page is None, expected text"),
        (CLAIM | {"evidence": [[[1, 2, "\ud800", 0]]]}, "1: claim 3: page has half a surrogate pair"),
        ({"id": 3, "claim": "x", "evidence": [[]]}, "1: claim 3: evidence without a label"),
    ],
)
def test_bad_claims(write: Write, record: object, said: str) -> None:
    path = write(record)
    assert refused(read_claims, path).startswith(f"{path}:{said}")


def test_claims_that_do_not_go_together(write: Write) -> None:
    path = write(CLAIM, {"id": 4, "claim": "x"})
    assert refused(read_claims, path) == (
        f"{path}:2: claim 4: no 'label', expected it in all lines or in none"
    )
    path = write(CLAIM, NEI, CLAIM)
    assert refused(read_claims, path) == f"{path}:3: claim 3: also on line 1, expected each claim once"
    assert [claim.claim_id for claim in read_claims(path, distinct=False)] == [3, 4, 3]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"predicted_label": 1}, "'predicted_label' is 1, expected SUPPORTS, REFUTES or NOT ENOUGH INFO"),
        ({"predicted_label": "NEI"}, "'predicted_label' is 'NEI', expected"),
        ({"predicted_evidence": None}, "'predicted_evidence' is None, expected a list of [page, line]"),
        ({"predicted_evidence": [["Fox"]]}, "evidence ['Fox'], expected [page, line]"),
        ({"predicted_evidence": [["Fox", 0, 1]]}, "evidence ['Fox', 0, 1], expected [page, line]"),
        ({"predicted_evidence": [[0, "Fox"]]}, "page is 0, expected text"),
        ({"predicted_evidence": [["", 0]]}, "an empty page, expected the title of one"),
        ({"predicted_evidence": [["Fox", "0"]]}, "'line' is '0', expected a whole number from 0"),
        ({"predicted_evidence": [["Fox", True]]}, "'line' is True, expected a whole number from 0"),
        ({"predicted_evidence": [["Fox", -1]]}, "'line' is -1, expected a whole number from 0"),
    ],
)
def test_bad_predictions(write: Write, change: dict[str, object], said: str) -> None:
    path = write({"id": 1, "predicted_label": "REFUTES", "predicted_evidence": []}, PREDICTION | change)
    assert refused(read_predictions, path).startswith(f"{path}:2: claim 3: {said}")


def test_predictions_that_do_not_go_together(write: Write) -> None:
    path = write(PREDICTION, {"id": 4, "predicted_label": "REFUTES"})
    assert refused(read_predictions, path).startswith(f"{path}:2: claim 4: a line of")
    path = write({"id": 4})
    assert refused(read_predictions, path).startswith(f"{path}:1: claim 4: no 'predicted_label', expected")
    path = write(PREDICTION, PREDICTION)
    assert refused(read_predictions, path).startswith(f"{path}:2: claim 3: also on line 1")
    assert len(read_predictions(path, distinct=False).predictions) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Soul_Food_-LRB-film-RRB-", "Soul Food (film)"),
        ("-LSB-a-RSB-_-LCB-b-RCB-", "[a] {b}"),
        ("Ramses-COLON-_The_Passion", "Ramses:_The_Passion"),
        ("Simón_Bolívar", unicodedata.normalize("NFD", "Simón_Bolívar")),
        ("A\u030a_-LRB-x-RRB-", "\u212b_(x)"),
    ],
)
def test_titles_of_one_page(one: str, other: str) -> None:
    assert one != other and title_key(one) == title_key(other)


def test_titles_of_different_pages() -> None:
    # Case counts, and so do forms that only look alike.
    titles = ["Film", "film", "ﬁlm", "Film_(x)", "Film_-lrb-x-rrb-", "Simon", "Simón", "A-B", "A_B"]
    assert len(set(map(title_key, titles))) == len(titles)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
evidence = st.lists(st.builds(Sentence, texts, st.integers(0, 2000)), max_size=5).map(tuple)
labels = st.sampled_from([SUPPORTS, REFUTES, NOINFO])
many = st.lists(
    st.builds(Prediction, st.integers(0, 10**9), labels, evidence),
    min_size=1,
    max_size=5,
    unique_by=lambda p: p.claim_id,
)


@settings(max_examples=50, deadline=None)
@given(many, st.randoms(use_true_random=False))
def test_what_is_written_is_read(predictions: list[Prediction], random: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, archive = Path(folder) / "p.jsonl", Path(folder) / "p.zip"
        write_predictions(path, predictions)
        read = read_predictions(path)
        assert list(read.predictions) == predictions
        # The archive has the order of the claims, whatever that of the predictions.
        claims = [Claim(one.claim_id, "x", None, ()) for one in predictions]
        mixed = list(zip(read.predictions, read.lines, strict=True))
        random.shuffle(mixed)  # type: ignore[attr-defined]
        write_submission(archive, Predictions(path, FULL, *zip(*mixed, strict=True)), claims)
        with zipfile.ZipFile(archive) as packed:
            assert packed.namelist() == ["predictions.jsonl"]
            assert packed.read("predictions.jsonl") == path.read_bytes()


def test_lines_as_the_task_takes_them(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.jsonl", [Prediction(3, NOINFO, (Sentence("Café_-LRB-x-RRB-", 2),))])
    assert (tmp_path / "p.jsonl").read_text() == (
        '{"id": 3, "predicted_label": "NOT ENOUGH INFO", '
        '"predicted_evidence": [["Caf\\u00e9_-LRB-x-RRB-", 2]]}\n'
    )
    with pytest.raises(ValueError, match="claim 3: evidence is missing"):
        write_predictions(tmp_path / "q.jsonl", [Prediction(3, NOINFO, None)])
    assert refused(write_predictions, tmp_path / "p.jsonl.gz", []).startswith(f"{tmp_path}/p.jsonl.gz: ")
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_submissions_that_are_refused(write: Write, tmp_path: Path) -> None:
    archive = tmp_path / "us.zip"
    claims = [Claim(i, "x", None, ()) for i in (3, 4, 5)]

    def said(*lines: object, path: Path = archive) -> str:
        predictions = read_predictions(write(*lines, name="p.jsonl"), distinct=False)
        message = refused(write_submission, path, predictions, claims)
        assert not archive.exists()
        return message.removeprefix(f"{tmp_path}/")

    assert said(PREDICTION) == (
        "p.jsonl: claim 4: it has no prediction (nor have 1 others), expected one for each claim"
    )
    assert said(PREDICTION, PREDICTION) == "p.jsonl:2: claim 3: repeated, expected each claim once"
    assert said(PREDICTION | {"id": 9}).startswith("p.jsonl:1: claim 9: no such claim, expected one of")
    six = PREDICTION | {"predicted_evidence": [["Fox", i] for i in range(6)]}
    assert said(six) == "p.jsonl:1: claim 3: 6 sentences, expected at most 5"
    labelled = {"id": 3, "predicted_label": "REFUTES"}
    assert said(labelled).startswith("p.jsonl: labels only, expected lines of")
    assert said(PREDICTION, path=tmp_path / "us.tar").endswith("us.tar: another name, expected NAME.zip")
    (tmp_path / "d.zip").mkdir()
    assert said(PREDICTION, path=tmp_path / "d.zip") == "d.zip: a folder, expected NAME.zip"


def test_the_released_files(shared: Path) -> None:
    claims = read_claims(shared / "fever" / "paper_dev.jsonl")
    assert [sum(claim.label == label for claim in claims) for label in (SUPPORTS, REFUTES, NOINFO)] == [
        3333
    ] * 3
    assert all(bool(claim.evidence) == (claim.label != NOINFO) for claim in claims)
    redacted = read_claims(shared / "fever" / "scorer" / "actual.jsonl.gz", distinct=False)
    assert [(one.label, one.evidence) for one in redacted] == [(one.label, one.evidence) for one in claims]
    read = read_predictions(shared / "fever" / "scorer" / "predictions.jsonl.gz")
    assert [one.claim_id for one in read.predictions] == [claim.claim_id for claim in claims]
    assert read_predictions(shared / "fever" / "kgat" / "dev_label_predictions.jsonl.gz").shape == LABELS
