"""Which process this is, also before torch.distributed is initialised."""

from __future__ import annotations

from pytorch_lightning.utilities import rank_zero_only


def process_rank() -> int:
    """Number of this process, as Lightning knows it from the launcher's environment."""
    return getattr(rank_zero_only, "rank", 0)
