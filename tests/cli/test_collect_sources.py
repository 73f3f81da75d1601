"""From raw sources to answers, by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from epicqa.corpus.sources import parse
from epicqa.corpus.sources.reddit_thread import pseudonym

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>
<nav><ul><li><a href="/">Home</a></li><li><a href="/a-z">A to Z</a></li></ul></nav>
<main><h1>{title}</h1>
<p>{first} This page is for everyone who lives with a patient, and for those who visit one at home.</p>
<h2>How long to wait</h2>
<p>{second} Ask a doctor when a fever comes back after some days, or when breathing is hard.</p>
</main><footer><p>Page last reviewed on 1 May</p></footer></body></html>"""

XML = """<?xml version="1.0" encoding="UTF-8"?>
<doc id="7" url="https://health.example/masks"><title>Masks</title>
<text>A mask over mouth and nose keeps droplets of the coronavirus back.</text>
<sections><section><title>Care</title><sections><section><title>Washing</title>
<text>Wash a cloth mask after each day. Hot water and soap are enough.</text>
</section></sections></section></sections></doc>"""


def page(title: str, first: str, second: str) -> bytes:
    return PAGE.format(title=title, first=first, second=second).encode()


def warc(url: str, body: bytes) -> bytes:
    sink = BytesIO()
    writer = WARCWriter(sink, gzip=True)
    headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
    record = writer.create_warc_record(url, "response", payload=BytesIO(body), http_headers=headers)
    writer.write_record(record)
    return sink.getvalue()


def post(**fields: Any) -> bytes:
    return json.dumps({"subreddit": "askscience", "score": 9, "created_utc": 1585000000} | fields).encode()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A folder with something of every source."""
    folder = tmp_path / "raw"
    (folder / "site").mkdir(parents=True)
    isolation = page(
        "Staying at home", "People with COVID-19 stay in a room of their own.", "Ten days are usual."
    )
    (folder / "site" / "home.html").write_bytes(isolation)
    (folder / "site" / "masks.xml").write_text(XML)
    news = page(
        "Wuhan reports fewer cases", "The coronavirus spreads more slowly.", "Two weeks passed without it."
    )
    (folder / "news.warc.gz").write_bytes(
        warc("https://www.city.gov/a", news) + warc("https://shop.example/b", news)
    )
    (folder / "posts.jsonl").write_bytes(
        b"\n".join(
            [
                post(
                    id="abc1",
                    title="Does heat kill the virus?",
                    selftext="I read that &gt;60 degrees do.",
                    author="curious",
                    link_flair_text="COVID-19",
                    permalink="/r/askscience/comments/abc1/x/",
                ),
                post(
                    id="c1",
                    link_id="t3_abc1",
                    parent_id="t3_abc1",
                    author="doc",
                    body="**Yes**, [heat](https://x.example) breaks its shell.",
                ),
                post(id="c2", link_id="t3_abc1", parent_id="t1_c1", author="curious", body="Thank you."),
            ]
        )
    )
    return folder


def test_every_source_to_answers(
    epicqa: Callable[..., Any], raw: Path, home: Path, plain_flags: list[str]
) -> None:
    collected = {}
    for source, name in (("pages", "site"), ("news", "news.warc.gz"), ("reddit", "posts.jsonl")):
        ended = epicqa("collect", source, raw / name, "-o", source, "--json")
        assert ended.status == 0, ended.err
        collected[source] = json.loads(ended.out)
    assert [one["documents"] for one in collected.values()] == [2, 1, 1]
    assert collected["news"]["left_out"] == {"filtered": 1}

    ended = epicqa("collect", "merge", *collected, "-o", "all", "--jsonl", "--json")
    assert json.loads(ended.out)["documents"] == 4
    found = {one.title: one for one in map(parse, Path("all/documents.jsonl").read_bytes().splitlines())}
    assert [one.section for one in found["Masks"].contexts] == [None, "Care - Washing"]
    assert [one.section for one in found["Staying at home"].contexts] == [None, "How long to wait"]
    thread = found["Does heat kill the virus?"]
    assert (thread.document_id, thread.contexts[0].text) == ("abc1", "I read that >60 degrees do.")
    assert [one.section for one in thread.contexts[1:]] == [
        f"by:{pseudonym('doc')}",
        f"by:{pseudonym('curious')} re:{pseudonym('doc')}",
    ]
    assert thread.contexts[1].text == "Yes, heat breaks its shell."

    assert epicqa("index", "all", "--name", "all", "--dense", "none").status == 0
    asked = epicqa("ask", "how long stay at home", "--index", "all", "-n", "1", "--json", *plain_flags)
    assert json.loads(asked.out)[0]["first_id"].startswith(found["Staying at home"].document_id)


def test_a_release_to_a_run(
    epicqa: Callable[..., Any], shared: Path, home: Path, plain_flags: list[str]
) -> None:
    tool = shared.parent / "tools" / "expand_cord19.py"
    subprocess.run(
        [sys.executable, tool, "release", "--limit", "25"], check=True, capture_output=True, timeout=120
    )
    ended = epicqa("collect", "cord19", "release", "-o", "data/ae/cord19", "--json")
    assert json.loads(ended.out)["documents"] == 25, ended
    (Path("data/ae") / "expert_questions.json").write_bytes(
        (shared / "epicqa/questions/ae/expert_questions.json").read_bytes()
    )
    # The published layout is complete enough to ask: the run builds the index that it needs.
    ended = epicqa("run", "--data", "data", "--depth", "5", "--output", "run.tsv", *plain_flags)
    assert ended.status == 0, ended.err
    assert len(Path("run.tsv").read_text().splitlines()) == 45 * 5
    assert epicqa("check", "run.tsv").status == 0
