"""Estimators and predictors of ldl beside those of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from benchmarks.speed_cases import OURS, Works, case, scratch, table

ROWS, FEATURES, LABELS, TREES = 10_000, 30, 6, 100
"""Size of the table that every estimator learns, and trees or rounds of each."""
IMAGES, MODEL = 64, "mobilenetv2_100"
"""Images to predict, and the timm model that predicts them."""


def estimators() -> dict[str, Any]:
    """Return estimators by name, on two threads: forests of whole trees, and 100 rounds of depth 6.

    LightGBM and XGBoost learn the least squares of each label from trees of their own, as their users do.
    """
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    from ldl.estimator import LDLRegressor
    from ldl.heads import BoostedTrees, StructRF

    forest: dict[str, Any] = {"max_features": 0.33, "min_samples_leaf": 2, "n_jobs": 2, "random_state": 0}
    extra = {"depth": 64, "features": 0.33, "min_leaf": 2, "search": "random", "sampling": 1.0, "replace": False}
    models: dict[str, Any] = {
        OURS: LDLRegressor(StructRF(trees=TREES, **extra, out_of_bag=False, threads=2)),
        "ldl, BoostedTrees": LDLRegressor(BoostedTrees(rounds=TREES, depth=6, patience=None, threads=2)),
        "extra trees": ExtraTreesRegressor(TREES, **forest),
        "random forest": RandomForestRegressor(TREES, **forest),
    }
    try:
        from lightgbm import LGBMRegressor
        from sklearn.multioutput import MultiOutputRegressor
        from xgboost import XGBRegressor
    except ImportError:
        return models
    boosted = {"n_estimators": TREES, "max_depth": 6, "n_jobs": 2, "random_state": 0}
    models["LightGBM"] = MultiOutputRegressor(LGBMRegressor(**boosted, num_leaves=64, verbose=-1))
    return models | {"XGBoost": XGBRegressor(**boosted, tree_method="hist")}


def fits() -> dict[str, Callable[[], Any]]:
    """Return the fits of all estimators on one table."""
    features, target = (column.numpy() for column in table(ROWS, FEATURES, LABELS))
    return {name: partial(model.fit, features, target) for name, model in estimators().items()}


def predictions(rows: int, times: int) -> Works:
    """Return ``times`` predictions of so many rows by each estimator, once fitted."""
    features = table(rows, FEATURES, LABELS)[0].numpy()

    def repeat(model: Any) -> None:
        for _ in range(times):
            model.predict(features)

    return {name: partial(repeat, fit()) for name, fit in fits().items()}


@case
def estimator_fit() -> Works:
    """Fit LDLRegressor, forests of scikit-learn, LightGBM and XGBoost on 10,000 x 30 with six labels."""
    return dict(fits())


@case
def estimator_one_row() -> Works:
    """Predict one row, 50 times."""
    return predictions(1, 50)


@case
def estimator_few_rows() -> Works:
    """Predict 100 rows, 50 times."""
    return predictions(100, 50)


@case
def estimator_many_rows() -> Works:
    """Predict 100,000 rows."""
    return predictions(100_000, 1)


@case
def predictor() -> Works:
    """Predict 64 photographs of 300 x 400 pixels from their files by mobilenetv2 on crops of 224, and with timm."""
    import timm
    from timm.data import create_transform, resolve_data_config

    from ldl.backbones import Timm
    from ldl.data.images.transforms import Pipeline
    from ldl.heads import Softmax
    from ldl.inference import Predictor
    from ldl.labels import LabelSpace
    from ldl.task import Task

    draws = np.random.default_rng(0)
    folder = Path(scratch().name) / "photographs"
    folder.mkdir(exist_ok=True)
    for number in range(IMAGES):
        small = Image.fromarray(draws.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        small.resize((400, 300), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg", quality=90)
    task = Task(Softmax(), Timm(MODEL, pretrained=False))
    task.build(LabelSpace.nominal(["a", "b"]), (3, 224, 224))
    task.preprocessing = {"crop_size": 224, "margin": None, "transforms": Pipeline([]).to_dict()}
    ours = Predictor(task)
    theirs = timm.create_model(MODEL, num_classes=2).eval()
    transform = create_transform(**resolve_data_config({}, model=theirs))

    @torch.inference_mode()
    def predict() -> Tensor:
        pictures = [Image.open(path).convert("RGB") for path in sorted(folder.iterdir())]
        distributions: Tensor = theirs(torch.stack([transform(picture) for picture in pictures])).softmax(1)
        return distributions

    return {OURS: lambda: ours(folder), "plain timm": predict}
