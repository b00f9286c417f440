"""What data modules of tables share: a file, and features that are scaled by what the training rows teach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.data.base import LDLDataModule
from ldl.data.instances import ArrayInstances
from ldl.data.tables.download import download_set
from ldl.data.tables.scaling import FeatureScaler, Scaling


class ScaledTable(LDLDataModule):
    """A table of features. A subclass reads it in ``load`` and gives its ``columns``.

    Attributes:
        features: (size, F) as they are in the file, float64, set by ``load``.
        inputs: (size, F) scaled, float32.
    """

    path: str
    scaling: Scaling
    clip: float | None
    download: bool
    features: np.ndarray

    def locate(self) -> Path:
        """The file ``path``: as it stands, or below the data folder; downloaded where that is asked for."""
        given = Path(self.path)
        path = given if given.is_file() else self.data_root / given
        if self.download and not path.is_file():
            download_set(path.name, path)
        return path

    def prepare_fold(self) -> None:
        """Learn the scaling of the features from the training rows."""
        self.scaler = FeatureScaler(self.scaling, self.clip)
        self.scaler.fit(self.features[self.split.train])
        self._scale()

    def state_dict(self) -> dict[str, Any]:
        """The learnt scaling: a checkpoint is tested with that it was trained with."""
        return self.scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Scale as a checkpoint does. Raises LDLError where the file has another number of features."""
        self.scaler.load_state_dict(state_dict)
        self._scale()

    def _scale(self) -> None:
        self.inputs = torch.tensor(self.scaler.transform(self.features), dtype=torch.float32)

    def columns(self) -> dict[str, Tensor]:
        """What a batch has besides inputs, for all rows."""
        raise NotImplementedError

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """The rows as they are; training adds no augmentation."""
        index = torch.from_numpy(rows)
        columns = {name: column[index] for name, column in {"input": self.inputs, **self.columns()}.items()}
        return ArrayInstances(columns, index)
