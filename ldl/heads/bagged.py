"""Any head on bags of instances: its probabilities pooled, trained end to end."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head
from ldl.heads.softmax import Softmax
from ldl.labels import LabelSpace
from ldl.methods.boosting.packing import present
from ldl.methods.boosting.pooling import Pooling, pool_logits
from ldl.metrics.functional import KL_FLOOR
from ldl.options import check_options, option, options


@options
class Bagged(Head):
    """A head whose instance probabilities are pooled over a bag by a soft maximum.

    Any head that learns by gradient alone serves; only bags need labels. Its own loss is not asked: bags are trained by
    the KL divergence. The gradient of the bags' likelihood runs through the soft maximum into the head and the
    backbone, as in Babenko et al. 2008 (Eq. 17) into boosting.
    It takes bags (..., J, F), missing instances NaN; ``instances`` gives the distributions of instances.

    Args:
        head: The head of the instances, by class name; None is ``Softmax``.
        pooling: Soft maximum over the instances. Of probabilities: ``lse`` log-sum-exponential, ``gm`` generalised
            mean, ``nor`` noisy or, ``isr``; of half the log odds: ``lse_score``.
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1.
    """

    takes_bags: ClassVar[bool] = True

    head: Head = option(default=None)
    pooling: Pooling = "lse"
    r: float = option(default=5.0, least=1, below=math.inf, what="large is sharp")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = Softmax()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head of the instances.

        Raises LDLError: one that is not trained by gradient, or by another objective, or not two labels.
        """
        check_options(self)
        name = type(self.head).__name__
        if isinstance(self.head, AlternatingHead | FittedHead) or self.head.takes_bags:
            raise LDLError(
                f"Bagged.head {name} must take single instances and learn by gradient alone, as Softmax does"
            )
        if (objective := getattr(self.head, "objective", "kl")) != "kl":
            raise LDLError(
                f"Bagged.head {name} has the objective {objective!r}, and bags are trained by 'kl' alone; take that"
            )
        if len(labels) != 2:
            raise LDLError(f"Bagged needs two labels, the negative one first; the data have {len(labels)}")
        super().build(in_features, labels)
        self.head.build(in_features, labels)

    def forward(self, features: Tensor) -> Tensor:
        """Bags (..., J, F) to the probabilities (..., 2) of negative and positive; an empty bag is negative."""
        return self._logs(features).exp()

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        """Mean KL divergence from ``target`` (..., 2), from logarithms: large bags are all but certain at first.

        Only an empty bag, which is negative, has a floor: ``KL_FLOOR``, as in the measure ``kl``.
        """
        logs = self._logs(features)
        logs = torch.where(logs.isneginf(), math.log(KL_FLOOR), logs)
        return {"loss": (torch.xlogy(target, target) - target * logs).sum(-1).mean()}

    def _logs(self, features: Tensor) -> Tensor:
        exists = present(features)
        logs = self._instances(features, exists).clamp_min(torch.finfo(torch.float32).tiny).log()
        return torch.stack(pool_logits(logs[..., 1] - logs[..., 0], self.pooling, self.r, exists), -1)

    def instances(self, features: Tensor) -> Tensor:
        """Distributions of the instances: bags (..., J, F) to (..., J, 2); missing instances have NaN."""
        exists = present(features)
        return torch.where(exists[..., None], self._instances(features, exists), torch.nan)

    def _instances(self, features: Tensor, exists: Tensor) -> Tensor:
        # Not even the gradient of a missing instance may be NaN.
        return self.head(torch.where(exists[..., None], features, 0.0))
