"""Runs of the command line beside loops that a user would write, and beside runs of another checkout."""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import ldl

# isort: split
import numpy as np
import pandas as pd
import torch
from PIL import Image
from sklearn.model_selection import KFold

from benchmarks.common.script import Seconds
from benchmarks.speed_cases import OURS, Works, case, scratch, table
from benchmarks.speed_cases.plain_training import (
    BATCH,
    EPOCHS,
    LEARNING_RATE,
    FitClock,
    Network,
    fit_images,
    fit_lightning,
    fit_torch,
    run_torch,
)


def train(options: dict[str, Any]) -> Seconds:
    """Run ``train.py`` of the checkout that is measured, in a folder that is removed; return the seconds of the fit."""
    with tempfile.TemporaryDirectory() as folder:
        options = options | {
            "trainer.accelerator": "cpu", "trainer.enable_progress_bar": "false", "wandb.mode": "disabled",
            "trainer.callbacks": "benchmarks.speed_cases.plain_training.FitClock", "run_dir": f"{folder}/run",
        }  # fmt: skip
        words, sys.argv = sys.argv, ["train.py", *(f"--{name}={value}" for name, value in options.items())]
        try:
            runpy.run_path(str(Path(ldl.__file__).parents[1] / "train.py"), run_name="__main__")
        finally:
            sys.argv = words
    return FitClock.last


@case
def default_run() -> Works:
    """Run ``train.py`` with the built-in digits for two epochs."""

    def run() -> None:
        train({"trainer.max_epochs": 2})

    return {OURS: run}


TABLE_ROWS, TABLE_FEATURES, TABLE_LABELS, HIDDEN = 10_000, 50, 10, 256
"""Sizes of the cases that train a network with one hidden layer on a table."""
TRAIN_ROWS, VAL_ROWS = 8100, 900
"""Rows to train on and to validate of the first fold of ten."""
SMALL, IMAGES, MOBILENET = 2000, 512, "mobilenetv2_100"
"""Rows of a small table, number of images, and the timm model that learns from them."""


def plain_model(head: str) -> Any:
    """Return the network of a head for a plain loop: a softmax, or an LDLF that is built."""
    from benchmarks.common.data import numbered
    from ldl.heads import LDLF

    torch.manual_seed(0)
    if head == "Softmax":
        return Network(TABLE_FEATURES, HIDDEN, TABLE_LABELS)
    model = LDLF(hidden=[HIDDEN])
    model.build(TABLE_FEATURES, numbered(TABLE_LABELS))
    batches = -(-TRAIN_ROWS // BATCH)
    model.expect(batches, EPOCHS * batches)
    return model


def write_table(rows: int) -> Path:
    """Write a table of the cases as a CSV with a header, and return its path."""
    features, target = table(rows, TABLE_FEATURES, TABLE_LABELS)
    names = [f"x{number}" for number in range(TABLE_FEATURES)] + [f"label:{number}" for number in range(TABLE_LABELS)]
    path = Path(scratch().name) / f"table_{rows}.csv"
    pd.DataFrame(torch.cat([features, target], 1).numpy(), columns=names).to_csv(path, index=False)
    return path


def run_table(head: str, path: Path) -> Seconds:
    """Train and test a head with a hidden layer on a CSV, as the command line does; return the seconds of the fit."""
    # The built-in configuration has other options of LDLF than its defaults, which the plain loops have.
    defaults = {"model.head.depth": 7, "model.head.outputs": 64, "model.head.batches": 100} if head == "LDLF" else {}
    return train(
        {
            "model.head": head, "model.head.hidden": f"[{HIDDEN}]", "model.backbone": "Identity",
            "model.optimizer": "AdamW", "model.optimizer.lr": LEARNING_RATE, "trainer.max_epochs": EPOCHS,
            "data": "TabularLDL", "data.path": path, "data.batch_size": BATCH, "data.val_fraction": 0.1,
            **defaults,
        }
    )  # fmt: skip


def fits_of(head: str) -> Works:
    """Return the fits of a head on a table: in a run of ldl, in a plain loop of torch, and in plain Lightning."""
    path = write_table(TABLE_ROWS)
    data = (*table(TABLE_ROWS, TABLE_FEATURES, TABLE_LABELS), TRAIN_ROWS, VAL_ROWS)
    return {
        OURS: lambda: run_table(head, path),
        "plain torch": lambda: fit_torch(plain_model(head), *data),
        "plain Lightning": lambda: fit_lightning(plain_model(head), *data),
    }


def runs_of(head: str) -> Works:
    """Return runs of a head on a CSV, with a test and files of its results: of ldl, and with a plain loop of torch."""
    path = write_table(TABLE_ROWS)
    folder = Path(scratch().name)

    def run() -> None:
        run_table(head, path)

    return {
        OURS: run,
        "plain torch": lambda: run_torch(plain_model(head), path, folder, TABLE_LABELS, TRAIN_ROWS, VAL_ROWS),
    }


@case
def softmax_table() -> Works:
    """Fit Softmax with a hidden layer of 256 on 10,000 x 50 for 20 epochs of batch 64; only the fit is measured."""
    return fits_of("Softmax")


@case
def softmax_table_run() -> Works:
    """Run the training of ``softmax_table`` from the CSV to the results and charts."""
    return runs_of("Softmax")


@case
def ldlf_table() -> Works:
    """Fit LDLF with a hidden layer of 256 on 10,000 x 50 for 20 epochs of batch 64; only the fit is measured."""
    return fits_of("LDLF")


@case
def ldlf_table_run() -> Works:
    """Run the training of ``ldlf_table`` from the CSV to the results and charts."""
    return runs_of("LDLF")


@case
def mobilenet() -> Works:
    """Fit mobilenetv2 with a softmax on 512 images of 96 x 96 for two epochs of batch 64; only the fit is measured."""
    folder = Path(scratch().name) / "images"
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, 96, 96, 3), dtype=np.uint8)
    for number, image in enumerate(images):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    options = {
        "model.backbone": "Timm", "model.backbone.name": MOBILENET, "model.backbone.pretrained": "false",
        "model.head": "Softmax", "model.optimizer": "AdamW", "model.optimizer.lr": LEARNING_RATE,
        "data": "ImageLDL", "data.path": folder, "data.crop_size": 96, "data.batch_size": BATCH,
        "data.train_transforms": "[]", "data.val_fraction": 0, "trainer.max_epochs": 2,
    }  # fmt: skip
    rows = torch.from_numpy(images[: IMAGES * 9 // 10])
    return {OURS: lambda: train(options), "plain torch": lambda: fit_images(rows, MOBILENET, epochs=2)}


@case
def crossval() -> Works:
    """Cross-validate 20 trees in five folds of 2,000 x 50, with one and two jobs, and with the estimator in a loop.

    A fold takes little, so that the seconds are those of the framework. The processor times lack those of jobs, which
    are processes of their own: compare the seconds.
    """
    from ldl.estimator import LDLRegressor
    from ldl.heads import StructRF

    forest: dict[str, Any] = {"trees": 20, "depth": 40, "features": 0.33, "min_leaf": 2, "out_of_bag": False}
    options = {
        "config": "tabular_structrf", "stage": "crossval", "data.path": write_table(SMALL), "data.folds": 5,
        "data.val_fraction": 0, "model.head.threads": 1, "model.head.sampling": 0.8, "model.head.replace": "true",
        **{f"model.head.{name}": str(value).lower() for name, value in forest.items()},
    }  # fmt: skip

    def run(more: dict[str, Any]) -> None:
        train(options | more)

    arrays = [array.numpy() for array in table(SMALL, TABLE_FEATURES, TABLE_LABELS)]

    def loop() -> None:
        features, target = arrays
        for train_rows, test_rows in KFold(5, shuffle=True, random_state=0).split(features):
            model = LDLRegressor(StructRF(**forest, threads=1)).fit(features[train_rows], target[train_rows])
            model.score(features[test_rows], target[test_rows])

    return {
        OURS: lambda: run({}),
        "two jobs": lambda: run({"jobs": 2}),
        "loop of the estimator": loop,
    }
