"""Cost-sensitive forest of oblique trees (Huang, Loy & Tang 2016)."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor
from typing_extensions import override

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding import inverse_root, rbf
from ldl.methods.evidence import Evidence, of_leaves
from ldl.methods.forest.oblique import ObliqueForest, ObliqueRules, Truth, grow_oblique, join_oblique, leaf_means, reach
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows, one_thread
from ldl.methods.training_rows import check_rows
from ldl.moved import old_names
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.validation.tensors import (
    check_trees,
    longest_path,
    refuse,
)

__getattr__ = old_names(__name__)

MOST_COUNT = 2**31 - 2
"""Largest count in int32."""


@options
class CostSensitiveForest(FittedHead):
    """Forest whose nodes split by a linear support vector machine with higher costs of rare labels.

    A tree is grown on a bootstrap sample. For ordinal labels, a node regresses the values on some of the features by a
    linear SVR with squared loss and sends rows below the node's mean label to the left (Eq. 10). The cost of a row is
    f(p) = (1 - p) / p, where p is the share of its label in the node. For nominal and grid labels, a node clusters
    distributions or points by 2-means and separates the clusters by a linear SVM with costs from the clusters' shares
    (Eq. 9). Of several random sets of features, the set with the largest gain counts: the variance of values, or the
    entropy of labels, of rows weighted by the inverse frequency of their label in the node. A leaf predicts the mean of
    its rows, the forest the mean over its trees.

    Details that the paper does not state: the intercept is not penalised. Costs are divided by their mean in the node.
    Features are centred and divided by one number, so that their mean squared norm is 1 and ``penalty`` has no unit. If
    a machine sends all rows to the rarer cluster, they are split at their mean score. A node of equal labels, or that
    no set of features splits, is a leaf. NaN in training raises an error.

    The same seed gives the same forest for any number of threads and processes. Processes share the trees.

    Args:
        trees: Number of trees.
        depth: Splits on the longest path.
        min_samples: Smallest number of draws in a node that is split.
        features: Share of the features in a random set, in (0, 1]. None uses the square root of their number, as in the
            paper. 1 is a single set of all features.
        sets: Number of random sets that a node tries.
        penalty: C of the support vector machines: the larger, the closer the fit.
        cap: Largest cost f, which is unbounded for rare labels; 0 gives all rows equal costs.
        epsilon: Half the tube of the SVR, in the unit of the values, or of their logarithms where ``log_offset`` is
            set; 0, ridge regression, has a closed form.
        split_at: Label of a node at which rows are split, its ``mean`` or its ``median``.
        log_offset: Nodes regress log(value + this), for values such as ages, whose differences count less the larger
            they are; None regresses the values. Leaves hold means of the values all the same.
        kernel: ``linear`` takes the features as they are. Else they become k(x, z) of training rows z, orthogonalised,
            with k the ``rbf`` exp(-gamma ||x - z||^2), or its ``sum`` with the linear x.z.
        gamma: Of the kernel, for features of mean squared norm 1.
        landmarks: Largest number of rows z, drawn at random.
        sampling: Size of a bootstrap sample, as a share of the training rows, in (0, 1].
        replace: Whether rows are drawn with replacement.
        seed: Seed of the forest; None uses the run's seed.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import CostSensitiveForest
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(CostSensitiveForest(trees=5)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = (
        "threshold", "weights", "centre", "scale", "landmark", "root", "leaf_targets", "leaf_values"
    )  # fmt: skip
    leaf_targets: Tensor = buffer()
    leaf_values: Tensor = buffer()
    centre: Tensor = buffer()
    scale: Tensor = buffer()
    landmark: Tensor = buffer()
    root: Tensor = buffer()

    trees: int = option(default=20, least=1, most=10_000)
    depth: int = option(default=10, least=0)
    min_samples: int = option(default=5, least=1)
    features: float | None = option(default=None, above=0, most=1, null="the square root of their number")
    sets: int = option(default=5, least=1, most=1000)
    penalty: float = option(default=5.0, above=0, most=1e6)
    cap: float = option(default=100.0, least=0, most=math.inf)
    epsilon: float = option(default=0.0, least=0)
    split_at: Literal["mean", "median"] = "mean"
    log_offset: float | None = None
    kernel: Literal["linear", "rbf", "sum"] = "linear"
    gamma: float = option(default=0.1, above=0)
    landmarks: int = option(default=1000, least=1)
    sampling: float = option(default=1.0, above=0, most=1)
    replace: bool = True
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, with one uniform leaf until fitted. Raises LDLError."""
        super().build(in_features, labels)
        none, one = torch.zeros(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        forest = ObliqueForest(
            one, one - 1, one.clone(), torch.zeros(1).double(), none.reshape(0, 1), torch.zeros(0, 1).double(),
            one + 1, one.clone(), one + 1,
        )  # fmt: skip
        self.register_buffers(**forest._asdict())
        uniform = torch.full((1, len(labels)), 1 / len(labels)).double()
        points = labels.points.double() if labels.has_values else torch.zeros(len(labels), 0).double()
        self.register_buffers(leaf_targets=uniform, leaf_values=uniform @ points)
        self.register_buffers(centre=torch.zeros(in_features).double(), scale=torch.ones(()).double())
        self.register_buffers(landmark=torch.zeros(0, in_features).double(), root=torch.zeros(0, 0).double())
        self._longest = 0

    @property
    def forest(self) -> ObliqueForest:
        """The trees."""
        return ObliqueForest(*(getattr(self, name) for name in ObliqueForest._fields))

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Grow the forest; rows without values get those of their decoded targets.

        The weights are the odds of a row in the bootstrap samples, and their sum replaces N in ``sampling``.
        Raises LDLError for no rows, a bad feature or target, or values without a logarithm.
        """
        check_rows(type(self).__name__, rows)
        target = rows.target.double()
        values = self._values(target, rows.value)
        # One thread, because sums of several depend on how many there are.
        with one_thread(), threadpool_limits(1):
            mapped = self._learn_map(rows.features.double(), rows.share, collective)
        truth = self._truth(target, values)
        width = mapped.shape[1]
        tried = width**-0.5 if self.features is None else self.features
        rules = ObliqueRules(
            self.depth, self.min_samples, max(1, round(tried * width)), self.sets, self.penalty, self.cap,
            self.epsilon, self.split_at == "median",
        )  # fmt: skip
        numbers = range(collective.rank, self.trees, collective.world_size)
        seed = run_seed(self.seed)
        grown = grow_oblique(
            mapped.cpu().numpy(), truth, rules, numbers, self.sampling, self.replace, seed, rows.weight_array
        )
        trees = list(track(grown, len(numbers), "growing trees", self.shows_progress))
        forest = join_oblique(trees, rules.features, target.device, collective)
        self.register_buffers(**forest._asdict())
        self._longest = longest_path(forest.roots, forest.split >= 0, forest.child)
        self.leaf_targets, self.leaf_values = leaf_means(forest, target), leaf_means(forest, values)

    def forward(self, features: Tensor) -> Tensor:
        """Average the leaves of the trees: (..., F) to (..., C), at least float32."""
        return self._mean(features, self.leaf_targets)

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the mean value of the leaves, (...,) or (..., 2); None for nominal labels."""
        if not self.labels.has_values:
            return None
        value = self._mean(features, self.leaf_values)
        return value.squeeze(-1) if self.labels.ndim == 1 else value

    @override
    def describe_buffers(self) -> dict[str, str]:
        mapped = "D" if len(self.landmark) else "F"
        return {
            "centre": "F: finite",
            "scale": ": positive",
            "landmark": "Z F: finite",
            "root": "Z D: finite" if len(self.landmark) else "Z Z: finite",
            "roots": "T",
            "split": "M: -1 <= number < I",
            "child": "M",
            "threshold": "M: finite",
            "columns": f"I S: 0 <= number < {mapped}",
            "weights": "I S: finite",
            "sizes": "L: 1 <= number <= R",
            "rows": f"R: 0 <= number <= {MOST_COUNT}",
            "draws": f"R: 1 <= number <= {MOST_COUNT}",
            "leaf_targets": "L C: distributions",
            "leaf_values": f"L {self.labels.ndim}: finite",
        }

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are a forest and a map of the features."""
        super().check_state()
        forest = self.forest
        self._longest = check_trees(self, forest.roots, forest.split >= 0, forest.child, len(forest.sizes), self.depth)
        if (total := int(forest.sizes.sum())) != len(forest.rows):
            refuse(self, "sizes", f"sums to {total}, not to the {len(forest.rows)} rows of the leaves")

    def map(self, features: Tensor) -> Tensor:
        """Map features (B, F) to inputs of the trees (B, D), in the precision of the head's buffers."""
        rows = (features.to(self.centre.dtype) - self.centre) / self.scale
        return self._similarity(rows, self.landmark) @ self.root if len(self.landmark) else rows

    def leaves(self, features: Tensor) -> Tensor:
        """Return the numbers of the leaves that features (B, F) reach, (B, trees)."""
        return reach(self.map(features), self.forest, self._longest)

    def evidence(self, features: Tensor) -> Evidence:
        """Return the leaves of one instance (F,), one per tree, with equal weights."""
        return of_leaves(self.leaves(features[None])[0], self.leaf_targets)

    def _mean(self, features: Tensor, held: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            return as_rows(held[self.leaves(features.reshape(-1, features.shape[-1]))].mean(1), features)

    def _values(self, target: Tensor, value: Tensor | None) -> Tensor:
        """(N, number of axes)."""
        if not self.labels.has_values:
            return target.new_zeros(len(target), 0)
        value = self.labels.decode(target) if value is None else value
        return value.to(target).reshape(len(target), -1)

    def _truth(self, target: Tensor, values: Tensor) -> Truth:
        codes = self.to_scale(values) if self.labels.has_values else target
        if not bool(codes.isfinite().all()):
            lowest = float(values.min())
            raise LDLError(
                f"{type(self).__name__}.log_offset {self.log_offset} gives no logarithm of the value {lowest:g}; use "
                f"more than {-lowest:g}, or null"
            )
        points = self.labels.points.to(values) if self.labels.has_values else None
        labels = target.argmax(1) if points is None else torch.cdist(values, points).argmin(1)
        regresses = self.labels.kind == "ordinal"
        return Truth(codes.cpu().numpy(), labels.cpu().numpy(), regresses, self.labels.has_values)

    def to_scale(self, values: Tensor) -> Tensor:
        """Return values on the scale of ``log_offset``; :meth:`from_scale` is the inverse."""
        return values if self.log_offset is None else (values + self.log_offset).log()

    def from_scale(self, values: Tensor) -> Tensor:
        """Return the values of scaled values; the inverse of :meth:`to_scale`."""
        return values if self.log_offset is None else values.exp() - self.log_offset

    def _similarity(self, rows: Tensor, landmarks: Tensor) -> Tensor:
        similarity = rbf(rows, landmarks, self.gamma)
        return similarity + rows @ landmarks.T if self.kernel == "sum" else similarity

    def _learn_map(self, features: Tensor, share: Tensor, collective: Collective) -> Tensor:
        """Fit the map of the features on the first process, because other machines have other bits, and apply it.

        The share (N,) of each row in means has the sum 1.
        """
        self.centre = collective.broadcast(share @ features)
        scale = (share @ (features - self.centre).square().sum(1)).sqrt()
        self.scale = collective.broadcast(torch.where(scale > 0, scale, torch.ones_like(scale)))
        self.landmark = features.new_zeros(0, features.shape[1])
        if self.kernel != "linear":
            generator = torch.Generator().manual_seed(run_seed(self.seed))
            chosen = torch.randperm(len(features), generator=generator)[: self.landmarks].sort().values
            landmark = ((features - self.centre) / self.scale)[chosen.to(features.device)]
            self.root = inverse_root(self._similarity(landmark, landmark))
            self.landmark = landmark
            mapped = self.map(features)
            spread = (share @ (mapped - share @ mapped).square().sum(1)).sqrt()
            root = self.root / torch.where(spread > 0, spread, torch.ones_like(spread))
            # By columns, of which each process may have another number.
            self.root = collective.gather(root.T)[0].T.contiguous()
        return self.map(features)
