"""Bags of instances from a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.batch import Batch
from ldl.data.bags.table import read_bags
from ldl.data.base import LDLDataModule
from ldl.data.instances import ArrayInstances
from ldl.data.sampler import Draw
from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.labels import LabelSpace
from ldl.protocols import Fold, stratified_kfold, with_validation


class Bags(LDLDataModule):
    """Bags of instances from a .csv file; only bags have labels.

    A row is an instance: its bag's label, its bag, and its features, in this order, or in any where a header names
    the columns ``label`` and ``bag``. Labels are 0 or -1 for negative, 1 for positive; bags may be numbers or names,
    and their rows may lie anywhere.

    The whole bag is one instance of the framework: ``input`` is (B, J, F) with J the instances of the largest bag of
    the file, and NaN where a bag has fewer. Folds take whole bags, each with the same share of positive ones.

    Args:
        path: The file: as it stands, or relative to the data folder.
        scaling: How features are scaled, learnt from the instances of the training bags: ``standard`` (mean 0,
            deviation 1), ``hellinger`` (square roots, for histograms), ``quantile_normal`` or ``quantile_uniform``
            (ranks, mapped to such a distribution), or ``none``.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        batch_size: Bags of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, cut by bag.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds.
        val_fraction: Share of the training bags that is kept for validation; 0 trains on all.
    """

    def __init__(
        self,
        path: str,
        scaling: Scaling = "standard",
        clip: float | None = None,
        batch_size: int = 32,
        num_workers: int = 0,
        root: str | None = None,
        folds: int = 10,
        fold: int = 0,
        fold_seed: int = 0,
        val_fraction: float = 0.0,
    ) -> None:
        super().__init__(batch_size, num_workers, root, folds, fold, fold_seed, val_fraction)
        self.path = path
        self.scaling = scaling
        self.clip = clip

    def load(self) -> None:
        """Read and check the file. Raises LDLError."""
        given = Path(self.path)
        self.table = read_bags(given if given.is_file() else self.data_root / given)
        self.labels = LabelSpace.nominal(["negative", "positive"])
        self.targets = torch.eye(2)[torch.from_numpy(self.table.label)]
        self.names = self.table.names
        self.size = len(self.names)
        # The number of instances differs from file to file, and no model depends on it.
        self.input_shape = (-1, self.table.features.shape[1])

    def cut(self) -> Fold:
        """The bags of ``fold``; folds are stratified by label."""
        train, test = stratified_kfold(self.table.label, self.folds, self.fold, self.fold_seed, width=1)
        return with_validation(train, test, self.val_fraction, self.fold_seed, self.fold)

    def prepare_fold(self) -> None:
        """Learn the scaling of the features from the instances of the training bags."""
        self.scaler = FeatureScaler(self.scaling, self.clip)
        self.scaler.fit(self.table.features[np.isin(self.table.bag, self.split.train)])
        self._scale()

    def state_dict(self) -> dict[str, Any]:
        """The learnt scaling: a checkpoint is tested with that it was trained with."""
        return self.scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Scale as a checkpoint does. Raises LDLError where the file has another number of features."""
        self.scaler.load_state_dict(state_dict)
        self._scale()

    def _scale(self) -> None:
        scaled = torch.tensor(self.scaler.transform(self.table.features), dtype=torch.float32)
        self.inputs = scaled.split(np.bincount(self.table.bag).tolist())

    def columns(self) -> dict[str, Tensor]:
        """The labels of all bags."""
        return {"target": self.targets}

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """The bags as they are; training adds no augmentation."""
        index = torch.from_numpy(rows)
        return PaddedBags({"target": self.targets[index]}, index, self.inputs)


class PaddedBags(ArrayInstances):
    """Bags that are padded with NaN when they are drawn.

    Args:
        columns: What there is besides inputs, such as ``target`` (N, C).
        index: (N,) numbers of the bags in ``bags``.
        bags: All bags of the data set, (J_i, F) each.
    """

    def __init__(self, columns: Batch, index: Tensor, bags: tuple[Tensor, ...]) -> None:
        super().__init__(columns, index)
        self.bags = bags
        self.longest = max(map(len, bags))

    def __getitems__(self, draws: list[Draw]) -> Batch:
        batch = super().__getitems__(draws)
        inputs = self.bags[0].new_full((len(draws), self.longest, self.bags[0].shape[1]), torch.nan)
        for row, number in zip(inputs, batch["index"]):
            row[: len(self.bags[number])] = self.bags[number]
        return {"input": inputs, **batch}
