"""The parser of subcommands, and the check of files that they replace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ldl.command.options import CommandParser, add_options, check_replaceable, option_texts
from ldl.errors import LDLError
from ldl.options import option, options


@options
class Sheet:
    """A sheet of paper.

    Args:
        width: Width in cm.
        ruled: Whether it has lines.
        names: Names of its columns.
    """

    width: float = option(default=21.0, above=0)
    ruled: bool = option(default=False)
    names: Sequence[str] = option(default=())


@pytest.fixture
def parser() -> CommandParser:
    parser = CommandParser("print", "Print a sheet.")
    parser.add_argument("--out", type=Path)
    add_options(parser, [Sheet], ["width", "ruled", "names"], {"--lines": "ruled"})
    return parser


def test_options_of_a_class(parser: CommandParser) -> None:
    namespace = parser.parse_args(["--width", "3", "--lines", "--names", "a", "b", "--out", "~/x"])
    assert (namespace.width, namespace.ruled, namespace.names) == (3.0, True, ["a", "b"])
    assert namespace.out == Path(os.path.expanduser("~/x"))
    assert option_texts(Sheet)["width"] == "Width in cm."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wid", "3"], "unrecognized arguments: --wid 3; see ldl print --help"),
        (["--width", "x"], "argument --width: invalid float value: 'x'; see ldl print --help"),
        (["--ruled", "maybe"], "'maybe' is neither true nor false"),
    ],
)
def test_wrong_words(words: list[str], message: str, parser: CommandParser) -> None:
    with pytest.raises(LDLError) as error:
        parser.parse_args(words)
    assert message in str(error.value)


def test_only_files_of_the_command_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert not check_replaceable(path, "--out", '{"ods":')
    path.write_text('{\n  "ods": 1}')
    assert check_replaceable(path, "--out", '{"ods":')
    for content in (b"notes", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(LDLError, match="^--out .* exists, and this command did not write it"):
            check_replaceable(path, "--out", '{"ods":')
