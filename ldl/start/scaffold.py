"""Plugins to start from."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from ldl.errors import LDLError
from ldl.start.schema import BASES, Schema

PLACES = {"plugin": "plugins/{}.py", "test": "tests/test_{}.py", "config": "configs/{}.yaml"}


def write_new(kind: str, name: str, folder: Path, schema: Schema) -> dict[str, Path]:
    """Write a plugin, its test and its configuration.

    Args:
        kind: ``head`` or ``data``.
        name: Name of the class; ``my_head`` becomes ``MyHead``, and ``MyHead`` lies in ``my_head.py``.
        folder: Where ``plugins/``, ``tests/`` and ``configs/`` are or will be.
        schema: What there is already.

    Returns:
        The files.

    Raises:
        LDLError: the name is none, or taken, a file is there already, or a folder cannot be made; then no file is
            written.
    """
    class_name = name if name[:1].isupper() else "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
    if not class_name.isidentifier() or keyword.iskeyword(class_name) or keyword.iskeyword(module):
        raise LDLError(
            f"{name!r} is no name of a class; give letters, digits and _, and no keyword of Python, such as MyHead"
        )
    taken = [entry.path for base in BASES for entry in schema.of(base) if entry.name == class_name]
    if taken:
        raise LDLError(f"{class_name} is taken by {taken[0]}; give another name")
    made = {part: folder / place.format(module) for part, place in PLACES.items()}
    if there := next((path for path in made.values() if path.exists()), None):
        raise LDLError(f"{there} is there already and stays as it is; give another name, or move it away")
    templates = files("ldl.start") / "templates"
    try:
        for path in made.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        for part, path in made.items():
            text = (templates / f"{kind}_{part}.txt").read_text(encoding="utf-8")
            path.write_text(Template(text).substitute(Name=class_name, name=module), encoding="utf-8")
    except OSError as error:
        raise LDLError(
            f"{error.filename} cannot be written: {error.strerror}; move it away, or work in another folder"
        ) from error
    return made
