"""Reading training pairs, and parting them."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.models.train.pairs import Pair, fingerprint, read_pairs, split, write_pairs

LINES = (
    b'{"query": "how long?", "positive": "Three days.", "negatives": ["No."], "group": "a"}\n'
    b"\n"
    b'{"query": "Wer?", "positive": "\xc3\x84rzte", "group": 7}\n'
)
PAIRS = [Pair("how long?", "Three days.", ("No.",), "a"), Pair("Wer?", "Ärzte", (), "7")]


def test_reads_every_compression(tmp_path: Path) -> None:
    contents = {
        "p.jsonl": LINES,
        "p.jsonl.gz": gzip.compress(LINES),
        "p.jsonl.xz": lzma.compress(LINES),
        "p.jsonl.zst": zstandard.compress(LINES),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert read_pairs([tmp_path / name]) == PAIRS
    assert read_pairs([tmp_path / name for name in contents]) == PAIRS * 4


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "list, expected an object"),
        ('{"positive": "b"}', "query holds null"),
        ('{"query": "a", "positive": "  "}', "positive holds"),
        ('{"query": "a", "positive": 3}', "positive holds 3"),
        ('{"query": "a", "positive": "b", "negatives": "c"}', "negatives is no list"),
        ('{"query": "a", "positive": "b", "negatives": [""]}', "negatives holds"),
        ('{"query": "a", "positive": "b", "group": true}', "group holds true"),
        ('{"query": "a", "positive": "\\ud800"}', "surrogate"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"query": "a", "positive": "b"}\n\n' + line + "\n")
    with pytest.raises(EpicqaError, match=why) as raised:
        read_pairs([path])
    assert str(raised.value).startswith(f"{path}:3: ")
    assert "\n" not in str(raised.value)


def test_bad_files_are_named(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(LINES * 50)[:-9])
    not_gzip = tmp_path / "not.jsonl.gz"
    not_gzip.write_bytes(LINES)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"query": "é", "positive": "b"}'.encode("latin-1"))
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    for path in (cut, not_gzip, latin, empty, tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(EpicqaError, match=str(path)):
            read_pairs([path])
    with pytest.raises(EpicqaError, match="no files"):
        read_pairs([])


texts = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text.strip())
some_pairs = st.lists(
    st.builds(Pair, texts, texts, st.lists(texts, max_size=2).map(tuple), st.sampled_from(["", "a", "b"])),
    min_size=1,
)


@settings(max_examples=20)
@given(some_pairs)
def test_written_pairs_are_read_again(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> None:
    path = tmp_path_factory.mktemp("pairs") / "p.jsonl"
    assert write_pairs(path, pairs) == len(pairs)
    assert read_pairs([path]) == pairs


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AttributeError):
        write_pairs(tmp_path / "p.jsonl", [PAIRS[0], None])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []


keyed = st.lists(
    st.builds(
        lambda group, query: Pair(query, "x", (), group),
        st.sampled_from(["", *"abcde"]),
        st.sampled_from("pqr"),
    ),
    min_size=1,
)


@given(keyed, st.floats(0.01, 0.99), st.integers(0, 50))
def test_a_group_is_never_parted(pairs: list[Pair], share: float, seed: int) -> None:
    keys = {pair.group or f"query {pair.query}" for pair in pairs}
    if len(keys) < 2:
        with pytest.raises(EpicqaError, match="two or more"):
            split(pairs, share, seed)
        return
    train, held = split(pairs, share, seed)
    assert train and held
    assert not {pair.group or f"query {pair.query}" for pair in train} & {
        pair.group or f"query {pair.query}" for pair in held
    }
    marks = iter(pairs)
    assert all(pair in marks for pair in train), "training pairs stand in their order"
    assert sorted(map(repr, train + held)) == sorted(map(repr, pairs))
    assert split(pairs, share, seed) == (train, held)


def test_the_share_and_the_seed_decide() -> None:
    pairs = [Pair(f"q{i}", "x", (), f"g{i}") for i in range(2000)]
    assert split(pairs, 0, 1) == (pairs, [])
    held = split(pairs, 0.25, 1)[1]
    assert 400 < len(held) < 600
    assert held != split(pairs, 0.25, 2)[1]
    assert split([*pairs, Pair("new", "x", (), "new")], 0.25, 1)[1][:50] == held[:50]
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(EpicqaError, match="expected 0 to below 1"):
            split(pairs, share, 1)


def test_fingerprint_is_of_everything_in_order() -> None:
    first, second = PAIRS
    prints = {
        fingerprint(pairs)
        for pairs in (
            [],
            [first],
            [first, second],
            [second, first],
            [Pair(first.query, first.positive, first.negatives, "b")],
            [Pair(first.query, first.positive, (), first.group)],
            [Pair(first.query, "", (first.positive, *first.negatives), first.group)],
        )
    }
    assert len(prints) == 7
    assert fingerprint(PAIRS) == fingerprint(iter(PAIRS))
