"""How far two collections agree: documents, contexts, sections, sentences.

    python -m benchmarks.quality.agreement OURS THEIRS

Documents are paired by id, contexts by their place among equal texts in order (difflib), sentences by their
offsets in contexts of equal text.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from epicqa.corpus.model import Context, Document
from epicqa.corpus.sources import parse, records


def read(path: Path) -> Iterator[Document]:
    return (parse(record.raw) for record in records(path))


def paired(ours: Document, theirs: Document) -> Iterator[tuple[Context, Context]]:
    """Contexts of equal text, in order."""
    texts = [[" ".join(one.text.split()) for one in document.contexts] for document in (ours, theirs)]
    for match in SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks():
        for offset in range(match.size):
            yield ours.contexts[match.a + offset], theirs.contexts[match.b + offset]


def spans(context: Context) -> set[tuple[int, int]]:
    return {(one.start, one.end) for one in context.sentences}


def counted(ours: Path, theirs: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    waiting = {document.document_id: document for document in read(ours)}
    counts["documents, ours"] = len(waiting)
    for document in read(theirs):
        counts["documents, theirs"] += 1
        counts["contexts, theirs"] += len(document.contexts)
        counts["sentences, theirs"] += sum(len(one.sentences) for one in document.contexts)
        mine = waiting.pop(document.document_id, None)
        if mine is None:
            continue
        counts["documents in both"] += 1
        counts["contexts, ours"] += len(mine.contexts)
        counts["sentences, ours"] += sum(len(one.sentences) for one in mine.contexts)
        pairs = list(paired(mine, document))
        counts["contexts of equal text"] += len(pairs)
        counts["documents with all contexts equal"] += (
            len(pairs) == len(mine.contexts) == len(document.contexts)
        )
        for one, other in pairs:
            counts["- with the same id"] += one.context_id == other.context_id
            counts["- with the same section"] += (one.section or "") == (other.section or "")
            same = spans(one) == spans(other) and one.text == other.text
            counts["- with the same sentences"] += same
            both = len(spans(one) & spans(other)) if one.text == other.text else 0
            counts["sentences in both, of those contexts"] += both
            counts["sentences of those contexts, ours"] += len(one.sentences)
            counts["sentences of those contexts, theirs"] += len(other.sentences)
    return counts


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    arguments.add_argument("ours", type=Path)
    arguments.add_argument("theirs", type=Path)
    given = arguments.parse_args()
    for name, count in counted(given.ours, given.theirs).items():
        print(f"{name:<40} {count:>9,}")


if __name__ == "__main__":
    main()
