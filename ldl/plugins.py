"""Discovery of what domains and plugins add: modules of a folder, and entry points of packages, also of ldl itself."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import tomllib
import warnings
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from ldl.errors import LDLError

PLUGINS = "ldl.plugins"
"""Entry points by which a package names the modules with its classes."""
COMMANDS = "ldl.commands"
"""Entry points of subcommands of ``ldl``: functions of the command line after the subcommand's name, a list of strings.

The help shows the first line of their docstrings."""
STAGES = "ldl.stages"
"""Entry points of stages: a :class:`ldl.command.stages.StageEntry` each, in a light module."""
LOCATORS = "ldl.locators"
"""Entry points of classes that are a :class:`ldl.data.images.locators.Locator`."""
HUBS = "ldl.hubs"
"""Entry points of the modules that write, publish and find models."""

PACKAGE = "ldl_plugins"
"""Package under which files of a plugins folder are imported, as ``ldl_plugins.<file>``."""

left_out: dict[str, str] = {}
"""Reasons why plugins failed to import, by file or entry point."""

plugin_folders: list[Path] = []
"""The discovered folders, in order."""


def project_root() -> Path | None:
    """Return the checkout, which has ``train.py``, ``plugins/`` and ``configs/``; None outside a checkout.

    The folder of the running script comes before the folder that the package is imported from.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    script, package = Path(main).resolve().parent if main else None, Path(__file__).resolve().parent.parent
    if script and (script / "train.py").is_file():
        return script
    # Any train.py may lie beside an installed package.
    return package if (package / "train.py").is_file() and (package / "configs").is_dir() else None


def usual_folders() -> list[Path]:
    """Return the folders of plugins: ``plugins/`` beside ``train.py`` and in the working directory."""
    root = project_root()
    folders = [*([root / "plugins"] if root else []), Path.cwd() / "plugins"]
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def discover(folder: Path | None = None) -> list[str]:
    """Import all plugins, so that configurations and checkpoints can name their classes.

    A plugin that fails to import is left out with a warning. Each module is imported once.

    Args:
        folder: A folder of ``.py`` files; None takes :func:`usual_folders`.

    Returns:
        Names of the modules that this call has imported.
    """
    modules = [name for path in ([folder] if folder else usual_folders()) for name in _import_folder(path)]
    missing = [point.module for point in registered(PLUGINS).values() if point.module not in sys.modules]
    load_registered(PLUGINS)
    return modules + [name for name in missing if name in sys.modules]


def _import_folder(folder: Path) -> list[str]:
    names = []
    if folder not in plugin_folders:
        plugin_folders.append(folder)
    for path in sorted(filter(Path.is_file, folder.glob("*.py"))):
        name = f"{PACKAGE}.{path.stem}"
        if path.name.startswith("_"):
            continue
        if not path.stem.isidentifier():
            _report(str(path), f"{path.stem!r} is no name that Python can import; rename it")
        elif name not in sys.modules:
            names += [name] if _import_file(name, path) else []
        elif (other := sys.modules[name].__file__) and Path(other).resolve() != path.resolve():
            _report(str(path), f"{other} has its name; rename one of them")
    return names


def _import_file(name: str, path: Path) -> bool:
    package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    package.__path__ = []
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        _report(str(path), f"{type(error).__name__}: {error}")
        return False
    setattr(package, path.stem, module)
    return True


def registered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of the names; nothing is imported.

    Raises:
        LDLError: The installation of this checkout lacks entry points.
    """
    _check_installation()
    points = importlib.metadata.entry_points(group=group)
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


@cache
def load_registered(group: str) -> dict[str, Any]:
    """Import the entry points of a group and return the objects by name. One that fails is left out with a warning.

    Raises:
        LDLError: The installation of this checkout lacks entry points.
    """
    loaded = {}
    for name, point in registered(group).items():
        try:
            loaded[name] = point.load()
        except (Exception, SystemExit) as error:
            _report(f"{name} ({point.value})", f"{type(error).__name__}: {error}")
    return loaded


@cache
def _check_installation() -> None:
    """Raise LDLError if a checkout has entry points that its installation lacks, as after ``git pull``."""
    root = Path(__file__).resolve().parent.parent
    if not (root / "train.py").is_file() or not (root / "pyproject.toml").is_file():
        return
    groups = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    written = {(group, name, value) for group, points in groups.items() for name, value in points.items()}
    try:
        points = importlib.metadata.distribution("ldl").entry_points
    except importlib.metadata.PackageNotFoundError:
        points = importlib.metadata.EntryPoints()
    if lacking := sorted(written - {(point.group, point.name, point.value) for point in points}):
        raise LDLError(
            f"the installed ldl is older than the checkout {root}: it lacks the entry point {lacking[0][1]} of "
            f"{lacking[0][0]}; run pip install -e {root}"
        )


@cache  # one report per plugin
def _report(plugin: str, reason: str) -> None:
    left_out[plugin] = " ".join(reason.split())
    warnings.warn(f"plugin {plugin} left out: {left_out[plugin]}", stacklevel=3)
