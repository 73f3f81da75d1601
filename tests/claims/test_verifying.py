"""Claims verified over a small index of papers, by models of random weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from epicqa.claims.encoding import ClaimInput
from epicqa.claims.model import ClaimModel, load_claim_model
from epicqa.claims.network import LABEL_ORDER
from epicqa.claims.parts import ABSTRACT, BEGINNING
from epicqa.claims.retrieval import find_documents
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.claims.system import verify
from epicqa.claims.verifying import (
    MOST_SENTENCES,
    NOTE,
    LabelledAbstract,
    ScoredSentence,
    Verified,
    as_record,
    check_claims,
    read_claim_lines,
    summary,
    verify_claims,
)
from epicqa.errors import EpicqaError
from epicqa.index.build import BuildOptions, Index, build_index

CLAIM = "Cats catch the virus from their owners."
PAPERS: dict[str, list[tuple[str | None, list[str]]]] = {
    "masks": [("Abstract", ["Cloth masks filter droplets.", "Masks lower spread in schools."])],
    "cats": [
        ("Abstract", ["Pets were tested.", "Some cats had the virus."]),
        ("Results", ["Cats catch the virus from their owners.", "Dogs rarely do."]),
        ("Abstract", ["Owners should keep away from cats."]),
    ],
    "page": [(None, ["Cats are fine.", "Wash your hands."])],
    "long": [("Abstract", [f"Sentence {i} of steel." for i in range(MOST_SENTENCES + 9)])],
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("papers")
    with (folder / "papers.jsonl").open("w") as handle:
        for name, contexts in PAPERS.items():
            made = []
            for c, (section, texts) in enumerate(contexts):
                context_id, start, sentences = f"{name}-C{c:03d}", 0, []
                for s, text in enumerate(texts):
                    end = start + len(text)
                    sentences.append({"sentence_id": f"{context_id}-S{s:03d}", "start": start, "end": end})
                    start = end + 1
                made.append(
                    {
                        "section": section,
                        "context_id": context_id,
                        "text": " ".join(texts),
                        "sentences": sentences,
                    }
                )
            about = {"title": f"On {name}", "urls": [f"https://example.org/{name}"] if name == "cats" else []}
            handle.write(json.dumps({"document_id": name, "metadata": about, "contexts": made}) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        options = BuildOptions("none", threads=1, strict=True)
        return build_index([folder / "papers.jsonl"], "papers", options)


@pytest.fixture(scope="module")
def model(tiny_claims: dict[str, Path]) -> ClaimModel:
    return load_claim_model(str(tiny_claims["joint"]))


def with_thresholds(model: ClaimModel, threshold: float, evidence: float) -> ClaimModel:
    settings = replace(model.settings, threshold=threshold, evidence_threshold=evidence)
    return replace(model, settings=settings)


def test_documents_by_what_is_read_of_them(index: Index) -> None:
    store = index.store

    def found(claim: str, k: int = 3) -> list[str]:
        (rows,) = find_documents(index, [claim], k, threads=1)
        return [store.document_id(row) for row in rows]

    assert found(CLAIM) == ["cats", "page"]
    assert found(CLAIM, 1) == ["cats"]
    # Dogs are nowhere but in a part that is not read: after what is read, though a better passage.
    assert found("Dogs rarely wash hands.") == ["page", "cats"]
    assert found("Zebra.") == []


def test_abstracts_as_they_were_read(index: Index, model: ClaimModel) -> None:
    everything = with_thresholds(model, 0, 0)
    told: list[tuple[str, int, int | None]] = []
    verified, none = verify_claims(
        index, [f" {CLAIM}\n", "Zebra."], everything, threads=1, progress=lambda *step: told.append(step)
    )
    assert none == Verified("Zebra.", ())
    assert told[0] == ("finding abstracts", 1, 2) and told[-1] == ("verifying claims", 2, 2)
    assert verified.claim == CLAIM
    cats, page = verified.abstracts
    assert (cats.document_id, cats.title, cats.url, cats.part) == (
        *("cats", "On cats", "https://example.org/cats"),
        ABSTRACT,
    )
    assert (page.document_id, page.title, page.url, page.part) == ("page", "On page", None, BEGINNING)
    assert [one.sentence_id for one in cats.sentences] == [
        *("cats-C000-S000", "cats-C000-S001", "cats-C002-S000"),
    ]
    texts = tuple(PAPERS["cats"][0][1] + PAPERS["cats"][2][1])
    assert tuple(one.text for one in cats.sentences) == texts
    # As the system says of the same texts.
    inputs = [ClaimInput(CLAIM, texts), ClaimInput(CLAIM, tuple(PAPERS["page"][0][1]))]
    for abstract, verdict in zip((cats, page), verify(inputs, everything, everything), strict=True):
        assert abstract.label == verdict.label != NOINFO
        assert list(abstract.probabilities) == list(LABEL_ORDER)
        assert list(abstract.probabilities.values()) == pytest.approx(verdict.probabilities.tolist())
        assert verdict.scores is not None
        assert [one.score for one in abstract.sentences] == pytest.approx(verdict.scores.tolist())
        assert all(one.rationale for one in abstract.sentences)
    half = sorted(one.score for one in cats.sentences)[1]
    (verified,) = verify_claims(index, [CLAIM], with_thresholds(model, half, 0), 1, threads=1)
    (cats,) = verified.abstracts
    assert [one.rationale for one in cats.sentences] == [one.score > half for one in cats.sentences]


def test_no_evidence_has_no_rationale(index: Index, model: ClaimModel) -> None:
    for strict in (with_thresholds(model, 1, 0), with_thresholds(model, 0, 1)):
        (verified,) = verify_claims(index, [CLAIM], strict, threads=1)
        assert verified.counts == {SUPPORTS: 0, NOINFO: 2, REFUTES: 0}
        assert not any(one.rationale for abstract in verified.abstracts for one in abstract.sentences)
        assert any(one.score for abstract in verified.abstracts for one in abstract.sentences)


def test_long_abstracts_are_read_in_part(index: Index, model: ClaimModel) -> None:
    (verified,) = verify_claims(index, ["Steel."], model, threads=1)
    (long,) = verified.abstracts
    assert len(long.sentences) == MOST_SENTENCES and long.sentences[0].sentence_id == "long-C000-S000"


def test_gaps_in_a_rationale() -> None:
    def text(*taken: bool) -> str:
        sentences = tuple(
            ScoredSentence("", word, 0.0, one) for word, one in zip("abcde", taken, strict=True)
        )
        return LabelledAbstract("d", None, None, ABSTRACT, SUPPORTS, {}, sentences).rationale

    assert text(False, True, True, False, True) == "b c ... e"
    assert text(False, False, False, True, False) == "d"
    assert text(*[False] * 5) == ""


def labelled(*labels: str) -> Verified:
    return Verified("x", tuple(LabelledAbstract("d", None, None, ABSTRACT, one, {}, ()) for one in labels))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([], "NOINFO: no abstract was found."),
        ([NOINFO], "NOINFO: the one abstract found does not say enough to support or refute it."),
        ([NOINFO] * 3, "NOINFO: none of the 3 abstracts found says enough to support or refute it."),
        ([SUPPORTS], "Of 1 abstract found, 1 supports it."),
        ([REFUTES, NOINFO, REFUTES], "Of 3 abstracts found, 2 refute it."),
        ([REFUTES, SUPPORTS, SUPPORTS], "Of 3 abstracts found, 2 support it and 1 refutes it."),
    ],
)
def test_what_abstracts_say_together(labels: list[str], said: str) -> None:
    assert summary(labelled(*labels)) == said


def test_record(index: Index, model: ClaimModel) -> None:
    (verified,) = verify_claims(index, [CLAIM], model, 1, threads=1)
    record = json.loads(json.dumps(as_record(verified, index)))
    assert list(record) == ["claim", "index", "verdict", "abstracts", "note"]
    assert (record["claim"], record["index"], record["note"]) == (CLAIM, "papers", NOTE)
    assert record["verdict"] == verified.counts and sum(record["verdict"].values()) == 1
    (abstract,) = record["abstracts"]
    assert list(abstract) == [
        *("document_id", "title", "url", "part", "label", "probabilities", "sentences"),
    ]
    assert set(abstract["probabilities"]) == {"SUPPORTS", "NOINFO", "REFUTES"}
    assert sum(abstract["probabilities"].values()) == pytest.approx(1)
    assert all(list(one) == ["sentence_id", "text", "score", "rationale"] for one in abstract["sentences"])


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (" \n", "the claim is empty, expected text such as"),
        ("\udcff", r"the claim '\\udcff' is not Unicode, expected text such as"),
        ("virus " * 600, "claim of 600 tokens .*, expected at most 478"),
    ],
)
def test_claims_that_cannot_be_read(index: Index, model: ClaimModel, claim: str, said: str) -> None:
    with pytest.raises(EpicqaError, match=said):
        verify_claims(index, [CLAIM, claim], model, threads=1)


def test_only_joint_models(tiny_claims: dict[str, Path]) -> None:
    for kind in ("rationale", "label"):
        with pytest.raises(EpicqaError, match=f"a {kind} model, expected one that"):
            check_claims([CLAIM], load_claim_model(str(tiny_claims[kind])))


def test_claims_of_a_file(shared: Path, tmp_path: Path) -> None:
    claims = read_claim_lines(shared / "scifact" / "covid_claims.txt")
    assert len(claims) == 36 and "Cats are carriers of SARS-CoV-2." in claims
    path = tmp_path / "claims.txt"
    path.write_bytes("\ufeff\r\n One claim.\r\n\n Another\u2028one. \n".encode())
    assert read_claim_lines(path) == ["One claim.", "Another\u2028one."]
    for content, said in (
        (b" \n", "claims.txt: empty, expected a claim a line"),
        (b"One.\nTw\xff.\n", "claims.txt:2: not UTF-8, expected a claim a line"),
    ):
        path.write_bytes(content)
        with pytest.raises(EpicqaError, match=said):
            read_claim_lines(path)
    path.unlink()
    with pytest.raises(EpicqaError, match="No such file"):
        read_claim_lines(path)
