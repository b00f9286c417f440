"""The hidden layers that gradient heads may put before their output."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from ldl.heads.members import Adapter, MemberLinear


def mlp(
    in_features: int,
    hidden: Sequence[int],
    out_features: int,
    dropout: float,
    input_dropout: float,
    members: int = 1,
) -> nn.Sequential:
    """Linear layers on the last dimension; each ``hidden`` one with ReLU and ``dropout``, the input with its own.

    With more than one of ``members`` these k share the hidden layers, and the output is (..., k, ``out_features``):
    the k differ by an adapter of the input and by output layers of their own (TabM-mini, Gorishniy et al. 2025).
    """
    layers: list[nn.Module] = [Adapter(members, in_features)] if members > 1 else []
    # After the adapter: every member loses features of its own.
    layers += [nn.Dropout(input_dropout)] if input_dropout else []
    for width in hidden:
        layers += [nn.Linear(in_features, width), nn.ReLU()]
        layers += [nn.Dropout(dropout)] if dropout else []
        in_features = width
    output = nn.Linear(in_features, out_features) if members == 1 else MemberLinear(members, in_features, out_features)
    return nn.Sequential(*layers, output)
