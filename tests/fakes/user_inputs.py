"""What a predictor makes of a run's own test rows, as a user has them: not scaled, not cropped, in files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldl.bags import Bags
from ldl.command.config import Config
from ldl.data import LDLDataModule
from ldl.data.images.module import Images
from ldl.data.tables.module import ScaledRows
from ldl.edges import BSDS500
from ldl.edges.benchmark.ground_truth import read_edge_map
from ldl.inference import Predictions, Predictor

MOST = 10
"""Test rows that are compared."""


def kept_data(monkeypatch: pytest.MonkeyPatch) -> list[LDLDataModule]:
    """Is filled with the data of the next run."""
    kept: list[LDLDataModule] = []
    instantiate = Config.instantiate

    def keep(config: Config, name: str) -> Any:
        built = instantiate(config, name)
        if name == "data":
            kept.append(built)
        return built

    monkeypatch.setattr(Config, "instantiate", keep)
    return kept


def check_predictor(run: Path, data: LDLDataModule) -> None:
    """The checkpoint alone predicts what the run has written of its test instances, whatever they come from."""
    predictor = Predictor.from_checkpoint(run / "checkpoints" / "last.ckpt", batch_size=7)
    rows = data.split.test[:MOST]
    if isinstance(data, BSDS500):
        for row in rows:
            found = predictor(data.images[row])
            strength = read_edge_map(run / "strengths" / f"{data.images[row].stem}.png")
            np.testing.assert_allclose(found.distribution[0, ..., 1], strength, atol=0.51 / 255)
        return
    for given in sources(run, data, rows):
        faces = [data.records.anchor(row) for row in rows] if isinstance(data, Images) else None
        compare(predictor.predict(given, faces=faces), run / "predictions.csv")


def sources(run: Path, data: LDLDataModule, rows: np.ndarray) -> Iterator[Any]:
    """The instances ``rows`` as an array, and as files without labels."""
    if isinstance(data, Bags):
        bags = [data.features[data.rows_of(np.array([row]))] for row in rows]
        yield bags
        table = [[name, *instance] for name, bag in enumerate(bags) for instance in bag]
        yield write(run / "unlabelled.csv", ["bag", *(data.feature_names or map(str, range(bags[0].shape[1])))], table)
    elif isinstance(data, ScaledRows):
        features = data.features[rows]
        yield features
        names = data.feature_names or [f"f{number}" for number in range(features.shape[1])]
        yield write(run / "unlabelled.csv", names, features.tolist())
    elif isinstance(data, Images):
        yield [data.records.paths()[row] for row in rows]
    else:
        yield data.inputs(rows, rows, train=False)


def write(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return path


def compare(found: Predictions, file: Path) -> None:
    """Hold predictions, against the first of a ``predictions.csv``."""
    with file.open() as stream:
        table = list(csv.DictReader(stream))[:MOST]
    wanted = {name: np.array([float(row[name]) for row in table]) for name in table[0] if "predict" in name}
    for name, column in zip(found.labels.names, found.distribution.T):
        np.testing.assert_allclose(column, wanted[f"prediction:{name}"], atol=1e-6, err_msg=name)
    assert len(found) == len(table)
    values = [column for name, column in wanted.items() if name.startswith("predicted_value")]
    assert bool(values) == (found.value is not None)
    if found.value is not None:
        scale = np.abs(found.labels.points.numpy()).max()
        np.testing.assert_allclose(found.value.reshape(len(found), -1).T, values, atol=1e-6 * scale)
