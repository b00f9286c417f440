"""The file of a comparison: its mistakes are named, and options of the command line leave the grid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ldl.command.arguments import tokenize
from ldl.command.command_line import Command
from ldl.errors import LDLError
from ldl.search.comparison import ComparisonFile, Entry, read_comparison


def read(folder: Path, candidates: Any, *words: str, **others: Any) -> ComparisonFile:
    path = folder / "compare.yaml"
    path.write_text(yaml.safe_dump({"candidates": candidates, **others}, sort_keys=False))
    return read_comparison(Command(tokenize(["--stage", "compare", "-c", str(path), *words])))


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown key": ({"a": {"run": "tabular/aaknn", "grd": {}}}, {}, "a has no option 'grd'; did you mean 'grid'"),
    "no run": ({"a": {"grid": {}}}, {}, "candidate a is {'grid': {}}, but must name a run, such as run: tabular/ldlf"),
    "no list": ({"a": {"run": "b", "grid": {"model.head.trees": 3}}}, {}, "grid.model.head.trees is 3, but must be a"),
    "no candidates": ({}, {}, "candidates is {}, but must be a mapping"),
    "unknown choice": ({"a": "b"}, {"choose": {"folds": 3}}, "choose has no option 'folds'"),
    "no mapping": ({"a": "b"}, {"choose": [3]}, "choose is [3], but must be a mapping of options"),
    "out of range": ({"a": "b"}, {"choose": {"inner_folds": 0}}, "choose.inner_folds 0 must be int at least 1"),
    "another type": ({"a": "b"}, {"choose": {"val_fraction": "x"}}, "choose.val_fraction 'x' must be float in (0, 1)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named(case: str, tmp_path: Path) -> None:
    candidates, others, words = WRONG[case]
    with pytest.raises(LDLError, match=re.escape(words)):
        read(tmp_path, candidates, **others)


def test_options_of_the_command_line_leave_the_grid(tmp_path: Path) -> None:
    grid = {"model.head.neighbours": [3, 9], "data.init_args.scaling": ["none", "standard"]}
    file = read(tmp_path, {"a": {"run": "tabular/aaknn", "grid": grid}}, "--data.scaling=none", "--run_dir", "there")
    entry = file.entries["a"]
    assert file.run_dir == "there" and file.fixed == {"data.scaling"}
    assert entry.settings(file.fixed) == [{"model.head.neighbours": 3}, {"model.head.neighbours": 9}]
    words = file.command(entry, {"model.head.neighbours": 9})
    assert words[:2] == ["-c", "tabular/aaknn"] and words[-2:] == ["--stage", "fit"]
    assert Entry("b").settings(set()) == [{}]
