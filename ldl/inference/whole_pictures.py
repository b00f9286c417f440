"""Pictures to predict a map of, each whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ldl.collective import current_collective
from ldl.data.loaded import Loaded
from ldl.data.unlabelled import Unlabelled
from ldl.errors import LDLError
from ldl.inference.inputs import Inputs
from ldl.inference.pictures import whole
from ldl.options import buffer, option, options


@options
class WholePictures(Unlabelled):
    """A picture, or all below a folder, for ``--stage predict`` with a model of every pixel; sizes may differ.

    Args:
        path: The file or the folder: as it stands, or below the data folder.
    """

    path: str = option(kw_only=True)

    instances: Inputs = buffer()

    def suits(self, input_shape: tuple[int, ...], preprocessing: dict[str, Any]) -> None:
        """Raise LDLError for a task that was trained on something else than pictures."""
        if len(input_shape) != 3 or preprocessing.keys() - {"dtype"}:
            raise LDLError("the checkpoint was trained on something else than whole pictures; leave data out")

    def load(self) -> Loaded:
        """List the pictures. Raises LDLError."""
        labels, self.input_shape, _ = self.trained
        self.instances = whole(self.find(self.path))
        return Loaded(labels, {}, names=self.instances.names)

    @property
    def eval_batch_size(self) -> int:
        """One picture a process: sizes differ."""
        return current_collective().world_size

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The pictures ``rows``, of one size."""
        return self.instances.make(rows)
