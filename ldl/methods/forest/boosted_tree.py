"""Grow boosted trees on derivatives, depth-wise or leaf-wise, from histograms or random thresholds.

Threads and processes share the features, and the sums of a feature are always made by one of them, so the tree is equal
to the last bit for any number of threads and processes.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from ldl.collective import Collective
from ldl.methods.forest.binning import FeatureBins, Shares, make_shares
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.growth import (
    COMPLETE,
    COUNT,
    FREE,
    NEEDS_MEMORY,
    SEARCHED,
    Limits,
    Nodes,
    TrainingSet,
    additions,
    grow_on,
    make_nodes,
    read_tree,
    search,
)
from ldl.methods.forest.histograms import Histogram, Newton
from ldl.methods.forest.random_thresholds import RowCoder

ADDITIONS_WORTH_THREADS = 300_000
"""Additions below which starting threads costs more than it saves."""

HISTOGRAMS = 4
"""Histograms that are allocated at first."""


class Shape(NamedTuple):
    """Hyperparameters of a tree; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    depth: int
    leaves: int | None
    learning_rate: float
    newton: Newton


class Grower:
    """Grows trees one after the other in the same memory.

    Args:
        bins: The training rows.
        threads: Threads of this process.
        collective: Processes share the features. Every process makes the same calls.
        device: Device of the tensors of the collective.
    """

    def __init__(self, bins: FeatureBins, threads: int, collective: Collective, device: torch.device) -> None:
        self.bins, self.threads, self.collective, self.device = bins, threads, collective, device
        self.pool = ThreadPoolExecutor(threads) if threads > 1 else None
        rows = bins.codes.shape[1]
        self.spare, self.right = np.empty(rows, np.int32), np.empty(rows, np.uint8)
        self.histograms = Histogram(np.empty((0, 0, 0), np.float32), np.zeros((0, 0), np.int32))

    @cached_property
    def shares(self) -> Shares:
        """The features of each thread of this process."""
        first = self.collective.rank * self.threads
        return make_shares(self.bins, self.threads * self.collective.world_size, first, first + self.threads)

    @cached_property
    def coder(self) -> RowCoder:
        """The bins row by row, for random thresholds."""
        return RowCoder(self.bins, self.shares)

    def beside(self, count: int) -> list[Grower]:
        """Return growers of one thread each on the same rows, which share the lists of sparse features."""
        growers = [Grower(self.bins, 1, self.collective, self.device) for _ in range(count)]
        for other in growers[1:]:
            other.shares, other.coder = growers[0].shares, growers[0].coder
        return growers

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def grow(
        self, derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray, shape: Shape, draws: int = 0
    ) -> FlatTree:
        """Grow one tree, whose leaf values are Newton steps times the learning rate.

        Args:
            derivatives: (N, 2 W) float32, the gradients of W outputs and their second derivatives.
            rows: (n,) int32, the training rows of the tree, each once; their order changes.
            features: Features that it may split by, rising, int64.
            shape: Hyperparameters.
            draws: Initial state of the random numbers of the tree.
        """
        rules = shape.newton
        codes = self.coder.code(features if rules.random else features[:0])
        data = TrainingSet(self.bins, self.shares, codes, features, derivatives, rows, self.spare, self.right)
        # Below this many additions, compiled code searches all features of this process alone.
        shared_from = sys.maxsize if self.pool is None else ADDITIONS_WORTH_THREADS
        limits = Limits(shape.depth, shape.leaves or 0, 0 if self.collective.world_size > 1 else shared_from)
        if not rules.random and self.histograms.sums.shape[2:] != derivatives.shape[1:]:
            self.histograms = _make_histograms(HISTOGRAMS, int(self.bins.offset[-1]), derivatives.shape[1])
        nodes = make_nodes(data, rules, limits, 0 if rules.random else len(self.histograms.rows), np.uint64(draws))
        is_searched = False
        while (state := grow_on(data, rules, limits, nodes, self.histograms, is_searched)) != COMPLETE:
            if is_searched := state != NEEDS_MEMORY:
                self._search(data, rules, limits, nodes)
            else:
                nodes = self._add_histograms(nodes)
        return read_tree(nodes, self.bins, shape.learning_rate, rules.l2)

    def _search(self, data: TrainingSet, rules: Newton, limits: Limits, nodes: Nodes) -> None:
        """Find the splits of the newest nodes, by all threads and processes."""
        splits = np.zeros((self.threads, 2, 5))

        def one(number: int) -> None:
            search(data, rules, limits, nodes, self.histograms, number, splits[number])

        pays = self.pool is not None and additions(data, rules, limits, nodes) >= ADDITIONS_WORTH_THREADS
        list(self.pool.map(one, range(self.threads)) if self.pool and pays else map(one, range(self.threads)))
        if self.collective.world_size > 1:
            gathered = self.collective.gather(torch.from_numpy(splits).to(self.device))
            splits = torch.cat(gathered).cpu().numpy()
        first, last = nodes.state[SEARCHED], nodes.state[COUNT]
        # Of equal splits the first.
        best = splits[splits[:, :, 0].argmax(0), np.arange(2)]
        nodes.split[first:last] = best[: last - first]

    def _add_histograms(self, nodes: Nodes) -> Nodes:
        """Double the number of histograms."""
        old = self.histograms
        count, bins, width = old.sums.shape
        self.histograms = _make_histograms(2 * count, bins, width)
        self.histograms.sums[:count], self.histograms.rows[:count] = old
        free = np.concatenate([np.arange(count, 2 * count), np.empty(count, np.int64)])
        nodes.state[FREE] = count
        return nodes._replace(free=free)


def _make_histograms(count: int, bins: int, width: int) -> Histogram:
    return Histogram(np.empty((count, bins, width), np.float32), np.zeros((count, bins), np.int32))
