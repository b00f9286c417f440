"""Sets with values for the benchmark of intervals: features, distributions, the values themselves, and groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import Tensor

from benchmarks.common.folds import inputs_of
from ldl.backbones.reuse import reuse_features
from ldl.backbones.timm import Timm
from ldl.data import FGNET, FGNETAAM, LDLDataModule, RotatedDigits, TabularLDL, UTKFace
from ldl.data.tables.scaling import Scaling
from ldl.labels import LabelSpace


@dataclass(frozen=True)
class Valued:
    """One set.

    Attributes:
        features: (N, F).
        target: (N, C) distributions.
        truth: (N,) true values; of nominal labels the distributions (N, C).
        labels: Their space.
        groups: (N,) such as persons, of which new ones are tested; None where rows are.
        scaling: Of the features, learned from the training rows of every split.
    """

    features: Tensor
    target: Tensor
    truth: np.ndarray
    labels: LabelSpace
    groups: np.ndarray | None = None
    scaling: Scaling = "none"


def _faces(data: LDLDataModule) -> Valued:
    data.setup()
    backbone = Timm(name="mobilenetv2_100", pretrained="auto", freeze=True, mirror=True)
    backbone.build(data.input_shape)
    reuse_features(backbone, data, torch.device("cpu"))
    assert data.backbone_features is not None and data.values is not None
    return Valued(data.backbone_features, data.columns["target"], data.values, data.labels, data.groups)


def _rows(data: LDLDataModule) -> Valued:
    data.setup()
    assert data.values is not None
    return Valued(inputs_of(data).flatten(1), data.columns["target"], data.values, data.labels, data.groups)


def _table(name: str, values: bool) -> Valued:
    """A public table; the mean of its five ratings is the value."""
    ratings = range(1, 6) if values else None
    data = TabularLDL(path=f"ldl/{name}.mat", label_values=ratings, scaling="none")
    data.setup()
    target = data.columns["target"]
    truth = data.labels.decode(target.double()) if values else target.double()
    return Valued(inputs_of(data), target, truth.numpy(), data.labels, data.groups, "standard")


def _diabetes() -> Valued:
    table = load_diabetes()
    labels = LabelSpace.ordinal([float(value) for value in range(20, 351, 10)])
    target = labels.encode(torch.tensor(table.target, dtype=torch.float32), 20.0)
    # Columns of unit length: of 442 rows they are about 1/20.
    features = torch.tensor(table.data * len(target) ** 0.5, dtype=torch.float32)
    return Valued(features, target, table.target, labels)


VALUED: dict[str, Callable[[], Valued]] = {
    "UTKFace": lambda: _faces(UTKFace(crop_size=80)),
    "FG-NET, pictures": lambda: _faces(FGNET()),
    "FG-NET, appearance": lambda: _rows(FGNETAAM()),
    "turned digits": lambda: _rows(RotatedDigits(turns=2)),
    **{name: partial(_table, name, True) for name in ("Movie", "SCUT_FBP", "M2B")},
    "diabetes": _diabetes,
}
"""Sets with values, and so with intervals."""

NOMINAL = {name: partial(_table, name, False) for name in ("SJAFFE", "SBU_3DFE", "Natural_Scene", "Yeast_alpha")}
"""Sets without, and so with sets of labels."""
