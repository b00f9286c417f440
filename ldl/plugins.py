"""Discovery of heads, backbones and data modules outside the package."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

GROUP = "ldl.plugins"
"""Group of entry points by which a package names the modules with its heads."""

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
    found = [name for place in ([folder] if folder else usual_folders()) for name in _import_folder(place)]
    return found + _import_entry_points()


def _import_folder(folder: Path) -> list[str]:
    found = []
    if folder not in plugin_folders:
        plugin_folders.append(folder)
    for path in sorted(filter(Path.is_file, folder.glob("*.py"))):
        name = f"{PACKAGE}.{path.stem}"
        if path.name.startswith("_"):
            continue
        if not path.stem.isidentifier():
            _report(str(path), f"{path.stem!r} is no name that Python can import; rename it")
        elif name not in sys.modules:
            found += [name] if _import_file(name, path) else []
        elif (other := sys.modules[name].__file__) and Path(other).resolve() != path.resolve():
            _report(str(path), f"{other} has its name; rename one of them")
    return found


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


@cache
def _import_entry_points() -> list[str]:
    found = []
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            entry.load()
            found.append(entry.value)
        except (Exception, SystemExit) as error:
            _report(f"{entry.name} ({entry.value})", f"{type(error).__name__}: {error}")
    return found


@cache  # one report per plugin
def _report(what: str, reason: str) -> None:
    left_out[what] = " ".join(reason.split())
    warnings.warn(f"plugin {what} left out: {left_out[what]}", stacklevel=3)
