"""Hidden layers of gradient heads, and parameters of the members of an ensemble that share one network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def mlp(
    in_features: int,
    hidden: Sequence[int],
    out_features: int,
    dropout: float,
    input_dropout: float,
    members: int = 1,
) -> nn.Sequential:
    """Return linear layers on the last dimension, with ReLU and ``dropout`` after each ``hidden`` layer.

    If ``members`` k is above 1, k networks share the hidden layers, and the output is (..., k, ``out_features``). They
    differ by an adapter of the input and by their output layers (TabM-mini, Gorishniy et al. 2025).
    """
    layers: list[nn.Module] = [Adapter(members, in_features)] if members > 1 else []
    # After the adapter, so that every member drops its own features.
    layers += [nn.Dropout(input_dropout)] if input_dropout else []
    for width in hidden:
        layers += [nn.Linear(in_features, width), nn.ReLU()]
        layers += [nn.Dropout(dropout)] if dropout else []
        in_features = width
    output = nn.Linear(in_features, out_features) if members == 1 else MemberLinear(members, in_features, out_features)
    return nn.Sequential(*layers, output)


class Adapter(nn.Module):
    """Elementwise scaling of the features by the weights of each member: (..., F) to (..., k, F).

    The weights start as random signs, like the rank-1 weights of BatchEnsemble (Wen et al. 2020), which TabM keeps at
    the first layer (Gorishniy et al. 2025). The shared layer after the adapter then differs between members.
    """

    def __init__(self, members: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(2.0 * torch.randint(0, 2, (members, features)) - 1)

    def forward(self, features: Tensor) -> Tensor:
        """Scale features (..., F) to (..., k, F)."""
        return features.unsqueeze(-2) * self.weight


class MemberLinear(nn.Module):
    """A linear layer per member, (..., k, F) to (..., k, O), initialised like ``nn.Linear``."""

    def __init__(self, members: int, in_features: int, out_features: int) -> None:
        super().__init__()
        bound = in_features**-0.5
        self.weight = nn.Parameter(torch.empty(members, in_features, out_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, out_features).uniform_(-bound, bound))

    def forward(self, features: Tensor) -> Tensor:
        """Map features (..., k, F) to (..., k, O)."""
        return torch.einsum("...kf,kfo->...ko", features, self.weight) + self.bias
