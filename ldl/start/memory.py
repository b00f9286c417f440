"""The schema of the last start, kept in the cache folder: it is used only where nothing has changed since."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from ldl.plugins import usual_folders
from ldl.start.schema import Schema
from ldl.start.stamp import PACKAGE, stamp

STARTED = time.time_ns()
"""Roughly when the process has begun to import what a schema is made from."""


def recall() -> Schema | None:
    """The schema as it was stored; None where there is none, or anything that it was made from is another now."""
    try:
        content = json.loads(_file().read_text(encoding="utf-8"))
        if content["stamp"] != stamp(content["imported"]):
            return None
        return Schema.from_dict(content["schema"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(schema: Schema, imported: list[str]) -> None:
    """Keep a schema, where the cache folder can be written and nothing has changed since the process began.

    Args:
        schema: The schema.
        imported: Files that plugins have imported, besides those in their folders.
    """
    made_from = stamp(imported)
    if any(state and state[0] >= STARTED for state in made_from["files"].values()):
        return  # what was imported may be older
    content = {"stamp": made_from, "imported": imported, "schema": schema.to_dict()}
    with suppress(OSError):
        (file := _file()).parent.mkdir(parents=True, exist_ok=True)
        # Another process reads the old one or the new one, never a half.
        half = file.with_suffix(f".{os.getpid()}")
        half.write_text(json.dumps(content), encoding="utf-8")
        half.replace(file)


def _file() -> Path:
    """One file for each installation and each folder of plugins that there is."""
    places = [str(PACKAGE), *(str(folder) for folder in usual_folders() if folder.is_dir())]
    name = hashlib.sha256("\n".join(places).encode()).hexdigest()[:16]
    root = os.environ.get("LDL_CACHE") or os.path.expanduser("~/.cache/ldl")
    return Path(root) / "options" / f"{name}.json"
