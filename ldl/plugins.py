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
    """The checkout: the folder of ``train.py``, with ``plugins/`` and ``configs/``; None where there is none.

    It is that of the running script, else the one that the package is imported from.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    script, package = Path(main).resolve().parent if main else None, Path(__file__).resolve().parent.parent
    if script and (script / "train.py").is_file():
        return script
    # Beside an installed package anybody's train.py may lie.
    return package if (package / "train.py").is_file() and (package / "configs").is_dir() else None


def usual_folders() -> list[Path]:
    """Where plugins are looked for: ``plugins/`` beside ``train.py``, and in the working directory."""
    root = project_root()
    folders = [*([root / "plugins"] if root else []), Path.cwd() / "plugins"]
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def discover(folder: Path | None = None) -> list[str]:
    """Import all plugins, so that their classes can be named in configurations and checkpoints.

    A plugin that fails to import is reported as a warning and left out.

    Args:
        folder: A folder of ``.py`` files; None takes :func:`usual_folders`.

    Returns:
        The names of the modules that were imported by this call; each is imported once.
    """
    found = [name for place in ([folder] if folder else usual_folders()) for name in _import_folder(place)]
    return found + _import_entry_points()


def _import_folder(folder: Path) -> list[str]:
    found = []
    if folder not in plugin_folders:
        plugin_folders.append(folder)
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else []:
        name = f"{PACKAGE}.{path.stem}"
        if not path.stem.isidentifier():
            _report(str(path), f"{path.stem!r} is no name that Python can import; rename it {_importable(path)}")
        elif path.name.startswith("_"):
            continue
        elif name in sys.modules:
            if (other := sys.modules[name].__file__) and Path(other).resolve() != path.resolve():
                _report(str(path), f"{other} has its name; rename one of them")
        elif _import_file(name, path):
            found.append(name)
    return found


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
