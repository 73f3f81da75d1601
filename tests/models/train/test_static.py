"""Training a static-embedding model on a few made-up pairs, from a small base."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.models.encoder import StaticEncoder
from epicqa.models.places import STATIC, fingerprint
from epicqa.models.resolve import load_encoder
from epicqa.models.train import static
from epicqa.models.train.pairs import Pair
from epicqa.models.train.static import (
    Recipe,
    Source,
    batches,
    figures,
    figures_on,
    read_sources,
    train_static,
)

COLOURS = ("red", "green", "blue", "white", "black", "yellow", "brown", "grey")
THINGS = ("virus", "mask", "vaccine", "lung", "cat", "hospital", "test", "fever")
# Nothing but the pairs says that a colour belongs to a thing.
PAIRS = [
    Pair(f"what is {colour} {n}", f"it is the {thing} number {n}", group=colour)
    for colour, thing in zip(COLOURS, THINGS, strict=True)
    for n in ("one", "two", "three")
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static model of eight dimensions and random vectors."""
    from safetensors.numpy import load_file, save_file

    folder = tmp_path_factory.mktemp("base")
    for name in ("modules.json", "config_sentence_transformers.json", "tokenizer.json"):
        shutil.copy(STATIC / name, folder)
    tokens = len(load_file(STATIC / "model.safetensors")["embedding.weight"])
    table = np.random.default_rng(0).normal(size=(tokens, 8)).astype(np.float16)
    save_file({"embedding.weight": table}, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def recipe(base: Path) -> Recipe:
    return Recipe(base=str(base), epochs=30, batch_size=8, learning_rate=0.05)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, recipe: Recipe) -> Path:
    out = tmp_path_factory.mktemp("trained") / "model"
    train_static(PAIRS, out, recipe, held=PAIRS[:6])
    return out


def test_learns_what_the_pairs_say(trained: Path, base: Path) -> None:
    before, after = (figures_on(load_encoder(str(folder)), PAIRS) for folder in (base, trained))
    assert before.mrr < 0.5 < 0.9 < after.mrr
    with (trained / "training" / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, len(rows) + 1))
    assert float(rows[-1]["loss"]) < 0.5 * float(rows[0]["loss"])
    rates = [float(row["learning_rate"]) for row in rows]
    assert max(rates) == pytest.approx(0.05, rel=0.1) and rates[-1] < 0.01


def test_the_layout_is_the_shipped_models(trained: Path) -> None:
    assert {path.name for path in trained.iterdir()} == {
        "README.md",
        "config_sentence_transformers.json",
        "model.safetensors",
        "modules.json",
        "tokenizer.json",
        "training",
    }
    assert [path.name for path in trained.parent.iterdir()] == ["model"], "no checkpoint is left"
    from sentence_transformers import SentenceTransformer

    texts = ["a red virus", "masks and fever"]
    ours = load_encoder(str(trained)).encode(texts)
    theirs = SentenceTransformer(str(trained), device="cpu").float().encode(texts, normalize_embeddings=True)
    assert np.allclose(ours, theirs, atol=1e-3)


def test_the_same_call_gives_the_same_bytes_or_does_nothing(
    trained: Path, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = train_static(PAIRS, tmp_path / "again", recipe)
    assert result.base is None and result.trained is None
    assert fingerprint(tmp_path / "again") == fingerprint(trained)
    other = replace(recipe, seed=1)
    with pytest.raises(EpicqaError, match="holds something else"):
        train_static(PAIRS, tmp_path / "again", other)
    monkeypatch.setattr(static, "_train", None)
    train_static(PAIRS, tmp_path / "again", recipe)


def test_interrupted_it_goes_on_to_the_same_bytes(
    trained: Path, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "_SAVE_SECONDS", 0.0)
    out = tmp_path / "model"
    steps: list[int] = []

    def interrupt(step: str, done: int, total: int | None) -> None:
        steps.append(done)
        if len(steps) == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_static(PAIRS, out, recipe, progress=interrupt)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == [".model.training"]
    resumed: list[int] = []
    train_static(PAIRS, out, recipe, progress=lambda step, done, total: resumed.append(done))
    assert resumed[0] >= steps[-1]
    assert fingerprint(out) == fingerprint(trained)
    assert (out / "training" / "log.csv").read_bytes() == (trained / "training" / "log.csv").read_bytes()


def test_a_checkpoint_of_another_training_counts_for_nothing(
    trained: Path, recipe: Recipe, tmp_path: Path
) -> None:
    for content in (b"", b"no safetensors", (trained / "model.safetensors").read_bytes()):
        (tmp_path / ".model.training").mkdir()
        (tmp_path / ".model.training" / "checkpoint.safetensors").write_bytes(content)
        train_static(PAIRS, tmp_path / "model", recipe)
        assert fingerprint(tmp_path / "model") == fingerprint(trained)
        shutil.rmtree(tmp_path / "model")


def test_a_failed_write_leaves_nothing(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(rows: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(static, "_csv", full)
    with pytest.raises(OSError, match="space"):
        train_static(PAIRS, tmp_path / "model", recipe)
    assert not (tmp_path / "model").exists()


def test_a_teacher_is_learnt_from_and_asked_once(
    base: Path, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "_CHUNK", 8)
    recipe = Recipe(base=str(base), epochs=20, batch_size=8, learning_rate=0.05, teacher=str(trained))
    asked: list[int] = []
    real = StaticEncoder.encode

    def counted(self: StaticEncoder, texts: list[str]) -> np.ndarray:
        asked.append(len(texts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, texts)

    monkeypatch.setattr(StaticEncoder, "encode", counted)
    with pytest.raises(KeyboardInterrupt):
        train_static(PAIRS, tmp_path / "m", recipe)
    train_static(PAIRS, tmp_path / "m", recipe)
    assert sum(asked) == 2 * len(PAIRS) + 8, "only the chunk that was interrupted is asked for again"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    texts = [pair.positive for pair in PAIRS[::3]]
    before, after, teacher = (
        (lambda vectors: vectors @ vectors.T)(load_encoder(str(folder)).encode(texts))
        for folder in (base, tmp_path / "m", trained)
    )
    assert np.abs(after - teacher).mean() < 0.5 * np.abs(before - teacher).mean()
    assert f"teacher | {trained}, fingerprint" in (tmp_path / "m" / "README.md").read_text()


def test_negatives_are_pushed_away(base: Path, tmp_path: Path) -> None:
    pairs = [Pair(f"{one} {n}", f"{one} item", ("it is bad",)) for n in "xy" for one in COLOURS]
    plain = [Pair(pair.query, pair.positive) for pair in pairs]
    recipe = Recipe(base=str(base), epochs=10, batch_size=8, learning_rate=0.02)
    likeness = []
    for name, chosen in (("with", pairs), ("without", plain)):
        train_static(chosen, tmp_path / name, recipe)
        encoder = load_encoder(str(tmp_path / name))
        queries = encoder.encode_queries([pair.query for pair in pairs])
        likeness.append(float((queries @ encoder.encode(["it is bad"])[0]).mean()))
    assert likeness[0] < likeness[1] - 0.1


def test_a_text_without_tokens_is_no_trouble(base: Path, tmp_path: Path) -> None:
    pairs = [*PAIRS[:4], Pair("\u200b", "\u200b\u200b")]
    train_static(pairs, tmp_path / "m", Recipe(base=str(base), epochs=1))
    assert np.isfinite(load_encoder(str(tmp_path / "m")).encode([pair.positive for pair in pairs])).all()


@pytest.mark.parametrize(
    ("pairs", "change", "why"),
    [
        (PAIRS[:1], {}, "1 different queries"),
        ([Pair("a", "x"), Pair("b", "x")], {}, "can be told apart"),
        (PAIRS, {"epochs": 0}, "epochs 0"),
        (PAIRS, {"batch_size": 1}, "batch_size 1"),
        (PAIRS, {"learning_rate": 0.0}, "learning_rate 0.0"),
        (PAIRS, {"scale": float("nan")}, "scale nan"),
        (PAIRS, {"teacher_weight": -1.0}, "teacher_weight -1.0"),
        (PAIRS, {"teacher": "no/such/model/at-all"}, "unknown model"),
        (PAIRS, {"seed": -1}, "seed -1"),
        (PAIRS, {"base": "minilm"}, "no static-embedding model"),
        (PAIRS, {"base": "no/such/model/at-all"}, "unknown model"),
        (PAIRS, {"base": "static", "learning_rate": 1e9, "epochs": 2}, "lower learning rate"),
    ],
)
def test_bad_input_is_one_line_and_makes_nothing(
    tmp_path: Path, base: Path, pairs: list[Pair], change: dict, why: str
) -> None:
    recipe = Recipe(**({"base": str(base), "epochs": 1} | change))
    with pytest.raises(EpicqaError, match=why):
        train_static(pairs, tmp_path / "model", recipe)
    assert list(tmp_path.iterdir()) == []


def test_another_folder_is_never_touched(tmp_path: Path, recipe: Recipe) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(EpicqaError, match="holds something else"):
        train_static(PAIRS, tmp_path, recipe)
    with pytest.raises(EpicqaError, match="holds something else"):
        train_static(PAIRS, tmp_path / "mine.txt", recipe)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_card_tells_data_recipe_and_figures(trained: Path, tmp_path: Path, recipe: Recipe) -> None:
    card = (trained / "README.md").read_text()
    assert "6 held-out pairs" in card and "| not stated | not stated |" in card
    sources = [Source("My | <b>pairs</b>\n", "CC BY 4.0", "abc")]
    train_static(PAIRS, tmp_path / "m", recipe, sources=sources, command="epicqa train static `p`")
    card = (tmp_path / "m" / "README.md").read_text()
    assert "| My \\| &lt;b>pairs&lt;/b> | CC BY 4.0 | `abc` |" in card
    assert "| command | `epicqa train static 'p'` |" in card
    assert "no pairs were held out" in card
    assert json.loads((tmp_path / "m" / "training" / "recipe.json").read_text())["epochs"] == 30


def test_sources_by_file_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("x")
    (tmp_path / "b.jsonl").write_text("x")
    listing = tmp_path / "sources.json"
    listing.write_text('{"a.jsonl": {"source": "A", "licence": "MIT", "pairs": 3}}')
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    found = read_sources(listing, paths)
    assert [(one.source, one.licence) for one in found] == [("A", "MIT"), ("b.jsonl", "not stated")]
    assert [one.source for one in read_sources(None, paths)] == ["a.jsonl", "b.jsonl"]
    for content in ("{", "[]", '{"a.jsonl": "MIT"}'):
        listing.write_text(content)
        with pytest.raises(EpicqaError, match=str(listing)):
            read_sources(listing, paths)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abuvwxyz"))),
    st.integers(2, 5),
    st.integers(0, 9),
)
def test_no_batch_holds_a_text_twice(texts: list[tuple[str, str]], size: int, seed: int) -> None:
    pairs = [Pair(query, positive) for query, positive in texts]
    made = list(batches(pairs, size, np.random.default_rng(seed)))
    assert made == list(batches(pairs, size, np.random.default_rng(seed)))
    seen = Counter(position for batch in made for position in batch)
    assert set(seen.values()) <= {1} and set(seen) <= set(range(len(pairs)))
    for batch in made:
        assert 2 <= len(batch) <= size
        for key in ("query", "positive"):
            column = [getattr(pairs[position], key) for position in batch]
            assert len(set(column)) == len(column)
        # Neither may one's query be another's answer.
        for position in batch:
            others = {pairs[other].positive for other in batch if other != position}
            assert pairs[position].query not in others


def test_every_pair_has_its_turn_but_for_a_queue_of_one_query() -> None:
    pairs = [Pair(f"q{i // 4}", f"p{i}") for i in range(400)]
    made = list(batches(pairs, 32, np.random.default_rng(1)))
    assert sorted(position for batch in made for position in batch) == list(range(400))
    assert len(made[0]) == 32
    pairs += [Pair("q0", f"more {i}") for i in range(300)]
    sizes = [len(batch) for batch in batches(pairs, 32, np.random.default_rng(1))]
    assert min(sizes) >= 8 and sum(sizes) >= 400


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(1, 150), st.integers(0, 1000))
def test_figures_are_those_of_a_plain_ranking(queries: int, texts: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Few different values, so that there are ties.
    q = generator.integers(-1, 2, (queries, 3)).astype(np.float32)
    t = generator.integers(-1, 2, (texts, 3)).astype(np.float32)
    relevant = [
        generator.choice(texts, generator.integers(1, min(3, texts) + 1), replace=False).tolist()
        for _ in range(queries)
    ]
    found = figures(q, t, relevant)
    for i, rows in enumerate(relevant):
        order = sorted(range(texts), key=lambda row: (-float(q[i] @ t[row]), row))
        ranks = [order.index(row) + 1 for row in rows]
        assert found.reciprocal_rank[i] == pytest.approx(1 / min(ranks))
        assert found.recall[i] == pytest.approx(sum(rank <= 100 for rank in ranks) / len(ranks))


def test_a_querys_positives_are_all_relevant(base: Path) -> None:
    held = [Pair("a", "one"), Pair("a", "two"), Pair("b", "two", ("bad",))]
    found = figures_on(load_encoder(str(base)), held, [Pair("c", "three"), Pair("d", "one")])
    assert len(found.recall) == 2 and found.mean_recall == 1
