"""Configurations that are shipped, by name."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ldl.errors import LDLError, did_you_mean
from ldl.plugins import project_root

ONE_WITH_THE_DEFAULT = "digits_ldlf"
"""A name of ``configs/default.yaml``."""


def locate_config(given: str) -> str:
    """The file of a configuration that is given as a path, by its name, or as YAML, which is left as it is.

    The name of a shipped file is its path below ``configs/runs``, or else below ``configs``, with ``/`` or ``_``
    between its parts: ``sjaffe_ldlf``, ``configs/runs/sjaffe_ldlf.yaml`` and ``configs/runs/sjaffe/ldlf.yaml`` are
    one. Relative paths are looked for in the working directory, then beside ``train.py``, if there is one.

    Raises:
        LDLError: there is no such file.
    """
    root = project_root()
    if os.path.exists(given) or not re.fullmatch(r"[\w./-]+", given):
        return given
    if root and os.path.isfile(root / given):
        return str(root / given)
    known = shipped(folder := configs_folder())
    parts = Path(re.sub(r"\.ya?ml$", "", given)).parts
    below = parts[len(parts) - parts[::-1].index("configs") :] if "configs" in parts else parts
    if _name(below) in known:
        return str(known[_name(below)])
    near = did_you_mean(_name(below), known) or f"; {folder} holds those that are shipped"
    raise LDLError(f"configuration {given} does not exist{near}")


def configs_folder() -> Path:
    """``configs/`` of the checkout, else what an installed package has of it."""
    root = project_root()
    return root / "configs" if root else Path(__file__).resolve().parents[1] / "configs"


def shipped(folder: Path) -> dict[str, Path]:
    """The files below ``configs`` by name."""
    files = {_name(path.relative_to(folder).with_suffix("").parts): path for path in sorted(folder.rglob("*.yaml"))}
    return files | {ONE_WITH_THE_DEFAULT: files.get(ONE_WITH_THE_DEFAULT, folder / "default.yaml")}


def _name(parts: tuple[str, ...]) -> str:
    return "_".join(parts[1:] if parts[:1] == ("runs",) else parts)
