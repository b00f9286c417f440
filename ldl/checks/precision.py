"""Precisions that this machine gets wrong."""

from __future__ import annotations

import torch
from pytorch_lightning.utilities import rank_zero_warn


def warn_of_bf16(precision: str, device: torch.device) -> None:
    """Say that bf16 may give NaN: with AVX-512, oneDNN's gradient of a kernel of a convolution reads unwritten memory.

    It was seen where a kernel of 3x3 meets a map of 1x1, in about half of all runs: in torch 2.14 with AMX, in 2.15
    without it, too.
    """
    if "bf16" in precision and device.type == "cpu" and torch.cpu._is_avx512_supported():
        rank_zero_warn(
            f"trainer.precision {precision} on a processor with AVX-512: convolutions over very small maps may give "
            "NaN; use --trainer.precision 32-true if the loss does",
            category=UserWarning,
        )
