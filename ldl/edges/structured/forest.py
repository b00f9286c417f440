"""The structured forest as flat arrays: training, saving, and what its leaves hold."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ldl.edges.structured.bins import Bins, make_bins
from ldl.edges.structured.channels import FEATURES, VALUES, Places, feature_places
from ldl.edges.structured.growing import Rules, grow
from ldl.edges.structured.kept import Descriptor, KeptPatches, join_kept, keep, learn_descriptor
from ldl.edges.structured.patches import Scene, sample_patches
from ldl.edges.structured.segments import drop_specks
from ldl.errors import LDLError
from ldl.methods.forest.draws import stream
from ldl.progress import track


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


@dataclass
class ForestSettings:
    """How the forest is trained; the defaults are those of Dollar & Zitnick, but for the number of patches.

    Args:
        trees: Number of trees.
        patches: Patches that a tree learns from; it holds 2 kB of each in memory.
        share: Share of the 7228 features that a tree may use, in (0, 1].
        depth: Splits on the longest path.
        min_leaf: Patches that each side of a split keeps.
        hyperplanes: Cost-sensitive hyperplanes that a node tries beside single features (Huang, Loy & Tang 2016).
        terms: Features of a hyperplane.
        shrinkage: Weight of a hyperplane's squared norm, against a mean loss of 1.
        kept: Training patches that a leaf keeps for DSNA, drawn at random where it has more; 0 keeps none.
        components: Principal components by which DSNA compares patches.
        seed: Seed of patches, features and trees.
        threads: How many trees grow at a time.
    """

    trees: int = 8
    patches: int = 100_000
    share: float = 0.25
    depth: int = 64
    min_leaf: int = 8
    hyperplanes: int = 0
    terms: int = 16
    shrinkage: float = 3.0
    kept: int = 0
    components: int = 32
    seed: int = 0
    threads: int = 1

    def check(self) -> None:
        """Raise LDLError for a value out of range."""
        for name, least in (
            ("trees", 1),
            ("patches", 100),
            ("min_leaf", 1),
            ("hyperplanes", 0),
            ("terms", 1),
            ("kept", 0),
            ("components", 1),
            ("seed", 0),
            ("threads", 1),
        ):
            if getattr(self, name) < least:
                raise LDLError(f"forest.{name} {getattr(self, name)} must be at least {least}")
        if not 0 < self.share <= 1:
            raise LDLError(f"forest.share {self.share} must be in (0, 1], a share of the features")
        if not 0 <= self.depth <= 64:
            raise LDLError(f"forest.depth {self.depth} must be in 0..64")
        if self.components > VALUES:
            raise LDLError(f"forest.components {self.components} must be at most {VALUES}, the values of a patch")
        if not self.shrinkage > 0:
            raise LDLError(f"forest.shrinkage {self.shrinkage} must be positive")


def train_forest(scenes: Sequence[Scene], settings: ForestSettings, progress: bool = False) -> EdgeForest:
    """Train on images and what their annotators drew. The same seed gives the same forest for any number of threads.

    Raises:
        LDLError: a setting out of range.
    """
    settings.check()
    bins = make_bins([scene.maps for scene in scenes], settings.seed)
    descriptor = learn_descriptor(scenes, settings.components, settings.seed) if settings.kept else None
    with ThreadPoolExecutor(settings.threads) as pool:
        grown = pool.map(lambda number: train_tree(scenes, bins, descriptor, settings, number), range(settings.trees))
        return join(list(track(grown, settings.trees, "growing trees", progress)))


def train_tree(
    scenes: Sequence[Scene], bins: Bins, descriptor: Descriptor | None, settings: ForestSettings, number: int
) -> EdgeForest:
    """One tree of the forest, with patches and features of its own."""
    random = np.random.default_rng([settings.seed, number])
    own = np.sort(random.choice(FEATURES, max(1, round(settings.share * FEATURES)), replace=False))
    places = Places(*(column[own] for column in feature_places()))
    patches = sample_patches(scenes, places, bins, settings.patches, random)
    tries = max(1, round(len(own) ** 0.5))
    rules = Rules(tries, settings.depth, settings.min_leaf, settings.hyperplanes, settings.terms, settings.shrinkage)
    tree = grow(patches.codes, places.map, bins, patches.segments, rules, stream(settings.seed, number))
    feature = np.where(tree.feature < 0, -1, own[tree.feature]).astype(np.int32)
    segments = np.stack([drop_specks(patches.segments[middle]) for middle in tree.middle])
    kept = None if descriptor is None else keep(scenes, patches, tree, descriptor, settings.kept, random)
    return EdgeForest(np.zeros(1, np.int32), feature, tree.weight, tree.threshold, tree.child, segments, kept)


def join(trees: Sequence[EdgeForest]) -> EdgeForest:
    """Several forests as one, in order."""
    nodes = np.cumsum([0, *(len(tree.feature) for tree in trees)])
    leaves = np.cumsum([0, *(len(tree.segments) for tree in trees)])
    return EdgeForest(
        np.concatenate([tree.roots + n for tree, n in zip(trees, nodes)]).astype(np.int32),
        np.concatenate([tree.feature for tree in trees]),
        np.concatenate([tree.weight for tree in trees]),
        np.concatenate([tree.threshold for tree in trees]),
        np.concatenate(
            [
                tree.child + np.where(tree.feature[:, 0] < 0, leaf, node)
                for tree, node, leaf in zip(trees, nodes, leaves)
            ]
        ).astype(np.int32),
        np.concatenate([tree.segments for tree in trees]),
        join_kept([tree.kept for tree in trees if tree.kept is not None]),
    )


def save_forest(forest: EdgeForest, path: Path, settings: ForestSettings) -> None:
    """Write a ``.safetensors`` file with the settings beside the arrays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = forest._asdict()
    kept = arrays.pop("kept")
    arrays |= {f"kept.{name}": array for name, array in kept._asdict().items()} if kept else {}
    # safetensors writes memory as it lies.
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(arrays, path, {"settings": json.dumps(asdict(settings))})


def load_forest(path: Path) -> EdgeForest:
    """Read what :func:`save_forest` wrote. Raises LDLError: no such file, or another content."""
    try:
        with safe_open(path, "np") as file:
            names = set(file.keys())
            kept = {name: file.get_tensor(f"kept.{name}") for name in KeptPatches._fields if f"kept.{name}" in names}
            arrays = {name: file.get_tensor(name) for name in EdgeForest._fields if name != "kept"}
            return EdgeForest(**arrays, kept=KeptPatches(**kept) if kept else None)
    except (FileNotFoundError, SafetensorError) as error:
        raise LDLError(f"{path} is no structured forest ({error}); train one, or give its .safetensors file") from None
