"""Experiments as data: commands, inputs with fingerprints, and the scores that came out."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError
from epicqa.files import cache_folder, sha256_of
from epicqa.jsonfiles import read_text

_KEYS = ("description", "commands", "run", "judgments", "inputs", "expected", "tolerance")


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        path: the file that it was read from.
        description: what it shows, in a line.
        commands: ``epicqa`` commands, run one after another.
        run: the run file that they write.
        judgments: the answer file that it is scored with; None: what the run's manifest names.
        inputs: SHA-256 of every file that goes in, by path from the current folder.
        expected: mean of each measure over the judged questions.
        tolerance: largest difference that is no news.
    """

    path: Path
    description: str
    commands: tuple[str, ...]
    run: str
    judgments: str | None
    inputs: dict[str, str]
    expected: dict[str, float]
    tolerance: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment came to: ``same``, ``moved``, ``left out`` or ``inputs differ``, and why."""

    experiment: Experiment
    status: str
    measured: dict[str, float]
    why: str = ""


def read_experiment(path: Path) -> Experiment:
    """Read an experiment's TOML file.

    Raises:
        EpicqaError: it is not TOML, a key is missing, unknown or of a wrong type, or a command is not
            epicqa's.
    """
    try:
        found = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise EpicqaError(f"{path}: not TOML ({error}), expected an experiment") from None
    if unknown := sorted(set(found) - set(_KEYS)):
        raise EpicqaError(f"{path}: unknown key {unknown[0]!r}, expected {', '.join(_KEYS)}")
    experiment = Experiment(
        path,
        _value(path, found, "description", str),
        tuple(_value(path, found, "commands", list)),
        _value(path, found, "run", str),
        _value(path, found, "judgments", str) if "judgments" in found else None,
        _value(path, found, "inputs", dict),
        _value(path, found, "expected", dict),
        float(_value(path, found, "tolerance", float)),
    )
    for command in experiment.commands:
        if not isinstance(command, str) or shlex.split(command)[:1] != ["epicqa"]:
            raise EpicqaError(f"{path}: command {command!r}, expected one that begins with epicqa")
    for name, value in experiment.expected.items():
        if not isinstance(value, float):
            raise EpicqaError(f"{path}: expected {name} = {value!r}, expected a number such as 0.25")
    return experiment


def perform(experiment: Experiment) -> Outcome:
    """Run an experiment's commands, in a home of their own under the cache, and score the run.

    Raises:
        EpicqaError: a command failed, or the run cannot be scored.
    """
    from epicqa.measures import read_judgments, score_run
    from epicqa.runs import judgments_of, read_run

    for name, fingerprint in experiment.inputs.items():
        if not Path(name).is_file():
            return Outcome(experiment, "left out", {}, f"no {name}")
        if sha256_of(Path(name)) != fingerprint:
            return Outcome(experiment, "inputs differ", {}, f"{name} is not the file that was used")
    home = (cache_folder() / "eval").absolute()
    home.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "EPICQA_HOME": str(home)}
    for command in experiment.commands:
        words = [sys.executable, "-m", "epicqa", *shlex.split(command)[1:]]
        if subprocess.run(words, env=environment, check=False, stdout=subprocess.DEVNULL).returncode:
            raise EpicqaError(f"{experiment.path}: failed: {command}")
    path = home / experiment.run
    judged = Path(experiment.judgments) if experiment.judgments else judgments_of(path)
    scores = score_run(read_run(path), read_judgments(judged))
    measured = {name: float(scores.mean(name)) for name in experiment.expected}
    moved = [
        f"{name} {value - experiment.expected[name]:+.4f}"
        for name, value in measured.items()
        if abs(value - experiment.expected[name]) > experiment.tolerance
    ]
    return Outcome(experiment, "moved" if moved else "same", measured, ", ".join(moved))


def _value(path: Path, found: dict[str, Any], key: str, kind: type) -> Any:
    if key not in found:
        raise EpicqaError(f"{path}: no {key!r}, expected {', '.join(_KEYS)} (judgments may be left out)")
    if not isinstance(found[key], kind):
        raise EpicqaError(f"{path}: {key} = {found[key]!r}, expected a {kind.__name__}")
    return found[key]
