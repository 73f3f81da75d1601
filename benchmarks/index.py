"""The Lucene phase of indexing ``mini/expert``, next to Anserini's IndexCollection over the same text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from benchmarks import java
from benchmarks.options import expert_corpus, parser, work_folder
from benchmarks.sides import compare, in_turn
from epicqa.corpus.store import CorpusStore
from epicqa.files import remove_tree
from epicqa.index import jvm
from epicqa.index.lucene import FIELD, LuceneIndex, build_lucene, indexed_text

THREADS, FILES = 2, 8


def write_jsonl(store: CorpusStore, folder: Path) -> None:
    """The sentences as Anserini reads them, in several files, as it gives each thread a file at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    cuts = [store.n_sentences * at // FILES for at in range(FILES + 1)]
    for number, (first, last) in enumerate(pairwise(cuts)):
        with (folder / f"part-{number}.jsonl").open("wb") as file:
            for row, (title, text) in enumerate(store.iter_titled(first, last), first):
                record = {"id": str(row), FIELD: indexed_text(title, text)}
                file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


def contents(folder: Path) -> tuple[Any, ...]:
    """What tells that two indexes hold the same text: sentences, terms, postings."""
    index = LuceneIndex(folder)
    try:
        reader = index.reader
        return reader.numDocs(), reader.getSumTotalTermFreq(FIELD), reader.getSumDocFreq(FIELD)
    finally:
        index.close()


def main() -> None:
    arguments = parser(__doc__ or "", repeats=5).parse_args()
    with work_folder(arguments.work) as work:
        store = expert_corpus(arguments.data, work)
        jsonl, our_folder, peer_folder = (work / f"bench-{name}" for name in ("jsonl", "ours", "peer"))
        write_jsonl(store, jsonl)
        java.start()
        collection = jvm.load("io.anserini.index.IndexCollection")
        settings = {
            "collection": "JsonCollection",
            "generator": "DefaultLuceneDocumentGenerator",
            "input": str(jsonl),
            "index": str(peer_folder),
            "threads": str(THREADS),
        }
        flags = [part for name, value in settings.items() for part in (f"-{name}", value)]

        def ours() -> None:
            remove_tree(our_folder)
            build_lucene(store, our_folder, threads=THREADS)

        def peer() -> None:
            remove_tree(peer_folder)
            collection.main([*flags, "-quiet"])

        try:
            # The second pass still gains a quarter from Java's compiler.
            timings = in_turn(ours, peer, arguments.repeats, warm=2)
            found = contents(our_folder), contents(peer_folder)
        finally:
            for folder in (jsonl, our_folder, peer_folder):
                remove_tree(folder)
        compare(
            f"Lucene index of {store.n_sentences} sentences",
            *timings,
            "IndexCollection",
            same_content=found[0] == found[1],
            terms=int(found[0][1]),
        )
        if found[0] != found[1]:
            raise SystemExit(f"the indexes differ in sentences, terms or postings: {found[0]} and {found[1]}")


if __name__ == "__main__":
    main()
