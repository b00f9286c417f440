"""The configuration beside a checkpoint: its run's options, from a file that anybody may have made.

Without ``-c``, and below a ``-c`` that names only a part of a run, a checkpoint is used with the ``config.yaml`` of its
run. The user has not named this file, so it chooses values and the classes of a fixed list
(:func:`ldl.command.classes.class_paths`), and no place outside of its own folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ldl.backbones.base import Backbone
from ldl.command.arguments import Given, last_value
from ldl.command.configs import find_config, merge, read_config
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head
from ldl.options import names_with_role
from ldl.run.resume import LAST, last_of
from ldl.run.run_options import WRITER_OPTIONS


def checkpoint_path(given: list[Given]) -> str | None:
    """Return the path of the checkpoint that a command line names; None for none."""
    path, place = (os.path.expanduser(last_value(given, name) or "") or None for name in ("--ckpt_path", "--run_dir"))
    if path == LAST:
        return str(last_of(place)) if place else None
    return path


def found_beside(given: list[Given]) -> Path | None:
    """Return the configuration of the checkpoint's run; None if the command line names it, or a whole run, itself."""
    path = checkpoint_path(given)
    config = Path(path).parent.parent / "config.yaml" if path else None
    if config is None or not config.is_file():
        return None
    named = [option.value for option in given if option.is_config and option.value]
    if any(os.path.exists(file := find_config(each)) and os.path.samefile(file, config) for each in named):
        return None
    content: dict[str, Any] = {}
    for each in named:
        content = merge(content, read_config(each))
    model = content.get("model")
    is_whole = "data" in content and isinstance(model, dict) and "head" in model
    return None if is_whole else config


def read_beside(config: Path) -> dict[str, Any]:
    """Return the content of a configuration beside a checkpoint, without its run directory and places of a cache.

    Raises LDLError if it is no configuration, or a callback or logger in it would write outside of its folder.
    """
    content = read_config(config)
    content.pop("run_dir", None)
    _check_places(content.get("trainer"), config)
    return {name: _without_places(part) if name in ("data", "model") else part for name, part in content.items()}


def _without_places(part: Any) -> Any:
    if isinstance(part, dict):
        places = {name for base in (LDLDataModule, Head, Backbone) for name in names_with_role(base, "place")}
        return {name: _without_places(value) for name, value in part.items() if name not in places}
    return [_without_places(each) for each in part] if isinstance(part, list) else part


def _check_places(part: Any, config: Path) -> None:
    inside = list(part.items()) if isinstance(part, dict) else [("", each) for each in part or ()]
    for name, value in inside:
        if name == "dict_kwargs" and value:
            raise _outside(config, name, value)
        if isinstance(value, dict | list):
            _check_places(value, config)
        elif isinstance(value, str) and name in WRITER_OPTIONS:
            folder, path = config.parent.resolve(), Path(value)
            # A name is joined to a folder of the run, and a folder to the working directory.
            leads = path.resolve() if WRITER_OPTIONS[name].is_path else (folder / path).resolve()
            if "://" in value or not leads.is_relative_to(folder):
                raise _outside(config, name, value)


def _outside(config: Path, name: str, value: Any) -> LDLError:
    return LDLError(
        f"{config}: {name} {value!r} leads out of the folder of the run; this file was found beside the checkpoint, so "
        f"if its source is safe, name it with -c {config}, and --run_dir {config.parent} to continue the run there"
    )
