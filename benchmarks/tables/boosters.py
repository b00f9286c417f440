"""XGBoost, LightGBM and CatBoost on label distributions.

None of the three takes a distribution as target. XGBoost and LightGBM take a custom objective: the cross-entropy with
the whole distributions, sum_i sum_c -d_ic ln p_ic, which has the minimum of the KL divergence. Its derivatives are
those of their own multi-class loss on rows that are repeated once per label, weighted by the label's probability, and
so are the trees, for less work. A custom objective of CatBoost would run in Python row by row; it gets the repeated
rows.

The number of rounds is chosen on a tenth of the rows, or of the groups. With ``refit`` all rows are then boosted for as
many rounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax, softmax

from ldl.protocols import with_validation

LEAST = 1e-6
"""Least mean probability of a label at the start of boosting, which is in logarithms."""


class Rows(NamedTuple):
    """Rows for training or validation: features (n, F), dense or sparse, and distributions (n, C)."""

    features: np.ndarray
    target: np.ndarray


def cross_entropy(scores: np.ndarray, target: np.ndarray) -> float:
    """Return the mean cross-entropy of distributions (n, C) and the softmax of scores (n, C)."""
    return float(-(target * log_softmax(scores, axis=1)).sum(1).mean())


def derivatives(scores: np.ndarray, target: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first derivatives of the cross-entropies by the scores (n, C), and ``factor`` p (1 - p) >= 1e-16."""
    predicted = softmax(scores, axis=1)
    return predicted - target, np.maximum(factor * predicted * (1 - predicted), 1e-16)


@dataclass
class Booster(ABC):
    """A booster of classes that is fitted on distributions.

    Attributes:
        rounds: Largest number of rounds.
        patience: Rounds without a lower validation loss after which boosting stops; None boosts all, on all rows.
        refit: Whether all rows are boosted once the number of rounds is known; else the model of nine tenths is kept.
        learning_rate: Shrinkage of each tree.
        depth: Splits on the longest path.
        l2: Penalty of leaf values.
        sampling: Share of the rows that a round draws.
        columns: Share of the features that a tree draws.
        bins: Largest number of bins of a feature.
        seed: Seed of everything random.
        threads: Number of threads; None takes torch's.
    """

    rounds: int = 1000
    patience: int | None = 50
    refit: bool = False
    learning_rate: float = 0.05
    depth: int = 4
    l2: float = 1.0
    sampling: float = 0.8
    columns: float = 0.5
    bins: int = 255
    seed: int = 0
    threads: int | None = None

    def fit(self, features: np.ndarray, target: np.ndarray, group: np.ndarray | None = None) -> None:
        """Boost on (N, F) and distributions (N, C); validation keeps the rows of a ``group`` (N,) together."""
        rounds = self.rounds
        self.start = np.log(np.maximum(target.mean(0), LEAST))
        if self.patience is not None:
            fold = with_validation(np.arange(len(target)), np.arange(0), 0.1, self.seed, groups=group)
            learned, watched = (Rows(features[part], target[part]) for part in (fold.train, fold.val))
            self.model, rounds = self.train(learned, watched, rounds)
        if self.patience is None or self.refit:
            self.model, _ = self.train(Rows(features, target), None, rounds)

    @abstractmethod
    def train(self, rows: Rows, watched: Rows | None, rounds: int) -> tuple[Any, int]:
        """Return the library's model of ``rows``, and its number of rounds: the best for ``watched``, if given."""

    @abstractmethod
    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return distributions (n, C) of features (n, F)."""

    def starts(self, features: np.ndarray) -> np.ndarray:
        """Return the scores (n, C) before the first round: logarithms of the mean distribution."""
        return np.tile(self.start.astype(np.float32), (features.shape[0], 1))

    def count_threads(self) -> int:
        """Return the number of threads."""
        return self.threads or torch.get_num_threads()


@dataclass
class XGBoost(Booster):
    """Trees of XGBoost on histograms; ``min_child_weight`` is in second derivatives, by default 1.

    Numbers that sparse rows do not list are missing values, which go to the side that gains most.
    """

    min_child_weight: float = 1.0

    def train(self, rows: Rows, watched: Rows | None, rounds: int) -> tuple[Any, int]:
        import xgboost

        def matrix(part: Rows, **reference: Any) -> Any:
            return xgboost.QuantileDMatrix(
                part.features, base_margin=self.starts(part.features), max_bin=self.bins, nthread=self.count_threads(),
                **reference,
            )  # fmt: skip

        options = {
            "num_class": rows.target.shape[1], "disable_default_eval_metric": True, "tree_method": "hist",
            "max_bin": self.bins, "eta": self.learning_rate, "max_depth": self.depth, "lambda": self.l2,
            "subsample": self.sampling, "colsample_bytree": self.columns, "min_child_weight": self.min_child_weight,
            "seed": self.seed, "nthread": self.count_threads(),
        }  # fmt: skip
        data = matrix(rows)
        watching: dict[str, Any] = {} if watched is None else {
            "evals": [(matrix(watched, ref=data), "watched")], "early_stopping_rounds": self.patience,
            "custom_metric": lambda scores, _: ("cross-entropy", cross_entropy(scores, watched.target)),
        }  # fmt: skip
        model = xgboost.train(
            options, data, rounds, obj=lambda scores, _: derivatives(scores, rows.target, 2.0), verbose_eval=False,
            **watching,
        )  # fmt: skip
        if watched is not None:
            model = model[: model.best_iteration + 1]
        return model, model.num_boosted_rounds()

    def predict(self, features: np.ndarray) -> np.ndarray:
        scores = self.model.inplace_predict(features, predict_type="margin", base_margin=self.starts(features))
        return softmax(scores, axis=1)


@dataclass
class LightGBM(Booster):
    """Trees of LightGBM, with as many leaves as ``depth`` allows."""

    def train(self, rows: Rows, watched: Rows | None, rounds: int) -> tuple[Any, int]:
        import lightgbm

        labels = rows.target.shape[1]
        options = {
            "objective": lambda scores, _: derivatives(scores, rows.target, labels / (labels - 1)),
            "metric": "None", "num_class": labels, "learning_rate": self.learning_rate,
            "max_depth": self.depth, "num_leaves": 2**self.depth, "lambda_l2": self.l2,
            "bagging_fraction": self.sampling, "bagging_freq": 1, "feature_fraction": self.columns,
            "max_bin": self.bins, "seed": self.seed, "deterministic": True, "force_col_wise": True,
            "num_threads": self.count_threads(), "verbosity": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(rows.features, init_score=self.starts(rows.features), params=options)
        watching: dict[str, Any] = {}
        if watched is not None and self.patience is not None:
            held_out = data.create_valid(watched.features, init_score=self.starts(watched.features))
            watching = {
                "valid_sets": [held_out], "callbacks": [lightgbm.early_stopping(self.patience, verbose=False)],
                "feval": lambda scores, _: ("cross-entropy", cross_entropy(scores, watched.target), False),
            }  # fmt: skip
        model = lightgbm.train(options, data, rounds, **watching)
        # Without validation rows the best iteration is 0, which means all.
        return model, model.best_iteration or model.current_iteration()

    def predict(self, features: np.ndarray) -> np.ndarray:
        scores = self.model.predict(features, raw_score=True, num_threads=self.count_threads())
        return softmax(scores + self.starts(features), axis=1)


@dataclass
class CatBoost(Booster):
    """``MultiClass`` of CatBoost, whose trees are symmetric, on repeated rows."""

    def train(self, rows: Rows, watched: Rows | None, rounds: int) -> tuple[Any, int]:
        import catboost

        model = catboost.CatBoost({
            "loss_function": "MultiClass", "classes_count": rows.target.shape[1], "iterations": rounds,
            "learning_rate": self.learning_rate, "depth": self.depth, "l2_leaf_reg": self.l2,
            "bootstrap_type": "Bernoulli", "subsample": self.sampling, "rsm": self.columns,
            "border_count": min(self.bins, 254), "random_seed": self.seed, "thread_count": self.count_threads(),
            "logging_level": "Silent", "allow_writing_files": False,
        })  # fmt: skip

        def pool(part: Rows) -> Any:
            row, label = np.nonzero(part.target)
            return catboost.Pool(part.features[row], label, weight=part.target[row, label])

        model.fit(
            pool(rows), eval_set=None if watched is None else pool(watched), use_best_model=watched is not None,
            early_stopping_rounds=None if watched is None else self.patience,
        )  # fmt: skip
        return model, model.tree_count_

    def predict(self, features: np.ndarray) -> np.ndarray:
        return self.model.predict(features, prediction_type="Probability", thread_count=self.count_threads())
