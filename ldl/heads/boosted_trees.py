"""Gradient boosted trees on the divergence from whole distributions."""

from __future__ import annotations

from contextlib import closing
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.forest.boosted_tree import Shape
from ldl.methods.forest.boosting import (
    BoostingPlan,
    BoostingRows,
    Loss,
    Round,
    ThresholdSearch,
    Trees,
    boost,
    number_of,
)
from ldl.methods.forest.flat import FlatForest, join_trees
from ldl.methods.forest.histograms import Newton
from ldl.methods.forest.predict import ROWS_AT_ONCE, add_scores
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import as_rows
from ldl.methods.training_rows import check_rows, take
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.validation.tensors import check_trees, longest_path, refuse

DEPTHS = (2, 4, 10)
"""Depths that are tried, because the best order of interactions between features differs between tables."""
SHARE, FEATURES = 0.3, 100
"""Default share of the features, and smallest number; a tree with few features finds few interactions."""
PLAIN_DEPTH = 4
"""Depth without validation rows."""


@options
class BoostedTrees(FittedHead):
    """Gradient boosted trees: the softmax of scores to which every round adds a tree.

    The scores start as the logarithm of the mean distribution. A round takes the gradient p - d of the Kullback-Leibler
    divergence and the diagonal p (1 - p) of its Hessian (Friedman 2001, multinomial boosting, with a distribution d for
    the one label), and grows a tree of Newton steps on them: a split gains the sum over the labels of G^2 / (H + l2),
    of both sides less that of the node, and a leaf adds -G / (H + l2) (Chen & Guestrin 2016, Eq. 5 and 7). Splits lie
    between quantile bins (Ke et al. 2017). With ``trees`` ``label`` a round grows one tree for each
    label, as LDLogitBoost does (Xing, Geng & Xue, CVPR 2016) and XGBoost; with ``vector`` a round grows one tree for
    all labels, as their AOSO-LDLogitBoost, but a leaf holds a step for each label instead of a pair of labels.

    XGBoost's ``multi:softprob``, on rows that are repeated once per label with their mass as weight, uses 2 p (1 - p)
    as second derivative. With ``search`` ``histogram``, ``trees`` ``label``, half its ``eta``, half its ``lambda`` and
    half its ``min_child_weight`` this head boosts the same trees.

    A missing value (NaN) goes to the side with the larger gain in training, or to the side with more rows if a node has
    no missing values of the feature. Boosting ends early if no tree of a round finds a split; with random rows,
    features or thresholds, if 50 rounds in a row find none. The same seed gives the same bits for any number of threads
    and processes. Processes and threads share the features, or, with one tree per label, threads share the trees.

    Features are binned to one byte each, in blocks of rows, so they may be a memory map larger than memory. Fitting
    holds about F + 16 C + 13 bytes per training row, 17 more per thread with one tree per label, and up to 1 GB of
    columns during binning. Random thresholds take one more byte for each feature of a round. If one bin of a feature
    has at least half of the rows, it adds 8 bytes for each other row, and 8 bytes per row in each thread. More than
    0.5 GB of bins are kept in a temporary file in ``LDL_CACHE``.

    Args:
        rounds: Rounds of boosting; with ``patience`` the largest number.
        learning_rate: Factor of every step, in (0, 1].
        depth: Splits on the longest path of a tree, 0 to 64. None tries 2, 4 and 10 and keeps the depth with the lowest
            validation loss, or 4 if ``patience`` is None.
        leaves: Number of leaves for leaf-wise growth, which splits the node with the largest gain next. None grows
            depth-wise and splits every node with a gain.
        l2: Added to the second derivatives of a node.
        min_leaf: Rows that each side of a split must keep.
        min_hessian: Second derivatives, summed over rows and the tree's labels, that each side must keep.
        sampling: Share of the rows in a round, drawn without replacement.
        features: Share of the features in a round; None takes 0.3, but at least 100 features, or all.
        search: Thresholds that are tried: ``histogram`` all bin boundaries of a feature; ``random`` one boundary, drawn
            for every feature in every node, as in extra-trees (Geurts, Ernst & Wehenkel 2006).
        bins: Bins of a feature, at most 255; missing values have their own bin.
        trees: ``vector`` grows one tree per round, with a step for every label in its leaves; ``label`` one per label.
        objective: ``kl``, or for ordinal labels ``cdf``, the squared distance of the cumulative distributions
            (``ldl.methods.forest.boosting`` has its derivatives).
        patience: Rounds without a lower validation loss after which boosting stops. It keeps the rounds up to the
            lowest loss. None boosts all rounds on all rows.
        validation: Share of the training rows held out for ``patience``; whole groups if these are known.
        refit: Whether to refit on all rows, for the chosen number of rounds.
        seed: Seed of sampling and validation rows; None uses the run's seed.
        threads: CPU threads; None uses torch's number.

    Attributes:
        importances: (F,) share of each feature in the gain of all splits; sums to 1, or is 0 throughout.
        validation_loss: Lowest mean loss of the validation rows; NaN without validation rows.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import BoostedTrees
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(BoostedTrees(rounds=50, learning_rate=0.1)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    takes_missing: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True
    rows_at_once: ClassVar[int] = ROWS_AT_ONCE
    exact: ClassVar[tuple[str, ...]] = ("threshold", "values", "start")
    start: Tensor = buffer()
    importances: Tensor = buffer()
    validation_loss: Tensor = buffer()

    rounds: int = option(default=3000, least=1, most=100_000)
    learning_rate: float = option(default=0.015, above=0, most=1)
    depth: int | None = option(default=None, least=0, most=64, null="the best of 2, 4 and 10 on the validation rows")
    leaves: int | None = option(default=None, least=2, most=65536, null="depth-wise growth")
    l2: float = option(default=1.0, least=0)
    min_leaf: int = option(default=5, least=1)
    min_hessian: float = option(default=0.0, least=0)
    sampling: float = option(default=0.7, above=0, most=1, what="a share")
    features: float | None = option(
        default=None, above=0, most=1, what="a share", null="0.3, but at least 100 features"
    )
    search: ThresholdSearch = "random"
    bins: int = option(default=255, least=2, most=255)
    trees: Trees = "vector"
    objective: Loss = "kl"
    patience: int | None = option(default=50, least=1, null="all rounds on all rows")
    validation: float = option(default=0.2, above=0, below=1, what="a share")
    refit: bool = True
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")
    threads: int | None = option(default=None, least=1, most=1024, null="torch's number", may_change=True)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, without trees and uniform until fitted. Raises LDLError."""
        super().build(in_features, labels)
        if self.objective == "cdf" and labels.kind != "ordinal":
            raise LDLError(
                f"BoostedTrees.objective 'cdf' needs labels in an order, and these are {labels.kind}; take 'kl', or "
                "give the labels values, such as --data.label_values"
            )
        self.register_buffers(**join_trees([], len(labels), torch.device("cpu"), Collective(), missing=True).buffers())
        self.register_buffers(start=torch.zeros(len(labels)), importances=torch.zeros(in_features))
        self.register_buffers(validation_loss=torch.tensor(torch.nan))
        self._longest = 0

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Boost on the rows, whose features may be NaN; validation rows are whole groups.

        Weights multiply the derivatives of the rows; ``min_leaf`` and ``sampling`` count rows. Raises LDLError for too
        few rows.
        """
        check_rows(type(self).__name__, rows, missing=True)
        device = rows.features.device
        every = BoostingRows(
            np.ascontiguousarray(rows.features.float().cpu().numpy()),
            np.ascontiguousarray(rows.target.float().cpu().numpy()),
        )
        if rows.weight is not None:
            every = every._replace(weight=rows.weight.float().cpu().numpy())
        rounds, lowest, depth = self.rounds, np.nan, PLAIN_DEPTH if self.depth is None else self.depth
        if self.patience is not None:
            train, validation = _divide(every, *self._hold_out(rows))
            depths = DEPTHS if self.depth is None else (self.depth,)
            trials = {depth: self._boost_watched(train, validation, depth, collective, device) for depth in depths}
            depth = min(trials, key=lambda depth: trials[depth][1])
            boosted, lowest = trials[depth]
            rounds, start = len(boosted), train.start
            del train, validation
        if self.patience is None or self.refit:
            start = every.start
            with closing(boost(every, rounds, self._plan(depth), collective, device)) as boosting:
                boosted = list(track(boosting, rounds, "boosting trees", self.shows_progress))
        trees = [tree for each in boosted for tree in each.trees]
        gains = np.zeros(self.in_features)
        for tree in trees:
            np.add.at(gains, tree.feature[tree.feature >= 0], tree.gain[tree.feature >= 0])
        width = len(self.labels) if self.trees == "vector" else 1
        forest = join_trees(trees, width, device, Collective(), missing=True)
        self.register_buffers(**forest.buffers(), start=torch.from_numpy(start).to(device))
        self._longest = longest_path(forest.roots, forest.feature >= 0, forest.child)
        self.importances = torch.from_numpy(gains / gains.sum() if gains.sum() > 0 else gains).float().to(device)
        self.validation_loss = torch.tensor(lowest, dtype=torch.float32, device=device)

    def forward(self, features: Tensor) -> Tensor:
        """Return the softmax of the scores: (..., F), which may be NaN, to (..., C), at least float32."""
        rows = features.reshape(-1, features.shape[-1]).float()
        scores = self.start.repeat(rows.shape[0], 1)
        add_scores(rows, self.forest, scores, self._longest, self.threads or torch.get_num_threads())
        return as_rows(scores, features).softmax(-1)

    @property
    def forest(self) -> FlatForest:
        """The trees."""
        return FlatForest.of(self)

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {
            "roots": "K",
            "feature": "M: -1 <= number < F",
            "threshold": "M: not NaN",
            "missing_left": "M: bool",
            "child": "M",
            "values": "L W: finite",
            "start": "C: finite",
            "importances": "F",
            "validation_loss": "",
        }

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are trees of this depth with finite steps in their leaves."""
        super().check_state()
        forest, labels = self.forest, len(self.labels)
        trees, (leaves, width) = len(forest.roots), forest.values.shape
        if width not in (1, labels) or (width == 1 and trees % labels):
            refuse(self, "values", f"has {width} labels in the leaves of {trees} trees")
        deepest = max(DEPTHS) if self.depth is None else self.depth
        self._longest = check_trees(self, forest.roots, forest.feature >= 0, forest.child, leaves, deepest)

    def summary(self) -> dict[str, float]:
        """Return the number of rounds, and the validation loss if there is one."""
        forest = self.forest
        each = 1 if forest.values.shape[1] == len(self.labels) else len(self.labels)
        results = {"rounds": float(len(forest.roots) // each)}
        if not bool(self.validation_loss.isnan()):
            results["validation_loss"] = float(self.validation_loss)
        return results

    def _plan(self, depth: int) -> BoostingPlan:
        newton = Newton(self.l2, self.min_leaf, self.min_hessian, self.search == "random")
        shape = Shape(depth, self.leaves, self.learning_rate, newton)
        threads = self.threads or torch.get_num_threads()
        share = min(1.0, max(SHARE, FEATURES / self.in_features)) if self.features is None else self.features
        return BoostingPlan(
            shape, self.trees, self.objective, self.sampling, share, self.bins, run_seed(self.seed), threads
        )

    def _boost_watched(
        self, train: BoostingRows, watched: BoostingRows, depth: int, collective: Collective, device: torch.device
    ) -> tuple[list[Round], float]:
        """Return the rounds up to the lowest loss of the validation rows, and this loss."""
        assert self.patience is not None
        done: list[Round] = []
        scores = np.tile(train.start, (len(watched.target), 1))
        lowest, best = watched.mean_loss(scores, number_of(self.objective)), 0
        with closing(boost(train, self.rounds, self._plan(depth), collective, device, watched)) as boosting:
            for each in track(boosting, self.rounds, "choosing the number of rounds", self.shows_progress):
                done.append(each)
                if each.loss < lowest:
                    lowest, best = each.loss, len(done)
                elif len(done) - best >= self.patience:
                    break
        return done[:best], lowest

    def _hold_out(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the training rows, and of the validation rows."""
        units, unit = (len(rows), "rows") if rows.group is None else (len(rows.group.unique()), "groups")
        if not 0 < round(self.validation * units) < units:
            raise LDLError(
                f"BoostedTrees.validation {self.validation:g} of {units} training {unit} leaves none to validate or to "
                "learn from; give more, or BoostedTrees.patience null, which boosts all rounds on all rows"
            )
        return rows.hold_out(self.validation, run_seed(self.seed))


def _divide(rows: BoostingRows, train: np.ndarray, validation: np.ndarray) -> tuple[BoostingRows, BoostingRows]:
    """Return the training rows, which share the features of all rows, and copies of the validation rows."""
    train_weight, weight = rows.weight, rows.weight
    if len(rows.weight):
        train_weight, weight = rows.weight[train], rows.weight[validation]
    return (
        BoostingRows(rows.features, take(rows.target, train), train.astype(np.int32), train_weight),
        BoostingRows(take(rows.features, validation), take(rows.target, validation), weight=weight),
    )
