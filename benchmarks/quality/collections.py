"""What the ablation asks of what: five sets of questions, their documents and their judgments."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.data import SEED, Article, covidqa
from benchmarks.quality.splitting import split
from epicqa.errors import EpicqaError
from epicqa.files import write_bytes
from epicqa.ids import SentenceId
from epicqa.measures import read_judgments
from epicqa.questions import Question, find_questions, kind_of, read_questions

MRR = "MRR"
"""Mean of 1 / rank of the first passage that states a nugget."""

DRAWN = 150
"""Questions of COVID-QA's held-out articles that are asked."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Questions, the documents that they are asked of, and what is relevant.

    Attributes:
        name: of the set and its index.
        source: the documents.
        questions: those with judgments.
        measures: what is computed, the main one first.
        judgments: the answer file, None where documents are judged.
        pools: what was read for each question, None where that is not known.
        qrels: document judgments, None where nuggets are.
        seen: what the shipped models and weights know of it.
    """

    name: str
    source: Path
    questions: tuple[Question, ...]
    measures: tuple[str, ...]
    judgments: Path | None = None
    pools: Path | None = None
    qrels: Path | None = None
    seen: str = ""


def mini(data: Path, out: Path, kind: str) -> Collection:
    """The judged questions of a kind over the mini collection of that kind."""
    source, judgments, pools = _there(
        data, f"mini/{kind}.jsonl.xz", "mini/judgments.dev.json", "mini/pools.dev.json"
    )
    (folder, *_) = _there(data, "epicqa/questions")
    asked = find_questions(kind, folder, "all")
    return Collection(
        f"mini-{kind}",
        source,
        _judged([one for one in asked if kind_of(one.question_id) == kind], judgments),
        ("exact", "partial", "relaxed", "alpha_nDCG@20", "NuggetRecall@1000"),
        judgments=judgments,
        pools=pools,
        seen="No model was trained on its questions, judgments or judged documents, but weights were chosen "
        "on these judgments, so gains here flatter.",
    )


def held_covidqa(data: Path, out: Path) -> Collection:
    """Questions on COVID-QA's held-out articles, asked of all sentences of these articles.

    The sentences that hold the answer are relevant: one nugget a question. A question that was asked twice is
    one, with both answers.
    """
    _there(data, "pairs/covidqa_squad.json.gz", "mini/exclude.txt")
    held = covidqa(data)[1]
    texts = _covidqa_texts(data)
    ids = {article.article_id: _numbered(article.article_id, texts[article.article_id]) for article in held}
    answers: dict[str, dict[str, None]] = {}
    for article in held:
        for question, rows in article.questions:
            found = answers.setdefault(question, {})
            found.update(dict.fromkeys(str(ids[article.article_id][row]) for row in rows))
    chosen = np.random.default_rng(SEED).choice(len(answers), min(DRAWN, len(answers)), replace=False)
    every = list(answers)
    asked = {f"Q{place + 1:03d}": every[place] for place in np.sort(chosen).tolist()}
    judged = [
        {
            "question_id": question_id,
            "nuggets": [{"nugget_id": f"{question_id}-N01", "nugget": f"the answer to: {text}"}],
            "annotations": [
                {"sentence_id": sentence_id, "nugget_ids": [f"{question_id}-N01"]}
                for sentence_id in answers[text]
            ],
        }
        for question_id, text in asked.items()
    ]
    return Collection(
        "covidqa",
        _written(out / "covidqa.jsonl", (_document(article, ids[article.article_id]) for article in held)),
        tuple(Question(question_id, text, "", "") for question_id, text in asked.items()),
        ("exact", "NuggetRecall@1000", MRR),
        judgments=_written(out / "covidqa.judgments.json", [judged]),
        seen="No model was trained on its articles or their questions; encoder and reranker were on those of "
        "COVID-QA's other articles.",
    )


def healthver(data: Path, out: Path) -> Collection:
    """Questions of the HealthVer-derived set, over its abstracts."""
    folder = "epicqa/healthver-derived"
    source, questions, judgments = _there(
        data, f"{folder}/documents.jsonl.gz", f"{folder}/questions.json", f"{folder}/judgments.json"
    )
    return Collection(
        "healthver",
        source,
        _judged(read_questions(questions), judgments),
        ("exact",),
        judgments=judgments,
        seen="No model was trained on its abstracts, questions or judgments. Its nuggets are loose.",
    )


def trec_covid(data: Path, out: Path) -> Collection:
    """TREC-COVID's topics over titles and abstracts; the narrative is the background.

    A paper without an abstract has its title for a text.
    """
    papers, topics, qrels = _there(
        data,
        "cord19/cord19_titles_abstracts.jsonl.gz",
        "trec-covid/topics/topics.covid-round5.xml",
        "cord19/qrels.covid-complete.held.txt",
    )
    with gzip.open(papers, "rt", encoding="utf-8") as lines:
        documents = [
            {
                "id": paper["cord_uid"],
                "title": paper["title"],
                "text": (paper.get("abstract") or "").strip() or paper["title"],
            }
            for paper in map(json.loads, lines)
        ]
    asked = tuple(
        Question(topic.attrib["number"], *(_text(topic, key) for key in ("question", "query", "narrative")))
        for topic in ET.parse(topics).getroot().iter("topic")
    )
    return Collection(
        "trec-covid",
        _written(out / "trec-covid.jsonl", documents),
        asked,
        ("nDCG@10",),
        qrels=qrels,
        seen="No model was trained on its topics or judgments; encoder and reranker were on titles and "
        "abstracts, some of which are of its papers.",
    )


SETS: Mapping[str, Callable[[Path, Path], Collection]] = {
    "mini-expert": partial(mini, kind="expert"),
    "mini-general": partial(mini, kind="general"),
    "covidqa": held_covidqa,
    "healthver": healthver,
    "trec-covid": trec_covid,
}
"""Sets by name: from the folder of the real data, and one to write to."""


def _there(data: Path, *names: str) -> list[Path]:
    """Files or folders of the real data.

    Raises:
        EpicqaError: one of them is missing.
    """
    for name in names:
        if not (data / name).exists():
            raise EpicqaError(f"{data / name}: not there, expected the real data in {data}")
    return [data / name for name in names]


def _judged(questions: Sequence[Question], judgments: Path) -> tuple[Question, ...]:
    """The questions that a sentence states a nugget of."""
    judged = read_judgments(judgments).questions
    found = [one for one in questions if one.question_id in judged and len(judged[one.question_id].number)]
    if not found:
        raise EpicqaError(f"{judgments}: judges none of the questions, expected nuggets of some")
    return tuple(found)


def _text(topic: ET.Element, key: str) -> str:
    return (topic.findtext(key) or "").strip()


def _covidqa_texts(data: Path) -> dict[str, str]:
    """COVID-QA's articles as they are, by id."""
    with gzip.open(data / "pairs" / "covidqa_squad.json.gz") as handle:
        found = json.load(handle)["data"]
    return {
        str(paragraph["document_id"]): paragraph["context"]
        for entry in found
        for paragraph in entry["paragraphs"]
    }


def _numbered(article_id: str, text: str) -> list[SentenceId]:
    """The id of each sentence of an article; what blank lines part are contexts."""
    found: list[SentenceId] = []
    context = number = end = 0
    for start, last in split(text):
        if found and re.search(r"\n\s*\n", text[end:start]):
            context, number = context + 1, 0
        found.append(SentenceId(article_id, context, number))
        number, end = number + 1, last
    return found


def _document(article: Article, ids: list[SentenceId]) -> dict[str, Any]:
    """An article in the track's form; its sentences stand one space apart."""
    contexts = []
    by_context = groupby(zip(ids, article.sentences, strict=True), key=lambda one: one[0].context_id)
    for context_id, group in by_context:
        sentences = []
        start = 0
        texts = []
        for sentence_id, text in group:
            end = start + len(text)
            sentences.append({"sentence_id": str(sentence_id), "start": start, "end": end})
            texts.append(text)
            start = end + 1
        contexts.append({"context_id": str(context_id), "text": " ".join(texts), "sentences": sentences})
    return {"document_id": article.article_id, "metadata": {"title": article.title}, "contexts": contexts}


def _written(path: Path, records: Iterable[Any]) -> Path:
    """A file of JSON records, a line each; an equal one keeps its time, by which its index knows it."""
    content = b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)
    return path
