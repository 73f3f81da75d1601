"""A Reddit thread made a draft: who replies to whom, in top order, under names that are nobody's."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from epicqa.corpus.drafts import Draft, Paragraph
from epicqa.corpus.sources.reddit_text import plain, unescape

SUBMISSION_FIELDS = (
    "author",
    "created_utc",
    "id",
    "link_flair_text",
    "num_comments",
    "permalink",
    "score",
    "selftext",
    "subreddit",
    "title",
)
COMMENT_FIELDS = (
    "author",
    "body",
    "created_utc",
    "distinguished",
    "id",
    "link_id",
    "parent_id",
    "score",
    "stickied",
)

MAX_ANCESTORS = 20
"""Authors above a comment that its section names, the nearest of them."""

_DELETED = "[deleted]"
_MISSING = "[missing]"
_GONE = re.compile(r"\\?\[\s*(?:removed|deleted)\b[^\[\]]*\]", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]{1,16}(?:\.[0-9]*)?")
_ID = re.compile("[0-9a-z]{1,13}")
_PERMALINK = re.compile(r"/[!-~]+")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

_ADDRESS_OR_MENTION = re.compile(r"(https?://[^\s()<>\[\]]+)|(?<![A-Za-z0-9/])(/?u/)([\w-]+)", re.IGNORECASE)
_PROFILE = re.compile(r"(https?://(?:[\w-]+\.)*reddit\.com/(?:u|user)/)([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Submission:
    """What a draft needs of a submission; ``title`` and ``text`` are "" where there is none, or no longer."""

    id: str
    title: str
    text: str
    author: str
    url: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comment:
    """What a draft needs of a comment.

    Attributes:
        id: base 36, without ``t1_``.
        parent: the id of the comment that it replies to; None where it replies to the submission.
        text: its markdown.
        dropped: it was removed, has no score above 0, or is a notice that a moderator pinned.
    """

    id: str
    parent: str | None
    author: str
    text: str
    score: int
    created: int
    dropped: bool


def base36(value: object) -> str | None:
    """An id in base 36: of its text with or without ``t1_`` or ``t3_``, or of its number; else None."""
    if isinstance(value, str):
        name = value.strip().lower()
        name = name[3:] if name[:3] in ("t1_", "t3_") else name
        return name if _ID.fullmatch(name) else None
    number = None if value is None else whole_number(value)
    if number is None or number < 0:
        return None
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def whole_number(value: object) -> int | None:
    """A number of at most 16 digits without what follows its point, of its text, too: dumps have both."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _NUMBER.fullmatch(str(value).strip())
    return int(found[0].partition(".")[0]) if found else None


def submission_of(fields: Mapping[str, Any], *, escaped: bool) -> Submission | None:
    """The submission in Reddit's own fields, whatever they hold; None where the id is none.

    ``escaped`` says whether ``&``, ``<`` and ``>`` in it are, as in dumps and in the API's default form.
    """
    if (identity := base36(fields.get("id"))) is None:
        return None
    subreddit = _text(fields.get("subreddit"), False)
    permalink = _text(fields.get("permalink"), False).removeprefix("https://www.reddit.com")
    created = whole_number(fields.get("created_utc"))
    metadata = {
        "subreddit": subreddit or None,
        "flair": _text(fields.get("link_flair_text"), escaped) or None,
        "score": whole_number(fields.get("score")),
        "created": None if created is None else _date(created),
        "num_comments": whole_number(fields.get("num_comments")),
    }
    return Submission(
        id=identity,
        title=_present(_text(fields.get("title"), escaped)),
        text=_present(_text(fields.get("selftext"), escaped)),
        author=_author(fields.get("author")),
        url=f"https://www.reddit.com{permalink}" if _PERMALINK.fullmatch(permalink) else _short_url(identity),
        metadata={key: value for key, value in metadata.items() if value is not None},
    )


def comment_of(fields: Mapping[str, Any], link: str, *, escaped: bool) -> Comment | None:
    """The comment in Reddit's own fields, whatever they hold; None where the id is none.

    Some dumps have a number, or nothing, for the parent's id: the number is the comment's that it replies to.
    A score that is not there is 1, what a comment begins with.
    """
    if (identity := base36(fields.get("id"))) is None:
        return None
    given = fields.get("parent_id")
    parent = None if isinstance(given, str) and given.startswith("t3_") else base36(given)
    score = whole_number(fields.get("score"))
    score = 1 if score is None else score
    text = _text(fields.get("body"), escaped)
    pinned = fields.get("stickied") in (True, "true") and fields.get("distinguished") == "moderator"
    return Comment(
        id=identity,
        parent=None if parent == link else parent,
        author=_author(fields.get("author")),
        text=text,
        score=score,
        created=whole_number(fields.get("created_utc")) or 0,
        dropped=pinned or score <= 0 or bool(_GONE.fullmatch(text)),
    )


def draft_of(
    submission: Submission, comments: Iterable[Comment], *, max_comments: int, keep_names: bool
) -> Draft:
    """A thread: the submission's own text, then a paragraph a comment.

    The comments are those that Reddit shows when asked for ``max_comments`` (0: all) in top order: again and
    again the one of the highest score, then the oldest, whose parent is shown. They stand under their
    parents, a comment before its replies. What is dropped goes with all replies to it; a comment whose parent
    is nowhere stands at the top, as a reply to ``[missing]``; comments that reply to each other in a ring go.

    A section is ``by:NAME re:NAME re:NAME...``: the author, then the authors of the comments above, nearest
    first. Unless ``keep_names``, names are pseudonyms (see `pseudonym`), also in ``u/NAME`` and addresses of
    profiles. A name that a text has without ``u/`` stays.
    """
    shown = list(_in_order(comments, max_comments))
    if not keep_names:
        submission = _off_profile(submission)

    def named(author: str) -> str:
        return author if keep_names else pseudonym(author)

    def reduced(text: str) -> str:
        return text if keep_names else _without_names(text)

    paragraphs = [Paragraph(reduced(plain(submission.text)))]
    for comment, above in shown:
        section = " re:".join(map(named, (comment.author, *above)))
        paragraphs.append(Paragraph(reduced(plain(comment.text)), f"by:{section}"))
    return Draft(
        paragraphs=tuple(paragraph for paragraph in paragraphs if paragraph.text),
        title=reduced(submission.title) or None,
        url=submission.url,
        document_id=submission.id,
        metadata=submission.metadata,
    )


def pseudonym(name: str) -> str:
    """What stands for a user's name, in any case of letters: ``user-`` and ten hex digits of its hash.

    One user has one pseudonym in all threads, dumps and runs. It keeps names out of sight; whoever has a list
    of names can find whose it is, as can whoever follows the thread's address.
    """
    if name in (_DELETED, _MISSING):
        return name
    digest = blake2b(name.lower().encode("utf-8", "replace"), digest_size=5, person=b"epicqa reddit")
    return f"user-{digest.hexdigest()}"


def _in_order(comments: Iterable[Comment], most: int) -> Iterator[tuple[Comment, tuple[str, ...]]]:
    """The comments that are shown, each with the authors above it, the nearest first."""
    known: dict[str, Comment] = {}
    for comment in comments:
        known.setdefault(comment.id, comment)
    replies: dict[str | None, list[Comment]] = defaultdict(list)
    for comment in known.values():
        if not comment.dropped:
            replies[comment.parent if comment.parent in known else None].append(comment)
    candidates = [(_rank(comment), comment) for comment in replies[None]]
    heapq.heapify(candidates)
    chosen: set[str] = set()
    while candidates and not 0 < most <= len(chosen):
        _, comment = heapq.heappop(candidates)
        chosen.add(comment.id)
        for reply in replies[comment.id]:
            heapq.heappush(candidates, (_rank(reply), reply))

    # No recursion: a chain of replies may be of any length.
    stack: list[tuple[Comment, tuple[str, ...]]] = []

    def lay(those: list[Comment], above: tuple[str, ...]) -> None:
        for comment in sorted(those, key=_rank, reverse=True):
            if comment.id in chosen:
                is_orphan = comment.parent is not None and comment.parent not in known
                stack.append((comment, (_MISSING, *above) if is_orphan else above))

    lay(replies[None], ())
    while stack:
        comment, above = stack.pop()
        yield comment, above
        lay(replies[comment.id], (comment.author, *above)[:MAX_ANCESTORS])


def _rank(comment: Comment) -> tuple[int, int, str]:
    return -comment.score, comment.created, comment.id


def _off_profile(submission: Submission) -> Submission:
    """A submission whose address and subreddit do not name a user, on whose profile it may stand."""
    if not str(submission.metadata.get("subreddit", "")).lower().startswith("u_"):
        return submission
    return replace(
        submission, url=_short_url(submission.id), metadata={**submission.metadata, "subreddit": "u_user"}
    )


def _short_url(identity: str) -> str:
    return f"https://www.reddit.com/comments/{identity}/"


def _without_names(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        if address := found[1]:
            return _PROFILE.sub(lambda profile: profile[1] + pseudonym(profile[2]), address)
        return found[2] + pseudonym(found[3])

    return _ADDRESS_OR_MENTION.sub(replaced, text)


def _author(value: object) -> str:
    """A name without white space, which would part a section's names."""
    return "".join(value.split()) or _DELETED if isinstance(value, str) else _DELETED


def _text(value: object, escaped: bool) -> str:
    if not isinstance(value, str):
        return ""
    return (unescape(value) if escaped else value).strip()


def _present(text: str) -> str:
    """A text, or "" where a note stands for it that it is gone."""
    return "" if _GONE.fullmatch(text) else text


def _date(seconds: int) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return None
