"""The data set that puts batches together from draws, dicts of tensors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ldl.batch import Batch
from ldl.data.column import Column, Foreseeing
from ldl.data.sampler import Draw, Draws
from ldl.errors import LDLError
from ldl.plugins import discover, plugin_folders


class Source(Protocol):
    """What serves inputs, such as a data module.

    Attributes:
        serves: What batches call them: ``input``, or ``maps`` of a backbone's fixed layers.
    """

    serves: str

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """See :meth:`ldl.data.base.LDLDataModule.inputs`."""


class Instances(Dataset[Batch]):
    """Instances of a data set, put together to batches as they are drawn.

    Args:
        columns: What a batch has besides inputs, of *all* instances of the data set: ``target`` (N, C) and such.
        rows: The instances that are served, by their numbers in the data set.
        source: What serves ``input``; None serves none, where ``columns`` have features of it.
        train: Ask for random augmentation.
    """

    def __init__(
        self, columns: Mapping[str, Column], rows: np.ndarray, source: Source | None = None, train: bool = False
    ) -> None:
        self.columns = columns
        self.rows = rows
        self.source = source
        self.train = train

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, draw: Draw) -> dict[str, Any]:
        return {name: column[0] for name, column in self.__getitems__([draw]).items()}

    def __getitems__(self, draws: Sequence[Draw]) -> Batch:
        drawn = Draws.of(draws)
        numbers = self.rows[drawn.rows]
        index = torch.from_numpy(numbers)
        self._foresee(drawn.coming)
        batch = {name: column[index] for name, column in self.columns.items()}
        batch |= {"index": index, "weight": torch.from_numpy(drawn.weights)}
        if self.source is None:
            return batch
        return {self.source.serves: self.source.inputs(numbers, drawn.seeds, self.train), **batch}

    def _foresee(self, coming: Callable[[int], np.ndarray] | None) -> None:
        """Tell what reads from files the rows of the next batches."""
        for reader in (*self.columns.values(), self.source):
            if coming is not None and isinstance(reader, Foreseeing):
                reader.foresee(lambda count: self.rows[coming(count)])


def collate(batch: Any) -> Any:
    """Pass on batches that the data set put together whole; stack single instances."""
    return batch if isinstance(batch, dict) else torch.utils.data.default_collate(batch)


class Guarded(Dataset[Any]):
    """Hands a batch of a data set that cannot be read on as its error, so that all processes can end together."""

    def __init__(self, instances: Dataset[Any]) -> None:
        self.instances = instances

    def __reduce__(self) -> tuple[Any, ...]:
        # A loader process starts afresh: it must know the plugins before it can unpickle a data set of theirs.
        return _unpickle, (list(plugin_folders), bytes(ForkingPickler.dumps(self.instances)))

    def __len__(self) -> int:
        return len(self.instances)  # type: ignore[arg-type]

    def __getitems__(self, draws: Sequence[Draw]) -> Any:
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
