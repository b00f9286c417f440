"""Grows one tree on derivatives: depth-wise, or leaf-wise (best-first, Shi 2007), on histograms.

Only the smaller child's histogram is made, the other's is what is left of their parent's. Threads and processes share
the features, and every feature's sums are made by one of them: so the tree is the same, to the bit, for any number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from ldl.collective import Collective
from ldl.methods.forest.bins import Bins, Share, make_shares
from ldl.methods.forest.columns import midpoint
from ldl.methods.forest.compiled import compiled
from ldl.methods.forest.histograms import TOGETHER, Histogram, accumulate, subtract, total
from ldl.methods.forest.newton import NO_CUT, TINY, Cut, Newton, best_cut, first_best
from ldl.methods.forest.parting import partition
from ldl.methods.forest.random_cut import best_random_cut

WORTH_THREADS = 300_000
"""Additions below which starting threads costs more than it saves."""


class Shape(NamedTuple):
    """How far a tree grows; see :class:`ldl.heads.boosted_trees.BoostedTrees`."""

    depth: int
    leaves: int | None
    learning_rate: float
    newton: Newton


class BoostedTree(NamedTuple):
    """One tree of M nodes and L leaves. The root is node 0; a right child follows its left sibling.

    Attributes:
        feature: (M,) int32, the feature that splits, -1 in a leaf.
        threshold: (M,) float32; rows whose value is at most this go left. Infinity where only missing ones go right.
        missing_left: (M,) bool, whether rows go left whose value is missing.
        child: (M,) int32, the left child; in a leaf its number.
        values: (L, W) float32, the steps of the leaves, times the learning rate.
        gain: (M,) float64, the gain of each split.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    child: np.ndarray
    values: np.ndarray
    gain: np.ndarray


@dataclass
class _Node:
    number: int
    first: int
    last: int
    depth: int
    sums: np.ndarray
    histogram: Histogram | None = None
    cut: Cut = NO_CUT

    @property
    def count(self) -> int:
        return self.last - self.first


class Grower:
    """Grows trees one after the other in the same memory.

    Args:
        bins: The training rows.
        threads: Threads of this process.
        collective: Processes share the features. Every process makes the same calls.
        device: Where the collective's tensors must lie.
    """

    def __init__(self, bins: Bins, threads: int, collective: Collective, device: torch.device) -> None:
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
        """So many growers of one thread each, on the same rows, which share what is listed of sparse features."""
        growers = [Grower(self.bins, 1, self.collective, self.device) for _ in range(count)]
        for other in growers[1:]:
            other.shares = growers[0].shares
        return growers

    def grow(
        self, derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray, shape: Shape, draws: int = 0
    ) -> BoostedTree:  # fmt: skip
        """Grow one tree.

        Args:
            derivatives: (N, 2 W) float32, the gradients of W outputs and their second derivatives.
            rows: (n,) int32, the training rows that it sees, each once; their order changes.
            features: Those that it may split by, rising, int64.
            shape: How far it grows.
            draws: What the tree's stream of random numbers begins with, where cuts are drawn.
        """
        self.draws[0] = draws
        root = _Node(0, 0, len(rows), 0, total(derivatives, rows))
        nodes, open_, leaves = [root], [], 1
        if self._may_split(root, shape):
            if not shape.newton.random:
                root.histogram = self._take(derivatives.shape[1])
            self._search([root], None, derivatives, rows, features, shape.newton)
            open_.append(root)
        split: dict[int, tuple[Cut, int]] = {}
        while open_ and (shape.leaves is None or leaves < shape.leaves):
            # Of equal gains the node that came first.
            best = -1 if shape.leaves is None else max(range(len(open_)), key=lambda i: (open_[i].cut.gain, -i))
            node = open_.pop(best)
            if node.cut.feature < 0:
                self._give_back(node)
                continue
            split[node.number] = node.cut, len(nodes)
            leaves += 1
            children = self._part(node, derivatives, rows, len(nodes))
            nodes += children
            open_ += self._open(node, children, derivatives, rows, features, shape)
        for node in open_:
            self._give_back(node)
        return self._tree(nodes, split, shape)

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown()

    def _part(self, node: _Node, derivatives: np.ndarray, rows: np.ndarray, number: int) -> list[_Node]:
        cut, bins = node.cut, self.bins
        codes, filled = bins.codes[cut.feature], int(bins.filled[cut.feature])
        own, depth = rows[node.first : node.last], node.depth + 1
        middle = node.first + _send(codes, own, self.spare, self.right, cut.below, filled, cut.missing_left)
        sides = (node.first, middle), (middle, node.last)
        right_is_small = 2 * (middle - node.first) > node.count
        small = total(derivatives, rows[slice(*sides[right_is_small])])
        # Passing over the larger child as well would cost more the larger it is, and gain it the last bit.
        other = slice(*sides[not right_is_small])
        large = node.sums - small if node.count > TOGETHER else total(derivatives, rows[other])
        sums = (large, small) if right_is_small else (small, large)
        return [_Node(number + side, *ends, depth, own) for side, (ends, own) in enumerate(zip(sides, sums))]

    def _open(
        self, node: _Node, children: list[_Node], derivatives: np.ndarray, rows: np.ndarray, features: np.ndarray,
        shape: Shape,
    ) -> list[_Node]:  # fmt: skip
        """Find the cuts of those children that may be split."""
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
        """Fill in the histogram of the first node, take it from that of the second, and find the cuts of those wanted.

        The second node's histogram is that of both. Random cuts are found without.
        """
        node, wanted = nodes[0], nodes if wanted is None else wanted
        found = np.zeros((len(wanted), len(self.shares), 5))

        def draw(place: int) -> None:
            for at, each in enumerate(wanted):
                own = rows[each.first : each.last]
                best_random_cut(
                    self.bins, self.shares[place], features, derivatives, own, each.sums, rules, self.draws,
                    each.number, found[at, place],
                )  # fmt: skip

        def one(place: int) -> None:
            share = self.shares[place]
            own = rows[node.first : node.last]
            accumulate(self.bins, share, features, derivatives, own, node.sums, node.histogram)
            for other in nodes[1:]:
                subtract(self.bins, share, features, other.histogram, node.histogram)
            for at, each in enumerate(wanted):
                best_cut(self.bins, share, features, each.histogram, each.sums, each.count, rules, found[at, place])

        work = node.count * len(features) * derivatives.shape[1]
        self._share_out(draw if rules.random else one, len(self.shares), work)
        best = np.stack([cuts[cuts[:, 0].argmax()] for cuts in found])
        if self.collective.world_size > 1:
            parts = self.collective.gather(torch.from_numpy(best[None]).to(self.device))
            every = torch.cat(parts).cpu().numpy()
            best = every[every[:, :, 0].argmax(0), np.arange(len(wanted))]
        for each, cut in zip(wanted, best):
            each.cut = first_best(cut[None])

    def _share_out(self, one: Callable[[int], None], parts: int, work: int) -> None:
        if self.pool is None or work < WORTH_THREADS:
            for place in range(parts):
                one(place)
        else:
            list(self.pool.map(one, range(parts)))

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

    def _tree(self, nodes: list[_Node], split: dict[int, tuple[Cut, int]], shape: Shape) -> BoostedTree:
        count, width = len(nodes), len(nodes[0].sums) // 2
        tree = BoostedTree(
            np.full(count, -1, np.int32), np.zeros(count, np.float32), np.zeros(count, np.bool_),
            np.zeros(count, np.int32), np.empty((count - len(split), width), np.float32), np.zeros(count),
        )  # fmt: skip
        leaf = 0
        for node in nodes:
            if node.number in split:
                cut, child = split[node.number]
                tree.feature[node.number], tree.child[node.number] = cut.feature, child
                tree.threshold[node.number] = self._threshold(cut)
                tree.missing_left[node.number], tree.gain[node.number] = cut.missing_left, cut.gain
            else:
                gradient, hessian = node.sums[:width], node.sums[width:]
                tree.values[leaf] = -shape.learning_rate * gradient / np.maximum(hessian + shape.newton.l2, TINY)
                tree.child[node.number] = leaf
                leaf += 1
        return tree

    def _threshold(self, cut: Cut) -> float:
        if cut.above < 0:
            return np.inf
        return midpoint(self.bins.high[cut.feature, cut.below], self.bins.low[cut.feature, cut.above])


@compiled
def _send(
    codes: np.ndarray, own: np.ndarray, spare: np.ndarray, right: np.ndarray, below: int, missing: int,
    missing_left: bool,
) -> int:  # fmt: skip
    """Bring the rows that go left to the front, both sides in their old order; how many they are."""
    for row in own:
        code = np.int64(codes[row])
        right[row] = not missing_left if code == missing else code > below
    return partition(own, spare, right, 0, len(own))
