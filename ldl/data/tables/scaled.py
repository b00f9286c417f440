"""What data modules of tables share: a file, and features that are scaled by what the training rows teach."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.column import Column, Made
from ldl.data.files import check_found
from ldl.data.row_file import RowFile, blocks_of
from ldl.data.sources import SOURCES, absent
from ldl.data.tables.download import download_set
from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.data.tables.scaling_blocks import learn
from ldl.errors import LDLError, some
from ldl.options import buffer, option, options


@options
class ScaledRows(LDLDataModule):
    """Rows of features from a file. A subclass reads it in ``load``, where it sets ``features``.

    Args:
        path: The file: as it stands, or relative to the data folder.
        scaling: How features are scaled, learnt from the training part of each fold: ``standard`` (mean 0,
            deviation 1), ``hellinger`` (square roots, for histograms), ``quantile_normal`` or ``quantile_uniform``
            (ranks, mapped to such a distribution), or ``none``.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        missing: Whether features that are not known, NaN or an empty field of a .csv, are refused, or kept for a head
            that takes them (``takes_missing``, such as BoostedTrees).
        download: Download a public set of this name (``ldl.data.tables.download.SETS``) where the file is not there.

    Attributes:
        features: (rows, F) as they are in the file, float64; or the file itself, where they stay on disk.
        feature_names: What the columns of a .csv are called; None where nobody knows.
        scaled: (rows, F) scaled, float32, after ``setup``; of features on disk when they are asked for.
    """

    path: str = option(kw_only=True)
    scaling: Scaling = "standard"
    clip: float | None = option(default=None, above=0, null="no clipping")
    missing: Literal["refuse", "keep"] = "refuse"
    download: bool = False

    features: np.ndarray | RowFile = buffer()
    feature_names = None  # type: list[str] | None
    feature_key = None  # type: str | None
    scaled: Column = buffer()
    unserved = (*LDLDataModule.unserved, "features")
    _borrowed = False

    @property
    def file(self) -> Path:
        """The file ``path``: as it stands, or below the data folder; downloaded where that is asked for."""
        path = self.find(self.path)
        if self.download and not path.is_file():
            if not path.resolve().is_relative_to(self.data_root.resolve()):
                raise LDLError(
                    f"data.path {self.path} leads out of the data folder {self.data_root}, into which sets are "
                    "downloaded; give a path below it, or another --data.root"
                )
            download_set(path.name, path)
        if path.name in SOURCES and not path.exists():
            raise absent(path.name, path, None if Path(self.path).is_absolute() else self.data_root)
        return check_found(path, self.path)

    @property
    def has_missing(self) -> bool:
        """Whether a feature of any row is missing."""
        return self.missing == "keep" and any(bool(np.isnan(block).any()) for _, block in blocks_of(self.features))

    def rows_of(self, instances: np.ndarray) -> np.ndarray:
        """The rows of the table that belong to some instances; the default has a row an instance."""
        return instances

    def prepare_fold(self) -> None:
        """Learn the scaling of the features from the training rows."""
        scaler = FeatureScaler(self.scaling, self.clip)
        rows = self.rows_of(self.split.train)
        if isinstance(self.features, RowFile):
            learn(scaler, self.features, rows)
        else:
            scaler.fit(self.features[rows])
        self._scale_by(scaler)
        self._borrowed = False

    def state_dict(self) -> dict[str, Any]:
        """The learnt scaling: a checkpoint is tested with that it was trained with."""
        return self.scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Scale as a checkpoint does, till a fit begins. Raises LDLError where the features cannot be scaled so."""
        scaler, before = copy.copy(self.scaler), self.scaler.learned
        scaler.load_state_dict(state_dict)
        if any(not np.array_equal(learned, before.get(name, ())) for name, learned in scaler.learned.items()):
            self._scale_by(scaler)
            self._borrowed = True
            self._forget_features()

    def prepare_as(self, preprocessing: dict[str, Any] | None) -> None:
        """Order and scale features as a trained task does, or scale as the fold's training part teaches.

        Columns are found by their names, where the table of training and this one have some. Raises LDLError where
        they are others, or the task was trained with other options of scaling.
        """
        if preprocessing is not None and "scaling" in preprocessing:
            self._arrange(preprocessing.get("features"))
            self.load_state_dict(preprocessing["scaling"])
        elif self._borrowed:
            self.prepare_fold()
            self._forget_features()

    @property
    def preprocessing(self) -> dict[str, Any]:
        """Names and scaling of the features, from which :class:`ldl.inference.Predictor` makes inputs of other rows."""
        # Columns of one name are told apart by their places alone.
        names = self.feature_names if len(set(self.feature_names or ())) == len(self.feature_names or ()) else None
        return {"features": names, "key": self.feature_key, "scaling": self.scaler.state_dict()}

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The rows as they are; training adds no augmentation."""
        return self.scaled[torch.from_numpy(rows)]

    def foresee(self, coming: Callable[[int], np.ndarray]) -> None:
        """Read ahead the rows of a table on disk."""
        if isinstance(self.scaled, Made):
            self.scaled.foresee(coming)

    def _arrange(self, names: list[str] | None) -> None:
        """Put the features into the order of ``names``. Raises LDLError where the table has others."""
        if names is None or self.feature_names is None or self.feature_names == names:
            return
        places = FeatureColumns(len(names), names).pick(self.feature_names, self.path)
        if more := [name for name in self.feature_names if name not in names]:
            raise LDLError(f"{self.path}: the model was not trained on column {some(more)}; leave it out of the file")
        if isinstance(self.features, RowFile):
            raise LDLError(
                f"{self.path}: columns stand in another order than in training, and the table stays on disk; write "
                f"them in the order {some(names)}, or read it into memory with a larger --data.in_memory"
            )
        self.features, self.feature_names = self.features[:, places], names
        self.prepare_fold()
        self._forget_features()

    def _scale_by(self, scaler: FeatureScaler) -> None:
        if isinstance(self.features, RowFile):
            self.scaled = Made(self.features, partial(scaler.apply, source=self.path))
        else:
            self.scaled = scaler.apply(self.features, self.path)
        self.scaler = scaler

    def _forget_features(self) -> None:
        """Serve no features of a backbone that were computed of rows in another scaling."""
        if self.features_key is not None:
            self.use_features(None)
