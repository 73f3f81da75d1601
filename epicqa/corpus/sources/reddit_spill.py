"""Reddit dumps read once, in any order, into a database on disk that joins submissions and their comments."""

from __future__ import annotations

import codecs
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from epicqa.corpus.sources.base import kind
from epicqa.corpus.sources.members import Member, TooLarge
from epicqa.corpus.sources.raw import BROKEN, TOO_LARGE, LeftOut, read_members
from epicqa.corpus.sources.reddit_thread import COMMENT_FIELDS, SUBMISSION_FIELDS, base36, whole_number
from epicqa.errors import EpicqaError
from epicqa.files import remove_tree

_EXPECTED = (
    "Reddit dumps: .json, .jsonl, .ndjson, RS_* or RC_* (plain, .gz, .xz or .zst), .tar, .zip or a folder"
)
_FILE = "posts.db"
_VERSION = 1
_BATCH_BYTES = 8 << 20

# A thing that came before gives way to one retrieved later, whatever the order of the files.
_SCHEMA = """
    create table settings (value blob);
    create table finished (input integer primary key);
    create table left_out (
        input integer, number integer, place text, kind text, reason text, document_id text,
        primary key (input, number)
    ) without rowid;
    create table submissions (id text primary key, retrieved integer, json blob, place text) without rowid;
    create table comments (
        link text, id text, retrieved integer, json blob, primary key (link, id)
    ) without rowid;
"""
_ADD_SUBMISSION = """
    insert into submissions values (?, ?, ?, ?) on conflict do update
    set retrieved = excluded.retrieved, json = excluded.json, place = excluded.place
    where (excluded.retrieved, excluded.json, excluded.place) > (retrieved, json, place)
"""
_ADD_COMMENT = """
    insert into comments values (?, ?, ?, ?) on conflict do update
    set retrieved = excluded.retrieved, json = excluded.json
    where (excluded.retrieved, excluded.json) > (retrieved, json)
"""
_ADD_LEFT_OUT = "insert or replace into left_out values (?, ?, ?, ?, ?, ?)"


@contextmanager
def spilled(
    inputs: Sequence[Path], scratch: Path, limit: int, subreddits: Sequence[str]
) -> Iterator[sqlite3.Connection]:
    """All that the inputs hold of the subreddits (none named: of every one), in a database in ``scratch``.

    A file holds one object a line, a list of objects, or what Reddit answers (listings, also nested); things
    that do not say their subreddit are of every one. Of things with one id the one retrieved last counts, of
    equals the one whose JSON text is the greater. Inputs that an interrupted run has read are not read again.

    Raises:
        EpicqaError: an input is missing or of another kind, or the database cannot be written.
    """
    folder = scratch / "reddit"
    wanted = frozenset(name.lower().removeprefix("/").removeprefix("r/") for name in subreddits)
    settings = orjson.dumps([_VERSION, limit, sorted(wanted), [ascii(str(path)) for path in inputs]])
    try:
        with closing(_open(folder, settings)) as database:
            finished = {number for (number,) in database.execute("select input from finished")}
            for number, source in enumerate(inputs):
                if number not in finished:
                    _read(database, number, source, limit, wanted)
            yield database
    except sqlite3.Error as error:
        raise EpicqaError(f"{folder}: the database of posts cannot be used: {error}") from error


def left_out(database: sqlite3.Connection) -> Iterator[LeftOut]:
    """What could not be read, in the order of the inputs."""
    rows = database.execute("select place, kind, reason, document_id from left_out order by input, number")
    for row in rows:
        yield LeftOut(*row)


def submissions(database: sqlite3.Connection) -> Iterator[tuple[str, str, bytes]]:
    """Id, place and JSON of each submission, by id."""
    yield from database.execute("select id, place, json from submissions order by id")


def comments(database: sqlite3.Connection, link: str, limit: int) -> list[bytes] | None:
    """JSON of each comment of a submission, by id; None where they have more than ``limit`` bytes."""
    (size,) = database.execute("select sum(length(json)) from comments where link = ?", (link,)).fetchone()
    if (size or 0) > limit:
        return None
    return [
        raw for (raw,) in database.execute("select json from comments where link = ? order by id", (link,))
    ]


def _open(folder: Path, settings: bytes) -> sqlite3.Connection:
    """The database that an interrupted run of these settings left, or a new one."""
    if (folder / _FILE).exists():
        database = sqlite3.connect(folder / _FILE)
        try:
            if database.execute("select value from settings").fetchone() == (settings,):
                return _set_up(database)
        except sqlite3.DatabaseError:
            pass
        database.close()
        remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    database = _set_up(sqlite3.connect(folder / _FILE))
    database.executescript(_SCHEMA)
    with database:
        database.execute("insert into settings values (?)", (settings,))
    return database


def _set_up(database: sqlite3.Connection) -> sqlite3.Connection:
    # What was committed outlives a killed process; pages in memory are bounded (KiB).
    database.executescript(
        "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -65536"
    )
    return database


def _read(
    database: sqlite3.Connection, number: int, source: Path, limit: int, wanted: frozenset[str]
) -> None:
    """Add what an input holds; what an interrupted run has added of it is replaced by the same."""
    batch: dict[str, list[tuple[Any, ...]]] = {_ADD_SUBMISSION: [], _ADD_COMMENT: [], _ADD_LEFT_OUT: []}
    size = count = 0

    def flush() -> None:
        nonlocal size
        with database:
            for statement, rows in batch.items():
                database.executemany(statement, sorted(rows))
                rows.clear()
        size = 0

    for found in _things(source, limit):
        row = found if isinstance(found, LeftOut) else _row(*found, wanted)
        if isinstance(row, LeftOut):
            batch[_ADD_LEFT_OUT].append((number, count, row.place, row.kind, row.reason, row.document_id))
            count += 1
            size += 1000
        elif row:
            batch[_ADD_COMMENT if row[0] == "t1" else _ADD_SUBMISSION].append(row[1:])
            size += 200 + len(row[4])
        if size > _BATCH_BYTES:
            flush()
    flush()
    with database:
        database.execute("insert into finished values (?)", (number,))


def _row(thing: Any, place: str, wanted: frozenset[str]) -> tuple[Any, ...] | LeftOut | None:
    """``t1`` or ``t3`` and the row of a comment or submission; None if it is of a subreddit not wanted."""
    if not isinstance(thing, dict):
        return LeftOut(place, BROKEN, f"{kind(thing)}, neither a submission nor a comment")
    is_comment = "body" in thing and ("link_id" in thing or "parent_id" in thing)
    if not is_comment and "title" not in thing:
        return LeftOut(
            place, BROKEN, "neither a submission (no 'title') nor a comment (no 'body' and 'link_id')"
        )
    if wanted and (subreddit := _subreddit(thing)) and subreddit not in wanted:
        return None
    identity = base36(thing.get("id", thing.get("name")))
    if identity is None:
        return LeftOut(place, BROKEN, "the id is none, expected a number in base 36")
    retrieved = whole_number(thing.get("retrieved_on")) or whole_number(thing.get("retrieved_utc")) or 0
    if not is_comment:
        raw = _kept(thing, SUBMISSION_FIELDS, identity)
        return "t3", identity, retrieved, raw, place
    parent = thing.get("parent_id")
    link = base36(thing.get("link_id")) or (
        base36(parent) if isinstance(parent, str) and parent.startswith("t3_") else None
    )
    if link is None:
        return LeftOut(place, BROKEN, "a comment that does not say its submission, expected 'link_id'")
    return "t1", link, identity, retrieved, _kept(thing, COMMENT_FIELDS, identity)


def _kept(thing: Mapping[str, Any], fields: Sequence[str], identity: str) -> bytes:
    """The JSON of some fields, in their order; one that holds a list or an object is none of Reddit's."""
    kept = {
        name: value
        for name in fields
        if (value := thing.get(name)) is not None and not isinstance(value, list | dict)
    }
    kept["id"] = identity
    return orjson.dumps(kept)


def _subreddit(thing: Mapping[str, Any]) -> str | None:
    name = thing.get("subreddit") or thing.get("subreddit_name_prefixed")
    return name.lower().removeprefix("r/") if isinstance(name, str) else None


def _is_dump(name: str) -> bool:
    name = PurePosixPath(name).name
    return name.endswith((".json", ".jsonl", ".ndjson", "_submissions", "_comments")) or (
        name.startswith(("rs_", "rc_")) and "." not in name
    )


def _things(source: Path, limit: int) -> Iterator[tuple[Any, str] | LeftOut]:
    """Every JSON value that should be a submission or a comment, with its place."""
    return read_members(source, _is_dump, _EXPECTED, partial(_of_member, limit=limit))


def _of_member(member: Member, limit: int) -> Iterator[tuple[Any, str] | LeftOut]:
    lines = member.lines(limit)
    begun = list(islice(lines, 2))
    if _begins_a_whole([line for _, line in begun]):
        yield from _of_whole(member, b"".join(line or b"" for _, line in begun), limit)
        return
    for number, line in chain(begun, lines):
        place = f"{member.file}:{number}"
        if line is None:
            yield LeftOut(place, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size")
            continue
        try:
            value = orjson.loads(line.removeprefix(codecs.BOM_UTF8))
        except orjson.JSONDecodeError as error:
            yield LeftOut(place, BROKEN, f"broken JSON: {error}")
            continue
        for thing in _unpacked(value):
            yield thing, place


def _begins_a_whole(begun: Sequence[bytes | None]) -> bool:
    """Whether a file's first lines begin one JSON value of many lines; else each is a value, or broken."""
    if len(begun) < 2 or begun[0] is None or begun[1] is None:
        return False
    first = begun[0].removeprefix(codecs.BOM_UTF8).strip()
    return first in (b"[", b"{", b"[{") or (
        first.startswith(b"[") and not _is_json(first) and not _is_json(begun[1])
    )


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _of_whole(member: Member, first: bytes, limit: int) -> Iterator[tuple[Any, str] | LeftOut]:
    try:
        raw = first + member.read(max(limit - len(first), 0))
    except TooLarge:
        yield LeftOut(member.file, TOO_LARGE, f"more than {limit:,} bytes, see --max-file-size")
        return
    try:
        value = orjson.loads(raw.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        yield LeftOut(member.file, BROKEN, f"broken JSON: {error}")
        return
    for thing in _unpacked(value):
        yield thing, member.file


def _unpacked(value: Any) -> Iterator[Any]:
    """The things in a list, a listing or an answer of the API, replies in comments among them, in order."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(value))
            continue
        if isinstance(value, dict):
            data = value.get("data")
            match value.get("kind"):
                case "Listing" | "listing" if isinstance(data, dict) and isinstance(
                    data.get("children"), list
                ):
                    stack.append(data["children"])
                    continue
                case "t1" | "t3" if isinstance(data, dict):
                    stack.append(data)
                    continue
                case "more":
                    continue
                case None if isinstance(data, list):
                    stack.append(data)
                    continue
            if isinstance(replies := value.get("replies"), dict):
                stack.append(replies)
        yield value
