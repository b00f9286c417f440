"""Soft decision trees: routing probabilities, and the closed-form update of the leaves (Shen et al. 2017).

Pure functions, vectorised over K trees. A tree of depth h has 2^(h-1) - 1 split nodes in heap order (the children of n
are 2n+1, left, and 2n+2, right) and L = 2^(h-1) leaves from left to right.

In memory, samples are the last dimension of every tensor. Libraries multiply matrices of few labels and many columns
several times as fast as matrices of many rows and few labels, and levels of a tree are joined without interleaving.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import threshold

from ldl.collective import Collective
from ldl.labels import KL_FLOOR


def route(decisions: Tensor) -> Tensor:
    """Return the probability of reaching each leaf (Eq. 1).

    Args:
        decisions: (..., L - 1), the probability of going left at each split node, in heap order.

    Returns:
        (..., L), on the simplex, with the first dimension last in memory.
    """
    reverse = tuple(range(decisions.ndim - 1, -1, -1))
    nodes = decisions.permute(reverse)
    depth = (int(nodes.shape[0]) + 1).bit_length() - 1
    reach = torch.ones_like(nodes[:1])
    # One split: the backward of one slice per level would fill and add a whole tensor for each.
    for level in nodes.split([2**d for d in range(depth)]):
        left = reach * level
        reach = torch.stack([left, reach - left], dim=1).flatten(0, 1)
    return reach.permute(reverse)


def mix(routing: Tensor, leaves: Tensor) -> Tensor:
    """Return the output (..., K, C) of each tree from routing (..., K, L) and leaves (K, L, C) (Eq. 2)."""
    by_tree = routing.reshape(-1, *routing.shape[-2:]).permute(1, 2, 0)
    output = torch.bmm(leaves.transpose(1, 2), by_tree).permute(2, 0, 1)
    return output.reshape(*routing.shape[:-1], leaves.shape[-1])


@torch.no_grad()
def update_leaves(
    routing: Tensor, target: Tensor, leaves: Tensor, iterations: int = 20, collective: Collective | None = None,
    smoothing: float = 0.0, floor: float = 0.0,
) -> Tensor:  # fmt: skip
    """Update the leaf distributions by fixed-point iterations with fixed routing (Eq. 12).

    Every iteration multiplies q_lc by sum_i d_ic p(l|x_i) / g_ic and divides by the sum of the leaf's row. With a
    ``smoothing`` of 0, no iteration raises the cross-entropy on these samples. A leaf that no sample reaches keeps its
    row. Probabilities below 5e-26 (float32) become 0. Memory: one (N, K, C) tensor besides the arguments.

    Args:
        routing: (N, K, L), rows on the simplex; N may be 0 on some ranks.
        target: (N, C), rows on the simplex, each times its weight.
        leaves: (K, L, C), rows on the simplex.
        iterations: Number of fixed-point iterations.
        collective: Numerators are summed over its processes at every iteration.
        smoothing: Pseudo-samples with the mean target that are added to every leaf (a Dirichlet prior; not in the
            paper).
        floor: Smallest probability in a leaf before it is divided by its sum. As the update multiplies, a label that is
            missing from these samples would otherwise stay at 0 (not in the paper).

    Returns:
        The new leaves, (K, L, C), at least float32.
    """
    collective = collective or Collective()
    dtype = torch.promote_types(leaves.dtype, torch.float32)
    with torch.autocast(leaves.device.type, enabled=False):
        by_tree = routing.to(dtype).permute(1, 2, 0).contiguous()
        target = target.to(dtype).t().contiguous()
        leaves = leaves.to(dtype).transpose(1, 2)
        prior = torch.zeros_like(leaves[0, :, :1])
        # Products of smaller numbers are subnormal, with which processors compute 20 times slower.
        negligible = torch.finfo(dtype).tiny ** (2 / 3)
        if smoothing > 0:
            mass = collective.sum(target.sum(1, keepdim=True))
            prior = smoothing * mass / mass.sum().clamp_min(KL_FLOOR)
        for _ in range(iterations):
            output = torch.bmm(leaves, by_tree).clamp_min_(KL_FLOOR)
            weighted = torch.div(target, output, out=output)
            numerator = leaves * torch.bmm(weighted, by_tree.transpose(1, 2))
            numerator = collective.sum(numerator) + prior
            total = numerator.sum(1, keepdim=True)
            leaves = torch.where(total > torch.finfo(dtype).tiny, numerator / total, leaves)
            leaves = threshold(leaves, negligible, 0.0)
        if floor > 0:
            leaves = leaves.clamp_min(floor)
            leaves = leaves / leaves.sum(1, keepdim=True)
    return leaves.transpose(1, 2).contiguous()
