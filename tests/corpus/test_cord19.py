import contextlib
import csv
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, NoText, assemble
from epicqa.corpus.sources.cord19 import Cord19
from epicqa.corpus.sources.raw import LeftOut, Piece
from epicqa.errors import EpicqaError

LIMIT = 1 << 20
SHA = "0123456789abcdef0123456789abcdef01234567"
OTHER = "89abcdef0123456789abcdef0123456789abcdef"
PDF = f"document_parses/pdf_json/{SHA}.json"
PMC = "document_parses/pmc_json/PMC7.xml.json"

LATER_COLUMNS = [
    *("cord_uid", "sha", "source_x", "title", "doi", "pmcid", "pubmed_id", "license", "abstract"),
    *("publish_time", "authors", "journal", "mag_id", "who_covidence_id", "arxiv_id"),
    *("pdf_json_files", "pmc_json_files", "url", "s2_id"),
]

Files = dict[str, bytes]


def table(*rows: Mapping[str, str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def paper(uid: str = "aaaa1111", **cells: str) -> dict[str, str]:
    """A row of the later tables."""
    row = dict.fromkeys(LATER_COLUMNS, "") | {"cord_uid": uid, "title": f"On {uid}", "source_x": "PMC"}
    row |= {"license": "cc-by", "publish_time": "2020-03-01", "authors": "Doe, Jane; Roe, R."}
    return row | {"journal": "J Made Up"} | cells


def parse(
    *body: str | tuple[str, str], abstract: Iterable[str] | None = (), title: str = "The parse's title"
) -> bytes:
    """A parse of a PDF, or with ``abstract=None`` one of PMC."""

    def entry(text: str, section: str) -> dict[str, Any]:
        span = {"start": 0, "end": 1, "text": "[1]", "ref_id": "BIBREF0"}
        return {"text": text, "cite_spans": [span], "ref_spans": [], "section": section}

    pairs = [one if isinstance(one, tuple) else (one, "Introduction") for one in body]
    author = {"first": "Jane", "middle": [], "last": "Doe", "suffix": "", "affiliation": {}, "email": ""}
    value = {
        "paper_id": SHA,
        "metadata": {"title": title, "authors": [author]},
        "body_text": [entry(text, section) for text, section in pairs],
        "bib_entries": {"BIBREF0": {"ref_id": "b0", "title": "Cited", "authors": [], "year": 2003}},
        "ref_entries": {"FIGREF0": {"text": "A caption.", "latex": None, "type": "figure"}},
        "back_matter": [entry("We thank everyone.", "Acknowledgements")],
    }
    if abstract is not None:
        value["abstract"] = [entry(text, "Abstract") for text in abstract]
    return json.dumps(value).encode()


def in_folder(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def tar(files: Files) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def zipped(files: Files) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return raw.getvalue()


def collected(source: Path, scratch: Path | None = None, limit: int = LIMIT) -> list[Draft | LeftOut]:
    """Everything that a release gives, in order."""
    with tempfile.TemporaryDirectory() as other:
        found: list[Draft | LeftOut] = []
        for piece in Cord19().pieces([source], scratch or Path(other), limit):
            found += [piece] if isinstance(piece, LeftOut) else Cord19().drafts(piece, limit)
        return found


def drafts(source: Path, **options: Any) -> list[Draft]:
    """The papers of a release that nothing is wrong with."""
    found = collected(source, **options)
    assert all(isinstance(one, Draft) for one in found), found
    return [one for one in found if isinstance(one, Draft)]


def left(found: list[Draft | LeftOut], source: Path) -> list[tuple[str, str, str]]:
    return [
        (one.place.removeprefix(str(source)), one.kind, one.reason)
        for one in found
        if isinstance(one, LeftOut)
    ]


def texts(draft: Draft | LeftOut) -> list[tuple[str | None, str]]:
    assert isinstance(draft, Draft), draft
    return [(one.section, one.text) for one in draft.paragraphs]


def one_paper(folder: Path, files: Files, **cells: str) -> list[Draft | LeftOut]:
    return collected(in_folder(folder, {"metadata.csv": table(paper(**cells)), **files}))


# The layouts.

LATER: Files = {
    "metadata.csv": table(
        paper("aaaa1111", abstract="Known to all.", pmc_json_files=PMC, pdf_json_files=PDF, pmcid="PMC7"),
        paper("bbbb2222", sha=SHA, pdf_json_files=PDF),
        paper("cccc3333", abstract="No full text."),
    ),
    PDF: parse("Of the PDF.", abstract=["Seen in the PDF."]),
    PMC: parse("Of PMC."),
}
PACKED = {
    "folder": lambda at: in_folder(at / "r", LATER),
    "folder of a dated folder": lambda at: in_folder(at / "r" / "2020-07-16", LATER).parent,
    "folder with a packed part": lambda at: in_folder(at / "r", packed_parts(LATER)),
    "tar": lambda at: (
        in_folder(at, {"cord-19_2020-07-16.tar.gz": tar(dated(LATER))}) / "cord-19_2020-07-16.tar.gz"
    ),
    "tar of a packed part": lambda at: in_folder(at, {"r.tgz": tar(dated(packed_parts(LATER)))}) / "r.tgz",
    "zip": lambda at: in_folder(at, {"archive.zip": zipped(LATER)}) / "archive.zip",
}


def packed_parts(files: Files) -> Files:
    """The same, each folder of parses packed."""
    parts: dict[str, Files] = {}
    for name, content in files.items():
        if "/" in name:
            parts.setdefault(name.partition("/")[0], {})[name] = content
    plain = {name: content for name, content in files.items() if "/" not in name}
    return {**plain, **{f"{part}.tar.gz": tar(inner) for part, inner in parts.items()}, "changelog": b"1"}


def dated(files: Files, date: str = "2020-07-16") -> Files:
    return {f"{date}/{name}": content for name, content in files.items()}


@pytest.mark.parametrize("form", PACKED)
def test_later_layouts(tmp_path: Path, form: str) -> None:
    source = PACKED[form](tmp_path)
    first, second, third = drafts(source)
    assert texts(first) == [("Abstract", "Known to all."), ("Introduction", "Of PMC.")]
    assert texts(second) == [("Abstract", "Seen in the PDF."), ("Introduction", "Of the PDF.")]
    assert texts(third) == [("Abstract", "No full text.")]
    assert [one.metadata.get("full_text_path") for one in (first, second, third)] == [PMC, PDF, None]
    assert [one.document_id for one in (first, second, third)] == ["aaaa1111", "bbbb2222", "cccc3333"]


@pytest.mark.parametrize(
    ("form", "metadata", "pdf", "pmc"),
    [
        ("folder", "metadata.csv", "", "pmc_json/"),
        ("folder", "metadata.csv", "comm_use_subset/", "pmc_json/"),
        ("folder", "metadata.csv", "pdf_json/", "pmc_json/"),
        ("folder", "metadata.csv", "comm_use_subset/pdf_json/", "comm_use_subset/pmc_json/"),
        ("parts", "metadata.csv", "", "pmc_json/"),
        ("parts", "metadata.csv", "pdf_json/", "pmc_json/"),
        ("zip", "all_sources_metadata_2020-03-13.csv", "comm_use_subset/", "pmc_json/"),
        ("tar of parts", "metadata.csv", "pdf_json/", "pmc_json/"),
    ],
)
def test_early_layouts(tmp_path: Path, form: str, metadata: str, pdf: str, pmc: str) -> None:
    row = {"sha": f"{SHA}; {OTHER}", "source_x": "PMC", "title": "T", "doi": "10.1/x", "pmcid": "PMC7"}
    row |= {"abstract": "A.", "has_full_text": "True", "full_text_file": "comm_use_subset"}
    files = {metadata: table(row | {"pmcid": ""}, row | {"sha": OTHER}, row | {"sha": "", "pmcid": "PMC9"})}
    is_flat = not pdf.endswith("pdf_json/")
    files[f"comm_use_subset/{pdf}{SHA}.json"] = parse("Of the PDF.")
    # Where parses were in the subset's own folder, there were none of PMC.
    files |= {} if is_flat else {f"comm_use_subset/{pmc}PMC7.xml.json": parse("Of PMC.", abstract=None)}
    files[f"biorxiv_medrxiv/{pdf.replace('comm_use_subset', 'biorxiv_medrxiv')}{OTHER}.json"] = parse(
        "Other."
    )
    match form:
        case "folder":
            source = in_folder(tmp_path, dated(files, "2020-03-13"))
        case "parts":
            source = in_folder(tmp_path, packed_parts(files))
        case "zip":
            (source := tmp_path / "kaggle.zip").write_bytes(zipped(dated(files, "2020-03-13")))
        case _:
            (source := tmp_path / "r.tar.gz").write_bytes(tar(dated(packed_parts(files))))
    found = collected(source)
    places = [one.place.partition("metadata")[2] for one in found if isinstance(one, LeftOut)]
    several, second, without = (one for one in found if isinstance(one, Draft))
    assert texts(several) == [("Abstract", "A."), ("Introduction", "Of the PDF.")]
    assert several.metadata["full_text_path"] == f"comm_use_subset/{pdf}{SHA}.json"
    assert several.document_id == SHA
    assert texts(second)[1] == ("Introduction", "Other." if is_flat else "Of PMC.")
    assert second.document_id == OTHER
    assert (without.document_id, texts(without)) == ("PMC9", [("Abstract", "A.")])
    assert places == []


def test_table_of_paths_with_folders_that_hold_themselves(tmp_path: Path) -> None:
    (draft,) = one_paper(
        tmp_path,
        {f"arxiv/arxiv/pdf_json/{SHA}.json": parse("Text.")},
        pdf_json_files=f"arxiv/pdf_json/{SHA}.json",
    )
    assert isinstance(draft, Draft)
    assert draft.metadata["full_text_path"] == f"arxiv/arxiv/pdf_json/{SHA}.json"


def test_flags_say_what_is_missing(tmp_path: Path) -> None:
    row = {"cord_uid": "a", "sha": SHA, "title": "T", "abstract": "A.", "pmcid": "PMC7"}
    flags = [("True", "False"), ("False", "True"), ("False", "False"), ("True", "True")]
    rows = [
        row | {"cord_uid": str(number), "has_pdf_parse": pdf, "has_pmc_xml_parse": pmc}
        for number, (pdf, pmc) in enumerate(flags)
    ]
    found = collected(in_folder(tmp_path, {"metadata.csv": table(*rows)}))
    assert left(found, tmp_path) == [
        ("/metadata.csv:2", "missing file", f"'{SHA}.json' is not in the release"),
        ("/metadata.csv:3", "missing file", "'PMC7.xml.json' is not in the release"),
        ("/metadata.csv:5", "missing file", "'PMC7.xml.json' is not in the release, nor are 1 more"),
    ]
    assert len(found) == 7


# What a paper is made of.


def test_a_draft_in_full(tmp_path: Path) -> None:
    (draft,) = one_paper(
        tmp_path,
        {PDF: parse(("First. Second.", "Methods"), ("Third.", ""), " ", abstract=["One.", "Two."])},
        title=" A title ",
        doi="10.1/a(b)",
        url="https://doi.org/10.1/x; javascript:alert(1);http://example.org/2 ",
        pdf_json_files=PDF,
        journal="",
    )
    assert isinstance(draft, Draft)
    assert (draft.title, draft.url, draft.document_id) == ("A title", "https://doi.org/10.1/x", "aaaa1111")
    assert texts(draft) == [
        ("Abstract", "One."),
        ("Abstract", "Two."),
        ("Methods", "First. Second."),
        (None, "Third."),
    ]
    assert draft.metadata == {
        "authors": "Doe, Jane; Roe, R.",
        "urls": ["https://doi.org/10.1/x", "http://example.org/2"],
        "full_text_path": PDF,
        "publish_time": "2020-03-01",
        "license": "cc-by",
        "doi": "10.1/a(b)",
    }
    assert [len(context.sentences) for context in assemble(draft).contexts] == [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("cells", "urls"),
    [
        ({}, []),
        ({"doi": "10.1/a b"}, ["https://doi.org/10.1/a%20b"]),
        ({"doi": "http://dx.doi.org/10.1/x"}, ["https://doi.org/10.1/x"]),
        ({"doi": "doi: 10.1/x"}, ["https://doi.org/10.1/x"]),
        ({"pubmed_id": "77.0"}, ["https://www.ncbi.nlm.nih.gov/pubmed/77/"]),
        ({"pubmed_id": "x/../77", "pmcid": "PMC1/.."}, []),
        (
            {"doi": "10.1/x", "pubmed_id": "77", "pmcid": "PMC5"},
            [
                "https://doi.org/10.1/x",
                "https://www.ncbi.nlm.nih.gov/pubmed/77/",
                "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC5/",
            ],
        ),
        ({"doi": "10.1/x", "url": "https://example.org/"}, ["https://example.org/"]),
    ],
)
def test_addresses(tmp_path: Path, cells: dict[str, str], urls: list[str]) -> None:
    (draft,) = one_paper(tmp_path, {}, abstract="A.", **cells)
    assert isinstance(draft, Draft)
    assert draft.metadata["urls"] == urls
    assert draft.url == (urls[0] if urls else None)


@pytest.mark.parametrize(
    ("row", "document_id"),
    [
        ({"cord_uid": "u1", "sha": SHA}, "u1"),
        ({"cord_uid": " ", "sha": f"{SHA};{OTHER}", "pmcid": "PMC7"}, SHA),
        ({"sha": "", "pmcid": "PMC7", "doi": "10.1/x"}, "PMC7"),
        ({"sha": "", "pmcid": "", "doi": "10.1002/(sici)x y"}, "10.1002_sici_x_y"),
        ({"sha": "", "pmcid": "", "doi": "10.1002/a;2-n"}, "10.1002_a_2-n"),
        ({"cord_uid": "../../etc/x;y"}, ".._.._etc_x_y"),
    ],
)
def test_ids(tmp_path: Path, row: dict[str, str], document_id: str) -> None:
    row = {"title": "T", "abstract": "A.", "has_full_text": "False", **row}
    (draft,) = drafts(in_folder(tmp_path, {"metadata.csv": table(row)}))
    assert draft.document_id == document_id


def test_rows_that_make_no_paper(tmp_path: Path) -> None:
    rows = paper(""), paper("b", title="Only a title"), paper("c", abstract=" \u00a0")
    found = collected(in_folder(tmp_path, {"metadata.csv": table(*rows)}))
    assert left(found, tmp_path) == [
        ("/metadata.csv:2", "broken", "no id, expected one of cord_uid, sha, pmcid, doi"),
        ("/metadata.csv:3", "no text", "no abstract and no text of a parse"),
        ("/metadata.csv:4", "no text", "no abstract and no text of a parse"),
    ]


def test_title_of_the_parse_where_the_table_has_none(tmp_path: Path) -> None:
    (draft,) = one_paper(tmp_path, {PDF: parse("B.")}, title="", pdf_json_files=PDF)
    assert isinstance(draft, Draft)
    assert draft.title == "The parse's title"


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (["We looked. We saw.", "Next."], False),
        (["ABSTRACT We looked - we saw", "Next."], False),
        ([("We looked.", "Aims"), ("We saw.", "Results"), "Next."], False),
        (["We looked. We saw. And more.", "Next."], True),
        (["We looked.", "Next."], True),
        (["Next.", "We looked. We saw."], True),
    ],
)
def test_abstract_that_the_body_begins_with(tmp_path: Path, body: list[Any], kept: bool) -> None:
    files = {PMC: parse(*body, abstract=None)}
    (draft,) = one_paper(tmp_path, files, abstract="We looked. We saw.", pmc_json_files=PMC)
    found = texts(draft)
    assert (found[0] == ("Abstract", "We looked. We saw.")) == kept
    assert len(found) == len(body) + kept


def test_first_parse_with_text_is_used(tmp_path: Path) -> None:
    first, second, third = (f"document_parses/pdf_json/{letter}.json" for letter in "abc")
    files = {
        PMC: parse(abstract=None),
        first: parse(abstract=["Abstract of the first."]),
        second: parse("Body of the second."),
        third: parse("Body of the third.", abstract=["Abstract of the third."]),
    }
    paths = f"{first}; {second}; {third}"
    (draft,) = one_paper(tmp_path, files, pmc_json_files=PMC, pdf_json_files=paths, abstract="Of the table.")
    assert texts(draft) == [("Abstract", "Of the table."), ("Introduction", "Body of the second.")]
    (draft,) = one_paper(tmp_path, files, pmc_json_files=PMC, pdf_json_files=first, abstract="Of the table.")
    assert texts(draft) == [("Abstract", "Abstract of the first.")]
    assert isinstance(draft, Draft)
    assert draft.metadata["full_text_path"] == first


BROKEN_PARSES = {
    "empty": (b"", "broken JSON: "),
    "cut": (parse("B.")[:-9], "broken JSON: "),
    "not UTF-8": (b'{"body_text": "\xff"}', "broken JSON: "),
    "deep": (b"[" * 100_000, "broken JSON: "),
    "a list": (b"[]", "a parse must be a JSON object, not a list"),
    "no body": (b"{}", "missing key 'body_text'"),
    "body of another type": (b'{"body_text": "x"}', "'body_text' must be a list, not a string"),
    "entry of another type": (
        b'{"body_text": [7]}',
        "'body_text', entry 1: must be an object, not an integer",
    ),
    "no text": (b'{"body_text": [{}]}', "'body_text', entry 1: missing key 'text'"),
    "abstract of another type": (b'{"abstract": 1, "body_text": []}', "'abstract' must be a list, not"),
}


@pytest.mark.parametrize("how", BROKEN_PARSES)
def test_broken_parse_is_told_and_the_next_used(tmp_path: Path, how: str) -> None:
    content, reason = BROKEN_PARSES[how]
    told, draft = one_paper(
        tmp_path, {PMC: content, PDF: parse("B.")}, pmc_json_files=PMC, pdf_json_files=PDF
    )
    assert isinstance(told, LeftOut)
    assert (told.place, told.kind, told.document_id) == (f"{tmp_path}/{PMC}", "broken", "aaaa1111")
    assert told.reason.startswith(reason)
    assert texts(draft) == [("Introduction", "B.")]


def test_parse_over_the_limit(tmp_path: Path) -> None:
    content = parse("B." * 2000)
    in_folder(tmp_path, {"metadata.csv": table(paper(abstract="A.", pdf_json_files=PDF)), PDF: content})
    assert [len(draft.paragraphs) for draft in drafts(tmp_path, limit=len(content))] == [2]
    told, draft = collected(tmp_path, limit=len(content) - 1)
    assert isinstance(told, LeftOut)
    assert (told.place, told.kind) == (f"{tmp_path}/{PDF}", "too large")
    assert texts(draft) == [("Abstract", "A.")]


def test_missing_files_are_told_once_a_row(tmp_path: Path) -> None:
    rows = (
        paper("a", pdf_json_files=f"{PDF}; {PDF}x; {PDF}y", abstract="A."),
        paper("b", pdf_json_files=f"{PDF}; {PMC}", abstract="B."),
    )
    found = collected(in_folder(tmp_path, {"metadata.csv": table(*rows), PMC: parse("Of PMC.")}))
    assert left(found, tmp_path) == [
        ("/metadata.csv:2", "missing file", f"'{PDF}' is not in the release, nor are 2 more"),
        ("/metadata.csv:3", "missing file", f"'{PDF}' is not in the release"),
    ]
    assert [texts(one)[-1][1] for one in found if isinstance(one, Draft)] == ["A.", "Of PMC."]


# Rows of one id.


def test_rows_of_one_id_make_one_paper(tmp_path: Path) -> None:
    rows = [
        paper("a", title="", pdf_json_files=PDF, authors=""),
        paper("b", abstract="B."),
        paper("a", title="Second", abstract="Of row 2.", pmc_json_files=PMC, authors="Roe"),
        paper("a", title="Third", abstract="Of row 3.", doi="10.1/x", pdf_json_files=PDF),
    ]
    in_folder(tmp_path, {"metadata.csv": table(*rows), PDF: parse("PDF."), PMC: parse("PMC.", abstract=None)})
    first, second = drafts(tmp_path)
    assert (first.document_id, first.title, second.document_id) == ("a", "Second", "b")
    assert texts(first) == [("Abstract", "Of row 2."), ("Introduction", "PMC.")]
    assert first.metadata["authors"] == "Roe"
    assert first.metadata["doi"] == "10.1/x"


@given(st.lists(st.tuples(st.sampled_from("abcdé "), st.sampled_from(["", "x", "y"])), max_size=30))
@settings(max_examples=50)
def test_rows_of_one_id_against_a_plain_reading(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        content = table(*(paper(uid, title=title, abstract='"A",\n') for uid, title in [*rows, ("z", "z")]))
        found = collected(in_folder(Path(folder), {"metadata.csv": content}))
    expected: dict[str, str] = {}
    for uid, title in [*rows, ("z", "z")]:
        if uid.strip():
            key = "_" if uid == "é" else uid
            expected[key] = expected.get(key) or title
    papers = [one for one in found if isinstance(one, Draft)]
    assert [(one.document_id, one.title or "") for one in papers] == list(expected.items())
    assert len(found) - len(papers) == sum(not uid.strip() for uid, _ in rows)


def test_pieces_are_the_same_again(tmp_path: Path) -> None:
    source = tmp_path / "r.tar.gz"
    source.write_bytes(tar(dated(LATER | {"document_parses/../../x.json": b"{}"})))
    runs = [list(Cord19().pieces([source], tmp_path / "scratch", LIMIT)) for _ in range(2)]
    assert runs[0] == runs[1]
    assert [type(one) for one in runs[0]] == [LeftOut, Piece, Piece, Piece]
    assert [one.size for one in runs[0] if isinstance(one, Piece)] == [len(LATER[PMC]), len(LATER[PDF]), None]


def test_several_releases(tmp_path: Path) -> None:
    sources = [tmp_path / "a.zip", in_folder(tmp_path / "b", LATER), tmp_path / "c.zip"]
    sources[0].write_bytes(zipped(LATER))
    sources[2].write_bytes(zipped({"metadata.csv": table(paper("dddd4444", abstract="D."))}))
    places = [one.place for one in Cord19().pieces(sources, tmp_path / "scratch", LIMIT)]
    lines = [f"{tmp_path}/{name}metadata.csv:{line}" for name in ("a.zip!", "b/") for line in (2, 3, 4)]
    assert places == [*lines, f"{tmp_path}/c.zip!metadata.csv:2"]


# Paths that lead out.


@pytest.mark.parametrize(
    "name",
    [
        "../secret.json",
        "/etc/passwd",
        "document_parses/../../secret.json",
        "x\0y",
        "document_parses/link.json",
    ],
)
@pytest.mark.parametrize("column", ["pdf_json_files", "sha"])
def test_paths_that_lead_out_are_not_opened(tmp_path: Path, name: str, column: str) -> None:
    release = tmp_path / "release"
    in_folder(tmp_path, {"secret.json": parse("Secret."), "release/document_parses/pdf_json/x.json": b"{}"})
    (release / "document_parses/link.json").symlink_to(tmp_path / "secret.json")
    (release / "document_parses/pdf_json/link.json").symlink_to(tmp_path / "secret.json")
    if column == "sha":
        name = name.replace("document_parses/link.json", "link.json").removesuffix(".json")
        name = "../../" + name if name.startswith("..") else name
        row = {"cord_uid": "a", "sha": name, "title": "T", "abstract": "A.", "has_full_text": "True"}
    else:
        row = paper("a", pdf_json_files=name, abstract="A.")
    told, draft = collected(in_folder(release, {"metadata.csv": table(row)}))
    assert texts(draft) == [("Abstract", "A.")]
    assert isinstance(told, LeftOut)
    # A hash is only ever looked for below the folders of parses.
    is_below = name == "/etc/passwd" and column == "sha"
    assert told.kind == ("missing file" if is_below else "unsafe path")
    assert "\n" not in told.reason


def test_linked_folders(tmp_path: Path) -> None:
    release, outside = tmp_path / "release", tmp_path / "outside"
    in_folder(outside, {f"{SHA}.json": parse("Outside.")})
    in_folder(release, {f"real/{OTHER}.json": parse("Inside.")})
    (release / "document_parses").mkdir()
    (release / "document_parses/pdf_json").symlink_to(outside)
    (release / "document_parses/pmc_json").symlink_to(release / "real")
    rows = (
        paper("a", pdf_json_files=PDF, abstract="A."),
        paper("b", pdf_json_files=f"document_parses/pmc_json/{OTHER}.json"),
    )
    found = collected(in_folder(release, {"metadata.csv": table(*rows)}))
    reason = f"'{PDF}' is behind a link that leads out of the release"
    assert left(found, release) == [("/metadata.csv:2", "unsafe path", reason)]
    assert [texts(one)[0][1] for one in found[1:]] == ["A.", "Inside."]
    # The release's own folder may be a link.
    (tmp_path / "link").symlink_to(release)
    assert len(collected(tmp_path / "link")) == 3


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    in_folder(tmp_path, {"document_parses/pdf_json/folder.json/x": b""})
    os.mkfifo(tmp_path / "document_parses/pdf_json/pipe.json")
    for name in ("folder", "pipe"):
        path = f"document_parses/pdf_json/{name}.json"
        told, draft = one_paper(tmp_path, {}, pdf_json_files=path, abstract="A.")
        assert isinstance(told, LeftOut)
        assert (told.kind, told.reason) == ("broken", f"'{path}' is no file")
        assert isinstance(draft, Draft)


# Archives.


def test_unsafe_and_large_files_of_an_archive_are_told_and_missed(tmp_path: Path) -> None:
    files = {**LATER, "document_parses/../../x.json": b"{}", PMC: parse("B." * LIMIT, abstract=None)}
    (archive := tmp_path / "r.zip").write_bytes(zipped(files))
    found = collected(archive)
    assert [(place, kind) for place, kind, _ in left(found, archive)] == [
        (f"!{PMC}", "too large"),
        ("!document_parses/../../x.json", "unsafe path"),
        ("!metadata.csv:2", "missing file"),
    ]
    assert [texts(one)[0][1] for one in found[3:]] == [
        "Seen in the PDF.",
        "Seen in the PDF.",
        "No full text.",
    ]


def test_a_disk_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "r.zip").write_bytes(zipped(LATER))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EpicqaError, match=r"file/0/release: cannot be written: Not a directory"):
        list(Cord19().pieces([tmp_path / "r.zip"], tmp_path / "file", LIMIT))


@pytest.mark.parametrize("form", ["tar", "tar of a packed part", "zip"])
def test_archives_cut_anywhere(tmp_path: Path, form: str) -> None:
    source = PACKED[form](tmp_path)
    whole = source.read_bytes()
    for size in range(0, len(whole) - 1, 97):
        source.write_bytes(whole[:size])
        try:
            found = collected(source)
        except EpicqaError as error:
            assert "no metadata.csv in it; cannot be read, damaged or cut short: " in str(error)
            assert "\n" not in str(error)
        else:
            assert any(one[1] == "broken" for one in left(found, source))
            assert sum(isinstance(one, Draft) for one in found) >= 1


def test_damaged_part_leaves_abstracts(tmp_path: Path) -> None:
    in_folder(tmp_path, packed_parts(LATER) | {"document_parses.tar.gz": b"no archive"})
    found = collected(tmp_path)
    kinds = [(place, kind) for place, kind, _ in left(found, tmp_path)]
    assert kinds == [
        ("/document_parses.tar.gz", "broken"),
        ("/metadata.csv:2", "missing file"),
        ("/metadata.csv:3", "missing file"),
        ("/metadata.csv:3", "no text"),
    ]
    assert [one.document_id for one in found if isinstance(one, Draft)] == ["aaaa1111", "cccc3333"]


# Inputs that are no release.


@pytest.mark.parametrize(
    ("files", "source", "message"),
    [
        ({}, "no", "no: no such file or folder, expected a CORD-19 release"),
        (
            {"r/x.json": b"{}"},
            "r",
            "r: no metadata.csv in it, expected a CORD-19 release: metadata.csv beside",
        ),
        ({"x.json": b"{}"}, "x.json", "x.json: unknown kind of file, expected a CORD-19 release"),
        ({"x.zip": zipped({"a.json": b""})}, "x.zip", "x.zip: no metadata.csv in it, expected a CORD"),
        (
            {"x.zip": b"?"},
            "x.zip",
            "no metadata.csv in it; cannot be read, damaged or cut short: File is not a zip",
        ),
        (
            {"a/metadata.csv": b"", "b/all_sources_metadata_2020-03-13.csv": b""},
            ".",
            r"several releases \(a, b\), expected one",
        ),
        (
            {"r/metadata.csv": b""},
            "r",
            "r/metadata.csv:1: none of the columns cord_uid, sha, pmcid, doi, expe",
        ),
        (
            {"r/metadata.csv": b"title,abstract\nT,A\n"},
            "r",
            "metadata.csv:1: none of the columns cord_uid, sha",
        ),
        ({"r/metadata.csv": b"a,\xff\n"}, "r", "metadata.csv:1: not UTF-8: 0xff at line 1, byte 3, expected"),
        ({"r/metadata.csv": b'"a'}, "r", "metadata.csv:1: unexpected end of data, expected"),
    ],
)
def test_no_release_is_one_line(tmp_path: Path, files: Files, source: str, message: str) -> None:
    with pytest.raises(EpicqaError, match=message) as error:
        collected(in_folder(tmp_path, files) / source)
    assert "\n" not in str(error.value)


def test_newest_of_dated_tables_and_the_plain_one_first(tmp_path: Path) -> None:
    files = {
        f"all_sources_metadata_2020-03-{day}.csv": table(paper(day, abstract="A.")) for day in ("13", "20")
    }
    assert [one.document_id for one in drafts(in_folder(tmp_path, files))] == ["20"]
    in_folder(tmp_path, {"metadata.csv": table(paper("plain", abstract="A."))})
    assert [one.document_id for one in drafts(tmp_path)] == ["plain"]


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    release = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    found = one_paper(release, {PMC: b"", PDF: parse("B.")}, pmc_json_files=PMC, pdf_json_files=PDF)
    told, draft = found
    assert isinstance(told, LeftOut)
    assert told.place == f"{tmp_path}/\\xff/{PMC}"
    assert texts(draft) == [("Introduction", "B.")]


# Whatever the files hold.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places_of(value: Any) -> list[tuple[Any, ...]]:
    """Every path in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(), *((key, *below) for key, one in inner for below in places_of(one))]


def with_value(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = with_value(value[place[0]], place[1:], new)
    return copy


WHOLE = json.loads(parse("B.", ("C.", "")))
ANYWHERE = st.tuples(st.sampled_from(places_of(WHOLE)), JSON).map(lambda pair: with_value(WHOLE, *pair))


@given(ANYWHERE.map(lambda value: json.dumps(value).encode()) | st.binary())
def test_any_parse(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = one_paper(Path(folder), {PDF: content}, abstract="A.", pdf_json_files=PDF)
    *told, draft = found
    assert isinstance(draft, Draft)
    assert len(told) <= 1
    assert all(isinstance(one, LeftOut) and one.kind == "broken" and "\n" not in one.reason for one in told)
    assert assemble(replace(draft, document_id="x")).contexts


@given(st.dictionaries(st.sampled_from(sorted(paper())), st.text(), max_size=8), st.booleans())
def test_any_cells(cells: dict[str, str], later: bool) -> None:
    row = {**paper(), **cells}
    if not later:
        del row["pdf_json_files"], row["pmc_json_files"]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([row.keys(), row.values()])
    with tempfile.TemporaryDirectory() as folder:
        files = {"metadata.csv": text.getvalue().encode("utf-8", "replace"), PDF: parse("B.")}
        found = collected(in_folder(Path(folder), files))
    for one in found:
        if isinstance(one, LeftOut):
            assert one.kind in ("unsafe path", "missing file", "broken", "no text")
            assert "\n" not in one.reason
        else:
            # Control characters alone are seen to be no text only there.
            with contextlib.suppress(NoText):
                assemble(one)


@given(st.binary() | st.lists(st.sampled_from([b'"', b",", b"\n", b"a", b"\xff"])).map(b"".join))
def test_any_table(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        in_folder(Path(folder), {"metadata.csv": b"cord_uid,abstract\n" + content})
        for one in collected(Path(folder)):
            assert isinstance(one, Draft) or "\n" not in one.reason


# Real ones.


def test_raw_parses(shared: Path, tmp_path: Path) -> None:
    folder = shared / "cord19/raw_parses"
    for path in folder.glob("*.json"):
        name = path.name.removeprefix("anserini_sample1__")
        kind = "pmc_json" if name.startswith("PMC") else "pdf_json"
        target = tmp_path / "document_parses" / kind / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    rows = list(csv.DictReader((folder / "anserini_sample1__metadata.csv").open(encoding="utf-8")))
    named = "".join(row["pdf_json_files"] + row["pmc_json_files"] for row in rows)
    for path in sorted((tmp_path / "document_parses").rglob("*.json")):
        if path.name not in named:
            column = f"{path.parent.name}_files"
            rows.append(
                dict.fromkeys(rows[0], "") | {"cord_uid": path.name, column: str(path.relative_to(tmp_path))}
            )
    found = collected(in_folder(tmp_path, {"metadata.csv": table(*rows)}))
    assert [kind for _, kind, _ in left(found, tmp_path)] == ["no text"]
    papers = [one for one in found if isinstance(one, Draft)]
    assert len(papers) == 12
    first = papers[0]
    assert first.metadata["full_text_path"] == "document_parses/pmc_json/PMC140314.xml.json"
    assert [one.text for one in first.paragraphs if one.section == "Abstract"] == [rows[0]["abstract"]]
    for draft in papers:
        text = json.loads((tmp_path / str(draft.metadata["full_text_path"])).read_bytes())
        body = [(one["section"] or None, one["text"]) for one in text["body_text"] if one["text"].strip()]
        assert texts(draft)[-len(body) :] == body
        assert draft.title
        assert len(assemble(draft).contexts) >= len(body)


def test_expanded_release_against_the_mini_collection(shared: Path, tmp_path: Path) -> None:
    tool = shared.parent / "tools/expand_cord19.py"
    subprocess.run([sys.executable, tool, tmp_path / "r", "--limit", "20"], check=True, capture_output=True)
    papers = {one.document_id: one for one in drafts(tmp_path / "r")}
    assert len(papers) == 20
    compared = 0
    with lzma.open(shared / "mini/expert.jsonl.xz") as lines:
        for line in lines:
            document = json.loads(line)
            if (draft := papers.pop(document["document_id"], None)) is None:
                continue
            # That collection was made without paragraphs of less than 20 characters.
            mine = [(one.section or "", one.text) for one in draft.paragraphs if len(one.text.strip()) >= 20]
            theirs = [(one["section"], one["text"]) for one in document["contexts"]]
            assert _joined(mine) == _joined(theirs)
            assert draft.title == document["metadata"]["title"]
            compared += 1
            if not papers:
                break
    assert compared == 20


def _joined(paragraphs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Texts without white space, those one after the other of one section together."""
    found: list[list[str]] = []
    for section, text in paragraphs:
        if found and found[-1][0] == section:
            found[-1][1] += "".join(text.split())
        else:
            found.append([section, "".join(text.split())])
    return found
