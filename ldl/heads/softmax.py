"""Softmax over a linear layer, with the objectives that are common for label distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads.mlp import mlp
from ldl.labels import LabelSpace
from ldl.metrics.functional import mean_of
from ldl.options import buffer, option, options

Objective = Literal["kl", "dldl_v2", "ce", "mean_variance", "sord", "l1"]


@options
class Softmax(Head):
    """Softmax over a linear layer (DLDL, Gao et al. 2017, and its relatives).

    Args:
        objective: The loss, where E is the prediction's expectation and y the value of the sample. If the data have no
            values, y is the target's expectation. ``kl``: KL divergence from the target (DLDL). ``dldl_v2``: KL
            divergence + ``expectation_weight`` * |E - y| (Gao et al. 2018). ``ce``: cross-entropy with the label
            nearest to y + ``expectation_weight`` * |E - y| (weight 0 is DEX, Rothe et al. 2016).
            ``mean_variance``: this cross-entropy + ``mean_weight`` * (E - y)^2 / 2 + ``variance_weight`` * variance of
            the prediction (Pan et al. 2018). ``sord``: KL divergence from softmax(-|y - y_c|^2 / ``sord_scale``) over
            the labels y_c (Diaz & Marathe 2019). ``l1``: |E - y|. On a grid, distances are summed over the axes. Every
            objective except ``kl`` needs labels with values.
        expectation_weight: Weight of |E - y| in ``dldl_v2`` and ``ce``.
        mean_weight: Weight of the squared error in ``mean_variance``.
        variance_weight: Weight of the variance in ``mean_variance``.
        sord_scale: Width of the soft labels in ``sord``, in squared units of the labels.
        hidden: Widths of hidden ReLU layers before the softmax layer; empty for none.
        dropout: Dropout after each hidden layer.
        feature_dropout: Dropout on the features.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import Softmax
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(Softmax(), lr=0.3, epochs=20, batch_size=10).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_value: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("points",)
    logits: nn.Sequential = buffer()
    points: Tensor = buffer()

    objective: Objective = "kl"
    expectation_weight: float = 1.0
    mean_weight: float = 0.2
    variance_weight: float = 0.05
    sord_scale: float = option(default=1.0, above=0)
    hidden: Sequence[int] = option(default=(), least=1, most=2**16)
    dropout: float = option(default=0.0, least=0, below=1)
    feature_dropout: float = option(default=0.0, least=0, below=1)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the layers. Raises LDLError for an objective that needs other labels."""
        super().build(in_features, labels)
        if self.objective != "kl" and not labels.has_values:
            raise LDLError(f"Softmax.objective {self.objective!r} needs labels with values; use 'kl' for nominal ones")
        self.logits = mlp(in_features, self.hidden, len(labels), self.dropout, self.feature_dropout)
        if labels.has_values:
            self.register_buffer("points", labels.points, persistent=False)

    def _log_softmax(self, features: Tensor) -> Tensor:
        logits = self.logits(features)
        with torch.autocast(features.device.type, enabled=False):
            return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F)."""
        return self._log_softmax(features).exp()

    def log_outputs(self, features: Tensor) -> dict[str, Tensor]:
        """Return the log-softmax as ``log_p`` (..., 1, C). Raises LDLError for an objective other than ``kl``."""
        if self.objective != "kl":
            raise LDLError(
                f"Softmax.objective {self.objective!r} compares with distributions, and a model of raters learns from "
                "single votes; take objective kl, or model.raters none"
            )
        return {"log_p": self._log_softmax(features).unsqueeze(-2)}

    def loss(
        self, features: Tensor, target: Tensor, value: Tensor | None = None, weight: Tensor | None = None, **extra: Any
    ) -> dict[str, Tensor]:
        """Return the mean objective for ``target`` (..., C) as ``loss``, and each of its terms as ``loss_NAME``.

        ``value`` is the true value, (...,) or (..., 2) for a grid; None uses the expectation of the target. ``weight``
        (B,) are the weights of the rows.
        """
        log_p = self._log_softmax(features)
        with torch.autocast(features.device.type, enabled=False):
            terms = self._objective_terms(log_p, target.to(log_p.dtype), value)
        losses = {name: mean_of(values, weight) for name, values in terms.items()}
        return {"loss": torch.stack(list(losses.values())).sum(), **{f"loss_{name}": v for name, v in losses.items()}}

    def _objective_terms(self, log_p: Tensor, target: Tensor, value: Tensor | None) -> dict[str, Tensor]:
        """Return the terms of the objective for every row, (...,)."""
        if self.objective == "kl":
            return {"kl": _kl(log_p, target)}
        points = self.points.to(log_p.dtype)
        value = self.labels.decode(target) if value is None else value
        true_value = value.to(log_p.dtype).reshape(*log_p.shape[:-1], self.labels.ndim)
        expectation = log_p.exp() @ points
        distance = (expectation - true_value).abs().sum(-1)
        squared_distances = (points - true_value.unsqueeze(-2)).square().sum(-1)
        if self.objective == "l1":
            return {"l1": distance}
        if self.objective == "dldl_v2":
            return {"kl": _kl(log_p, target), "expectation": self.expectation_weight * distance}
        if self.objective == "sord":
            return {"kl": _kl(log_p, torch.softmax(-squared_distances / self.sord_scale, -1))}
        nearest = squared_distances.argmin(-1, keepdim=True)
        cross_entropy = -log_p.gather(-1, nearest).squeeze(-1)
        if self.objective == "ce":
            return {"ce": cross_entropy, "expectation": self.expectation_weight * distance}
        squared_deviations = (points - expectation.unsqueeze(-2)).square().sum(-1)
        return {
            "ce": cross_entropy,
            "mean": self.mean_weight * (expectation - true_value).square().sum(-1) / 2,
            "variance": self.variance_weight * (log_p.exp() * squared_deviations).sum(-1),
        }


def _kl(log_p: Tensor, target: Tensor) -> Tensor:
    # The log probabilities have no floor, because a floor would cut off the gradient of a confident mistake.
    return (torch.xlogy(target, target) - target * log_p).sum(-1)
