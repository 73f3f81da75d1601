"""Abstract retrieval on a small corpus, and TF-IDF on the real one."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.claims.retrieval import lacking, oracle, search, tfidf, write_retrieved
from epicqa.claims.retrieval_scores import score_retrieval
from epicqa.claims.scifact import (
    ABSTRACTS,
    FULL,
    SUPPORTS,
    Abstract,
    Claim,
    PredictedEvidence,
    Prediction,
    Predictions,
    Rationale,
    read_abstracts,
    read_claims,
    read_predictions,
)
from epicqa.config import Config
from epicqa.errors import EpicqaError
from epicqa.index.build import BuildOptions, Index, build_index
from epicqa.pipeline import Pipeline, settle
from epicqa.questions import Question

TEXTS = {
    40: ("Masks", ["Cloth masks filter droplets.", "Masks lower spread in schools."]),
    7: ("Steel", ["The virus survives on steel for days.", "On copper the virus dies within hours."]),
    23: ("Cats", ["Cats catch the virus from their owners.", "Dogs rarely do."]),
    5: ("More on masks", ["Masks lower spread in schools.", "Nobody knows about steel."]),
}
ABSTRACTS_OF = {
    doc_id: Abstract(doc_id, title, tuple(sentences), False) for doc_id, (title, sentences) in TEXTS.items()
}


def claim(claim_id: int, text: str, *gold: int, judged: bool = True) -> Claim:
    rationales = (Rationale((0,), SUPPORTS),)
    return Claim(claim_id, text, gold, dict.fromkeys(gold, rationales), judged)


CLAIMS = (
    claim(3, "Masks lower spread in schools.", 40, 5),
    claim(1, "The virus survives on steel.", 7),
    claim(2, "Copper kills cats."),
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("claims")
    lines = (
        json.dumps({"doc_id": doc_id, "title": title, "abstract": sentences, "structured": False})
        for doc_id, (title, sentences) in TEXTS.items()
    )
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        patch.setenv("EPICQA_CACHE", str(folder / "cache"))
        return build_index([folder / "corpus.jsonl"], "scifact", BuildOptions(threads=1))


@pytest.mark.parametrize("reranking", [False, True])
def test_search_takes_abstracts_by_their_best_passage(
    index: Index, plain: dict[str, str], tiny_reranker: Path, reranking: bool
) -> None:
    models = {"reranker": str(tiny_reranker), "bi_encoder": "static", "max_sentences": 2}
    config = Config(**(models if reranking else plain))
    told: list[tuple[int, int]] = []
    found = search(
        index, CLAIMS, 3, config, threads=1, progress=lambda done, total: told.append((done, total))
    )
    assert list(found) == [3, 1, 2] and told == [(1, 3), (2, 3), (3, 3)]
    settled, _ = settle(replace(config, diversity="none"), index)
    store = index.store
    for one in CLAIMS:
        (answer,) = Pipeline(index, settled, threads=1).answer([Question("Q", one.text, "", "")])
        best = {}
        for first, score in zip(answer.passages.first, answer.passages.score, strict=True):
            row = int(store.context_document[store.sentence_context[first]])
            best[row] = max(best.get(row, -math.inf), float(score))
        rows = sorted(sorted(best), key=best.__getitem__, reverse=True)
        # Python's sort is stable in reverse, too.
        assert found[one.claim_id] == tuple(int(store.document_id(row)) for row in rows)[:3]
    for k in (1, 2, 4, 100):
        fewer = search(index, CLAIMS, k, config, threads=1)
        assert all(len(fewer[one]) == min(k, 4) for one in fewer)
        assert all(fewer[one][:3] == found[one][:k] for one in fewer)


def test_search_finds_what_is_meant(index: Index, plain: dict[str, str]) -> None:
    found = search(index, CLAIMS, 2, Config(**plain), threads=1)
    assert set(found[3]) == {40, 5} and found[1][0] == 7
    # Nothing reranks unless that is asked for.
    assert search(index, CLAIMS, 2, threads=1) == found
    # A diversity that is asked for is used.
    ordered = search(index, CLAIMS, 4, Config(**plain, diversity="mmr", mmr_weight=1.0), threads=1)
    assert ordered != search(index, CLAIMS, 4, Config(**plain), threads=1)


def test_an_index_of_other_documents(
    home: Path, index: Index, sample_indexes: Path, plain: dict[str, str]
) -> None:
    from epicqa.index.build import open_index

    assert lacking(index, ABSTRACTS_OF) == 0
    more = ABSTRACTS_OF | {99: Abstract(99, "", ("x",), False)}
    assert lacking(index, more) == 1
    del more[7]
    with pytest.raises(EpicqaError, match="document '7' is none of the corpus, expected an index of"):
        lacking(index, more)
    with pytest.raises(EpicqaError, match="expected numbers, as SciFact's abstracts have"):
        search(open_index("sample"), CLAIMS, 1, Config(**plain), threads=1)


def plain_tfidf(abstracts: dict[int, Abstract], text: str, k: int) -> tuple[int, ...]:
    """Counts times ln((1 + n) / (1 + df)) + 1, of length 1, compared by loops."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    def grams(text: str) -> Counter[str]:
        words = [one for one in re.findall(r"\b\w\w+\b", text.lower()) if one not in ENGLISH_STOP_WORDS]
        return Counter(words + [f"{a} {b}" for a, b in pairwise(words)])

    counts = [grams(one.title + " ".join(one.sentences)) for one in abstracts.values()]
    frequency = Counter(gram for one in counts for gram in one)

    def vector(counted: Counter[str]) -> dict[str, float]:
        weights = {
            gram: count * (math.log((1 + len(counts)) / (1 + frequency[gram])) + 1)
            for gram, count in counted.items()
            if gram in frequency
        }
        norm = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        return {gram: weight / norm for gram, weight in weights.items()}

    query = vector(grams(text))
    scores = [sum(query.get(gram, 0) * weight for gram, weight in vector(one).items()) for one in counts]
    order = sorted(range(len(counts)), key=lambda i: (-round(scores[i], 12), i))
    return tuple(list(abstracts)[i] for i in order[:k])


def test_tfidf_against_loops() -> None:
    # Titles make one word with the first word after them, such as "MasksCloth".
    for text in (
        "Cloth masks",
        "virus steel copper cats",
        "schools",
        "the of",
        "unheard",
        "nobody KNOWS steel",
    ):
        for k in (1, 3, 9):
            assert tfidf(ABSTRACTS_OF, [claim(1, text)], k) == {1: plain_tfidf(ABSTRACTS_OF, text, k)}
    # Nothing shared: collection order.
    assert tfidf(ABSTRACTS_OF, [claim(1, "unheard")], 3) == {1: (40, 7, 23)}


def test_tfidf_without_words() -> None:
    with pytest.raises(EpicqaError, match="no words but stop words, expected abstracts in English"):
        tfidf({1: Abstract(1, "", ("The", "of"), False)}, CLAIMS)


def test_oracle() -> None:
    assert oracle(CLAIMS) == {3: (40, 5), 1: (7,), 2: ()}
    with pytest.raises(EpicqaError, match="claim 9: its evidence is not known, expected claims with"):
        oracle([*CLAIMS, claim(9, "x", judged=False)])


def test_written_and_read_again(tmp_path: Path) -> None:
    found = {3: (40, 5), 1: (7,), 2: ()}
    path = tmp_path / "found.jsonl"
    write_retrieved(path, found)
    assert path.read_text().splitlines()[0] == '{"claim_id": 3, "doc_ids": [40, 5]}'
    read = read_predictions(path, CLAIMS, ABSTRACTS_OF)
    assert read.shape == ABSTRACTS
    assert {one.claim_id: tuple(one.evidence) for one in read.predictions} == found
    for bad in (tmp_path, tmp_path / "found.jsonl.gz"):
        with pytest.raises(EpicqaError, match="expected"):
            write_retrieved(bad, found)


_DOCUMENTS = st.lists(st.integers(0, 5), unique=True, max_size=5)


@given(st.lists(st.tuples(_DOCUMENTS, st.none() | _DOCUMENTS), max_size=6), st.none() | st.integers(1, 6))
def test_hits_against_loops(pairs: list[tuple[list[int], list[int] | None]], k: int | None) -> None:
    claims = [claim(i, "x", *gold) for i, (gold, _) in enumerate(pairs)]
    nothing = PredictedEvidence(None, None)
    predictions = Predictions(
        Path("p"),
        ABSTRACTS,
        tuple(
            Prediction(i, dict.fromkeys(found, nothing))
            for i, (_, found) in enumerate(pairs)
            if found is not None
        ),
    )
    one = every = right = total = n = 0
    for gold, found in pairs:
        if found is None:
            continue
        n += 1
        first = found if k is None else found[:k]
        one += not gold or any(doc in first for doc in gold)
        every += all(doc in first for doc in gold)
        right += sum(doc in first for doc in gold)
        total += len(gold)
    scores = score_retrieval(predictions, claims, k=k)
    assert scores.totals() == {
        "abstract_hit_one": (one, n),
        "abstract_hit_all": (every, n),
        "abstract_recall": (right, total),
    }
    assert scores.values() == {
        name: part / whole if whole else 0.0 for name, (part, whole) in scores.totals().items()
    }


def test_what_is_not_scored() -> None:
    full = Predictions(Path("p"), FULL, ())
    with pytest.raises(EpicqaError, match="p: full, expected lines of"):
        score_retrieval(full, CLAIMS)
    empty = Predictions(Path("p"), ABSTRACTS, ())
    assert set(score_retrieval(empty, CLAIMS).values().values()) == {0.0}
    with pytest.raises(EpicqaError, match=r"claim 3: it has no prediction \(nor have 2 others\)"):
        score_retrieval(empty, CLAIMS, "leaderboard")
    with pytest.raises(EpicqaError, match="its evidence is not known"):
        score_retrieval(empty, [claim(9, "x", judged=False)])


def test_tfidf_on_dev(shared: Path, tmp_path: Path) -> None:
    """The first three abstracts are those of another system, which ran the published code."""
    folder = shared / "scifact"
    abstracts = read_abstracts(folder / "corpus.jsonl.gz")
    claims = read_claims(folder / "claims_dev.jsonl", abstracts)
    found = tfidf(abstracts, claims, 5)
    write_retrieved(tmp_path / "found.jsonl", found)
    predictions = read_predictions(tmp_path / "found.jsonl", claims, abstracts)
    three = score_retrieval(predictions, claims, k=3)
    assert three.totals() == {
        "abstract_hit_one": (254, 300),
        "abstract_hit_all": (250, 300),
        "abstract_recall": (145, 209),
    }
    assert score_retrieval(predictions, claims, k=5).totals()["abstract_recall"] == (158, 209)
    published = read_predictions(
        folder / "systems" / "abstract_retrieval_dev_top100.jsonl", claims, abstracts
    )
    for one in published.predictions:
        assert tuple(one.evidence)[:3] == found[one.claim_id][:3]
