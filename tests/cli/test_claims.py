"""``epicqa claims``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

TEXTS = {
    40: ["Cloth masks filter droplets.", "Masks lower spread in schools."],
    7: ["The virus survives on steel for days.", "On copper the virus dies within hours."],
    23: ["Cats catch the virus from their owners.", "Dogs rarely do."],
    5: ["Rain is wet.", "Nobody knows about steel."],
}


def write(name: str, *lines: object) -> None:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Options for two claims and four abstracts, in a home of the test's own; ``plain.toml`` is fast."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    write("corpus.jsonl", *({"doc_id": i, "title": "T", "abstract": text} for i, text in TEXTS.items()))
    write(
        "claims.jsonl",
        {
            "id": 2,
            "claim": "Masks lower spread.",
            "evidence": {"40": [{"sentences": [1], "label": "SUPPORT"}]},
        },
        {"id": 1, "claim": "The virus survives on steel.", "evidence": {}},
    )
    Path("plain.toml").write_text('reranker = "none"\nbi_encoder = "none"\n')
    return ["claims", "retrieve", "--claims", "claims.jsonl", "--corpus", "corpus.jsonl", "-o", "out.jsonl"]


def test_search_builds_the_index_and_uses_it_again(epicqa: Callable, files: list[object]) -> None:
    search = [*files, "--config", "plain.toml", "--threads", "1"]
    done = epicqa(*search)
    assert (done.status, done.err) == (0, "")
    assert done.out == "out.jsonl: 6 abstracts for 2 claims\n"
    first = read("out.jsonl")
    assert [one["claim_id"] for one in first] == [2, 1]
    assert [one["doc_ids"][0] for one in first] == [40, 7]
    current = Path("indexes/scifact/CURRENT")
    assert current.read_text() == "generation-000001\n"
    assert epicqa(*search, "-k", "1").status == 0
    assert read("out.jsonl") == [
        {"claim_id": one["claim_id"], "doc_ids": one["doc_ids"][:1]} for one in first
    ]
    named = epicqa(*search, "--index", "scifact")
    assert (named.status, named.err, read("out.jsonl")) == (0, "", first)
    assert current.read_text() == "generation-000001\n"
    scored = epicqa(
        *("score", "out.jsonl", "--task", "scifact", "--claims", "claims.jsonl", "--corpus", "corpus.jsonl"),
        *("--format", "tsv"),
    )
    assert scored.out.splitlines() == [f"abstract_{name}\t1.0" for name in ("hit_one", "hit_all", "recall")]
    # A smaller corpus than the index's, and a larger one.
    lines = Path("corpus.jsonl").read_text().splitlines(keepends=True)
    Path("corpus.jsonl").write_text("".join(lines[:3]))
    line = epicqa(*search, "--index", "scifact").line()
    assert line.startswith("index 'scifact': document '5' is none of the corpus, expected an index of")
    Path("corpus.jsonl").write_text(
        "".join(lines) + json.dumps({"doc_id": 6, "title": "", "abstract": ["x"]})
    )
    done = epicqa(*search, "--index", "scifact")
    assert (done.status, done.err) == (0, "note: index 'scifact' lacks 1 abstracts of corpus.jsonl\n")


def test_tfidf(epicqa: Callable, files: list[object]) -> None:
    done = epicqa(*files, "--method", "tfidf", "-k", "2")
    assert (done.status, done.err, done.out) == (0, "", "out.jsonl: 4 abstracts for 2 claims\n")
    assert read("out.jsonl") == [{"claim_id": 2, "doc_ids": [40, 7]}, {"claim_id": 1, "doc_ids": [7, 5]}]
    assert not Path("indexes").exists()


def test_oracle(epicqa: Callable, files: list[object]) -> None:
    assert epicqa(*files, "--method", "oracle").out == "out.jsonl: 1 abstracts for 2 claims\n"
    assert read("out.jsonl") == [{"claim_id": 2, "doc_ids": [40]}, {"claim_id": 1, "doc_ids": []}]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--method", "oracle", "-k", "3"], "-k is for --method search or tfidf, expected none with oracle"),
        (["--method", "tfidf", "--index", "x"], "--index is for --method search, expected none with tfidf"),
        (["--method", "tfidf", "--config", "plain.toml"], "--config is for --method search, expected none"),
        (["--index", "absent"], "no index 'absent'"),
        (["--config", "absent.toml"], "absent.toml"),
        (["--claims", "absent.jsonl"], "absent.jsonl"),
        (["--corpus", "claims.jsonl"], "claims.jsonl:1: no 'doc_id', expected a whole number from 0"),
        (["-o", "."], ".: a folder, expected the name of a file to write"),
        (["-o", "a.jsonl.gz"], "a.jsonl.gz: abstracts are written plain, expected a name such as"),
    ],
)
def test_bad_input(epicqa: Callable, files: list[object], more: list[str], said: str) -> None:
    assert epicqa(*files, *more).line().startswith(said)
    assert not Path("out.jsonl").exists() and not Path("indexes/scifact").exists()


def test_claims_without_evidence(epicqa: Callable, files: list[object]) -> None:
    write("claims.jsonl", {"id": 4, "claim": "Cats catch it."})
    assert epicqa(*files, "--method", "oracle").line().startswith("claim 4: its evidence is not known")
    assert epicqa(*files, "--method", "tfidf", "-k", "1").status == 0
    assert read("out.jsonl") == [{"claim_id": 4, "doc_ids": [23]}]


def test_help(epicqa: Callable) -> None:
    assert "retrieve" in epicqa("claims", "--help").out
    assert "epicqa claims verify" in epicqa("--help").out
