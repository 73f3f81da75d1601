"""``epicqa ask`` on the real sample index, and on texts that would take a terminal over."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from epicqa.index.build import BuildOptions, build_index

STEEL = "how long does the virus survive on steel?"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = {
    "document_id": "evil-\x1b[5m",
    "metadata": {
        "title": "[bold]zebra[/] \x1b[31mred :smile: [link=http://x]",
        "urls": ["http://x/\x1b]0;owned\x07"],
    },
    "contexts": [
        {
            "section": "[blink]\u202eevas\x9b2J",
            "context_id": "evil-\x1b[5m-C000",
            "text": "Zebra \x1b]8;;http://evil\x07 \x1b[2J [bold]x[/] \b\u202e\u2066.\nNext\U0001f993\u0085.",
            "sentences": [
                {"sentence_id": "evil-\x1b[5m-C000-S000", "start": 0, "end": 0},
                {"sentence_id": "evil-\x1b[5m-C000-S001", "start": 0, "end": 0},
            ],
        }
    ],
}


@pytest.fixture
def ask(epicqa: Callable, plain_flags: list) -> Callable:
    """``epicqa ask`` with nothing that reranks, unless its flags say otherwise."""
    return lambda *arguments: epicqa("ask", *plain_flags, *arguments)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = HOSTILE["contexts"][0]["text"]
    ends = [text.index("\n"), len(text)]
    for sentence, start, end in zip(HOSTILE["contexts"][0]["sentences"], [0, ends[0] + 1], ends, strict=True):
        sentence.update(start=start, end=end)
    (tmp_path / "evil.jsonl").write_text(json.dumps(HOSTILE) + "\n")
    build_index([tmp_path / "evil.jsonl"], "default", BuildOptions(threads=1, dense="none", strict=True))


def force_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_passages_in_their_context(home: Path, ask: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    records = json.loads(ask(STEEL, "--json").out)
    ended = ask(STEEL)
    assert (ended.status, ended.err) == (0, "")
    blocks = (
        ended.out.rstrip().split("\n\n") if "\n\n" in ended.out else re.split(r"\n *\n", ended.out.rstrip())
    )
    assert len(blocks) == len(records) == 5
    for block, record in zip(blocks, records, strict=True):
        head, context, source = (line.strip() for line in block.strip().splitlines())
        assert head.startswith(f"{record['rank']}. {record['title']}")
        assert context.split() == record["context"].split()
        assert source == f"{record['first_id']}  {record['url']}"


def test_the_sentence_is_highlighted(home: Path, ask: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    force_colour(monkeypatch)
    (record,) = json.loads(ask(STEEL, "-n", "1", "--json").out)
    ended = ask(STEEL, "-n", "1")
    assert re.findall(r"\x1b\[1;33m(.*?)\x1b\[0m", ended.out) == [record["text"]]


def test_narrow_terminals_lose_nothing(home: Path, ask: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    records = json.loads(ask(STEEL, "--json", "-n", "20").out)
    monkeypatch.setenv("COLUMNS", "30")
    out = "".join(ask(STEEL, "-n", "20").out.split())
    for record in records:
        for part in (record["title"], record["context"], record["first_id"], record["url"]):
            assert "".join(part.split()) in out


def test_json_shape(home: Path, ask: Callable) -> None:
    ended = ask(STEEL, "--json", "-n", "3", "--max-sentences", "3", "--diversity", "none")
    records = json.loads(ended.out)
    assert ended.err == "" and ended.out.isascii() and len(records) == 3
    assert set(records[0]) == {
        *("rank", "score", "first_id", "last_id", "text", "context", "start", "end"),
        *("document_id", "title", "url", "section"),
    }
    for record in records:
        assert record["context"][record["start"] : record["end"]] == record["text"]


def test_a_passage_of_several_sentences_shows_both_ends(home: Path, ask: Callable) -> None:
    question = "What is the origin of COVID-19?"
    flags = ("-n", "20", "--max-sentences", "3", "--retriever", "bm25", "--diversity", "none")
    records = json.loads(ask(question, *flags, "--json").out)
    out = ask(question, *flags).out
    longer = [record for record in records if record["first_id"] != record["last_id"]]
    assert longer
    for record in longer:
        assert "".join((record["first_id"], ":", record["last_id"])) in "".join(out.split())


def test_bad_input_is_one_line(home: Path, ask: Callable) -> None:
    assert ask(" ").line().startswith("the question is empty")
    assert ask(STEEL, "--k1", "nan").line() == "k1 is nan, expected 0 to 100"
    assert ask(STEEL, "--index", "bare", "--retriever", "dense").line().startswith("index 'bare' has no")
    assert ask(STEEL, "--reranker", "./absent").line().startswith("unknown model './absent'")
    assert ask(STEEL, "--config", "absent.toml").line().startswith("absent.toml: No such file")
    assert ask(STEEL, "--bi-encoder", "./absent").line().startswith("unknown model './absent'")
    (home / "c.toml").write_text("depht = 5")
    assert ask(STEEL, "--config", "c.toml").line().startswith("c.toml: unknown setting 'depht'")


def test_the_whole_default(home: Path, epicqa: Callable, ask: Callable) -> None:
    ended = epicqa("ask", STEEL, "--json")
    records = json.loads(ended.out)
    assert (ended.err, [record["rank"] for record in records]) == ("", [1, 2, 3, 4, 5])
    assert any("steel" in record["text"] for record in records[:3])
    assert ended.out != ask(STEEL, "--json").out
    few = ("ask", STEEL, "--json", "--rerank-depth", "20", "--audience")
    assert epicqa(*few, "expert").out != epicqa(*few, "general").out


def test_settings_from_a_file(home: Path, ask: Callable) -> None:
    (home / "c.toml").write_text('index = "bare"\nretriever = "bm25"\n')
    ended = ask(STEEL, "--config", "c.toml", "--json")
    assert ended.err.startswith("note: index 'bare' has no vectors")
    assert ask(STEEL, "--index", "bare", "--json").out == ended.out
    assert ask(STEEL, "--config", "c.toml", "--index", "sample", "--json").err == ""


def test_nothing_found(home: Path, ask: Callable) -> None:
    assert ask("zzzz", "--index", "bare").out == "nothing found\n"
    assert ask("zzzz", "--index", "bare", "--json").out == "[]\n"


@pytest.mark.parametrize("colour", [False, True])
def test_texts_of_a_collection_are_never_obeyed(
    hostile: None, ask: Callable, monkeypatch: pytest.MonkeyPatch, colour: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    if colour:
        force_colour(monkeypatch)
    ended = ask("zebra")
    assert ended.status == 0
    plain = STYLE.sub("", ended.out) if colour else ended.out
    assert all(char.isprintable() or char == "\n" for char in plain)
    for shown in (
        "[bold]zebra[/]",
        "[31mred :smile: [link=http://x]",
        "]8;;http://evil",
        "[bold]x[/]",
        "[blink]",
        "\U0001f993",
    ):
        assert shown in plain
    out = ask("zebra", "--json").out
    assert all(char.isprintable() or char == "\n" for char in out) and out.isascii()
    record = json.loads(out)[0]
    assert (
        record["document_id"] == HOSTILE["document_id"]
        and record["context"] == HOSTILE["contexts"][0]["text"]
    )
