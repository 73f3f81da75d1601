"""The data set as the track published it: which parts there are, and what of them lies in a folder."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from epicqa import misplaced, streams
from epicqa.corpus.sources import BadDocument, parse, records
from epicqa.corpus.sources.reading import is_document_file
from epicqa.errors import EpicqaError
from epicqa.files import files_below
from epicqa.problems import Problem
from epicqa.questions import KINDS, TASKS, read_questions

Kind = Literal["questions", "documents", "answers", "document judgments"]

_TRACK = "https://bionlp.nlm.nih.gov/epic_qa/"
_ARTICLE = "https://doi.org/10.1038/s41597-022-01533-w"
_CORD19 = "https://github.com/allenai/cord19"
_TREC_COVID = "https://ir.nist.gov/trec-covid/data.html"
_PAGES = f"see {_TRACK} and {_ARTICLE}"

_SUFFIXES = tuple(f"{kind}{packed}" for kind in (".jsonl", ".tar") for packed in ("", *streams.SUFFIXES))
_HEAD = 1 << 16
_TOLD = 1000

_ANSWERED = re.compile(rb'"(?:nuggets|annotations)"')
_JUDGED = re.compile(rb"\S+[ \t]+(?:[0-9.]+|Q0)[ \t]+\S+[ \t]+[+-]?[0-9]+[ \t\r]*(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the published data set.

    Attributes:
        path: from the data set's folder: a question file, the folder of a collection, or, of answers and
            judgments, whose files have no fixed names, the folder that they lie in.
        what: it is, in words.
        kind: what its count is of: questions, documents, judged questions, or judged pairs of a topic and a
            document.
        asked: the questions it belongs to, expert, general or all of its task.
        published: how many there are; None where that is not told.
        obtained: where it comes from, in a line.
        archived: a collection's name in the track's archive, where that is another.
    """

    path: str
    what: str
    kind: Kind
    asked: str
    published: int | None
    obtained: str = _PAGES
    archived: str = ""

    @property
    def task(self) -> str:
        """``ae`` or ``e2e``."""
        return self.path.partition("/")[0]

    @property
    def name(self) -> str:
        """Its path, or task and kind where several parts have one path."""
        return self.path if "/" in self.path else f"{self.path}: {self.kind}"


def _unpacked(archive: str, folder: str) -> str:
    return f"see {_TRACK}#collection, {folder} in epic_qa_{archive}.tar.gz"


def _rebuilt(release: str) -> str:
    return (
        f"; or, with other sentence ids, from CORD-19's release of {release}, {_CORD19}, "
        "with epicqa collect cord19"
    )


_PAPERS = "2020-10-22-new"
_PUBLIC = "consumer_2020-11-02"
_NUGGETS = "nuggets, and the sentences that state them"
_RELEVANT = "documents relevant to a question"
_TOPICS = f"for the expert questions those of TREC-COVID, topics 1 to 45, see {_TREC_COVID}"

PARTS: tuple[Part, ...] = (
    Part("ae/expert_questions.json", "preliminary expert questions", "questions", "expert", 45),
    Part("ae/general_questions.json", "preliminary general questions", "questions", "general", 42),
    Part("ae/cord19", "papers", "documents", "expert", 129_069, _PAGES + _rebuilt("2020-06-19")),
    Part("ae/general", "pages for the public", "documents", "general", 925),
    Part("ae", _NUGGETS, "answers", "all", None),
    Part("ae", _RELEVANT, "document judgments", "all", None, _TOPICS),
    Part("e2e/expert_questions.json", "primary expert questions", "questions", "expert", 30),
    Part("e2e/general_questions.json", "primary general questions", "questions", "general", 30),
    Part(
        *("e2e/cord19", "papers", "documents", "expert", 236_035),
        _unpacked("cord_2020-10-22-split-corrected", _PAPERS) + _rebuilt("2020-10-22"),
        _PAPERS,
    ),
    Part(
        *("e2e/ask_science", "discussions on Reddit", "documents", "general", 263),
        _unpacked(_PUBLIC, "ask_science-2020-10-29"),
    ),
    Part("e2e/ccns_trec", "news", "documents", "general", 114_645, _unpacked(_PUBLIC, "ccns-trec")),
    Part(
        *("e2e/chqa", "pages for the public", "documents", "general", 2_739),
        _unpacked(_PUBLIC, "chqa-2020-10-09"),
    ),
    Part("e2e", _NUGGETS, "answers", "all", None),
    Part("e2e", _RELEVANT, "document judgments", "all", None),
)


@dataclass(frozen=True, slots=True)
class Found:
    """What is there of one part.

    Attributes:
        part: the part.
        files: the files or the folder that it is; empty where it is missing.
        count: see ``Part.kind``.
        problems: what cannot be read (fatal), and what lies at another place than expected.
    """

    part: Part
    files: tuple[Path, ...] = ()
    count: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def state(self) -> str:
        """``missing``, ``malformed``, ``ok``, ``3 fewer`` or ``3 more``."""
        if not self.files:
            return "missing"
        if any(problem.fatal for problem in self.problems):
            return "malformed"
        if self.part.published in (None, self.count):
            return "ok"
        difference = self.count - self.part.published
        return f"{abs(difference):,} {'fewer' if difference < 0 else 'more'}"


def check(folder: Path, progress: Callable[[int], None] | None = None) -> tuple[Found, ...]:
    """Look what of ``PARTS`` lies in a folder, in that order.

    A folder of documents is counted by its files' names, and its first and last file are parsed; in a .jsonl
    or an archive every document is counted, and the first and the last are parsed.

    Args:
        folder: the data set's, with ``ae/`` and ``e2e/`` in it.
        progress: called with the documents of a part counted so far.

    Raises:
        EpicqaError: there is no such folder, or nothing of the data set is in it.
    """
    if not folder.is_dir():
        raise EpicqaError(f"{folder}: no such folder, expected the data set's, with ae/ and e2e/ in it")
    loose = {task: _loose(folder / task) for task in TASKS}
    own = {folder / one.path for one in PARTS}
    nearby = {task: misplaced.nearby(folder, task, own) for task in TASKS}
    found = []
    for part in PARTS:
        if part.kind == "documents":
            one = _documents(folder, part, progress or (lambda done: None))
        elif part.kind == "questions":
            one = _questions(folder, part)
        else:
            one = _judged(part, [path for path in loose[part.task] if content_of(path) == part.kind])
        if not one.files:
            one = replace(one, problems=tuple(misplaced.elsewhere(folder, part, nearby[part.task])))
        found.append(one)
    if not any(one.files for one in found):
        hints = [problem for one in found for problem in one.problems]
        raise EpicqaError(f"{folder}: nothing of the data set is in it, {misplaced.better(folder, hints)}")
    return tuple(found)


def collections(task: str, asked: str) -> tuple[Part, ...]:
    """The collections that the questions of a task and a kind are answered from."""
    return tuple(one for one in PARTS if (one.task, one.asked, one.kind) == (task, asked, "documents"))


def place_of(folder: Path, part: Part) -> Path | None:
    """Where a collection lies in the data set's folder: its folder if documents are in it, else one file
    beside it, such as ``cord19.jsonl.xz`` or ``cord19.tar.gz``; None where there is neither.

    Raises:
        OSError: a folder cannot be read.
    """
    place = folder / part.path
    if next(_document_files(place), None) is not None:
        return place
    files = (place.with_name(place.name + suffix) for suffix in (*_SUFFIXES, ".tgz", ".zip"))
    return next((file for file in files if file.is_file()), None)


def answerable(found: Sequence[Found]) -> list[tuple[str, str]]:
    """The tasks and kinds of questions that can be asked: their file and their collections are all there."""
    usable = {one.part.path for one in found if one.state not in ("missing", "malformed")}
    return [
        (task, asked)
        for task in TASKS
        for asked in KINDS
        if usable.issuperset(
            (f"{task}/{asked}_questions.json", *(one.path for one in collections(task, asked)))
        )
    ]


def holds(found: Sequence[Found]) -> bool:
    """Whether some questions can be asked, and all that is there is as it was published."""
    return bool(answerable(found)) and all(one.state in ("ok", "missing") for one in found)


def content_of(path: Path) -> Kind | None:
    """Whether a file is an answer file or document judgments, by its beginning; None for any other."""
    name = streams.plain_name(path.name)
    if name.endswith(misplaced.PACKED):
        return None
    try:
        with path.open("rb") as stream:
            head = streams.decompressed(stream, path.name).read(_HEAD).removeprefix(codecs.BOM_UTF8).lstrip()
    except streams.ERRORS:
        return None
    if name.endswith(".json"):
        return "answers" if head.startswith(b"[") and _ANSWERED.search(head) else None
    return "document judgments" if _JUDGED.match(head) else None


def _questions(folder: Path, part: Part) -> Found:
    path = folder / part.path
    if not path.is_file():
        return Found(part)
    try:
        return Found(part, (path,), len(read_questions(path)))
    except EpicqaError as error:
        return Found(part, (path,), 0, (Problem(None, None, "malformed", str(error)),))


def _judged(part: Part, files: list[Path]) -> Found:
    from epicqa.measures.judgments import read_judgments
    from epicqa.measures.qrels import read_qrels

    counted: set[object] = set()
    problems = []
    for path in files:
        try:
            if part.kind == "answers":
                counted.update(read_judgments(path).questions)
            else:
                topics = read_qrels(path).topics.items()
                counted.update((topic, document) for topic, judged in topics for document in judged)
        except EpicqaError as error:
            problems.append(Problem(None, None, "malformed", str(error)))
    return Found(part, tuple(files), len(counted), tuple(problems))


def _documents(folder: Path, part: Part, progress: Callable[[int], None]) -> Found:
    try:
        if (place := place_of(folder, part)) is None:
            return Found(part)
        files = sorted(_document_files(place)) if place.is_dir() else [str(place)]
    except OSError as error:
        problem = Problem(Path(error.filename), None, "malformed", f"cannot be read: {error.strerror}")
        return Found(part, (folder / part.path,), 0, (problem,))
    count = 0
    problems = []
    for at, file in enumerate(files):
        # One document a file: a name is enough, as there are hundreds of thousands.
        if at not in (0, len(files) - 1) and streams.plain_name(file).endswith(".json"):
            count += 1
            continue
        first = last = None
        try:
            for last in records(Path(file)):
                first = first or last
                count += 1
                if not count % _TOLD:
                    progress(count)
        except EpicqaError as error:
            problems.append(Problem(None, None, "malformed", str(error)))
        for one in (first, None if last is first else last):
            if one and (reason := _wrong(one.raw)):
                problems.append(Problem(Path(one.file), one.line, "malformed", reason))
    return Found(part, (place,), count, tuple(problems))


def _wrong(raw: bytes) -> str | None:
    """Why a record is no document in the track's form, or None."""
    if b'"document_id"' not in raw and b'"paper_id"' in raw:
        return "a paper of a CORD-19 release, expected a document, as epicqa collect cord19 makes of it"
    try:
        parse(raw)
    except BadDocument as error:
        return f"no document in the track's form: {error}"
    # Plain documents can be parsed, too.
    return None if b'"document_id"' in raw else "no document in the track's form: missing key 'document_id'"


def _document_files(folder: Path) -> Iterator[str]:
    """The files of documents below a folder, in any order; none where there is no folder.

    Raises:
        OSError: a folder cannot be read.
    """
    if not folder.is_dir():
        return iter(())
    return files_below(folder, lambda name: is_document_file(streams.plain_name(name)))


def _loose(folder: Path) -> list[Path]:
    """The files in a task's folder that are no question files."""
    question_files = [f"{kind}_questions.json" for kind in KINDS]
    return [path for path in misplaced.entries(folder) if path.name not in question_files and path.is_file()]
