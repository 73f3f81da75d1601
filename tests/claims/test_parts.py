"""What is read of a document, on documents made up and on papers of the track's collection."""

import json
import lzma
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from epicqa.claims.parts import ABSTRACT, BEGINNING, MOST_OF_BEGINNING, part_of
from epicqa.corpus.build import build_corpus
from epicqa.corpus.store import CorpusStore


def document(name: str, contexts: Sequence[tuple[str | None, int]]) -> dict:
    """A document of contexts of a section and so many sentences."""
    return {
        "document_id": name,
        "metadata": {"title": "Abstract", "urls": []},
        "contexts": [
            {
                "section": section,
                "context_id": f"{name}-C{c:03d}",
                "text": "One. " * count or "x",
                "sentences": [
                    {"sentence_id": f"{name}-C{c:03d}-S{s:03d}", "start": 5 * s, "end": 5 * s + 4}
                    for s in range(count)
                ],
            }
            for c, (section, count) in enumerate(contexts)
        ],
    }


def opened(folder: Path, lines: Sequence[str]) -> CorpusStore:
    (folder / "d.jsonl").write_text("".join(line.rstrip() + "\n" for line in lines))
    build_corpus([folder / "d.jsonl"], folder / "corpus", workers=1)
    return CorpusStore.open(folder / "corpus")


def read(store: CorpusStore, name: str) -> tuple[str, list[str]]:
    part = part_of(store, store.document_row(name))
    return part.name, [store.sentence_id(row).removeprefix(f"{name}-") for row in part.rows]


@pytest.mark.parametrize(
    ("section", "is_abstract"),
    [
        *((name, True) for name in ("Abstract", "ABSTRACT", "abstract:", "Abstract 26", "AbSTrACT")),
        *((name, True) for name in ("Abstract | Methods", "A B S T R A C T Background", "\u2022 Abstract")),
        *((name, False) for name in (None, "Background", "Graphical abstract", "Data abstraction")),
        *((name, False) for name in ("Abstracts", "Abstraction", "ISDS 2016 Conference Abstracts")),
    ],
)
def test_sections_of_abstracts(tmp_path: Path, section: str | None, is_abstract: bool) -> None:
    made = document("d", [("Introduction", 1), (section, 2), ("Methods", 1), (section, 1)])
    store = opened(tmp_path, [json.dumps(made)])
    first, *rest = "C000-S000", "C001-S000", "C001-S001", "C002-S000", "C003-S000"
    within = [rest[0], rest[1], rest[3]]
    assert read(store, "d") == ((ABSTRACT, within) if is_abstract else (BEGINNING, [first, *rest]))


def test_a_beginning_has_an_end(tmp_path: Path) -> None:
    made = document("d", [("Methods", 15), ("Results", 30)])
    store = opened(tmp_path, [json.dumps(document("c", [(None, 3)])), json.dumps(made)])
    assert read(store, "c") == (BEGINNING, ["C000-S000", "C000-S001", "C000-S002"])
    name, ids = read(store, "d")
    assert name == BEGINNING and len(ids) == MOST_OF_BEGINNING
    assert (ids[0], ids[-1]) == ("C000-S000", "C001-S004")


def test_papers_of_the_track(shared: Path, tmp_path: Path) -> None:
    with lzma.open(shared / "mini" / "expert.jsonl.xz", "rt") as handle:
        lines = list(islice(handle, 60))
    store = opened(tmp_path, lines)
    names = []
    for made in map(json.loads, lines):
        wanted = [
            sentence["sentence_id"].removeprefix(f"{made['document_id']}-")
            for context in made["contexts"]
            if context["section"] in ("Abstract", "ABSTRACT")
            for sentence in context["sentences"]
        ]
        name, ids = read(store, made["document_id"])
        names.append(name)
        assert ids == wanted if name == ABSTRACT else not wanted
    assert names.count(ABSTRACT) > 50 and BEGINNING in names
