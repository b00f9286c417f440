"""The structured forest as flat arrays: growing, sharing between processes, and checks after loading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.edges.structured.channels import CHANNELS, LABEL, PATCH_FEATURES, SIDE, FeaturePlaces, feature_places
from ldl.edges.structured.growing import GrowthOptions, grow
from ldl.edges.structured.neighbours import Descriptor, KeptPatches, keep
from ldl.edges.structured.patches import Scene, drop_specks, make_bins, sample_patches
from ldl.methods.forest.flat import join_arrays, number_across
from ldl.methods.forest.sampling import stream
from ldl.validation.tensors import check_buffers, check_range, check_trees, refuse

OF_KEPT = "kept_"
CHECKED_ROWS = 100_000
"""Segmentations that are checked at a time."""


class EdgeForest(NamedTuple):
    """A forest of T trees with M nodes and L leaves in total.

    Attributes:
        roots: (T,) int32, the first node of each tree.
        feature: (M, D) int32, the features that a node adds up, -1 in a leaf; D is 1 without hyperplanes.
        weight: (M, D) float32, their weights.
        threshold: (M,) float32; patches whose sum is at most this go left.
        child: (M,) int32, the left child, which the right child follows; in a leaf its number.
        segments: (L, 256) uint8, the segmentation of each leaf, numbered 0, 1, ...
        kept: Training patches of the leaves, for DSNA, or None.
    """

    roots: np.ndarray
    feature: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    segments: np.ndarray
    kept: KeptPatches | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name; the arrays of ``kept`` as ``kept_NAME``."""
        arrays = self._asdict()
        kept = arrays.pop("kept")
        if kept:
            arrays |= {OF_KEPT + name: array for name, array in kept._asdict().items()}
        return arrays


class EdgeTree(NamedTuple):
    """A grown tree: the arrays of :class:`EdgeForest`, and its kept patches, ``sizes`` (L,) of them in each leaf."""

    feature: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    segments: np.ndarray
    sizes: np.ndarray = np.empty(0, np.int64)
    kept_segments: np.ndarray = np.empty((0, LABEL * LABEL), np.uint8)
    kept_points: np.ndarray = np.empty((0, 0), np.float32)


def forest_of(arrays: Mapping[str, np.ndarray]) -> EdgeForest:
    """Build the forest from arrays; inverse of :meth:`EdgeForest.arrays`."""
    kept = {name: arrays[OF_KEPT + name] for name in KeptPatches._fields if OF_KEPT + name in arrays}
    arrays_of_trees = {name: arrays[name] for name in EdgeForest._fields if name != "kept"}
    return EdgeForest(**arrays_of_trees, kept=KeptPatches(**kept) if kept else None)


def unlearned_forest(components: int) -> EdgeForest:
    """Return a forest of one leaf without an edge, which keeps one patch if ``components`` is positive."""
    kept = None
    none, leaf = np.zeros((1, LABEL * LABEL), np.uint8), np.full((1, 1), -1, np.int32)
    if components:
        kernel = np.zeros((components, CHANNELS, SIDE, SIDE), np.float32)
        bias, points = np.zeros(components, np.float32), np.zeros((1, components), np.float32)
        kept = KeptPatches(np.arange(2), none.copy(), points, kernel, bias)
    zero = np.zeros(1, np.int32)
    return EdgeForest(zero, leaf, np.ones((1, 1), np.float32), np.zeros(1, np.float32), zero.copy(), none, kept)


def grow_trees(
    scenes: Sequence[Scene], options: GrowthOptions, numbers: Sequence[int], *, features: int, patches: int, kept: int,
    descriptor: Descriptor | None, seed: int, threads: int,
) -> Iterator[EdgeTree]:  # fmt: skip
    """Grow the trees ``numbers`` of a forest in order, ``threads`` at a time, which does not affect the result.

    Each tree draws its training ``patches`` and its ``features``. A leaf keeps at most ``kept`` patches for DSNA with
    this ``descriptor``; None keeps none.
    """
    bins = make_bins([scene.maps for scene in scenes], seed)

    def one(number: int) -> EdgeTree:
        random = np.random.default_rng([seed, number])
        chosen = np.sort(random.choice(PATCH_FEATURES, features, replace=False))
        places = FeaturePlaces(*(column[chosen] for column in feature_places()))
        drawn = sample_patches(scenes, places, bins, patches, random)
        tree = grow(drawn.codes, places.map, bins, drawn.segments, options, stream(seed, number))
        feature = np.where(tree.feature < 0, -1, chosen[tree.feature]).astype(np.int32)
        segments = np.stack([drop_specks(drawn.segments[medoid]) for medoid in tree.medoid])
        held = () if descriptor is None else keep(scenes, drawn, tree, descriptor, kept, random)
        return EdgeTree(feature, tree.weight, tree.threshold, tree.child, segments, *held)

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(one, numbers)


def join_edges(
    trees: list[EdgeTree], terms: int, descriptor: Descriptor | None, device: torch.device, collective: Collective
) -> EdgeForest:
    """Join the trees of all processes, with D = ``terms``, into one forest; see :func:`.flat.join_arrays`."""
    whole, real, pixels = np.empty(0, np.int32), np.empty(0, np.float32), np.empty((0, LABEL * LABEL), np.uint8)
    points = real.reshape(0, 0 if descriptor is None else len(descriptor[1]))
    like = EdgeTree(whole.reshape(0, terms), real.reshape(0, terms), real, whole, pixels, kept_points=points)
    joined, lengths = join_arrays(trees, like, device, collective)
    nodes = lengths[:, 0]
    roots = number_across(joined[3], joined[0][:, 0] >= 0, nodes, nodes, lengths[:, 4])
    roots, *learned, sizes, segments, points = (column.cpu().numpy() for column in (roots, *joined))
    kept = None if descriptor is None else KeptPatches(np.append(0, sizes.cumsum()), segments, points, *descriptor)
    return EdgeForest(roots, *learned, kept)


def check_forest(head: nn.Module, components: int) -> None:
    """Check the buffers of a loaded head against :class:`EdgeForest`, before compiled code reads them.

    Args:
        head: Has the buffers under the names of :meth:`EdgeForest.arrays`.
        components: Size of the descriptors of kept patches; 0 without kept patches.

    Raises:
        LDLError: The buffers are no forest of segmentations, or no patches of its leaves.
    """
    segments = f"{LABEL * LABEL}: 0 <= number < {LABEL * LABEL}"
    rules = {
        "roots": "T",
        "feature": f"M D: -1 <= number < {PATCH_FEATURES}",
        "weight": "M D: finite",
        "threshold": "M: finite",
        "child": "M",
        "segments": f"L {segments}",
    }
    if components:
        rules |= {
            f"{OF_KEPT}start": "S: 0 <= number <= N",
            f"{OF_KEPT}segments": f"N {segments}",
            f"{OF_KEPT}points": f"N {components}: finite",
            f"{OF_KEPT}kernel": f"{components} {CHANNELS} {SIDE} {SIDE}: finite",
            f"{OF_KEPT}bias": f"{components}: finite",
        }
    sizes = check_buffers(head, rules)
    feature: Tensor = head.get_buffer("feature")
    if not sizes["D"]:
        refuse(head, "feature", "has nodes without features")
    inner = feature[:, 0] >= 0
    check_range(head, "feature", feature[inner], PATCH_FEATURES)
    check_trees(head, head.get_buffer("roots"), inner, head.get_buffer("child"), sizes["L"])
    _check_segments(head, "segments")
    if components:
        _check_segments(head, f"{OF_KEPT}segments")
        start = head.get_buffer(f"{OF_KEPT}start")
        ends = (int(start[0]), int(start[-1])) if len(start) else ()
        if sizes["S"] != sizes["L"] + 1 or ends != (0, sizes["N"]) or bool((start.diff() < 0).any()):
            refuse(head, f"{OF_KEPT}start", "does not share the kept patches among the leaves")


def _check_segments(head: nn.Module, name: str) -> None:
    """Raise LDLError unless the segments of each row are numbered 0, 1, ... without a gap."""
    segments = head.get_buffer(name)
    # In parts, because indices take eight times the memory and leaves may keep millions.
    for number, block in enumerate(segments.split(CHECKED_ROWS)):
        present = torch.zeros(len(block), LABEL * LABEL, dtype=torch.bool, device=block.device)
        present.scatter_(1, block.long(), True)
        gap = (present.sum(1) != block.amax(1).long() + 1).nonzero()
        if len(gap):
            refuse(head, name, f"row {number * CHECKED_ROWS + int(gap[0])} leaves out a number")
