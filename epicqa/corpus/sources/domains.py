"""Domains of the web: which host an address names, and whether it lies within given ones."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from epicqa import streams
from epicqa.errors import EpicqaError

_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_EXPECTED = "expected one such as gov, who.int or gov.uk"


def host_of(url: str) -> str | None:
    """The host of an address, lower case, without port and final dot, IDNA as ASCII; None if it has none."""
    import idna

    try:
        host = urlsplit(url).hostname or ""
        if not host.isascii():
            host = idna.encode(host, uts46=True).decode()
    # What is no name at all stays as it is; its end may still be that of a domain.
    except idna.IDNAError:
        pass
    except ValueError:
        return None
    return host.rstrip(".") or None


def is_within(host: str | None, domains: Collection[str]) -> bool:
    """Whether a host (see `host_of`) is one of the domains, or ends in a dot and one of them."""
    while host:
        if host in domains:
            return True
        host = host.partition(".")[2]
    return False


def checked_domain(text: str) -> str:
    """A domain as `host_of` has hosts; of a whole address its host, without a ``.`` or ``*.`` before it.

    Raises:
        ValueError: it is none; the message is one line.
    """
    bare = text.strip().removeprefix("*").removeprefix(".")
    host = host_of(bare if "://" in bare else f"//{bare}")
    if host is None or not _DOMAIN.fullmatch(host):
        raise ValueError(f"{text.strip()!r} is no domain, {_EXPECTED}")
    return host


def read_domains(path: Path) -> tuple[str, ...]:
    """The domains of a file, one a line, without those that came before; ``#`` begins a comment.

    A line may hold a whole address, which stands for its host.

    Raises:
        EpicqaError: the file cannot be read or holds no domain, or a line is none.
    """
    found: dict[str, None] = {}
    text = streams.read_whole(path, "a domain a line").decode()
    for number, line in enumerate(text.split("\n"), start=1):
        if bare := line.partition("#")[0].strip():
            try:
                found[checked_domain(bare)] = None
            except ValueError as error:
                raise EpicqaError(f"{path}:{number}: {error}") from None
    if not found:
        raise EpicqaError(f"{path}: holds no domain, {_EXPECTED}")
    return tuple(found)
