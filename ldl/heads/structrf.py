"""Structured random forest (Chen, Wang, Feng & Liu, Neurocomputing 2018)."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ldl.batch import run_seed
from ldl.collective import Collective, interleave
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.forest.draws import bootstrap
from ldl.methods.forest.flat import FlatForest, join_trees, plant
from ldl.methods.forest.growing import grow_trees
from ldl.methods.forest.predict import average, average_without, reach
from ldl.methods.forest.search import Rules
from ldl.methods.mapped import release
from ldl.methods.rows import check_rows
from ldl.metrics.functional import kl
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.trust.learned import check_numbers, check_range, check_shapes, check_simplex, check_trees, longest_path

Search = Literal["exact", "adaptive", "histogram", "random"]
Criterion = Literal["clusters", "log_loss"]
PART = 1 << 18
"""Rows of which the out-of-bag divergence is measured at a time, a multiple of 8."""


@options
class StructRF(FittedHead):
    """Structured random forest: every node clusters its label distributions in two and splits by that.

    A tree sees a bootstrap sample. A node parts its distributions by 2-means into two clusters; the split is the
    feature and threshold with the highest information gain about the cluster (Chen et al. 2018, Algorithm 1, Eq. 1 to
    3). A leaf holds the mean distribution of its rows, the forest predicts the mean over its trees (Eq. 4). The
    defaults are the paper's setting; it does not say how small a node may be.

    With the criterion ``log_loss`` nodes are not clustered: the split is that which lowers most the sum over draws of
    KL(row || mean of its side), n H(m) - n_l H(m_l) - n_r H(m_r) with H the entropy of mean distributions.

    Rules where the paper is silent: the first centres of 2-means are the distribution farthest from the node's mean
    and its mirror image, then Lloyd's rounds (at most 20) until no row moves; of equal gains the first stays, by
    feature, then by threshold; a node of equal distributions, or in which nothing gains, is a leaf. Features are
    compared as float32. NaN is refused, in training everywhere, in prediction where a split asks for it.

    The same seed gives the same forest for any number of threads and processes; processes share the trees. The search
    ``histogram`` reads the features in blocks, which may lie in a map of a file that is larger than memory. It holds
    about F + 4 C + 25 bytes of a training row, another 30 + 3 C in each thread, and an eighth in each tree where it
    measures ``out_of_bag``.

    Args:
        trees: Number of trees.
        depth: Splits on the longest path, 0 (one leaf) to 64.
        sampling: Draws of a tree, as a share of the training rows, in (0, 1].
        replace: Whether rows are drawn with replacement; without, and with ``sampling`` 1, each tree sees all.
        features: Share of the features that a node tries, in (0, 1]; 1 tries all, less draws them anew at each node.
        min_samples: A node with fewer draws is a leaf.
        min_leaf: Draws that each side of a split must keep.
        min_gain: A split must gain more than this, in nats.
        criterion: What a split is chosen by: ``clusters``, the paper's information gain about the two clusters, or
            ``log_loss``, how much it lowers the summed KL divergence of the rows from the mean of their side.
        search: Which thresholds are tried: ``exact`` all midpoints between neighbouring values; ``adaptive`` the
            paper's variable step over them (Eq. 5); ``histogram`` those between quantile bins; ``random`` one
            a feature, between its smallest and largest value in the node (as in extra trees).
        alpha: Longest adaptive step, as a share of the node's rows.
        beta: How fast the adaptive step shortens near good gains.
        bins: Bins of a feature for ``histogram``, 2 to 256.
        out_of_bag: Whether to measure the mean KL divergence of each training row under the trees that did not see it,
            nor another row of its group; not where fewer than half of the rows have a tenth of the trees for that.
        seed: Seed of the forest; None takes the run's.
        threads: Threads of a CPU; None takes torch's.

    Attributes:
        importances: (F,) share of each feature in the information gain of all splits; sums to 1, or is 0 throughout.
        out_of_bag_kl: The out-of-bag estimate of the mean KL divergence, in nats; NaN where there is none.
    """

    exact: ClassVar[tuple[str, ...]] = ("threshold", "values")
    uses_group: ClassVar[bool] = True
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
    search: Search = "exact"
    alpha: float = option(default=0.25, least=0)
    beta: float = 8.0
    bins: int = option(default=256, least=2, most=256)
    out_of_bag: bool = True
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's")
    threads: int | None = option(default=None, least=1, most=1024, null="torch's", may_change=True)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, of one leaf that holds the uniform distribution until fitted. Raises LDLError."""
        if self.criterion == "log_loss" and self.search == "adaptive":
            raise LDLError(
                "StructRF.search 'adaptive' is a step for the gain about clusters; with criterion 'log_loss' "
                "use exact, histogram or random"
            )
        super().build(in_features, labels)
        zero, uniform = torch.zeros(1, dtype=torch.int32), torch.full((1, len(labels)), 1 / len(labels))
        forest = FlatForest(zero, zero - 1, torch.zeros(1), zero.clone(), uniform)
        self.register_buffers(**forest._asdict())
        self.register_buffers(importances=torch.zeros(in_features), out_of_bag_kl=torch.tensor(torch.nan))
        self._longest = 0

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor, collective: Collective, group: Tensor | None = None) -> None:
        """Grow the forest on (N, F) and (N, C), and maybe groups (N,), which matter to the out-of-bag estimate alone.

        Raises LDLError: no rows, or a feature that is not finite.
        """
        check_rows(type(self).__name__, features, target)
        rows = features.float().cpu().numpy()
        distributions = np.ascontiguousarray(target.float().cpu().numpy())
        tries = max(1, round(self.features * self.in_features))
        rules = Rules(
            get_args(Search).index(self.search), self.depth, self.min_samples, self.min_leaf, self.min_gain, tries,
            self.alpha, self.beta, 32, get_args(Criterion).index(self.criterion),
        )  # fmt: skip
        numbers = range(collective.rank, self.trees, collective.world_size)
        grown = grow_trees(
            rows, distributions, rules, numbers,
            sampling=self.sampling, replace=self.replace, bins=self.bins, seed=run_seed(self.seed),
            threads=self.threads or torch.get_num_threads(),
        )  # fmt: skip
        trees, gains = [], np.zeros((len(numbers), rows.shape[1]))
        for number, tree in enumerate(track(grown, len(numbers), "growing trees", self.shows_progress)):
            trees.append(plant(tree, distributions))
            gains[number] = tree.gain
        forest = join_trees(trees, distributions.shape[1], features.device, collective)
        self.register_buffers(**forest._asdict())
        self._longest = longest_path(forest.roots, forest.feature >= 0, forest.child)
        gain = interleave(collective.gather(torch.from_numpy(gains).to(features.device))).sum(0)
        self.importances = (gain / gain.sum() if gain.sum() > 0 else gain).float()
        if self.out_of_bag:
            groups = np.arange(len(rows), dtype=np.int32) if group is None else group.cpu().numpy()
            self.out_of_bag_kl = self._measure_out_of_bag(rows, distributions, groups, collective).to(features.device)

    def forward(self, features: Tensor) -> Tensor:
        """Mean over the trees of the leaves reached: (..., F) to (..., C), at least float32.

        Raises LDLError where a tree asks for a feature that is NaN.
        """
        rows = features.reshape(-1, features.shape[-1]).float()
        output = average(rows, self.forest, self._longest, self.threads or torch.get_num_threads())
        dtype = torch.promote_types(features.dtype, torch.float32)
        return output.to(dtype).reshape(*features.shape[:-1], output.shape[-1])

    def evidence(self, features: Tensor) -> Evidence:
        """The leaves that one instance (F,) reaches, one a tree, all of the same weight."""
        leaves = reach(features[None].float(), self.forest, self._longest)[0].long()
        names = [f"tree {tree}, leaf {leaf}" for tree, leaf in enumerate(leaves.tolist())]
        return weigh(names, torch.full((len(leaves),), 1 / len(leaves)), self.forest.values[leaves])

    @property
    def forest(self) -> FlatForest:
        """The trees."""
        return FlatForest(*(getattr(self, name) for name in FlatForest._fields))

    def check_state(self) -> None:
        """Raise LDLError where the buffers are no forest of this depth with distributions in its leaves."""
        sizes = check_shapes(
            self, {"C": len(self.labels), "F": self.in_features}, roots="K", feature="M", threshold="M", child="M",
            values="L C", importances="F", out_of_bag_kl="",
        )  # fmt: skip
        forest = self.forest
        check_range(self, "feature", forest.feature, self.in_features, -1)
        self._longest = check_trees(self, forest.roots, forest.feature >= 0, forest.child, sizes["L"], self.depth)
        check_numbers(self, "threshold", forest.threshold)
        check_simplex(self, "values", forest.values)

    def summary(self) -> dict[str, float]:
        """The out-of-bag estimate, where there is one."""
        return {} if bool(self.out_of_bag_kl.isnan()) else {"out_of_bag_kl": float(self.out_of_bag_kl)}

    def _measure_out_of_bag(
        self, rows: np.ndarray, distributions: np.ndarray, group: np.ndarray, collective: Collective
    ) -> Tensor:
        """Processes share the rows; each row's sum runs over the trees in order, so the bits agree."""
        own, held, places = (part[collective.rank :: collective.world_size] for part in (rows, distributions, group))
        seen = np.zeros((self.trees, -(-len(own) // 8)), np.uint8)
        whole = np.zeros(group.max() + 1, np.bool_)
        for number in range(self.trees):
            whole[:] = False
            whole[group[bootstrap(len(rows), self.sampling, self.replace, run_seed(self.seed), number)[0]]] = True
            seen[number] = np.packbits(whole[places], bitorder="little")
        on_cpu = FlatForest(*(tensor.cpu() for tensor in self.forest))
        divergence, trusted = torch.empty(2, len(own), dtype=torch.float64)
        for first in range(0, len(own), PART):
            part = slice(first, first + PART)
            unseen = seen[:, first // 8 : (first + PART) // 8]
            predicted = average_without(
                torch.from_numpy(own[part]), on_cpu, unseen, self.threads or torch.get_num_threads()
            )
            divergence[part] = kl(predicted.double(), torch.from_numpy(held[part]).double())
            saw = np.unpackbits(unseen, axis=1, count=len(predicted), bitorder="little").sum(0, dtype=np.int64)
            trusted[part] = torch.from_numpy(saw <= 0.9 * self.trees)
            release(rows)
        table = torch.stack([divergence, trusted], 1).to(self.roots.device)
        divergence, trusted = interleave(collective.gather(table)).T
        # The few trees that saw no row of a large group are not what the forest is.
        return (divergence.nanmean() if trusted.mean() >= 0.5 else divergence.new_tensor(torch.nan)).float()
