"""Write training pairs of the real data: ``python -m benchmarks.quality.data OUT [DATA]``.

OUT gets a JSONL file a source, and ``sources.json`` for model cards: what each file holds, its licence, how
many pairs. Only sources whose stated licence allows weights to be shipped are read. What
``mini/exclude.txt`` lists and the pages of ``mini/general`` are left out; so is every paper that shares its
title or a long sentence with one listed, with a held-out COVID-QA article, or with an abstract that the
HealthVer-derived questions are asked of.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.options import DATA
from benchmarks.quality.splitting import split
from epicqa.files import write_bytes
from epicqa.models.train.pairs import Pair, write_pairs

HELD_OUT = 28
"""COVID-QA articles held out; the other 70 are trained on."""

SEED = 2020


def exclusions(data: Path) -> dict[str, frozenset[str]]:
    """Ids to leave out by kind: ``document``, ``covidqa_squad``, ``medquad``."""
    found: dict[str, set[str]] = {}
    for line in (data / "mini" / "exclude.txt").read_text("utf-8").splitlines():
        kind, _, name = line.partition("\t")
        found.setdefault(kind, set()).add(name)
    return {kind: frozenset(names) for kind, names in found.items()}


@dataclass(frozen=True, slots=True)
class Article:
    """An article of COVID-QA.

    Attributes:
        article_id: its ``document_id``.
        title: its first line.
        sentences: its sentences in order, all of its text.
        questions: text and the numbers of the sentences that hold the answer, ascending, at least one.
    """

    article_id: str
    title: str
    sentences: tuple[str, ...]
    questions: tuple[tuple[str, tuple[int, ...]], ...]


def covidqa(data: Path) -> tuple[list[Article], list[Article]]:
    """Articles to train on and articles held out.

    What ``exclude.txt`` lists is held out; the rest is chosen by a hash of id and seed.
    """
    with gzip.open(data / "pairs" / "covidqa_squad.json.gz") as handle:
        found = json.load(handle)["data"]
    articles = [_article(paragraph) for entry in found for paragraph in entry["paragraphs"]]
    listed = exclusions(data)["covidqa_squad"]

    def place(article: Article) -> tuple[bool, str]:
        digest = hashlib.sha256(f"{SEED}\0{article.article_id}".encode()).hexdigest()
        return article.article_id not in listed, digest

    held = {article.article_id for article in sorted(articles, key=place)[:HELD_OUT]}
    return (
        [article for article in articles if article.article_id not in held],
        [article for article in articles if article.article_id in held],
    )


def _article(paragraph: dict[str, Any]) -> Article:
    text = paragraph["context"]
    spans = split(text)
    questions = []
    for asked in paragraph["qas"]:
        answer = asked["answers"][0]
        start, end = find_answer(text, answer["text"], answer["answer_start"])
        rows = tuple(row for row, (first, last) in enumerate(spans) if first < end and start < last)
        questions.append((" ".join(asked["question"].split()), rows))
    return Article(
        str(paragraph["document_id"]),
        text.strip().split("\n")[0].strip(),
        tuple(" ".join(text[first:last].split()) for first, last in spans),
        tuple(questions),
    )


def find_answer(text: str, answer: str, near: int) -> tuple[int, int]:
    """Where an answer stands in a text: the occurrence that starts nearest to ``near``, without outer space.

    Raises:
        ValueError: it stands nowhere, not even with other white space.
    """
    pattern = r"\s+".join(map(re.escape, answer.split()))
    found = [match.span() for match in re.finditer(pattern, text)]
    if not found or not pattern:
        raise ValueError(f"answer {answer[:40]!r} is not in its article")
    return min(found, key=lambda span: (abs(span[0] - near), span))


def covidqa_pairs(articles: list[Article]) -> Iterator[Pair]:
    """A question and each sentence that holds its answer."""
    for article in articles:
        for question, rows in article.questions:
            for row in rows:
                yield Pair(question, article.sentences[row], group=f"covidqa:{article.article_id}")


def covidqa_passages(articles: list[Article]) -> Iterator[Pair]:
    """A question and the sentences that hold its answer, under the article's title and with neighbours."""
    for article in articles:
        for question, rows in article.questions:
            around = article.sentences[max(0, rows[0] - 1) : rows[-1] + 2]
            for passage in (article.sentences[rows[0] : rows[-1] + 1], around):
                text = f"{article.title}. {' '.join(passage)}"
                yield Pair(question, text, group=f"covidqa:{article.article_id}")


def same(title: str) -> str:
    """What two copies of a title have in common: its letters and digits."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", title)).casefold()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Papers that nothing may be trained on, whatever id or title another copy has.

    Attributes:
        names: document ids.
        texts: titles, and sentences of more than 60 letters, as ``same`` gives them.
    """

    names: frozenset[str]
    texts: frozenset[str]

    def holds(self, names: Iterable[str | None], texts: Iterable[str]) -> bool:
        """Whether a paper of these ids, with that title and those sentences, is one of them."""
        return not self.names.isdisjoint(names) or any(same(text) in self.texts for text in texts)


def left_out(data: Path, held: list[Article]) -> LeftOut:
    """What ``exclude.txt`` lists, held-out COVID-QA articles, and the HealthVer-derived abstracts."""
    listed = exclusions(data)["document"]
    titles = {article.title for article in held}
    found = {sentence for article in held for sentence in article.sentences}
    documents: list[dict[str, Any]] = []
    for name in ("expert", "general"):
        with lzma.open(data / "mini" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            documents += [one for one in map(json.loads, lines) if one["document_id"] in listed]
    with gzip.open(data / "epicqa" / "healthver-derived" / "documents.jsonl.gz", "rt") as lines:
        documents += map(json.loads, lines)
    for document in documents:
        titles.add(document["metadata"].get("title") or "")
        for context in document["contexts"]:
            spans = ((one["start"], one["end"]) for one in context["sentences"])
            found |= {context["text"][start:end] for start, end in spans}
    long = {text for text in map(same, found) if len(text) > 60}
    return LeftOut(listed, frozenset(long | {text for text in map(same, titles) if text}))


def cord19_pairs(data: Path, out: LeftOut) -> Iterator[Pair]:
    """The title and each abstract sentence of the papers of ``comm_use_subset``."""
    path = data / "cord19" / "fulltext" / "cord19_2020-03-13.comm_use_subset.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for paper in map(json.loads, lines):
            title = " ".join((paper["title"] or "").split())
            found = [one for section in paper["abstract"] for one in sentences(section["text"])]
            names = (paper["paper_id"], paper["paper_id"][:8], paper["cord_uid"])
            if len(title.split()) < 4 or out.holds(names, [title, *found]):
                continue
            for sentence in found:
                yield Pair(title, sentence, group=f"cord19:{paper['paper_id']}")


def sentences(text: str) -> list[str]:
    """The sentences of a text that are more than a heading or a number, white space made single."""
    found = (" ".join(text[start:end].split()) for start, end in split(text))
    return [one for one in found if len(one.split()) >= 5 and len(one) <= 1000]


def pubmedqa_pairs(data: Path) -> Iterator[Pair]:
    """A question and each sentence of its long answer."""
    with gzip.open(data / "pairs" / "pubmedqa" / "ori_pqal.json.gz") as handle:
        for pmid, record in json.load(handle).items():
            for sentence in sentences(record["LONG_ANSWER"]):
                yield Pair(record["QUESTION"], sentence, group=f"pubmedqa:{pmid}")


def rqe_pairs(data: Path) -> Iterator[Pair]:
    """A question as it was asked, and a shorter one that it entails."""
    folder = data / "pairs" / "rqe"
    with gzip.open(folder / "RQE_Train_8588_AMIA2016.xml.gz") as train:
        roots = [ET.parse(train).getroot(), ET.parse(folder / "RQE_Test_302_pairs_AMIA2016.xml").getroot()]
    for root in roots:
        for pair in root.iter("pair"):
            asked, short = (" ".join((pair.findtext(key) or "").split()) for key in ("chq", "faq"))
            if pair.get("value") == "true" and asked and short and same(asked) != same(short):
                yield Pair(asked, short, group=f"rqe:{same(short)[:60]}")


def scifact_pairs(data: Path) -> Iterator[Pair]:
    """A claim of the training split and each sentence that supports or refutes it."""
    with gzip.open(data / "scifact" / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        corpus = {str(record["doc_id"]): record["abstract"] for record in map(json.loads, lines)}
    with (data / "scifact" / "claims_train.jsonl").open(encoding="utf-8") as lines:
        for claim in map(json.loads, lines):
            for name, rationales in claim["evidence"].items():
                for row in sorted({row for one in rationales for row in one["sentences"]}):
                    yield Pair(claim["claim"], corpus[name][row], group=f"scifact:{name}")


def medquad_pairs(data: Path, mini_general: bool) -> Iterator[Pair]:
    """A question and each of the first three sentences of its answer."""
    listed = exclusions(data)["medquad"]
    with lzma.open(data / "mini" / "general.jsonl.xz", "rt", encoding="utf-8") as lines:
        pages = {json.loads(line)["metadata"].get("url") for line in lines}
    with gzip.open(data / "pairs" / "medquad.jsonl.gz", "rt", encoding="utf-8") as lines:
        for page in map(json.loads, lines):
            if any(asked["qid"] in listed for asked in page["qa"]):
                continue
            if page["url"] in pages and not mini_general:
                continue
            for asked in page["qa"]:
                question = re.sub(r"\s+([?.,])", r"\1", " ".join(asked["question"].split()))
                for sentence in sentences(asked["answer"])[:3]:
                    yield Pair(question, sentence, group=f"medquad:{page['id']}")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file's pairs are from."""

    name: str
    licence: str
    pairs: Callable[[], Iterator[Pair]]


def sources(data: Path, mini_general: bool = False) -> dict[str, Source]:
    """What may be trained on, and the held-out COVID-QA pairs, by file name."""
    train, held = covidqa(data)
    out = left_out(data, held)
    apache, by = "Apache-2.0", "CC BY 4.0"
    return {
        "covidqa.train.jsonl": Source("COVID-QA, training articles", apache, lambda: covidqa_pairs(train)),
        "covidqa.passages.train.jsonl": Source(
            "COVID-QA, training articles, longer passages", apache, lambda: covidqa_passages(train)
        ),
        "covidqa.heldout.jsonl": Source(
            "COVID-QA, held-out articles: not to train on", apache, lambda: covidqa_pairs(held)
        ),
        "cord19.jsonl": Source(
            "CORD-19 comm_use_subset, title and abstract sentence",
            "each paper's own, all from the subset that allows commercial use",
            lambda: cord19_pairs(data, out),
        ),
        "pubmedqa.jsonl": Source("PubMedQA, labelled part", "MIT", lambda: pubmedqa_pairs(data)),
        "rqe.jsonl": Source("RQE, question and entailed question", by, lambda: rqe_pairs(data)),
        "scifact.jsonl": Source(
            "SciFact, training claim and rationale sentence",
            "claims CC BY 4.0, abstracts ODC-By",
            lambda: scifact_pairs(data),
        ),
        "medquad.jsonl": Source(
            "MedQuAD, outside exclude.txt"
            if mini_general
            else "MedQuAD, pages that mini/general does not hold",
            by,
            lambda: medquad_pairs(data, mini_general),
        ),
    }


def main() -> None:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("out", type=Path)
    found.add_argument("data", nargs="?", type=Path, default=DATA, help="the real data (%(default)s)")
    found.add_argument(
        "--mini-general",
        action="store_true",
        help="also MedQuAD's pages that mini/general holds and exclude.txt does not list",
    )
    arguments = found.parse_args()
    listed: dict[str, dict[str, Any]] = {}
    for name, source in sources(arguments.data, arguments.mini_general).items():
        pairs = list(dict.fromkeys(source.pairs()))
        if not pairs:
            print(f"{name:<30} nothing is left of it: {source.name}")
            continue
        write_pairs(arguments.out / name, pairs)
        groups = len({pair.group for pair in pairs})
        queries = len({pair.query for pair in pairs})
        listed[name] = {"source": source.name, "licence": source.licence, "pairs": len(pairs)}
        print(
            f"{name:<30} {len(pairs):>7,} pairs {queries:>6,} queries {groups:>6,} groups  {source.licence}"
        )
    write_bytes(arguments.out / "sources.json", (json.dumps(listed, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
