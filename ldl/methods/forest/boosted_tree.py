"""Grow one boosted tree on derivatives, depth-wise or leaf-wise (best-first, Shi 2007), from histograms.

Only the histogram of the smaller child is made; that of the other child is the parent's less it. Threads and processes
share the features, and the sums of a feature are always made by one of them, so the tree is equal to the last bit for
any number of threads and processes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from ldl.collective import Collective
from ldl.methods.forest.binning import FeatureBins, Share, make_shares
from ldl.methods.forest.flat import FlatTree
from ldl.methods.forest.histograms import (
    NO_SPLIT,
    TINY,
    TOGETHER,
    BinSplit,
    Histogram,
    Newton,
    accumulate,
    best_split,
    subtract,
    total,
)
from ldl.methods.forest.random_thresholds import best_random_split
from ldl.methods.numba_kernels import compiled, midpoint, partition

ADDITIONS_WORTH_THREADS = 300_000
"""Additions below which starting threads costs more than it saves."""


class Shape(NamedTuple):
    """Hyperparameters of a tree; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    depth: int
    leaves: int | None
    learning_rate: float
    newton: Newton


@dataclass
class _Node:
    number: int
    first: int
    last: int
    depth: int
    sums: np.ndarray
    histogram: Histogram | None = None
    split: BinSplit = NO_SPLIT

    @property
    def count(self) -> int:
        return self.last - self.first


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
        self.free: list[Histogram] = []
        rows = bins.codes.shape[1]
        self.draws = np.zeros(1, np.uint64)
        self.spare, self.right = np.empty(rows, np.int32), np.empty(rows, np.uint8)

    @cached_property
    def shares(self) -> list[Share]:
        """The features of each thread of this process."""
        shares = make_shares(self.bins, self.threads * self.collective.world_size)
        return shares[self.collective.rank * self.threads : (self.collective.rank + 1) * self.threads]

    def beside(self, count: int) -> list[Grower]:
        """Return growers of one thread each on the same rows, which share the lists of sparse features."""
        growers = [Grower(self.bins, 1, self.collective, self.device) for _ in range(count)]
        for other in growers[1:]:
            other.shares = growers[0].shares
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
        self.draws[0] = draws
        root = _Node(0, 0, len(rows), 0, total(derivatives, rows))
        nodes, open_, leaves = [root], [], 1
        if self._may_split(root, shape):
            if not shape.newton.random:
                root.histogram = self._take(derivatives.shape[1])
            self._search([root], None, derivatives, rows, features, shape.newton)
            open_.append(root)
        children: dict[int, int] = {}
        while open_ and (shape.leaves is None or leaves < shape.leaves):
            # Of equal gains the earlier node.
            best = -1 if shape.leaves is None else max(range(len(open_)), key=lambda i: (open_[i].split.gain, -i))
            node = open_.pop(best)
            if node.split.feature < 0:
                self._give_back(node)
                continue
            children[node.number] = len(nodes)
            leaves += 1
            sides = self._part(node, derivatives, rows, len(nodes))
            nodes += sides
            open_ += self._open(node, sides, derivatives, rows, features, shape)
        for node in open_:
            self._give_back(node)
        return self._tree(nodes, children, shape)

    def _part(self, node: _Node, derivatives: np.ndarray, rows: np.ndarray, number: int) -> list[_Node]:
        split, bins = node.split, self.bins
        codes, filled = bins.codes[split.feature], int(bins.filled[split.feature])
        node_rows, depth = rows[node.first : node.last], node.depth + 1
        left = _partition_codes(codes, node_rows, self.spare, self.right, split.below, filled, split.missing_left)
        middle = node.first + left
        sides = (node.first, middle), (middle, node.last)
        right_is_small = 2 * left > node.count
        small = total(derivatives, rows[slice(*sides[right_is_small])])
        # For a large node, summing the larger child as well would cost much and gain only the last bit.
        other = slice(*sides[not right_is_small])
        large = node.sums - small if node.count > TOGETHER else total(derivatives, rows[other])
        sums = (large, small) if right_is_small else (small, large)
        return [_Node(number + side, *sides[side], depth, sums[side]) for side in range(2)]

    def _open(
        self, node: _Node, children: list[_Node], derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray,
        shape: Shape,
    ) -> list[_Node]:  # fmt: skip
        """Find the splits of the children that may be split, and return these."""
        small, large = sorted(children, key=lambda child: child.count)
        wanted = [child for child in children if self._may_split(child, shape)]
        if large not in wanted:
            self._give_back(node)
            return []
        if shape.newton.random:
            self._search(wanted, None, derivatives, rows, features, shape.newton)
            return wanted
        small.histogram, large.histogram = self._take(derivatives.shape[1]), node.histogram
        self._search([small, large], wanted, derivatives, rows, features, shape.newton)
        if small not in wanted:
            self._give_back(small)
        return wanted

    def _search(
        self, nodes: list[_Node], wanted: list[_Node] | None, derivatives: np.ndarray, rows: np.ndarray,
        features: np.ndarray, rules: Newton,
    ) -> None:  # fmt: skip
        """Make the histogram of the first node, subtract it from the second one's, and find the wanted splits.

        The histogram of the second node is at first that of both. Random thresholds need no histogram.
        """
        node, wanted = nodes[0], nodes if wanted is None else wanted
        splits = np.zeros((len(wanted), len(self.shares), 5))

        def draw(number: int) -> None:
            for at, each in enumerate(wanted):
                node_rows = rows[each.first : each.last]
                best_random_split(
                    self.bins, self.shares[number], features, derivatives, node_rows, each.sums, rules, self.draws,
                    each.number, splits[at, number],
                )  # fmt: skip

        def one(number: int) -> None:
            share = self.shares[number]
            node_rows = rows[node.first : node.last]
            accumulate(self.bins, share, features, derivatives, node_rows, node.sums, node.histogram)
            for other in nodes[1:]:
                subtract(self.bins, share, features, other.histogram, node.histogram)
            for at, each in enumerate(wanted):
                best_split(self.bins, share, features, each.histogram, each.sums, each.count, rules, splits[at, number])

        search, numbers = draw if rules.random else one, range(len(self.shares))
        pays = node.count * len(features) * derivatives.shape[1] >= ADDITIONS_WORTH_THREADS
        list(self.pool.map(search, numbers) if self.pool is not None and pays else map(search, numbers))
        # Of equal splits the first.
        best = np.stack([of_node[of_node[:, 0].argmax()] for of_node in splits])
        if self.collective.world_size > 1:
            gathered = self.collective.gather(torch.from_numpy(best[None]).to(self.device))
            every = torch.cat(gathered).cpu().numpy()
            best = every[every[:, :, 0].argmax(0), np.arange(len(wanted))]
        for each, split in zip(wanted, best):
            each.split = BinSplit.of(split)

    def _may_split(self, node: _Node, shape: Shape) -> bool:
        return node.depth < shape.depth and node.count >= max(2, 2 * shape.newton.min_leaf)

    def _give_back(self, node: _Node) -> None:
        if node.histogram is not None:
            self.free.append(node.histogram)

    def _take(self, width: int) -> Histogram:
        size = int(self.bins.offset[-1])
        while self.free:
            histogram = self.free.pop()
            if histogram.sums.shape[1] == width:
                return histogram
        return Histogram(np.empty((size, width), np.float32), np.zeros(size, np.int32))

    def _tree(self, nodes: list[_Node], children: dict[int, int], shape: Shape) -> FlatTree:
        count, width = len(nodes), len(nodes[0].sums) // 2
        tree = FlatTree(
            np.full(count, -1, np.int32), np.zeros(count, np.float32), np.zeros(count, np.int32),
            np.empty((count - len(children), width), np.float32), np.zeros(count, np.bool_), np.zeros(count),
        )  # fmt: skip
        leaf = 0
        for node in nodes:
            at, split = node.number, node.split
            if at in children:
                tree.feature[at], tree.child[at], tree.threshold[at] = split.feature, children[at], self._cut(split)
                tree.missing_left[at], tree.gain[at] = split.missing_left, split.gain
            else:
                gradient, hessian = node.sums[:width], node.sums[width:]
                tree.values[leaf] = -shape.learning_rate * gradient / np.maximum(hessian + shape.newton.l2, TINY)
                tree.child[at] = leaf
                leaf += 1
        return tree

    def _cut(self, split: BinSplit) -> float:
        if split.above < 0:
            return np.inf
        return midpoint(self.bins.high[split.feature, split.below], self.bins.low[split.feature, split.above])


@compiled
def _partition_codes(
    codes: np.ndarray, rows: np.ndarray, spare: np.ndarray, right: np.ndarray, below: int, missing: int,
    missing_left: bool,
) -> int:  # fmt: skip
    """Move the rows that go left to the front, keep both sides in order, and return how many they are."""
    for row in rows:
        code = np.int64(codes[row])
        right[row] = not missing_left if code == missing else code > below
    return partition(rows, spare, right, 0, len(rows))
