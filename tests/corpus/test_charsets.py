"""Bytes of pages as text: what is declared, what is there, and what is not so."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.sources.charsets import decode

JAPANESE = "新しい肺の熱について。手を洗い、窓を開けてください。①㈱"
CHINESE = "新型肺热的最新情况。请勤洗手，开窗通风。"
RUSSIAN = "Новая лёгочная лихорадка. Мойте руки и открывайте окна, держитесь подальше друг от друга."
WESTERN = "The “lung fever” – naïve – café"


def _meta(label: str, text: str) -> str:
    return f'<html><head><meta charset="{label}"><title>{text}</title></head><body>{text}</body></html>'


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("Shift_JIS", "cp932", JAPANESE),
        ("x-sjis", "cp932", JAPANESE),
        ("EUC-JP", "euc_jp", JAPANESE[:-2]),
        ("ISO-2022-JP", "iso2022_jp", JAPANESE[:-2]),
        ("GB18030", "gb18030", CHINESE + "㐀"),
        ("gb2312", "gb18030", CHINESE + "㐀"),
        ("big5", "big5hkscs", "新的肺熱，請勤洗手"),
        ("euc-kr", "cp949", "새로운 폐 질환, 손을 씻으세요. 똠"),
        ("windows-1251", "cp1251", RUSSIAN),
        ("koi8-r", "koi8_r", RUSSIAN.replace("–", "-")),
        ("ISO-8859-1", "cp1252", WESTERN),
        ("latin1", "cp1252", WESTERN),
        ("us-ascii", "cp1252", WESTERN),
        ("utf8", "utf-8", WESTERN),
    ],
)
def test_declared_encodings_mean_what_browsers_take_them_for(label: str, codec: str, text: str) -> None:
    page = _meta(label, text)
    assert decode(page.encode(codec)) == page
    http_equiv = f'<head><meta http-equiv="Content-Type" content="text/html; charset={label}"></head>{text}'
    assert decode(http_equiv.encode(codec)) == http_equiv
    xml = f'<?xml version="1.0" encoding="{label}"?><doc>{text}</doc>'
    assert decode(xml.encode(codec)) == xml
    assert decode(f"<p>{text}".encode(codec), label) == f"<p>{text}"


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_wins_over_all(mark: bytes, codec: str) -> None:
    page = _meta("windows-1251", JAPANESE)
    assert decode(mark + page.encode(codec), "shift_jis") == page


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_seen_from_its_first_character(codec: str) -> None:
    assert decode(f"<p>{WESTERN}".encode(codec)) == f"<p>{WESTERN}"


def test_what_http_says_wins_over_what_the_page_says() -> None:
    assert decode(_meta("shift_jis", RUSSIAN).encode("cp1251"), "windows-1251") == _meta("shift_jis", RUSSIAN)


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1251", "shift_jis", "no-such-thing"])
def test_valid_utf_8_is_utf_8_whatever_is_declared(label: str) -> None:
    assert decode(_meta(label, WESTERN).encode()) == _meta(label, WESTERN)
    assert decode(_meta("utf-8", WESTERN).encode(), label) == _meta("utf-8", WESTERN)


def test_utf_8_with_a_broken_end_stays_utf_8() -> None:
    page = _meta("utf-8", JAPANESE)
    assert decode(page.encode() + b"\xe6\x96") == page + "\ufffd"


def test_utf_8_declared_of_what_holds_none_is_not_believed() -> None:
    page = _meta("utf-8", WESTERN)
    assert decode(page.encode("cp1252")) == page


@pytest.mark.parametrize("label", ["no-such-thing", "utf-7", "", "x" * 500, "\ud800", "hz-gb-2312"])
def test_an_unknown_label_counts_as_none(label: str) -> None:
    assert decode(f"<p>{WESTERN}".encode("cp1252"), label) == f"<p>{WESTERN}"


def test_a_declaration_in_a_comment_is_none() -> None:
    page = f"<!-- <meta charset='koi8-r'> --><meta charset='windows-1251'>{RUSSIAN}"
    assert decode(page.encode("cp1251")) == page


def test_text_in_another_script_is_guessed_and_in_latin_letters_is_windows_1252() -> None:
    page = f"<html><body><p class='lead'>{RUSSIAN * 4}</p></body></html>"
    assert decode(page.encode("cp1251")) == page
    assert decode("<p>Où est l’hôpital ?".encode("cp1252")) == "<p>Où est l’hôpital ?"


@given(
    st.binary(), st.none() | st.text() | st.sampled_from(["utf-8", "shift_jis", "utf-16", "x-user-defined"])
)
def test_any_bytes_are_some_text(raw: bytes, declared: str | None) -> None:
    assert isinstance(decode(raw, declared), str)
    assert decode(raw, declared) == decode(raw, declared)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufeff\x00\x1b")))
def test_utf_8_is_read_as_python_reads_it(text: str) -> None:
    assert decode(text.encode()) == text
