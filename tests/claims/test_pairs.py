"""Pairs of a claim and a sentence, in every shape and wrapping that data sets have."""

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import zstandard

from epicqa.claims import pairs
from epicqa.claims.examples import Example, split
from epicqa.claims.pairs import read_claim_pairs
from epicqa.claims.scifact import NOINFO, REFUTES, SUPPORTS
from epicqa.errors import EpicqaError

VITAMINC = {
    "unique_id": "5e_1",
    "case_id": "5e",
    "label": "REFUTES",
    "claim": "Westlife sold under 23 million .",
    "evidence": "Westlife -LRB- band -RRB- sold `` 24 million '' .",
    "page": "Westlife",
}
LINES = json.dumps(VITAMINC).encode() + b"\n\n"
EXAMPLE = Example(
    "Westlife sold under 23 million .",
    ('Westlife ( band ) sold " 24 million " .',),
    REFUTES,
    (True,),
    "page Westlife",
)


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def zipped(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def pair(claim: str, **others: Any) -> dict[str, Any]:
    return {"claim": claim, "evidence": "So it is.", "label": "SUPPORTS", **others}


def test_reads_every_wrapping(tmp_path: Path) -> None:
    contents = {
        "p.jsonl": LINES,
        "p.txt": b"\xef\xbb\xbf" + LINES,
        "p.jsonl.gz": gzip.compress(LINES),
        "p.jsonl.xz": lzma.compress(LINES),
        "p.jsonl.zst": zstandard.compress(LINES),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    zipped(tmp_path / "p.zip", {"LICENSE": b"CC", "real/": b"", "real/p.jsonl": LINES, ".hidden.jsonl": b"{"})
    with tarfile.open(tmp_path / "p.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("real/p.jsonl")
        member.size = len(LINES)
        archive.addfile(member, io.BytesIO(LINES))
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 7
    for path in paths:
        assert read_claim_pairs([path]) == [EXAMPLE], path
    assert read_claim_pairs(paths) == [EXAMPLE] * 7


def test_reads_every_shape(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.jsonl",
        {"id": "7", "label": "SUPPORTS", "claim": "It  rains .", "evidence_sentence": " Rain\tfalls . "},
        {
            "id": 8,
            "claim": "a",
            "evidence": "b",
            "sentence1": "b",
            "gold_label": "REFUTES",
            "label": "REFUTES",
        },
        {"id": 9, "claim": "c", "evidence": "d", "gold_label": "NOT ENOUGH INFO"},
        {
            "claim_id": "0",
            "claim": "Bears die out",
            "claim_label": "DISPUTED",
            "evidences": [
                {"evidence": "Ice melts.", "evidence_label": "NOT_ENOUGH_INFO", "votes": [None]},
                {"evidence": "Fewer bears.", "evidence_label": "SUPPORTS"},
            ],
        },
        {"claim": "e", "evidence": "f", "label": "CONTRADICT"},
        {"claim": "g", "evidences": []},
    )
    assert read_claim_pairs([path]) == [
        Example("It rains .", ("Rain falls .",), SUPPORTS, (True,), "id 7"),
        Example("a", ("b",), REFUTES, (True,), "id 8"),
        Example("c", ("d",), NOINFO, (False,), "id 9"),
        Example("Bears die out", ("Ice melts.",), NOINFO, (False,), "claim_id 0"),
        Example("Bears die out", ("Fewer bears.",), SUPPORTS, (True,), "claim_id 0"),
        Example("e", ("f",), REFUTES, (True,), "claim e"),
    ]


def test_what_belongs_together_has_one_group(tmp_path: Path) -> None:
    first = written(
        tmp_path / "first.jsonl",
        pair("Telemundo is English .", id="111897"),
        pair("Telemundo is Spanish .", id="1118970000003"),
        pair("Telemundo is English .", id="1118970000002"),
        pair("Two million sold", page="Band", case_id="1"),
        pair("Three million sold", page="Band", case_id="2"),
        pair("Nobody knows", case_id="2", id="a"),
        pair("Nobody cares", case_id="2", id="b"),
        pair("One of another page", page="", id="111897"),
    )
    second = written(
        tmp_path / "second.jsonl", pair("Two million sold", id=5), pair("Alone", id=6), pair("Alone too")
    )
    groups = [example.group for example in read_claim_pairs([first, second])]
    assert groups == [
        *["id 111897"] * 3,
        *["page Band"] * 2,
        *["case_id 2"] * 2,
        "id 111897",
        "page Band",
        "id 6",
        "claim Alone too",
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "broken JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("\udcff", "broken JSON"),
        ("[1]", "a JSON list, expected lines of"),
        ('{"claim": "a", "claim": "b", "evidence": "c", "label": "SUPPORTS"}', "'claim' is repeated"),
        ({"claim": "a", "evidence": "b"}, "no 'label', expected lines of"),
        ({"claim": "a", "label": "SUPPORTS"}, "no 'evidence', expected lines of"),
        (pair(" "), "'claim' has no text"),
        (pair("a", evidence="\n"), "'evidence' has no text"),
        (pair("a", evidence=[[[1, 2, "Page", 3]]]), "'evidence' is .* expected text"),
        (pair("a", evidence="\ud800"), "half a surrogate pair"),
        (pair("a", label="DISPUTED"), "'label' is 'DISPUTED', expected SUPPORTS, REFUTES or NOT ENOUGH INFO"),
        (pair("a", label=["SUPPORTS"]), "'label' is"),
        (pair("a", gold_label="REFUTES"), "'label' and 'gold_label' differ"),
        (pair("a", page=True), "'page' is True"),
        (pair("a", page=["b"]), "'page' is"),
        (pair("a", id="x\n\x1b[2J", label="no"), r"id 'x\\n\\x1b\[2J': 'label'"),
        ({"claim": "a", "claim_id": 3, "evidences": {}}, "claim_id 3: 'evidences' is"),
        ({"claim": "a", "evidences": ["b"]}, "evidence 1 is 'b', expected an object"),
        (
            {"claim": "a", "evidences": [{"evidence": "b", "evidence_label": "MAYBE"}]},
            "evidence 1: 'evidence_label' is 'MAYBE'",
        ),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: Any, why: str) -> None:
    text = line if isinstance(line, str) else json.dumps(line)
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(pair("good")) + "\n\n" + text + "\n", errors="surrogateescape")
    with pytest.raises(EpicqaError, match=why) as raised:
        read_claim_pairs([path])
    assert str(raised.value).startswith(f"{path}:3: ")
    assert "\n" not in str(raised.value)


def test_bad_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(LINES * 50)[:-9])
    (tmp_path / "not.zip").write_bytes(LINES)
    zipped(tmp_path / "none.zip", {"LICENSE": b"CC"})
    zipped(tmp_path / "two.zip", {"dev.jsonl": LINES, "test.jsonl": LINES})
    zipped(tmp_path / "method.zip", {"dev.jsonl": LINES}, zipfile.ZIP_LZMA)
    told = {
        "folder": "a folder, expected a file of pairs",
        "missing.jsonl": "no such file",
        "empty.jsonl": "no pairs, expected lines of",
        "cut.jsonl.gz": "cut short",
        "not.zip": "cannot be read",
        "none.zip": "0 files of .jsonl, expected one",
        "two.zip": "2 files of .jsonl, expected one",
        "method.zip": "cannot be read",
    }
    for name, why in told.items():
        with pytest.raises(EpicqaError, match=why) as raised:
            read_claim_pairs([tmp_path / name])
        assert str(raised.value).startswith(f"{tmp_path / name}: ")
    with pytest.raises(EpicqaError, match="no files"):
        read_claim_pairs([])


def test_an_archive_cannot_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = zipped(tmp_path / "long.zip", {"p.jsonl": LINES.strip() + b" " * (1 << 21) + b"\n"})
    with pytest.raises(EpicqaError, match=r"long\.zip!p\.jsonl:1: more than 1,048,576 bytes"):
        read_claim_pairs([long])
    monkeypatch.setattr(pairs, "_MOST", 2 * len(LINES))
    many = zipped(tmp_path / "many.zip", {"p.jsonl": LINES * 50})
    with pytest.raises(EpicqaError, match=r"many\.zip!p\.jsonl:5: more than"):
        read_claim_pairs([many])


def test_real_pairs(shared: Path) -> None:
    folder = shared / "fever"
    symmetric = {
        "v0.1_fever_symmetric_full": (956, 236),
        "v0.1_fever_symmetric_generated": (717, 236),
        "v0.2_fever_symmetric_dev": (708, 177),
        "v0.2_fever_symmetric_test": (712, 177),
    }
    paths = [folder / "symmetric" / f"symmetric_{name}.jsonl.gz" for name in symmetric]
    for path, (count, groups) in zip(paths, symmetric.values(), strict=True):
        found = read_claim_pairs([path])
        assert (len(found), len({one.group for one in found})) == (count, groups)
    vitaminc = read_claim_pairs([folder / "vitaminc_real.zip"])
    assert Counter(one.label for one in vitaminc) == {SUPPORTS: 17306, REFUTES: 9907, NOINFO: 7268}
    assert len({one.group for one in vitaminc}) == 2836
    climate = read_claim_pairs([folder / "climate-fever.jsonl.gz"])
    assert Counter(one.label for one in climate) == {SUPPORTS: 1943, REFUTES: 802, NOINFO: 4930}
    together = read_claim_pairs([*paths, folder / "climate-fever.jsonl.gz"])
    texts = " ".join(f"{one.claim} {one.sentences[0]}" for one in together)
    assert "-LRB-" not in texts and "``" not in texts.split()
    train, held = split(together, 0.2, 1)
    assert len(train) + len(held) == len(together)
    assert not {one.claim for one in train} & {one.claim for one in held}
