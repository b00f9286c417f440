"""Members of an ensemble that share one network: where they part, and where each goes on alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Adapter(nn.Module):
    """Gives every member a copy of the features, scaled elementwise by weights of its own: (..., F) to (..., k, F).

    The weights start as random signs, the rank-1 start of BatchEnsemble (Wen et al. 2020) that TabM keeps at the first
    layer (Gorishniy et al. 2025): the shared layer after it then is a different one to each member.
    """

    def __init__(self, members: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(2.0 * torch.randint(0, 2, (members, features)) - 1)

    def forward(self, features: Tensor) -> Tensor:
        """Features (..., F) to (..., k, F)."""
        return features.unsqueeze(-2) * self.weight


class MemberLinear(nn.Module):
    """A linear layer of its own to every member: (..., k, F) to (..., k, O). It starts as ``nn.Linear`` does."""

    def __init__(self, members: int, in_features: int, out_features: int) -> None:
        super().__init__()
        bound = in_features**-0.5
        self.weight = nn.Parameter(torch.empty(members, in_features, out_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, out_features).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """Features (..., k, F) to (..., k, O)."""
        return torch.einsum("...kf,kfo->...ko", features, self.weight) + self.bias
