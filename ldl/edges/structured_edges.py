"""Structured edges (Dollar & Zitnick, PAMI 2015)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from ldl.batch import Batch, run_seed
from ldl.collective import Collective
from ldl.edges.structured.channels import CONTRAST_FLOOR, PATCH_FEATURES, VALUES
from ldl.edges.structured.detector import EdgeDetector
from ldl.edges.structured.forest import (
    EdgeForest,
    check_forest,
    forest_of,
    grow_trees,
    join_edges,
    unlearned_forest,
)
from ldl.edges.structured.growing import GrowthOptions
from ldl.edges.structured.neighbours import PatchNeighbours, learn_descriptor
from ldl.edges.structured.patches import Scene, make_scene
from ldl.errors import LDLError
from ldl.head import ImageHead
from ldl.labels import LabelSpace
from ldl.methods.dsna.weights import NeighbourWeighting
from ldl.methods.torch_utils import one_thread
from ldl.options import buffer, option, options, options_of
from ldl.progress import track


@options
class StructuredEdges(ImageHead):
    """A forest over patches whose leaves hold segmentations; all patches of an image vote for its edges.

    A node splits the segmentations of its patches, 16 x 16 pixels in the centre of 32 x 32, in two classes by the sign
    of their first principal component. A segmentation is coded by the pairs of pixels in one segment. A leaf predicts
    its medoid segmentation. The defaults are those of Dollar & Zitnick, except the number of patches. Options for
    cost-sensitive hyperplanes and for DSNA follow Huang, Loy & Tang 2016.

    There are two labels, no edge and edge. Training needs the segmentations of annotators. The same seed gives the same
    forest for any number of threads and processes. Processes share the trees.

    Args:
        trees: Number of trees.
        patches: Training patches per tree, which take 2 kB of memory each.
        share: Share of the 7228 features that a tree may use, in (0, 1].
        depth: Splits on the longest path, 0 to 64.
        min_leaf: Smallest number of patches on each side of a split.
        floor: Constant added to the mean gradient of the neighbourhood, by which gradients are divided. The published
            0.01 in 1/270 of CIE-LUV's units equals 0.027 in the 1/100 used here.
        early: Whether a node becomes a leaf if its best split leaves a side fewer than ``min_leaf`` patches (as
            published). Otherwise the best split with enough patches on both sides is used.
        classes: Classes into which a node's segmentations fall: 2 by the sign of their first principal component, more
            by k-means on the leading components.
        balance: Balance b of the classes: a class of n patches weighs n^(1 - b), so 1 makes all weights equal. Above 0,
            2 classes are found by k-means too.
        hyperplanes: Number of cost-sensitive hyperplanes that a node tries beside single features.
        terms: Number of features of a hyperplane.
        shrinkage: Weight of a hyperplane's squared norm, against a mean loss of 1.
        kept: Largest number of training patches per leaf for DSNA, drawn at random; 0 keeps none.
        components: Principal components by which DSNA compares patches.
        seed: Seed of patches, features and trees; None uses the run's seed.
        threads: Number of trees grown at a time, and of threads of detection; None uses torch's number.
        votes: Number of trees that vote at each place; neighbouring places use different trees, in a checkerboard.
        sharpen: Largest shift of boundaries in a vote towards changes of colour, in pixels, 0 to 3.
        scales: Scales of the image whose edge maps are averaged.
        mirror: Whether to average the edge maps of an image and its mirror image.
        gain: Factor of the share of votes before it is cut at 1. Rarely more than a third of the patches agree on the
            pixel of a boundary.
        dsna: Whether the training patches in the leaves vote, with DSNA's weights, instead of one patch per leaf.
        blend: DSNA: share of its weights in the votes; all patches of a leaf share the rest equally. 0 uses the mean
            over a leaf's patches, without DSNA.
        clusters: DSNA: number of label-aware clusters, of which one is chosen.
        overlap: DSNA: a patch also joins centroids that are at most this share farther than its nearest.
        tau: DSNA: trade-off of the label-aware distance.
        energy: DSNA: share of a cluster's variance that the directions of its affine hull carry, in (0, 1].
        width: DSNA: width of the anchor, which decays with the distance.
        sparsity: DSNA: weight of the l1 norm, for descriptors of mean squared norm 1.
        attraction: DSNA: weight of the distance to the anchor.
        squared: DSNA: whether to use half the squared norm of the residual instead of the norm.
        rounds: DSNA: largest number of rounds; 1 keeps the first estimate for the anchor.
        tolerance: DSNA: tolerance of the solver.

    Examples:
        >>> from ldl import Task
        >>> from ldl.edges import StructuredEdges
        >>> Task(StructuredEdges(trees=4, patches=10_000)).backbone  # images of any size
        WholeImages()
    """

    no_graph: ClassVar[str] = "its channels, patches and votes are compiled code on images of any size"
    wants: ClassVar[tuple[str, ...]] = ("boundaries", "segments")
    exact: ClassVar[tuple[str, ...]] = ("weight", "threshold", "kept_points", "kept_kernel", "kept_bias")
    roots: Tensor = buffer()
    _detector: tuple[list[Any], EdgeDetector] | None = buffer()

    trees: int = option(default=8, least=1, most=10_000)
    patches: int = option(default=100_000, least=100)
    share: float = option(default=0.25, above=0, most=1, what="a share of the features")
    depth: int = option(default=64, least=0, most=64)
    min_leaf: int = option(default=8, least=1)
    floor: float = option(default=CONTRAST_FLOOR, above=0)
    early: bool = False
    classes: int = option(default=2, least=2, most=64)
    balance: float = option(default=0.0, least=0, most=1)
    hyperplanes: int = option(default=0, least=0)
    terms: int = option(default=16, least=1)
    shrinkage: float = option(default=3.0, above=0)
    kept: int = option(default=0, least=0)
    components: int = option(default=32, least=1, most=VALUES, what="of the values of a patch")
    seed: int | None = option(default=None, least=0, most=2**32 - 1, null="the run's seed")
    threads: int | None = option(default=None, least=1, most=1024, null="torch's number", may_change=True)
    votes: int = option(default=4, least=1, may_change=True)
    sharpen: int = option(default=2, least=0, most=3, what="pixels", may_change=True)
    scales: tuple[float, ...] = option(default=(1.0,), least=0.05, most=20, may_change=True)
    mirror: bool = option(default=False, may_change=True)
    gain: float = option(default=2.0, above=0, may_change=True)
    dsna: bool = option(default=False, may_change=True)
    blend: float = option(default=1.0, least=0, most=1, what="a share of the votes", may_change=True)
    clusters: int = option(default=1, least=1, most=10_000, may_change=True)
    overlap: float = option(default=0.2, least=0, may_change=True)
    tau: float = option(default=1.0, above=0, may_change=True)
    energy: float = option(default=0.9, above=0, most=1, what="a share of the variance", may_change=True)
    width: float = option(default=0.4, above=0, may_change=True)
    sparsity: float = option(default=0.05, least=0, may_change=True)
    attraction: float = option(default=0.02, least=0, may_change=True)
    squared: bool = option(default=True, may_change=True)
    rounds: int = option(default=1, least=1, may_change=True)
    tolerance: float = option(default=1e-3, above=0, may_change=True)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers of a forest without edges until fitted. Raises LDLError."""
        super().build(in_features, labels)
        if labels.kind != "nominal" or len(labels) != 2:
            raise LDLError(
                f"StructuredEdges needs two labels, no edge and edge; the data have {len(labels)} {labels.kind} labels"
            )
        if self.votes > self.trees:
            raise LDLError(f"StructuredEdges.votes {self.votes} must be in 1..{self.trees}, the number of trees")
        if not self.scales:
            raise LDLError("StructuredEdges.scales [] must be one or more numbers in 0.05..20")
        if self.dsna and not self.kept:
            raise LDLError(
                "StructuredEdges.dsna needs patches in the leaves; set StructuredEdges.kept to their number per leaf, "
                "such as 20"
            )
        self._hold(unlearned_forest(self.components if self.kept else 0), torch.device("cpu"))

    def fit_images(self, batches: Iterable[Batch], collective: Collective) -> None:
        """Grow the forest on images with ``boundaries`` and ``segments`` (B, A, H, W). Raises LDLError."""
        with self._threads() as threads, ThreadPoolExecutor(threads) as pool:
            scenes = [scene for batch in pool.map(self._scenes, batches) for scene in batch]
        self.fit_scenes(scenes, collective)

    def fit_scenes(self, scenes: Sequence[Scene], collective: Collective) -> None:
        """Grow the forest on prepared images. Raises LDLError if there are none."""
        if not scenes:
            raise LDLError("StructuredEdges has no images to fit; give at least one")
        features = max(1, round(self.share * PATCH_FEATURES))
        tries = max(1, round(features**0.5))
        growth = GrowthOptions(
            tries, self.depth, self.min_leaf, self.hyperplanes, self.terms, self.shrinkage, self.classes, self.balance,
            self.early,
        )  # fmt: skip
        numbers = range(collective.rank, self.trees, collective.world_size)
        seed, device = run_seed(self.seed), self.roots.device
        # Sums of BLAS depend on its number of threads.
        with self._threads() as threads, threadpool_limits(1):
            descriptor = learn_descriptor(scenes, self.components, seed, device, collective) if self.kept else None
            grown = grow_trees(
                scenes, growth, numbers, features=features, patches=self.patches, kept=self.kept,
                descriptor=descriptor, seed=seed, threads=threads,
            )  # fmt: skip
            mine = list(track(grown, len(numbers), "growing trees", self.shows_progress))
        terms = min(self.terms, features) if self.hyperplanes else 1
        self._hold(join_edges(mine, terms, descriptor, device, collective), device)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """Return edge probabilities of pixels: (B, 3, H, W) uint8 RGB to (B, H, W, 2) float32."""
        arrays = images.permute(0, 2, 3, 1).cpu().numpy()
        strength = torch.empty(arrays.shape[:3], dtype=torch.float32)
        with self._threads() as threads, torch.autocast("cpu", enabled=False):
            detector = self._ready(threads)
            for row, array in enumerate(arrays):
                strength[row] = torch.from_numpy(detector.detect(array))
        return torch.stack([1 - strength, strength], -1).to(images.device)

    @property
    def forest(self) -> EdgeForest:
        """The trees."""
        return forest_of({name: learned.cpu().numpy() for name, learned in self.named_buffers(recurse=False)})

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are a forest of segmentations, with the patches in its leaves."""
        check_forest(self, self.components if self.kept else 0)

    def _ready(self, threads: int) -> EdgeDetector:
        """Return the detector for the current options."""
        declared = options_of(StructuredEdges).items()
        chosen = [threads, *(getattr(self, name) for name, declared in declared if declared.may_change)]
        if self._detector is None or self._detector[0] != chosen:
            forest, rules = (
                self.forest,
                NeighbourWeighting(*(getattr(self, name) for name in NeighbourWeighting._fields)),
            )
            near = PatchNeighbours(forest.kept, rules, threads, self.blend) if self.dsna and forest.kept else None
            detector = EdgeDetector(
                forest, self.votes, self.sharpen, self.scales, self.gain, near, threads, self.floor, self.mirror
            )
            self._detector = chosen, detector
        return self._detector[1]

    def _hold(self, forest: EdgeForest, device: torch.device) -> None:
        self._detector = None
        self.register_buffers(**{name: torch.from_numpy(array).to(device) for name, array in forest.arrays().items()})

    @contextmanager
    def _threads(self) -> Iterator[int]:
        """Yield the number of threads while torch uses one, because its splitting of arrays changes bits of ``pow``."""
        with one_thread() as before:
            yield self.threads or before

    def _load_from_state_dict(self, *args: Any) -> None:
        self._detector = None
        super()._load_from_state_dict(*args)

    def _scenes(self, batch: Batch) -> list[Scene]:
        arrays = batch["input"].permute(0, 2, 3, 1).cpu().numpy()
        drawn, segments = (batch[name].cpu().numpy() for name in self.wants)
        return [make_scene(*image, self.floor) for image in zip(arrays, drawn, segments)]
