"""Whether torch is recording a graph of what is computed, as for a file that runs without Python."""

from __future__ import annotations

import torch
from torch import Tensor


def traced() -> bool:
    """Whether ``torch.export``, ``torch.onnx`` or ``torch.jit.trace`` is recording.

    Then sizes may be unknown, numbers are, and only torch may compute: code takes its branch of plain tensor operations
    and, where it would raise for a row, gives NaN.
    """
    return torch.jit.is_tracing() or torch.compiler.is_exporting()


def pick(table: Tensor, index: Tensor) -> Tensor:
    """``table[index]`` of a table (M, ...) and an index of any shape, int64; in graphs the fastest way to say it."""
    return table.index_select(0, index.flatten()).unflatten(0, index.shape)
