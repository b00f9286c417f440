"""The structured forest as flat arrays: growing it, alone or shared between processes, and what its leaves hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import load, save

from ldl.collective import Collective
from ldl.edges.structured.bins import make_bins
from ldl.edges.structured.channels import CHANNELS, FEATURES, LABEL, SIDE, Places, feature_places
from ldl.edges.structured.growing import Rules, grow
from ldl.edges.structured.kept import Descriptor, KeptPatches, join_kept, keep
from ldl.edges.structured.patches import Scene, sample_patches
from ldl.edges.structured.segments import drop_specks
from ldl.methods.forest.draws import stream
from ldl.methods.forest.flat import in_turn

OF_KEPT = "kept_"


class EdgeForest(NamedTuple):
    """T trees of M nodes and L leaves in all.

    Attributes:
        roots: (T,) int32, the first node of each tree.
        feature: (M, D) int32, the features that a node adds up, -1 in a leaf; D is 1 but for hyperplanes.
        weight: (M, D) float32, their weights.
        threshold: (M,) float32; patches whose sum is at most this go left.
        child: (M,) int32, the left child, which the right one follows; in a leaf its number.
        segments: (L, 256) uint8, the segmentation of each leaf, numbered 0, 1, ...
        kept: Training patches of the leaves, for DSNA; None where they were not wanted.
    """

    roots: np.ndarray
    feature: np.ndarray
    weight: np.ndarray
    threshold: np.ndarray
    child: np.ndarray
    segments: np.ndarray
    kept: KeptPatches | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name; those of ``kept`` as ``kept_NAME``."""
        arrays = self._asdict()
        kept = arrays.pop("kept")
        return arrays | ({OF_KEPT + name: array for name, array in kept._asdict().items()} if kept else {})


def forest_of(arrays: Mapping[str, np.ndarray]) -> EdgeForest:
    """The forest of these arrays; inverse of :meth:`EdgeForest.arrays`."""
    kept = {name: arrays[OF_KEPT + name] for name in KeptPatches._fields if OF_KEPT + name in arrays}
    own = {name: arrays[name] for name in EdgeForest._fields if name != "kept"}
    return EdgeForest(**own, kept=KeptPatches(**kept) if kept else None)


def unlearned_forest(components: int) -> EdgeForest:
    """A leaf without an edge; with ``components``, it keeps one patch."""
    kept = None
    none, leaf = np.zeros((1, LABEL * LABEL), np.uint8), np.full((1, 1), -1, np.int32)
    if components:
        kernel = np.zeros((components, CHANNELS, SIDE, SIDE), np.float32)
        bias, points = np.zeros(components, np.float32), np.zeros((1, components), np.float32)
        kept = KeptPatches(np.arange(2), none.copy(), points, kernel, bias)
    zero = np.zeros(1, np.int32)
    return EdgeForest(zero, leaf, np.ones((1, 1), np.float32), np.zeros(1, np.float32), zero.copy(), none, kept)


def grow_trees(
    scenes: Sequence[Scene],
    rules: Rules,
    numbers: Sequence[int],
    *,
    features: int,
    patches: int,
    kept: int,
    descriptor: Descriptor | None,
    seed: int,
    threads: int,
) -> Iterator[EdgeForest]:
    """Grow the trees ``numbers`` of a forest, in order, ``threads`` at a time; that changes none.

    Each draws the ``patches`` that it learns from and the ``features`` that it may use, so many of them. A leaf keeps
    at most ``kept`` patches for DSNA, which compares them by this ``descriptor``; with None it keeps none.
    """
    bins = make_bins([scene.maps for scene in scenes], seed)

    def one(number: int) -> EdgeForest:
        random = np.random.default_rng([seed, number])
        own = np.sort(random.choice(FEATURES, features, replace=False))
        places = Places(*(column[own] for column in feature_places()))
        drawn = sample_patches(scenes, places, bins, patches, random)
        tree = grow(drawn.codes, places.map, bins, drawn.segments, rules, stream(seed, number))
        feature = np.where(tree.feature < 0, -1, own[tree.feature]).astype(np.int32)
        segments = np.stack([drop_specks(drawn.segments[middle]) for middle in tree.middle])
        held = None if descriptor is None else keep(scenes, drawn, tree, descriptor, kept, random)
        return EdgeForest(np.zeros(1, np.int32), feature, tree.weight, tree.threshold, tree.child, segments, held)

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(one, numbers)


def gather_trees(trees: Sequence[EdgeForest], device: torch.device, collective: Collective) -> list[EdgeForest]:
    """The trees of all processes, in order; process r has grown ``trees`` r, r + world size, ..., maybe none.

    Every process calls it. Collectives need tensors on ``device``.
    """
    if collective.world_size == 1:
        return list(trees)
    # As bytes: a process without trees does not know the width of a node. safetensors writes memory as it lies.
    packed = [save({name: np.ascontiguousarray(a) for name, a in tree.arrays().items()}) for tree in trees]
    sizes = collective.gather(torch.tensor([len(tree) for tree in packed], dtype=torch.long, device=device))
    whole = torch.from_numpy(np.frombuffer(b"".join(packed), np.uint8).copy())
    shares = [part.cpu().split(size.tolist()) for part, size in zip(collective.gather(whole.to(device)), sizes)]
    return [forest_of(load(tree.numpy().tobytes())) for tree in in_turn(shares)]


def join(trees: Sequence[EdgeForest]) -> EdgeForest:
    """Several forests as one, in order."""
    moved = []
    node = leaf = 0
    for tree in trees:
        child = tree.child + np.where(tree.feature[:, 0] < 0, leaf, node)
        moved.append(tree._replace(roots=(tree.roots + node).astype(np.int32), child=child.astype(np.int32))[:-1])
        node, leaf = node + len(tree.feature), leaf + len(tree.segments)
    kept = join_kept([tree.kept for tree in trees if tree.kept is not None])
    return EdgeForest(*(np.concatenate(column) for column in zip(*moved)), kept)
