"""Public classes show how they are used: each has Examples, which print what its docstring states."""

from __future__ import annotations

import doctest
import gc
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.paths import ROOT

import ldl
from ldl.command.help import _traits


def exported() -> dict[str, Any]:
    """The classes and functions that ldl and its packages export, by name."""
    packages = [module.name for module in pkgutil.iter_modules(ldl.__path__, "ldl.") if module.ispkg]
    found = {}
    for package in map(importlib.import_module, ["ldl", *packages]):
        members = [getattr(package, name) for name in getattr(package, "__all__", ())]
        found |= {each.__name__: each for each in members if inspect.isclass(each) or inspect.isfunction(each)}
    return found


EXPORTED = exported()
PAGES = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
DOCUMENTED = set(re.findall(r"^::: (\S+)$", PAGES, re.MULTILINE))
"""The modules that the API pages describe."""


def reads_published_set(cls: type) -> bool:
    """Whether a data module needs files that a reader has to fetch; ``ldl data`` names their source."""
    return "from" in _traits(cls)


SHOWN = {name: each for name, each in EXPORTED.items() if ">>>" in (inspect.getdoc(each) or "")}
PUBLIC = [name for name, each in EXPORTED.items() if inspect.isclass(each) and each.__module__ in DOCUMENTED]


@pytest.fixture(scope="module", autouse=True)
def forget_classes() -> Iterator[None]:
    """Other tests list the subclasses of ``Head`` and ``LDLDataModule``, to which some examples add."""
    yield
    gc.collect()


def test_every_public_class_has_examples() -> None:
    assert len(PUBLIC) > 60
    assert [name for name in PUBLIC if name not in SHOWN and not reads_published_set(EXPORTED[name])] == []


@pytest.mark.parametrize("name", SHOWN)
def test_examples_print_what_they_state(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    (test,) = doctest.DocTestFinder(recurse=False).find(SHOWN[name], name, globs={})
    runner, report = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), list[str]()
    runner.run(test, out=report.append)
    assert runner.tries and not runner.failures, "".join(report)
    assert not any(example.options.get(doctest.SKIP) for example in test.examples)
