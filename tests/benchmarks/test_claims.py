"""The table of SciFact's measures, on a small made-up copy of the data, with models of random weights."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.claims import GIVEN, ORACLE, OTHER, PUBLISHED, SEARCH, TFIDF, main
from epicqa.claims.network import Settings, open_network, save_network

CORPUS = {
    40: ["Cloth masks filter droplets.", "Masks lower spread in schools."],
    7: ["The virus survives on steel for days.", "On copper the virus dies within hours."],
    23: ["Cats catch the virus from their owners.", "Dogs rarely do."],
    5: ["Masks lower spread in schools.", "Nobody knows about steel."],
    9: ["Vaccines protect."],
}
CLAIMS: list[dict[str, Any]] = [
    {"id": 3, "claim": "Masks lower spread.", "evidence": {"40": [{"sentences": [1], "label": "SUPPORT"}]}},
    {"id": 1, "claim": "Steel is safe.", "evidence": {"7": [{"sentences": [0], "label": "CONTRADICT"}]}},
    {"id": 2, "claim": "Copper kills cats.", "evidence": {}},
]
RATIONALES = {3: {"40": [1], "9": []}, 1: {"7": [1]}, 2: {}}
LABELS = {3: {"40": "SUPPORT", "9": "NOT_ENOUGH_INFO"}, 1: {"7": "CONTRADICT"}, 2: {}}


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in records)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    systems = data / "scifact" / "systems"
    systems.mkdir(parents=True)
    corpus = [
        {"doc_id": doc_id, "title": "A study", "abstract": sentences, "structured": False}
        for doc_id, sentences in CORPUS.items()
    ]
    (data / "scifact" / "corpus.jsonl.gz").write_bytes(gzip.compress(lines(corpus).encode(), mtime=0))
    cited = [{**one, "cited_doc_ids": [23]} for one in CLAIMS]
    (data / "scifact" / "claims_dev.jsonl").write_text(lines(cited))
    (systems / "selected.jsonl").write_text(
        lines([{"claim_id": claim, "evidence": evidence} for claim, evidence in RATIONALES.items()])
    )
    labelled = {
        claim: {doc: {"label": label} for doc, label in found.items()} for claim, found in LABELS.items()
    }
    (systems / "labelled.jsonl").write_text(
        lines([{"claim_id": claim, "labels": labels} for claim, labels in labelled.items()])
    )
    # The gold one of the first claim is the fourth: not among those that count.
    ranked = {3: [9, 5, 23, 40], 1: [7], 2: [23]}
    (systems / "ranked.jsonl").write_text(
        lines([{"claim_id": claim, "doc_ids": documents} for claim, documents in ranked.items()])
    )
    return data


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def run(
    data: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.setenv("EPICQA_HOME", str(shared_home))

    def ran(*options: str) -> str:
        main([str(data), *options])
        return capsys.readouterr().out

    return ran


def by_row(records: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    return {(one["setting"], one["system"]): one["values"] for one in records}


def test_every_model_in_every_setting_that_it_can_do(
    run: Any, tiny_claims: dict[str, Path], tmp_path: Path
) -> None:
    network, tokenizer, settings = open_network(tiny_claims["joint"])
    save_network(tmp_path, network, tokenizer, replace(settings or Settings("joint"), reads="claim"))
    pair = f"{tiny_claims['rationale']},{tiny_claims['label']}"
    printed = run(
        *("--model", f"ours={tiny_claims['joint']}", "--model", f"two={pair}"),
        *("--model", f"labels={tiny_claims['label']}", "--model", f"claim only={tmp_path}"),
        *("--zero-shot", str(tiny_claims["joint"]), "--latency", "2", "--format", "json"),
    )
    found = json.loads(printed)
    rows = by_row(found["claims"])
    measured = {key for key in rows if key not in {(one.setting, one.system) for one in PUBLISHED}}
    assert measured == {
        *(
            (setting, name)
            for setting in (GIVEN, ORACLE, TFIDF, SEARCH)
            for name in ("ours", "two", "zero-shot")
        ),
        *((GIVEN, name) for name in ("labels", "claim only")),
        (OTHER, "selected + labelled"),
    }
    # What is selected is the oracle's, unless it is all labelled NOINFO.
    for name in ("ours", "two", "labels"):
        assert rows[GIVEN, name]["sentence_selection_only_p"] in (0, 1)
    assert set(found["seconds"]) == {"ours", "two", "zero-shot"}
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in found["seconds"].values())


def test_figures_by_hand_and_their_spread(run: Any, tiny_claims: dict[str, Path]) -> None:
    options = ("--model", str(tiny_claims["joint"]), "--format", "json")
    found = json.loads(run(*options))
    whole = by_row(found["claims"])[OTHER, "selected + labelled"]
    # Both labels are right, of the two rationales one.
    assert (whole["abstract_label_only_f1"], whole["abstract_label_rationale_f1"]) == (1, 0.5)
    assert (whole["sentence_selection_only_p"], whole["sentence_selection_label_r"]) == (0.5, 0.5)
    retrieved = by_row(found["retrieval"])
    assert retrieved[OTHER, "ranked"]["abstract_hit_one"] == pytest.approx(2 / 3)
    assert retrieved[TFIDF, ""]["abstract_hit_all"] == retrieved[SEARCH, ""]["abstract_hit_all"] == 1
    measured = [one for one in found["claims"] + found["retrieval"] if "source" not in one]
    assert all(one["bootstrap"].keys() == one["values"].keys() for one in measured)
    assert {one["definition"] for one in measured} == {"paper"}
    other = json.loads(run(*options, "--definition", "leaderboard"))
    assert {one["definition"] for one in other["claims"] if "source" not in one} == {"leaderboard"}


def test_tables(run: Any, tiny_claims: dict[str, Path]) -> None:
    printed = run("--model", f"ours={tiny_claims['joint']}", "--latency", "1")
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]
    assert f"{OTHER} | selected + labelled | 50.0 | 50.0 | 50.0 ± " in printed
    assert [TFIDF, "VeriSci", "-", "-", "-", "42.6", "-", "-", "-", "48.5"] in rows
    assert "SciFCheX" in printed and "95th percentile" in printed


@pytest.mark.parametrize(("kind", "message"), [("rationale", "a rationale model"), ("", "nowhere")])
def test_wrong_models(run: Any, tiny_claims: dict[str, Path], kind: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message) as caught:
        run("--model", str(tiny_claims[kind]) if kind else "nowhere/here")
    assert "\n" not in str(caught.value)


def test_two_systems_of_one_name(run: Any, tiny_claims: dict[str, Path]) -> None:
    model = ("--model", f"ours={tiny_claims['joint']}")
    with pytest.raises(SystemExit, match="two systems named 'ours', expected NAME=MODEL"):
        run(*model, *model)


def test_what_others_publish_adds_up() -> None:
    for row in PUBLISHED:
        for name, value in row.values.items():
            measure, _, figure = name.rpartition("_")
            if figure == "f1" and f"{measure}_p" in row.values:
                p, r = row.values[f"{measure}_p"], row.values[f"{measure}_r"]
                assert value == pytest.approx(2 * p * r / (p + r), abs=2e-6)
