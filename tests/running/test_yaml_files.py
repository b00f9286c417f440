"""Files that are no configuration: the line names the file, and what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from places import ROOT

from ldl.errors import LDLError
from ldl.running.configs import find_config
from ldl.running.yaml_files import check_config

LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi")
)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# gr\xf6\xdfe\ntrainer: {}\n".encode("latin-1"), "is no text in UTF-8: byte 4 is 0xf6, in line 1"),
        ("trainer: {}".encode("utf-16"), "is no text in UTF-8: byte 0 is 0xff, in line 1"),
        (b"trainer:\n  max\0epochs: 1\n", "is no text: byte 14 is 0x00, in line 2"),
        (b"trainer:\x01 {}", "is no YAML: unacceptable character #x0001"),
        (b"trainer: {}\n\tmodel: {}\n", "is no YAML: line 2, column 1: while scanning"),
        (b"model: [\n", "is no YAML: line 2, column 1"),
        (b"a: 1\n---\nb: 2\n", "is no YAML: line 2, column 1: expected a single document"),
        (b"", "is empty; a configuration is a mapping, such as trainer: {max_epochs: 3}"),
        (b"7\n", ": line 1 is no mapping of options"),
        (b"- a\n- b\n", ": line 1 is no mapping of options"),
        (b"trainer:\n  1: 2\n", ": line 2 has a key that is no text"),
        (b"trainer:\n  null: 2\n", ": line 2 has a key that is no text"),
        (b"trainer:\n  [a]: 2\n", ": line 2 has a key that is no text"),
        (
            b"trainer:\n  max_epochs: 1\n  max_epochs: 2\n",
            ": line 3 gives 'max_epochs' again, after line 2; remove one",
        ),
        (b"a: &a\n  b: *a\n", ": line 1 contains itself"),
        (LAUGHS.encode(), "has aliases that make more than 100,000 values of it"),
        (b"a: " + b"[" * 200_000 + b"]" * 200_000, "is nested too deep"),
        (b"# " + b"x" * 10**6, "has 1,000,002 letters, more than 1,000,000"),
    ],
)
def test_no_configuration(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(LDLError) as caught:
        find_config(str(file))
    assert str(caught.value).startswith(str(file)) and said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(LDLError, match=r"no configuration at .*a\.yaml, which is a pipe"):
        find_config(str(tmp_path / "a.yaml"))


def test_aliases_and_marks_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("\ufeffa: &a {b: [1, 2]}\nc: *a\nd: {<<: *a, e: 'größe'}\n", encoding="utf-8")
    assert find_config(str(file)) == str(file)


def test_all_that_are_shipped_are_configurations() -> None:
    for file in (ROOT / "configs").rglob("*.yaml"):
        check_config(file)
