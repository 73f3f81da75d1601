"""The small made-up Wikipedia: its files are what the script makes, and its evidence is there."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.quality.small_wiki import FOLDER, files, main
from epicqa.claims.fever import read_claims, title_key
from epicqa.corpus.sources import BadDocument, parse
from epicqa.corpus.sources.fever import page_of
from epicqa.ids import parse_sentence_id


def test_the_files_are_the_scripts(tmp_path: Path) -> None:
    main([str(tmp_path)])
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    kept = {path.relative_to(FOLDER): path.read_bytes() for path in FOLDER.rglob("*.jsonl")}
    assert made == kept
    assert sum(map(len, made.values())) < 400_000


def test_pages_and_evidence() -> None:
    made = files()
    lines: dict[str, dict[int, str]] = {}
    empty = []
    for path, content in made.items():
        for line in content.splitlines() if path.startswith("wiki-pages/") else ():
            try:
                document = parse(line)
            except BadDocument:
                empty.append(json.loads(line)["id"])
                continue
            lines[title_key(page_of(document.document_id))] = {
                parse_sentence_id(one.sentence_id).sentence: context.text[one.start : one.end]
                for context in document.contexts
                for one in context.sentences
            }
    assert len(lines) == 200 and sorted(empty) == ["", "Tolmouth_Bypass"]
    claims = read_claims(FOLDER / "claims.jsonl")
    assert sorted(Counter(claim.label or "" for claim in claims).values()) == [100, 100, 100]
    assert len({claim.text for claim in claims}) == 300
    sizes: Counter[tuple[int, int]] = Counter()
    for claim in claims:
        for sentences in claim.evidence:
            assert all(one.line in lines[title_key(one.page)] for one in sentences)
            sizes[len(sentences), len({one.page for one in sentences})] += 1
    assert sizes[1, 1] > 100 and sizes[2, 1] >= 20 and sizes[2, 2] >= 20
