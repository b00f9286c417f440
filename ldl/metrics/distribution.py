"""The ten measures between distributions as torchmetrics: means over rows, exact over any number of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torchmetrics import Metric

from ldl.metrics import functional


class MeanMeasure(Metric):
    """Mean over rows of a measure between distributions, summed in float64.

    ``update(prediction, target)`` takes (..., C) twice; ``compute()`` gives NaN before any row was seen.
    """

    is_differentiable = False
    full_state_update = False
    measure: ClassVar[Callable[[Tensor, Tensor], Tensor]]
    total: Tensor
    rows: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("rows", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, prediction: Tensor, target: Tensor) -> None:
        measured = type(self).measure(prediction.double(), target.double())
        self.total += measured.sum()
        self.rows += measured.numel()

    def compute(self) -> Tensor:
        return self.total / self.rows


def mean_of(name: str, function: Callable[[Tensor, Tensor], Tensor], higher_is_better: bool) -> type[MeanMeasure]:
    """The metric ``name``: the mean over rows of a measure whose docstring begins with what it is."""
    return type(
        name,
        (MeanMeasure,),
        {
            "__doc__": f"Mean over rows of {function.__doc__}",
            "__module__": function.__module__.replace("functional", "distribution"),
            "measure": staticmethod(function),
            "higher_is_better": higher_is_better,
        },
    )


def _of(function: Callable[[Tensor, Tensor], Tensor], higher_is_better: bool) -> type[MeanMeasure]:
    return mean_of("".join(part.capitalize() for part in function.__name__.split("_")), function, higher_is_better)


KL = _of(functional.kl, False)
Chebyshev = _of(functional.chebyshev, False)
Clark = _of(functional.clark, False)
Canberra = _of(functional.canberra, False)
Cosine = _of(functional.cosine, True)
Intersection = _of(functional.intersection, True)
Euclidean = _of(functional.euclidean, False)
Sorensen = _of(functional.sorensen, False)
SquaredChi2 = _of(functional.squared_chi2, False)
Fidelity = _of(functional.fidelity, True)

DISTRIBUTION_METRICS: dict[str, type[MeanMeasure]] = {
    "kl": KL,
    "chebyshev": Chebyshev,
    "clark": Clark,
    "canberra": Canberra,
    "cosine": Cosine,
    "intersection": Intersection,
    "euclidean": Euclidean,
    "sorensen": Sorensen,
    "squared_chi2": SquaredChi2,
    "fidelity": Fidelity,
}
"""Measures by the names they have in ``results.json``."""
