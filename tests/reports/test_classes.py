"""The tables of classes that a run on nominal labels writes, of each fold and of all folds together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes.image_votes import cifar10h
from fakes.rater_votes import Seen, VotedRows

from ldl.command import main
from ldl.data.images.sets import CLASSES
from ldl.jobs.crossval import crossvalidate
from ldl.labels import LabelSpace
from ldl.metrics.classes import confusion_matrix
from ldl.reports.classes import write_classes
from ldl.task import Task

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}
MOODS = LabelSpace.nominal(["calm", "=happy", "sad"])

pytestmark = pytest.mark.usefixtures("pixel_charts")


def test_tables(tmp_path: Path) -> None:
    rows = {
        "prediction": np.array([[0.7, 0.3, 0.0], [0.4, 0.6, 0.0]]),
        "target": np.array([[1.0, 0, 0], [0.5, 0.5, 0]]),
    }
    write_classes(tmp_path, rows, MOODS, quote=True)
    assert (tmp_path / "classes.csv").read_text().splitlines() == [
        "label,precision,recall,f1,support",
        "calm,1,0.6666667,0.8,1.5",
        "'=happy,0.5,1,0.6666667,0.5",
        "sad,,,,0",
    ]
    assert (tmp_path / "confusion.csv").read_text().splitlines() == [
        "target,prediction:calm,prediction:=happy,prediction:sad",
        "calm,1,0.5,0",
        "'=happy,0,0.5,0",
        "sad,0,0,0",
    ]


def test_other_rows_have_no_classes(tmp_path: Path) -> None:
    rows = {"prediction": np.eye(3), "target": np.eye(3)}
    write_classes(tmp_path, rows, LabelSpace.ordinal(range(3)))
    write_classes(tmp_path, {"prediction": np.eye(3)}, MOODS)
    with pytest.warns(UserWarning, match="the confusion matrix is left out: a prediction is not finite"):
        write_classes(tmp_path, {**rows, "prediction": np.full((3, 3), np.nan)}, MOODS)
    assert not list(tmp_path.iterdir())


def test_folds_and_all_folds_together(tmp_path: Path) -> None:
    rows: list[dict[str, np.ndarray]] = []
    data = VotedRows(folds=3, val_fraction=0.2)
    results = crossvalidate(lambda: Task(Seen()), data, trainer=QUIET, folder=tmp_path, rows=rows)
    folders = [tmp_path / f"fold_{number}" for number in range(3)]
    folds = [pd.read_csv(folder / "confusion.csv", index_col="target") for folder in folders]
    for fold, columns, entry in zip(folds, rows, results["folds"]):
        np.testing.assert_allclose(fold, confusion_matrix(columns["prediction"], columns["target"]), rtol=1e-6)
        accuracy = np.trace(fold) / fold.to_numpy().sum()
        assert accuracy == pytest.approx(entry["metrics"]["majority_accuracy"], rel=1e-6)
    pooled = pd.read_csv(tmp_path / "confusion.csv", index_col="target")
    np.testing.assert_allclose(pooled, sum(folds), rtol=1e-6)
    classes = pd.read_csv(tmp_path / "classes.csv", index_col="label")
    np.testing.assert_allclose(classes["support"], pooled.sum(axis=1), rtol=1e-6)
    assert (tmp_path / "charts" / "confusion.png").is_file()


def test_a_run_on_images_with_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cifar10h(tmp_path)
    monkeypatch.setenv("LDL_DATA", str(tmp_path))
    run = tmp_path / "run"
    main(
        [
        "-c", "cifar10h_softmax", "--model.backbone", "HOG", "--trainer.max_epochs", "1", "--data.folds", "2",
        "--wandb.mode", "disabled", "--run_dir", str(run), "--trainer.enable_progress_bar", "false",
    ])  # fmt: skip
    classes = pd.read_csv(run / "classes.csv")
    assert list(classes["label"]) == list(CLASSES) and classes["support"].sum() == pytest.approx(20)
    predictions = pd.read_csv(run / "predictions.csv")
    columns = (predictions.filter(regex=f"^{name}:").to_numpy() for name in ("prediction", "target"))
    confusion = pd.read_csv(run / "confusion.csv", index_col="target")
    np.testing.assert_allclose(confusion, confusion_matrix(*columns), rtol=1e-6)
    assert (run / "charts" / "confusion.png").is_file()
