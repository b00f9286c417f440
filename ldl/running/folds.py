"""The folds of a cross-validation on disk: one that is done is not trained again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from ldl.checkpoint import read_checkpoint, replacing
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.running.results import write_results
from ldl.running.training import Select
from ldl.task import Task

Rows = dict[str, np.ndarray]
Key = dict[str, str]

ROWS = "rows.npz"
KEY = "cell"
"""Of a fold's ``results.json``: what the fold depends on."""


class FoldOutcome(NamedTuple):
    """What became of one fold.

    Attributes:
        result: Its ``results.json``.
        rows: Columns of its test rows, such as ``index`` (n,) and ``prediction`` (n, C); of maps none.
    """

    result: dict[str, Any]
    rows: Rows


def fold_folder(folder: Path, number: int) -> Path:
    """Where a fold lies in its cross-validation."""
    return folder / f"fold_{number}"


def write_fold(folder: Path, outcome: FoldOutcome, task: Task, data: LDLDataModule, key: Key | None) -> None:
    """Write what a fold came to into its folder, in rank 0 alone; ``results.json``, which says it is done, comes last.

    With a ``key`` its rows are kept too, to be read again by :func:`read_fold`.
    """
    if key is not None and process_rank() == 0:
        with replacing(folder / ROWS) as file:
            np.savez(file, **outcome.rows)  # type: ignore[arg-type]
    write_results(folder, outcome.result if key is None else {**outcome.result, KEY: key}, task, data)


def read_fold(folder: Path, key: Key) -> FoldOutcome | None:
    """What is written of a fold, to the last bit; None where it is not done.

    Raises:
        LDLError: it is a fold of something else than ``key``, or is damaged.
    """
    if (result := _result_of(folder, key)) is None:
        return None
    with _told(folder), np.load(folder / ROWS, allow_pickle=False) as arrays:
        rows = dict(arrays)
    del result[KEY]
    # Written as null.
    result["folds"] = [{**fold, "metrics": _numbers(fold["metrics"])} for fold in result["folds"]]
    return FoldOutcome(result, rows)


def done_folds(folder: Path, numbers: list[int], key: Key) -> list[int]:
    """Those of the folds that are done. Raises LDLError where one is of something else than ``key``."""
    return [number for number in numbers if _result_of(fold_folder(folder, number), key) is not None]


def _result_of(folder: Path, key: Key) -> dict[str, Any] | None:
    path = folder / "results.json"
    if not path.is_file():
        return None
    with _told(folder):
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        other = [name for name in key if result.get(KEY, {}).get(name) != key[name]]
    if other:
        raise LDLError(
            f"{folder} has a fold of other {' and '.join(other)}; give another --run_dir, or go on as it was begun"
        )
    return result


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, AttributeError, EOFError, BadZipFile) as error:
        raise LDLError(f"{folder} cannot be read: {error}; remove it, and the fold is trained again") from error


def restore(task: Task, folder: Path, select: Select = "last") -> None:
    """Let a task, built, know what training told it, from the selected checkpoint of a run or fold where it has one."""
    path = folder / "checkpoints" / f"{select}.ckpt"
    if path.is_file():
        checkpoint = read_checkpoint(path)
        task.load_state_dict(checkpoint["state_dict"])
        task.on_load_checkpoint(checkpoint)


def _numbers(metrics: dict[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in metrics.items()}
