"""Structured random forest (Chen, Wang, Feng & Liu, Neurocomputing 2018)."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ldl.batch import run_seed
from ldl.collective import Collective, interleave
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence, of_leaves
from ldl.methods.forest.flat import FlatForest, join_trees
from ldl.methods.forest.grower import GrowthRules, fitted_tree, grow_trees
from ldl.methods.forest.predict import ROWS_AT_ONCE, average, average_without, reach
from ldl.methods.forest.sampling import bootstrap
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows
from ldl.methods.training_rows import check_rows
from ldl.metrics.functional import kl, mean_of
from ldl.moved import old_names
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.validation.tensors import check_trees, longest_path

__getattr__ = old_names(__name__)

SplitSearch = Literal["exact", "adaptive", "histogram", "random"]
Criterion = Literal["clusters", "log_loss"]
OUT_OF_BAG_ROWS = 1 << 18
"""Rows per block of the out-of-bag estimate, a multiple of 8."""


@options
class StructRF(FittedHead):
    """Structured random forest: every node clusters its label distributions in two and predicts the cluster.

    Each tree is grown on a bootstrap sample. A node clusters its distributions by 2-means. The split is the feature and
    threshold with the highest information gain about the cluster (Chen et al. 2018, Algorithm 1, Eq. 1 to 3). A leaf
    holds the mean distribution of its rows, and the forest predicts the mean over its trees (Eq. 4). The defaults are
    the paper's settings, which do not include the smallest node.

    The criterion ``log_loss`` does not cluster. Its split has the largest decrease of the sum over draws of
    KL(row || mean of its side), which is n H(m) - n_l H(m_l) - n_r H(m_r) with the entropy H of mean distributions.

    Details that the paper does not state: 2-means starts at the distribution farthest from the node's mean and its
    mirror image, followed by at most 20 Lloyd iterations. Of equal gains the first counts, by feature, then by
    threshold. A node of equal distributions, or without a gain, is a leaf. Features are compared as float32. NaN raises
    an error: in training everywhere, in prediction where a split reads it.

    The same seed gives the same forest for any number of threads and processes. Processes share the trees. The search
    ``histogram`` reads the features in blocks, so they may be a memory map larger than memory. It holds about
    F + 4 C + 25 bytes per training row, 30 + 3 C more in each thread, and 1/8 byte per tree for ``out_of_bag``.

    Args:
        trees: Number of trees.
        depth: Splits on the longest path, 0 (one leaf) to 64.
        sampling: Size of a bootstrap sample, as a share of the training rows, in (0, 1].
        replace: Whether to draw with replacement; if not, ``sampling`` 1 gives each tree all rows.
        features: Share of the features that a node tries, in (0, 1], drawn at each node.
        min_samples: Smallest number of draws in a node that is split.
        min_leaf: Smallest number of draws on each side of a split.
        min_gain: Gain that a split must exceed, in nats.
        criterion: Criterion of a split: ``clusters``, the paper's information gain about the two clusters, or
            ``log_loss``, the decrease of the summed KL divergence of the rows from the mean of their side.
        search: Thresholds that are tried: ``exact`` all midpoints between neighbouring values; ``adaptive`` the paper's
            variable step over them (Eq. 5); ``histogram`` boundaries of quantile bins; ``random`` one threshold per
            feature, between its smallest and largest value in the node (extra-trees).
        alpha: Longest adaptive step, as a share of the node's rows.
        beta: Rate at which the adaptive step shortens near good gains.
        bins: Bins of a feature for ``histogram``, 2 to 256.
        out_of_bag: Whether to estimate the mean KL divergence of each training row from the trees that saw neither the
            row nor another row of its group. There is no estimate if fewer than half of the rows have at least a tenth
            of the trees for it.
        seed: Seed of the forest; None uses the run's seed.
        threads: CPU threads; None uses torch's number.

    Attributes:
        importances: (F,) share of each feature in the information gain of all splits; sums to 1, or is 0 throughout.
        out_of_bag_kl: Out-of-bag estimate of the mean KL divergence, in nats; NaN without an estimate.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import StructRF
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(StructRF(trees=10)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    rows_at_once: ClassVar[int] = ROWS_AT_ONCE
    exact: ClassVar[tuple[str, ...]] = ("threshold", "values")
    uses_weight: ClassVar[bool] = True
    roots: Tensor = buffer()
    importances: Tensor = buffer()
    out_of_bag_kl: Tensor = buffer()

    trees: int = option(default=50, least=1, most=10_000)
    depth: int = option(default=20, least=0, most=64)
    sampling: float = option(default=0.8, above=0, most=1, what="a share")
    replace: bool = True
    features: float = option(default=1.0, above=0, most=1, what="a share")
    min_samples: int = option(default=2, least=1)
    min_leaf: int = option(default=1, least=1)
    min_gain: float = option(default=0.0, least=0)
    criterion: Criterion = "clusters"
    search: SplitSearch = "exact"
    alpha: float = option(default=0.25, least=0)
    beta: float = 8.0
    bins: int = option(default=256, least=2, most=256)
    out_of_bag: bool = True
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")
    threads: int | None = option(default=None, least=1, most=1024, null="torch's number", may_change=True)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, with one uniform leaf until fitted. Raises LDLError."""
        if self.criterion == "log_loss" and self.search == "adaptive":
            raise LDLError(
                "StructRF.search 'adaptive' is a step for the gain about clusters; with criterion 'log_loss' "
                "use exact, histogram or random"
            )
        super().build(in_features, labels)
        zero, uniform = torch.zeros(1, dtype=torch.int32), torch.full((1, len(labels)), 1 / len(labels))
        forest = FlatForest(zero, zero - 1, torch.zeros(1), zero.clone(), uniform)
        self.register_buffers(**forest.buffers())
        self.register_buffers(importances=torch.zeros(in_features), out_of_bag_kl=torch.tensor(torch.nan))
        self._longest = 0

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Grow the forest; groups only affect the out-of-bag estimate.

        The weights are the odds of a row in the bootstrap samples, and their sum replaces N in ``sampling``.

        Raises LDLError for no rows, or a feature that is not finite.
        """
        check_rows(type(self).__name__, rows)
        device = rows.features.device
        features = rows.features.float().cpu().numpy()
        distributions = np.ascontiguousarray(rows.target.float().cpu().numpy())
        tries = max(1, round(self.features * self.in_features))
        rules = GrowthRules(
            get_args(SplitSearch).index(self.search), self.depth, self.min_samples, self.min_leaf, self.min_gain, tries,
            self.alpha, self.beta, 32, get_args(Criterion).index(self.criterion),
        )  # fmt: skip
        numbers = range(collective.rank, self.trees, collective.world_size)
        grown = grow_trees(
            features, distributions, rules, numbers,
            sampling=self.sampling, replace=self.replace, bins=self.bins, seed=run_seed(self.seed),
            threads=self.threads or torch.get_num_threads(), weight=rows.weight_array,
        )  # fmt: skip
        trees, gains = [], np.zeros((len(numbers), self.in_features))
        for number, tree in enumerate(track(grown, len(numbers), "growing trees", self.shows_progress)):
            trees.append(fitted_tree(tree, distributions))
            gains[number] = tree.gain
        forest = join_trees(trees, distributions.shape[1], device, collective)
        self.register_buffers(**forest.buffers())
        self._longest = longest_path(forest.roots, forest.feature >= 0, forest.child)
        gain = interleave(collective.gather(torch.from_numpy(gains).to(device))).sum(0)
        self.importances = (gain / gain.sum() if gain.sum() > 0 else gain).float()
        if self.out_of_bag:
            groups = np.arange(len(rows), dtype=np.int32) if rows.group is None else rows.group.cpu().numpy()
            estimate = self._measure_out_of_bag(features, distributions, groups, rows.weight_array, collective)
            self.out_of_bag_kl = estimate.to(device)

    def forward(self, features: Tensor) -> Tensor:
        """Average the leaves of the trees: (..., F) to (..., C), at least float32.

        Raises LDLError if a tree reads a feature that is NaN.
        """
        rows = features.reshape(-1, features.shape[-1]).float()
        output = average(rows, self.forest, self._longest, self.threads or torch.get_num_threads())
        return as_rows(output, features)

    def evidence(self, features: Tensor) -> Evidence:
        """Return the leaves of one instance (F,), one per tree, with equal weights."""
        return of_leaves(reach(features[None].float(), self.forest, self._longest)[0], self.forest.values)

    @property
    def forest(self) -> FlatForest:
        """The trees."""
        return FlatForest.of(self)

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {
            "roots": "K",
            "feature": "M: -1 <= number < F",
            "threshold": "M: finite",
            "child": "M",
            "values": "L C: distributions",
            "importances": "F",
            "out_of_bag_kl": "",
        }

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are a forest of this depth with distributions in its leaves."""
        super().check_state()
        forest = self.forest
        inner, leaves = forest.feature >= 0, len(forest.values)
        self._longest = check_trees(self, forest.roots, inner, forest.child, leaves, self.depth)

    def summary(self) -> dict[str, float]:
        """Return the out-of-bag estimate, if there is one."""
        return {} if bool(self.out_of_bag_kl.isnan()) else {"out_of_bag_kl": float(self.out_of_bag_kl)}

    def _measure_out_of_bag(
        self,
        features: np.ndarray,
        distributions: np.ndarray,
        group: np.ndarray,
        weight: np.ndarray | None,
        collective: Collective,
    ) -> Tensor:
        """Share the rows over the processes; each row's sum runs over the trees in order, so the bits agree."""
        mine = slice(collective.rank, None, collective.world_size)
        features_here, targets_here, groups_here = features[mine], distributions[mine], group[mine]
        count = len(features_here)
        seen = np.zeros((self.trees, -(-count // 8)), np.uint8)
        whole = np.zeros(group.max() + 1, np.bool_)
        for number in range(self.trees):
            whole[:] = False
            drawn = bootstrap(len(features), self.sampling, self.replace, run_seed(self.seed), number, weight)[0]
            whole[group[drawn]] = True
            seen[number] = np.packbits(whole[groups_here], bitorder="little")
        on_cpu = FlatForest(*(tensor.cpu() for tensor in self.forest.buffers().values()))
        divergence, trusted = torch.empty(2, count, dtype=torch.float64)
        for first in range(0, count, OUT_OF_BAG_ROWS):
            block = slice(first, first + OUT_OF_BAG_ROWS)
            unseen = seen[:, first // 8 : (first + OUT_OF_BAG_ROWS) // 8]
            predicted = average_without(
                torch.from_numpy(features_here[block]), on_cpu, unseen, self.threads or torch.get_num_threads()
            )
            divergence[block] = kl(predicted.double(), torch.from_numpy(targets_here[block]).double())
            saw = np.unpackbits(unseen, axis=1, count=len(predicted), bitorder="little").sum(0, dtype=np.int64)
            trusted[block] = torch.from_numpy(saw <= 0.9 * self.trees)
        table = torch.stack([divergence, trusted], 1).to(self.roots.device)
        divergence, trusted = interleave(collective.gather(table)).T
        # Few trees saw no row of a large group, and they do not represent the forest.
        if trusted.mean() < 0.5:
            return divergence.new_tensor(torch.nan).float()
        estimated = ~divergence.isnan()
        weights = None if weight is None else torch.from_numpy(weight).to(divergence.device)[estimated]
        return mean_of(divergence[estimated], weights).float()
