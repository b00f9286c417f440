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
from ldl.data import BSDS500, FGNET, FGNETAAM, LDLDataModule, RotatedDigits, TabularLDL, UTKFace
from ldl.data.edges.bsds500 import list_part
from ldl.data.edges.images import read_scene
from ldl.data.edges.votes import vote_share
from ldl.edges.structured.channels import feature_maps
from ldl.labels import LabelSpace

YEAST = [f"Yeast_{name}" for name in ("alpha", "cdc", "cold", "diau", "dtt", "elu", "heat", "spo", "spo5", "spoem")]
PUBLIC = ["SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "SCUT_FBP", "M2B", *YEAST]
MOST_ROWS = 3000
"""Of the larger ones, drawn at random: what is compared are settings, a fold of many tables each."""

PIXELS = 30
"""Drawn from each image."""


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


def _votes() -> Rows:
    """Pixels of the 100 validation images of BSDS500: what annotators saw there, by the detector's 26 maps."""
    rng, features, shares, groups = np.random.default_rng(0), [], [], []
    for number, file in enumerate(list_part(BSDS500().folder, "val")):
        image, truth = read_scene(file)
        height, width = (side - side % 4 for side in image.shape[:2])
        maps = feature_maps(np.ascontiguousarray(image[:height, :width]))
        share = vote_share(truth.boundaries, 2.0)[:height, :width]
        row, column = rng.integers(height, size=PIXELS), rng.integers(width, size=PIXELS)
        features.append(maps[:, row // 2, column // 2].T)
        shares.append(share[row, column])
        groups.append(np.full(PIXELS, number))
    edge = torch.from_numpy(np.concatenate(shares)).float()
    rows = torch.from_numpy(np.concatenate(features)).float()
    return Rows(rows, torch.stack([1 - edge, edge], 1), LabelSpace.nominal(["no edge", "edge"]), np.concatenate(groups))


TABLES: dict[str, Callable[[], Rows]] = {
    **{name: partial(_public, name) for name in PUBLIC},
    "FG-NET, appearance": lambda: _served(FGNETAAM(scaling="none")),
    "FG-NET, mobilenetv2": lambda: _served(FGNET(), "mobilenetv2_100"),
    "UTKFace, mobilenetv2": lambda: _served(UTKFace(), "mobilenetv2_100"),
    "turned digits": lambda: _served(RotatedDigits(turns=2)),
    "diabetes": _diabetes,
    "BSDS500, votes": _votes,
}
FAMILIES = {name: "Yeast" if name.startswith("Yeast") else name for name in TABLES}
"""The ten Yeast sets have the same features, and count as one."""
