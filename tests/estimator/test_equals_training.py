"""The estimator gives what ``train.py`` gives for the test rows of a fold, by the same options and seed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ldl.command import main
from ldl.data import TabularLDL, TabularValues
from ldl.estimator import LDLRegressor
from ldl.head import Head
from ldl.heads import LDLF, MaxEnt, Pool, Softmax, StructRF, Trained
from ldl.inference import Predictor

FOREST: dict[str, Any] = {"trees": 3, "depth": 4, "outputs": None, "hidden": [8], "dropout": 0.2, "batches": 4}
POOLED = [{"class_path": "Trained", "init_args": {"epochs": 5}}, {"class_path": "MaxEnt"}]
GRADIENT: dict[str, Any] = {"epochs": 4, "batch_size": 16, "lr": 0.02, "weight_decay": 0.1, "mixup": 0.3}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features, distributions, values and persons of 90 rows."""
    rng = np.random.default_rng(0)
    features = rng.exponential(size=(90, 5))
    odds = np.exp(features @ rng.normal(size=(5, 4)))
    value, person = 20 + 5 * features @ rng.normal(size=5), rng.integers(60, size=90)
    path = tmp_path_factory.mktemp("data") / "table.npz"
    np.savez(path, features=features, labels=odds / odds.sum(1, keepdims=True), value=value, person=person)
    return path


def run(config: dict[str, Any], folder: Path) -> dict[str, np.ndarray]:
    """The columns of ``predictions.csv`` of a run with a configuration."""
    trainer = {"accelerator": "cpu", "enable_progress_bar": False, **config.pop("trainer", {})}
    config |= {"trainer": trainer, "wandb": {"mode": "disabled"}, "run_dir": str(folder), "seed_everything": 3}
    (folder / "given.yaml").write_text(yaml.safe_dump(config))
    main(["-c", str(folder / "given.yaml")])
    with (folder / "predictions.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


CASES: dict[str, tuple[Head, dict[str, Any], dict[str, Any]]] = {
    "fitted": (StructRF(trees=5), {"class_path": "StructRF", "init_args": {"trees": 5}}, {"scaling": "none"}),
    "gradient": (LDLF(**FOREST), {"class_path": "LDLF", "init_args": FOREST}, {"scaling": "quantile_normal"}),
    "groups_and_temperature": (
        Pool([Trained(epochs=5), MaxEnt()]),
        {"class_path": "Pool", "init_args": {"members": POOLED}},
        {"clip": 2.0, "val_fraction": 0.3, "calibrate": True, "conformal": "split"},
    ),
    "values": (Softmax(), {"class_path": "Softmax"}, {"mixup": 0.0, "decoder": "median"}),
}


@pytest.mark.usefixtures("blank")
@pytest.mark.parametrize(
    "case", ["gradient", *(pytest.param(case, marks=pytest.mark.slow) for case in CASES if case != "gradient")]
)
def test_same_predictions(case: str, table: Path, tmp_path: Path) -> None:
    head, spec, options = CASES[case]
    estimator = LDLRegressor(head, random_state=3, accelerator="cpu", **GRADIENT).set_params(**options)
    scaling = {"scaling": estimator.scaling, "clip": estimator.clip, "val_fraction": estimator.val_fraction}
    kind = TabularValues if case == "values" else TabularLDL
    data = kind(path=str(table), folds=5, batch_size=16, **scaling)
    model = {
        "head": spec,
        "optimizer": {"class_path": "AdamW", "init_args": {"lr": 0.02, "weight_decay": 0.1}},
        "lr_scheduler": {"class_path": "CosineAnnealingLR", "init_args": {"T_max": 4}},
        "mixup": estimator.mixup,
        "decoder": estimator.decoder,
        "calibrate": estimator.calibrate,
    }
    chosen = {"path": str(table), "folds": 5, "batch_size": 16, **scaling}
    parts = {"model": model, "data": {"class_path": kind.__name__, "init_args": chosen}, "trainer": {"max_epochs": 4}}
    expected = run(parts, tmp_path)
    data.setup()
    with np.load(table) as arrays:
        X, y, person = arrays["features"], arrays["value" if case == "values" else "labels"], arrays["person"]
    if case == "values":  # over all rows, as the table does
        grid = data.grid
        estimator.set_params(labels=grid.labels(), sigma=grid.sigma)
    fitted, tested = np.sort(np.concatenate([data.split.train, data.split.val])), data.split.test
    estimator.fit(X[fitted], y[fitted], groups=person[fitted])
    assert np.array_equal(expected["index"], tested)
    names = ["predicted_value"] if case == "values" else [f"prediction:{number}" for number in range(4)]
    wanted = np.stack([expected[name] for name in names], -1).squeeze()
    np.testing.assert_allclose(estimator.predict(X[tested]), wanted, rtol=1e-6, atol=1e-6)
    saved = Predictor.from_checkpoint(tmp_path / "checkpoints" / "last.ckpt").predict(X[tested])
    found = estimator.predictor_.predict(X[tested])
    np.testing.assert_allclose(found.distribution, saved.distribution, rtol=0, atol=1e-6)
    if estimator.conformal:
        assert np.array_equal(found.label_set(0.7), saved.label_set(0.7, calibrated=True))
