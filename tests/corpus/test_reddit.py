import gzip
import io
import itertools
import json
import random
import sqlite3
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epicqa.corpus.drafts import Draft, assemble
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece
from epicqa.corpus.sources.reddit import Reddit, from_praw
from epicqa.corpus.sources.reddit_thread import MAX_ANCESTORS, Comment, Submission, draft_of, pseudonym
from epicqa.errors import EpicqaError

LIMIT = 1 << 20
MARCH = 1_584_230_400  # 2020-03-15


def submission(identity: str = "fj1a2b", **fields: Any) -> dict[str, Any]:
    """A submission as a dump has it."""
    return {
        "all_awardings": [],
        "author": "curious_cat",
        "author_flair_text": None,
        "created_utc": MARCH,
        "id": identity,
        "is_self": True,
        "link_flair_css_class": "med",
        "link_flair_text": "COVID-19",
        "name": f"t3_{identity}",
        "num_comments": 7,
        "over_18": False,
        "permalink": f"/r/askscience/comments/{identity}/how_long_does_it_last/",
        "retrieved_on": MARCH + 9000,
        "score": 812,
        "selftext": "It is on *my* desk.",
        "subreddit": "askscience",
        "subreddit_id": "t5_x",
        "title": "How long does the virus last on desks &amp; doors?",
        "url": f"https://www.reddit.com/r/askscience/comments/{identity}/how_long_does_it_last/",
    } | fields


def comment(identity: str, parent: Any = None, link: str = "fj1a2b", **fields: Any) -> dict[str, Any]:
    """A comment as a dump has it; without a parent it replies to the submission."""
    return {
        "author": f"author_of_{identity}",
        "author_flair_text": "Virology",
        "body": f"This is what {identity} says.",
        "controversiality": 0,
        "created_utc": MARCH + 60,
        "distinguished": None,
        "gildings": {},
        "id": identity,
        "is_submitter": False,
        "link_id": f"t3_{link}",
        "parent_id": f"t3_{link}" if parent is None else parent,
        "permalink": f"/r/askscience/comments/{link}/how_long_does_it_last/{identity}/",
        "retrieved_on": MARCH + 9000,
        "score": 5,
        "stickied": False,
        "subreddit": "askscience",
        "subreddit_id": "t5_x",
    } | fields


def lines(things: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(thing).encode() + b"\n" for thing in things)


def long_window(data: bytes) -> bytes:
    """As the monthly dumps are packed: ``zstd --long=31``, the size unknown."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31, compression_level=1)
    sink = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(sink, closefd=False) as writer:
        writer.write(data)
    return sink.getvalue()


class Read:
    """What a source finds, and makes of it."""

    def __init__(self, folder: Path, *inputs: Path, limit: int = LIMIT, **options: Any) -> None:
        source = Reddit(**options)
        found = list(source.pieces(inputs, folder / "scratch", limit))
        self.pieces = [one for one in found if isinstance(one, Piece)]
        made = [one for piece in self.pieces for one in source.drafts(piece, limit)]
        self.drafts = [one for one in made if isinstance(one, Draft)]
        self.left_out = [one for one in [*found, *made] if isinstance(one, LeftOut)]

    @property
    def ids(self) -> list[str | None]:
        return [draft.document_id for draft in self.drafts]


def thread(*comments: Mapping[str, Any], given: Mapping[str, Any] | None = None, **options: Any) -> Draft:
    """The draft of one submission."""
    raw = json.dumps({"submission": given or submission(), "comments": comments}).encode()
    (draft,) = Reddit(**options).drafts(Piece("here", raw), LIMIT)
    assert isinstance(draft, Draft), draft
    return draft


def by(*names: str) -> str:
    """The section of who wrote, and who wrote above, nearest first."""
    return "by:" + " re:".join(map(pseudonym, names))


def sections(draft: Draft) -> list[str | None]:
    return [paragraph.section for paragraph in draft.paragraphs]


THREAD = [
    comment("c1", score=3, author="Ann"),
    comment(
        "c2", score=40, author="bob", body="Some days.\n\n&gt; on desks\n\n- [Steel](http://x.org): 3\n- card"
    ),
    comment("c3", "t1_c2", score=9, author="CURIOUS_CAT", body="Thanks u/BOB and /u/Nobody"),
    comment("c4", "t1_c3", score=2, author="ann"),
    comment("c5", "t1_c2", score=20, author="[deleted]"),
    comment("c6", score=0),
    comment("c7", "t1_c6", score=90),
]


def test_dumps_become_threads(tmp_path: Path) -> None:
    (tmp_path / "RS_2020-03.zst").write_bytes(
        long_window(lines([submission(), submission("zz", subreddit="AskReddit")]))
    )
    others = [comment("d1", link="zz", subreddit="AskReddit"), comment("d2", link="unknown")]
    (tmp_path / "RC_2020-03.zst").write_bytes(long_window(lines([*THREAD, *others])))
    read = Read(tmp_path, tmp_path / "RC_2020-03.zst", tmp_path / "RS_2020-03.zst")
    assert [piece.place for piece in read.pieces] == [f"{tmp_path}/RS_2020-03.zst:1"]
    assert read.left_out == []
    (draft,) = read.drafts
    assert draft.document_id == "fj1a2b"
    assert draft.title == "How long does the virus last on desks & doors?"
    assert draft.url == "https://www.reddit.com/r/askscience/comments/fj1a2b/how_long_does_it_last/"
    assert draft.metadata == {
        "subreddit": "askscience",
        "flair": "COVID-19",
        "score": 812,
        "created": "2020-03-15",
        "num_comments": 7,
    }
    assert [(one.section, one.text) for one in draft.paragraphs] == [
        (None, "It is on my desk."),
        (by("bob"), "Some days.\n\non desks\n\n- Steel: 3\n- card"),
        (by("[deleted]", "bob"), "This is what c5 says."),
        (by("curious_cat", "bob"), f"Thanks u/{pseudonym('bob')} and /u/{pseudonym('nobody')}"),
        (by("ann", "curious_cat", "bob"), "This is what c4 says."),
        (by("ann"), "This is what c1 says."),
    ]
    document = assemble(draft)
    assert document.contexts[4].section == by("ann", "curious_cat", "bob")
    assert [s.sentence_id for s in document.contexts[2].sentences] == ["fj1a2b-C002-S000"]


def test_keep_names() -> None:
    draft = thread(*THREAD, keep_names=True)
    assert sections(draft) == [
        None,
        "by:bob",
        "by:[deleted] re:bob",
        "by:CURIOUS_CAT re:bob",
        "by:ann re:CURIOUS_CAT re:bob",
        "by:Ann",
    ]
    assert draft.paragraphs[3].text == "Thanks u/BOB and /u/Nobody"


def test_names_nowhere_else() -> None:
    draft = thread(
        comment("c1", author="ann-b_c", body="By _u/ann-b_c_, **/u/curious\\_cat**: ask [u/x](http://y)."),
        comment(
            "c2", body="https://old.reddit.com/user/ANN-b_c/comments, https://x.org/u/ann-b_c menu/ann ua/b"
        ),
        given=submission(
            title="u/Ann-b_c and I (u/someone)", author="curious_cat", selftext="AMA, (u/curious_cat)"
        ),
    )
    ann, cat, x, someone = map(pseudonym, ("ann-b_c", "curious_cat", "x", "someone"))
    assert draft.title == f"u/{ann} and I (u/{someone})"
    assert [paragraph.text for paragraph in draft.paragraphs] == [
        f"AMA, (u/{cat})",
        f"By u/{ann}, /u/{cat}: ask u/{x}.",
        f"https://old.reddit.com/user/{ann}/comments, https://x.org/u/ann-b_c menu/ann ua/b",
    ]


def test_pseudonyms_are_the_same_everywhere() -> None:
    # The value itself: collections made before must agree with those made after.
    assert pseudonym("Ann") == pseudonym("ann") == "user-7704e67acd"
    assert pseudonym("Ann") != pseudonym("Anna")
    assert [pseudonym(name) for name in ("[deleted]", "[missing]")] == ["[deleted]", "[missing]"]
    other = thread(comment("c9", author="Bob"), given=submission("zz", author="ann"))
    assert sections(other)[1] == sections(thread(*THREAD))[1] == by("bob")


def test_a_profile_names_nobody() -> None:
    given = submission(subreddit="u_curious_cat", permalink="/r/u_curious_cat/comments/fj1a2b/x/")
    draft = thread(comment("c1"), given=given)
    assert (draft.url, draft.metadata["subreddit"]) == ("https://www.reddit.com/comments/fj1a2b/", "u_user")
    draft = thread(comment("c1"), given=given, keep_names=True)
    assert draft.metadata["subreddit"] == "u_curious_cat"
    assert draft.url == "https://www.reddit.com/r/u_curious_cat/comments/fj1a2b/x/"


def test_a_deleted_asker_is_nobody() -> None:
    draft = thread(
        comment("c1", author="[deleted]"), comment("c2", author=None), given=submission(author=None)
    )
    assert sections(draft) == [None, "by:[deleted]", "by:[deleted]"]


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "[removed]"},
        {"body": " [deleted]\n"},
        {"body": "[ Removed by Reddit ]"},
        {"body": "[removed by reddit on account of violating the content policy]"},
        {"body": "\\[deleted\\]"},
        {"score": 0},
        {"score": -12},
        {"score": "-1"},
        {"distinguished": "moderator", "stickied": True, "author": "AutoModerator"},
        {"distinguished": "moderator", "stickied": "true"},
    ],
)
def test_dropped_with_all_replies(fields: dict[str, Any]) -> None:
    draft = thread(
        comment("c1", **fields),
        comment("c2", "t1_c1", score=50),
        comment("c3", "t1_c2", score=50),
        comment("c4"),
    )
    assert [paragraph.text for paragraph in draft.paragraphs[1:]] == ["This is what c4 says."]


@pytest.mark.parametrize(
    "fields",
    [
        {"author": "[deleted]"},
        {"score": None},
        {"score": "3"},
        {"score": 2.0},
        {"distinguished": "moderator"},
        {"stickied": True},
        {"distinguished": "moderator", "stickied": "false"},
        {"body": "[removed] by whom?"},
    ],
)
def test_stays(fields: dict[str, Any]) -> None:
    assert len(thread(comment("c1", **fields)).paragraphs) == 2


def test_top_order_and_ties() -> None:
    draft = thread(
        comment("c1", score=5, created_utc=MARCH + 2),
        comment("c2", score=5, created_utc=MARCH + 1),
        comment("c4", score=5, created_utc=str(MARCH + 1)),
        comment("c3", score=6, created_utc=MARCH + 9),
        comment("c5", "t1_c4", score=100),
        keep_names=True,
    )
    assert sections(draft)[1:] == [
        "by:author_of_c3",
        "by:author_of_c2",
        "by:author_of_c4",
        "by:author_of_c5 re:author_of_c4",
        "by:author_of_c1",
    ]


@pytest.mark.parametrize(
    "parent", ["t1_c0ffee", int("c0ffee", 36), float(int("c0ffee", 36)), "c0ffee", "T1_C0FFEE"]
)
def test_parents_of_every_dump(parent: Any) -> None:
    draft = thread(comment("c0ffee"), comment("c2", parent, score=99), keep_names=True)
    assert sections(draft)[1:] == ["by:author_of_c0ffee", "by:author_of_c2 re:author_of_c0ffee"]


@pytest.mark.parametrize("parent", ["t3_fj1a2b", "t3_other", int("fj1a2b", 36), "", "???", [1]])
def test_replies_to_the_submission(parent: Any) -> None:
    found = [comment("c1", parent), {**comment("c2"), "parent_id": None}]
    assert sections(thread(*found)) == [None, by("author_of_c1"), by("author_of_c2")]


def test_orphans_and_rings() -> None:
    draft = thread(
        comment("c1", "t1_never", score=7),
        comment("c2", "t1_c1", score=8),
        comment("c3", "t1_c4"),
        comment("c4", "t1_c3"),
        comment("c5", "t1_c5"),
    )
    one, other = "author_of_c1", "author_of_c2"
    assert sections(draft) == [None, by(one, "[missing]"), by(other, one, "[missing]")]


def test_a_chain_of_any_length() -> None:
    chain = [comment("a0"), *(comment(f"a{n}", f"t1_a{n - 1}") for n in range(1, 3000))]
    random.Random(1).shuffle(chain)
    draft = thread(*chain, max_comments=0, keep_names=True)
    assert len(draft.paragraphs) == 3001
    assert sections(draft)[2] == "by:author_of_a1 re:author_of_a0"
    above = [f"re:author_of_a{n}" for n in range(2998, 2998 - MAX_ANCESTORS, -1)]
    assert sections(draft)[-1] == " ".join(["by:author_of_a2999", *above])


def in_order_slowly(comments: Sequence[Comment], most: int) -> list[tuple[str, list[str]]]:
    """Ids and the ids above, nearest first: the rules as they are written, one comment at a time."""
    by_id = {one.id: one for one in comments}

    def above(one: Comment) -> list[str] | None:
        """None where a dropped comment or a ring is above."""
        path: list[str] = []
        while one.parent is not None:
            if one.parent in path or one.parent == one.id:
                return None
            path.append(one.parent)
            if one.parent not in by_id:
                return path
            one = by_id[one.parent]
            if one.dropped:
                return None
        return path

    def rank(one: Comment) -> tuple[int, int, str]:
        return -one.score, one.created, one.id

    paths = {one.id: path for one in comments if not one.dropped and (path := above(one)) is not None}
    shown: list[str] = []
    while len(shown) < most or not most:
        ready = [
            one
            for one in comments
            if one.id in paths
            and one.id not in shown
            and (one.parent is None or one.parent not in by_id or one.parent in shown)
        ]
        if not ready:
            break
        shown.append(min(ready, key=rank).id)

    def place(identity: str) -> list[tuple[int, int, str]]:
        return [rank(by_id[one]) for one in reversed([identity, *paths[identity]]) if one in by_id]

    return [(one, paths[one]) for one in sorted(shown, key=place)]


IDS = "abcdefghij"


@st.composite
def comments_of_threads(draw: st.DrawFn) -> list[Comment]:
    found = []
    for identity in draw(st.lists(st.sampled_from(IDS), unique=True)):
        parent = draw(st.one_of(st.none(), st.sampled_from(IDS + "xy")))
        score, created = draw(st.integers(1, 3)), draw(st.integers(0, 1))
        dropped = draw(st.integers(0, 7)) == 0
        found.append(Comment(identity, parent, identity, identity, score, created, dropped))
    return found


@given(comments_of_threads(), st.integers(0, 6), st.randoms())
def test_order_equals_the_rules_read_slowly(
    comments: list[Comment], most: int, shuffler: random.Random
) -> None:
    expected = [
        "by:" + " re:".join([one, *(a if a in {c.id for c in comments} else "[missing]" for a in above)])
        for one, above in in_order_slowly(comments, most)
    ]
    shuffler.shuffle(comments)
    draft = draft_of(Submission("t", "", "", "z", "u"), comments, max_comments=most, keep_names=True)
    assert sections(draft) == expected


def test_most_comments_are_the_best_whose_parents_are_shown() -> None:
    found = [
        comment("c1", score=50),
        comment("c2", "t1_c1", score=2),
        comment("c3", "t1_c2", score=900),
        comment("c4", score=10),
        comment("c5", score=5),
    ]
    assert sections(thread(*found, max_comments=2, keep_names=True))[1:] == [
        "by:author_of_c1",
        "by:author_of_c4",
    ]
    assert len(thread(*found, max_comments=3).paragraphs) == 4
    assert len(thread(*found, max_comments=0).paragraphs) == 6


@pytest.mark.parametrize("text", ["[removed]", "[deleted]", "", None])
def test_a_text_that_is_gone(text: str | None, tmp_path: Path) -> None:
    given = submission(selftext=text, title="[deleted by user]")
    draft = thread(comment("c1"), given=given)
    assert (draft.title, sections(draft)) == (None, [by("author_of_c1")])
    (tmp_path / "x.jsonl").write_bytes(lines([given, comment("c1", body="&#x200B;"), comment("c2", score=0)]))
    read = Read(tmp_path, tmp_path / "x.jsonl")
    assert read.drafts == []
    assert read.left_out == [
        LeftOut(f"{tmp_path}/x.jsonl:1", EMPTY, "neither a text nor a comment that stays", "fj1a2b")
    ]


@pytest.mark.parametrize(
    ("fields", "url", "metadata"),
    [
        (
            {"permalink": None, "created_utc": "1584230400", "score": "7", "num_comments": 3.0},
            "https://www.reddit.com/comments/fj1a2b/",
            {
                "subreddit": "askscience",
                "flair": "COVID-19",
                "score": 7,
                "created": "2020-03-15",
                "num_comments": 3,
            },
        ),
        (
            {
                "permalink": "https://www.reddit.com/r/a/comments/fj1a2b/b/",
                "created_utc": 10**15,
                "score": True,
                "num_comments": 10**30,
                "link_flair_text": "Q&amp;A",
                "subreddit": None,
            },
            "https://www.reddit.com/r/a/comments/fj1a2b/b/",
            {"flair": "Q&A"},
        ),
        ({"permalink": "/r/a b", "id": int("fj1a2b", 36)}, "https://www.reddit.com/comments/fj1a2b/", None),
    ],
)
def test_fields_of_every_dump(fields: dict[str, Any], url: str, metadata: dict[str, Any] | None) -> None:
    draft = thread(comment("c1"), given=submission(**fields))
    assert (draft.document_id, draft.url) == ("fj1a2b", url)
    assert metadata is None or draft.metadata == metadata


def test_which_submissions(tmp_path: Path) -> None:
    given = [
        submission("a1", link_flair_text="Medicine"),
        submission("a2", link_flair_text=None),
        submission("a3", link_flair_text=":v: Covid-19 &amp; more", subreddit="AskScience"),
        submission("a4", subreddit="science"),
        {k: v for k, v in submission("a5").items() if k != "subreddit"},
    ]
    (tmp_path / "x.jsonl").write_bytes(lines(given))
    read = Read(tmp_path, tmp_path / "x.jsonl")
    assert read.ids == ["a3", "a5"]
    assert read.left_out == [
        LeftOut(f"{tmp_path}/x.jsonl:1", FILTERED, "flair 'Medicine'", "a1"),
        LeftOut(f"{tmp_path}/x.jsonl:2", FILTERED, "flair ''", "a2"),
    ]
    for options, ids in [
        ({"flairs": ()}, ["a1", "a2", "a3", "a5"]),
        ({"flairs": ("& MORE", "medi")}, ["a1", "a3"]),
        ({"subreddits": ()}, ["a3", "a4", "a5"]),
        ({"subreddits": ("/r/Science", "none")}, ["a4", "a5"]),
    ]:
        assert Read(tmp_path, tmp_path / "x.jsonl", **options).ids == ids


def listing(*things: tuple[str, Any]) -> dict[str, Any]:
    children = [{"kind": kind, "data": data} for kind, data in things]
    return {"kind": "Listing", "data": {"after": None, "dist": 1, "children": children}}


def answer() -> list[Any]:
    """What Reddit answers for a thread's address with ``.json`` behind it."""
    replies = listing(
        (
            "t1",
            {**comment("c3", "t1_c2"), "replies": listing(("t1", {**comment("c4", "t1_c3"), "replies": ""}))},
        ),
        ("more", {"count": 3, "name": "t1_x", "id": "x", "parent_id": "t1_c2", "children": ["x", "y"]}),
    )
    return [
        listing(("t3", submission())),
        listing(("t1", {**comment("c2"), "replies": replies}), ("more", {"count": 0, "children": []})),
    ]


SHAPES: dict[str, bytes] = {
    "dump.jsonl": lines([comment("c4", "t1_c3"), submission(), comment("c3", "t1_c2"), comment("c2")]),
    "answer.json": json.dumps(answer()).encode(),
    "pretty.json": json.dumps(answer(), indent=2).encode(),
    "bom.json": b"\xef\xbb\xbf" + json.dumps(answer(), indent=2).encode(),
    "lines.json": lines(answer()),
    "list.json": json.dumps(
        [submission(), comment("c2"), comment("c3", "t1_c2"), comment("c4", "t1_c3")]
    ).encode(),
    "rows.json": b"[%b]"
    % b",\n".join(
        json.dumps(one).encode()
        for one in [submission(), comment("c2"), comment("c3", "t1_c2"), comment("c4", "t1_c3")]
    ),
    "api.json": json.dumps(
        {"data": [submission(), comment("c2"), comment("c3", "t1_c2"), comment("c4", "t1_c3")]}, indent=1
    ).encode(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_the_same_thread(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(SHAPES[name])
    read = Read(tmp_path, path)
    assert read.left_out == []
    (draft,) = read.drafts
    chain = [f"author_of_c{number}" for number in (4, 3, 2)]
    assert sections(draft) == [None, by(*chain[2:]), by(*chain[1:]), by(*chain)]
    assert len(read.pieces) == 1 and read.pieces[0].place.removeprefix(str(path)) in ("", ":1", ":2")


def test_files_of_folders_and_archives(tmp_path: Path) -> None:
    things = {
        "a/RS_2020-03": lines([submission("a1")]),
        "RC_2020-03.gz": gzip.compress(lines([comment("c1", link="a1"), comment("c2", link="a2")])),
        "askscience_submissions.zst": long_window(lines([submission("a2")])),
        "r_askscience.ndjson": lines([submission("a3")]),
        "notes.txt": b"no",
    }
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        for name, data in things.items():
            path = tmp_path / "all" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            archive.add(path, name)
    for source in ("all", "all.tar"):
        read = Read(tmp_path, tmp_path / source)
        assert read.left_out == []
        assert [(draft.document_id, len(draft.paragraphs)) for draft in read.drafts] == [
            ("a1", 2),
            ("a2", 2),
            ("a3", 1),
        ]


def test_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    old = [submission("a1", score=1, retrieved_on=5), comment("c1", link="a1", body="Old.", retrieved_on=5)]
    new = [submission("a1", score=9), comment("c1", link="a1", body="New."), comment("c2", "t1_c1", "a1")]
    equal = [submission("a2", title="One"), submission("a2", title="Two"), comment("c9", link="a2", body="b")]
    twice = [
        comment("c9", link="a2", body="a"),
        submission("a1", score=2, retrieved_utc="4", retrieved_on=None),
    ]
    files = []
    for number, things in enumerate([old, new, equal, twice]):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_bytes(lines(things))
    seen = set()
    for number, order in enumerate(itertools.permutations(files)):
        read = Read(tmp_path / str(number), *order)
        assert [draft.metadata["score"] for draft in read.drafts] == [9, 812]
        assert [draft.title for draft in read.drafts][1] == "Two"
        assert [p.text for d in read.drafts for p in d.paragraphs if p.section] == [
            "New.",
            "This is what c2 says.",
            "b",
        ]
        seen.add(tuple((piece.place, piece.raw) for piece in read.pieces))
    assert len(seen) == 1


def test_damage_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b'{"id": "a0", "title": "cut'
        + b"\n\n"
        + lines([submission(), {"kind": "t2", "data": {"name": "who"}}, 5])
        + b"caf\xe9\n"
        + lines([{**comment("c1"), "body": "x" * 5000}, comment("c 2"), comment("c3")])
        + lines([{k: v for k, v in comment("c4").items() if k not in ("link_id", "parent_id")}])
        + lines(
            [comment("c5", "t1_c3", link_id=None), comment("c6", link_id=None), submission(id=None, name=[])]
        )
    )
    read = Read(tmp_path, path, limit=3000)
    assert [(one.place.removeprefix(f"{path}:"), one.kind) for one in read.left_out] == [
        ("1", BROKEN),
        ("4", BROKEN),
        ("5", BROKEN),
        ("6", BROKEN),
        ("7", TOO_LARGE),
        ("8", BROKEN),
        ("10", BROKEN),
        ("11", BROKEN),
        ("13", BROKEN),
    ]
    reasons = [one.reason for one in read.left_out]
    assert reasons[0].startswith("broken JSON: ")
    assert reasons[1].startswith("neither a submission")
    assert reasons[2] == "an integer, neither a submission nor a comment"
    assert reasons[4] == "more than 3,000 bytes, see --max-file-size"
    assert reasons[5] == "the id is none, expected a number in base 36"
    assert reasons[7] == "a comment that does not say its submission, expected 'link_id'"
    assert all("\n" not in reason for reason in reasons)
    assert len(read.drafts[0].paragraphs) == 3


@pytest.mark.parametrize("pack", [long_window, gzip.compress])
def test_a_cut_dump_gives_what_is_before_the_cut(tmp_path: Path, pack: Any) -> None:
    suffix = ".zst" if pack is long_window else ".gz"
    rest = [comment(f"d{n}", body=f"{random.Random(n).random()}") for n in range(3000)]
    (tmp_path / f"RC_2020-03{suffix}").write_bytes(pack(lines([comment("c1"), *rest]))[:-9])
    (tmp_path / "RS_2020-03").write_bytes(lines([submission()]))
    read = Read(tmp_path, tmp_path / f"RC_2020-03{suffix}", tmp_path / "RS_2020-03", max_comments=0)
    assert [(one.place, one.kind) for one in read.left_out] == [(f"{tmp_path}/RC_2020-03{suffix}", BROKEN)]
    assert read.left_out[0].reason.startswith("cannot be read, damaged or cut short: ")
    assert len(read.drafts[0].paragraphs) > 100


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (json.dumps(answer(), indent=1).encode()[:-3], BROKEN),
        (b"[\n" + b" " * 4000 + b"\n" + b"1,\n" * 2000 + b"1]", TOO_LARGE),
        (b"[" * 5000, BROKEN),
        (b"{\n", BROKEN),
    ],
)
def test_a_broken_file_of_many_lines(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    limit = 6000 if kind == TOO_LARGE else LIMIT
    assert [one.kind for one in Read(tmp_path, path, limit=limit).left_out] == [kind]


def test_file_names_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(lines([submission()]))
    for name in ("caf\udce9.jsonl", "caf\udce9.zip"):
        (tmp_path / name).write_bytes(b"5")
    read = Read(tmp_path, *sorted(tmp_path.iterdir()))
    assert [one.place.removeprefix(f"{tmp_path}/") for one in read.left_out] == [
        "caf\\xe9.jsonl:1",
        "caf\\xe9.zip",
    ]


def test_too_many_comments_for_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        lines([submission("a1"), submission(), *(comment(f"c{n}", body="x" * 500) for n in range(9))])
    )
    read = Read(tmp_path, path, limit=3000)
    assert read.ids == ["a1"]
    assert read.left_out == [
        LeftOut(f"{path}:2", TOO_LARGE, "comments of more than 3,000 bytes, see --max-file-size", "fj1a2b")
    ]


def test_inputs_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(EpicqaError, match=r"none\.zst: no such file or folder"):
        Read(tmp_path, tmp_path / "none.zst")
    (tmp_path / "x.csv").write_bytes(b"a,b")
    with pytest.raises(EpicqaError, match=r"x\.csv: unknown kind of file, expected Reddit dumps: "):
        Read(tmp_path, tmp_path / "x.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(EpicqaError, match="empty: holds nothing to collect, expected Reddit dumps"):
        Read(tmp_path, tmp_path / "empty")
    (tmp_path / "RC_2020-03").write_bytes(lines([comment("c1")]))
    with pytest.raises(
        EpicqaError, match="RC_2020-03: no submission of r/askscience, expected the dump of sub"
    ):
        Read(tmp_path, tmp_path / "RC_2020-03")


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_bytes(lines([submission(), 5]))
    with pytest.raises(EpicqaError, match="no such file"):
        Read(tmp_path, first, second)
    first.unlink()
    second.write_bytes(lines([comment("c1"), 6]))
    once = Read(tmp_path, first, second)
    second.unlink()
    again = Read(tmp_path, first, second, max_comments=3)
    assert once.drafts == again.drafts and once.left_out == again.left_out
    assert [one.place for one in once.left_out] == [f"{first}:2", f"{second}:2"]
    # Other inputs or another filter are another reading.
    with pytest.raises(EpicqaError, match="no such file"):
        Read(tmp_path, first, second, subreddits=())


def test_an_input_half_read_is_read_again_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines([5, submission(), comment("c1"), comment("c2", "t1_c1"), 6]))
    once = Read(tmp_path, path)
    database = sqlite3.connect(tmp_path / "scratch" / "reddit" / "posts.db")
    with database:
        database.execute("delete from finished")
        database.execute("delete from comments where id = 'c2'")
    database.close()
    again = Read(tmp_path, path)
    assert (once.pieces, once.left_out) == (again.pieces, again.left_out)


def test_a_damaged_database_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines([submission()]))
    once = Read(tmp_path, path)
    database = tmp_path / "scratch" / "reddit" / "posts.db"
    for damage in (b"", b"this is no database" * 400, database.read_bytes()[:5000]):
        for left in database.parent.iterdir():
            left.unlink()
        database.write_bytes(damage)
        assert Read(tmp_path, path).pieces == once.pieces


JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.sampled_from(
            ["t1_c1", "t3_fj1a2b", "[removed]", "u/x", "moderator", "true", "-3", "1e9", "c1", "Listing"]
        ),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def fuzzed(thing: dict[str, Any], keys: Iterable[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(keys)), JSON, max_size=4).map(lambda change: thing | change)


ANY_SUBMISSION = fuzzed(submission(), submission())
ANY_COMMENT = st.one_of(
    fuzzed(comment("c1"), [*comment("c1"), "replies"]), fuzzed(comment("c2", "t1_c1"), comment("c2"))
)


@given(ANY_SUBMISSION, st.lists(st.one_of(ANY_COMMENT, JSON)), st.booleans(), st.integers(0, 3))
def test_any_values_make_drafts(given_: Any, comments: list[Any], keep_names: bool, most: int) -> None:
    raw = json.dumps({"submission": given_, "comments": comments}).encode()
    (one,) = Reddit(keep_names=keep_names, max_comments=most).drafts(Piece("here", raw), LIMIT)
    if isinstance(one, LeftOut):
        assert one.kind in (BROKEN, EMPTY) and "\n" not in one.reason
    else:
        assert [paragraph.text for paragraph in one.paragraphs if not paragraph.text] == []
        assert most == 0 or len(one.paragraphs) <= most + 1
        orjson.dumps(one.metadata)


@given(st.one_of(st.binary(), JSON.map(json.dumps).map(str.encode)))
def test_any_bytes_make_one_line(raw: bytes) -> None:
    (one,) = Reddit().drafts(Piece("here", raw), LIMIT)
    assert isinstance(one, LeftOut) and "\n" not in one.reason


ANY_LINE = st.one_of(
    st.binary(max_size=80),
    st.one_of(ANY_SUBMISSION, ANY_COMMENT, JSON).map(json.dumps).map(str.encode),
    st.sampled_from([b"[", b"{", b"]", b"[{", b"{}", b"", json.dumps(answer()).encode()]),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    found=st.lists(ANY_LINE, max_size=6), name=st.sampled_from(["x.json", "RC_x", "x.json.zst", "x.jsonl.gz"])
)
def test_any_file_is_read(tmp_path_factory: pytest.TempPathFactory, found: list[bytes], name: str) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / name).write_bytes(b"\n".join(found))
    (folder / "good.jsonl").write_bytes(lines([submission("good1")]))
    read = Read(folder, folder / name, folder / "good.jsonl", limit=4000)
    assert "good1" in read.ids
    for one in read.left_out:
        assert "\n" not in one.reason and one.place.startswith(str(folder))


# PRAW's own objects; only what would go over the network is answered here.


class Answering:
    """A thread as PRAW gives it, and what PRAW asks Reddit for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answered: list[Any]) -> None:
        import praw

        self.asked: list[str] = []

        def request(*, path: str, **_: Any) -> Any:
            self.asked.append(path)
            return answered

        reddit = praw.Reddit(client_id="x", client_secret="y", user_agent="z", check_for_updates=False)
        monkeypatch.setattr(reddit, "request", request)
        self.submission = reddit.submission("fj1a2b")


def test_praw_is_the_same_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(json.dumps(answer()).encode())
    (expected,) = Read(tmp_path, tmp_path / "x.json").drafts
    praw = Answering(monkeypatch, answer())
    got = from_praw(praw.submission)
    assert got.paragraphs == expected.paragraphs
    assert (got.document_id, got.url, got.metadata) == (expected.document_id, expected.url, expected.metadata)
    assert sections(from_praw(praw.submission, keep_names=True, max_comments=1)) == [None, "by:author_of_c2"]
    assert praw.asked == ["comments/fj1a2b/"], "once, although there are fields and comments that never came"
    assert len(praw.submission.comments) == 2, "the caller's forest keeps what stands for more"


def test_praw_texts_are_not_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = answer()
    fields = {"title": "A & B &amp; C", "author": "[deleted]", "selftext": "> q\n\n&gt; x"}
    answered[0]["data"]["children"][0]["data"] |= fields
    answered[1] = listing(("t1", comment("c9", author="[deleted]", body="`&amp;`")))
    got = from_praw(Answering(monkeypatch, answered).submission)
    assert got.title == "A & B &amp; C"
    assert [(one.section, one.text) for one in got.paragraphs] == [
        (None, "q\n\n> x"),
        ("by:[deleted]", "&amp;"),
    ]


def test_praw_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = [listing(("t3", submission(selftext="[removed]"))), listing()]
    assert from_praw(Answering(monkeypatch, answered).submission).paragraphs == ()


def test_a_long_window_is_read_and_never_needed(tmp_path: Path) -> None:
    packed = long_window(lines([submission()]))
    assert zstandard.get_frame_parameters(packed).window_size == 1 << 31
    (tmp_path / "RS_2020-03.zst").write_bytes(packed * 3)
    assert Read(tmp_path, tmp_path / "RS_2020-03.zst").ids == ["fj1a2b"]
