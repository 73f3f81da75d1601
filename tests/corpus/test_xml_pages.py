"""The track's XML: sections and their names, addresses, encodings, and no entities."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.sources.base import BadDocument
from epicqa.corpus.sources.xml_pages import read_xml


def told(xml: str) -> list[tuple[str | None, str]]:
    return [(paragraph.section, paragraph.text) for paragraph in read_xml(xml.encode()).paragraphs]


def test_sections_carry_the_titles_around_them_and_not_those_beside_them() -> None:
    xml = """<?xml version="1.0" encoding="UTF-8"?>
    <doc id="https://a.example/fever">
      <title>Lung <b>Fever</b></title>
      <text>First of all.</text>
      <summary>In short.</summary>
      <sections>
        <section>
          <title>Signs</title>
          <sections>
            <section><title>Children</title><text>A mild fever.</text></section>
            <section><title>Adults</title><text>A cough.</text></section>
          </sections>
          <text>Fever and cough.</text>
        </section>
        <section><title>Cure</title><summary>None yet.</summary><text>Rest.</text>
          <section><title>  In
            time </title><text>Trials.</text></section>
        </section>
        <section><text>Without a title.</text></section>
      </sections>
    </doc>"""
    page = read_xml(xml.encode())
    assert (page.title, page.url, page.metadata) == ("Lung Fever", "https://a.example/fever", {})
    assert told(xml) == [
        (None, "First of all."),
        (None, "In short."),
        ("Signs", "Fever and cough."),
        ("Signs - Children", "A mild fever."),
        ("Signs - Adults", "A cough."),
        ("Cure", "None yet."),
        ("Cure", "Rest."),
        ("Cure - In time", "Trials."),
        (None, "Without a title."),
    ]


def test_the_url_wins_over_the_id_and_simple_attributes_are_metadata() -> None:
    page = read_xml(
        b'<doc id="x" url=" https://a.example/ " source="The Agency" date="2020-05-04" xml:lang="en" n="1"/>'
    )
    assert page.url == "https://a.example/"
    assert page.metadata == {"source": "The Agency", "date": "2020-05-04", "language": "en"}
    assert (page.title, page.paragraphs) == (None, ())
    assert read_xml(b"<doc><title> </title></doc>").url is None


def test_all_text_within_a_text_counts_and_words_stay_apart() -> None:
    assert told(
        "<doc><text> One <i>sign</i>,<p>two</p><p>three</p>four<!-- no --><?no no?> &lt;five&gt;</text></doc>"
    ) == [(None, "One sign, two three four <five>")]


def test_white_space_is_kept_where_it_is_declared_to_matter() -> None:
    assert told('<doc xml:space="preserve"><text>\n a\n  b \n</text></doc>') == [(None, "a\n  b")]
    inner = '<doc xml:space="preserve"><text xml:space="default">\n a\n  b \n</text></doc>'
    assert told(inner) == [(None, "a b")]


def test_a_namespace_changes_nothing() -> None:
    assert told('<d:doc xmlns:d="urn:d"><d:text>Told.</d:text></d:doc>') == [(None, "Told.")]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "shift_jis", "euc_jp"])
def test_the_declared_encoding_is_read(codec: str) -> None:
    declared = {"utf-8-sig": "utf-8", "euc_jp": "euc-jp"}.get(codec, codec)
    xml = f'<?xml version="1.0" encoding="{declared}"?><doc><text>肺の熱</text></doc>'
    assert read_xml(xml.encode(codec)).paragraphs[0].text == "肺の熱"


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (
            '<!DOCTYPE doc [<!ENTITY a "b">]><doc><text>&a;</text></doc>',
            "defines entities, which are not read",
        ),
        ('<!DOCTYPE doc [<!ENTITY a SYSTEM "file:///etc/passwd">]><doc/>', "defines entities"),
        ('<!DOCTYPE doc [<!ENTITY % p SYSTEM "http://127.0.0.1:9/"> %p;]><doc/>', "defines entities"),
        ('<!DOCTYPE doc SYSTEM "doc.dtd"><doc><text>a&nbsp;b</text></doc>', "names the entity &nbsp;"),
        ("<doc><text>a&nbsp;b</text></doc>", "broken XML: Entity 'nbsp' not defined"),
        ("<doc><text>a</doc>", "broken XML: Opening and ending tag mismatch"),
        ("", "broken XML: Document is empty"),
        ("words", "broken XML: Start tag expected"),
        ("<rss><channel/></rss>", "an XML file of <rss>, expected <doc>"),
        ('<?xml version="1.0" encoding="nonsense"?><doc/>', "broken XML: Unsupported encoding"),
        ("<doc>" + "<section>" * 300, "broken XML: Excessive depth"),
    ],
)
def test_what_is_not_read_is_said_in_one_line(xml: str, reason: str) -> None:
    with pytest.raises(BadDocument) as caught:
        read_xml(xml.encode())
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value) and "<string>" not in str(caught.value)


def test_entities_that_grow_without_bound_are_refused_before_they_do() -> None:
    grown = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    with pytest.raises(BadDocument):
        read_xml(f'<!DOCTYPE doc [<!ENTITY a0 "lol">{grown}]><doc><text>&a9;</text></doc>'.encode())


def test_names_of_sections_are_bounded_however_deep_they_lie() -> None:
    deep = "<section><title>" + "t" * 900 + "</title><text>x</text>"
    xml = f"<doc>{deep * 200}{'</section>' * 200}</doc>"
    assert max(len(section or "") for section, _ in told(xml)) == 1000


TREES = st.recursive(
    st.tuples(st.text("ab <&é", max_size=4), st.text("xy \n", max_size=4), st.just(())),
    lambda inner: st.tuples(
        st.text("ab <&é", max_size=4), st.text("xy \n", max_size=4), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(TREES)
def test_any_tree_of_sections_is_read_in_order(tree: tuple) -> None:  # type: ignore[type-arg]
    def written(node: tuple) -> str:  # type: ignore[type-arg]
        title, text, inner = node
        below = "".join(f"<section>{written(one)}</section>" for one in inner)
        return f"<title>{escape(title)}</title><sections>{below}</sections><text>{escape(text)}</text>"

    def expected(node: tuple, above: tuple[str, ...]) -> list[tuple[str | None, str]]:  # type: ignore[type-arg]
        title, text, inner = node
        name = (*above, " ".join(title.split()))
        own = [(" - ".join(filter(None, name)) or None, " ".join(text.split()))] if text.strip() else []
        return own + [found for one in inner for found in expected(one, name)]

    _, text, inner = tree
    assert told(f"<doc>{written(tree)}</doc>") == expected(("", text, inner), ())


@settings(max_examples=150)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 40))
def test_any_bytes_are_a_page_or_a_reason(junk: bytes, at: int, cut: int) -> None:
    whole = (
        b'<?xml version="1.0"?><!DOCTYPE doc><doc url="u"><title>t</title><sections><section><title>s</title>'
    )
    whole += b"<text>a <b>c</b> d</text></section></sections></doc>"
    for raw in (junk, b"<doc>" + junk + b"</doc>", whole[:at] + junk + whole[at + cut :]):
        try:
            read_xml(raw)
        except BadDocument as error:
            assert "\n" not in str(error)
