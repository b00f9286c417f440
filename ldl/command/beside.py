"""The configuration beside a checkpoint: its run's options, from a file that anybody may have made.

Without ``-c``, and below a ``-c`` that names only a part of a run, a checkpoint is used with the ``config.yaml`` of its
run. The user has not named this file, so it chooses values and the classes of a fixed list
(:func:`ldl.command.classes.class_paths`), and no place outside of its own folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.backbones.base import Backbone
from ldl.command.configs import read_config
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head
from ldl.options import names_with_role
from ldl.run.run_options import WRITER_OPTIONS


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
        places = {name for base in (LDLDataModule, Head, Backbone) for name in names_with_role(base, "place")}
        return {name: _without_places(value) for name, value in content.items() if name not in places}
    return [_without_places(value) for value in content] if isinstance(content, list) else content


def _check_places(content: Any, config: Path) -> None:
    entries = list(content.items()) if isinstance(content, dict) else [("", value) for value in content or ()]
    for name, value in entries:
        if name == "dict_kwargs" and value:
            raise _outside(config, name, value)
        if isinstance(value, dict | list):
            _check_places(value, config)
        elif isinstance(value, str) and name in WRITER_OPTIONS:
            folder, path = config.parent.resolve(), Path(value)
            # A name is joined to a folder of the run, and a folder to the working directory.
            target = path.resolve() if WRITER_OPTIONS[name].is_path else (folder / path).resolve()
            if "://" in value or not target.is_relative_to(folder):
                raise _outside(config, name, value)


def _outside(config: Path, name: str, value: Any) -> LDLError:
    return LDLError(
        f"{config}: {name} {value!r} leads out of the folder of the run; this file was found beside the checkpoint, so "
        f"if its source is safe, name it with -c {config}, and --run_dir {config.parent} to continue the run there"
    )
