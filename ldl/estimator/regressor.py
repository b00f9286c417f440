"""A head behind scikit-learn's interface."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch.optim.lr_scheduler import CosineAnnealingLR

from ldl.data.loaded import Loaded
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError
from ldl.estimator.arrays import ArrayRows
from ldl.estimator.calibration import cross_calibrate, truth_of
from ldl.estimator.inputs import draw_seed, read_features, read_groups, read_rows
from ldl.estimator.nested import HeadParameters, make_head, takes_missing
from ldl.estimator.targets import choose_labels, has_values, read_distributions, read_values
from ldl.estimator.training import seeded, train, write_checkpoint
from ldl.estimator.weights import read_weights
from ldl.head import Head
from ldl.inference import Predictions, Predictor
from ldl.labels import Decoder, Encoder, LabelSpace
from ldl.metrics.functional import kl
from ldl.metrics.rows import row_metrics
from ldl.options import check_options, option, options
from ldl.task import Task

Calibration = Literal["split", "cross"]


@options
class LDLRegressor(HeadParameters, RegressorMixin, BaseEstimator):
    """Any head that takes rows, as an estimator of scikit-learn, trained as ``train.py`` trains it.

    ``y`` is either distributions, (N, C) with rows that sum to 1, or values, (N,), around which distributions are laid.
    ``predict`` gives what ``y`` was. Options of the head are parameters, such as ``head__depth``, also in grids.

    Args:
        head: A head, of which every fit trains a copy, or the name of one, with its defaults.
        labels: What the columns of ``y`` mean, or what values lie on; those of a grid take points (N, 2) too. None
            numbers the columns, or takes their names, and lays labels over values.
        step: Distance between the labels of values, where ``labels`` is None; None chooses it by the values.
        sigma: Deviation of the distributions around values, in their unit; None chooses it by the step.
        encoder: Shape of these distributions.
        scaling: How features are scaled, learnt from the fitted rows: as the option of tables.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        epochs: Passes over the rows. This and all to ``mixup`` are for heads that learn by gradient.
        batch_size: Rows of a batch.
        lr: First learning rate of AdamW.
        weight_decay: Its decoupled weight decay.
        optimizer: Makes another one of parameters, with a rate and decay of its own; None is AdamW.
        lr_scheduler: Makes one of an optimiser, which steps once an epoch; None falls to zero along half a cosine.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        decoder: How a distribution becomes a value.
        val_fraction: Share of the rows, or groups, that are held out for ``calibrate`` and for ``split``.
        calibrate: Divide the logarithms of predictions by a temperature that is fitted on what is held out.
        conformal: Whether intervals and sets are calibrated, so that they hold the truth as often as they say:
            ``split`` by what is held out, ``cross`` by all rows, each predicted by a model of other folds.
        conformal_folds: So many times more it is then fitted for ``cross``.
        accelerator: Lightning's, of which one device trains. Predictions are made on the CPU.
        verbose: Whether fitting shows its progress.
        random_state: Seed of a fit, as ``seed_everything`` of ``train.py``; a generator, or None for that of numpy,
            draws one.

    Attributes:
        labels_: The label space.
        sigma_: Deviation of the distributions around values, where ``y`` had such.
        predictor_: The trained model with its scaling, :class:`ldl.inference.Predictor`.
        n_features_in_: Number of features.
        feature_names_in_: Their names, where ``X`` had some.
    """

    head: Head | str = "StructRF"
    labels: LabelSpace | None = None
    step: float | None = option(default=None, above=0, null="one that suits the values")
    sigma: float | None = option(default=None, above=0, null="one that suits the step")
    encoder: Encoder = "gaussian"
    scaling: Scaling = "standard"
    clip: float | None = option(default=None, above=0, null="no clipping")
    epochs: int = option(default=60, least=1)
    batch_size: int = option(default=64, least=1, most=2**31 - 1)
    lr: float = option(default=3e-3, least=0)
    weight_decay: float = option(default=0.01, least=0)
    optimizer: OptimizerCallable | None = None
    lr_scheduler: LRSchedulerCallable | None = None
    mixup: float = option(default=0.0, least=0, most=1000, what="0 for none")
    decoder: Decoder = "expectation"
    val_fraction: float = option(default=0.0, least=0, below=1)
    calibrate: bool = False
    conformal: Calibration | None = None
    conformal_folds: int = option(default=5, least=2, most=10_000)
    accelerator: str = "auto"
    verbose: bool = False
    random_state: int | np.random.RandomState | None = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from rows.

        Args:
            X: (N, F) numbers; NaN only for a head that takes missing features.
            y: (N, C) distributions, (N,) values or, with the labels of a grid, (N, 2) points.
            sample_weight: (N,) whole numbers: a row of weight k counts as k equal rows.
            groups: (N,) group of every row, such as the person, for what keeps groups together: ``val_fraction``, and
                heads that set rows aside.
        """
        self._check()
        rows, target = read_rows(self, X, y, takes_missing(self.head))
        groups = read_groups(groups, rows)
        if sample_weight is not None:
            index = read_weights(sample_weight, rows)
            # Rows that are one stay together.
            rows, target, groups = rows[index], target[index], index if groups is None else groups[index]
        self._of_values = has_values(target, self.labels)
        if self._of_values:
            labels, self.sigma_ = choose_labels(target, self.labels, self.step, self.sigma)
            loaded = read_values(target, labels, self.sigma_, self.encoder)
        else:
            loaded = read_distributions(target, getattr(y, "columns", None), self.labels)
        self.labels_ = loaded.labels
        loaded, seed = replace(loaded, groups=groups), draw_seed(self.random_state)
        self.predictor_ = self._train(rows, loaded, seed)
        if self.conformal == "cross":
            known = cross_calibrate(partial(self._train, seed=seed), rows, loaded, self.conformal_folds, seed)
            self.predictor_.task.calibration = known
        return self

    def predict(self, X: Any) -> np.ndarray:
        """What ``y`` was: distributions (N, C), values (N,), or points (N, 2)."""
        check_is_fitted(self)
        return self.predict_value(X) if self._of_values else self.predict_distribution(X)

    def predict_distribution(self, X: Any) -> np.ndarray:
        """Distributions (N, C), on the simplex."""
        return self._predict(X).distribution

    def predict_value(self, X: Any) -> np.ndarray:
        """Values (N,), or points (N, 2), by the decoder or the head. Raises LDLError for labels without values."""
        if (value := self._predict(X).value) is None:
            raise LDLError("these labels have no values to predict; give LDLRegressor labels=LabelSpace.ordinal(...)")
        return value

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Central intervals, (N, 2), of a grid (N, 2, 2): lower and upper end on the last dimension.

        With ``conformal`` they hold the true values of at least ``level`` of rows like the fitted ones; without, this
        share of the predicted mass. Raises LDLError: labels without values, or a level that is not between 0 and 1.
        """
        return self._predict(X).interval(level, calibrated=self.conformal is not None)

    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Which labels belong to the set of the likeliest, (N, C) of bool, for labels without values.

        With ``conformal`` they hold ``level`` of the true mass, on average over rows like the fitted ones; without, of
        the predicted mass. Raises LDLError: labels with values, or a level that is not between 0 and 1.
        """
        return self._predict(X).label_set(level, calibrated=self.conformal is not None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of values, or minus the mean KL divergence of distributions: higher is better.

        Raises LDLError: rows that are no distributions.
        """
        check_is_fitted(self)
        if self._of_values:
            return float(super().score(X, y, sample_weight))
        target = read_distributions(np.asarray(y, np.float64), None, self.labels_).columns["target"]
        divergence = kl(torch.from_numpy(self.predict_distribution(X)).double(), target.double())
        return -float(np.average(divergence.numpy(), weights=sample_weight))

    def measure(self, X: Any, y: Any) -> dict[str, float]:
        """All measures of ldl on test rows, by their names in ``results.json``: a ``scoring`` of ``cross_validate``.

        Raises LDLError: values outside the labels, or rows that are no distributions.
        """
        found, true = self._predict(X), np.asarray(y, np.float64)
        labels, values = found.labels, self._of_values
        truth = (
            read_values(true, labels, self.sigma_, self.encoder) if values else read_distributions(true, None, labels)
        )
        rows = {"prediction": found.distribution, "target": truth.columns["target"].numpy()}
        if found.value is not None:
            rows |= {"predicted_value": found.value, "value": truth_of(truth)}
        return row_metrics(rows, labels)

    def save(self, path: str | Path) -> None:
        """Write a checkpoint, as ``train.py`` does: ``ldl.Predictor`` reads it, and nothing in it is pickled."""
        check_is_fitted(self)
        write_checkpoint(self.predictor_.task, path)

    def _check(self) -> None:
        check_options(self)
        if not isinstance(self.labels, LabelSpace | None):
            raise LDLError(
                f"LDLRegressor.labels {str(self.labels)[:80]} must be a LabelSpace, such as LabelSpace.nominal(names)"
            )
        if self.conformal == "split" and not self.val_fraction:
            raise LDLError("LDLRegressor.conformal 'split' needs rows that are held out; set val_fraction above 0")
        if self.calibrate and not self.val_fraction:
            raise LDLError("LDLRegressor.calibrate needs rows that are held out; set val_fraction above 0")

    def _predict(self, X: Any) -> Predictions:
        check_is_fitted(self)
        return self.predictor_.predict(read_features(self, X, self.predictor_.task.head.takes_missing))

    def _train(self, rows: np.ndarray, loaded: Loaded, seed: int) -> Predictor:
        """Train on rows with groups, where there are any, and a seed."""
        with seeded(seed):
            data = ArrayRows(
                rows,
                loaded,
                names=getattr(self, "feature_names_in_", None),
                scaling=self.scaling,
                clip=self.clip,
                batch_size=self.batch_size,
                val_fraction=self.val_fraction,
            )
            task = Task(
                make_head(self.head),
                optimizer=self.optimizer or partial(torch.optim.AdamW, lr=self.lr, weight_decay=self.weight_decay),
                lr_scheduler=self.lr_scheduler or partial(CosineAnnealingLR, T_max=self.epochs),
                mixup=self.mixup,
                decoder=self.decoder,
                calibrate=self.calibrate,
                conformal="groups" if self.conformal == "split" else "none",
            )
            train(task, data, self.epochs, self.accelerator, self.verbose)
        return Predictor(task)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = takes_missing(self.head)
        return tags
