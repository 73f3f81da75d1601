"""``epicqa claims predict`` and ``verify`` with ``--task fever``, on the small made-up Wikipedia."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from epicqa.claims.fever import read_claims, read_predictions
from epicqa.claims.verifying import NOTE
from epicqa.index.build import open_index

GOLDEN = Path(__file__).parents[1] / "golden" / "fever"
SPACY = "note: spaCy "


@pytest.fixture
def wiki(small_wiki: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of the test's own with the index, and ten claims in the current folder."""
    (tmp_path / "indexes").symlink_to(small_wiki / "indexes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    monkeypatch.setenv("EPICQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "500")
    lines = (GOLDEN / "claims.jsonl").read_text().splitlines(keepends=True)
    Path("claims.jsonl").write_text("".join(lines[:10]))


@pytest.fixture
def command(wiki: None, tiny_claims: dict[str, Path]) -> list[object]:
    model = ["--model", tiny_claims["label"], "--threads", "1"]
    return ["claims", "predict", "--task", "fever", "--claims", "claims.jsonl", "-o", "out.jsonl", *model]


@pytest.fixture
def verify(epicqa: Callable, wiki: None, tiny_claims: dict[str, Path]) -> Callable:
    def run(*arguments: object) -> Any:
        fixed = ("--task", "fever", "--model", tiny_claims["label"], "--threads", "1")
        return epicqa("claims", "verify", *arguments, *fixed)

    return run


def notes(err: str) -> list[str]:
    """What is said but for spaCy, which need not be there."""
    return [line for line in err.splitlines() if not line.startswith(SPACY)]


def test_what_is_predicted_is_what_the_task_takes(epicqa: Callable, command: list[object]) -> None:
    done = epicqa(*command)
    assert (done.status, notes(done.err)) == (0, [])
    found = re.fullmatch(
        r"out\.jsonl: 10 claims: (\d+) SUPPORTS, (\d+) REFUTES, (\d+) NOT ENOUGH INFO\n", done.out
    )
    assert found and sum(map(int, found.groups())) == 10
    made = read_predictions(Path("out.jsonl")).predictions
    claims = read_claims(Path("claims.jsonl"))
    assert [one.claim_id for one in made] == [claim.claim_id for claim in claims]
    assert any(one.evidence for one in made) and all(len(one.evidence or ()) <= 5 for one in made)
    scored = epicqa("score", "out.jsonl", "--task", "fever", "--claims", "claims.jsonl")
    assert (scored.status, scored.err) == (0, "") and "label_kappa" in scored.out
    first = Path("out.jsonl").read_bytes()
    assert not list(Path("cache").rglob("*.jsonl"))
    assert epicqa(*command, "--index", "fever").status == 0
    assert Path("out.jsonl").read_bytes() == first
    # Fewer sentences are read, so fewer are taken.
    assert epicqa(*command, "--no-articles", "--no-films", "--no-entities", "--pages", "1").status == 0
    assert Path("out.jsonl").read_bytes() != first


def test_pages_are_indexed_once(epicqa: Callable, command: list[object]) -> None:
    assert epicqa(*command).status == 0
    first = Path("out.jsonl").read_bytes()
    Path("indexes").unlink()
    assert epicqa(*command).line().startswith("no index 'fever'")
    built = [*command, "--corpus", GOLDEN / "wiki-pages"]
    for _ in range(2):
        done = epicqa(*built)
        assert done.status == 0, done
        assert Path("out.jsonl").read_bytes() == first
    assert Path("indexes/fever/CURRENT").read_text() == "generation-000001\n"
    assert not open_index("fever").has_vectors


def test_an_interrupted_command_goes_on(
    epicqa: Callable, command: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    from epicqa.claims import fever_system
    from epicqa.claims.model import ClaimModel

    monkeypatch.setattr("epicqa.claims.model.best_precision", lambda device: "float32")
    monkeypatch.setattr(fever_system, "_BATCH", 4)
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
    texts = [claim.text for claim in read_claims(Path("claims.jsonl"))]
    # The batch that was interrupted, and the one after; not the first one again.
    assert asked == [texts[0], texts[4], texts[4], texts[8]]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--abstracts", "tfidf"], "--abstracts is for --task scifact, expected none with --task fever"),
        (["--cited"], "--cited/--no-cited is for --task scifact, expected none with --task fever"),
        (["-k", "3"], "-k is for --task scifact, expected none with --task fever"),
        (["--config", "x.toml"], "--config is for --task scifact, expected none"),
        (["--rationales", "oracle"], "--rationales is for --task scifact, expected none"),
        (["--threshold", "0.5"], "--threshold is for --task scifact, expected none"),
        (["--label-model", "x"], "--label-model is for --task scifact, expected none"),
        (["--index", "fever", "--corpus", "wiki"], "--index and --corpus both say where to search, expected"),
        (["--index", "absent"], "no index 'absent'"),
        (["--corpus", "absent"], "absent: "),
        (["--claims", "absent.jsonl"], "absent.jsonl: No such file"),
        (["--claims", "twice.jsonl"], "twice.jsonl:2: claim 1: also on line 1, expected each claim once"),
        (["--claims", "long.jsonl"], "claim of 600 tokens ('masks masks"),
        (["--model", "./absent"], "unknown model './absent'"),
        (["--model", "{rationale}"], "{rationale}: a rationale model, expected one that labels: of kind la"),
        (["-o", "."], ".: a folder, expected the name of a file to write"),
        (["-o", "a.jsonl.gz"], "a.jsonl.gz: predictions are written plain, expected a name such as"),
    ],
)
def test_bad_input(
    epicqa: Callable, command: list[object], tiny_claims: dict[str, Path], more: list[str], said: str
) -> None:
    Path("twice.jsonl").write_text('{"id": 1, "claim": "a"}\n{"id": 1, "claim": "b"}\n')
    Path("long.jsonl").write_text(json.dumps({"id": 1, "claim": "masks " * 600}) + "\n")
    line = epicqa(*command, *(one.format(**tiny_claims) for one in more)).line()
    assert line.startswith(said.format(**tiny_claims))
    assert not Path("out.jsonl").exists()


def test_options_of_fever_are_refused_without_it(epicqa: Callable, wiki: None) -> None:
    predict = ("claims", "predict", "--claims", "claims.jsonl", "-o", "out.jsonl")
    for begin in ((*predict, "--corpus", "corpus.jsonl"), ("claims", "verify", "A claim.")):
        for option in ("--no-titles", "--no-entities", "--no-films", "--no-articles"):
            said = f"--{option[5:]}/{option} is for --task fever, expected none with --task scifact"
            assert epicqa(*begin, option).line() == said
        line = epicqa(*begin, "--pages", "2").line()
        assert line == "--pages is for --task fever, expected none with --task scifact"
    assert epicqa(*predict).line() == "--task scifact needs the abstracts, pass --corpus FILE"


def test_evidence_for_reading(verify: Callable) -> None:
    done = verify("Isk is a silent film by Jorun Morrowick.")
    assert (done.status, notes(done.err)) == (0, [])
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "Isk is a silent film by Jorun Morrowick." and lines[-1] == NOTE
    told = re.fullmatch(
        r"(SUPPORTS|REFUTES): of (\d+) sentences read, (\d+) (supports?|refutes?) it\.", lines[1]
    )
    assert told and lines[2] == ""
    shown = [line for line in lines if re.match(rf"{told[1]} [01]\.\d\d  \[ .* \] ", line)]
    assert len(shown) == min(5, int(told[3]))
    assert re.fullmatch(r"   \S+  line \d+", lines[4])
    out = verify("Isk is a silent film by Jorun Morrowick.", "--all").out
    assert len(re.findall(r"^(?:SUPPORTS|REFUTES|NOT ENOUGH INFO) [01]\.", out, re.M)) == int(told[2])
    assert "NOT ENOUGH INFO: no page was found." in verify("zzz").out


def test_json_lines(verify: Callable) -> None:
    Path("texts.txt").write_text("\n Isk is a film. \n")
    done = verify("zzz", "--claims-file", "texts.txt", "--format", "json", "--pages", "1", "--no-articles")
    assert done.status == 0 and done.out.isascii()
    first, second = map(json.loads, done.out.splitlines())
    assert (first["claim"], first["label"], first["premises"]) == ("zzz", "NOT ENOUGH INFO", [])
    assert second["claim"] == "Isk is a film." and second["index"] == "fever" and second["note"] == NOTE
    assert len(second["premises"]) == 5
    ranks = sorted(one["evidence"] for one in second["premises"] if one["evidence"])
    assert ranks == list(range(1, len(ranks) + 1))
    assert all(
        (one["evidence"] is not None) <= (one["label"] == second["label"]) for one in second["premises"]
    )


def test_texts_are_never_obeyed(verify: Callable, epicqa: Callable) -> None:
    page = {"id": "Zebra_\x1b[31m", "text": "", "lines": "0\tZebra \x1b[2J [bold]x[/] \u202e\x07 ."}
    Path("wiki-001.jsonl").write_text(json.dumps(page) + "\n")
    Path("indexes").unlink()
    done = verify("Zebra \x1b[2J [bold]claim[/] \u202e", "--corpus", "wiki-001.jsonl", "--all")
    assert done.status == 0, done
    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert "Zebra  [2J [bold]claim[/]" in done.out and "[bold]x[/]" in done.out


def test_what_verify_refuses(verify: Callable) -> None:
    for more, said in (
        (("-k", "3"), "-k is for --task scifact, expected none with --task fever"),
        (("--config", "x.toml"), "--config is for --task scifact, expected none with --task fever"),
        (("--index", "a", "--corpus", "b"), "--index and --corpus both say where to search"),
        (("--index", "absent"), "no index 'absent'"),
    ):
        assert verify("Isk is a film.", *more).line().startswith(said)
    assert verify().line() == "no claim, expected a TEXT or --claims-file FILE"
    assert verify(" ").line().startswith("the claim is empty, expected text")


def test_training_on_fever(
    epicqa: Callable, wiki: None, tiny_claims: dict[str, Path], command: list[object]
) -> None:
    small = ("--max-steps", 2, "--batch-size", 4, "--max-length", 128, "--threads", 1)
    train = ("claims", "train", "label", "--base", tiny_claims["label"], "--claims", "claims.jsonl")
    for which in ("one", "title-five-oracle"):
        done = epicqa(*train, "--fever", which, "--out", which, *small)
        assert done.status == 0 and notes(done.err) == [], done
        assert "the index fever (`" in Path(which, "README.md").read_text()
    assert epicqa(*command[:-4], "--model", "title-five-oracle", "--threads", "1").status == 0
    for more, said in (
        (("--corpus", "x.jsonl", "--fever", "one"), "--corpus is of SciFact-shaped claims, expected none"),
        (("--index", "fever"), "--index is for --fever, expected none without it"),
        (("--fever", "one", "--index", "absent"), "no index 'absent'"),
        (("--fever", "one", "--negatives", "1"), "--negatives is for joint models of --claims"),
    ):
        assert epicqa(*train, *more, "--out", "m").line().startswith(said)
    line = epicqa("claims", "train", "rationale", "--claims", "claims.jsonl", "--fever", "one", "--out", "m")
    assert line.line() == "--fever is for models that label, expected label or joint"
    line = epicqa("claims", "train", "label", "--pairs", "x.jsonl", "--fever", "one", "--out", "m")
    assert line.line() == "--fever needs FEVER's claims, pass --claims FILE"
    assert not Path("m").exists()
