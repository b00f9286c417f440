"""Maximum entropy model, fitted by a quasi-Newton method: SA-BFGS (Geng, TKDE 2016)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.max_ent import along_features, choose_l2, fit_max_ent, principal_axes
from ldl.methods.rows import check_rows
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.trust.learned import check_numbers, check_shapes


@options
class MaxEnt(FittedHead):
    """p(y | x) proportional to exp(w_y x + b_y), with the smallest mean KL divergence from the target distributions.

    Minimised by scipy's L-BFGS in float64, from zero, until no gradient exceeds ``tolerance`` or after
    ``iterations``; where there is a penalty, along the rows' principal axes and in units of the loss's curvature, which
    leaves the minimum where it is and needs a fraction of the steps. What is published of SA-BFGS ranges from .048 to
    .164 KL on one set (SJAFFE) by the choice of ``iterations`` and ``l2`` alone, which is 0 there: state them with
    every figure.

    Args:
        l2: Weight of ||w||^2 / 2, which is added to the mean KL divergence; the biases are free. None takes that of
            ``ldl.methods.max_ent.PENALTIES``, from 10 down to 0.0001, with the smallest mean KL divergence on what
            five inner folds leave out, whole groups where groups are known. It wants features of one scale.
        iterations: At most so many.
        tolerance: Largest entry of the gradient at which it stops; where there is a penalty, of that in these units.

    Attributes:
        chosen_l2: What was taken where ``l2`` is None.
    """

    uses_group: ClassVar[bool] = True
    wide: ClassVar[tuple[str, ...]] = ("weight", "bias")
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

    def fit(self, features: Tensor, target: Tensor, collective: Collective, group: Tensor | None = None) -> None:
        """Fit on (N, F) and (N, C), with groups (N,) for None's choice. Raises LDLError: a bad feature or target."""
        check_rows(type(self).__name__, features, target)
        rows, wanted = features.double().cpu().numpy(), target.double().cpu().numpy()
        constant = bool((rows == rows[0]).all())  # also a single row; of no variance there are no shares
        axes = None if self.l2 == 0 or constant else principal_axes(rows)
        variance = None
        if axes is not None:
            rows, variance = axes.transform(rows), axes.explained_variance_
        l2 = self.l2
        if l2 is None:
            groups = None if group is None else group.cpu().numpy()
            l2 = choose_l2(rows, wanted, self.iterations, self.tolerance, groups, variance, self.shows_progress)
            self.chosen_l2.fill_(l2)
        bar = iter(track(range(self.iterations), self.iterations, "fitting", self.shows_progress))
        next(bar)
        weights = fit_max_ent(rows, wanted, l2, self.iterations, self.tolerance, variance, step=lambda: next(bar, None))
        bar.close()  # type: ignore[attr-defined]
        both = torch.from_numpy(weights if axes is None else along_features(weights, axes))
        self.weight.copy_(both[:, :-1])
        self.bias.copy_(both[:, -1])

    def check_state(self) -> None:
        """Raise LDLError where the buffers are no weights."""
        chosen = {} if self.l2 is not None else {"chosen_l2": ""}
        check_shapes(self, {"C": len(self.labels), "F": self.in_features}, weight="C F", bias="C", **chosen)
        check_numbers(self, "weight", self.weight)
        check_numbers(self, "bias", self.bias)

    def summary(self) -> dict[str, float]:
        """The weight of the penalty, where it was chosen."""
        return {} if self.l2 is not None or bool(self.chosen_l2.isnan()) else {"l2": float(self.chosen_l2)}

    def forward(self, features: Tensor) -> Tensor:
        """Distributions (..., C) of features (..., F), at least float32."""
        dtype = torch.promote_types(features.dtype, self.weight.dtype)
        with torch.autocast(features.device.type, enabled=False):
            return (features.to(dtype) @ self.weight.T.to(dtype) + self.bias.to(dtype)).softmax(-1)
