"""Pictures to predict a map of, each whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.loaded import Loaded
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs
from ldl.inference.pictures import whole
from ldl.labels import LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold


@options
class WholePictures(LDLDataModule):
    """A picture, or all below a folder, for ``--stage predict`` with a model of every pixel; sizes may differ.

    Args:
        path: The file or the folder: as it stands, or below the data folder.
    """

    path: str = option(kw_only=True)
    folds, fold, fold_seed, val_fraction = 0, 0, 0, 0.0

    protocol = "none"
    instances: Inputs = buffer()
    _trained = None  # type: tuple[LabelSpace, tuple[int, ...]] | None

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take the labels of a trained task. Raises LDLError where it was trained on something else than pictures."""
        if input_shape is None or len(input_shape) != 3 or (preprocessing or {}).keys() - {"dtype"}:
            raise LDLError("the checkpoint was trained on something else than whole pictures; leave data out")
        self._trained = (labels, input_shape)

    def load(self) -> Loaded:
        """List the pictures. Raises LDLError."""
        if self._trained is None:
            raise LDLError("WholePictures has no labels to train on or test with; use it with --stage predict")
        labels, self.input_shape = self._trained
        self.instances = whole(self.find(self.path))
        return Loaded(labels, {}, names=self.instances.names)

    def cut(self) -> Fold:
        """All pictures are to be predicted."""
        nothing = np.arange(0)
        return Fold(nothing, nothing, np.arange(self.size))

    @property
    def eval_batch_size(self) -> int:
        """One picture a process: sizes differ."""
        return current_collective().world_size

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``, of one size."""
        return self.instances.make(rows)
