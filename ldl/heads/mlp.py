"""The hidden layers that gradient heads may put before their output."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def mlp(
    in_features: int, hidden: Sequence[int], out_features: int, dropout: float, input_dropout: float
) -> nn.Sequential:
    """Linear layers on the last dimension; each ``hidden`` one with ReLU and ``dropout``, the input with its own."""
    layers: list[nn.Module] = [nn.Dropout(input_dropout)] if input_dropout else []
    for width in hidden:
        layers += [nn.Linear(in_features, width), nn.ReLU()]
        layers += [nn.Dropout(dropout)] if dropout else []
        in_features = width
    return nn.Sequential(*layers, nn.Linear(in_features, out_features))
