"""Finding heads, backbones and data modules that live outside the package."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from types import ModuleType

GROUP = "ldl.plugins"
"""Entry points of this group are imported: a package adds its heads by naming their module there."""

PACKAGE = "ldl_plugins"
"""Files of a plugins folder are imported as ``ldl_plugins.<file>``."""

left_out: dict[str, str] = {}
"""Why each plugin that failed to import did, by its file or entry point."""

plugin_folders: list[Path] = []
"""The folders that were discovered, in order."""


def project_root() -> Path | None:
    """The folder of ``train.py``, whose ``plugins/`` and ``configs/`` are used; None where there is no such file.

    It is that of the running script, else the checkout that the package is imported from; never the
    working directory.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    candidates = ([Path(main).resolve().parent] if main else []) + [Path(__file__).resolve().parent.parent]
    return next((folder for folder in candidates if (folder / "train.py").is_file()), None)


def discover(folder: Path | None = None) -> list[str]:
    """Import all plugins, so that their classes can be named in configurations and checkpoints.

    A plugin that fails to import is reported as a warning and left out.

    Args:
        folder: A folder of ``.py`` files; None takes ``plugins/`` beside ``train.py``.

    Returns:
        The names of the modules that were imported by this call; each is imported once.
    """
    root = project_root()
    folder = folder or (root / "plugins" if root else None)
    found = []
    if folder and folder not in plugin_folders:
        plugin_folders.append(folder)
    for path in sorted(folder.glob("*.py")) if folder and folder.is_dir() else []:
        name = f"{PACKAGE}.{path.stem}"
        if not path.stem.isidentifier():
            _report(str(path), f"{path.stem!r} is no name that Python can import; rename it {_importable(path)}")
        elif not path.name.startswith("_") and name not in sys.modules and _import_file(name, path):
            found.append(name)
    return found + _import_entry_points()


def _importable(path: Path) -> str:
    name = re.sub(r"\W", "_", path.stem)
    return f"{name if name.isidentifier() else f'head_{name}'}.py"


def _import_file(name: str, path: Path) -> bool:
    if not path.is_file():
        # Opening a pipe would wait for ever.
        _report(str(path), "it is no file")
        return False
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


@cache  # each is reported once
def _report(what: str, reason: str) -> None:
    left_out[what] = " ".join(reason.split())
    warnings.warn(f"plugin {what} left out: {left_out[what]}", stacklevel=3)
