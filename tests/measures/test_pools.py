"""judged@20 and condensed runs against plain loops."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.errors import EpicqaError
from epicqa.measures import Judgments, read_judgments, score_run
from epicqa.measures.pools import JUDGED, JUDGED_DEPTH, Pools, condensed, judged_share, read_pools
from epicqa.runs import Run, read_run

QUESTIONS = ("EQ001", "CQ002", "EQ003")
CONTEXTS = ("a-b-C000", "a-b-C001", "c-C1000", "é-C002", "x-C000-C003")


@dataclass(frozen=True)
class Passage:
    """A line of a run; ``score`` and ``rank`` are few, so that there are ties."""

    question: str
    first: str
    last: str
    rank: int
    score: str


passages = st.builds(
    Passage,
    st.sampled_from(QUESTIONS),
    st.sampled_from(CONTEXTS),
    st.sampled_from([*CONTEXTS, None, None, None, None, None, None]),
    st.integers(0, 3),
    st.sampled_from(["9", "10", "9.0", "-1", "1e1"]),
).map(lambda one: one if one.last else Passage(one.question, one.first, one.first, one.rank, one.score))
pools_of_questions = st.dictionaries(
    st.sampled_from(QUESTIONS), st.lists(st.sampled_from(CONTEXTS), max_size=4)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pools")


def judgments_in(
    folder: Path, context: str = "a-b-C000", question_ids: tuple[str, ...] = QUESTIONS
) -> Judgments:
    """Questions of one nugget each, stated in sentences 0 and 2 of one context."""
    path = folder / "judgments.json"
    path.write_text(
        json.dumps(
            [
                {
                    "question_id": name,
                    "nuggets": [{"nugget_id": "n", "nugget": "N"}],
                    "annotations": [
                        {"sentence_id": f"{context}-S00{number}", "nugget_ids": ["n"]} for number in (0, 2)
                    ],
                }
                for name in question_ids
            ]
        )
    )
    return read_judgments(path)


def run_in(folder: Path, drawn: list[Passage]) -> Run:
    path = folder / "run.tsv"
    path.write_text(
        "".join(
            f"{one.question}\tQ0\t{one.first}-S000:{one.last}-S001\t{one.rank}\t{one.score}\tt\n"
            for one in drawn
        )
    )
    return read_run(path)


def pools_in(folder: Path, content: object, judgments: Judgments) -> Pools:
    path = folder / "pools.json"
    path.write_text(json.dumps(content))
    return read_pools(path, judgments)


def plain_order(drawn: list[Passage], question: str, definition: str) -> list[tuple[int, Passage]]:
    """A question's passages with their lines, best first."""
    lines = [(line, one) for line, one in enumerate(drawn, 1) if one.question == question]
    if definition == "tac2020":
        return sorted(lines, key=lambda pair: pair[1].score, reverse=True)
    return sorted(lines, key=lambda pair: (-float(pair[1].score), pair[1].rank))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(passages, min_size=1, max_size=60),
    pools_of_questions,
    st.sampled_from(["published", "tac2020"]),
)
def test_judged_share_against_a_plain_loop(
    folder: Path, drawn: list[Passage], drawn_pools: dict[str, list[str]], definition: str
) -> None:
    judgments = judgments_in(folder)
    pools = pools_in(folder, drawn_pools, judgments)
    expected = []
    for question in QUESTIONS:
        first = plain_order(drawn, question, definition)[:20]
        # What the judgments annotate was read, too.
        pool = {*drawn_pools[question], "a-b-C000"} if question in drawn_pools else set()
        expected.append(sum(one.first in pool for _, one in first) / len(first) if first else 0.0)
    share = judged_share(run_in(folder, drawn), judgments, QUESTIONS, pools, definition)
    assert share.tolist() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.lists(passages, min_size=1, max_size=40), pools_of_questions)
def test_condensed_against_a_plain_loop(
    folder: Path, drawn: list[Passage], drawn_pools: dict[str, list[str]]
) -> None:
    judgments = judgments_in(folder)
    pools = pools_in(folder, drawn_pools, judgments)
    run = run_in(folder, drawn)
    short, warnings = condensed(run, pools)
    assert (short.path, short.tag, list(short.questions)) == (run.path, run.tag, list(run.questions))
    for question, of_question in short.questions.items():
        order = plain_order(drawn, question, "published")
        if question in drawn_pools:
            pool = {*drawn_pools[question], "a-b-C000"}
            order = [(line, one) for line, one in order if one.first in pool]
        assert of_question.line.tolist() == [line for line, _ in order]
        assert [short.contexts[code] for code in of_question.first_context] == [one.first for _, one in order]
    without = [question for question in run.questions if question not in drawn_pools]
    assert [warning.message for warning in warnings] == (
        [f"no pool, not condensed: {', '.join(without)}"] if without else []
    )
    # Nothing of the run itself has changed.
    assert {name: len(one) for name, one in run.questions.items()} == {
        name: sum(one.question == name for one in drawn) for name in run.questions
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(passages, min_size=1, max_size=40), pools_of_questions)
def test_scores_of_a_condensed_run_are_those_of_the_shorter_file(
    folder: Path, drawn: list[Passage], drawn_pools: dict[str, list[str]]
) -> None:
    judgments = judgments_in(folder)
    pools = pools_in(folder, drawn_pools, judgments)
    kept = [
        one for one in drawn if one.question not in drawn_pools or one.first in pools.questions[one.question]
    ]
    short, _ = condensed(run_in(folder, drawn), pools)
    for definition in ("published", "tac2020"):
        found = score_run(short, judgments, QUESTIONS, definition=definition)
        if not kept:
            assert not any(values.any() for values in found.values.values())
            continue
        expected = score_run(run_in(folder, kept), judgments, QUESTIONS, definition=definition)
        for name, values in expected.values.items():
            assert found.values[name].tolist() == values.tolist()


def test_only_the_first_twenty_passages_count(tmp_path: Path) -> None:
    judgments = judgments_in(tmp_path)
    pools = pools_in(tmp_path, {"EQ001": []}, judgments)
    inside, outside = (Passage("EQ001", context, context, 1, "1") for context in ("a-b-C000", "c-C000"))
    assert (JUDGED, JUDGED_DEPTH) == ("judged@20", 20)
    for drawn, share in [
        ([inside] * 20 + [outside] * 20, 1.0),
        ([outside] + [inside] * 19 + [outside], 0.95),
        ([outside, inside, outside], 1 / 3),
        ([outside] * 20 + [inside], 0.0),
    ]:
        assert judged_share(run_in(tmp_path, drawn), judgments, ["EQ001"], pools).tolist() == [share]


def test_ids_without_padding(tmp_path: Path) -> None:
    judgments = judgments_in(tmp_path, "c-C7")
    assert judgments.questions["EQ001"].contexts == {"c-C007": 0}
    pools = pools_in(tmp_path, {"EQ001": ["a-b-C1", "x-C0002", "y-C1234"]}, judgments)
    assert pools.questions == {"EQ001": {"a-b-C001", "x-C002", "y-C1234", "c-C007"}}
    drawn = [
        Passage("EQ001", context, context, 1, "1") for context in ("a-b-C001", "x-C2", "c-C07", "y-C123")
    ]
    assert judged_share(run_in(tmp_path, drawn), judgments, ["EQ001"], pools).tolist() == [0.75]
    assert condensed(run_in(tmp_path, drawn), pools)[0].questions["EQ001"].line.tolist() == [1, 2, 3]


def test_pools_of_questions_without_judgments(tmp_path: Path) -> None:
    judgments = judgments_in(tmp_path, question_ids=("EQ001",))
    pools = pools_in(tmp_path, {"EQ009": ["c-C000"], "EQ001": []}, judgments)
    assert pools.questions == {"EQ009": {"c-C000"}, "EQ001": {"a-b-C000"}}
    run = run_in(
        tmp_path, [Passage("EQ009", "d-C000", "d-C000", 1, "1"), Passage("EQ001", "c-C000", "c-C000", 1, "1")]
    )
    short, warnings = condensed(run, pools)
    assert (warnings, [len(one) for one in short.questions.values()]) == ([], [0, 0])
    assert judged_share(run, judgments, ["EQ001"], pools).tolist() == [0.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", ":1: broken JSON"),
        ('{\n"EQ001": [],\n}', ":3: broken JSON"),
        ("[]", ": a JSON list, expected a JSON object of question id -> list of context ids"),
        ("null", ": a JSON NoneType, expected a JSON object"),
        ('{"EQ001": [], "EQ002": "a-C000"}', ": EQ002: a str, expected a JSON object of question id"),
        ('{"EQ001": {"a-C000": 1}}', ": EQ001: a dict, expected"),
        ('{"EQ001": null}', ": EQ001: a NoneType, expected"),
        ('{"EQ001": ["a-C000", "a-C000-S000"]}', ": EQ001: context 2: malformed context id 'a-C000-S000'"),
        ('{"EQ001": ["a-C000", "b c-C000"]}', ": EQ001: context 2: malformed context id 'b c-C000'"),
        ('{"EQ001": ["a-C1000000000"]}', ": EQ001: context 1: malformed context id"),
        ('{"EQ001": [7]}', ": EQ001: context 1: malformed context id"),
        ('{"EQ001": [["a-C000"]]}', ": EQ001: context 1: malformed context id"),
    ],
)
def test_malformed_pools(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "pools.json"
    path.write_text(content)
    with pytest.raises(EpicqaError) as error:
        read_pools(path, judgments_in(tmp_path))
    assert str(error.value).startswith(f"{path}{said}")
    assert "\n" not in str(error.value)
    with pytest.raises(EpicqaError, match="No such file"):
        read_pools(tmp_path / "absent.json", judgments_in(tmp_path))


def test_the_mini_collection(shared: Path, tmp_path: Path) -> None:
    judgments = read_judgments(shared / "mini" / "judgments.dev.json")
    pools = read_pools(shared / "mini" / "pools.dev.json", judgments)
    assert list(pools.questions) == list(judgments.questions)
    random = np.random.default_rng(7)
    drawn = []
    for question, pool in pools.questions.items():
        for rank, context in enumerate(random.permutation(sorted(pool))[:25].tolist()):
            drawn.append(Passage(question, context, context, rank, str(99 - rank)))
    run = run_in(tmp_path, drawn)
    names = list(judgments.questions)
    assert judged_share(run, judgments, names, pools).tolist() == [1.0] * len(names)
    short, warnings = condensed(run, pools)
    assert warnings == []
    whole = score_run(run, judgments)
    assert whole.question_ids == tuple(names)
    assert max(values.max() for values in whole.values.values()) > 0
    for name, values in score_run(short, judgments).values.items():
        assert values.tolist() == whole.values[name].tolist()
    # Others between them change the one share, and nothing of the condensed run.
    mixed = []
    for i, one in enumerate(drawn):
        mixed += [Passage(one.question, f"new{i}-C000", f"new{i}-C000", one.rank, one.score + ".5"), one]
    mixed_run = run_in(tmp_path, mixed)
    assert judged_share(mixed_run, judgments, names, pools).tolist() == [0.5] * len(names)
    for name, values in score_run(condensed(mixed_run, pools)[0], judgments).values.items():
        assert values.tolist() == whole.values[name].tolist()
        assert (score_run(mixed_run, judgments).values[name] <= values).all()
