"""Callbacks for ``trainer.callbacks`` that average over steps or labels: of weights, and of statistics of features."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import WeightAveraging
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from typing_extensions import override

from ldl.batch import with_counts
from ldl.collective import current_collective
from ldl.errors import LDLError
from ldl.head import FittedHead, ImageHead
from ldl.labels import LabelSpace

SMOOTHING_KEY = "feature_smoothing"
LEAST_RATIO, MOST_RATIO = 0.1, 10.0
"""Limits of the ratio of two variances."""


class MovingAverage(WeightAveraging):
    """Exponential moving average of the weights over about ``1 / (1 - decay)`` steps, fewer at the start of a run.

    Validation, tests and the ``state_dict`` of checkpoints have the average. A resumed run continues from the trained
    weights, which the checkpoint has too. Add the callback to ``trainer.callbacks``.

    Args:
        decay: Weight of the average before a step, in [0, 1).

    Raises:
        LDLError: ``decay`` is out of range.

    Examples:
        >>> import pytorch_lightning as pl
        >>> from ldl import Task
        >>> from ldl.backbones import Identity
        >>> from ldl.callbacks import MovingAverage
        >>> from ldl.data import RotatedDigits
        >>> from ldl.heads import Softmax
        >>> quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
        >>> trainer = pl.Trainer(max_epochs=1, callbacks=[MovingAverage(decay=0.99)], **quiet)
        >>> trainer.fit(Task(Softmax(), Identity(flatten=True)), RotatedDigits(turns=1))
    """

    def __init__(self, decay: float = 0.998) -> None:
        if not 0 <= decay < 1:
            raise LDLError(f"MovingAverage.decay {decay!r} must be in [0, 1), such as 0.998")
        self.decay, self._swapped = decay, False
        super().__init__(multi_avg_fn=self._average)

    @override
    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        # A test alone uses the weights of the model, not the average of an earlier fit.
        self._average_model, self._swapped = None, False
        if stage == "fit":
            # Forget an earlier fit; a resumed fit reads its step from the checkpoint afterwards.
            self._latest_update_step = 0
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            # Device and precision that the weights will have once the strategy is set up.
            self._average_model.to(trainer.strategy.root_device)
            trainer.precision_plugin.convert_module(self._average_model)

    def _swap_models(self, pl_module: pl.LightningModule) -> None:
        super()._swap_models(pl_module)
        self._swapped = not self._swapped

    @override
    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        super().on_save_checkpoint(trainer, pl_module, checkpoint)
        if self._swapped:
            # A signal stops the run during a validation, while average and weights are swapped.
            average, current = checkpoint["current_model_state"], checkpoint["state_dict"]
            checkpoint["state_dict"], checkpoint["current_model_state"] = average, current

    @override
    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        # A test uses the average, which Lightning has loaded, not the weights to continue from.
        if trainer.state.fn == TrainerFn.FITTING:
            super().on_load_checkpoint(trainer, pl_module, checkpoint)

    @override
    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        # A finished run that is resumed has no end of training.
        self._copy_average_to_current(pl_module)

    def _average(self, average: list[Tensor], current: list[Tensor], steps: Tensor) -> None:
        """Update tensors of one type; copy those that have no average, such as counts."""
        # Equal weights for the first steps, or the initial weights would stay too long.
        decay = min(self.decay, (1 + int(steps)) / (10 + int(steps)))
        if average[0].is_floating_point():
            torch._foreach_lerp_(average, current, 1 - decay)
        else:
            torch._foreach_copy_(average, current)


class FeatureSmoothing(pl.Callback):
    """Feature distribution smoothing: features of each label get mean and variance of neighbouring labels in training.

    Means and variances of the features of every label are computed over an epoch, averaged with those of earlier
    epochs, and smoothed over the labels by a Gaussian. In the loss of the next epochs, a feature ``z`` of label ``b``
    becomes ``(z - mean_b) sqrt(smoothed var_b / var_b) + smoothed mean_b``, with the ratio in [0.1, 10]. Validation and
    tests use unchanged features. Add the callback to ``trainer.callbacks``. Source: Yang et al., "Delving into Deep
    Imbalanced Regression", ICML 2021, Section 3.2, with variances in place of covariances.

    Args:
        width: Standard deviation of the Gaussian, in the unit of the labels.
        momentum: Weight of earlier epochs in the means and variances, in [0, 1).
        start: Number of first epochs without smoothing, at least 1.

    Raises:
        LDLError: An option is out of range, labels are not ordinal, or the head does not learn from rows of features.

    Examples:
        >>> import pytorch_lightning as pl
        >>> from ldl import Task
        >>> from ldl.backbones import Identity
        >>> from ldl.callbacks import FeatureSmoothing
        >>> from ldl.data import RotatedDigits
        >>> from ldl.heads import Softmax
        >>> quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
        >>> trainer = pl.Trainer(max_epochs=2, callbacks=[FeatureSmoothing(width=2.0)], **quiet)
        >>> trainer.fit(Task(Softmax(), Identity(flatten=True)), RotatedDigits(turns=1))
    """

    def __init__(self, width: float = 2.0, momentum: float = 0.9, start: int = 1) -> None:
        if not (width > 0 and 0 <= momentum < 1 and start >= 1):
            raise LDLError(
                f"FeatureSmoothing: width {width!r} must be above 0, momentum {momentum!r} in [0, 1), start {start!r} "
                "at least 1; such as 2.0, 0.9 and 1"
            )
        self.width, self.momentum, self.start = width, momentum, start
        self._state: dict[str, Tensor] = {}
        self._real = slice(None)

    @override
    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            # Forget an earlier fit; a resumed fit reads its state from the checkpoint afterwards.
            self._state = {}

    @override
    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, labels = pl_module.head, pl_module.labels
        if isinstance(head, FittedHead | ImageHead) or pl_module.gives_maps:
            raise LDLError(f"FeatureSmoothing: {type(head).__name__} learns from no rows of features; leave it out")
        if labels.kind != "ordinal":
            raise LDLError("FeatureSmoothing needs labels on a line, such as ages; leave it out")
        # The model is on its device only now, not when a checkpoint is read.
        self._state = {name: value.to(pl_module.device) for name, value in self._state.items()}
        plain = head.loss

        def loss(features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
            if not head.training:
                return plain(features, target, **extra)
            value = extra.get("value")
            bins = nearest(labels, labels.decode(target) if value is None else value)
            weight = extra.get("weight")
            weight = None if weight is None else weight[self._real]
            self._note(features.detach()[self._real], bins[self._real], len(labels), weight)
            return plain(self._smoothed(features, bins, trainer.current_epoch), target, **extra)

        vars(head)["loss"] = loss

    @override
    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        # A process without real rows has one row of padding.
        self._real = slice(None if with_counts(batch, train=True).get("rows") else 0)

    @override
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        measured = current_collective().sum(self._state["sums"])
        self._state["sums"] = torch.zeros_like(measured)
        count, mean, square = measured.unbind(1)
        seen = count[:, 0] > 1
        mean = mean / count.clamp(min=1)
        # The variance of a sample, which two features suffice for.
        variance = (square - count * mean.square()).clamp(min=0) / (count - 1).clamp(min=1)
        before = self._state["known"]
        share = torch.where(before & seen, self.momentum, torch.where(before, 1.0, 0.0))[:, None]
        for name, new in (("mean", mean), ("variance", variance)):
            self._state[name] = share * self._state[name] + (1 - share) * new
        self._state["known"] = before | seen
        kernel = neighbourhood(pl_module.labels, self._state["known"], self.width).to(mean)
        for name in ("mean", "variance"):
            self._state[f"smoothed_{name}"] = kernel @ self._state[name]

    @override
    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        vars(pl_module.head).pop("loss", None)

    @override
    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)

    @override
    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Lightning calls this in every process, although the first process alone writes the file.
        sums = {"sums": current_collective().sum(self._state["sums"])} if self._state else {}
        checkpoint[SMOOTHING_KEY] = {**self._state, **sums}

    @override
    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._state = {name: value.clone() for name, value in checkpoint.get(SMOOTHING_KEY, {}).items()}
        if self._state and current_collective().rank:
            self._state["sums"].zero_()

    def _note(self, features: Tensor, bins: Tensor, labels: int, weight: Tensor | None = None) -> None:
        if not self._state:
            shape = (labels, features.shape[-1])
            self._state = {
                name: torch.zeros(shape) for name in ("mean", "variance", "smoothed_mean", "smoothed_variance")
            }
            self._state |= {
                "known": torch.zeros(labels, dtype=torch.bool),
                "sums": torch.zeros(labels, 3, shape[1]).double(),
            }
        self._state = {name: value.to(features.device) for name, value in self._state.items()}
        rows = features.double()
        moments = torch.stack([torch.ones_like(rows), rows, rows.square()], 1)
        moments = moments if weight is None else moments * weight.to(moments)[:, None, None]
        self._state["sums"].index_add_(0, bins, moments)

    def _smoothed(self, features: Tensor, bins: Tensor, epoch: int) -> Tensor:
        if epoch < self.start:
            return features
        state = {name: value[bins] for name, value in self._state.items() if name != "sums"}
        ratio = (state["smoothed_variance"] / state["variance"].clamp(min=1e-12)).clamp(LEAST_RATIO, MOST_RATIO)
        moved = (features - state["mean"]) * ratio.sqrt() + state["smoothed_mean"]
        return torch.where(state["known"][:, None], moved, features).to(features.dtype)


def nearest(labels: LabelSpace, value: Tensor) -> Tensor:
    """Return the indices (B,) of the labels nearest to values (B,)."""
    return (value.reshape(-1, 1) - labels.points[:, 0].to(value)).abs().argmin(1)


def neighbourhood(labels: LabelSpace, seen: Tensor, width: float) -> Tensor:
    """Return the weights (C, C) of known labels around each label; rows sum to 1, or to 0 if no label is known."""
    kernel = labels.kernel(width).to(seen.device) * seen
    return kernel / kernel.sum(1, keepdim=True).clamp(min=1e-12)
