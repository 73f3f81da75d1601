"""Reddit threads out of dumps (pushshift's and their successors'), Reddit's own JSON, or PRAW's objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from epicqa.corpus.drafts import Draft
from epicqa.corpus.sources import reddit_spill
from epicqa.corpus.sources.raw import BROKEN, EMPTY, FILTERED, TOO_LARGE, LeftOut, Piece
from epicqa.corpus.sources.reddit_text import unescape
from epicqa.corpus.sources.reddit_thread import (
    COMMENT_FIELDS,
    SUBMISSION_FIELDS,
    Comment,
    comment_of,
    draft_of,
    submission_of,
)
from epicqa.errors import EpicqaError
from epicqa.files import text_of


@dataclass(frozen=True)
class Reddit:
    """Threads of subreddits, in the form that the track gave r/askscience; see `reddit_thread.draft_of`.

    Inputs are submissions and comments in any order, one file or many (see `reddit_spill.spilled`).

    Attributes:
        subreddits: their names, in any case; empty takes every one.
        flairs: parts of flairs, in any case, one of which a submission's must hold; empty takes every one.
        max_comments: of a submission, in top order; 0 takes all.
        keep_names: whether authors keep their names.
    """

    subreddits: tuple[str, ...] = ("askscience",)
    flairs: tuple[str, ...] = ("COVID-19",)
    max_comments: int = 30
    keep_names: bool = False

    @property
    def name(self) -> str:
        return "reddit"

    def pieces(self, inputs: Sequence[Path], scratch: Path, limit: int) -> Iterator[Piece | LeftOut]:
        """A piece a submission, by id: JSON, ``{"submission": ..., "comments": [...]}`` in Reddit's fields.

        The inputs are first read once into a database in ``scratch``; memory does not grow with them.
        ``limit`` holds for a line, a JSON file of many lines, and the comments of one submission.

        Raises:
            EpicqaError: an input is missing or of another kind, or no submission is in them.
        """
        parts = [part.casefold() for part in self.flairs]
        nothing = True
        with reddit_spill.spilled(inputs, scratch, limit, self.subreddits) as database:
            for one in reddit_spill.left_out(database):
                nothing = False
                yield one
            for identity, place, submission in reddit_spill.submissions(database):
                nothing = False
                flair = _flair(submission)
                if parts and not any(part in flair.casefold() for part in parts):
                    yield LeftOut(place, FILTERED, f"flair {flair!r}", identity)
                elif (comments := reddit_spill.comments(database, identity, limit)) is None:
                    reason = f"comments of more than {limit:,} bytes, see --max-file-size"
                    yield LeftOut(place, TOO_LARGE, reason, identity)
                else:
                    raw = b'{"submission":%b,"comments":[%b]}' % (submission, b",".join(comments))
                    yield Piece(place, raw)
        if nothing:
            wanted = " or ".join(f"r/{name}" for name in self.subreddits) or "any subreddit"
            named = ", ".join(map(text_of, inputs))
            raise EpicqaError(f"{named}: no submission of {wanted}, expected the dump of submissions, too")

    def drafts(self, piece: Piece, limit: int) -> Iterator[Draft | LeftOut]:
        """The thread of a piece."""
        try:
            thread = orjson.loads(piece.raw)
        except orjson.JSONDecodeError as error:
            yield LeftOut(piece.place, BROKEN, f"broken JSON: {error}")
            return
        given = thread.get("submission") if isinstance(thread, dict) else None
        submission = submission_of(given, escaped=True) if isinstance(given, dict) else None
        if submission is None:
            yield LeftOut(piece.place, BROKEN, "a submission without an id")
            return
        listed = thread.get("comments")
        comments = _comments(listed if isinstance(listed, list) else [], submission.id, escaped=True)
        draft = draft_of(submission, comments, max_comments=self.max_comments, keep_names=self.keep_names)
        if draft.paragraphs:
            yield draft
        else:
            yield LeftOut(piece.place, EMPTY, "neither a text nor a comment that stays", submission.id)


def from_praw(submission: Any, *, max_comments: int = 30, keep_names: bool = False) -> Draft:
    """The thread of a ``praw.models.Submission``; without a paragraph where nothing but the title stays.

    A submission that PRAW has not fetched with its comments is fetched by one request, a fetched one by none.
    Comments behind "load more" are taken as far as ``submission.comments.replace_more()`` has put them there.
    Neither flair nor subreddit is looked at: whoever has the object has chosen it.
    """
    # First: what a fetch brings are all fields at once.
    forest = list(submission.comments)
    fields = _fields(submission, SUBMISSION_FIELDS)
    found = submission_of(fields, escaped=False)
    if found is None:
        raise EpicqaError(f"submission {fields.get('id')!r}: the id is none, expected a number in base 36")
    listed = []
    while forest:
        comment = forest.pop()
        # What stands for comments that are not loaded has no body.
        if getattr(comment, "body", None) is not None:
            listed.append(_fields(comment, COMMENT_FIELDS))
            forest.extend(comment.replies)
    comments = _comments(listed, found.id, escaped=False)
    return draft_of(found, comments, max_comments=max_comments, keep_names=keep_names)


def _fields(thing: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Fields of an object of PRAW's as dumps have them: authors and subreddits are their names."""
    values = ((name, getattr(thing, name, None)) for name in names)
    return {
        name: value if isinstance(value, str | int | float | None) else str(value) for name, value in values
    }


def _comments(listed: Sequence[Any], link: str, *, escaped: bool) -> list[Comment]:
    found = (comment_of(one, link, escaped=escaped) for one in listed if isinstance(one, dict))
    return [comment for comment in found if comment is not None]


def _flair(submission: bytes) -> str:
    flair = orjson.loads(submission).get("link_flair_text")
    return unescape(flair) if isinstance(flair, str) else ""
