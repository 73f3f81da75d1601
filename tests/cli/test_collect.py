"""``epicqa collect`` on the command line: ``merge``, what all its commands share, and bad input."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from epicqa.cli.size import Size
from epicqa.collect.terms import covid_terms
from epicqa.corpus.build import build_corpus
from epicqa.corpus.sources import parse, records

Run = Callable[..., Any]

COMMANDS = ("cord19", "pages", "news", "reddit", "merge")
WHOLE = "The virus was found on steel after two days, on paper after one day, on copper for an hour."
OTHER = "Nobody was asked how long it stays on banknotes, which pass through many hands in a day."


@pytest.fixture
def papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small collection with a broken line, a duplicate and near-duplicates, in the current folder."""
    monkeypatch.chdir(tmp_path)
    documents: list[dict[str, Any]] = [
        {
            "id": "a",
            "title": "On steel",
            "text": f"{WHOLE}\n\nA longer paragraph about COVID-19 and steel. And then more.",
        },
        {"id": "b", "title": "On masks", "text": "Wear one. It helps."},
        {"id": "c", "title": "On steel, again", "text": f"{WHOLE}\n\n{OTHER}"},
        *({"id": name, "title": "Copy", "text": WHOLE} for name in "def"),
        {"id": "x y", "text": "An id of two words."},
        {"id": "a", "text": "The same id."},
    ]
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in documents))
    return path


def test_help_of_all(epicqa: Run) -> None:
    for command in COMMANDS:
        helped = epicqa("collect", command, "--help")
        assert (helped.status, helped.err) == (0, "")
        assert helped.out.startswith(f"Usage: epicqa collect {command} [OPTIONS] ")
        told = " ".join(helped.out.split())
        assert all(
            option in told for option in ("--output DIR", "--terms covid|FILE|none", "--force", "--json")
        )
        assert ("--max-sentences" in told) == (command != "merge")
        assert ("--url-ids" in told) == (command == "pages")
        assert all(len(line) <= 110 for line in helped.out.splitlines())
    groups = epicqa("collect", "--help").out
    assert [line.split()[0] for line in groups.partition("Commands:\n")[2].splitlines()] == sorted(COMMANDS)


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from epicqa.cli import cli\n"
        "cli.main(['collect', 'merge', '--help'], standalone_mode=False)\n"
        "print(sorted({'numpy', 'orjson', 'pyarrow', 'torch', 'rich', 'lxml'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_merge(papers: Path, epicqa: Run) -> None:
    ended = epicqa("collect", "merge", papers, "-o", "my out", "--threads", 1)
    assert (ended.status, ended.err) == (0, "")
    told = {line[:16].strip(): line[17:] for line in ended.out.splitlines()}
    assert shlex.split(told.pop("next")) == ["epicqa", "index", "my out", "--name", "NAME"]
    assert told == {
        "collection": "my out",
        "documents": "6",
        "contexts": "8",
        "sentences": "10",
        "left out": "1 broken, 1 duplicate; see my out/report.tsv",
        "near-duplicates": "2 documents, 2 contexts; see my out/near-duplicates.tsv",
    }
    assert Path("my out/report.tsv").read_text().splitlines() == [
        "place\tdocument\tkind\treason",
        f"{papers}:7\t\tbroken\tdocument id 'x y' holds white space, which no run file can carry",
        f"{papers}:8\ta\tduplicate\tthis id came before, in {papers}:1",
    ]
    assert Path("my out/near-duplicates.tsv").read_text().splitlines() == [
        "what\tid\tnear\tsimilarity\tdropped",
        "document\te\td\t1.00\tno",
        "document\tf\td\t1.00\tno",
        "context\tc-C000\ta-C000\t1.00\tno",
        "context\td-C000\ta-C000\t1.00\tno",
    ]


def test_what_is_written_is_what_index_takes(papers: Path, epicqa: Run, tmp_path: Path) -> None:
    for flags in ([], ["--jsonl"]):
        ended = epicqa("collect", "merge", papers, "-o", "out", "--threads", 1, "--json", *flags)
        told = json.loads(ended.out)
        assert (ended.status, ended.err) == (0, "")
        assert (told["out"], told["source"], told["left_out"]) == (
            "out",
            "merge",
            {"broken": 1, "duplicate": 1},
        )
        assert (told["near_duplicates"], told["dropped"]) == ({"document": 2, "context": 2}, {})
        found = [parse(one.raw) for one in records(Path("out"))]
        assert [one.document_id for one in found] == list("abcdef")
        assert found[0].title == "On steel" and len(found[0].contexts[1].sentences) == 2
        built = build_corpus([Path("out")], tmp_path / f"corpus{len(flags)}", workers=1, strict=True)
        assert (built.documents, built.contexts, built.sentences, built.skipped) == (
            told["documents"],
            told["contexts"],
            told["sentences"],
            0,
        )
        expected = {"report.tsv", "near-duplicates.tsv", ".collection.json"}
        expected |= {"documents.jsonl"} if flags else {f"{name}.json" for name in "abcdef"}
        assert {path.name for path in Path("out").iterdir()} == expected


def test_options_reach_the_collection(papers: Path, epicqa: Run) -> None:
    Path("terms.txt").write_text("masks\nsteel  # a metal\n")
    base = ["collect", "merge", papers, "-o", "out", "--threads", 1]
    flags = "--where title --terms terms.txt --duplicate-documents off --duplicate-contexts drop"
    ended = epicqa(*base, *flags.split(), "--similarity", 0.8, "--max-file-size", "3K")
    assert (ended.status, ended.err) == (0, "")
    plan = json.loads(Path("out/.collection.json").read_bytes())["plan"]
    assert plan["settings"] == {
        "terms": ["masks", "steel"],
        "where": "title",
        "max_sentences": 15,
        "max_characters": 1000,
        "max_file_size": 3 << 10,
        "jsonl": False,
        "duplicate_documents": "off",
        "duplicate_contexts": "drop",
        "similarity": 0.8,
    }
    told = {line[:16].strip(): line[17:] for line in ended.out.splitlines()}
    assert told["left out"] == "1 broken, 4 filtered; see out/report.tsv"
    assert told["near-duplicates"].endswith(" dropped; see out/near-duplicates.tsv")
    assert sorted(path.name for path in Path("out").glob("[a-z]*.json")) == ["a.json", "b.json", "c.json"]
    assert epicqa(*base, "--terms", "covid").status == 0
    plan = json.loads(Path("out/.collection.json").read_bytes())["plan"]
    assert plan["settings"]["terms"] == list(covid_terms()) and plan["settings"]["where"] == "any"
    assert [path.name for path in Path("out").glob("[a-z]*.json")] == ["a.json"]


def test_only_filtered_ones_need_no_report(papers: Path, epicqa: Run) -> None:
    papers.write_text("".join(papers.read_text().splitlines(keepends=True)[:2]))
    ended = epicqa("collect", "merge", papers, "-o", "out", "--threads", 1, "--terms", "covid")
    (line,) = [line for line in ended.out.splitlines() if line.startswith("left out")]
    assert line.split() == ["left", "out", "1", "filtered"]


def test_unchanged_and_forced(papers: Path, epicqa: Run) -> None:
    command = ["collect", "merge", papers, "-o", "out", "--threads", 1]
    first = epicqa(*command)
    state = Path("out/a.json").stat().st_mtime_ns
    assert epicqa(*command).out == first.out and Path("out/a.json").stat().st_mtime_ns == state
    assert epicqa(*command, "--force").out == first.out and Path("out/a.json").stat().st_mtime_ns != state


def test_a_process_of_its_own(papers: Path, fresh: Run) -> None:
    """As users call it, with all cores; the result is the same."""
    one = fresh("collect", "merge", papers, "-o", "one", "--threads", 1)
    many = fresh("collect", "merge", papers, "-o", "many")
    assert (one.err, many.err) == ("", "") and many.out == one.out.replace("one", "many")
    for path in Path("one").iterdir():
        assert path.read_bytes() == Path("many", path.name).read_bytes()


def test_an_interrupt_is_one_line(papers: Path, epicqa: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*told: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("epicqa.collect.join.find_near", interrupted)
        ended = epicqa("collect", "merge", papers, "-o", "out", "--threads", 1)
    line = "epicqa: interrupted; the same command goes on where it stopped\n"
    assert (ended.status, ended.out, ended.err.lstrip("\n")) == (1, "", line)
    assert Path(".out.collecting").exists() and not Path("out").exists()
    assert epicqa("collect", "merge", papers, "-o", "out", "--threads", 1).status == 0
    assert not Path(".out.collecting").exists()


def test_bad_input_is_one_line(papers: Path, epicqa: Run, tmp_path: Path) -> None:
    Path("full").mkdir()
    Path("full/mine.txt").touch()
    Path("empty.txt").write_text("# nothing\n")
    Path("empty").mkdir()
    Path("odd.csv").touch()
    Path("broken.json").write_text("{")
    ends = {
        ("absent.jsonl", "-o", "out"): "absent.jsonl: no such file or folder",
        ("papers.jsonl", "absent", "-o", "out"): "absent: no such file or folder",
        ("papers.jsonl", "-o", "papers.jsonl"): "papers.jsonl: a file, expected a folder for the collection",
        ("papers.jsonl", "-o", "odd.csv/out"): None,
        (
            "papers.jsonl",
            "-o",
            "full",
        ): "full: holds files of something else; expected a new folder, an empty one, or a collection",
        (".", "-o", "out"): "out: lies in the input ., or that in it; expected another folder",
        ("papers.jsonl", "-o", "."): None,
        ("papers.jsonl", "-o", ""): None,
        ("papers.jsonl", "-o", "out", "--terms", "absent.txt"): "absent.txt: No such file or directory, "
        "expected a readable file in UTF-8",
        (
            "papers.jsonl",
            "-o",
            "out",
            "--terms",
            "empty.txt",
        ): "empty.txt: holds no term, expected one a line",
        ("papers.jsonl", "-o", "out", "--terms", "full"): "full: Is a directory, expected a readable file in "
        "UTF-8",
        ("odd.csv", "-o", "out"): "odd.csv: unknown kind of file, expected .json, .jsonl (plain, .gz, .xz or "
        ".zst), .tar.gz, .tgz, .zip or a folder",
        (
            "empty",
            "-o",
            "out",
        ): "empty: holds no documents, expected .json, .jsonl (plain, .gz, .xz or .zst), "
        ".tar.gz, .tgz, .zip or a folder",
        (
            "broken.json",
            "-o",
            "out",
        ): "no document was collected (1 broken); the first is broken.json: broken "
        "JSON: unexpected end of data: line 1 column 2 (char 1)",
        (
            "papers.jsonl",
            "-o",
            "out",
            "--max-file-size",
            "10",
        ): "no document was collected (8 too large); the "
        "first is papers.jsonl:1: a line of more than 10 bytes, see --max-file-size",
        ("papers.jsonl", "-o", "out", "--terms", "terms.txt"): None,
    }
    Path("terms.txt").write_text("nowhere\n")
    for arguments, expected in ends.items():
        line = epicqa("collect", "merge", *arguments, "--threads", 1).line()
        assert line == (expected or line), arguments
        assert not Path("out").exists()
    assert papers.exists() and Path("full/mine.txt").exists()


def test_wrong_options(papers: Path, epicqa: Run) -> None:
    for flags, expected in {
        ("--max-file-size", "1.5M"): "'1.5M', expected a size such as 512K, 256M or 2G",
        ("--max-file-size", "0"): "expected a size such as 512K, 256M or 2G",
        ("--similarity", "0.2"): "0.2 is not in the range 0.5<=x<=1",
        ("--threads", "0"): "0 is not in the range x>=1",
        ("--where", "body"): "'body' is not one of 'any', 'title', 'text', 'both'",
        ("--duplicate-contexts", "yes"): "'yes' is not one of 'off', 'report', 'drop'",
        ("--max-sentences", "3"): "No such option",
        ("--max-file-size", "999999999999G"): "expected a size such as 512K, 256M or 2G",
    }.items():
        ended = epicqa("collect", "merge", papers, "-o", "out", *flags)
        told = " ".join(ended.err.split())
        assert (ended.status, ended.out) == (2, "") and expected in told
        assert "Usage: epicqa collect merge" in told and "Traceback" not in told
    line = epicqa("collect", "merge", papers, "-o", "out", "--similarity", "nan").line()
    assert line == "similarity nan, expected a number above 0, at most 1"
    assert epicqa("collect", "merge", papers).status == 2
    assert epicqa("collect", "merge", "-o", "out").status == 2
    assert epicqa("collect", "wiki", papers, "-o", "out").status == 2
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("10", 10),
        ("512K", 512 << 10),
        ("256M", 256 << 20),
        ("2G", 2 << 30),
        ("8000000G", 8_000_000 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert Size().convert(text, None, None) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "+1", "1.5M", "1k", "1 M", "M", "1MB", "1T", "01", "1e3", "٣", "1\n"]
)
def test_no_sizes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected a size such as 512K, 256M or 2G"):
        Size().convert(text, None, None)


def test_what_a_terminal_would_obey_is_not_printed(papers: Path, epicqa: Run) -> None:
    """Names inside archives are anybody's."""
    Path("bad\x1b]0;x\x07.json").write_text("{")
    with tarfile.open("a.tar", "w") as archive:
        archive.add("bad\x1b]0;x\x07.json")
    line = epicqa("collect", "merge", "a.tar", "-o", "out", "--threads", 1).line()
    assert (
        line.startswith("no document was collected (1 broken); the first is a.tar!bad") and line.isprintable()
    )


def test_names_that_are_not_utf8(papers: Path, epicqa: Run) -> None:
    name = os.fsdecode(b"caf\xe9")
    papers.rename(f"{name}.jsonl")
    ended = epicqa("collect", "merge", f"{name}.jsonl", "-o", name, "--threads", 1, "--json")
    assert ended.status == 0 and json.loads(ended.out)["documents"] == 6
    assert epicqa("collect", "merge", f"{name}.jsonl", "-o", name, "--threads", 1).status == 0
    assert "caf\\xe9.jsonl:8\ta\tduplicate" in Path(name, "report.tsv").read_text()
