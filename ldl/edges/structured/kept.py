"""Training patches that the leaves of a structured forest keep, and the short descriptors by which they are compared.

A descriptor holds the leading principal components of a patch's 3328 channel values, each channel divided by its
standard deviation, scaled so that the mean squared norm of a descriptor is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA

from ldl.edges.structured.channels import CHANNELS, SIDE, VALUES
from ldl.edges.structured.growing import PatchTree
from ldl.edges.structured.patches import Patches, Scene
from ldl.edges.structured.segments import drop_specks

SAMPLE = 15_000
"""Patches from which the components are learned."""


class Descriptor(NamedTuple):
    """The map from a patch's channel values to its descriptor.

    Attributes:
        kernel: (D, 13, 16, 16) float32.
        bias: (D,) float32.
    """

    kernel: np.ndarray
    bias: np.ndarray


class KeptPatches(NamedTuple):
    """The patches of L leaves, by leaf, N in all.

    Attributes:
        start: (L + 1,) int64; the patches of leaf l are ``start[l]`` to ``start[l + 1]``, without the last.
        segments: (N, 256) uint8, their segmentations, numbered 0, 1, ...
        points: (N, D) float32, their descriptors.
        kernel: Of the descriptor.
        bias: Of the descriptor.
    """

    start: np.ndarray
    segments: np.ndarray
    points: np.ndarray
    kernel: np.ndarray
    bias: np.ndarray


def learn_descriptor(scenes: Sequence[Scene], components: int, seed: int) -> Descriptor:
    """Principal components of patches from all over the scenes."""
    random = np.random.default_rng(seed)
    each = -(-SAMPLE // len(scenes))
    values = torch.cat([_values(scene.maps, _anywhere(scene, each, random)) for scene in scenes]).numpy()
    mean = values.mean(0)
    centred = (values - mean).reshape(len(values), CHANNELS, -1)
    spread = np.sqrt(np.square(centred).mean((0, 2)))[:, None]
    spread = np.where(spread > 0, spread, np.float32(1))
    found = PCA(components, svd_solver="randomized", random_state=seed).fit((centred / spread).reshape(len(values), -1))
    kernel = (found.components_.reshape(components, CHANNELS, -1) / spread).reshape(components, VALUES)
    kernel = (kernel / np.sqrt(max(found.explained_variance_.sum(), 1e-12))).astype(np.float32)
    return Descriptor(kernel.reshape(-1, CHANNELS, SIDE, SIDE), -(kernel @ mean))


def _anywhere(scene: Scene, count: int, random: np.random.Generator) -> np.ndarray:
    rows, columns = (size - SIDE + 1 for size in scene.maps.shape[1:])
    return np.stack([random.integers(0, rows, count), random.integers(0, columns, count)], axis=1)


def _values(maps: np.ndarray, places: np.ndarray) -> torch.Tensor:
    """Channel values (n, 3328) of the patches that start at cells (n, 2)."""
    windows = torch.from_numpy(maps[:CHANNELS]).unfold(1, SIDE, 1).unfold(2, SIDE, 1)
    return windows[:, places[:, 0], places[:, 1]].transpose(0, 1).reshape(len(places), VALUES)


def describe_all(maps: np.ndarray, kernel: np.ndarray, bias: np.ndarray) -> torch.Tensor:
    """Descriptors (h - 15, w - 15, D) of the patches at all cells of feature maps (26, h, w)."""
    channels = torch.from_numpy(maps[None, :CHANNELS])
    found = F.conv2d(channels, torch.from_numpy(kernel), torch.from_numpy(bias))
    return found[0].permute(1, 2, 0).contiguous()


def keep(
    scenes: Sequence[Scene],
    patches: Patches,
    tree: PatchTree,
    descriptor: Descriptor,
    most: int,
    random: np.random.Generator,
) -> KeptPatches:
    """The patches of a tree's leaves; where a leaf has more than ``most``, so many drawn at random."""
    shuffled = random.permutation(len(tree.rows))
    leaf = np.repeat(np.arange(len(tree.start) - 1), np.diff(tree.start))
    order = shuffled[np.argsort(leaf[shuffled], kind="stable")]
    sizes = np.minimum(np.diff(tree.start), most)
    rank = np.arange(len(order)) - tree.start[leaf]
    rows = tree.rows[order[rank < most]]
    points = np.empty((len(rows), len(descriptor.bias)), np.float32)
    weight = descriptor.kernel.reshape(len(descriptor.bias), -1).T
    for number, scene in enumerate(scenes):
        own = np.flatnonzero(patches.places[rows, 0] == number)
        points[own] = _values(scene.maps, patches.places[rows[own], 1:]).numpy() @ weight + descriptor.bias
    segments = np.stack([drop_specks(patches.segments[row]) for row in rows])
    return KeptPatches(np.concatenate([[0], np.cumsum(sizes)]), segments, points, *descriptor)


def join_kept(parts: Sequence[KeptPatches]) -> KeptPatches | None:
    """Those of several trees as one, in order; None of none."""
    if not parts:
        return None
    before = np.cumsum([0, *(len(part.points) for part in parts)])
    starts = [part.start[1:] + count for part, count in zip(parts, before)]
    return KeptPatches(
        np.concatenate([np.zeros(1, np.int64), *starts]),
        np.concatenate([part.segments for part in parts]),
        np.concatenate([part.points for part in parts]),
        parts[0].kernel,
        parts[0].bias,
    )
