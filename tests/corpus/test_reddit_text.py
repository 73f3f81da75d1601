import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.sources.reddit_text import MAX_LENGTH, plain, unescape


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("a &amp; b &lt; c &gt; d", "a & b < c > d"),
        ("&amp;gt; &amp;nbsp;", "&gt; &nbsp;"),
        ("&amp;amp;lt;", "&amp;lt;"),
        ("&quot;x&#39; & &;", "&quot;x&#39; & &;"),
    ],
)
def test_unescape_is_one_pass_over_three_entities(escaped: str, text: str) -> None:
    assert unescape(escaped) == text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("", ""),
        (" \n\n&#x200B;\n\n&nbsp;\n", ""),
        ("One line\nof two. \n\n\n\nAnother.", "One line of two.\n\nAnother."),
        ("Hard  \nbreak\\\nhere", "Hard\nbreak\nhere"),
        ("A\r\n\r\nB\rC", "A\n\nB C"),
        # Emphasis and other marks.
        (
            "**bold** _it_ ***both*** ~~gone~~ `co**de` snake_case_name 2*3*4",
            "bold it both gone co**de snake_case_name 234",
        ),
        ("2\\*3\\*4 \\_x\\_ \\^up ¯\\\\\\_(ツ)\\_/¯", "2*3*4 _x_ ^up ¯\\_(ツ)_/¯"),
        ("1 &lt; 2 &amp; x &#39;y&#39;", "1 < 2 & x 'y'"),
        # Superscripts.
        ("^(I am small *print*) and ^so ^^^am ^I", "I am small print and so am I"),
        ("10^6 cells, m^(-2), H^+, (a)^2", "10^6 cells, m^(-2), H^+, (a)^2"),
        ("shown.^(1) `^(a)`", "shown.1 ^(a)"),
        # Spoilers and quotes.
        (">!first!< and >!second\nline!< stay", "first and second line stay"),
        (">! a spoiler\n>! in lines", "a spoiler in lines"),
        (">! not\n\nclosed !< a >! b", "not\n\nclosed !< a >! b"),
        ("> quoted\nstill\n\nanswer", "quoted still\n\nanswer"),
        (">>two\n\n>one\n>\n>again", "two\n\none\n\nagain"),
        (">" * 10_000 + " deep", "deep"),
        ("> " * 10_000 + "deep", "deep"),
        # Links.
        (
            'See [the *page*](https://x.org/a_(b) "t") and [ref][1].\n\n[1]: http://y.org',
            "See the page and ref.",
        ),
        ("[](/emote) ![gif](giphy|abc123) ![a *map*](https://i.org/m.png)", "a map"),
        (
            "https://x.org/_a_/b*c*d?e=~~f~~ <https://y.org/_z_>",
            "https://x.org/_a_/b*c*d?e=~~f~~ https://y.org/_z_",
        ),
        ("*see https://x.org/a_b* or (https://x.org/a\\_b)", "see https://x.org/a_b or (https://x.org/a_b)"),
        # Headings, rules, code, HTML.
        (
            "# One\ntext\n\n##Two\n\nThree\n---\n\n***\n\n#1 reason",
            "One\n\ntext\n\nTwo\n\nThree\n\n#1 reason",
        ),
        ("Do\n\n    a = *b*\n      c\n\nor\n\n```py\n^d\n```", "Do\n\na = *b*\n  c\n\nor\n\n^d"),
        ("```all this\nand that```", "all this\nand that```"),
        ("<b>x</b> <!-- y -->\n\n<div>\nz\n</div>", "<b>x</b> <!-- y -->\n\n<div> z </div>"),
        # Lists.
        (
            "Take:\n\n- one\n- **two**\n\nThen\n\n3) c\n4) d\n\n0. e",
            "Take:\n\n- one\n- two\n\nThen\n\n3) c\n4) d\n\n0. e",
        ),
        ("* a\n    1. b\n    2. c\n* d\n\n  more\n* e", "- a\n1. b\n2. c\n- d\n\nmore\n- e"),
        ("> - q\n\nafter", "- q\n\nafter"),
        # Tables.
        ("|a|*b*|\n|:-|-:|\n|1 \\| 2|[l](u)|\n|x||", "a | b\n\n1 | 2 | l\n\nx"),
        # What cannot be text.
        ("a\x00b\x07c\ufdd0d\ufffe", "a b c d"),
    ],
)
def test_plain(markdown: str, text: str) -> None:
    assert plain(markdown) == text


def test_what_is_too_long_or_too_deep_stays() -> None:
    long = "*a* " * (MAX_LENGTH // 4 + 1)
    assert plain(long) == long.strip()
    deep = "- " * 100 + "*text*"
    assert plain(deep) == deep


@given(st.lists(st.text(string.ascii_letters + string.digits + "éß漢😀", min_size=1), min_size=1))
def test_words_stay(words: list[str]) -> None:
    assert plain(" ".join(words)) == " ".join(words)
    assert plain("\n\n".join(f"- *{word}*" for word in words)).split() == [
        part for word in words for part in ("-", word)
    ]


MARKS = st.sampled_from(
    [
        *"*_~`^[]()<>!|#-=+:\\&;\n \tab1.",
        ">!",
        "!<",
        "\n\n",
        "    ",
        "```",
        "| a | b |\n|--|--|\n",
        "https://x.org/_",
    ]
)


@given(st.one_of(st.text(), st.lists(MARKS, max_size=200).map("".join)))
def test_any_text_is_reduced_to_a_trimmed_text(markdown: str) -> None:
    text = plain(markdown)
    assert text == text.strip()
    assert not set(text) & set("\x00\r\ufdd0\ufdd1\ufdd2\ufdd3")


@pytest.mark.parametrize(
    "unit", ["[", "![", "*a_", "[a](b", "[x][", "`a``", "^(", ">!", "- a\n  ", "|a", "~~a", "<h:"]
)
def test_hostile_texts_of_the_longest_comment_end(unit: str) -> None:
    assert len(plain(unit * (10_000 // len(unit)))) <= 10_000
