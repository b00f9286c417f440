"""Intervals by torch alone are those of predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from ldl.deploy.export_graph import LEVELS, interval
from ldl.inference import Predictions
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal

SPACES = {
    "uneven": LabelSpace.ordinal([1, 2, 4, 8, 9]),
    "one": LabelSpace.ordinal([3.0]),
    "grid": LabelSpace.grid([-30, 0, 30], [-60, 0, 60]),
    "cells": LabelSpace.grid([0, 1, 2], [0, 1], only=[(0, 0), (1, 1), (2, 0), (2, 1)]),
}


@pytest.mark.parametrize("rows", [0, 5, 40], ids="{} calibrate".format)
@pytest.mark.parametrize("name", SPACES)
def test_as_predictions_give_them(name: str, rows: int) -> None:
    """With 5 rows an interval of 90% is all there is; distributions of one label have tails without mass."""
    labels, rng = SPACES[name], np.random.default_rng(0)
    points = labels.points.numpy()
    for concentration in (0.05, 1.0):
        p = rng.dirichlet(np.full(len(labels), concentration), 60).astype(np.float32)
        calibration = None
        if rows:
            seen = rng.dirichlet(np.full(len(labels), concentration), rows)
            truth = points[rng.integers(len(labels), size=rows)]
            calibration = Conformal.fit(labels, seen, truth if labels.ndim == 2 else truth[:, 0])
        wanted = Predictions(p, None, labels, calibration=calibration)
        for level in LEVELS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                ends = wanted.interval(level)
            computed = interval(labels, torch.from_numpy(p), level, calibration)
            # Within a label of little mass an end moves far for a rounded sum.
            np.testing.assert_allclose(computed.numpy(), ends, atol=1e-5 * (1 + float(np.ptp(points))))
