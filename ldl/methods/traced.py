"""Whether torch is recording a graph of what is computed, as for a file that runs without Python."""

from __future__ import annotations

import torch


def traced() -> bool:
    """Whether ``torch.export``, ``torch.onnx`` or ``torch.jit.trace`` is recording.

    Then sizes may be unknown, numbers are, and only torch may compute: code takes its branch of plain tensor operations
    and, where it would raise for a row, gives NaN.
    """
    return torch.jit.is_tracing() or torch.compiler.is_exporting()
