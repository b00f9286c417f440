"""Data sets that turn draws into batches, dicts of tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.data.sampler import Draw

Batch = dict[str, Tensor]


class ArrayInstances(Dataset[Batch]):
    """Instances that lie in memory.

    Args:
        columns: ``input`` (N, ...), ``target`` (N, C), and where they exist ``value`` (N,) or (N, 2) and
            ``group`` (N,).
        index: (N,) numbers of the instances in the whole data set.
    """

    def __init__(self, columns: Batch, index: Tensor) -> None:
        self.columns = {**columns, "index": index}

    def __len__(self) -> int:
        return len(self.columns["index"])

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        return {name: column[0] for name, column in self.__getitems__([draw]).items()}

    def __getitems__(self, draws: list[Draw]) -> Batch:
        rows = torch.tensor([draw.index for draw in draws])
        batch = {name: column[rows] for name, column in self.columns.items()}
        batch["weight"] = torch.tensor([draw.weight for draw in draws])
        return batch


def collate(batch: Any) -> Any:
    """Pass on batches that the data set put together whole; stack single instances."""
    return batch if isinstance(batch, dict) else torch.utils.data.default_collate(batch)
