from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.collect.url_ids import read_url_ids, write_url_ids
from epicqa.corpus.drafts import Draft, Paragraph, assemble
from epicqa.errors import EpicqaError

IDS = st.text(st.characters(exclude_categories=("Cs", "Zs", "Cc")), min_size=1, max_size=6).filter(
    lambda text: not any(map(str.isspace, text))
)
URLS = st.text(st.characters(exclude_characters="\ufeff"), max_size=12)


def test_read_in_order_from_any_editor(tmp_path: Path) -> None:
    path = tmp_path / "ids.tsv"
    path.write_bytes("\ufeffhttps://b/\tb1\r\n\n  \nhttps://a/ü x\ta-C000\nhttps://b/\tb1\n".encode())
    found = read_url_ids(path)
    assert list(found.items()) == [("https://b/", "b1"), ("https://a/ü x", "a-C000")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("https://a/", "expected an address, a tab and a document id"),
        ("https://a/ x", "expected an address, a tab and a document id"),
        ("https://a/\tx\ty", "expected an address, a tab and a document id"),
        ("\tx", "expected an address, a tab and a document id"),
        ("https://a/\t", "the document id is empty, expected one word"),
        ("https://a/\tx y", "document id 'x y' holds white space, which no run file can carry, expected one"),
        ("https://ok/\tother", "https://ok/ has id 'id' further up, expected one id"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "ids.tsv"
    path.write_text(f"https://ok/\tid\n{line}\n")
    with pytest.raises(EpicqaError) as error:
        read_url_ids(path)
    assert str(error.value).startswith(f"{path}:2: {reason}")
    assert "\n" not in str(error.value)


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match=r"none\.tsv: No such file"):
        read_url_ids(tmp_path / "none.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"http://caf\xe9/\tx\n")
    with pytest.raises(EpicqaError, match=r"latin\.tsv:1: not UTF-8"):
        read_url_ids(tmp_path / "latin.tsv")


@given(st.dictionaries(URLS, IDS, max_size=4))
def test_addresses_of_documents_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, given_ids: dict[str, str]
) -> None:
    """Whatever address a document may have: a table that cannot be read again would stop every later run."""
    documents = [assemble(Draft((Paragraph("Text."),), url=url)) for url in given_ids]
    ids = {
        one.url: name for one, name in zip(documents, given_ids.values(), strict=True) if one.url is not None
    }
    path = tmp_path_factory.getbasetemp() / "ids.tsv"
    write_url_ids(path, ids)
    assert list(read_url_ids(path).items()) == list(ids.items())
