"""Times as the command line takes them."""

from __future__ import annotations

import click
import pytest

from epicqa.cli.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("5m", 300), ("1.5h", 5400), ("0.5s", 0.5), ("007m", 420), ("90m", 5400)],
)
def test_a_time_is_seconds(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


_WRONG = (
    "60",
    "5",
    "m",
    "",
    " ",
    "0s",
    "0.0h",
    "-5s",
    "+5s",
    "5 m",
    " 5m",
    "5m\n",
    "5M",
    "5min",
    "1h30m",
    "1d",
)


@pytest.mark.parametrize("text", [*_WRONG, "1d", "1e3s", "nan", "nans", "infs", ".5s", "5.s", "1,5h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"expected a time such as 90s, 60m or 1\.5h") as error:
        Duration().convert(text, None, None)
    assert "\n" not in error.value.message
