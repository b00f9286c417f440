"""DSNA for patches (Huang, Loy & Tang 2016): how much each training patch of the leaves that a patch reaches votes.

Neighbours are compared by their descriptors; the label of a patch is where its segmentation has edges, blurred, in a
few principal components. The weights then combine the neighbours' own segmentations.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ldl.edges.structured.blur import blur
from ldl.edges.structured.channels import LABEL
from ldl.edges.structured.kept import KeptPatches, describe_all
from ldl.edges.structured.outlines import rings_of
from ldl.methods.dsna.descent import descend_weights
from ldl.methods.dsna.weights import Rules, neighbour_weights
from ldl.methods.forest.compiled import compiled
from ldl.methods.spectrum import eigh

CODES = 8
"""Components of a label."""
SAMPLE = 20_000
"""Labels from which the components are learned."""
CHUNK = 100_000
"""Labels that are made at a time."""
PART = 1000
"""Patches that are solved at a time, so that a core's cache holds more of the problem."""


class PatchNeighbours:
    """The training patches of a forest's leaves, ready to be weighted; ``blend`` is that of the head."""

    def __init__(self, kept: KeptPatches, rules: Rules, threads: int = 1, blend: float = 1.0) -> None:
        self.kept = kept
        self.rules = rules
        self.threads = threads
        self.blend = blend
        self.points = torch.from_numpy(kept.points)
        self.codes = label_codes(kept.segments)
        self.flat = kept.segments.max(1) == 0
        self.most = int(np.diff(kept.start).max())

    @torch.no_grad()
    def weigh(self, leaves: np.ndarray, maps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Kept patches and their weights, (rows, columns, m) int32 and float32, for the patch at each cell.

        Weights sum to 1, or are all 0 where no neighbour has an edge; places that are left have 0 too. ``leaves``
        (rows, columns, T) int32 are those reached, ``maps`` (26, h, w) the feature maps.
        """
        rows, columns, trees = leaves.shape
        queries = describe_all(maps, self.kept.kernel, self.kept.bias)[:rows, :columns].reshape(rows * columns, -1)
        near = np.zeros((rows * columns, trees * self.most), np.int32)
        counts = np.empty(len(near), np.int32)
        weights = np.zeros(near.shape, np.float32)
        votes = _gather(leaves.reshape(-1, trees), self.kept.start, self.flat, 1 - self.blend, near, counts, weights)
        if not self.blend:
            return near.reshape(rows, columns, -1), weights.reshape(rows, columns, -1)
        voting = np.flatnonzero(votes)
        parts = [voting[first : first + PART] for first in range(0, len(voting), PART)]
        with ThreadPoolExecutor(self.threads) as pool:
            solved = pool.map(lambda part: self._solve(near[part], counts[part], queries[part]), parts)
            for part, found in zip(parts, solved):
                weights[part] += np.float32(self.blend) * found
        return near.reshape(rows, columns, -1), weights.reshape(rows, columns, -1)

    def _solve(self, near: np.ndarray, counts: np.ndarray, queries: Tensor) -> np.ndarray:
        """The weights (B, m) of the first ``counts`` (B,) of the neighbours (B, m) of queries (B, D)."""
        rules = self.rules
        if rules.clusters == 1 and rules.rounds == 1 and rules.squared:
            weights = np.empty(near.shape, np.float32)
            descend_weights(
                self.kept.points, self.codes.numpy(), near, counts, queries.numpy(), rules.tau, rules.width,
                rules.sparsity, rules.attraction, rules.tolerance, weights,
            )  # fmt: skip
            return weights
        real = torch.arange(near.shape[1]) < torch.from_numpy(counts)[:, None]
        there = torch.from_numpy(near).long()
        return neighbour_weights(
            self.points[there], self.codes[there], real, queries, None, rules, True, 1e-3
        )[0].numpy()  # fmt: skip


@compiled
def _gather(
    leaves: np.ndarray, start: np.ndarray, flat: np.ndarray, share: float, near: np.ndarray, counts: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Fill in the kept patches (B, m) of the ``leaves`` (B, T), and how many they are, (B,).

    Of the weights (B, m) all trees, and all patches of a leaf, get as much of ``share``. Returns whether any patch has
    edges, (B,); where none has, weights stay 0.
    """
    votes = np.zeros(len(leaves), np.bool_)
    for b in range(len(leaves)):
        count = 0
        for leaf in leaves[b]:
            for row in range(start[leaf], start[leaf + 1]):
                near[b, count] = row
                votes[b] |= not flat[row]
                count += 1
        counts[b] = count
        if votes[b]:
            count = 0
            for leaf in leaves[b]:
                size = start[leaf + 1] - start[leaf]
                weights[b, count : count + size] = share / (size * leaves.shape[1])
                count += size
    return votes


def label_codes(segments: np.ndarray) -> Tensor:
    """Segmentations (N, 256) as labels (N, 8): principal components of their blurred edges, of mean squared norm 1."""
    random = np.random.default_rng(0)
    sample = segments[np.sort(random.choice(len(segments), min(SAMPLE, len(segments)), replace=False))]
    edges = _blurred_edges(sample)
    mean = edges.mean(0)
    variance, axes = eigh((edges - mean).T @ (edges - mean) / len(edges))
    axes = axes[:, -CODES:] / variance[-CODES:].sum().clamp_min(1e-12).sqrt()
    parts = [segments[first : first + CHUNK] for first in range(0, len(segments), CHUNK)]
    return torch.cat([(_blurred_edges(part) - mean) @ axes for part in parts])


def _blurred_edges(segments: np.ndarray) -> Tensor:
    start, pixels = rings_of(segments, 1)
    edges = np.zeros(segments.shape, np.float32)
    edges[np.repeat(np.arange(len(segments)), np.diff(start)[:, 0]), pixels] = 1
    return torch.from_numpy(blur(edges.reshape(-1, LABEL, LABEL), 2)).reshape(len(segments), -1)
