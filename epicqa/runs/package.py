"""Pack runs as a batch to submit to TAC."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicqa.errors import EpicqaError
from epicqa.files import remove_tree, sync_folder
from epicqa.problems import Problem
from epicqa.questions import kind_of
from epicqa.runs.check import check_runs
from epicqa.runs.manifest import read_manifest
from epicqa.runs.read import parse_run

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,23}")
_NAME_RULE = "expected 1 to 24 letters, digits, '_', '-' or '.', a letter or digit first"


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a batch; ``text`` is the run file's content as it is sent."""

    tag: str
    text: bytes
    tasks: tuple[str, ...]
    part: str | None
    description: str
    questions: int
    passages: int

    @property
    def file(self) -> str:
        return f"{self.tag}.tsv"

    def record(self) -> dict[str, Any]:
        return {
            "tag": self.tag,
            "file": self.file,
            "tasks": list(self.tasks),
            "part": self.part,
            "description": self.description,
            "questions": self.questions,
            "passages": self.passages,
            "sha256": hashlib.sha256(self.text).hexdigest(),
        }


def read_entry(path: Path, descriptions: Mapping[str, str]) -> Entry:
    """A run as it goes into a batch: tab-separated UTF-8 without byte order mark or blank lines.

    The part (``ae``, ``e2e``) and, where ``descriptions`` has none for the tag, the description come from the
    manifest's ``config``.

    Raises:
        EpicqaError: the run cannot be read, or its manifest is broken.
    """
    run, _ = parse_run(path)
    config = (read_manifest(path) or {}).get("config", {})
    rows = (line.split() for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return Entry(
        tag=run.tag,
        text=b"".join(b"\t".join(row) + b"\n" for row in rows if row),
        tasks=tuple(sorted({kind_of(question_id) or "other" for question_id in run.questions})),
        part=config.get("task"),
        description=descriptions.get(run.tag) or config.get("description") or "",
        questions=len(run.questions),
        passages=sum(len(passages) for passages in run.questions.values()),
    )


def make_batch(
    paths: Sequence[Path], team: str, folder: Path, index: str | None, descriptions: Mapping[str, str]
) -> tuple[Path | None, list[Problem]]:
    """Check runs and pack them, or write nothing when anything about the batch is wrong.

    Args:
        paths: run files.
        team: the team's name.
        folder: a new or an empty folder for the batch.
        index: name of the index to check against instead of the manifests'.
        descriptions: tag -> what the run does.

    Returns:
        The archive's path, or None where a problem is fatal; all problems.

    Raises:
        EpicqaError: the folder cannot be written.
    """
    problems = []
    entries: dict[Path, Entry] = {}
    for path, found in check_runs(paths, index).items():
        problems += found
        # A run that is unreadable as a whole has said so in its problems.
        with suppress(EpicqaError):
            entries[path] = read_entry(path, descriptions)
    problems += batch_problems(paths, entries, team, folder, descriptions)
    if any(problem.fatal for problem in problems):
        return None, problems
    return write_batch(list(entries.values()), team, folder), problems


def batch_problems(
    paths: Sequence[Path],
    entries: Mapping[Path, Entry],
    team: str,
    folder: Path,
    descriptions: Mapping[str, str],
) -> list[Problem]:
    """What forbids a batch beyond its runs' own problems: names, tags that occur twice, the folder."""
    problems = []
    if not _NAME.fullmatch(team):
        problems.append(Problem(folder, None, "team", f"team {team!r}, {_NAME_RULE}"))
    if folder.is_dir():
        if any(folder.iterdir()):
            problems.append(Problem(folder, None, "folder", "not empty, expected a new or an empty folder"))
    elif folder.exists():
        problems.append(Problem(folder, None, "folder", "a file, expected a new or an empty folder"))
    problems += [
        Problem(path, None, "twice", "given twice, expected each run once")
        for path, count in Counter(paths).items()
        if count > 1
    ]
    first: dict[str, Path] = {}
    for path, entry in entries.items():
        if not _NAME.fullmatch(entry.tag):
            problems.append(Problem(path, None, "tag", f"run tag {entry.tag!r}, {_NAME_RULE}"))
        # Tags name files, and some file systems fold case.
        other = first.setdefault(entry.tag.lower(), path)
        if other is not path:
            message = f"run tag {entry.tag!r} is that of {other} too, expected one tag a run"
            problems.append(Problem(path, None, "tag", message))
    tags = {entry.tag for entry in entries.values()}
    for tag in descriptions:
        if tag not in tags:
            message = f"a description for tag {tag!r}, which no run has"
            problems.append(Problem(folder, None, "description", message))
    return problems


def write_batch(entries: Sequence[Entry], team: str, folder: Path) -> Path:
    """Write a batch: one file a run, ``SUBMISSION.json``, and all of these in ``TEAM.tar.gz``.

    The folder appears whole or not at all; equal entries give equal bytes.

    Args:
        entries: the runs, without problems.
        team: the team's name.
        folder: a new or an empty folder.

    Returns:
        The archive's path.

    Raises:
        EpicqaError: the folder cannot be written.
    """
    entries = sorted(entries, key=lambda entry: entry.tag)
    summary = {"team": team, "runs": [entry.record() for entry in entries]}
    files = {entry.file: entry.text for entry in entries}
    files["SUBMISSION.json"] = (json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode()
    archive = f"{team}.tar.gz"
    files[archive] = _archive(files, team)
    temporary = folder.absolute().with_name(f".{folder.absolute().name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        for name, data in files.items():
            with (temporary / name).open("xb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
        temporary.replace(folder)
        sync_folder(folder.absolute().parent)
    except OSError as error:
        raise EpicqaError(f"{folder}: {error.strerror}, expected a folder to write") from None
    finally:
        remove_tree(temporary)
    return folder / archive


def _archive(files: Mapping[str, bytes], team: str) -> bytes:
    """A gzip tar of the files in a folder of the team's name; no times, owners or host in it."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(files):
            member = tarfile.TarInfo(f"{team}/{name}")
            member.size = len(files[name])
            member.mode = 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    return packed.getvalue()
