"""Pages as agencies and papers write them: what is kept, under which heading, and what is left out."""

from __future__ import annotations

import csv
import json
import logging
import random
import re
from collections import Counter
from html import escape, unescape
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, assemble
from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.html import Page, read_html

WASH = "Wash your hands with soap and water for twenty seconds, above all after you were in a public place."
APART = "Keep a distance of two metres from people who do not live with you, indoors and outdoors alike."
CURE = "There is no cure for lung fever at this time, but several drugs are being tried in hospitals."


def page(body: str, head: str = "<title>Lung Fever</title>") -> Page:
    return read_html(f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{body}</body></html>'.encode())


def told(found: Page) -> list[tuple[str | None, str]]:
    return [(paragraph.section, paragraph.text) for paragraph in found.paragraphs]


AROUND = (
    '<div id="skipmenu"><a class="skippy sr-only-focusable" href="#content">Skip directly to content</a>'
    "</div>"
    '<div class="cookie-banner" role="dialog"><p>We use cookies to make this site better for you.</p>'
    "<button>Accept</button></div>"
    '<header role="banner"><a href="/">Agency for Health</a><form role="search"><input><button>'
    "Search</button>"
    '</form></header><nav aria-label="breadcrumb"><ol><li><a href="/">Home</a></li><li>Lung Fever</li>'
    "</ol></nav>"
    '<main id="content"><h1>Lung Fever in Schools</h1>%s</main>'
    '<nav class="left"><ul><li><a href="/1">Symptoms</a></li><li><a href="/2">Testing</a></li></ul></nav>'
    '<aside><h2>Popular</h2><ul><li><a href="/q">Flu</a></li></ul></aside>'
    '<footer role="contentinfo"><p>Agency for Health, 1 Main Street</p><a href="/privacy">Privacy</a>'
    "</footer>"
    "<script>var words = 'of a script';</script>"
)


def test_an_agency_page_is_its_headings_paragraphs_lists_and_tables() -> None:
    found = page(
        AROUND
        % (
            '<div class="share"><a href="#">Share</a> <a href="#">Print</a></div>'
            f"<p>{WASH}</p><h2>What schools do</h2><p>Tell staff and parents.</p>"
            "<ul><li>Open the windows:<ul><li>in the morning</li><li>at noon</li></ul></li>"
            '<li>Keep <a href="/x">apart</a>.</li></ul>'
            f'<h3>When a child is ill</h3><p>Call the <a href="/d">family doctor</a> first.</p>'
            "<h2>Words</h2><dl><dt>Isolation</dt><dd>Ill people apart.</dd><dt>Contact:</dt><dd>A "
            "meeting.</dd></dl>"
            "<h2>Numbers</h2><table><caption>Cases</caption><tr><th>Week</th><th>Cases</th></tr>"
            "<tr><td>1</td><td>12</td></tr><tr><td>2</td><td></td></tr></table>"
            f"<blockquote><p>{APART}</p></blockquote>"
            '<h2>Related pages</h2><ul><li><a href="/1">Travel</a></li><li><a href="/2">Masks</a></li></ul>'
            "<div>Page last reviewed: March 15, 2020<br>Content source: Office of Schools</div>"
        ),
        "<title>Lung Fever in Schools | Agency for Health</title>",
    )
    assert found.title == "Lung Fever in Schools"
    assert told(found) == [
        (None, WASH),
        ("What schools do", "Tell staff and parents."),
        ("What schools do", "- Open the windows:\n- in the morning\n- at noon\n- Keep apart."),
        ("What schools do - When a child is ill", "Call the family doctor first."),
        ("Words", "- Isolation: Ill people apart.\n- Contact: A meeting."),
        ("Numbers", "Cases\nWeek | Cases\n1 | 12\n2"),
        ("Numbers", APART),
        (None, "Page last reviewed: March 15, 2020\nContent source: Office of Schools"),
    ]


BOOTSTRAP = (
    '<h2>Basics</h2><div class="accordion" id="a">%s</div><div class="card"><div class="card-header h4">'
    "If ill</div>"
    f'<div class="card-body"><p>{CURE}</p></div></div>'
) % "".join(
    f'<div class="card bar"><div class="card-header collapsed" data-target="#c{number}" '
    'data-toggle="collapse" '
    f'role="button" aria-expanded="false"><button class="btn h4"><span role="heading" aria-level="3">{asked}'
    '<span class="sr-only">opens below</span></span></button></div>'
    f'<div class="collapse" id="c{number}" style="display: none"><div class="card-body"><p>{told}</p>'
    "</div></div></div>"
    for number, asked, told in ((1, "What is it?", WASH), (2, "Can pets get it?", APART))
)
TRIGGERS = (
    '<div class="sf-accordion" role="tablist">'
    f'<div class="panel"><div><a href="javascript:void(0)" class="sf-accordion__link">What is it?</a></div>'
    f'<div class="sf-accordion__content"><p>{WASH}</p></div></div>'
    '<div class="panel"><div><a href="javascript:void(0)" class="sf-accordion__link">Can pets get it?</a>'
    "</div>"
    f'<div class="sf-accordion__content"><p>{APART}</p></div></div></div>'
)
DETAILS = (
    '<h2>Advice</h2><details class="expander"><summary role="button" aria-controls="d1"><span>Staying '
    "in</span>"
    f'</summary><div id="d1" aria-hidden="true"><p>{WASH}</p><h3>Alone</h3><p>Seven days.</p></div></details>'
    f'<details class="expander"><summary>Going out</summary><p>{APART}</p></details><p>{CURE}</p>'
)
BUTTONS = (
    '<div class="accordion"><button class="open-all" aria-expanded="false">Open all</button>'
    '<div><h2><button class="accordion__section-button" aria-controls="s1" aria-expanded="false">Visiting'
    f'<svg><title>icon</title></svg></button></h2><div id="s1" hidden><p>{WASH}</p></div></div>'
    '<div><h2><button class="accordion__section-button" aria-controls="s2" aria-expanded="false">Working'
    f'</button></h2><div id="s2" hidden><h3>At home</h3><p>{APART}</p></div></div></div>'
)
PANELS = "".join(
    '<div class="panel"><div class="panel-heading"><h4 class="panel-title"><a data-toggle="collapse" '
    f'href="#p{number}">'
    f'{asked}</a></h4></div><div class="panel-collapse collapse" id="p{number}"><p>{told}</p></div></div>'
    for number, asked, told in ((1, "Q: What is it?", WASH), (2, "Q: Can pets get it?", APART))
)
TERMS = (
    f"<dl><dt>What is it?</dt><dd>{WASH}</dd>"
    f"<dt>Can pets get it?</dt><dd><p>{APART}</p><p>{CURE}</p></dd></dl>"
)
ARTICLES = (
    f"<article><h2>What is it?</h2><p>{WASH * 3}</p></article>"
    f"<article><h2>And pets?</h2><p>{APART}</p></article>"
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            BOOTSTRAP,
            [
                ("Basics - What is it?", WASH),
                ("Basics - Can pets get it?", APART),
                ("Basics - If ill", CURE),
            ],
            id="bootstrap",
        ),
        pytest.param(TRIGGERS, [("What is it?", WASH), ("Can pets get it?", APART)], id="triggers"),
        pytest.param(
            DETAILS,
            [
                ("Advice - Staying in", WASH),
                ("Advice - Staying in - Alone", "Seven days."),
                ("Advice - Going out", APART),
                ("Advice", CURE),
            ],
            id="details",
        ),
        pytest.param(BUTTONS, [("Visiting", WASH), ("Working - At home", APART)], id="buttons"),
        pytest.param(PANELS, [("Q: What is it?", WASH), ("Q: Can pets get it?", APART)], id="panels"),
        pytest.param(
            TERMS,
            [("What is it?", WASH), ("Can pets get it?", APART), ("Can pets get it?", CURE)],
            id="terms",
        ),
        pytest.param(ARTICLES, [("What is it?", WASH * 3), ("And pets?", APART)], id="articles"),
    ],
)
def test_questions_and_answers_are_sections_however_a_page_folds_them(
    body: str, expected: list[tuple[str | None, str]]
) -> None:
    assert told(page(AROUND % body)) == expected


@pytest.mark.parametrize(
    "fold",
    [
        "<details><summary>{0}</summary><div hidden>{1}</div></details>",
        '<div><div class="card-header" aria-expanded="false" data-target="#c{2}"><button>{0}</button></div>'
        '<div class="collapse" id="c{2}" style="display:none">{1}</div></div>',
    ],
)
def test_real_answers_of_an_agency_come_out_whole_under_their_questions(shared: Path, fold: str) -> None:
    with (shared / "consumer" / "cdc-main-faq-20200504.csv").open(newline="") as handle:
        rows = [(" ".join(row["Question"].split()), row["Answer"]) for row in csv.DictReader(handle)]
    folds = "".join(fold.format(escape(asked), answer, n) for n, (asked, answer) in enumerate(rows))
    found = told(page(AROUND % folds))
    sections = [section or "" for section, _ in found]
    assert len(rows) > 100
    assert all(any(section.startswith(asked) for section in sections) for asked, _ in rows)
    words = Counter(
        re.findall(r"\w+", " ".join(unescape(re.sub("<[^>]*>", " ", answer)) for _, answer in rows))
    )
    kept = Counter(re.findall(r"\w+", " ".join(text for _, text in found)))
    assert (words & kept).total() > 0.99 * words.total()


def test_a_menu_that_unfolds_is_no_text() -> None:
    menu = (
        '<div class="top"><a href="#" aria-expanded="false" aria-controls="m">Topics</a>'
        '<div id="m"><a href="/1">Symptoms of lung fever</a><a href="/2">Testing for lung fever</a></div>'
        "</div>"
    )
    assert told(page(menu + AROUND % f"<p>{WASH}</p>")) == [(None, WASH)]


def test_a_page_of_tables_from_long_ago() -> None:
    found = page(
        '<TABLE WIDTH=760><TR><TD COLSPAN=2><A HREF="/"><IMG SRC=logo.gif ALT=Agency></A></TD></TR><TR>'
        "<TD WIDTH=120>"
        '<FONT SIZE=2><A HREF="/1">Topics</A><BR><A HREF="/2">Travel</A></FONT></TD><TD><FONT SIZE=5>'
        "Lung Fever"
        f"</FONT><P><B>What is it?</B><BR>{CURE}<P>{WASH}<UL><LI>Rest<LI>Call <A HREF=/d>the doctor</A>"
        f"</UL>{APART}"
        "<BR><BR>Office of Health<BR>1 Main Street</TD></TR></TABLE>"
    )
    assert told(found)[1:] == [
        (None, f"What is it?\n{CURE}"),
        (None, WASH),
        (None, "- Rest\n- Call the doctor"),
        (None, APART),
        (None, "Office of Health\n1 Main Street"),
    ]


def test_a_story_is_kept_and_what_surrounds_it_is_not() -> None:
    told_next = (
        "All schools are shut until the end of the month, and pupils are taught at home by their parents."
    )
    found = page(
        '<div class="wrap"><div class="story-body"><h1>Town hit by lung fever</h1><div class="byline">By '
        "A. Writer"
        "</div><p>The town counted forty cases of lung fever this week, its mayor said on "
        f'<time datetime="2020-04-06">Monday</time>.</p><p>{WASH}</p><h2>Schools shut</h2><p>{told_next}</p>'
        '<div class="related"><h3>More on this</h3><ul><li><a href="/r1">Masks sold out</a></li></ul></div>'
        '<p>Shops may stay open, she said.</p></div><div class="rail"><h3>Most read</h3><p><a href="/m">'
        "Dog saves "
        "cat from well</a></p><p>A teaser of another story that has nothing to do with this one.</p>"
        "</div></div>"
        '<div id="comments"><div class="comment"><p>I do not believe any of it, said a reader at '
        "length.</p></div>"
        "</div>",
        "<title>Town hit by lung fever - The Paper</title>",
    )
    assert told(found) == [
        (None, "The town counted forty cases of lung fever this week, its mayor said on Monday."),
        (None, WASH),
        ("Schools shut", told_next),
        ("Schools shut", "Shops may stay open, she said."),
    ]


def test_short_pages_lists_in_cells_and_addresses_are_kept() -> None:
    assert told(page(AROUND % "<p>Call 555-0100.</p>")) == [(None, "Call 555-0100.")]
    found = page(
        AROUND
        % f"<p>{WASH}</p><table><tr><td><h2>Signs</h2><p>{APART}</p><ul><li>Fever</li><li>Cough</li></ul>"
        "</td>"
        "</tr></table><h2>Mail</h2><address>Office of Health<br>1 Main Street</address>"
    )
    assert told(found)[1:] == [
        ("Signs", APART),
        ("Signs", "- Fever\n- Cough"),
        ("Mail", "Office of Health\n1 Main Street"),
    ]


def test_items_with_headings_are_sections_and_text_that_keeps_its_lines_keeps_them() -> None:
    found = page(
        AROUND % f"<p>{WASH}</p><ul><li><h2>One</h2><p>{APART}</p></li></ul><pre>first line of it\n  "
        "second\n\nthird one "
        f"of it</pre><div>{CURE}<br><br>H<sub>2</sub>O is <em>water</em></div>"
    )
    assert told(found)[1:] == [
        ("One", APART),
        ("One", "first line of it\nsecond"),
        ("One", "third one of it"),
        ("One", CURE),
        ("One", "H2O is water"),
    ]


def test_links_alone_are_no_page() -> None:
    links = "".join(f'<li><a href="/{number}">Page number {number}</a></li>' for number in range(40))
    assert told(page(f"<main><h1>Index</h1><ul>{links}</ul></main>")) == []


def test_a_name_like_social_distancing_hides_nothing() -> None:
    named = f'<div class="social-distancing" id="share-of-cases"><h2>Apart</h2><p>{APART}</p></div>'
    assert ("Apart", APART) in told(page(AROUND % f"{named}<p>{WASH * 4}</p>"))


@pytest.mark.parametrize(
    "wrapper",
    [
        '<form id="aspnetForm">%s</form>',
        '<div aria-hidden="true">%s</div>',
        '<div style="visibility:hidden">%s</div>',
    ],
)
def test_a_whole_page_in_a_form_or_hidden_until_a_script_runs_is_read(wrapper: str) -> None:
    body = f"<main><h1>Lung Fever</h1><p>{WASH}</p><p>{APART}</p><p>{CURE}</p></main>"
    assert [text for _, text in told(page(wrapper % body))] == [WASH, APART, CURE]


def test_a_page_is_read_in_the_encoding_that_it_or_http_declares() -> None:
    told_once = "新しい肺の熱について、手を洗い、窓を開けてください。"
    raw = f"<title>肺の熱</title><main><p>{told_once}</p></main>"
    declared = f'<meta charset="shift_jis">{raw}'.encode("shift_jis")
    for found in (read_html(declared), read_html(raw.encode("euc_jp"), declared="EUC-JP")):
        assert (found.title, told(found)) == ("肺の熱", [(None, told_once)])


def test_a_page_that_leaves_tags_out_is_read() -> None:
    found = read_html(
        f"<title>Lung Fever</title><header>Agency</header><main><h2>Do</h2><p>{WASH}</main>".encode()
    )
    assert (found.title, told(found)) == ("Lung Fever", [("Do", WASH)])
    assert told(read_html(f"<title>Lung Fever</title><section><p>{WASH}".encode())) == [(None, WASH)]


def test_marks_that_are_not_to_be_seen_are_left_out_of_words() -> None:
    assert told(page(AROUND % "<p>The hand&shy;washing\u200bs of&nbsp;a day, of&#8203; them all.</p>")) == [
        (None, "The handwashings of a day, of them all.")
    ]


@pytest.mark.parametrize(
    ("head", "h1", "title"),
    [
        ("<title>Lung Fever | Agency | Health</title>", "", "Lung Fever"),
        ("<title>Lung Fever - The Agency of Health</title>", "", "Lung Fever - The Agency of Health"),
        ("<title>Signs of Lung Fever - Agency</title>", "", "Signs of Lung Fever"),
        ('<title>A - B</title><meta property="og:site_name" content="B">', "", "A"),
        ('<title>x</title><meta property="og:title" content="Lung Fever">', "", "Lung Fever"),
        ("<title>Home</title>", "<h1>Lung <b>Fever</b></h1>", "Lung Fever"),
        ("<title>Lung Fever | Agency</title>", "<h1>Agency</h1>", "Lung Fever"),
        ("<title>Lung Fever | Agency</title>", "<h1>One</h1><h1>Two</h1>", "Lung Fever"),
        ("<title>Fever</title>", '<h1>Lung<span class="visually-hidden">:</span> Fever</h1>', "Lung Fever"),
        ("", "<h1>Lung Fever</h1>", "Lung Fever"),
        ("<title> </title>", "", None),
    ],
)
def test_a_title_is_the_page_s_own(head: str, h1: str, title: str | None) -> None:
    assert page(f"{h1}<p>{WASH}</p>", head).title == title


@pytest.mark.parametrize(
    ("head", "url"),
    [
        ('<link rel="canonical" href="https://a.example/x">', "https://a.example/x"),
        (
            '<link rel="canonical" href="/x"><meta property="og:url" content="http://a.example/y">',
            "http://a.example/x",
        ),
        ('<meta property="og:url" content="http://a.example/y">', "http://a.example/y"),
        ('<base href="http://a.example/z/"><link rel="canonical" href="x">', "http://a.example/z/x"),
        ('<link rel="canonical" href="/x">', None),
        ('<link rel="canonical" href="javascript:alert(1)">', None),
        ('<link rel="canonical" href="http://[">', None),
        ("", None),
    ],
)
def test_an_address_is_the_page_s_own_word(head: str, url: str | None) -> None:
    assert page(f"<p>{WASH}</p>", head).url == url


def test_a_known_address_wins_and_a_browser_s_note_is_read() -> None:
    raw = f"<!-- saved from url=(0021)https://a.example/old --><p>{WASH}</p>".encode()
    assert read_html(raw).url == "https://a.example/old"
    assert read_html(raw, url="https://b.example/").url == "https://b.example/"


def test_dates_site_and_language_are_metadata_where_the_page_states_them() -> None:
    linked = json.dumps({"@graph": [{"datePublished": "2020-04-01T08:00:00Z", "dateModified": "2031-12-24"}]})
    site = '<meta property="og:site_name" content="The Paper">'
    assert page("<p>x</p>", f'{site}<script type="application/ld+json">{linked}</script>').metadata == {
        "published": "2020-04-01",
        "modified": "2031-12-24",
        "site": "The Paper",
        "language": "en",
    }


@pytest.mark.parametrize(
    ("stated", "date"),
    [
        ("2020-05-04T10:00:00+02:00", "2020-05-04"),
        ("20200504", "2020-05-04"),
        ("May 4, 2020", "2020-05-04"),
        ("4 Sept 2020", "2020-09-04"),
        ("2020-05", None),
        ("2020 May", None),
        ("2020-02-31", None),
        ("31 Foo 2020", None),
        ("yesterday", None),
    ],
)
def test_only_whole_dates_count_so_that_today_never_does(stated: str, date: str | None) -> None:
    found = page("<p>x</p>", f'<meta name="DC.date" content="{stated}">')
    assert found.metadata.get("published") == date


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"%PDF-1.4 <html>", "it looks like a PDF file"),
        (b"PK\x03\x04<html>", "a zip archive"),
        (b"\x1f\x8b\x08", "gzip"),
        (bytes(range(256)) * 4, "binary data"),
        (b"<p>" + b"\0" * 100, "binary data"),
        (b"Only words, and 1 < 2.", "there is no element in it"),
    ],
)
def test_what_is_no_page_is_said_in_one_line(raw: bytes, reason: str) -> None:
    with pytest.raises(BadDocument, match=re.escape(reason)) as caught:
        read_html(raw)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "raw", [b"", b"  \n", b"<!-- only this -->", b"<html><head></head></html>", b"<frameset>"]
)
def test_a_page_without_text_is_an_empty_page(raw: bytes) -> None:
    assert read_html(raw).paragraphs == ()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("<div>" * 100_000 + "deep<p>" + WASH, id="divs"),
        pytest.param("<div>" * 400 + f"<p>{WASH}</p>", id="deep"),
        pytest.param("<ul><li>item" * 2000, id="lists"),
        pytest.param("<table><tr><td>cell" * 1000, id="tables"),
        pytest.param("<details><summary>What?</summary>told" * 1000, id="details"),
        pytest.param('<div aria-expanded="false">What?</div><div>told' * 1000, id="handles"),
        pytest.param("<h1>" * 1500 + "heading", id="headings"),
        pytest.param("<dl><dt>What?<dd>told" * 800, id="terms"),
        pytest.param("<p>" + "word " * 200_000, id="line"),
        pytest.param('<p class="' + "w " * 100_000 + f'">{WASH}', id="attribute"),
        pytest.param("<p>a\0b\0c of a text\x01\x02 &#0; &#1; &#xd800; &#x110000; &nosuch;", id="controls"),
        pytest.param(
            "<title>T<body><p><b><i><a href=x>one <table><tr><td>two <ul><li>three <h2>four", id="open"
        ),
        pytest.param('<script type="application/ld+json">' + "[" * 100_000, id="json"),
        pytest.param("<meta charset='" * 30_000, id="metas"),
        pytest.param("<!--" * 100_000, id="comments"),
        pytest.param(
            "<!DOCTYPE html [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><p>&a; of a text</p>", id="entity"
        ),
    ],
)
def test_hostile_pages_end_well(raw: str) -> None:
    found = read_html(raw.encode())
    assert all(
        paragraph.text.strip() and len(paragraph.section or "") < 5000 for paragraph in found.paragraphs
    )
    assert "root:" not in "".join(paragraph.text for paragraph in found.paragraphs)


def test_a_page_nested_more_deeply_than_the_extractor_bears_is_read_all_the_same() -> None:
    assert told(page("<div>" * 400 + f"<p>{WASH}</p>" + "</div>" * 400 + f"<p>{APART}</p>")) == [
        (None, WASH),
        (None, APART),
    ]


def test_nothing_is_written_beside(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        read_html(b"<html><body><p>x")
        read_html(b"<p>" + b"<ul><li>" * 200)
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.name.startswith(("trafilatura", "justext"))]


SOUP = [
    *(
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<ul>",
        "<li>",
        "</ul>",
        "<ol>",
        "<table>",
        "<tr>",
        "<td>",
        "<th>",
        "</table>",
    ),
    *(
        "<h1>",
        "<h2>",
        "</h2>",
        "<br>",
        "<a href='/x'>",
        "</a>",
        "<details>",
        "<summary>",
        "</summary>",
        "</details>",
    ),
    *("<dl>", "<dt>", "<dd>", "</dl>", "<pre>", "<main>", "<article>", "<nav>", "<form>", "<script>", "<b>"),
    *("<div hidden>", "<div aria-expanded='x'>", "<div role='heading' aria-level='2'>", "<div class='h3'>"),
    *(
        "<section id='p'>",
        "<button aria-controls='p'>",
        "<template>",
        "<svg>",
        "<math>",
        "<select>",
        "<option>",
    ),
    *(
        "<!-- ",
        "-->",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "&#11;",
        "<",
        ">",
        "\0",
        "<body>",
        "<html>",
        "<head>",
        "<title>",
    ),
    *("<meta name='date' content='x'>", "<base href='//x'>", "<textarea>", "<frameset>", "<plaintext>"),
    *("fever ", "Of a town? ", WASH),
]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(SOUP), max_size=40).map("".join))
@example("<div aria-expanded='x'></div>")
@example("<details><summary><summary></summary></details>")
def test_any_soup_of_elements_is_a_page_of_the_text_that_is_in_it(soup: str) -> None:
    try:
        found = read_html(soup.encode())
    except BadDocument:
        return
    letters = re.sub(r"[\W_]", "", soup)
    for paragraph in found.paragraphs:
        assert paragraph.text == paragraph.text.strip() != ""
        assert all(word in letters for word in re.findall(r"[^\W_]+", paragraph.text))
    if found.paragraphs:
        assemble(Draft(found.paragraphs, found.title, found.url, metadata=found.metadata))


@settings(max_examples=150)
@given(st.binary(max_size=400), st.integers(0, 2**32))
def test_any_bytes_are_a_page_or_a_reason(junk: bytes, seed: int) -> None:
    whole = bytearray((AROUND % (BOOTSTRAP + DETAILS + TERMS)).encode())
    chance = random.Random(seed)
    for _ in range(chance.randrange(8)):
        at = chance.randrange(len(whole))
        whole[at : at + chance.randrange(30)] = junk[: chance.randrange(20)]
    for raw in (junk, b"<html><body>" + junk, bytes(whole)):
        try:
            found = read_html(raw)
        except BadDocument as error:
            assert "\n" not in str(error)
        else:
            assert found == read_html(raw)
