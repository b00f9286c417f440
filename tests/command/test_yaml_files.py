"""Configuration files: read once, and errors that name the file, the line and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.paths import ROOT

from ldl.command import configs
from ldl.command.configs import has_key, read_config
from ldl.errors import LDLError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# gr\xf6\xdfe\ntrainer: {}\n".encode("latin-1"), "is no text in UTF-8: byte 4 is 0xf6, in line 1"),
        (b"trainer:\n  max\0epochs: 1\n", "is no text: byte 14 is 0x00, in line 2"),
        (b"trainer:\x01 {}", "is no configuration: unacceptable character #x0001"),
        (b"trainer: {}\n\tmodel: {}\n", "is no configuration: line 2, column 1: while scanning"),
        (b"a: 1\n---\nb: 2\n", "is no configuration: line 2, column 1: expected a single document"),
        (b"", " is no mapping of options, such as trainer: {max_epochs: 3}"),
        (b"- a\n- b\n", " is no mapping of options"),
        (b"a:\n  max_epochs: 1\n  max_epochs: 2\n", ": line 3, column 3: 'max_epochs' is given again, after line 2;"),
        (b"a: *_votes\n", "line 1, column 4: found undefined alias '_votes'; put a text that begins with * or another"),
        (
            b"a: #subject\n",
            "line 1, column 3: #subject is a comment, so the value is empty; put it in quotes, or",
        ),
        (b"a:\n- b\n- #c\n", "line 3, column 2: #c is a comment, so the value is empty"),
        (b"a: !x {}\n", "could not determine a constructor for the tag '!x'"),
        (b"a: " + b"[" * 5_000 + b"]" * 5_000, "is nested too deep"),
    ],
)
def test_no_configuration(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(content)
    with pytest.raises(LDLError) as caught:
        read_config(file)
    assert str(caught.value).startswith(str(file)) and message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_comments_that_look_like_comments(tmp_path: Path) -> None:
    text = "a: # one\n  b: 1 #two\nc: #three\n- 4\nd: 5 # six\ne:\n#f: 7\ng: ## 8\n"
    (tmp_path / "a.yaml").write_text(text)
    assert read_config(tmp_path / "a.yaml") == {"a": {"b": 1}, "c": [4], "d": 5, "e": None, "g": None}


def test_aliases_marks_and_dates(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("\ufeffa: &a {b: [1, 2]}\nd: {<<: *a, e: 'größe'}\nf: 2020-01-01\n", encoding="utf-8")
    assert read_config(file) == {"a": {"b": [1, 2]}, "d": {"b": [1, 2], "e": "größe"}, "f": "2020-01-01"}


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(configs, "read_utf8", lambda path, *words: read.append(path) or Path(path).read_bytes())
    file = tmp_path / "a.yaml"
    file.write_text("a: {b: 1}\n")
    read_config(file)["a"]["b"] = 2
    assert has_key(str(file), "a") and read_config(file) == {"a": {"b": 1}}
    assert len(read) == 1
    file.write_text("a: {b: 22}\n")
    assert read_config(file) == {"a": {"b": 22}} and len(read) == 2


def test_classes_that_have_moved_are_found_in_text() -> None:
    assert read_config("model: {backbone: ldl.backbone.Identity}")["model"]["backbone"] == "ldl.backbones.base.Identity"


def test_all_shipped_files_are_configurations() -> None:
    for file in (ROOT / "configs").rglob("*.yaml"):
        read_config(file)
