"""Cost-sensitive forest of oblique trees (Huang, Loy & Tang 2016)."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.embedding.kernels import inverse_root, rbf
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.forest.oblique import ObliqueRules, Truth, grow_oblique
from ldl.methods.forest.oblique_flat import ObliqueForest, join_oblique, leaf_means, reach
from ldl.methods.one_thread import one_thread
from ldl.methods.rows import check_rows
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.trust.learned import check_numbers, check_range, check_shapes, check_simplex, check_trees, longest_path, refuse

MOST = 2**31 - 2
"""Of what int32 counts."""


@options
class CostSensitiveForest(FittedHead):
    """Forest whose nodes split by a linear support vector machine with costs that mind rare labels.

    A tree sees a bootstrap sample. Where labels are values on a line, a node regresses them on some of the features
    by a linear SVR with squared loss, each row with the cost f(p) = (1 - p) / p of the share p that its label has in
    the node, and sends rows below the node's mean label to the left (Eq. 10). Labels without order, and points of a
    plane, are parted in two by 2-means, of the distributions or the points, and the clusters told apart by a linear
    SVM with the costs of the clusters' shares (Eq. 9). Of several random sets of features, that with the largest gain
    is kept: variance of the values, or entropy of the labels, of rows weighted by the inverse frequency of their label
    in the node. A leaf predicts the mean of its rows, the forest the mean over its trees.

    Rules where the paper is silent: the intercept is not penalised, and costs are divided by their mean in the node;
    features are centred and divided by one number, so that their mean squared norm is 1 and ``penalty`` has no unit;
    where costs, by which the rarer cluster weighs more than the other, lead a machine to give it all rows, these are
    parted at their mean score; a node of equal labels, or that no set of features splits, is a leaf. NaN is refused in
    training.

    The same seed gives the same forest for any number of threads and processes; processes share the trees.

    Args:
        trees: Number of trees.
        depth: Splits on the longest path.
        min_samples: A node with fewer draws is a leaf.
        features: Share of the features in a random set, in (0, 1]; None takes the square root of their number, as the
            paper does. With 1 there is one set.
        sets: Random sets that a node tries.
        penalty: C of the support vector machines: the larger, the closer the fit.
        cap: Limit of the costs f, which grow without bounds as labels get rare; 0 makes all rows cost the same.
        epsilon: Half the tube of the SVR, in the unit of the values, or of their logarithms where ``log_offset`` is
            set; 0, ridge regression, has a closed form.
        split_at: Which label of a node parts left from right, its ``mean`` or its ``median``.
        log_offset: Nodes regress log(value + this), for values such as ages, whose differences count less the larger
            they are; None regresses the values. Leaves hold means of the values all the same.
        kernel: ``linear`` takes the features as they are. Else they become k(x, z) of training rows z, orthogonalised,
            with k the ``rbf`` exp(-gamma ||x - z||^2), or its ``sum`` with the linear x.z.
        gamma: Of the kernel, for features of mean squared norm 1.
        landmarks: At most so many z, drawn at random.
        sampling: Draws of a tree, as a share of the training rows, in (0, 1].
        replace: Whether rows are drawn with replacement.
        seed: Seed of the forest; None takes the run's.
    """

    uses_value: ClassVar[bool] = True
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
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's")

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, of one leaf that holds the uniform distribution until fitted. Raises LDLError."""
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
    def fit(self, features: Tensor, target: Tensor, collective: Collective, value: Tensor | None = None) -> None:
        """Grow the forest on (N, F) and (N, C), with the labels themselves, (N,) or (N, 2); None decodes ``target``.

        Raises LDLError: no rows, a bad feature or target, or values of which there is no logarithm.
        """
        check_rows(type(self).__name__, features, target)
        target = target.double()
        values = self._values(target, value)
        # One thread, because sums of several depend on how many there are.
        with one_thread(), threadpool_limits(1):
            mapped = self._learn_map(features.double(), collective)
        truth = self._truth(target, values)
        width = mapped.shape[1]
        share = width**-0.5 if self.features is None else self.features
        rules = ObliqueRules(
            self.depth, self.min_samples, max(1, round(share * width)), self.sets, self.penalty, self.cap,
            self.epsilon, self.split_at == "median",
        )  # fmt: skip
        numbers = range(collective.rank, self.trees, collective.world_size)
        seed = run_seed(self.seed)
        grown = grow_oblique(mapped.cpu().numpy(), truth, rules, numbers, self.sampling, self.replace, seed)
        trees = list(track(grown, len(numbers), "growing trees", self.shows_progress))
        forest = join_oblique(trees, rules.features, features.device, collective)
        self.register_buffers(**forest._asdict())
        self._longest = longest_path(forest.roots, forest.split >= 0, forest.child)
        self.leaf_targets, self.leaf_values = leaf_means(forest, target), leaf_means(forest, values)

    def forward(self, features: Tensor) -> Tensor:
        """Mean over the trees of the leaves reached: (..., F) to (..., C), at least float32."""
        return self._mean(features, self.leaf_targets)

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Mean value of the leaves reached, (...,) or (..., 2); None for nominal labels."""
        if not self.labels.has_values:
            return None
        value = self._mean(features, self.leaf_values)
        return value.squeeze(-1) if self.labels.ndim == 1 else value

    def check_state(self) -> None:
        """Raise LDLError where the buffers are no forest, or no map of the features."""
        sizes = check_shapes(
            self, {"C": len(self.labels), "F": self.in_features, "V": self.labels.ndim}, centre="F", scale="",
            landmark="Z F", root="Z D" if len(self.landmark) else "Z Z", roots="T", split="M", child="M", threshold="M",
            columns="I S", weights="I S", sizes="L", rows="R", draws="R", leaf_targets="L C", leaf_values="L V",
        )  # fmt: skip
        forest = self.forest
        check_range(self, "split", forest.split, sizes["I"], -1)
        check_range(self, "columns", forest.columns, sizes["D" if sizes["Z"] else "F"])
        self._longest = check_trees(self, forest.roots, forest.split >= 0, forest.child, sizes["L"], self.depth)
        for name, most in (("sizes", sizes["R"]), ("rows", MOST), ("draws", MOST)):
            check_range(self, name, getattr(self, name), most + 1, 0 if name == "rows" else 1)
        if (total := int(forest.sizes.sum())) != sizes["R"]:
            refuse(self, "sizes", f"sums to {total}, not to the {sizes['R']} rows of the leaves")
        if not self.scale > 0:
            refuse(self, "scale", f"is {float(self.scale)}, not positive")
        for name in ("centre", "scale", "landmark", "root", "threshold", "weights", "leaf_values"):
            check_numbers(self, name, getattr(self, name))
        check_simplex(self, "leaf_targets", self.leaf_targets)

    def map(self, features: Tensor) -> Tensor:
        """What the trees see of features (B, F): (B, D), in the precision of the head's buffers."""
        rows = (features.to(self.centre.dtype) - self.centre) / self.scale
        return self._similarity(rows, self.landmark) @ self.root if len(self.landmark) else rows

    def leaves(self, features: Tensor) -> Tensor:
        """Numbers of the leaves that features (B, F) reach, (B, trees)."""
        return reach(self.map(features), self.forest, self._longest)

    def evidence(self, features: Tensor) -> Evidence:
        """The leaves that one instance (F,) reaches, one a tree, all of the same weight."""
        leaves = self.leaves(features[None])[0].long()
        names = [f"tree {tree}, leaf {leaf}" for tree, leaf in enumerate(leaves.tolist())]
        return weigh(names, torch.full((len(leaves),), 1 / len(leaves)), self.leaf_targets[leaves])

    def _mean(self, features: Tensor, held: Tensor) -> Tensor:
        with torch.autocast(features.device.type, enabled=False):
            mean = held[self.leaves(features.reshape(-1, features.shape[-1]))].mean(1)
        dtype = torch.promote_types(features.dtype, torch.float32)
        return mean.to(dtype).reshape(*features.shape[:-1], held.shape[1])

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
        """Values on the scale of ``log_offset``; :meth:`from_scale` is the inverse."""
        return values if self.log_offset is None else (values + self.log_offset).log()

    def from_scale(self, values: Tensor) -> Tensor:
        """Values of what :meth:`to_scale` gives."""
        return values if self.log_offset is None else values.exp() - self.log_offset

    def _similarity(self, rows: Tensor, landmarks: Tensor) -> Tensor:
        similarity = rbf(rows, landmarks, self.gamma)
        return similarity + rows @ landmarks.T if self.kernel == "sum" else similarity

    def _learn_map(self, features: Tensor, collective: Collective) -> Tensor:
        """What the trees see of the training rows, by the map of the first process; another machine has other bits."""
        self.centre = collective.broadcast(features.mean(0))
        scale = (features - self.centre).square().sum(1).mean().sqrt()
        self.scale = collective.broadcast(torch.where(scale > 0, scale, torch.ones_like(scale)))
        self.landmark = features.new_zeros(0, features.shape[1])
        if self.kernel != "linear":
            generator = torch.Generator().manual_seed(run_seed(self.seed))
            chosen = torch.randperm(len(features), generator=generator)[: self.landmarks].sort().values
            landmark = ((features - self.centre) / self.scale)[chosen.to(features.device)]
            self.root = inverse_root(self._similarity(landmark, landmark))
            self.landmark = landmark
            mapped = self.map(features)
            spread = (mapped - mapped.mean(0)).square().sum(1).mean().sqrt()
            root = self.root / torch.where(spread > 0, spread, torch.ones_like(spread))
            # By columns, of which each process may have another number.
            self.root = collective.gather(root.T)[0].T.contiguous()
        return self.map(features)
