"""Learning a scaling from rows in a file, part by part; the same numbers as from rows in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ldl.data.row_file import RowFile
from ldl.data.tables.scaling import CONSTANT, FeatureScaler, roots

COLUMNS = 2**29
"""Bytes of the columns that are sorted at a time."""


def learn(scaler: FeatureScaler, features: RowFile, rows: np.ndarray) -> None:
    """What ``scaler.fit(features[rows])`` learns, in blocks of rows, or of columns for quantiles.

    Sums are added up in the order of the rows, as numpy adds up the rows of an array: the results are equal, but for
    the one scale of ``hellinger``, whose last bits may differ.

    Args:
        scaler: What learns.
        features: (N, F).
        rows: (n,) rising numbers of the training rows.
    """
    if scaler.kind.startswith("quantile_"):
        _learn_quantiles(scaler, features, rows)
    elif scaler.kind != "none":
        _learn_moments(scaler, features, rows)


def _learn_moments(scaler: FeatureScaler, features: RowFile, rows: np.ndarray) -> None:
    hellinger = scaler.kind == "hellinger"

    def parts() -> Iterator[np.ndarray]:
        for _, block in features.blocks(rows):
            block = block.astype(np.float64)
            yield roots(block) if hellinger else block

    total, count, largest, squares = (np.zeros(features.shape[1]) for _ in range(4))
    for part in parts():
        known = ~np.isnan(part)
        part = np.where(known, part, 0.0)
        total, count = _add(total, part), count + known.sum(0)
        largest = np.maximum(largest, np.abs(part).max(0))
    # What no row knows is scaled as if it were 0 throughout.
    count = np.where(count > 0, count, len(rows))
    mean = total / count
    for part in parts():
        squares = _add(squares, np.nan_to_num(np.square(part - mean), copy=False))
    if hellinger:
        scale = float(np.sqrt(squares.sum() / count.sum()))
        scaler.learned = {"mean": mean, "scale": np.full_like(mean, scale if scale > 0 else 1.0)}
    else:
        deviation = np.sqrt(squares / count)
        scaler.learned = {"mean": mean, "scale": np.where(deviation <= CONSTANT * largest, 1.0, deviation)}


def _learn_quantiles(scaler: FeatureScaler, features: RowFile, rows: np.ndarray) -> None:
    width, step = features.shape[1], max(1, COLUMNS // (8 * len(rows)))
    quantiles = []
    for first in range(0, width, step):
        columns = np.empty((len(rows), min(step, width - first)))
        for start, block in features.blocks(rows):
            columns[start : start + len(block)] = block[:, first : first + step]
        scaler.fit(columns)
        quantiles.append(scaler.learned["quantiles"])
    scaler.learned["quantiles"] = np.concatenate(quantiles, 1)


def _add(total: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.reduce(np.concatenate([total[None], rows])))
