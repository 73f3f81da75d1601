from collections.abc import Callable

import pytest

from epicqa.measures.catalog import described, listed


def test_the_list(epicqa: Callable) -> None:
    done = epicqa("measures")
    assert (done.status, done.out, done.err) == (0, listed(), "")
    assert "\n  exact (published, NDNS-Exact) " in done.out


def test_some_measures(epicqa: Callable) -> None:
    done = epicqa("measures", "exact", "judged@20", "nDCG@10")
    assert (done.status, done.err) == (0, "")
    assert done.out == "\n".join(map(described, ["exact", "judged@20", "nDCG@10"]))
    assert done.out.count("  Formula: ") == 3


def test_every_name_of_the_list_is_known(epicqa: Callable) -> None:
    lines = epicqa("measures").out.splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert len(names) > 40
    done = epicqa("measures", *names)
    assert (done.status, done.err) == (0, "")
    for name in names:
        assert f"\n{name}" in f"\n{done.out}"


@pytest.mark.parametrize("name", ["nope", "", "NDNS-Exact", "exact@10", "\x1b[31mred"])
def test_unknown_measures(epicqa: Callable, name: str) -> None:
    # Nothing of those that are known either.
    assert "measure" in epicqa("measures", "exact", name).line()


def test_what_is_like_it_is_named(epicqa: Callable) -> None:
    assert epicqa("measures", "ndgc").line() == (
        "unknown measure 'ndgc', expected one of ir-measures such as nDCG@10"
    )


def test_help_and_from_a_shell(epicqa: Callable, fresh: Callable) -> None:
    done = epicqa("measures", "--help")
    assert done.status == 0
    assert "formula, source, range, tie rule" in done.out
    assert fresh("measures", "relaxed").out == described("relaxed")
