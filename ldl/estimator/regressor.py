"""A head behind scikit-learn's interface, with its metrics as scorers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted
from torch.optim.lr_scheduler import CosineAnnealingLR

from ldl.checkpoint import write_checkpoint
from ldl.data.base import Loaded
from ldl.data.tables.scaling import Scaling
from ldl.data.text import USUAL_TEXT, TextOptions
from ldl.errors import LDLError, check_one_of
from ldl.estimator.inputs import (
    as_numbers,
    choose_labels,
    draw_seed,
    feature_names,
    has_values,
    in_order,
    read_distributions,
    read_features,
    read_groups,
    read_rows,
    read_tested,
    read_values,
    read_weights,
)
from ldl.estimator.parameters import HeadParameters, make_head, restored_on_error, takes_missing
from ldl.estimator.training import ArrayRows, cross_calibrate, seeded, split_calibrate, train, truth_of
from ldl.head import Head
from ldl.inference import Predictions, Predictor
from ldl.labels import Decoder, Encoder, LabelSpace
from ldl.methods.torch_utils import library_defaults
from ldl.metrics import directions
from ldl.metrics.functional import kl
from ldl.metrics.stage import row_metrics
from ldl.options import check_options, option, options
from ldl.tables.entries import check_same_order, column_names
from ldl.task import Task

Calibration = Literal["split", "cross"]


@options
class LDLRegressor(HeadParameters, RegressorMixin, BaseEstimator):
    """A scikit-learn estimator around any head that takes rows, trained as by ``train.py``.

    ``y`` is either distributions, (N, C) with rows that sum to 1, or values, (N,), which are encoded as distributions.
    ``predict`` returns the same kind. Named columns of ``y``, as in a data frame, are matched by name to the labels or
    the axes of a grid, in any order. Predicted distributions are in the order of ``labels_``. Rows of all arguments are
    matched by position, as in scikit-learn; pandas objects with one index in different orders raise an error. Options
    of the head are parameters, such as ``head__depth``, also in a grid search.

    Args:
        head: A head, which every fit copies, or the class name of a head, with its defaults.
        labels: Label space of the columns or values of ``y``; a grid also takes points (N, 2). None uses the names or
            numbers of the columns, or chooses ordinal labels for values.
        step: Distance between the labels of values if ``labels`` is None; None chooses it from the values.
        sigma: Standard deviation of the encoded distributions, in the values' unit; None chooses it from the step.
        encoder: Shape of the encoded distributions.
        scaling: Scaling of features, fitted to the training rows; the same kinds as the option of tables.
        clip: Largest absolute value of a scaled feature; None does not clip.
        text_columns: Names or patterns of the columns of text of a data frame, which become vectors as in
            ``TabularLDL``; ``auto`` takes those with a usual name.
        text_encoder: Encoder of text: ``wordllama``, or a model of sentence-transformers.
        text_tokens: Largest number of tokens of a text.
        epochs: Passes over the rows. This option and those up to ``mixup`` are for heads that learn by gradient.
        batch_size: Rows per batch.
        lr: Initial learning rate of AdamW.
        weight_decay: Decoupled weight decay of AdamW.
        optimizer: Function of parameters that returns an optimiser, with its own learning rate; None is AdamW.
        lr_scheduler: Function of an optimiser that returns a scheduler, which steps once per epoch; None decays to zero
            along half a cosine.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        decoder: How a distribution becomes a value.
        val_fraction: Share of the rows, or groups, held out for ``calibrate`` and for ``conformal`` ``split``.
        calibrate: Whether to divide log probabilities by a temperature that is fitted to held-out rows.
        conformal: Calibration of prediction intervals and sets: ``split`` uses the held-out rows, ``cross`` all rows,
            each predicted by a model of other folds; None does not calibrate.
        conformal_folds: Number of folds of ``cross``; each adds a fit.
        accelerator: Lightning's accelerator; one device trains. Predictions run on the CPU.
        verbose: Whether to show a progress bar.
        random_state: Seed of a fit, as ``seed_everything`` of ``train.py``. A generator, or None for numpy's global
            generator, draws a seed.

    Attributes:
        labels_: The label space.
        sigma_: Standard deviation of the encoded distributions, if ``y`` had values.
        predictor_: The trained model with its scaling, a :class:`ldl.inference.Predictor`.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if ``X`` had names.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> shares = LDLRegressor("MaxEnt").fit(X, np.hstack([X, 1 - X]))  # y: distributions
        >>> shares.predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
        >>> ages = LDLRegressor("MaxEnt", step=5).fit(X, 20 + 40 * X[:, 0])  # y: values
        >>> ages.predict_interval([[0.4]], 0.9).shape
        (1, 2)
    """

    head: Head | str = "StructRF"
    labels: LabelSpace | None = None
    step: float | None = option(default=None, above=0, null="one that suits the values")
    sigma: float | None = option(default=None, above=0, null="one that suits the step")
    encoder: Encoder = "gaussian"
    scaling: Scaling = "standard"
    clip: float | None = option(default=None, above=0, null="no clipping")
    text_columns: Sequence[str] | str = ()
    text_encoder: str = USUAL_TEXT.encoder
    text_tokens: int = option(default=USUAL_TEXT.tokens, least=1, most=2**20)
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

    @library_defaults()
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the head.

        Args:
            X: (N, F) numbers, with NaN only for a head that takes missing features; or a data frame, whose columns may
                also be categories, truth values, dates and, by ``text_columns``, text, with gaps, and are encoded as
                by ``TabularLDL``.
            y: (N, C) distributions, (N,) values, or (N, 2) points of a grid.
            sample_weight: (N,) numbers of at least 0. If all are whole numbers, a row of weight k counts as k equal
                rows. Otherwise only their proportions count, and their mean is one row. A row of weight 0 is left out.
            groups: (N,) group of every row, such as the person. ``val_fraction`` and heads that hold out rows keep
                groups together.

        Raises:
            ValueError: An option, row, target, weight or group is wrong. The estimator then stays as it was before.
        """
        with restored_on_error(self):
            self._fit(X, y, sample_weight, groups)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        self._check()
        self.__dict__.pop("sigma_", None)
        check_same_order(X=X, y=y, sample_weight=sample_weight, groups=groups)
        rows, target = read_rows(self, X, y, takes_missing(self.head))
        self._names = feature_names(self, X)
        target = in_order(target, y, self.labels)
        groups = read_groups(groups, rows)
        weight = None
        if sample_weight is not None:
            weight = read_weights(sample_weight, rows)
            kept = weight > 0
            rows, target, weight, groups = (
                rows[kept],
                target[kept],
                weight[kept],
                None if groups is None else groups[kept],
            )
        self._of_values, self._calibrated = has_values(target, self.labels), self.conformal is not None
        if self._of_values:
            labels, self.sigma_ = choose_labels(target, self.labels, self.step, self.sigma)
            loaded = read_values(target, labels, self.sigma_, self.encoder)
        else:
            loaded = read_distributions(target, column_names(y), self.labels)
        self.labels_ = loaded.labels
        if weight is not None:
            loaded.columns["weight"] = torch.tensor(weight, dtype=torch.float32)
        loaded, seed = replace(loaded, groups=groups), draw_seed(self.random_state)
        self.predictor_ = self._train(rows, loaded, seed)
        if self.conformal == "cross":
            calibration = cross_calibrate(partial(self._train, seed=seed), rows, loaded, self.conformal_folds, seed)
            self.predictor_.task.calibration = calibration

    def predict(self, X: Any) -> np.ndarray:
        """Return predictions of the kind of ``y``: distributions (N, C), values (N,), or points (N, 2)."""
        check_is_fitted(self)
        return self.predict_value(X) if self._of_values else self.predict_distribution(X)

    def predict_distribution(self, X: Any) -> np.ndarray:
        """Return distributions (N, C), on the simplex."""
        return self._predict(X).distribution

    def predict_value(self, X: Any) -> np.ndarray:
        """Return values (N,) or points (N, 2). Raises LDLError for labels without values."""
        if (value := self._predict(X).value) is None:
            raise LDLError("these labels have no values to predict; give LDLRegressor labels=LabelSpace.ordinal(...)")
        return value

    @library_defaults()
    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Return central intervals (N, 2), or (N, 2, 2) on a grid: lower and upper end on the last dimension.

        With ``conformal`` they hold the true value of at least ``level`` of all rows exchangeable with the training
        rows; else they hold this share of the predicted mass. Raises LDLError for labels without values or a level
        that is not between 0 and 1.
        """
        return self._predict(X).interval(level, calibrated=self._calibrated)

    def predict_set(self, X: Any, level: float = 0.9) -> np.ndarray:
        """Return sets of the likeliest labels, (N, C) bool, for labels without values.

        With ``conformal`` they hold ``level`` of the true mass, on average over rows exchangeable with the training
        rows; else of the predicted mass. Raises LDLError for labels with values or a level that is not between 0 and 1.
        """
        return self._predict(X).label_set(level, calibrated=self._calibrated)

    @library_defaults()
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of values, or minus the mean KL divergence of distributions: higher is better.

        Raises LDLError for rows that are no distributions.
        """
        check_is_fitted(self)
        check_same_order(X=X, y=y, sample_weight=sample_weight)
        true = self._truth(y)
        if sample_weight is not None:
            sample_weight = read_weights(sample_weight, true)
        if self._of_values:
            return float(super().score(X, true, sample_weight))
        target = read_distributions(true, None, self.labels_).columns["target"]
        divergence = kl(torch.from_numpy(self.predict_distribution(X)).double(), target.double())
        return -float(np.average(divergence.numpy(), weights=sample_weight))

    @library_defaults()
    def measure(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, float]:
        """Return all metrics of ldl on test rows, by their names in ``results.json``, errors as positive numbers.

        A search maximises its score, so pass ``scoring`` a :meth:`scorer` instead of this method. Metrics between
        distributions are NaN for rows with a value outside the labels. Raises LDLError for rows that are no
        distributions, or values that are not finite. ``sample_weight`` (N,) weighs the rows in all means.
        """
        check_same_order(X=X, y=y, sample_weight=sample_weight)
        predicted, labels, values = self._predict(X), self.labels_, self._of_values
        true = self._truth(y)
        truth = (
            read_tested(true, labels, self.sigma_, self.encoder) if values else read_distributions(true, None, labels)
        )
        rows = {"prediction": predicted.distribution, "target": truth.columns["target"].numpy()}
        if predicted.value is not None:
            rows |= {"predicted_value": predicted.value, "value": truth_of(truth)}
        if sample_weight is not None:
            rows["weight"] = read_weights(sample_weight, predicted.distribution)
        return row_metrics(rows, labels)

    @staticmethod
    def scorer(name: str) -> Scorer:
        """Return a metric for ``scoring`` of searches and cross-validations; errors count negatively.

        Args:
            name: Name of the metric in ``results.json``, such as ``kl``, ``mae`` or ``cosine``, also of a plugin.
        """
        return Scorer(name)

    def save(self, path: str | Path) -> None:
        """Write a checkpoint like ``train.py``, without pickled objects; ``ldl.Predictor`` reads it."""
        check_is_fitted(self)
        write_checkpoint(self.predictor_.task, path)

    def save_pretrained(self, folder: str | Path, license: str | None = None) -> Path:
        """Write a folder for ``ldl.Predictor.from_pretrained``; see ``ldl.Predictor.save_pretrained``."""
        check_is_fitted(self)
        return self.predictor_.save_pretrained(folder, license)

    def _check(self) -> None:
        check_options(self)
        if not isinstance(self.labels, LabelSpace | None):
            raise LDLError(
                f"LDLRegressor.labels {str(self.labels)[:80]} must be a LabelSpace, such as LabelSpace.nominal(names)"
            )
        if self.conformal == "split" and not self.val_fraction:
            raise LDLError("LDLRegressor.conformal 'split' needs held-out rows; set val_fraction above 0")
        if self.calibrate and not self.val_fraction:
            raise LDLError("LDLRegressor.calibrate needs held-out rows; set val_fraction above 0")

    @library_defaults()
    def _predict(self, X: Any) -> Predictions:
        check_is_fitted(self)
        return self.predictor_.predict(read_features(self, X, self.predictor_.task.head.takes_missing))

    def _truth(self, y: Any) -> np.ndarray:
        """Return targets of test rows as numbers, with columns in the order of the labels. Raises LDLError."""
        return in_order(np.asarray(as_numbers(y, "y"), np.float64), y, self.labels_)

    def _train(self, rows: Any, loaded: Loaded, seed: int) -> Predictor:
        with seeded(seed):
            data = ArrayRows(
                rows,
                loaded,
                names=self._names,
                text=TextOptions(self.text_encoder, self.text_tokens),
                missing="keep" if takes_missing(self.head) else "fill",
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
                conformal="none",
            )
            train(task, data, self.epochs, self.accelerator, self.verbose)
        predictor = Predictor(task)
        if self.conformal == "split":
            task.calibration = split_calibrate(predictor, rows, loaded, data.split.val)
        return predictor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = takes_missing(self.head)
        return tags


@dataclass
class Scorer:
    """A metric of a fitted estimator or pipeline, with the sign that makes higher better.

    Attributes:
        name: Name of the metric in ``results.json``.
        request: Whether searches pass ``sample_weight`` on to the score if scikit-learn's metadata routing is enabled,
            or the name under which they find it.
    """

    name: str
    request: bool | str = False

    def set_score_request(self, *, sample_weight: bool | str) -> Self:
        """Set ``request``, like scikit-learn's own scorers."""
        self.request = sample_weight
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what searches pass on to the score."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=self.request)
        return request

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the metric of test rows, an error times -1; NaN if it is undefined for these rows.

        Raises LDLError if the metric does not exist for the labels or has no better direction, or if rows are wrong.
        """
        if isinstance(estimator, Pipeline):
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        scores = directions(estimator.labels_)
        check_one_of("the score of these labels", self.name, scores)
        sign = 1 if scores[self.name] else -1
        return float(sign * estimator.measure(X, y, sample_weight).get(self.name, float("nan")))
