"""A head behind scikit-learn's interface."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
import torch
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ldl.data.tables.scaling import Scaling
from ldl.estimator.arrays import ArrayRows
from ldl.estimator.inputs import draw_seed, read_features, read_groups, read_rows
from ldl.estimator.nested import HeadParameters, make_head, takes_missing
from ldl.estimator.targets import has_values, read_distributions, read_values
from ldl.estimator.training import seeded, train
from ldl.estimator.weights import read_weights
from ldl.head import Head
from ldl.labels import Decoder, Encoder, LabelSpace
from ldl.methods.temperature import temper
from ldl.metrics.functional import kl
from ldl.task import Task


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
        lr_scheduler: ``cosine``, which falls to zero over the epochs; None, which does not; or what makes one of an
            optimiser, to be stepped once an epoch.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        decoder: How a distribution becomes a value.
        val_fraction: Share of the rows, or groups, that are held out, for ``calibrate``.
        calibrate: Divide the logarithms of predictions by a temperature that is fitted on what is held out.
        accelerator: Lightning's, of which one device trains. Predictions are made on the CPU.
        verbose: Whether fitting shows its progress.
        random_state: Seed of a fit, as ``seed_everything`` of ``train.py``; a generator, or None for that of numpy,
            draws one.

    Attributes:
        labels_: The label space.
        task_: The trained model, on scaled features.
        scaler_: What scales features.
        n_features_in_: Number of features.
        feature_names_in_: Their names, where ``X`` had some.
    """

    def __init__(
        self,
        head: Head | str = "StructRF",
        *,
        labels: LabelSpace | None = None,
        step: float | None = None,
        sigma: float | None = None,
        encoder: Encoder = "gaussian",
        scaling: Scaling = "standard",
        clip: float | None = None,
        epochs: int = 60,
        batch_size: int = 64,
        lr: float = 3e-3,
        weight_decay: float = 0.01,
        optimizer: OptimizerCallable | None = None,
        lr_scheduler: LRSchedulerCallable | Literal["cosine"] | None = "cosine",
        mixup: float = 0.0,
        decoder: Decoder = "expectation",
        val_fraction: float = 0.0,
        calibrate: bool = False,
        accelerator: str = "auto",
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.head = head
        self.labels = labels
        self.step = step
        self.sigma = sigma
        self.encoder = encoder
        self.scaling = scaling
        self.clip = clip
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self.mixup = mixup
        self.decoder = decoder
        self.val_fraction = val_fraction
        self.calibrate = calibrate
        self.accelerator = accelerator
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from rows.

        Args:
            X: (N, F) numbers; NaN only for a head that takes missing features.
            y: (N, C) distributions, (N,) values or, with the labels of a grid, (N, 2) points.
            sample_weight: (N,) whole numbers: a row of weight k counts as k equal rows.
            groups: (N,) group of every row, such as the person, for what keeps groups together: ``val_fraction``, and
                heads that set rows aside.
        """
        head = make_head(self.head)
        rows, target = read_rows(self, X, y, head.takes_missing)
        groups = read_groups(groups, rows)
        if sample_weight is not None:
            index = read_weights(sample_weight, rows)
            # Rows that are one stay together.
            rows, target, groups = rows[index], target[index], index if groups is None else groups[index]
        self._of_values = has_values(target, self.labels)
        if self._of_values:
            loaded = read_values(target.squeeze(1) if target.shape[1:] == (1,) else target, self.labels, self.step, self.sigma, self.encoder)
        else:
            loaded = read_distributions(target, getattr(y, "columns", None), self.labels)
        options = {"scaling": self.scaling, "clip": self.clip, "batch_size": self.batch_size}
        with seeded(draw_seed(self.random_state)):
            data = ArrayRows(rows, loaded, groups, val_fraction=self.val_fraction, **options)
            task = self._make_task(head)
            train(task, data, self.epochs, self.accelerator, self.verbose)
        self.labels_, self.task_, self.scaler_ = loaded.labels, task, data.scaler
        return self

    def predict(self, X: Any) -> np.ndarray:
        """What ``y`` was: distributions (N, C), values (N,), or points (N, 2)."""
        check_is_fitted(self)
        return self.predict_value(X) if self._of_values else self.predict_distribution(X)

    def predict_distribution(self, X: Any) -> np.ndarray:
        """Distributions (N, C), on the simplex."""
        return self._predict(X)[0].numpy()

    def predict_value(self, X: Any) -> np.ndarray:
        """Values (N,), or points (N, 2), by the decoder or the head. Raises LDLError for labels without values."""
        distribution, value = self._predict(X)
        return (self.labels_.decode(distribution, self.decoder) if value is None else value).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How good predictions are, higher is better: R^2 of values, the negative mean KL divergence of distributions."""
        check_is_fitted(self)
        if self._of_values:
            return float(super().score(X, y, sample_weight))
        target = read_distributions(np.asarray(y, np.float64), None, self.labels_).columns["target"]
        divergence = kl(self._predict(X)[0].double(), target.double())
        return -float(np.average(divergence.numpy(), weights=sample_weight))

    @torch.no_grad()
    def _predict(self, X: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        check_is_fitted(self)
        task = self.task_
        rows = self.scaler_.transform(read_features(self, X, task.head.takes_missing))
        distribution, value = task.head.predict(torch.tensor(rows, dtype=torch.float32))
        return temper(distribution, task.temperature), value

    def _make_task(self, head: Head) -> Task:
        optimizer = self.optimizer or partial(torch.optim.AdamW, lr=self.lr, weight_decay=self.weight_decay)
        cosine = partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=self.epochs)
        scheduler = cosine if self.lr_scheduler == "cosine" else self.lr_scheduler
        return Task(
            head, None, optimizer, scheduler, mixup=self.mixup, decoder=self.decoder, calibrate=self.calibrate
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = takes_missing(self.head)
        return tags
