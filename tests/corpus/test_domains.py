from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicqa.corpus.sources.domains import checked_domain, host_of, is_within, read_domains
from epicqa.errors import EpicqaError


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://www.example.gov/a?b#c", "www.example.gov"),
        ("HTTP://WWW.Example.GOV:8080", "www.example.gov"),
        ("https://user:word@example.gov./x", "example.gov"),
        ("https://bücher.example.gov/", "xn--bcher-kva.example.gov"),
        ("https://BÜCHER.example.gov/", "xn--bcher-kva.example.gov"),
        ("https://straße.example/", "xn--strae-oqa.example"),
        ("https://例え。テスト/", "xn--r8jz45g.xn--zckzah"),
        ("https://xn--bcher-kva.example.gov", "xn--bcher-kva.example.gov"),
        ("https://[2001:db8::1]:80/", "2001:db8::1"),
        ("https://192.0.2.1/", "192.0.2.1"),
        ("https://[broken/", None),
        ("https://a℀b.example/", None),
        ("https://", None),
        ("https://./", None),
        ("dns:www.example.gov", None),
        ("www.example.gov", None),
        ("", None),
    ],
)
def test_hosts(url: str, host: str | None) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("gov", True),
        ("example.gov", True),
        ("a.b.example.gov", True),
        ("who.int", True),
        ("www.who.int", True),
        ("nhs.gov.uk", True),
        ("notgov", False),
        ("example.mygov", False),
        ("mywho.int", False),
        ("int", False),
        ("uk", False),
        ("gov.example", False),
        ("who.int.example", False),
        (None, False),
        ("", False),
    ],
)
def test_within(host: str | None, inside: bool) -> None:
    assert is_within(host, {"gov", "who.int", "gov.uk"}) is inside
    assert not is_within(host, ())


LABELS = st.lists(st.sampled_from(["gov", "who", "int", "a", "gova"]), min_size=1, max_size=4).map(".".join)


@given(LABELS, st.lists(LABELS, max_size=3))
def test_within_is_being_one_or_ending_in_one(host: str, domains: list[str]) -> None:
    plain = any(host == domain or host.endswith("." + domain) for domain in domains)
    assert is_within(host, frozenset(domains)) is plain


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_none(text: str) -> None:
    for url in (text, f"https://{text}/", f"//{text}.gov"):
        found = host_of(url)
        assert found is None or found
        is_within(found, {"gov"})


@pytest.mark.parametrize(
    ("given", "domain"),
    [
        (" Gov ", "gov"),
        (".gov", "gov"),
        ("*.gov.uk", "gov.uk"),
        ("who.int.", "who.int"),
        ("https://www.who.int/news?x=1", "www.who.int"),
        ("who.int/news", "who.int"),
        ("who.int:443", "who.int"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("my_site.example-1.org", "my_site.example-1.org"),
    ],
)
def test_domains(given: str, domain: str) -> None:
    assert checked_domain(given) == domain


@pytest.mark.parametrize(
    "given", ["", " ", ".", "*", "a b", "gov,edu", "a..b", "https://", "[::1]", "x" * 64]
)
def test_what_is_no_domain(given: str) -> None:
    with pytest.raises(ValueError, match=r"is no domain, expected one such as gov, who\.int or gov\.uk"):
        checked_domain(given)


def test_file_of_domains(tmp_path: Path) -> None:
    path = tmp_path / "domains.txt"
    path.write_text(
        "\ufeff# mine\n\n gov\r\nhttps://www.who.int/about  # health\n.Gov.UK\ngov\n", encoding="utf-8"
    )
    assert read_domains(path) == ("gov", "www.who.int", "gov.uk")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"gov\n\na b\n", ":3: 'a b' is no domain, expected one such as"),
        (b"", ": holds no domain"),
        (b"# nothing\n", ": holds no domain"),
        (b"gov\n\xff\n", ":2: not UTF-8"),
    ],
)
def test_bad_files_of_domains(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "domains.txt"
    path.write_bytes(content)
    with pytest.raises(EpicqaError) as error:
        read_domains(path)
    assert str(error.value).startswith(f"{path}{reason}")
    assert "\n" not in str(error.value)


def test_missing_file_of_domains(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match="No such file"):
        read_domains(tmp_path / "none")
