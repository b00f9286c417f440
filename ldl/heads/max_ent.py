"""Maximum entropy model, fitted by a quasi-Newton method; with ``l2=0`` it is SA-BFGS (Geng, TKDE 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.max_ent import along_features, choose_l2, fit_max_ent, principal_axes
from ldl.methods.rows import Rows
from ldl.methods.training_rows import check_rows
from ldl.options import buffer, option, options
from ldl.progress import track


@options
class MaxEnt(FittedHead):
    """p(y | x) proportional to exp(w_y x + b_y), with the smallest mean KL divergence from the target distributions.

    scipy's L-BFGS minimises in float64, from zero, until no entry of the gradient exceeds ``tolerance``. With a penalty
    it works along the principal axes of the rows and in units of the loss's curvature, which needs fewer iterations and
    has the same minimum. Published results of SA-BFGS on SJAFFE range from 0.048 to 0.164 KL, depending only on
    ``iterations`` and ``l2``. State both with every result.

    Args:
        l2: Weight of ||w||^2 / 2 in the loss; biases are not penalised. None chooses from
            ``ldl.methods.max_ent.PENALTIES``, 10 to 0.0001, the smallest mean KL divergence on five inner folds, with
            whole groups if these are known. Scale the features for it.
        iterations: Largest number of iterations.
        tolerance: Largest entry of the gradient at the minimum.

    Attributes:
        chosen_l2: The chosen penalty if ``l2`` is None.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import MaxEnt
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(MaxEnt()).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    float32_buffers: ClassVar[tuple[str, ...]] = ("weight", "bias")
    weight: Tensor = buffer()
    bias: Tensor = buffer()
    chosen_l2: Tensor = buffer()

    l2: float | None = option(default=None, least=0, null="chosen on inner folds")
    iterations: int = option(default=500, least=1)
    tolerance: float = option(default=1e-5, least=0)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers ``weight`` (C, F) and ``bias`` (C,), zero until fitted."""
        super().build(in_features, labels)
        self.register_buffers(weight=torch.zeros(len(labels), in_features), bias=torch.zeros(len(labels)))
        if self.l2 is None:
            self.register_buffers(chosen_l2=torch.tensor(torch.nan))

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit on the rows; their groups matter for the choice of ``l2`` alone. Raises LDLError for a bad row."""
        check_rows(type(self).__name__, rows)
        features, target = rows.features.double().cpu().numpy(), rows.target.double().cpu().numpy()
        weight = rows.weight_array
        constant = bool((features == features[0]).all())  # without variance there are no principal axes
        axes = None if self.l2 == 0 or constant else principal_axes(features)
        variance = None
        if axes is not None:
            features, variance = axes.transform(features), axes.explained_variance_
        l2 = self.l2
        if l2 is None:
            l2 = choose_l2(
                features, target, self.iterations, self.tolerance, rows.group_array, variance, weight,
                self.shows_progress,
            )  # fmt: skip
            self.chosen_l2.fill_(l2)
        bar = iter(track(range(self.iterations), self.iterations, "fitting", self.shows_progress))
        next(bar)
        weights = fit_max_ent(
            features, target, l2, self.iterations, self.tolerance, variance, step=lambda: next(bar, None), shares=weight
        )
        bar.close()  # type: ignore[attr-defined]
        both = torch.from_numpy(weights if axes is None else along_features(weights, axes))
        self.weight.copy_(both[:, :-1])
        self.bias.copy_(both[:, -1])

    @override
    def describe_buffers(self) -> dict[str, str]:
        chosen = {"chosen_l2": ""} if self.l2 is None else {}
        return {"weight": "C F: finite", "bias": "C: finite", **chosen}

    def summary(self) -> dict[str, float]:
        """Return the penalty, if it was chosen."""
        return {} if self.l2 is not None or bool(self.chosen_l2.isnan()) else {"l2": float(self.chosen_l2)}

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F), at least float32."""
        dtype = torch.promote_types(features.dtype, self.weight.dtype)
        with torch.autocast(features.device.type, enabled=False):
            return (features.to(dtype) @ self.weight.T.to(dtype) + self.bias.to(dtype)).softmax(-1)
