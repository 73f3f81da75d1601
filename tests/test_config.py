import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.config import Config, as_dict, load_config
from epicqa.errors import EpicqaError


def refused(text: str, folder: Path) -> str:
    path = folder / "c.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(EpicqaError) as error:
        load_config(path, {})
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_defaults_then_the_file_then_flags(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('k1 = 2\ndepth = 50\nretriever = "bm25"\nrm3 = true\nbudget = 60\n')
    config = load_config(path, {"depth": 7, "b": None, "rm3": False, "diversity": "mmr"})
    assert config == Config(k1=2.0, depth=7, retriever="bm25", rm3=False, budget=60.0, diversity="mmr")
    assert config.b == Config().b
    assert load_config(None, {"depth": None}) == Config()
    assert load_config(path, {"depth": 7}, Config(k1=9, reranker="none")) == load_config(
        path, {"depth": 7, "reranker": "none"}
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kl = 1.2", "unknown setting 'kl', expected one of index, questions,"),
        ("[bm25]\nk1 = 1.2", "unknown setting 'bm25'"),
        ('k1 = "1.2"', "k1 = '1.2', expected a number"),
        ("k1 = true", "k1 = True, expected a number"),
        ("rm3 = 1", "rm3 = 1, expected true or false"),
        ("depth = 10.0", "depth = 10.0, expected a whole number"),
        ("depth = false", "depth = False, expected a whole number"),
        ("index = 1", "index = 1, expected text"),
        ("index = [1]", "index = [1], expected text"),
        ("index = 2020-04-01", "index = datetime.date(2020, 4, 1), expected text"),
        ('retriever = "colbert"', "retriever = 'colbert', expected bm25, dense, hybrid"),
        ('task = "ea"', "task = 'ea', expected ae, e2e"),
        ('fields = "title"', "fields = 'title', expected question, query,"),
        ('questions = "a\\u0000b"', "questions = 'a\\x00b', expected text"),
        ("depth = 0", "depth is 0, expected 1 to 1000"),
        ("depth = 1001", "depth is 1001, expected 1 to 1000"),
        ("b = 1.1", "b is 1.1, expected 0 to 1"),
        ("k1 = nan", "k1 is nan, expected 0 to 100"),
        ("budget = inf", "budget is inf, expected 0 to"),
        ("budget = -1", "budget is -1.0, expected 0 to"),
        ('budget = "60s"', "budget = '60s', expected a number"),
        ("mmr_weight = -0.1", "mmr_weight is -0.1, expected 0 to 1"),
        ("length_weight = -1", "length_weight is -1.0, expected 0 to 100"),
        ("rerank_depth = 0", "rerank_depth is 0, expected 1 to 1000"),
        ("reranker = false", "reranker = False, expected text"),
        ("bi_encoder = 5", "bi_encoder = 5, expected text"),
        ('backend = "onnx"', "backend = 'onnx', expected auto, torch, openvino"),
        ('audience = "children"', "audience = 'children', expected expert, general"),
        ('diversity = "xquad"', "diversity = 'xquad', expected mmr, novelty, none"),
        # What it was in earlier versions.
        ("diversity = 0.3", "diversity = 0.3, expected mmr, novelty, none"),
        ("diversity = 0", "diversity = 0, expected mmr, novelty, none"),
        ("rerank_seconds = 5.0", "unknown setting 'rerank_seconds', expected one of index,"),
        (f"depth = 1{'0' * 400}", "depth is 1000"),
        (f"k1 = 1{'0' * 400}", "k1 = 1000"),
        (f"k1 = 1{'0' * 5000}", "not TOML ("),
        ("k1 = ", "not TOML ("),
        ("k1 = 1\nk1 = 2", "not TOML ("),
        ("k1 = " + "[" * 5000, "not TOML ("),
    ],
)
def test_bad_files_are_refused_in_one_line(line: str, message: str, tmp_path: Path) -> None:
    assert refused(line, tmp_path).startswith(message)


def test_a_file_is_refused_although_a_flag_would_win(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("depth = 0")
    with pytest.raises(EpicqaError, match=r"c\.toml: depth is 0"):
        load_config(tmp_path / "c.toml", {"depth": 5})


def test_flags_are_checked_alike_and_no_file_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("depth = 5")
    for flags, message in (
        ({"depth": 0}, "depth is 0, expected 1 to 1000"),
        ({"k1": math.nan}, "k1 is nan, expected 0 to 100"),
        ({"retreiver": "bm25"}, "unknown setting 'retreiver'"),
    ):
        with pytest.raises(EpicqaError) as error:
            load_config(tmp_path / "c.toml", flags)
        assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"k1 = 1\n\xff", "c.toml:2: not UTF-8"),
        (None, "expected a readable file"),
    ],
)
def test_unreadable_files(data: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(data) if data else path.mkdir()
    with pytest.raises(EpicqaError, match=message):
        load_config(path, {})
    with pytest.raises(EpicqaError, match="absent"):
        load_config(tmp_path / "absent.toml", {})


def test_a_byte_order_mark_is_no_setting(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xef\xbb\xbfk1 = 1.5\n")
    assert load_config(tmp_path / "c.toml", {}).k1 == 1.5


def test_python_values_of_a_close_type_are_taken_and_others_refused() -> None:
    config = Config(
        k1=1,
        depth=np.int64(5),
        b=np.float32(0.5),
        questions=Path("q.json"),
    )
    assert config == Config(k1=1.0, depth=5, b=0.5, questions="q.json")
    assert json.dumps(as_dict(config)) == json.dumps(
        as_dict(Config(k1=1.0, depth=5, b=0.5, questions="q.json"))
    )
    for wrong in ({"k1": "1"}, {"depth": 1.5}, {"depth": None}, {"retriever": "BM25"}, {"rm3": None}):
        with pytest.raises(EpicqaError, match=f"{next(iter(wrong))} = .*expected"):
            Config(**wrong)


configs = st.builds(
    Config,
    index=st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    depth=st.integers(1, 1000),
    retriever=st.sampled_from([None, "bm25", "dense", "hybrid"]),
    k1=st.floats(0, 100),
    b=st.floats(0, 1),
    rm3=st.booleans(),
    reranker=st.sampled_from(["epicqa", "none", "a/b"]),
    audience=st.sampled_from([None, "expert", "general"]),
    budget=st.none() | st.floats(0, 1e9),
    diversity=st.sampled_from([None, "mmr", "novelty", "none"]),
    mmr_weight=st.floats(0, 1),
)


@given(configs)
def test_a_manifest_holds_a_configuration_whole(
    tmp_path_factory: pytest.TempPathFactory, config: Config
) -> None:
    path = tmp_path_factory.mktemp("m") / "run.json"
    path.write_text(json.dumps({"config": as_dict(config), "tag": "x"}))
    assert load_config(path, {}) == config


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "a JSON list"),
        ("{}", "no 'config'"),
        ('{"config": []}', "no 'config'"),
        ('{"config": {"x": 1}}', "unknown setting 'x'"),
        ('{"config": {"k1": NaN}}', "k1 is nan"),
        ('{"config": {"depth": null}}', "depth = None, expected a whole number"),
        ('{"config": {"diversity": 0.3, "rerank_seconds": null}}', "unknown setting 'rerank_seconds'"),
        ('{"config": {"diversity": 0.3}}', "diversity = 0.3, expected mmr, novelty, none"),
        ('{"config"', "broken JSON"),
    ],
)
def test_bad_manifests(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(EpicqaError, match=message) as error:
        load_config(path, {})
    assert str(error.value).startswith(str(path))
