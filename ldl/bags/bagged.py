"""Multiple instance learning (MIL) with any gradient head: pool its probabilities over a bag, end to end."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from ldl.bags.layout import present
from ldl.bags.pooling import Pooling, pool_logits
from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head
from ldl.heads.softmax import Softmax
from ldl.labels import KL_FLOOR, LabelSpace
from ldl.metrics.functional import mean_of
from ldl.options import option, options


@options
class Bagged(Head):
    """A head whose instance probabilities are pooled over a bag (MIL pooling).

    Use any head that learns by gradient alone; only bags need labels. The loss is the KL divergence of the bags instead
    of the head's own loss. Its gradient flows through the MIL pooling into the head and the backbone (Babenko et al.
    2008, Eq. 17). Inputs are bags (..., J, F) with NaN for missing instances. ``instances`` returns distributions of
    instances.

    Args:
        head: The head of the instances, by class name; None is ``Softmax``.
        pooling: MIL pooling over the instances. Of probabilities: ``lse`` log-sum-exponential, ``gm`` generalised
            mean, ``nor`` noisy or, ``isr``; of half the log odds: ``lse_score``.
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.bags import Bagged
        >>> from ldl.heads import Softmax
        >>> head = Bagged(Softmax(hidden=[8]))
        >>> head.build(3, LabelSpace.nominal(["no", "yes"]))
        >>> bags = torch.rand(2, 5, 3)
        >>> head(bags).shape, head.instances(bags).shape
        (torch.Size([2, 2]), torch.Size([2, 5, 2]))
    """

    takes_bags: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True

    head: Head = option(default=None)
    pooling: Pooling = "lse"
    r: float = option(default=5.0, least=1, below=math.inf, what="large is sharp")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = Softmax()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the head of the instances.

        Raises LDLError for a head that is not trained by gradient or has another objective, or not two labels.
        """
        super().build(in_features, labels)
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
        self.head.build(in_features, labels)

    def forward(self, features: Tensor) -> Tensor:
        """Bags (..., J, F) to the probabilities (..., 2) of negative and positive; an empty bag is negative."""
        return self._logs(features).exp()

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        """Return the mean KL divergence from ``target`` (..., 2), from log probabilities: large bags start near 1.

        Only an empty bag, which is negative, has the floor ``KL_FLOOR`` of the metric ``kl``.
        """
        logs = self._logs(features)
        logs = torch.where(logs.isneginf(), math.log(KL_FLOOR), logs)
        return {"loss": mean_of((torch.xlogy(target, target) - target * logs).sum(-1), extra.get("weight"))}

    def _logs(self, features: Tensor) -> Tensor:
        exists = present(features)
        logs = self._instances(features, exists).clamp_min(torch.finfo(torch.float32).tiny).log()
        return torch.stack(pool_logits(logs[..., 1] - logs[..., 0], self.pooling, self.r, exists), -1)

    def instances(self, features: Tensor) -> Tensor:
        """Distributions of the instances: bags (..., J, F) to (..., J, 2); missing instances have NaN."""
        exists = present(features)
        return torch.where(exists[..., None], self._instances(features, exists), torch.nan)

    def _instances(self, features: Tensor, exists: Tensor) -> Tensor:
        # The gradient of a missing instance must not be NaN either.
        return self.head(torch.where(exists[..., None], features, 0.0))
