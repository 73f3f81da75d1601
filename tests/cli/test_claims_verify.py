"""``epicqa claims verify`` on small indexes, by models of random weights that take everything or nothing."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epicqa.claims.verifying import NOTE
from epicqa.index.build import BuildOptions, build_index

CLAIM = "Masks lower spread."
TEXTS = {
    40: ("Masks", ["Cloth masks filter droplets.", "Rain is wet.", "Masks lower spread in schools."]),
    7: ("Steel", ["The virus survives on steel for days.", "On copper the virus dies within hours."]),
    23: ("Cats", ["Cats catch the virus from their owners.", "Masks are not for cats."]),
}
STYLE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = {
    "document_id": "evil-\x1b[5m",
    "metadata": {
        "title": "[bold]zebra[/] \x1b[31mred :smile: [link=http://x]",
        "urls": ["http://x/\x1b]0;owned\x07"],
    },
    "contexts": [
        {
            "section": None,
            "context_id": "evil-\x1b[5m-C000",
            "text": "Zebra \x1b]8;;http://evil\x07 \x1b[2J [bold]x[/] \b\u202e\u2066\x9b2J.",
            "sentences": [{"sentence_id": "evil-\x1b[5m-C000-S000", "start": 0, "end": 45}],
        }
    ],
}


def of_thresholds(folder: Path, target: Path, threshold: float, evidence: float) -> Path:
    """A copy of a claim model with other thresholds."""
    shutil.copytree(folder, target)
    path = target / "config.json"
    config = json.loads(path.read_text())
    config["epicqa_claims"] |= {"threshold": threshold, "evidence_threshold": evidence}
    path.write_text(json.dumps(config))
    return target


@pytest.fixture(scope="module")
def models(tiny_claims: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model that takes everything for evidence, and one that takes nothing."""
    folder = tmp_path_factory.mktemp("models")
    joint = tiny_claims["joint"]
    return {
        "every": of_thresholds(joint, folder / "every", 0, 0),
        "none": of_thresholds(joint, folder / "none", 1, 0),
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an index of three abstracts, and of one document that would take a terminal over."""
    folder = tmp_path_factory.mktemp("home")
    lines = (
        json.dumps({"doc_id": doc_id, "title": title, "abstract": sentences, "structured": False})
        for doc_id, (title, sentences) in TEXTS.items()
    )
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "evil.jsonl").write_text(json.dumps(HOSTILE))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EPICQA_HOME", str(folder))
        build_index([folder / "corpus.jsonl"], "default", BuildOptions("none", threads=1, strict=True))
        build_index([folder / "evil.jsonl"], "evil", BuildOptions("none", threads=1, strict=True))
    return folder


@pytest.fixture
def verify(
    epicqa: Callable, built: Path, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable:
    """The command with a model, in a home of the test's own; ``model=None`` leaves it out."""
    for name in ("corpus.jsonl", "indexes"):
        (tmp_path / name).symlink_to(built / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPICQA_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "500")

    def run(*arguments: object, model: str | None = "every") -> object:
        named = ["--model", models.get(model, model)] if model else []
        return epicqa("claims", "verify", *arguments, *named, "--threads", "1")

    return run


def test_evidence_for_reading(verify: Callable) -> None:
    done = verify(CLAIM)
    assert done.status == 0
    assert done.err.startswith("note: index 'default' has no vectors") and done.err.count("\n") == 1
    assert not STYLE.search(done.out)
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == CLAIM and lines[-1] == NOTE and "no medical advice" in NOTE
    assert re.fullmatch(
        r"Of 2 abstracts found, (2 (support|refute) it|1 supports it and 1 refutes it)\.", lines[1]
    )
    assert lines[2] == ""
    assert re.fullmatch(r"(SUPPORTS|REFUTES) [01]\.\d\d  Masks", lines[3])
    assert lines[4] == "   Cloth masks filter droplets. Rain is wet. Masks lower spread in schools."
    assert lines[5:7] == ["   40", ""]
    assert re.fullmatch(r"(SUPPORTS|REFUTES) [01]\.\d\d  Cats", lines[7])


def test_gaps_in_a_rationale(verify: Callable, tiny_claims: dict[str, Path], tmp_path: Path) -> None:
    """Only the rationale's sentences are shown, in the abstract's order."""
    (record,) = map(json.loads, verify(CLAIM, "-k", "1", "--format", "json").out.splitlines())
    (abstract,) = record["abstracts"]
    scores = [one["score"] for one in abstract["sentences"]]
    for place, threshold in enumerate(sorted(scores)[:2]):
        model = of_thresholds(tiny_claims["joint"], tmp_path / f"m{place}", threshold, 0)
        out = verify(CLAIM, "-k", "1", model=str(model)).out
        kept = [score > threshold for score in scores]
        texts = [text for text, taken in zip(TEXTS[40][1], kept, strict=True) if taken]
        assert (" ... " if kept == [True, False, True] else " ").join(texts) in out
        assert not any(text in out for text in TEXTS[40][1] if text not in texts)


def test_too_little_is_said_plainly(verify: Callable) -> None:
    done = verify(CLAIM, model="none")
    none = "NOINFO: none of the 2 abstracts found says enough to support or refute it."
    assert (done.status, [line.rstrip() for line in done.out.splitlines()]) == (0, [CLAIM, none, "", NOTE])
    out = [line.rstrip() for line in verify(CLAIM, "--all", model="none").out.splitlines()]
    assert out[:3] == [CLAIM, none, ""] and out[-1] == NOTE
    assert re.fullmatch(r"NOINFO [01]\.\d\d  Masks", out[3]) and out[4] == "   40"
    assert "NOINFO: no abstract was found." in verify("Zebra.").out


def test_json_lines_of_texts_and_a_file(verify: Callable) -> None:
    Path("claims.txt").write_text("\nThe virus survives on steel.\n\nCats catch it.\n")
    done = verify(CLAIM, "--claims-file", "claims.txt", "--format", "json", "-k", "1")
    assert done.status == 0 and done.out.isascii()
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [one["claim"] for one in records] == [CLAIM, "The virus survives on steel.", "Cats catch it."]
    assert [[one["document_id"] for one in record["abstracts"]] for record in records] == [
        ["40"],
        ["7"],
        ["23"],
    ]
    for record in records:
        assert list(record) == ["claim", "index", "verdict", "abstracts", "note"]
        assert (record["index"], record["note"]) == ("default", NOTE)
        (abstract,) = record["abstracts"]
        assert record["verdict"] == {"SUPPORTS": 0, "NOINFO": 0, "REFUTES": 0} | {abstract["label"]: 1}
        assert abstract["part"] == "abstract" and abstract["url"] is None
        texts = [one["text"] for one in abstract["sentences"]]
        assert texts == TEXTS[int(abstract["document_id"])][1]
        assert all(0 <= one["score"] <= 1 and one["rationale"] for one in abstract["sentences"])
    # What says too little is there, too.
    (record,) = map(json.loads, verify(CLAIM, "--format", "json", model="none").out.splitlines())
    assert record["verdict"] == {"SUPPORTS": 0, "NOINFO": 2, "REFUTES": 0} and len(record["abstracts"]) == 2
    alone = verify("--claims-file", "claims.txt").out
    assert alone.count("Of ") == 2 and alone.count(NOTE) == 1


def test_a_corpus_is_indexed_once(verify: Callable, built: Path) -> None:
    Path("indexes").unlink()
    done = verify(CLAIM, "--corpus", "corpus.jsonl", "--format", "json")
    assert (done.status, done.err) == (0, "")
    record = json.loads(done.out)
    assert (record["index"], record["abstracts"][0]["document_id"]) == ("scifact", "40")
    current = Path("indexes/scifact/CURRENT").read_bytes()
    assert verify(CLAIM, "--corpus", "corpus.jsonl", "--format", "json").out == done.out
    assert verify(CLAIM, "--index", "scifact", "--format", "json").out == done.out
    assert Path("indexes/scifact/CURRENT").read_bytes() == current


def test_settings_of_a_file(verify: Callable) -> None:
    Path("c.toml").write_text('index = "evil"\n')
    assert json.loads(verify("Zebra.", "--config", "c.toml", "--format", "json").out)["index"] == "evil"
    named = verify("Zebra.", "--config", "c.toml", "--index", "default", "--format", "json")
    assert json.loads(named.out)["index"] == "default"


@pytest.mark.parametrize("colour", [False, True])
def test_texts_are_never_obeyed(verify: Callable, monkeypatch: pytest.MonkeyPatch, colour: bool) -> None:
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
    claim = "Zebra \x1b[2J [bold]claim[/] \u202e\x07"
    done = verify(claim, "--index", "evil")
    assert done.status == 0 and colour == bool(STYLE.search(done.out))
    plain = STYLE.sub("", done.out)
    assert all(char.isprintable() or char == "\n" for char in plain)
    for shown in (
        "Zebra  [2J [bold]claim[/]",
        "[bold]zebra[/]",
        "[31mred :smile: [link=http://x]",
        "]8;;http://evil",
        "[bold]x[/]",
        "(no abstract: its beginning was read)",
    ):
        assert shown in plain
    out = verify(claim, "--index", "evil", "--format", "json").out
    assert all(char.isprintable() or char == "\n" for char in out) and out.isascii()
    record = json.loads(out)
    assert record["claim"] == claim and record["abstracts"][0]["part"] == "beginning"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no claim, expected a TEXT or --claims-file FILE"),
        ([" "], "the claim is empty, expected text such as"),
        ([CLAIM, ""], "the claim is empty, expected text such as"),
        (["\x1b[2J virus" * 200], "claim of 800 tokens"),
        ([CLAIM, "--index", "absent"], "no index 'absent'"),
        ([CLAIM, "--index", "default", "--corpus", "corpus.jsonl"], "--index and --corpus both say where"),
        ([CLAIM, "--corpus", "absent.jsonl"], "absent.jsonl: "),
        ([CLAIM, "--config", "absent.toml"], "absent.toml: No such file"),
        (["--claims-file", "absent.txt"], "absent.txt: No such file or directory, expected a claim a line"),
        (["--claims-file", "bad.txt"], "bad.txt:2: not UTF-8, expected a claim a line"),
        (["--claims-file", "empty.txt"], "empty.txt: empty, expected a claim a line"),
    ],
)
def test_bad_input_is_one_line(verify: Callable, arguments: list[str], said: str) -> None:
    Path("bad.txt").write_bytes(b"One.\n\xff\n")
    Path("empty.txt").touch()
    assert verify(*arguments).line().startswith(said)
    assert not Path("indexes/scifact").exists()


def test_models_that_cannot(verify: Callable, tiny_claims: dict[str, Path], tiny_reranker: Path) -> None:
    assert verify(CLAIM, model="./absent").line().startswith("unknown model './absent'")
    assert verify(CLAIM, model=str(tiny_reranker)).line().startswith(f"{tiny_reranker}: no claim model")
    assert "a label model, expected one that" in verify(CLAIM, model=str(tiny_claims["label"])).line()


def test_help(epicqa: Callable) -> None:
    assert "verify" in epicqa("claims", "--help").out
    done = epicqa("claims", "verify", "--help")
    said = " ".join(done.out.split())
    assert 'epicqa claims verify "Cats' in said and "none of this is medical advice" in said
