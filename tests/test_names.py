"""``from ldl import NAME``: all names, without importing anything before they are asked for."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module

import pytest
from fakes.paths import ROOT

import ldl

MOST = 0.6
"""Seconds of processor time that ``import ldl`` may take, twice what is promised."""


@pytest.mark.parametrize("name", ldl.__all__)
def test_a_name_is_that_of_its_module(name: str) -> None:
    assert getattr(ldl, name) is getattr(import_module(ldl._HOMES[name]), name)
    assert name in dir(ldl)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "ldl" / "__init__.py").read_text())
    seen = [
        alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname
    ]
    assert sorted(alias.name for alias in seen) == sorted(ldl.__all__)
    assert all(alias.name == alias.asname for alias in seen)
    assert (ROOT / "ldl" / "py.typed").is_file()


def test_other_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="module 'ldl' has no attribute 'Haed'"):
        _ = ldl.Haed


def test_it_is_imported_at_once() -> None:
    code = (
        "import ldl, json, sys, time; print(json.dumps([time.process_time(), 'torch' in sys.modules, ldl.__version__]))"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, has_torch, version = json.loads(said.stdout)
    assert seconds < MOST and not has_torch and version == ldl.__version__
