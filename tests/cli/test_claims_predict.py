"""``epicqa claims predict`` with models of random weights: every way through, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from epicqa.claims.scifact import FULL, read_abstracts, read_claims, read_predictions

TEXTS = {
    40: ["Cloth masks filter droplets.", "Masks lower spread in schools."],
    7: ["The virus survives on steel for days.", "On copper the virus dies within hours."],
    23: ["Cats catch the virus from their owners.", "Dogs rarely do."],
    5: [],
}
GOLD = {"40": [{"sentences": [1], "label": "SUPPORT"}, {"sentences": [0], "label": "SUPPORT"}]}


def write(name: str, *lines: object) -> None:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def read(name: str = "out.jsonl") -> dict[int, dict[str, dict]]:
    lines = map(json.loads, Path(name).read_text().splitlines())
    return {line["id"]: line["evidence"] for line in lines}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The command for three claims and four abstracts, in a home of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    write("corpus.jsonl", *({"doc_id": i, "title": "T", "abstract": text} for i, text in TEXTS.items()))
    write(
        "claims.jsonl",
        {"id": 2, "claim": "Masks lower spread.", "evidence": GOLD, "cited_doc_ids": [40]},
        {"id": 1, "claim": "The virus survives on steel.", "evidence": {}, "cited_doc_ids": [23, 5]},
        {"id": 3, "claim": "Unheard of.", "evidence": {}, "cited_doc_ids": []},
    )
    Path("plain.toml").write_text('reranker = "none"\nbi_encoder = "none"\n')
    return ["claims", "predict", "--claims", "claims.jsonl", "--corpus", "corpus.jsonl", "-o", "out.jsonl"]


@pytest.fixture
def joint(tiny_claims: dict[str, Path]) -> list[object]:
    """A joint model that takes everything for evidence."""
    return ["--model", tiny_claims["joint"], "--threshold", "0", "--evidence-threshold", "0"]


def test_search_predicts_what_is_scored(epicqa: Callable, files: list[object], joint: list[object]) -> None:
    search = [*files, *joint, "--config", "plain.toml", "--threads", "1", "-k", "2"]
    done = epicqa(*search)
    # The one without sentences.
    assert done.status == 0 and done.err.startswith("note: index 'scifact' lacks 1 documents that could not")
    assert done.out.startswith("out.jsonl: ") and done.out.endswith(" of 3 claims\n")
    found = read()
    assert list(found) == [2, 1, 3] and "40" in found[2] and "7" in found[1]
    assert all(len(one["sentences"]) == 2 for by_document in found.values() for one in by_document.values())
    abstracts = read_abstracts(Path("corpus.jsonl"))
    claims = read_claims(Path("claims.jsonl"), abstracts)
    assert read_predictions(Path("out.jsonl"), claims, abstracts).shape == FULL
    first = Path("out.jsonl").read_bytes()
    named = epicqa(*search, "--index", "scifact")
    assert (named.status, named.err) == (0, "note: index 'scifact' lacks 1 abstracts of corpus.jsonl\n")
    assert Path("out.jsonl").read_bytes() == first
    scored = epicqa(
        *("score", "out.jsonl", "--task", "scifact", "--claims", "claims.jsonl", "--corpus", "corpus.jsonl"),
        *("--definition", "leaderboard", "--format", "tsv"),
    )
    assert (scored.status, scored.err) == (0, "")
    # The same abstracts from a file.
    retrieve = ["claims", "retrieve", *files[2:-1], "found.jsonl"]
    assert epicqa(*retrieve, "--config", "plain.toml", "--threads", "1", "-k", "3").status == 0
    assert epicqa(*files, *joint, "--abstracts", "found.jsonl", "-k", "2").status == 0
    assert Path("out.jsonl").read_bytes() == first


def test_nothing_is_found(epicqa: Callable, files: list[object], tiny_claims: dict[str, Path]) -> None:
    done = epicqa(*files, "--abstracts", "tfidf", "--model", tiny_claims["joint"], "--threshold", "1")
    assert done.out == "out.jsonl: 0 abstracts as evidence for 0 of 3 claims\n"
    assert read() == {2: {}, 1: {}, 3: {}}


def test_oracles(
    epicqa: Callable, files: list[object], joint: list[object], tiny_claims: dict[str, Path]
) -> None:
    oracle = [*files, "--abstracts", "oracle"]
    assert epicqa(*oracle, *joint, "--max-sentences", "1").status == 0
    found = read()
    # Document 5 has no sentences.
    assert {claim: list(one) for claim, one in found.items()} == {2: ["40"], 1: ["23"], 3: []}
    assert len(found[2]["40"]["sentences"]) == 1
    assert epicqa(*oracle, *joint, "--no-cited").status == 0
    assert {claim: list(one) for claim, one in read().items()} == {2: ["40"], 1: [], 3: []}
    both = [*oracle, "--rationales", "oracle", "--evidence-threshold", "0"]
    for model in (["--label-model", tiny_claims["label"]], ["--model", tiny_claims["joint"]]):
        done = epicqa(*both, *model)
        assert (done.status, done.err) == (0, "")
        found = read()
        assert found[2]["40"]["sentences"] == [0, 1] and not found[1] and not found[3]


def test_two_models_and_rationales_of_a_file(
    epicqa: Callable, files: list[object], tiny_claims: dict[str, Path]
) -> None:
    models = ["--rationale-model", tiny_claims["rationale"], "--label-model", tiny_claims["label"]]
    tfidf = [*files, "--abstracts", "tfidf", "-k", "2", "--evidence-threshold", "0"]
    assert epicqa(*tfidf, *models, "--threshold", "0").status == 0
    selected = read()
    assert selected[2] and selected[1]
    retrieve = ["claims", "retrieve", *files[2:-1], "found.jsonl", "--method", "tfidf", "-k", "2"]
    assert epicqa(*retrieve).status == 0
    lines = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    write(
        "rationales.jsonl",
        *(
            {
                "claim_id": line["claim_id"],
                "evidence": {
                    str(one): selected[line["claim_id"]].get(str(one), {"sentences": []})["sentences"]
                    for one in line["doc_ids"]
                },
            }
            for line in lines
        ),
    )
    given = [*tfidf, "--rationales", "rationales.jsonl", "--label-model", tiny_claims["label"]]
    assert epicqa(*given).status == 0
    assert read() == selected
    # The whole abstract is read otherwise than its rationale only where that is a part of it.
    assert epicqa(*given, "--label-input", "abstract").status == 0
    assert read() == selected


def test_claims_without_evidence(epicqa: Callable, files: list[object], joint: list[object]) -> None:
    write("claims.jsonl", {"id": 4, "claim": "Cats catch it."})
    for oracle in (["--abstracts", "oracle"], ["--abstracts", "tfidf", "--rationales", "oracle"]):
        model = [] if "--rationales" in oracle else joint
        line = epicqa(*files, *oracle, *model).line()
        assert line == "claim 4: its evidence is not known, expected claims with 'evidence'"
        assert not Path("out.jsonl").exists()
    assert epicqa(*files, *joint, "--abstracts", "tfidf", "-k", "1").status == 0
    assert list(read()[4]) == ["23"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            ["--abstracts", "oracle", "-k", "3"],
            "-k is for --abstracts search or tfidf, expected none with or",
        ),
        (["--abstracts", "found.jsonl", "--index", "x"], "--index is for --abstracts search, expected none"),
        (["--abstracts", "tfidf", "--cited"], "--cited/--no-cited is for --abstracts oracle, expected none"),
        (["--rationales", "oracle", "--threshold", "0.5"], "--threshold is for --rationales model, expected"),
        (
            ["--rationales", "x.jsonl", "--rationale-model", "x"],
            "--rationale-model is for --rationales model",
        ),
        (
            ["--model", "x", "--label-model", "y"],
            "--model does both steps, expected it alone, or --rationale",
        ),
        (
            ["--label-model", "y"],
            "--label-model does one step only, expected --rationale-model, too, or --mo",
        ),
        (["--rationale-model", "y"], "--rationale-model does one step only, expected --label-model, too"),
        (["--abstracts", "absent.jsonl"], "absent.jsonl: No such file"),
        (["--abstracts", "claims.jsonl"], "claims.jsonl:1: claim 2: document 40 is"),
        (["--abstracts", "tfidf", "--rationales", "absent.jsonl"], "absent.jsonl: No such file"),
        (["--model", "./absent"], "unknown model './absent'"),
        (["--model", "{reranker}"], "{reranker}: no claim model, expected one that"),
        (["--corpus", "claims.jsonl"], "claims.jsonl:1: no 'doc_id', expected a whole number from 0"),
        (["-o", "."], ".: a folder, expected the name of a file to write"),
        (["-o", "a.jsonl.gz"], "a.jsonl.gz: predictions are written plain, expected a name such as"),
    ],
)
def test_bad_input(
    epicqa: Callable,
    files: list[object],
    tiny_claims: dict[str, Path],
    tiny_reranker: Path,
    more: list[str],
    said: str,
) -> None:
    more = [one.format(reranker=tiny_reranker) for one in more]
    model = [] if any(one.endswith("model") for one in more) else ["--model", tiny_claims["joint"]]
    assert epicqa(*files, *model, *more).line().startswith(said.format(reranker=tiny_reranker))
    assert not Path("out.jsonl").exists() and not Path("indexes").exists()


def test_models_of_the_wrong_kind(
    epicqa: Callable, files: list[object], tiny_claims: dict[str, Path]
) -> None:
    line = epicqa(*files, "--model", tiny_claims["label"]).line()
    assert line.endswith("a label model, expected one that selects rationales: of kind rationale or joint")
    models = ["--rationale-model", tiny_claims["joint"], "--label-model", tiny_claims["rationale"]]
    line = epicqa(*files, *models).line()
    assert line.endswith("a rationale model, expected one that labels: of kind label or joint")
    assert not Path("out.jsonl").exists() and not Path("indexes").exists()


def test_abstracts_that_claims_cite(epicqa: Callable, files: list[object]) -> None:
    retrieve = ["claims", "retrieve", *files[2:], "--method"]
    assert epicqa(*retrieve, "oracle", "--cited").status == 0
    found = [json.loads(line)["doc_ids"] for line in Path("out.jsonl").read_text().splitlines()]
    assert found == [[40], [23, 5], []]
    line = epicqa(*retrieve, "tfidf", "--cited").line()
    assert line == "--cited is for --method oracle, expected none with tfidf"


def test_help(epicqa: Callable) -> None:
    assert "predict" in epicqa("claims", "--help").out
    done = epicqa("claims", "predict", "--help")
    assert (
        "epicqa claims predict --claims claims_dev.jsonl" in done.out and "--evidence-threshold" in done.out
    )


def test_an_interrupted_command_goes_on(
    epicqa: Callable, files: list[object], joint: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from epicqa.claims import system
    from epicqa.claims.model import ClaimModel

    monkeypatch.setattr(system, "_BATCH", 1)
    command = [*files, *joint, "--abstracts", "tfidf"]
    assert epicqa(*command).status == 0
    whole = Path("out.jsonl").read_bytes()
    Path("out.jsonl").unlink()
    read, asked = ClaimModel.read, []

    def interrupted(self: ClaimModel, inputs: list, progress: object = None) -> list:
        asked.append(inputs[0].claim)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return read(self, inputs)

    monkeypatch.setattr(ClaimModel, "read", interrupted)
    ended = epicqa(*command)
    assert ended.status == 1 and "the same command goes on where it stopped" in ended.err
    assert not Path("out.jsonl").exists()
    assert epicqa(*command).status == 0
    assert Path("out.jsonl").read_bytes() == whole
    # The claim that was interrupted, and the one after; not the first one again.
    assert asked == ["Masks lower spread.", *["The virus survives on steel."] * 2, "Unheard of."]
