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

from ldl.collective import Collective
from ldl.edges.structured.channels import CHANNELS, SIDE, VALUES
from ldl.edges.structured.growing import PatchTree
from ldl.edges.structured.patches import Patches, Scene
from ldl.edges.structured.segments import drop_specks

SAMPLE = 15_000
"""Patches from which the components are learned."""


Descriptor = tuple[np.ndarray, np.ndarray]
"""The map from a patch's channel values to its descriptor: kernel (D, 13, 16, 16) and bias (D,), float32."""


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


def learn_descriptor(
    scenes: Sequence[Scene], components: int, seed: int, device: torch.device, collective: Collective
) -> Descriptor:
    """Principal components of patches from all over the scenes, on all processes those that the first one finds.

    Every process calls it. Collectives need tensors on ``device``.
    """
    # Their last bits depend on the processor.
    found = (torch.from_numpy(part).to(device) for part in _components(scenes, components, seed))
    kernel, bias = (collective.broadcast(part).cpu().numpy() for part in found)
    return kernel, bias


def _components(scenes: Sequence[Scene], components: int, seed: int) -> Descriptor:
    random = np.random.default_rng(seed)
    each = -(-SAMPLE // len(scenes))
    parts = []
    for scene in scenes:
        cells = np.stack([random.integers(0, size - SIDE + 1, each) for size in scene.maps.shape[1:]], axis=1)
        parts.append(_values(scene.maps, cells))
    values = torch.cat(parts).numpy()
    mean = values.mean(0)
    centred = (values - mean).reshape(len(values), CHANNELS, -1)
    spread = np.sqrt(np.square(centred).mean((0, 2)))[:, None]
    spread = np.where(spread > 0, spread, np.float32(1))
    found = PCA(components, svd_solver="randomized", random_state=seed).fit((centred / spread).reshape(len(values), -1))
    kernel = (found.components_.reshape(components, CHANNELS, -1) / spread).reshape(components, VALUES)
    kernel = (kernel / np.sqrt(max(found.explained_variance_.sum(), 1e-12))).astype(np.float32, order="C")
    return kernel.reshape(-1, CHANNELS, SIDE, SIDE), -(kernel @ mean)


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
    kernel, bias = descriptor
    points = np.empty((len(rows), len(bias)), np.float32)
    for number, scene in enumerate(scenes):
        own = np.flatnonzero(patches.places[rows, 0] == number)
        points[own] = (
            _values(scene.maps, patches.places[rows[own], 1:]).numpy() @ kernel.reshape(len(bias), -1).T + bias
        )
    segments = np.stack([drop_specks(patches.segments[row]) for row in rows])
    return KeptPatches(np.concatenate([[0], np.cumsum(sizes)]), segments, points, kernel, bias)


def join_kept(parts: Sequence[KeptPatches]) -> KeptPatches | None:
    """Those of several trees as one, in order; None of none."""
    if not parts:
        return None
    sizes = np.concatenate([np.diff(part.start) for part in parts])
    segments = np.concatenate([part.segments for part in parts])
    points = np.concatenate([part.points for part in parts])
    return KeptPatches(np.append(0, sizes.cumsum()), segments, points, parts[0].kernel, parts[0].bias)
