"""Old paths of modules, classes and functions import what is at their current paths."""

from __future__ import annotations

import ast
import sys
import warnings
from importlib import import_module, util
from pathlib import Path

import pytest
from places import ROOT

from ldl.moved import MODULES, NAMES, current_option, current_path, old_names

PUBLIC = Path(__file__).with_name("public_names_of_0_2_0.txt").read_text().split()
"""Classes, functions and types in the API pages of version 0.2.0, and all names that its packages exported."""

GONE = {
    "ldl.data.faces.detectors": ("Decoded", "Layout", "OnnxDetector", "Outputs", "distinct"),
    "ldl.inference.export_formats": ("Format", "write_exported", "write_torchscript"),
    "ldl.experiments.crossval": ("Key", "Parse", "Rows", "of_fold", "read_fold", "write_fold"),
    "ldl.experiments.jobs": ("Row", "write_row"),
    "ldl.heads.pool": ("Columns",),
    "ldl.heads.wrappers": ("Columns",),
    "ldl.reports.votes": ("prior_columns",),
}
"""Names that went with what they did: ONNX detectors, TorchScript, files of folds and jobs before the store, types of
arguments, and priors beside folds."""

GONE_PATHS = {f"{module}.{name}" for module, names in GONE.items() for name in names}


@pytest.mark.parametrize("module", sorted({path.rpartition(".")[0] for path in PUBLIC}))
def test_public_names_of_0_2_0_import_from_their_old_paths(module: str) -> None:
    sys.modules.pop(module if module in MODULES else "", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        imported = import_module(module)
    assert any("moved to" in str(each.message) for each in caught) == (module in MODULES)
    for path in PUBLIC:
        home, _, name = path.rpartition(".")
        if home != module:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert hasattr(imported, name) == (path not in GONE_PATHS), path
        if path in NAMES:
            assert [str(each.message) for each in caught] == [f"{path} moved to {NAMES[path]}; change the import"]


def test_names_that_went_were_public() -> None:
    assert set(PUBLIC) >= GONE_PATHS


@pytest.mark.parametrize("path", MODULES.values())
def test_a_current_module_exists(path: str) -> None:
    assert util.find_spec(path) is not None


@pytest.mark.parametrize("path", NAMES)
def test_a_current_name_exists(path: str) -> None:
    module, _, name = current_path(path).rpartition(".")
    assert module not in MODULES and hasattr(import_module(module), name)


def test_a_warning_names_the_line_of_the_import() -> None:
    sys.modules.pop("ldl.engine.console", None)
    with pytest.warns(DeprecationWarning, match="ldl.engine.console moved to ldl.run.console") as caught:
        import ldl.engine.console  # noqa: F401
    assert caught[0].filename == __file__


def test_packages_import_nothing_from_an_old_path() -> None:
    old = {*MODULES, *NAMES}
    for path in sorted((ROOT / "ldl").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & old, path


@pytest.mark.parametrize(("old", "new"), NAMES.items())
def test_moved_classes_are_found(old: str, new: str) -> None:
    module, _, name = current_path(old).rpartition(".")
    moved = getattr(import_module(module), name)
    if getattr(moved, "__module__", "").startswith("ldl"):  # no constant, and no type of typing
        assert f"{moved.__module__}.{moved.__name__}" == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ldl.cli.command.main", "ldl.command.console.main"),
        ("ldl.heads.MILBoost", "ldl.bags.milboost.MILBoost"),
        ("torch.optim.AdamW", "torch.optim.AdamW"),
        ("Softmax", "Softmax"),
    ],
)
def test_a_path_is_replaced_by_its_name_or_its_module(old: str, new: str) -> None:
    assert current_path(old) == new


@pytest.mark.parametrize(
    ("word", "current"),
    [
        ("--model.crisp=2", "--data.crisp=2"),
        ("--model.crisp", "--data.crisp"),
        ("model.crisp", "model.crisp"),
        ("--model.head=LDLF", "--model.head=LDLF"),
    ],
)
def test_an_old_option_of_a_command_line_is_replaced(word: str, current: str) -> None:
    assert current_option(word) == current


def test_an_old_name_warns_and_another_is_none() -> None:
    get = old_names("ldl.heads")
    with pytest.warns(DeprecationWarning, match="ldl.heads.MILBoost moved to ldl.bags.milboost.MILBoost"):
        assert get("MILBoost").__module__ == "ldl.bags.milboost"
    with pytest.raises(AttributeError, match="module 'ldl.heads' has no attribute 'Nothing'"):
        get("Nothing")
