"""Lists of the Facial Age Estimation Benchmark (Paplham & Franc, CVPR 2024), with its boxes and its ten folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ldl.collective import process_rank
from ldl.data.faces.records import FaceRecords
from ldl.data.faces.releases.release import Release, below
from ldl.data.files import read_text
from ldl.errors import LDLError


def read(folder: Path, listed: Path | None = None) -> FaceRecords:
    """List a file of the benchmark, such as ``AgeDB.json``: ``img_path``, ``age``, ``folder``, and what else it has.

    Pictures lie below ``folder``, with or without the first folders of ``img_path``. Entries of unknown age, -1, are
    left out, and counted in a line. Raises LDLError for an entry without a path, an age or a folder.
    """
    if listed is None:
        raise LDLError("the benchmark is read from its lists; name one with --list, such as AgeDB.json")
    entries = [_checked(listed, number, entry) for number, entry in enumerate(_load(listed))]
    known = [entry for entry in entries if entry["age"] >= 0]
    if not known:
        raise LDLError(f"{listed} has no picture of known age")
    if len(known) < len(entries) and process_rank() == 0:
        print(f"left out: {len(entries) - len(known)} of {len(entries)} pictures of {listed} have no age")
    files = [entry["img_path"].replace("\\", "/") for entry in known]
    persons = [entry.get("name", entry.get("id_num")) for entry in known]
    spreads = [entry.get("std_age") for entry in known]
    boxed = all("aligned_bbox" in entry for entry in known)
    return FaceRecords(
        folder,
        _found(folder, files),
        np.array([float(entry["age"]) for entry in known]),
        None if None in persons else np.array(list(map(str, persons))),
        [np.array(entry["aligned_bbox"], float).reshape(4, 2) for entry in known] if boxed else None,
        None if None in spreads else np.array(spreads, float),
        {"folder": np.array([int(entry["folder"]) for entry in known])},
    )


def _load(listed: Path) -> list[Any]:
    text = read_text(listed, "list of the benchmark", "correct --list")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LDLError(f"{listed} cannot be read as JSON: {error}") from None
    return entries if isinstance(entries, list) else [entries]


def _checked(listed: Path, number: int, entry: Any) -> dict[str, Any]:
    try:
        box = np.array(entry.get("aligned_bbox", np.zeros(8)), float)
        fits = isinstance(entry["img_path"], str) and float(entry["age"]) >= -1 and int(entry["folder"]) >= 0
        if fits and box.size == 8:
            return entry
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    needed = "img_path, age and folder, and eight numbers where it has aligned_bbox"
    raise LDLError(f"{listed}: entry {number} needs {needed}, got {str(entry)[:100]}")


def _found(folder: Path, files: list[str]) -> list[str]:
    """The paths as they are spelled on disk, without as many first folders as it takes to find one of them."""
    there = {file.lower(): file for file in below(folder)}
    for cut in range(max(len(Path(file).parts) for file in files)):
        shorter = ["/".join(Path(file).parts[cut:]) for file in files]
        if any(short.lower() in there for short in shorter):
            return [there.get(short.lower(), short) for short in shorter]
    return files


BENCHMARK = Release(
    "Facial Age Estimation Benchmark",
    "https://github.com/paplhjak/Facial-Age-Estimation-Benchmark-Databases (lists; the pictures from their own places)",
    "MIT (lists)",
    "AgeDB.json and the pictures that it names",
    read,
)
