"""DSNA for patches (Huang, Loy & Tang 2016): votes of the training patches that the leaves of a structured forest keep.

Neighbours are compared by descriptors: the leading principal components of the 3328 channel values of a patch. Each
channel is divided by its standard deviation, and the mean squared norm of a descriptor is 1. The label of a patch is
the blurred edge map of its segmentation in a few principal components. The weights combine the neighbours' own
segmentations.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA
from torch import Tensor

from ldl.collective import Collective
from ldl.edges.structured.channels import CHANNELS, LABEL, SIDE, VALUES, blur
from ldl.edges.structured.growing import PatchTree
from ldl.edges.structured.patches import Patches, Scene, drop_specks
from ldl.edges.structured.voting import rings_of
from ldl.methods.dsna.weights import NeighbourWeighting, descend_weights, neighbour_weights
from ldl.methods.numba_kernels import compiled
from ldl.methods.torch_utils import eigh

DESCRIPTOR_SAMPLE = 15_000
"""Patches from which the components of descriptors are learned."""
LABEL_COMPONENTS = 8
"""Components of a label."""
CODE_SAMPLE = 20_000
"""Labels from which their components are learned."""
LABELS_AT_ONCE = 100_000
"""Labels that are made at a time."""
PATCHES_AT_ONCE = 1000
"""Patches that are solved at a time, so that the problem fits a core's cache."""

Descriptor = tuple[np.ndarray, np.ndarray]
"""The map from the channel values of a patch to its descriptor: kernel (D, 13, 16, 16) and bias (D,), float32."""


class KeptPatches(NamedTuple):
    """The N patches that L leaves keep, by leaf.

    Attributes:
        start: (L + 1,) int64; the patches of leaf l are ``start[l]`` to ``start[l + 1] - 1``.
        segments: (N, 256) uint8, their segmentations, numbered 0, 1, ...
        points: (N, D) float32, their descriptors.
        kernel: Kernel of the descriptor.
        bias: Bias of the descriptor.
    """

    start: np.ndarray
    segments: np.ndarray
    points: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray


def learn_descriptor(
    scenes: Sequence[Scene], components: int, seed: int, device: torch.device, collective: Collective
) -> Descriptor:
    """Learn principal components of random patches of all scenes; every process gets the result of the first.

    Every process must call this. Collectives need tensors on ``device``.
    """
    # The last bits depend on the processor.
    kernel_and_bias = (torch.from_numpy(array).to(device) for array in _components(scenes, components, seed))
    kernel, bias = (collective.broadcast(array).cpu().numpy() for array in kernel_and_bias)
    return kernel, bias


def _components(scenes: Sequence[Scene], components: int, seed: int) -> Descriptor:
    random = np.random.default_rng(seed)
    each = -(-DESCRIPTOR_SAMPLE // len(scenes))
    parts = []
    for scene in scenes:
        cells = np.stack([random.integers(0, size - SIDE + 1, each) for size in scene.maps.shape[1:]], axis=1)
        parts.append(_values(scene.maps, cells))
    values = torch.cat(parts).numpy()
    mean = values.mean(0)
    centred = (values - mean).reshape(len(values), CHANNELS, -1)
    spread = np.sqrt(np.square(centred).mean((0, 2)))[:, None]
    spread = np.where(spread > 0, spread, np.float32(1))
    pca = PCA(components, svd_solver="randomized", random_state=seed).fit((centred / spread).reshape(len(values), -1))
    kernel = (pca.components_.reshape(components, CHANNELS, -1) / spread).reshape(components, VALUES)
    kernel = (kernel / np.sqrt(max(pca.explained_variance_.sum(), 1e-12))).astype(np.float32, order="C")
    return kernel.reshape(-1, CHANNELS, SIDE, SIDE), -(kernel @ mean)


def _values(maps: np.ndarray, places: np.ndarray) -> Tensor:
    """Return the channel values (n, 3328) of the patches that start at cells (n, 2)."""
    windows = torch.from_numpy(maps[:CHANNELS]).unfold(1, SIDE, 1).unfold(2, SIDE, 1)
    return windows[:, places[:, 0], places[:, 1]].transpose(0, 1).reshape(len(places), VALUES)


def describe_all(maps: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> Tensor:
    """Return the descriptors (h - 15, w - 15, D) of the patches at all cells of feature maps (26, h, w)."""
    channels = torch.from_numpy(maps[None, :CHANNELS])
    projected = F.conv2d(channels, torch.from_numpy(kernel), torch.from_numpy(bias))
    return projected[0].permute(1, 2, 0).contiguous()


def keep(
    scenes: Sequence[Scene], patches: Patches, tree: PatchTree, descriptor: Descriptor, most: int,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Choose the patches that the leaves of a tree keep: at most ``most`` random patches of each leaf.

    Returns:
        The number of patches of each leaf, (L,) int64, and ``segments`` and ``points`` of :class:`KeptPatches`.
    """
    shuffled = random.permutation(len(tree.rows))
    leaf = np.repeat(np.arange(len(tree.start) - 1), np.diff(tree.start))
    order = shuffled[np.argsort(leaf[shuffled], kind="stable")]
    sizes = np.minimum(np.diff(tree.start), most).astype(np.int64)
    rank = np.arange(len(order)) - tree.start[leaf]
    rows = tree.rows[order[rank < most]]
    kernel, bias = descriptor
    points = np.empty((len(rows), len(bias)), np.float32)
    for number, scene in enumerate(scenes):
        of_scene = np.flatnonzero(patches.places[rows, 0] == number)
        points[of_scene] = (
            _values(scene.maps, patches.places[rows[of_scene], 1:]).numpy() @ kernel.reshape(len(bias), -1).T + bias
        )
    segments = np.stack([drop_specks(patches.segments[row]) for row in rows])
    return sizes, segments, points


class PatchNeighbours:
    """Weights for the training patches of a forest's leaves; ``blend`` is the option of the head."""

    def __init__(self, kept: KeptPatches, rules: NeighbourWeighting, threads: int = 1, blend: float = 1.0) -> None:
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
        """Return kept patches and their weights, (rows, columns, m) int32 and float32, for the patch at each cell.

        Weights sum to 1, or are all 0 if no neighbour has an edge; unused places have weight 0. ``leaves`` (rows,
        columns, T) int32 are the leaves reached, ``maps`` (26, h, w) the feature maps.
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
        parts = [voting[first : first + PATCHES_AT_ONCE] for first in range(0, len(voting), PATCHES_AT_ONCE)]
        with ThreadPoolExecutor(self.threads) as pool:
            solved = pool.map(lambda chunk: self._solve(near[chunk], counts[chunk], queries[chunk]), parts)
            for chunk, solution in zip(parts, solved):
                weights[chunk] += np.float32(self.blend) * solution
        return near.reshape(rows, columns, -1), weights.reshape(rows, columns, -1)

    def _solve(self, near: np.ndarray, counts: np.ndarray, queries: Tensor) -> np.ndarray:
        """Return the weights (B, m) of the first ``counts`` (B,) of the neighbours (B, m) of queries (B, D)."""
        rules = self.rules
        if rules.clusters == 1 and rules.rounds == 1 and rules.squared:
            weights = np.empty(near.shape, np.float32)
            descend_weights(
                self.kept.points, self.codes.numpy(), near, counts, queries.numpy(), rules.tau, rules.width,
                rules.sparsity, rules.attraction, rules.tolerance, weights,
            )  # fmt: skip
            return weights
        real = torch.arange(near.shape[1]) < torch.from_numpy(counts)[:, None]
        rows = torch.from_numpy(near).long()
        return neighbour_weights(
            self.points[rows], self.codes[rows], real, queries, None, rules, True, 1e-3
        )[0].numpy()  # fmt: skip


@compiled
def _gather(
    leaves: np.ndarray, start: np.ndarray, flat: np.ndarray, share: float, near: np.ndarray, counts: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Fill the kept patches ``near`` (B, m) of the ``leaves`` (B, T) and their ``counts`` (B,).

    All trees, and all patches of a leaf, get the same part of ``share`` of the ``weights`` (B, m). Returns whether any
    patch has edges, (B,); otherwise weights stay 0.
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
    """Return segmentations (N, 256) as labels (N, 8): components of blurred edges with mean squared norm 1."""
    random = np.random.default_rng(0)
    sample = segments[np.sort(random.choice(len(segments), min(CODE_SAMPLE, len(segments)), replace=False))]
    edges = _blurred_edges(sample)
    mean = edges.mean(0)
    variance, axes = eigh((edges - mean).T @ (edges - mean) / len(edges))
    axes = axes[:, -LABEL_COMPONENTS:] / variance[-LABEL_COMPONENTS:].sum().clamp_min(1e-12).sqrt()
    parts = [segments[first : first + LABELS_AT_ONCE] for first in range(0, len(segments), LABELS_AT_ONCE)]
    return torch.cat([(_blurred_edges(chunk) - mean) @ axes for chunk in parts])


def _blurred_edges(segments: np.ndarray) -> Tensor:
    start, pixels = rings_of(segments, 1)
    edges = np.zeros(segments.shape, np.float32)
    edges[np.repeat(np.arange(len(segments)), np.diff(start)[:, 0]), pixels] = 1
    return torch.from_numpy(blur(edges.reshape(-1, LABEL, LABEL), 2)).reshape(len(segments), -1)
