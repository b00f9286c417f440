"""The rooms of the house: nothing imports upwards, nothing imports in a circle, no file is too long."""

from __future__ import annotations

import ast
import importlib.util
from graphlib import CycleError, TopologicalSorter
from statistics import median

import pytest
from places import ROOT

FLOORS = (
    ("ldl.errors", "ldl.collective", "ldl.progress"),
    ("ldl.options", "ldl.labels", "ldl.trust", "ldl.plugins", "ldl.schedule", "ldl.batch", "ldl.checks.watch"),
    ("ldl.protocols", "ldl.spec", "ldl.start"),
    ("ldl.checkpoint",),
    ("ldl.cells",),
    ("ldl.metrics",),
    ("ldl.methods",),
    ("ldl.head",),
    ("ldl.checks",),
    ("ldl.edges.benchmark", "ldl.edges.structured", "ldl.edges.tracing"),
    ("ldl.charts",),
    ("ldl.data",),
    ("ldl.backbones", "ldl.heads"),
    ("ldl.testing",),
    ("ldl.callbacks",),
    ("ldl.task",),
    ("ldl.inference",),
    ("ldl.export",),
    ("ldl.reports",),
    ("ldl.comparison", "ldl.demo", "ldl.tuning"),
    ("ldl.runs",),
    ("ldl.running", "ldl.estimator"),
    ("ldl.cli", "ldl.edges"),
    ("ldl.__main__", "ldl"),
)
"""From the bottom up: a room imports from its own floor and from those below. Of two names the longer one counts."""

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "ldl").rglob("*.py"))
}


def floor(module: str) -> int:
    named = [(len(room), number) for number, rooms in enumerate(FLOORS) for room in rooms if within(module, room)]
    return max(named)[1]


def within(module: str, room: str) -> bool:
    return module == room or (room != "ldl" and module.startswith(f"{room}."))


def imported(module: str) -> set[str]:
    """The files of ldl that a file imports anywhere, also for type checkers or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{name.name}" for name in node.names} | {node.module}
    known = {name for name in found if name in FILES}
    # What comes from a submodule is not taken from its package's face.
    return {name for name in known if not any(other.startswith(f"{name}.") for other in known)} - {module}


@pytest.mark.parametrize("module", FILES)
def test_nothing_imports_upwards(module: str) -> None:
    upwards = [other for other in imported(module) if floor(other) > floor(module)]
    assert not upwards, f"{module} uses rooms above its own: {upwards}"


def test_no_circles() -> None:
    try:
        TopologicalSorter({module: imported(module) for module in FILES}).prepare()
    except CycleError as error:
        pytest.fail(f"circle: {' <- '.join(error.args[1])}")


def test_few_loose_modules_and_short_files() -> None:
    lengths = {module: len(path.read_text().splitlines()) for module, path in FILES.items()}
    assert len(list((ROOT / "ldl").glob("*.py"))) <= 16
    assert {module: lines for module, lines in lengths.items() if lines > 300} == {}
    assert median(lengths.values()) <= 100


def test_the_picture_shows_the_floors() -> None:
    place = ROOT / "docs" / "draw_floors.py"
    spec = importlib.util.spec_from_file_location("draw_floors", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PICTURE.read_text() == module.draw(FLOORS), "python docs/draw_floors.py draws it anew"
