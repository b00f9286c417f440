"""Which instances a checkpoint was trained on: a test on them tells nothing, and leaks are counted against them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.protocols import Fold

KEY = "trained_on"
"""Where a checkpoint keeps of which data it is, and which of their instances are for what."""
TRAIN, VAL = 1, 2
SAMPLED = 1000
"""Instances by which data are known again."""


class TrainedRows(pl.Callback):
    """Notes in checkpoints the data, set up, and their instances for training and validation."""

    def __init__(self, data: LDLDataModule) -> None:
        self.data, self.identity = data, identity(data)

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        part, split = torch.zeros(self.data.size, dtype=torch.uint8), self.data.split
        part[split.train], part[split.val] = TRAIN, VAL
        checkpoint[KEY] = {"data": self.identity, "part": part}


def trained_fold(data: LDLDataModule, checkpoint: dict[str, Any], path: str) -> Fold | None:
    """The fold that a checkpoint was trained for, with the test part of the data; None where it is not of these data.

    Raises LDLError where instances of the test part were for training or validation.
    """
    known = checkpoint.get(KEY)
    if not isinstance(known, dict) or known.get("data") != identity(data):
        return None
    part = known.get("part")
    wanted = torch.uint8, torch.strided, (data.size,), "cpu"
    if not isinstance(part, Tensor) or (part.dtype, part.layout, part.shape, part.device.type) != wanted:
        raise LDLError(f"{path}: its {KEY}.part is no number of a part for every instance; take another checkpoint")
    part = part.numpy()
    if again := np.count_nonzero(part[data.split.test]):
        raise LDLError(
            f"{path} was trained on {again} of the {len(data.split.test)} instances that fold {data.fold} tests; give "
            "the data.fold, folds, fold_seed and protocol of its run, or data that are new to it"
        )
    return Fold(np.flatnonzero(part == TRAIN), np.flatnonzero(part == VAL), data.split.test)


def identity(data: LDLDataModule) -> str:
    """A digest by which the same instances in the same order are known: of their number, and values or names."""
    rows = np.unique(np.linspace(0, data.size - 1, SAMPLED).astype(np.int64))
    if data.values is not None:
        told = np.asarray(data.values, dtype=np.float64)[rows].tobytes()
    elif "target" in data.columns:
        told = data.columns["target"][torch.from_numpy(rows)].numpy().tobytes()
    else:
        told = "\n".join((data.names or [""] * data.size)[row] for row in rows).encode()
    return hashlib.sha256(f"{data.size}\n".encode() + told).hexdigest()
