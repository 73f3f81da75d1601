"""A table of addresses and document ids, so that a page keeps its id when its text changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from epicqa.corpus.sources.base import BadDocument, checked_id
from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.jsonfiles import read_text


def read_url_ids(path: Path) -> dict[str, str]:
    """Ids by address, in the table's order: two columns parted by a tab, address and id.

    Raises:
        EpicqaError: the file cannot be read or is not UTF-8, a line has not two columns, an id cannot stand
            in a run, or an address has two ids.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        columns = line.rstrip("\r").split("\t")
        if len(columns) != 2 or not columns[0]:
            raise EpicqaError(f"{path}:{number}: expected an address, a tab and a document id")
        url, document_id = columns
        try:
            checked_id(document_id)
        except BadDocument as error:
            raise EpicqaError(f"{path}:{number}: {error}, expected one word") from None
        if found.setdefault(url, document_id) != document_id:
            raise EpicqaError(f"{path}:{number}: {url} has id {found[url]!r} further up, expected one id")
    return found


@lru_cache(maxsize=1)
def cached_url_ids(path: Path | None) -> Mapping[str, str]:
    """The same, read once by a worker process; without a path, no ids."""
    return {} if path is None else read_url_ids(path)


def write_url_ids(path: Path, ids: Mapping[str, str]) -> None:
    """Write the table, or leave the old one."""
    write_bytes(path, "".join(f"{url}\t{document_id}\n" for url, document_id in ids.items()).encode())
