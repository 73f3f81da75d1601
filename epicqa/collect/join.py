"""Parts joined into a collection: each id once, near-duplicates told or dropped, reports written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from epicqa.collect.layout import JSONL, NEAR_DUPLICATES, REPORT, file_name
from epicqa.collect.near import Mask, Near, find_near
from epicqa.collect.parts import Entry, Part
from epicqa.collect.settings import Settings
from epicqa.corpus.sources.raw import DUPLICATE, FILTERED, LeftOut
from epicqa.errors import EpicqaError
from epicqa.files import sync_folder

Progress = Callable[[str, int, int | None], None]
"""Called with a step's name, how much of it is done, and of how much, if that is known."""


def join(
    of_stems: Mapping[Path, Part],
    stage: Path,
    settings: Settings,
    ids: dict[str, str] | None,
    progress: Progress,
) -> dict[str, Any]:
    """Write the collection of some parts to the folder ``stage``.

    Args:
        of_stems: the finished parts by their stems, in order.
        stage: a new folder.
        settings: how documents are written, and what is done about near-duplicates.
        ids: ids by address; gets those of documents that are not in it.

    Returns:
        Counts: documents, contexts, sentences, left_out, near_duplicates, dropped.

    Raises:
        EpicqaError: there is no document.
    """
    stems, parts = list(of_stems), list(of_stems.values())
    entries = [entry for part in parts for entry in part.entries]
    keep, repeats = _each_once(parts)
    left_out = [[*part.left_out, *again] for part, again in zip(parts, repeats, strict=True)]
    kinds = Counter(one.kind for some in left_out for one in some)
    kinds[FILTERED] += sum(part.filtered for part in parts)
    if not keep.any():
        raise EpicqaError(_nothing(kinds, left_out))
    if ids is not None:
        for entry, kept in zip(entries, keep, strict=True):
            if kept and entry.url is not None:
                ids.setdefault(entry.url, entry.document_id)
    near: list[Near] = []
    contexts = np.repeat(keep, [len(entry.contexts) for entry in entries])
    if settings.compares:
        progress("looking for near-duplicates", 0, None)
        near, keep, contexts = find_near(stems, entries, keep, settings, stage.parent)
    stage.mkdir()
    counts = _write(stems, entries, keep, contexts, stage, settings.jsonl, progress)
    lines = ((one.place, one.document_id or "", one.kind, one.reason) for some in left_out for one in some)
    _table(stage / REPORT, ("place", "document", "kind", "reason"), lines)
    pairs = ((one.what, one.found, one.of, f"{one.similarity:.2f}", _word(one)) for one in near)
    _table(stage / NEAR_DUPLICATES, ("what", "id", "near", "similarity", "dropped"), pairs)
    sync_folder(stage)
    return {
        **counts,
        "left_out": {kind: count for kind, count in sorted(kinds.items()) if count},
        "near_duplicates": dict(Counter(one.what for one in near)),
        "dropped": dict(Counter(one.what for one in near if one.dropped)),
    }


def _each_once(parts: Sequence[Part]) -> tuple[Mask, list[list[LeftOut]]]:
    """Which documents are the first of their id; the others, by part, as left out."""
    keep: list[bool] = []
    repeats: list[list[LeftOut]] = []
    places: dict[str, str] = {}
    for part in parts:
        again = []
        for entry in part.entries:
            first = places.get(entry.document_id)
            keep.append(first is None)
            if first is None:
                places[entry.document_id] = entry.place
            else:
                reason = f"this id came before, in {first}"
                again.append(LeftOut(entry.place, DUPLICATE, reason, entry.document_id))
        repeats.append(again)
    return np.array(keep, dtype=bool), repeats


def _nothing(kinds: Counter[str], left_out: Sequence[Sequence[LeftOut]]) -> str:
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()) if count)
    first = next((one for some in left_out for one in some), None)
    example = f"; the first is {first.place}: {first.reason}" if first else ""
    return f"no document was collected ({counts or 'nothing was there to read'}){example}"


def _write(
    stems: Sequence[Path],
    entries: Sequence[Entry],
    keep: Mask,
    contexts: Mask,
    stage: Path,
    jsonl: bool,
    progress: Progress,
) -> dict[str, int]:
    counts = {"documents": 0, "contexts": 0, "sentences": 0}
    number = at = 0
    sink = (stage / JSONL).open("wb") if jsonl else None
    try:
        for stem in stems:
            with stem.with_suffix(".jsonl").open("rb") as lines:
                for line in lines:
                    size = len(entries[number].contexts)
                    stay = contexts[at : at + size]
                    if keep[number] and stay.any():
                        kept, sentences = (
                            (line, entries[number].sentences) if stay.all() else _reduced(line, stay)
                        )
                        counts["documents"] += 1
                        counts["contexts"] += int(stay.sum())
                        counts["sentences"] += sentences
                        if sink:
                            sink.write(kept)
                        else:
                            (stage / file_name(entries[number].document_id)).write_bytes(kept)
                    number += 1
                    at += size
            progress("writing documents", number, len(entries))
    finally:
        if sink:
            sink.close()
    return counts


def _reduced(line: bytes, stay: Mask) -> tuple[bytes, int]:
    """A document without the contexts that do not stay, and how many sentences are left."""
    document = orjson.loads(line)
    kept = [one for one, stays in zip(document["contexts"], stay, strict=True) if stays]
    sentences = sum(len(one["sentences"]) for one in kept)
    return orjson.dumps({**document, "contexts": kept}, option=orjson.OPT_APPEND_NEWLINE), sentences


def _table(path: Path, head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as sink:
        for line in (head, *lines):
            sink.write("\t".join(" ".join(column.split()) for column in line) + "\n")


def _word(near: Near) -> str:
    return "yes" if near.dropped else "no"
