"""Parts of error messages: near names, and the first of many names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ldl.errors import LDLError, SharedError, did_you_mean, some


@pytest.mark.parametrize(
    ("name", "hint"), [("trese", "; did you mean 'trees'?"), ("dept", "; did you mean 'depth'?"), ("lr", "")]
)
def test_the_nearest_name_is_proposed(name: str, hint: str) -> None:
    assert did_you_mean(name, iter(["depth", "trees"])) == hint


@pytest.mark.parametrize(
    ("names", "text"),
    [((), "none"), ("ab", "'a', 'b'"), ("abc", "'a', 'b', 'c'"), ("abcde", "'a', 'b', 'c' and 2 more")],
)
def test_further_names_are_counted(names: Sequence[str], text: str) -> None:
    assert some(names, 3) == text


def test_errors_are_value_errors() -> None:
    assert issubclass(SharedError, LDLError) and issubclass(LDLError, ValueError)
