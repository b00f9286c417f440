"""What a set of faces holds, by its names and tables alone, and what its protocols leak: no picture is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ldl.data.faces.protocols import Cut, FaceProtocol
from ldl.data.faces.records import FaceRecords
from ldl.errors import LDLError
from ldl.protocols import Fold

MORPH_NAMES = "d800fced373e4b2780edd871103a2f0d77b0a209ebdf9bf0c6b0963d318396df"
"""Digest of the names of MORPH's 55,134 pictures, as the published lists name them (Shin et al., CVPR 2022)."""


def dry_run(
    records: FaceRecords, protocols: Mapping[str, FaceProtocol], folds: int = 5, split_list: Path | None = None
) -> list[str]:
    """Lines about pictures, persons and values, and a line for every protocol with its folds, sizes and leaks."""
    there = np.array([path.is_file() for path in records.paths()])
    lines = [f"pictures   {len(records)} named, {int(there.sum())} of them there{_first_missing(records, there)}"]
    if records.persons is None:
        lines.append("persons    unknown: no protocol can keep them apart, and no leak can be counted")
    else:
        counts = np.unique(records.persons, return_counts=True)[1]
        lines.append(f"persons    {len(counts)}, of {counts.min()} to {counts.max()} pictures")
    if records.values.ndim == 1:
        ages = records.values
        lines.append(f"values     {ages.min():g} to {ages.max():g}, mean {ages.mean():.1f}")
    lines += [f"{name:10} {_counted(column)}" for name, column in records.facts.items()]
    lines.append(f"names      {names_digest(records.files)}")
    lines += [
        "",
        f"{'protocol':24}{'folds':>6}{'train':>16}{'validation':>16}{'test':>16}   tested persons in training",
    ]
    return lines + [_line(name, protocol, records, folds, split_list) for name, protocol in protocols.items()]


def names_digest(files: list[str]) -> str:
    """SHA-256 of the names without folders and endings, in small letters, sorted, one a line: 64 hexadecimal digits."""
    names = sorted(Path(file).stem.lower() for file in files)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def _first_missing(records: FaceRecords, there: np.ndarray) -> str:
    return "" if there.all() else f"; the first that is not: {records.files[int(np.argmin(there))]}"


def _counted(column: np.ndarray) -> str:
    names, counts = np.unique(column, return_counts=True)
    shown = ", ".join(f"{name} {count}" for name, count in zip(names[:12], counts))
    return shown + (f", and {len(names) - 12} others" if len(names) > 12 else "")


def _line(name: str, protocol: FaceProtocol, records: FaceRecords, folds: int, split_list: Path | None) -> str:
    followed = split_list if protocol.listed else None
    try:
        count = protocol.count(Cut(records, folds, 0, 0, followed))
        cuts = [protocol.rows(Cut(records, folds, fold, 0, followed)) for fold in range(count)]
    except LDLError as error:
        return f"{name:24}{'-':>6}   {error}"
    parts = [(cut.train, cut.val, cut.test) if isinstance(cut, Fold) else (cut[0], cut[1][:0], cut[1]) for cut in cuts]
    sizes = [_between([len(part[place]) for part in parts]) for place in range(3)]
    leak = "unknown" if records.persons is None else f"{np.mean([_leak(records.persons, *part) for part in parts]):.1%}"
    return f"{name:24}{count:>6}{sizes[0]:>16}{sizes[1]:>16}{sizes[2]:>16}   {leak}"


def _between(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}-{high}"


def _leak(persons: np.ndarray, train: np.ndarray, val: np.ndarray, test: np.ndarray) -> float:
    """Share of tested pictures whose person is in training or validation."""
    return float(np.isin(persons[test], persons[np.concatenate([train, val])]).mean()) if len(test) else 0.0
