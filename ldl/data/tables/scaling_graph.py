"""The scaling of features by torch alone, for graphs that run without Python; the same numbers as ``FeatureScaler``."""

from __future__ import annotations

import torch
from torch import Tensor

ENDS = 1e-7
"""scikit-learn's share of ranks at both ends that a normal distribution is cut off at."""
LOWEST, HIGHEST = -5.199337582605575, 5.19933758270342
"""Where that is: normal quantiles of ``ENDS`` less the spacing of float64 at 1, and of 1 less that."""

# Wichura, Algorithm AS 241 (Applied Statistics 1988), coefficients of PPND16 from the highest power to the lowest.
_NEAR = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_FAR = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip


def scale(features: Tensor, kind: str, clip: float | None, learned: dict[str, Tensor]) -> Tensor:
    """Scaled features (N, F) float64, as :meth:`.scaling.FeatureScaler.transform` gives them.

    What that refuses, such as the root of a negative number, is NaN.

    Args:
        features: (N, F) float64; NaN stays NaN.
        kind: As ``FeatureScaler`` has it.
        clip: Largest magnitude of what is scaled, or None.
        learned: What the scaler has learned, float64.
    """
    if kind.startswith("quantile_"):
        ranks = _ranks(features, learned["quantiles"], learned["references"], kind == "quantile_normal")
        features = normal_quantile(ranks) if kind == "quantile_normal" else (ranks - 0.5) * 12**0.5
    elif kind != "none":
        features = features.sqrt() if kind == "hellinger" else features
        features = (features - learned["mean"]) / learned["scale"]
    return features if clip is None else features.clamp(-clip, clip)


def normal_quantile(share: Tensor) -> Tensor:
    """The value below which a share of the standard normal distribution lies, from ``LOWEST`` to ``HIGHEST``."""
    from_half = share - 0.5
    near = from_half * _ratio(0.180625 - from_half.square(), _NEAR)
    # The smaller of both tails; far inside, and at the ends, another number keeps the logarithm in its range.
    tail = torch.minimum(share, 1 - share).clamp(ENDS / 10, 0.075)
    far = _ratio((-tail.log()).sqrt() - 1.6, _FAR)
    inside = from_half.abs() <= 0.425
    return torch.where(inside, near, torch.where(from_half < 0, -far, far)).clamp(LOWEST, HIGHEST)


def _ratio(x: Tensor, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Tensor:
    above, below = (torch.full_like(x, part[0]) for part in coefficients)
    for up, down in zip(coefficients[0][1:], coefficients[1][1:]):
        above, below = above * x + up, below * x + down
    return above / below


def _ranks(features: Tensor, quantiles: Tensor, references: Tensor, normal: bool) -> Tensor:
    """Shares of the training rows below, (N, F), of quantiles (Q, F): of equal ones the mean of lowest and highest."""
    last = len(references) - 1
    after, before = (_count(features, quantiles, equal) for equal in (True, False))
    low, high = (after - 1).clamp(0, last), before.clamp(0, last)
    ranks = (
        _between(features, quantiles, references, low, (low + 1).clamp_max(last))
        + _between(features, quantiles, references, high, (high - 1).clamp_min(0))
    ) / 2
    margin = ENDS if normal else 0.0
    at_end = features + margin > quantiles[-1] if normal else features >= quantiles[-1]
    at_start = features - margin < quantiles[0] if normal else features <= quantiles[0]
    return torch.where(features.isnan(), features, torch.where(at_start, 0.0, torch.where(at_end, 1.0, ranks)))


def _count(features: Tensor, quantiles: Tensor, equal: bool) -> Tensor:
    """How many quantiles are below each feature, or also equal to it: (N, F), by halving."""
    count = torch.zeros_like(features, dtype=torch.long)
    step = 1 << (len(quantiles).bit_length() - 1)
    while step:
        further = count + step
        at = quantiles.gather(0, (further - 1).clamp_max(len(quantiles) - 1))
        fits = (further <= len(quantiles)) & ((at <= features) if equal else (at < features))
        count = torch.where(fits, further, count)
        step >>= 1
    return count


def _between(features: Tensor, quantiles: Tensor, references: Tensor, near: Tensor, other: Tensor) -> Tensor:
    """The reference at quantile ``near``, and as far towards that of ``other`` as the feature is."""
    start, end = quantiles.gather(0, near), quantiles.gather(0, other)
    gap = end - start
    share = torch.where(gap != 0, (features - start) / torch.where(gap != 0, gap, 1.0), 0.0)
    flat = references.to(features)
    return flat[near] + share.clamp(0, 1) * (flat[other] - flat[near])
