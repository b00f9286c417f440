"""Checks of the training rows of fitted heads."""

from __future__ import annotations

from torch import Tensor

from ldl.errors import LDLError
from ldl.methods.mapped import blocks
from ldl.trust.learned import off_simplex

PART = 1 << 22
"""Bytes that are checked at a time: a mask of everything would be as large as the features."""


def check_rows(name: str, features: Tensor, target: Tensor, missing: bool = False) -> None:
    """Raise LDLError where a head has no training rows (N, F), or one has a feature that is not finite or a bad target.

    With ``missing`` NaN is a missing value, and taken.
    """
    if features.ndim != 2 or not len(features) or len(features) != len(target):
        raise LDLError(f"{name} is fitted on (N, F) features, N at least 1, got {tuple(features.shape)}")
    check_finite(f"{name} cannot take", features, missing)
    check_targets(name, target)


def check_targets(name: str, target: Tensor) -> None:
    """Raise LDLError for the first row of the targets (N, C) that is no distribution, or where there is none."""
    if not len(target):
        raise LDLError(f"{name} is fitted on the targets of training rows, one at least, got {tuple(target.shape)}")
    for start, part in blocks(target, PART):
        part = part if part.is_floating_point() else part.double()
        if len(wrong := off_simplex(part)):
            row = part[wrong[0]]
            raise LDLError(
                f"{name} cannot take a target of sum {row.sum():g}, least {row.min():g}: training row "
                f"{start + int(wrong[0])}; targets are probabilities, at least 0 and of sum 1: divide by the sum first"
            )


def check_finite(refusal: str, features: Tensor, missing: bool = False) -> None:
    """Raise LDLError, which begins with ``refusal``, for the first of the features (N, F) that is not finite.

    With ``missing`` NaN is taken.
    """
    for start, part in blocks(features, PART):
        part = part.float()
        bad = (part.isinf() if missing else ~part.isfinite()).nonzero()
        if len(bad):
            row, column = start + int(bad[0, 0]), int(bad[0, 1])
            raise LDLError(
                f"{refusal} {float(features[row, column])}: training row {row}, feature {column}; "
                "fill or drop missing and infinite features first"
            )
