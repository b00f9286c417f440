"""Statistics of features, shared between neighbouring labels: feature distribution smoothing (FDS)."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from ldl.batch import with_counts
from ldl.collective import current_collective
from ldl.errors import LDLError
from ldl.head import FittedHead, ImageHead
from ldl.labels import LabelSpace

STATE_KEY = "feature_smoothing"
LEAST, MOST = 0.1, 10.0
"""Of the ratio of two variances."""


class FeatureSmoothing(pl.Callback):
    """Brings the features of each label to the mean and the variance of its neighbourhood, while training.

    Means and variances of the features of every label are measured over an epoch, averaged with those of the epochs
    before, and smoothed over the labels by a Gaussian; from then on a feature ``z`` of label ``b`` is
    ``(z - mean_b) sqrt(smoothed var_b / var_b) + smoothed mean_b`` in the loss, the ratio in [0.1, 10] (Yang et al.,
    "Delving into Deep Imbalanced Regression", ICML 2021, Section 3.2, with variances in place of covariances).
    Validation and tests see features as they are. Add it to ``trainer.callbacks``.

    Args:
        width: Standard deviation of the Gaussian, in the unit of the labels.
        momentum: Share of the epochs before in the means and variances, in [0, 1).
        start: Epochs at the beginning, at least 1, whose features are measured and not smoothed.

    Raises:
        LDLError: an option is out of range, labels are not on a line, or a head sees no features step by step.
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

    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        if stage == "fit":
            # Of a fit before; a resumed one reads its own from the checkpoint afterwards.
            self._state = {}

    def on_fit_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        head, labels = pl_module.head, pl_module.labels
        if isinstance(head, FittedHead | ImageHead) or pl_module.gives_maps:
            raise LDLError(f"FeatureSmoothing: {type(head).__name__} learns from no rows of features; leave it out")
        if labels.kind != "ordinal":
            raise LDLError("FeatureSmoothing needs labels on a line, such as ages; leave it out")
        # Here the model is on its device, which it is not when a checkpoint is read.
        self._state = {name: value.to(pl_module.device) for name, value in self._state.items()}
        plain = head.loss

        def loss(features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
            if not head.training:
                return plain(features, target, **extra)
            value = extra.get("value")
            bins = nearest(labels, labels.decode(target) if value is None else value)
            self._note(features.detach()[self._real], bins[self._real], len(labels))
            return plain(self._smoothed(features, bins, trainer.current_epoch), target, **extra)

        vars(head)["loss"] = loss

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        # A process without real rows has one of padding.
        self._real = slice(None if with_counts(batch, train=True).get("rows") else 0)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        measured = current_collective().sum(self._state["sums"])
        self._state["sums"] = torch.zeros_like(measured)
        count, mean, square = measured.unbind(1)
        seen = count[:, 0] > 1
        mean = mean / count.clamp(min=1)
        # As if of a sample: of a label with two features as well.
        variance = (square - count * mean.square()).clamp(min=0) / (count - 1).clamp(min=1)
        known = self._state["known"]
        share = torch.where(known & seen, self.momentum, torch.where(known, 1.0, 0.0))[:, None]
        for name, new in (("mean", mean), ("variance", variance)):
            self._state[name] = share * self._state[name] + (1 - share) * new
        self._state["known"] = known | seen
        kernel = neighbourhood(pl_module.labels, self._state["known"], self.width).to(mean)
        for name in ("mean", "variance"):
            self._state[f"smoothed_{name}"] = kernel @ self._state[name]

    def on_fit_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        vars(pl_module.head).pop("loss", None)

    def on_exception(self, trainer: pl.Trainer, pl_module: Any, exception: BaseException) -> None:
        self.on_fit_end(trainer, pl_module)

    def on_save_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Called on every process, although the first alone writes the file.
        sums = {"sums": current_collective().sum(self._state["sums"])} if self._state else {}
        checkpoint[STATE_KEY] = {**self._state, **sums}

    def on_load_checkpoint(self, trainer: pl.Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self._state = {name: value.clone() for name, value in checkpoint.get(STATE_KEY, {}).items()}
        if self._state and current_collective().rank:
            self._state["sums"].zero_()

    def _note(self, features: Tensor, bins: Tensor, labels: int) -> None:
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
        found = features.double()
        self._state["sums"].index_add_(0, bins, torch.stack([torch.ones_like(found), found, found.square()], 1))

    def _smoothed(self, features: Tensor, bins: Tensor, epoch: int) -> Tensor:
        if epoch < self.start:
            return features
        state = {name: value[bins] for name, value in self._state.items() if name != "sums"}
        ratio = (state["smoothed_variance"] / state["variance"].clamp(min=1e-12)).clamp(LEAST, MOST)
        moved = (features - state["mean"]) * ratio.sqrt() + state["smoothed_mean"]
        return torch.where(state["known"][:, None], moved, features).to(features.dtype)


def nearest(labels: LabelSpace, value: Tensor) -> Tensor:
    """Numbers of the labels that are nearest to values (B,)."""
    return (value.reshape(-1, 1) - labels.points[:, 0].to(value)).abs().argmin(1)


def neighbourhood(labels: LabelSpace, known: Tensor, width: float) -> Tensor:
    """Weights (C, C) of the known labels in the neighbourhood of each; rows sum to 1, or to 0 where none is known."""
    kernel = labels.encode(labels.points[:, 0].to(known.device), width) * known
    return kernel / kernel.sum(1, keepdim=True).clamp(min=1e-12)
