import json
from pathlib import Path
from typing import Any

import pytest

from epicqa.errors import EpicqaError
from epicqa.measures import read_judgments

GOLDEN = Path(__file__).parent.parent / "golden"


def question(
    annotations: list[tuple[str, list[str]]], nuggets: int = 2, name: str = "EQ001"
) -> dict[str, Any]:
    return {
        "question_id": name,
        "nuggets": [{"nugget_id": f"N{i}", "nugget": f"fact {i}"} for i in range(nuggets)],
        "annotations": [{"sentence_id": where, "nugget_ids": what} for where, what in annotations],
    }


def write(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "judgments.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_shape(tmp_path: Path) -> None:
    raw = question(
        [("b-C001-S010", ["N69"]), ("a-b-C000-S002", ["N0"]), ("b-C001-S002", ["N1", "N64"])], nuggets=70
    )
    judged = read_judgments(write(tmp_path, [raw])).questions["EQ001"]
    assert judged.contexts == {"b-C001": 0, "a-b-C000": 1}
    assert judged.context_first.tolist() == [0, 2, 3]
    assert judged.number.tolist() == [2, 10, 2]
    assert judged.mask.tolist() == [[2, 1], [0, 1 << 5], [1, 0]]
    assert judged.nuggets["N69"] == "fact 69"


def test_annotated_twice_is_a_union(tmp_path: Path) -> None:
    # The same sentence though the id is padded otherwise.
    raw = question([("a-C000-S001", ["N0"]), ("a-C0000-S0001", ["N1"]), ("a-C000-S002", [])])
    judgments = read_judgments(write(tmp_path, [raw]))
    assert judgments.questions["EQ001"].mask.tolist() == [[3]]
    assert [warning.kind for warning in judgments.warnings] == ["annotated-twice", "no-nuggets"]
    assert "EQ001: a-C0000-S0001: annotated twice" in str(judgments.warnings[0])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "expected a JSON list"),
        ([], "no judgments"),
        (["x"], "question 1: not an object"),
        ([{"nuggets": [], "annotations": []}], "question 1: 'question_id' is missing"),
        ([{"question_id": "EQ001", "annotations": []}], "EQ001: 'nuggets' is missing"),
        ([{"question_id": "EQ001", "nuggets": []}], "EQ001: 'annotations' is missing"),
        ([{"question_id": "EQ001", "nuggets": {}, "annotations": []}], "'nuggets' is of another type"),
        ([question([]), question([])], "EQ001: occurs twice"),
        ([question([("a-C000", ["N0"])])], "annotation 1: malformed sentence id 'a-C000'"),
        ([question([("a-C000-S000", ["N7"])])], "a-C000-S000: unknown nugget 'N7'"),
        ([question([("a-C000-S000", [["N0"]])])], "a-C000-S000: unknown nugget ['N0']"),  # type: ignore[list-item]
        (
            [{"question_id": "EQ001", "nuggets": [{"nugget_id": "N", "nugget": ""}] * 2, "annotations": []}],
            "nugget N occurs twice",
        ),
        (
            [{"question_id": "EQ001", "nuggets": [{"nugget_id": "N"}], "annotations": []}],
            "N: 'nugget' is missing",
        ),
        (
            [{"question_id": "EQ001", "nuggets": [], "annotations": [{"sentence_id": "a-C000-S000"}]}],
            "a-C000-S000: 'nugget_ids' is missing",
        ),
    ],
)
def test_bad_judgments(tmp_path: Path, value: object, said: str) -> None:
    path = write(tmp_path, value)
    with pytest.raises(EpicqaError) as error:
        read_judgments(path)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_real_files(shared: Path) -> None:
    mini = read_judgments(shared / "mini" / "judgments.dev.json")
    assert len(mini.questions) == 27
    expert = [judged for name, judged in mini.questions.items() if name.startswith("EQ")]
    assert sum(len(judged.nuggets) for judged in expert) == 380
    assert sum(len(judged.number) for judged in expert) == 500
    assert mini.warnings == ()
    assert len(read_judgments(shared / "epicqa" / "healthver-derived" / "judgments.json").questions) == 60
    assert len(read_judgments(GOLDEN / "synthetic_judgments.json").warnings) == 33
