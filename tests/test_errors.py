"""Parts of error messages: near names, and the first of many names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ldl.errors import ANY_ERROR, LDLError, SharedError, check_one_of, did_you_mean, explaining, naming, some


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


@pytest.mark.parametrize(
    ("error", "fix", "line"),
    [
        (ValueError("two\n  lines"), "", "a.csv cannot be read: two lines"),
        (KeyError(), "take another", "a.csv cannot be read: KeyError; take another"),
        (OSError(28, "No space left on device", "a.csv"), "", "a.csv cannot be read: No space left on device"),
        (ValueError("x" * 999), "", "a.csv cannot be read: " + 200 * "x"),
    ],
)
def test_an_error_of_a_library_becomes_one_line(error: Exception, fix: str, line: str) -> None:
    with pytest.raises(LDLError) as raised, explaining("a.csv cannot be read", fix):
        raise error
    assert str(raised.value) == line and raised.value.__cause__ is error


@pytest.mark.parametrize("error", [LDLError("our own line"), MemoryError(), KeyboardInterrupt()])
def test_other_errors_pass_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, explaining("a.csv cannot be read"):
        raise error
    assert raised.value is error


def test_only_named_errors_are_explained() -> None:
    with pytest.raises(KeyError), explaining("a.csv cannot be read", errors=(ValueError,)):
        raise KeyError
    with pytest.raises(LDLError, match="^a.csv: MemoryError$"), explaining("a.csv", errors=ANY_ERROR):
        raise MemoryError


def test_a_name_comes_before_the_message() -> None:
    with pytest.raises(SharedError, match="^member 2: sigma must be positive$"), naming("member 2"):
        raise SharedError("sigma must be positive")


def test_a_name_outside_a_choice_is_refused_with_the_choices() -> None:
    check_one_of("decoder", "median", iter(["argmax", "median"]))
    with pytest.raises(LDLError, match="^decoder 'medain' must be one of argmax, median; did you mean 'median'.$"):
        check_one_of("decoder", "medain", iter(["argmax", "median"]))
