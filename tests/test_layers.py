"""The layers of the packages: nothing imports upwards, nothing imports in a circle, no file is too long."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import pytest
from fakes.paths import ROOT, load_script

LAYERS = (
    ("ldl.moved", "ldl.errors", "ldl.collective", "ldl.progress"),
    ("ldl.options", "ldl.labels", "ldl.plugins", "ldl.schedule", "ldl.validation", "ldl.command._compat"),
    ("ldl.batch", "ldl.protocols", "ldl.spec", "ldl.tables"),
    ("ldl.annotations",),
    ("ldl.checkpoint",),
    ("ldl.jobs.executors", "ldl.jobs.workers", "ldl.jobs.store"),
    ("ldl.metrics",),
    ("ldl.methods",),
    ("ldl.head",),
    ("ldl.validation.contract", "ldl.validation.setup"),
    ("ldl.charts",),
    ("ldl.data", "ldl.raters"),
    ("ldl.backbones", "ldl.heads"),
    ("ldl.testing",),
    ("ldl.callbacks",),
    ("ldl.task",),
    ("ldl.inference", "ldl.reports.files", "ldl.reports.votes"),
    ("ldl.reports",),
    ("ldl.run.loggers", "ldl.run.output", "ldl.run.processes", "ldl.run.run_options"),
    ("ldl.command",),
    ("ldl.run", "ldl.estimator"),
    ("ldl.jobs",),
    ("ldl.edges", "ldl.faces", "ldl.bags", "ldl.search", "ldl.deploy"),
    ("ldl.__main__", "ldl"),
)
"""From the bottom up: a package imports from its own layer and from those below. Of two names the longer one counts."""

DOMAINS = ("ldl.edges", "ldl.faces", "ldl.bags", "ldl.search", "ldl.deploy")
"""Packages with everything of their own, which the rest of ldl, the core, never imports."""

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "ldl").rglob("*.py"))
}


def layer(module: str) -> int:
    named = [
        (len(package), number)
        for number, packages in enumerate(LAYERS)
        for package in packages
        if within(module, package)
    ]
    return max(named)[1]


def within(module: str, package: str) -> bool:
    return module == package or (package != "ldl" and module.startswith(f"{package}."))


def imported(module: str) -> set[str]:
    """The files of ldl that a file imports anywhere, also for type checkers or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names} | {node.module}
    known = {name for name in found if name in FILES}
    # An import of a submodule is not one of its package.
    return {name for name in known if not any(other.startswith(f"{name}.") for other in known)} - {module}


@pytest.mark.parametrize("module", FILES)
def test_nothing_imports_upwards(module: str) -> None:
    upwards = [other for other in imported(module) if layer(other) > layer(module)]
    assert not upwards, f"{module} uses packages above its own: {upwards}"


def domain(module: str) -> str | None:
    return next((name for name in DOMAINS if within(module, name)), None)


@pytest.mark.parametrize("module", [module for module in FILES if domain(module) is None])
def test_the_core_imports_no_domain(module: str) -> None:
    domains = {name for other in imported(module) if (name := domain(other))}
    assert not domains, f"{module} is of the core, and uses {domains}"


@pytest.mark.parametrize("name", DOMAINS)
def test_domains_stand_alone(name: str) -> None:
    others = {domain(other) for module in FILES if within(module, name) for other in imported(module)}
    assert others <= {None, name}


def test_no_circles() -> None:
    try:
        TopologicalSorter({module: imported(module) for module in FILES}).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' <- '.join(error.args[1])}")


def test_few_loose_modules_and_short_files() -> None:
    lengths = {module: len(path.read_text().splitlines()) for module, path in FILES.items()}
    assert len(list((ROOT / "ldl").glob("*.py"))) <= 16
    assert {module: lines for module, lines in lengths.items() if lines > 500} == {}


def test_the_picture_shows_the_layers() -> None:
    module = load_script(ROOT / "docs" / "draw_layers.py")
    assert module.PICTURE.read_text() == module.draw(LAYERS), "run python docs/draw_layers.py"
