"""The training rows around a query: those in the leaves that it reaches."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ldl.methods.forest.oblique_flat import ObliqueForest


class Neighbourhood(NamedTuple):
    """The neighbours of B queries, filled up to the largest number m.

    Attributes:
        rows: (B, m) int64, training rows, rising; 0 where filled up.
        real: (B, m) bool, false where filled up.
    """

    rows: Tensor
    real: Tensor


def gather_leaves(forest: ObliqueForest, leaves: Tensor) -> Neighbourhood:
    """The union of the training rows in the leaves (B, T) that each query reaches (Huang et al., section III-B)."""
    ends = forest.sizes.long().cumsum(0)
    sizes = forest.sizes.long()[leaves]
    starts = (ends - forest.sizes.long())[leaves]
    longest = int(sizes.max()) if sizes.numel() else 0
    place = torch.arange(longest, device=leaves.device)
    inside = place < sizes.unsqueeze(2)
    # Filled-up places repeat the first row of their leaf, and repetitions go anyway.
    found = forest.rows.long()[starts.unsqueeze(2) + torch.where(inside, place, 0)].flatten(1).sort(1).values
    first = torch.ones_like(found, dtype=torch.bool)
    first[:, 1:] = found[:, 1:] != found[:, :-1]
    order, real = in_front(first)
    return Neighbourhood(torch.where(real, found.gather(1, order), 0), real)


def in_front(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Places of what is chosen in each of B rows, (B, m) bool, rising and before others; and whether they are chosen.

    Both are (B, k), of which k is the largest number that a row has.
    """
    most = int(chosen.sum(1).max()) if len(chosen) else 0
    order = (~chosen).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    return order, chosen.gather(1, order)
