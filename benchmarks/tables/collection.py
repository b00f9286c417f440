"""A dozen tables of different nature, for settings that are to serve on a table nobody has seen."""

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
from ldl.labels import LabelSpace

YEAST = [f"Yeast_{name}" for name in ("alpha", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo", "spo5", "spoem")]
PUBLIC = ["SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "SCUT_FBP", "M2B", *YEAST]
MOST_ROWS = 3000
"""Of the larger ones, drawn at random: what is compared are settings, a fold of many tables each."""


@dataclass(frozen=True)
class Rows:
    """One table.

    Attributes:
        features: (N, F), as they are.
        target: (N, C).
        labels: Their space.
        groups: (N,) such as the persons, or None where nobody knows them.
    """

    features: Tensor
    target: Tensor
    labels: LabelSpace
    groups: np.ndarray | None = None

    def at_most(self, count: int) -> Rows:
        """So many of the rows, at random."""
        if len(self.target) <= count:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self.target))[:count])
        groups = None if self.groups is None else self.groups[rows]
        return Rows(self.features[rows], self.target[rows], self.labels, groups)


def read_rows(name: str) -> Rows:
    """A table of :data:`TABLES`, at most ``MOST_ROWS`` of its rows. Raises LDLError where its data are missing."""
    return TABLES[name]().at_most(MOST_ROWS)


def _served(data: LDLDataModule, network: str | None = None) -> Rows:
    """What a data module serves; of pictures the features of a frozen network."""
    data.setup()
    if network:
        backbone = Timm(name=network, pretrained="auto", freeze=True)
        backbone.build(data.input_shape)
        reuse_features(backbone, data, torch.device("cpu"))
        assert data.backbone_features is not None
        features = data.backbone_features
    else:
        features = inputs_of(data).flatten(1)
    return Rows(features, data.columns["target"], data.labels, data.groups)


def _public(name: str) -> Rows:
    return _served(TabularLDL(path=f"ldl/{name}.mat", scaling="none"))


def _diabetes() -> Rows:
    table = load_diabetes()
    labels = LabelSpace.ordinal([float(value) for value in range(20, 351, 10)])
    target = labels.encode(torch.tensor(table.target, dtype=torch.float32), 20.0)
    return Rows(torch.tensor(table.data, dtype=torch.float32), target, labels)


TABLES: dict[str, Callable[[], Rows]] = {
    **{name: partial(_public, name) for name in PUBLIC},
    "FG-NET, appearance": lambda: _served(FGNETAAM(scaling="none")),
    "FG-NET, mobilenetv2": lambda: _served(FGNET(), "mobilenetv2_100"),
    "UTKFace, mobilenetv2": lambda: _served(UTKFace(), "mobilenetv2_100"),
    "turned digits": lambda: _served(RotatedDigits(turns=2)),
    "diabetes": _diabetes,
}
FAMILIES = {name: "Yeast" if name.startswith("Yeast") else name for name in TABLES}
"""The ten Yeast sets have the same features, and count as one."""
