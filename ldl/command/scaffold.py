"""A head or a data module to start from: a working plugin, its test and its configuration."""

from __future__ import annotations

import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from ldl.command.classes import BASES, OURS, subclasses
from ldl.command.options import CommandParser
from ldl.errors import LDLError
from ldl.plugins import discover
from ldl.run.output import silence

PLACES = {"plugin": "plugins/{}.py", "test": "tests/test_{}.py", "config": "configs/{}.yaml"}


def new(args: list[str]) -> None:
    """Write a working head or data module, its test and its configuration."""
    parser = CommandParser("new", new.__doc__)
    parser.add_argument("kind", choices=["head", "data"])
    parser.add_argument("name", help="name of the class, such as MyHead")
    given = parser.parse_args(args)
    silence()
    discover()
    folder = Path.cwd()
    made = {part: path.relative_to(folder) for part, path in write_new(given.kind, given.name, folder).items()}
    print("\n".join([*map(str, made.values()), f"train it: ldl -c {made['config']}"]))


def write_new(kind: str, name: str, folder: Path) -> dict[str, Path]:
    """Write a plugin, its test and its configuration.

    Args:
        kind: ``head`` or ``data``.
        name: Name of the class. ``my_head`` becomes ``MyHead``, in ``my_head.py``.
        folder: Where ``plugins/``, ``tests/`` and ``configs/`` are or will be.

    Returns:
        The files.

    Raises:
        LDLError: The name is no class name or is taken, a file exists, or a folder cannot be made. No file is written.
    """
    class_name = name if name[:1].isupper() else "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name).lower()
    if not class_name.isidentifier() or keyword.iskeyword(class_name) or keyword.iskeyword(module):
        raise LDLError(
            f"{name!r} is not a class name; give letters, digits and _, and no keyword of Python, such as MyHead"
        )
    for taken in (cls for key in OURS for cls in subclasses(BASES[key])):
        if taken.__name__ == class_name:
            raise LDLError(f"{class_name} is taken by {taken.__module__}.{class_name}; give another name")
    made = {part: folder / place.format(module) for part, place in PLACES.items()}
    if there := next((path for path in made.values() if path.exists()), None):
        raise LDLError(f"{there} exists and was not changed; give another name, or move it away")
    templates = files("ldl.command") / "templates"
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
