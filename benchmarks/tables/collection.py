"""Twelve tables of different natures, on which the default hyperparameters of heads were chosen."""

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

from benchmarks.common.data import inputs_of
from ldl.backbones.frozen import cache_features
from ldl.backbones.timm import Timm
from ldl.data import LDLDataModule, RotatedDigits, TabularLDL
from ldl.edges.bsds500 import BSDS500, list_part, read_scene
from ldl.edges.crops import vote_share
from ldl.edges.structured.channels import feature_maps
from ldl.faces.ages import FGNET
from ldl.faces.fgnet_aam import FGNETAAM
from ldl.labels import LabelSpace

YEAST = ["Yeast_alpha", "Yeast_cold", "Yeast_spo5"]
"""Three of the ten sets of Yeast, of 18, 4 and 3 labels."""
PUBLIC = ["SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "SCUT_FBP", "M2B", *YEAST]
MOST_ROWS = 3000
"""Rows that are drawn from larger tables."""
PIXELS = 30
"""Pixels that are drawn from each image of BSDS500."""
TOLERANCE = 2.0
"""Pixels between an edge of an annotator and a pixel that it counts for."""


@dataclass(frozen=True)
class Table:
    """A table of label distributions.

    Attributes:
        features: (N, F), unscaled.
        target: (N, C) distributions.
        labels: The label space.
        groups: (N,) such as subjects, or None.
    """

    features: Tensor
    target: Tensor
    labels: LabelSpace
    groups: np.ndarray | None = None

    def draw(self, count: int) -> Table:
        """Return at most ``count`` of the rows, drawn at random."""
        if len(self.target) <= count:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self.target))[:count])
        groups = None if self.groups is None else self.groups[rows]
        return Table(self.features[rows], self.target[rows], self.labels, groups)


def read_table(name: str) -> Table:
    """Return a table of :data:`TABLES`, at most ``MOST_ROWS`` of its rows. Raises LDLError if its data are missing."""
    return TABLES[name]().draw(MOST_ROWS)


def _served(data: LDLDataModule, network: str | None = None) -> Table:
    """Return what a data module serves; of images the features of a frozen network."""
    data.setup()
    if network:
        backbone = Timm(name=network, pretrained="auto", freeze=True)
        backbone.build(data.input_shape)
        cache_features(backbone, data, torch.device("cpu"))
        assert data.backbone_features is not None
        features = data.backbone_features
    else:
        features = inputs_of(data).flatten(1)
    return Table(features, data.columns["target"], data.labels, data.groups)


def _public(name: str) -> Table:
    return _served(TabularLDL(path=f"ldl/{name}.mat", scaling="none"))


def _diabetes() -> Table:
    table = load_diabetes()
    labels = LabelSpace.ordinal([float(value) for value in range(20, 351, 10)])
    target = labels.encode(torch.tensor(table.target, dtype=torch.float32), 20.0)
    return Table(torch.tensor(table.data, dtype=torch.float32), target, labels)


def _votes() -> Table:
    """Return votes of annotators at pixels of the 100 validation images of BSDS500, and 26 maps of an edge detector."""
    rng, features, shares, groups = np.random.default_rng(0), [], [], []
    for number, file in enumerate(list_part(BSDS500().folder, "val")):
        image, truth = read_scene(file)
        height, width = (side - side % 4 for side in image.shape[:2])
        maps = feature_maps(np.ascontiguousarray(image[:height, :width]))
        share = vote_share(truth.boundaries, TOLERANCE)[:height, :width]
        row, column = rng.integers(height, size=PIXELS), rng.integers(width, size=PIXELS)
        features.append(maps[:, row // 2, column // 2].T)
        shares.append(share[row, column])
        groups.append(np.full(PIXELS, number))
    edge = torch.from_numpy(np.concatenate(shares)).float()
    rows = torch.from_numpy(np.concatenate(features)).float()
    return Table(
        rows, torch.stack([1 - edge, edge], 1), LabelSpace.nominal(["no edge", "edge"]), np.concatenate(groups)
    )


TABLES: dict[str, Callable[[], Table]] = {
    **{name: partial(_public, name) for name in PUBLIC},
    "FG-NET, appearance": lambda: _served(FGNETAAM(scaling="none")),
    "FG-NET, mobilenetv2": lambda: _served(FGNET(), "mobilenetv2_100"),
    "rotated digits": lambda: _served(RotatedDigits(turns=2)),
    "diabetes": _diabetes,
    "BSDS500, votes": _votes,
}
FAMILIES = {name: "Yeast" if name.startswith("Yeast") else name for name in TABLES}
"""The sets of Yeast have the same features, and count as one table."""
