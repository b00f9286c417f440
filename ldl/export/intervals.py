"""Intervals of predicted distributions by torch alone: those that ``ldl.inference.Predictions.interval`` gives."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.conformal.line import HAIR, LEAST


def interval(labels: LabelSpace, distribution: Tensor, level: float, calibration: Conformal | None) -> Tensor:
    """Lower and upper ends (..., 2), of a grid (..., 2 axes, 2), in the labels' unit; float32.

    Args:
        labels: The label space, with values.
        distribution: (..., C).
        level: Share of the rows, where it is calibrated, else of the mass.
        calibration: What validation rows said; None takes the central interval, whose ends are labels.
    """
    distribution = distribution.double()
    if calibration is None:
        tail = (1 - level) / 2
        ends = [labels.quantile(distribution, probability) for probability in (tail, 1 - tail)]
        return torch.stack(ends, -1).float()
    parts = zip(_marginals(labels, distribution), labels.axes, calibration.scores)
    found = [_on_line(part, axis, own.threshold(level)) for part, axis, own in parts]
    return (found[0] if len(found) == 1 else torch.stack(found, -2)).float()


def _marginals(labels: LabelSpace, distribution: Tensor) -> list[Tensor]:
    shape = [len(axis) for axis in labels.axes]
    if labels.cells is not None:
        places = torch.zeros(len(labels.cells), math.prod(shape), dtype=distribution.dtype)
        places[range(len(labels.cells)), list(labels.cells)] = 1
        distribution = distribution @ places
    table = distribution.unflatten(-1, shape)
    others = [[axis - labels.ndim for axis in range(labels.ndim) if axis != own] for own in range(labels.ndim)]
    return [table.sum(axes) if axes else table for axes in others]


def _on_line(p: Tensor, axis: tuple[float, ...], score: float) -> Tensor:
    """All values whose score is at most the given one: see ``ldl.methods.conformal.line.line_intervals``."""
    values = np.asarray(axis)
    middles = (values[1:] + values[:-1]) / 2
    ends = [2 * values[0] - middles[0], 2 * values[-1] - middles[-1]] if len(middles) else [-0.5, 0.5] + values
    edges = torch.from_numpy(np.concatenate([ends[:1], middles, ends[1:]]))
    p = p / p.sum(-1, keepdim=True)
    p = torch.where(p < LEAST, 0.0, p)
    p = p / p.sum(-1, keepdim=True)
    tail, more = max((1 - score - HAIR) / 2, 0.0), max(score + HAIR - 1, 0.0) * float(values[-1] - values[0] or 1)
    if math.isinf(more):
        return torch.zeros_like(p[..., :2]) + torch.from_numpy(values[[0, -1]])
    lower = _quantile(p, edges, tail) - more
    upper = more - _quantile(p.flip(-1), -edges.flip(0), tail)
    return torch.stack([lower, upper], -1).clamp(axis[0], axis[-1])


def _quantile(p: Tensor, edges: Tensor, tail: float) -> Tensor:
    """The lowest value with at least ``tail`` of the mass below it; of 0 where the mass begins."""
    total = p.cumsum(-1)
    short, begin = (total < tail).sum(-1).clamp_max(p.shape[-1] - 1), (total <= 0).sum(-1)
    cell = torch.maximum(short, begin)
    own, sum_to = (part.gather(-1, cell.unsqueeze(-1)).squeeze(-1) for part in (p, total))
    share = ((tail - sum_to + own) / torch.where(own > 0, own, 1.0)).clamp(0, 1)
    return edges[cell] + share * edges.diff()[cell]
