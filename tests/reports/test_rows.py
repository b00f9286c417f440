"""What a run reports of all its test rows, and a cross-validation of all its folds together."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.blank_charts import save_blank
from matplotlib.backends.backend_agg import FigureCanvasAgg
from torch import Tensor

from ldl.backbones.base import Backbone
from ldl.command import main
from ldl.data.base import LDLDataModule, Loaded
from ldl.labels import LabelSpace
from ldl.metrics.ordinal import OrdinalPredictions, line_results, train_counts
from ldl.reports.rows import images_of

PERSONS = (4, 10, 40)
FOLDS = ["--data.folds=3", "--data.val_fraction=0"]


class Persons(LDLDataModule):
    """Pictures of three persons, whose brightness tells their age; person 2 has most pictures, all of ages 30 to 33."""

    def load(self) -> Loaded:
        rng = np.random.default_rng(0)
        groups = np.repeat(np.arange(3), PERSONS)
        values = np.where(groups == 2, rng.integers(30, 34, 54), rng.integers(5, 60, 54)).astype(float)
        labels = LabelSpace.ordinal(range(0, 70), "years")
        noise = rng.integers(0, 20, (54, 3, 24, 20))
        self.images = torch.from_numpy((values[:, None, None, None] * 3 + noise).astype(np.uint8))
        return Loaded(labels, {"target": labels.encode(torch.tensor(values, dtype=torch.float32), 2.0)}, values, groups)

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        return self.images[rows]


class Brightness(Backbone):
    """Mean of each channel, in [0, 1]."""

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        return input_shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.float().mean((2, 3)) / 255


def run(folder: Path, *options: str) -> dict[str, Any]:
    config = folder.with_suffix(".yaml")
    config.write_text(
        f"model: {{head: Softmax, backbone: {__name__}.Brightness, "
        "optimizer: {class_path: SGD, init_args: {lr: 1}}}\n"
        f"data: {__name__}.Persons\n"
        "trainer: {max_epochs: 2, enable_progress_bar: false, enable_model_summary: false, log_every_n_steps: 1}\n"
    )
    main(["-c", str(config), "--wandb.mode=disabled", "--run_dir", str(folder), *FOLDS, *options])
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A finished cross-validation that leaves one person out; its charts are made, and saved as a single pixel."""
    folder = tmp_path_factory.mktemp("crossval") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FigureCanvasAgg, "print_png", save_blank)
        return folder, run(folder, "--stage=crossval")


def predictions(*folders: Path) -> dict[str, np.ndarray]:
    """The columns of ``predictions.csv`` of all folders together."""
    tables = [list(csv.DictReader((folder / "predictions.csv").open())) for folder in folders]
    rows = [{name: float(text) for name, text in row.items()} for table in tables for row in table]
    prediction = np.array([[row[f"prediction:{age}"] for age in range(70)] for row in rows])
    return {"prediction": prediction} | {
        name: np.array([row[name] for row in rows]) for name in ("index", "value", "predicted_value")
    }


def expected(rows: dict[str, np.ndarray], count: np.ndarray) -> dict[str, float]:
    labels = LabelSpace.ordinal(range(70), "years")
    return line_results(OrdinalPredictions(rows["prediction"], rows["predicted_value"], rows["value"], labels, count))


def check(written: dict[str, float | None], wanted: dict[str, float]) -> None:
    """Whether ``results.json`` holds these figures, NaN as null. The CSV file has seven digits."""
    for name, value in wanted.items():
        if np.isnan(value):
            assert written[name] is None, name
        else:
            assert written[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


def fold_counts(folder: Path, rows: dict[str, np.ndarray]) -> np.ndarray:
    """Training counts of the tested rows, from the other persons' ages."""
    loaded = Persons().load()
    assert loaded.values is not None
    others = np.setdiff1d(np.arange(54), rows["index"].astype(int))
    return train_counts(loaded.labels, loaded.values[others], rows["value"])


@pytest.mark.slow
def test_every_fold_has_the_measures_of_its_rows(folds: tuple[Path, dict[str, Any]]) -> None:
    folder, results = folds
    for number, fold in enumerate(results["folds"]):
        rows = predictions(folder / f"fold_{number}")
        wanted = expected(rows, fold_counts(folder, rows))
        check(fold["metrics"], wanted)
    assert sorted(fold["n_test"] for fold in results["folds"]) == sorted(PERSONS)


@pytest.mark.slow
def test_pooled_figures_are_those_of_all_rows(folds: tuple[Path, dict[str, Any]]) -> None:
    folder, results = folds
    parts = [folder / f"fold_{number}" for number in range(3)]
    rows = predictions(*parts)
    counts = np.concatenate([fold_counts(fold_folder, predictions(fold_folder)) for fold_folder in parts])
    wanted = expected(rows, counts) | {"mae": np.abs(rows["predicted_value"] - rows["value"]).mean()}
    pooled = results["pooled"]
    check(pooled, wanted)
    assert pooled.keys() == results["mean"].keys() and list(pooled)[:2] == ["kl", "chebyshev"]
    for name in ("kl", "fidelity", "rmse"):
        power = 2 if name == "rmse" else 1
        weighted = sum(fold["n_test"] * fold["metrics"][name] ** power for fold in results["folds"]) / 54
        assert pooled[name] == pytest.approx(weighted ** (1 / power), rel=1e-5)
    assert abs(pooled["kl"] - results["mean"]["kl"]) > 1e-3


@pytest.mark.slow
def test_means_pass_over_folds_without_the_group(folds: tuple[Path, dict[str, Any]]) -> None:
    _, results = folds
    column = [fold["metrics"]["mae_50_59"] for fold in results["folds"]]
    held = [value for value in column if value is not None]
    assert 0 < len(held) < 3 and results["mean"]["mae_50_59"] == pytest.approx(np.mean(held))
    assert results["mean"]["mae_many"] is None and results["std"]["mae_many"] is None
    assert results["pooled"]["mae_many"] is None and results["pooled"]["n_many"] == 0


@pytest.mark.slow
def test_charts_of_folds_and_of_all(folds: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = folds
    per_row = {"distributions", "values", "pictures"}
    shares = {"cumulative_score", "bands", "calibration"}
    assert {path.stem for path in (folder / "charts").iterdir()} == per_row | shares | {"folds"}
    drawn = {
        len(predictions(fold_folder)["index"]): {path.stem for path in (fold_folder / "charts").iterdir()}
        for fold_folder in folder.glob("fold_*")
    }
    assert drawn[4] == drawn[10] == per_row | {"learning_curves"} == drawn[40] - shares
    assert shares < drawn[40]


def test_pictures_are_those_of_the_rows() -> None:
    data = Persons(folds=3, val_fraction=0)
    data.setup()
    shown = images_of(data, np.array([40, 3]))
    assert shown is not None and shown.shape == (2, 24, 20, 3)
    np.testing.assert_array_equal(shown[0], data.images[40].permute(1, 2, 0).numpy())
    data.images = data.images.float()
    assert images_of(data, np.array([0])) is None
    data.input_shape = (72,)
    assert images_of(data, np.array([0])) is None
