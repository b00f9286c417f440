"""The configuration beside a checkpoint: its run's options, from a file that anybody may have made.

Without ``-c``, and below a ``-c`` that names only a part of a run, a checkpoint is used with the ``config.yaml`` of its
run. The user has not named this file, so it chooses values and the classes of a fixed list
(:func:`ldl.command.classes.class_paths`), and no place outside of its own folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.command.configs import read_config
from ldl.errors import LDLError

FOLDERS = ("dirpath", "save_dir")
"""Options of callbacks and loggers that are folders, in which they write."""
NAMES = ("filename", "name", "version", "sub_dir", "prefix")
"""Options of callbacks and loggers that become parts of paths."""
DROPPED = ("cache_dir", "download")
"""Options that change no result and make files in a folder of their own; the usual places are taken instead."""


def read_beside(config: Path) -> dict[str, Any]:
    """Return the content of a configuration beside a checkpoint, without its run directory and places of a cache.

    Raises LDLError if it is no configuration, or a callback or logger in it would write outside of its folder.
    """
    content = read_config(config)
    content.pop("run_dir", None)
    _check_places(content.get("trainer"), config)
    return content | {name: _without_places(content[name]) for name in ("data", "model") if name in content}


def _without_places(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_places(value) for name, value in content.items() if name not in DROPPED}
    return [_without_places(value) for value in content] if isinstance(content, list) else content


def _check_places(content: Any, config: Path) -> None:
    entries = list(content.items()) if isinstance(content, dict) else [("", value) for value in content or ()]
    for name, value in entries:
        if name == "dict_kwargs" and value:
            raise _outside(config, name, value)
        if isinstance(value, dict | list):
            _check_places(value, config)
        elif isinstance(value, str) and name in (*FOLDERS, *NAMES):
            folder, path = config.parent.resolve(), Path(value)
            # A name is joined to a folder of the run, and a folder to the working directory.
            target = path.resolve() if name in FOLDERS else (folder / path).resolve()
            if "://" in value or not target.is_relative_to(folder):
                raise _outside(config, name, value)


def _outside(config: Path, name: str, value: Any) -> LDLError:
    return LDLError(
        f"{config}: {name} {value!r} leads out of the folder of the run; this file was found beside the checkpoint, so "
        f"if its source is safe, name it with -c {config}, and --run_dir {config.parent} to continue the run there"
    )
