"""The estimator gives what ``train.py`` gives for the test rows of a fold, by the same options and seed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ldl import charts
from ldl.cli import main
from ldl.data import TabularLDL
from ldl.estimator import LDLRegressor
from ldl.head import Head
from ldl.heads import LDLF, MaxEnt, Pool, StructRF, Trained

LDLF_OPTIONS: dict[str, Any] = {"trees": 3, "depth": 4, "outputs": None, "hidden": [8], "dropout": 0.2, "batches": 4}
POOLED = [{"class_path": "Trained", "init_args": {"epochs": 5}}, {"class_path": "MaxEnt"}]
GRADIENT: dict[str, Any] = {"epochs": 4, "batch_size": 16, "lr": 0.02, "weight_decay": 0.1, "mixup": 0.3}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features, distributions, values and persons of 90 rows."""
    rng = np.random.default_rng(0)
    features = rng.exponential(size=(90, 5))
    odds = np.exp(features @ rng.normal(size=(5, 4)))
    value, person = 20 + 5 * features @ rng.normal(size=5), rng.integers(12, size=90)
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


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    monkeypatch.setattr(charts, "learning_curves", lambda *arguments: None)


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize(
    ("head", "spec", "options"),
    [
        (StructRF(trees=5), {"class_path": "StructRF", "init_args": {"trees": 5}}, {"scaling": "none"}),
        (LDLF(**LDLF_OPTIONS), {"class_path": "LDLF", "init_args": LDLF_OPTIONS}, {"scaling": "quantile_normal"}),
        (
            Pool([Trained(epochs=5), MaxEnt()]),
            {"class_path": "Pool", "init_args": {"members": POOLED}},
            {"clip": 2.0, "val_fraction": 0.2, "calibrate": True},
        ),
    ],
    ids=["fitted", "gradient", "groups_and_temperature"],
)
def test_distributions(head: Head, spec: dict[str, Any], options: dict[str, Any], table: Path, tmp_path: Path) -> None:
    estimator = LDLRegressor(head, random_state=3, accelerator="cpu", **GRADIENT).set_params(**options)
    scaling = {"scaling": estimator.scaling, "clip": estimator.clip, "val_fraction": estimator.val_fraction}
    data = TabularLDL(path=str(table), folds=5, fold=0, batch_size=16, **scaling)
    config = {
        "model": {
            "head": spec,
            "optimizer": {"class_path": "AdamW", "init_args": {"lr": 0.02, "weight_decay": 0.1}},
            "lr_scheduler": {"class_path": "CosineAnnealingLR", "init_args": {"T_max": 4}},
            "mixup": 0.3,
            "calibrate": estimator.calibrate,
        },
        "data": {
            "class_path": "TabularLDL",
            "init_args": {"path": str(table), "folds": 5, "fold": 0, "batch_size": 16, **scaling},
        },
        "trainer": {"max_epochs": 4},
    }
    expected = run(config, tmp_path)
    data.setup()
    fitted = np.sort(np.concatenate([data.split.train, data.split.val]))
    with np.load(table) as arrays:
        estimator.fit(arrays["features"][fitted], arrays["labels"][fitted], groups=arrays["person"][fitted])
        found = estimator.predict(arrays["features"][data.split.test])
    assert np.array_equal(expected["index"], data.split.test)
    np.testing.assert_allclose(found, np.stack([expected[f"prediction:{k}"] for k in range(4)], 1), rtol=0, atol=1e-6)
