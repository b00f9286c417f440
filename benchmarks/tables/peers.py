"""XGBoost, LightGBM and CatBoost on label distributions: each row is repeated once a label, with its mass as weight.

None of the three takes a distribution as target. Over the repeated rows their weighted multi-class loss is the
cross-entropy with the whole distributions, sum_i sum_c -d_ic ln p_ic, and so has the same minimum as the KL divergence;
it costs as many rows as there are labels with mass. Boosting stops on a tenth of the rows that are given, cut off
before they are repeated, so that no row is on both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from ldl.protocols import with_validation


class Repeated(NamedTuple):
    """Rows for learners of classes.

    Attributes:
        features: (R, F), sparse if they are.
        label: (R,) the class of each, 0 to C - 1.
        weight: (R,) its mass, above 0.
    """

    features: np.ndarray
    label: np.ndarray
    weight: np.ndarray


def repeat(features: np.ndarray, target: np.ndarray) -> Repeated:
    """Rows (N, F) once for each label that has mass in ``target`` (N, C)."""
    row, label = np.nonzero(target)
    return Repeated(features[row], label, target[row, label])


@dataclass
class Booster(ABC):
    """A booster of classes, fitted on distributions.

    Attributes:
        rounds: Rounds at most.
        patience: Rounds without a lower validation loss after which boosting stops; None boosts all, on all rows.
        learning_rate: Shrinkage of each tree.
        depth: Splits on the longest path.
        l2: Penalty of leaf values.
        sampling: Share of the repeated rows that a round draws.
        columns: Share of the features that a tree draws.
        bins: Bins of a feature, at most.
        seed: Of everything random.
        threads: Threads; None takes torch's.
    """

    rounds: int = 1000
    patience: int | None = 50
    learning_rate: float = 0.05
    depth: int = 4
    l2: float = 1.0
    sampling: float = 0.8
    columns: float = 0.5
    bins: int = 255
    seed: int = 0
    threads: int | None = None

    def fit(self, features: np.ndarray, target: np.ndarray, group: np.ndarray | None = None) -> None:
        """Boost on (N, F) and distributions (N, C); rows of one ``group`` (N,) are watched or learned together."""
        self.labels = target.shape[1]
        train, watched = np.arange(len(target)), np.arange(0)
        if self.patience is not None:
            fold = with_validation(train, watched, 0.1, self.seed, groups=group)
            train, watched = fold.train, fold.val
        held_out = repeat(features[watched], target[watched]) if self.patience is not None else None
        self.model = self.train(repeat(features[train], target[train]), held_out)

    @abstractmethod
    def train(self, rows: Repeated, watched: Repeated | None) -> Any:
        """The library's model, boosted on ``rows`` until the loss of ``watched`` stops falling."""

    @abstractmethod
    def predict(self, features: np.ndarray) -> np.ndarray:
        """Distributions of (n, F), (n, C), by the best round."""

    def count_threads(self) -> int:
        """How many threads to use."""
        return self.threads or torch.get_num_threads()


@dataclass
class XGBoost(Booster):
    """``multi:softprob`` of XGBoost on histograms; its ``min_child_weight`` is in second derivatives, its default 1.

    What sparse rows do not list is missing to it, and goes to the side where it gains most.
    """

    min_child_weight: float = 1.0

    def train(self, rows: Repeated, watched: Repeated | None) -> Any:
        import xgboost

        def matrix(part: Repeated, **reference: Any) -> Any:
            return xgboost.QuantileDMatrix(
                part.features, part.label, weight=part.weight, max_bin=self.bins, nthread=self.count_threads(),
                **reference,
            )  # fmt: skip

        options = {
            "objective": "multi:softprob", "num_class": self.labels, "tree_method": "hist", "max_bin": self.bins,
            "eta": self.learning_rate, "max_depth": self.depth, "lambda": self.l2, "subsample": self.sampling,
            "colsample_bytree": self.columns, "min_child_weight": self.min_child_weight, "seed": self.seed,
            "nthread": self.count_threads(),
        }  # fmt: skip
        data = matrix(rows)
        watching = {} if watched is None else {
            "evals": [(matrix(watched, ref=data), "watched")], "early_stopping_rounds": self.patience,
        }  # fmt: skip
        return xgboost.train(options, data, self.rounds, verbose_eval=False, **watching)

    def predict(self, features: np.ndarray) -> np.ndarray:
        used = (0, 0) if self.patience is None else (0, self.model.best_iteration + 1)
        return self.model.inplace_predict(features, iteration_range=used)


@dataclass
class LightGBM(Booster):
    """``multiclass`` of LightGBM, with as many leaves as ``depth`` allows."""

    def train(self, rows: Repeated, watched: Repeated | None) -> Any:
        import lightgbm

        options = {
            "objective": "multiclass", "num_class": self.labels, "learning_rate": self.learning_rate,
            "max_depth": self.depth, "num_leaves": 2**self.depth, "lambda_l2": self.l2,
            "bagging_fraction": self.sampling, "bagging_freq": 1, "feature_fraction": self.columns,
            "max_bin": self.bins, "seed": self.seed, "deterministic": True, "force_col_wise": True,
            "num_threads": self.count_threads(), "verbosity": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(rows.features, rows.label, weight=rows.weight, params=options)
        watching: dict[str, Any] = {}
        if watched is not None and self.patience is not None:
            stop = lightgbm.early_stopping(self.patience, verbose=False)
            held_out = data.create_valid(watched.features, watched.label, weight=watched.weight)
            watching = {"valid_sets": [held_out], "callbacks": [stop]}
        return lightgbm.train(options, data, self.rounds, **watching)

    def predict(self, features: np.ndarray) -> np.ndarray:
        # Without watched rows the best iteration is 0, which stands for all.
        return self.model.predict(features, num_iteration=self.model.best_iteration, num_threads=self.count_threads())


@dataclass
class CatBoost(Booster):
    """``MultiClass`` of CatBoost, whose trees are symmetric."""

    def train(self, rows: Repeated, watched: Repeated | None) -> Any:
        import catboost

        model = catboost.CatBoost({
            "loss_function": "MultiClass", "classes_count": self.labels, "iterations": self.rounds,
            "learning_rate": self.learning_rate, "depth": self.depth, "l2_leaf_reg": self.l2,
            "bootstrap_type": "Bernoulli", "subsample": self.sampling, "rsm": self.columns,
            "border_count": min(self.bins, 254), "random_seed": self.seed, "thread_count": self.count_threads(),
            "logging_level": "Silent", "allow_writing_files": False,
        })  # fmt: skip
        held_out = None if watched is None else catboost.Pool(*watched[:2], weight=watched.weight)
        model.fit(
            catboost.Pool(*rows[:2], weight=rows.weight), eval_set=held_out, early_stopping_rounds=self.patience,
            use_best_model=held_out is not None,
        )  # fmt: skip
        return model

    def predict(self, features: np.ndarray) -> np.ndarray:
        return self.model.predict(features, prediction_type="Probability", thread_count=self.count_threads())
