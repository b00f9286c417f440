"""From what a schema was made: the same stamp means the same schema."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ldl.plugins import GROUP, usual_folders

PACKAGE = Path(__file__).resolve().parents[1]


def stamp(imported: Iterable[str] = ()) -> dict[str, Any]:
    """What the schema depends on, as plain data.

    All files of ldl and of the plugin folders, with their times and sizes; the folders of installed packages, which
    change with every package that comes, goes or becomes another version; the entry points.

    Args:
        imported: Files besides that plugins have imported.
    """
    folders = [folder for folder in usual_folders() if folder.is_dir()]
    sources = [*_sources(str(PACKAGE)), *(str(path) for folder in folders for path in folder.glob("*.py"))]
    installed = [place for place in sys.path if Path(place).name in ("site-packages", "dist-packages")]
    plugins = [[entry.name, entry.value, entry.dist.version if entry.dist else ""] for entry in _plugins()]
    return {
        "python": [sys.version, sys.prefix],
        "plugins": plugins,
        "files": {path: _state(path) for path in [*sources, *installed, *sorted(imported)]},
    }


def _plugins() -> list[Any]:
    return sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def _sources(folder: str) -> Iterable[str]:
    """All modules below a folder."""
    for entry in os.scandir(folder):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry.path)
        elif entry.name.endswith(".py"):
            yield entry.path


def _state(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size]
