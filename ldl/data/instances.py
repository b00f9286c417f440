"""Data sets that turn draws into batches, dicts of tensors."""

from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.batch import Batch
from ldl.data.sampler import Draw
from ldl.errors import LDLError
from ldl.plugins import discover, plugin_folders


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
        rows = torch.tensor([draw.row for draw in draws])
        batch = {name: column[rows] for name, column in self.columns.items()}
        batch["weight"] = torch.tensor([draw.weight for draw in draws])
        return batch


def collate(batch: Any) -> Any:
    """Pass on batches that the data set put together whole; stack single instances."""
    return batch if isinstance(batch, dict) else torch.utils.data.default_collate(batch)


class Guarded(Dataset[Any]):
    """Hands a batch that cannot be read on as its error, so that all processes can end together.

    Args:
        instances: The data set.
    """

    def __init__(self, instances: Dataset[Any]) -> None:
        self.instances = instances

    def __reduce__(self) -> tuple[Any, ...]:
        # A loader process starts afresh: it must know the plugins before it can unpickle a data set of theirs.
        return _unpickle, (list(plugin_folders), bytes(ForkingPickler.dumps(self.instances)))

    def __len__(self) -> int:
        return len(self.instances)  # type: ignore[arg-type]

    def __getitem__(self, draw: Draw) -> Any:
        return self.instances[draw]

    def __getitems__(self, draws: list[Draw]) -> Any:
        try:
            if hasattr(self.instances, "__getitems__"):
                return self.instances.__getitems__(draws)
            return [self.instances[draw] for draw in draws]
        except LDLError as error:
            return {"error": str(error)}


def _unpickle(folders: list[Path], instances: bytes) -> Guarded:
    for folder in folders:
        discover(folder)
    return Guarded(pickle.loads(instances))
