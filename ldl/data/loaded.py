"""What a data module has read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ldl.errors import LDLError
from ldl.labels import LabelSpace


@dataclass(frozen=True)
class Loaded:
    """What ``load`` of a data module gives; all columns have one entry an instance.

    Attributes:
        labels: The label space.
        columns: What a batch has besides inputs, tensors or other columns (``ldl.data.column``): ``target`` (size, C),
            and whatever else. ``value``, float32, and
            ``group``, numbered from 0, are made of ``values`` and ``groups`` where they are not given.
        values: (size,) true values, float64, or (size, 2) points of a plane; None where there are none.
        groups: (size,) group of every instance, such as the person; None where nobody knows them.
        names: What each instance is called in ``predictions.csv``, such as its file.
        facts: Further columns of ``predictions.csv``, such as where a face lies in its picture.
    """

    labels: LabelSpace
    columns: dict[str, Any]
    values: np.ndarray | None = None
    groups: np.ndarray | None = None
    names: list[str] | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of instances."""
        return len(next(iter(self._parts.values()), ()))

    @property
    def batch_columns(self) -> dict[str, Any]:
        """The columns, with ``value`` and ``group``. Raises LDLError where one is longer than another."""
        lengths = {name: len(part) for name, part in self._parts.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise LDLError(f"load() gives columns of different lengths: {said}; each needs one entry an instance")
        made = {}
        if self.values is not None:
            made["value"] = torch.tensor(self.values, dtype=torch.float32)
        if self.groups is not None:
            made["group"] = torch.from_numpy(np.unique(self.groups, return_inverse=True)[1])
        return {**self.columns, **{name: column for name, column in made.items() if name not in self.columns}}

    @property
    def _parts(self) -> dict[str, Any]:
        more = {"values": self.values, "groups": self.groups, "names": self.names}
        return {**self.columns, **self.facts, **{name: part for name, part in more.items() if part is not None}}
