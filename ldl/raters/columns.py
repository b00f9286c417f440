"""Single votes as columns of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ldl.annotations.votes import SingleVotes
from ldl.raters.table import find_raters


@dataclass(frozen=True, eq=False)
class VoteColumn:
    """Numbers of the votes on N items, as many as there are votes on each; a ``ldl.data.storage.BatchColumn``.

    Attributes:
        numbers: (V,) a number of each vote, int64, in the order of the items.
        starts: (N + 1,) position of the first vote on each item, and V, int64.
        in_training: Whether batches of training have the column.
    """

    numbers: Tensor
    starts: Tensor
    in_training: bool = True

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the numbers (B, W) of the votes on the items ``rows`` (B,), padded with -1 to the longest."""
        start = self.starts[rows]
        count = self.starts[rows + 1] - start
        place = torch.arange(max(1, int(count.max()) if len(count) else 1))
        inside = place < count[:, None]
        position = torch.where(inside, start[:, None] + place, 0)
        return torch.where(inside, self.numbers[position], -1)


def vote_columns(
    single: SingleVotes, size: int, names: Sequence[str], in_training: bool = True
) -> dict[str, VoteColumn]:
    """Return the columns ``rater`` and ``vote`` of batches.

    Args:
        single: The votes on ``size`` items.
        size: Number of items.
        names: Name of each rater, by the number in the column ``rater``, where another rater is -1.
        in_training: Whether batches of training have them.
    """
    order = np.argsort(single.item, kind="stable")
    starts = np.concatenate([[0], np.bincount(single.item, minlength=size).cumsum()])
    numbers = find_raters(single.names, names)
    first = torch.from_numpy(starts.astype(np.int64))
    return {
        "rater": VoteColumn(torch.from_numpy(numbers[single.rater[order]]), first, in_training),
        "vote": VoteColumn(torch.from_numpy(single.label[order].astype(np.int64)), first, in_training),
    }
