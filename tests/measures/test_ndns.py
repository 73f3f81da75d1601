"""NDNS and its ideal against a slow plain reference: sets, loops, one span at a time."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import Judgments, read_judgments, score_run
from epicqa.measures.ideal import ideal_dns
from epicqa.measures.ndns import PUBLISHED
from epicqa.runs import Run, read_run

GOLDEN = Path(__file__).parent.parent / "golden"

Sentences = dict[str, dict[int, set[str]]]
Span = tuple[str, int, int]


# The reference.


def plain_gain(sentences: Sentences, span: Span, seen: set[str], measure: str) -> tuple[float, set[str]]:
    context, first, last = span
    new: set[str] = set()
    novel = redundant = filler = 0
    for number in range(first, last + 1):
        nuggets = sentences.get(context, {}).get(number, set())
        new |= nuggets - seen
        novel += bool(nuggets - seen)
        redundant += bool(nuggets) and not nuggets - seen
        filler += not nuggets
    size = {
        "exact": filler + redundant + novel,
        "partial": filler + redundant + min(novel, 1),
        "relaxed": filler + min(redundant, 1) + min(novel, 1),
    }[measure]
    return (len(new) * (len(new) + 1) / (len(new) + size) if new else 0.0), new


def plain_dns(sentences: Sentences, spans: list[Span | None], measure: str) -> float:
    total, seen = 0.0, set[str]()
    for rank, span in enumerate(spans[:1000], 1):
        if span is not None:
            gain, new = plain_gain(sentences, span, seen, measure)
            total += gain / math.log2(rank + 1)
            seen |= new
    return total


def plain_ideal(sentences: Sentences, measure: str) -> float:
    spans = [
        (context, first, last)
        for context, annotated in sentences.items()
        for first in range(min(annotated), max(annotated) + 1)
        for last in range(first, max(annotated) + 1)
    ]
    beam: list[tuple[float, set[str], set[Span]]] = [(0.0, set(), set())]
    for rank in range(1, 1001):
        extended = []
        for total, seen, used in beam:
            for span in spans:
                gain, new = plain_gain(sentences, span, seen, measure)
                if span not in used and gain > 0:
                    extended.append((total + gain / math.log2(rank + 1), seen | new, used | {span}))
        if not extended:
            break
        beam = sorted(extended, key=lambda state: -state[0])[:10]
    return max(total for total, _, _ in beam)


# Judgments and runs as files.


def write_judgments(folder: Path, sentences: Sentences, nuggets: int, name: str = "EQ001") -> Judgments:
    annotations: list[dict[str, Any]] = [
        {"sentence_id": f"{context}-S{number:03d}", "nugget_ids": sorted(found)}
        for context, annotated in sentences.items()
        for number, found in annotated.items()
    ]
    raw = {
        "question_id": name,
        "nuggets": [{"nugget_id": f"N{i}", "nugget": "x"} for i in range(nuggets)],
        "annotations": annotations,
    }
    path = folder / "judgments.json"
    path.write_text(json.dumps([raw]))
    return read_judgments(path)


def write_run(folder: Path, passages: list[str], name: str = "EQ001") -> Run:
    path = folder / "run.tsv"
    lines = [f"{name}\tQ0\t{passage}\t{i}\t{5000 - i}\ttag" for i, passage in enumerate(passages, 1)]
    path.write_text("\n".join(lines) + "\n")
    return read_run(path)


CONTEXTS = ["a-C000", "a-C001", "b-b-C010", "c-C999"]


@st.composite
def cases(draw: st.DrawFn, most_nuggets: int) -> tuple[Sentences, int, list[Span]]:
    nuggets = draw(st.integers(1, most_nuggets))
    found = st.sets(st.integers(0, nuggets - 1).map(lambda i: f"N{i}"), min_size=1, max_size=4)
    annotated = st.dictionaries(st.integers(0, 6), found, min_size=1, max_size=4)
    sentences = draw(st.dictionaries(st.sampled_from(CONTEXTS[:3]), annotated, min_size=1, max_size=3))
    span = st.tuples(st.sampled_from(CONTEXTS), st.integers(0, 8), st.integers(0, 3)).map(
        lambda drawn: (drawn[0], drawn[1], drawn[1] + drawn[2])
    )
    return sentences, nuggets, draw(st.lists(span, min_size=1, max_size=15))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ndns")


# 70 nuggets need two words of bits.
@pytest.mark.parametrize("most_nuggets", [3, 12, 70])
def test_equals_the_plain_reference(folder: Path, most_nuggets: int) -> None:
    @settings(max_examples=60, deadline=None)
    @given(cases(most_nuggets))
    def check(case: tuple[Sentences, int, list[Span]]) -> None:
        sentences, nuggets, spans = case
        judgments = write_judgments(folder, sentences, nuggets)
        run = write_run(folder, [f"{c}-S{first:03d}:{c}-S{last:03d}" for c, first, last in spans])
        scores = score_run(run, judgments)
        for variant in PUBLISHED:
            ideal = ideal_dns(judgments.questions["EQ001"], variant)
            assert ideal == pytest.approx(plain_ideal(sentences, variant.name), rel=1e-12)
            expected = plain_dns(sentences, list(spans), variant.name) / ideal
            assert scores.values[variant.name].tolist() == pytest.approx([expected], rel=1e-12, abs=1e-12)

    check()


def golden_rows() -> Iterator[tuple[str, str, list[list[str]]]]:
    for name in "abc":
        for kind, prefix in (("expert", "EQ"), ("consumer", "CQ")):
            rows = (GOLDEN / f"published_{name}_{kind}.tsv").read_text().splitlines()
            yield name, prefix, [row.split("\t") for row in rows]


@pytest.mark.parametrize(("name", "prefix", "rows"), list(golden_rows()))
def test_golden(name: str, prefix: str, rows: list[list[str]]) -> None:
    judgments = read_judgments(GOLDEN / "synthetic_judgments.json")
    run = read_run(GOLDEN / f"synthetic_{name}.tsv")
    scores = score_run(run, judgments, [q for q in judgments.questions if q.startswith(prefix)])
    got = {
        (scores.tag, question_id, measure): values[i]
        for measure, values in scores.values.items()
        for i, question_id in enumerate(scores.question_ids)
    } | {(scores.tag, "MEAN", measure): scores.mean(measure) for measure in scores.values}
    assert got == pytest.approx({(tag, q, m): float(value) for tag, q, m, value in rows}, rel=0, abs=1e-12)


def test_ideal_of_real_judgments(shared: Path) -> None:
    judgments = read_judgments(shared / "mini" / "judgments.dev.json")
    raw = json.loads((shared / "mini" / "judgments.dev.json").read_text())
    for one in raw:
        if one["question_id"] not in ("EQ019", "EQ021", "CQ023", "CQ045"):  # small enough for the reference
            continue
        sentences: Sentences = {}
        for annotation in one["annotations"]:
            context, _, number = annotation["sentence_id"].rpartition("-S")
            sentences.setdefault(context, {})[int(number)] = set(annotation["nugget_ids"])
        for variant in PUBLISHED:
            got = ideal_dns(judgments.questions[one["question_id"]], variant)
            assert got == pytest.approx(plain_ideal(sentences, variant.name), rel=1e-12)


def test_by_hand(tmp_path: Path) -> None:
    judgments = write_judgments(tmp_path, {"a-C000": {0: {"N0", "N1"}, 2: {"N0"}}}, 2)
    run = write_run(tmp_path, ["z-C000-S000:z-C000-S000", "a-C000-S000:a-C000-S002"])
    scores = score_run(run, judgments)
    # Sentences 0 and 2 are novel, 1 is filler: 2 nuggets, NS = 2 * 3 / (2 + n_s).
    discount = math.log2(3)
    # Sentence 0 alone would be worth 2, but that state drops out: the beam goes on with sentence 2, then 0.
    ideal = 1 + 1 / discount
    assert scores.values["exact"][0] == pytest.approx(6 / (2 + 3) / discount / ideal)
    assert scores.values["partial"][0] == pytest.approx(6 / (2 + 2) / discount / ideal)
    alone = score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments)
    assert alone.mean("exact") == pytest.approx(2 / ideal)  # a score can pass 1


def test_span_across_contexts_gains_nothing_and_keeps_its_rank(tmp_path: Path) -> None:
    judgments = write_judgments(tmp_path, {"a-C000": {0: {"N0"}}, "a-C001": {0: {"N0"}}}, 1)
    run = write_run(tmp_path, ["a-C000-S000:a-C001-S000", "a-C000-S000:a-C000-S000"])
    scores = score_run(run, judgments)
    assert scores.values["exact"][0] == pytest.approx(1 / math.log2(3))
    assert [warning.kind for warning in scores.warnings] == ["span"]
    assert not any(warning.fatal for warning in scores.warnings)


def test_only_the_first_thousand_count(tmp_path: Path) -> None:
    judgments = write_judgments(tmp_path, {"a-C000": {0: {"N0"}}}, 1)
    filler = [f"z-C000-S{i:03d}:z-C000-S{i:03d}" for i in range(1000)]
    gold = "a-C000-S000:a-C000-S000"
    assert score_run(write_run(tmp_path, [*filler[:999], gold]), judgments).mean("exact") > 0
    late = score_run(write_run(tmp_path, [*filler, gold]), judgments)
    assert late.mean("exact") == 0
    assert [warning.kind for warning in late.warnings] == ["depth"]


def test_questions_without_gold_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j.json"
    nuggets = [{"nugget_id": "N0", "nugget": "x"}]
    gold = [{"sentence_id": "a-C000-S000", "nugget_ids": ["N0"]}]
    raw = [
        {"question_id": "EQ001", "nuggets": nuggets, "annotations": gold},
        {"question_id": "EQ002", "nuggets": nuggets, "annotations": []},
        {"question_id": "EQ003", "nuggets": [], "annotations": []},
        {"question_id": "CQ001", "nuggets": nuggets, "annotations": gold},
    ]
    path.write_text(json.dumps(raw))
    judgments = read_judgments(path)
    scores = score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments)
    assert scores.question_ids == ("EQ001",)  # an expert run is not held against general questions
    assert scores.mean("relaxed") == 1
    assert [str(warning) for warning in scores.warnings] == [f"{path}: no nuggets, left out: EQ002, EQ003"]
    both = score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments, list(judgments.questions))
    assert both.mean("exact") == 0.5
    with pytest.raises(EpicqaError, match="no question to score"):
        score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments, ["EQ003"])


def test_judged_sentences_absurdly_far_apart(tmp_path: Path) -> None:
    judgments = write_judgments(tmp_path, {"a-C000": {0: {"N0"}, 999_999_999: {"N0"}}}, 1)
    with pytest.raises(EpicqaError, match=r"EQ001: judged sentences of a-C000 lie 1000000000 apart"):
        score_run(write_run(tmp_path, ["a-C000-S000:a-C000-S000"]), judgments)
