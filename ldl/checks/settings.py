"""Whether what a task is told is in range, and fits its head."""

from __future__ import annotations

from typing import get_args

from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.labels import Decoder


def check_settings(head: Head, gives_maps: bool, mixup: float, crisp: float, decoder: str) -> None:
    """Raise LDLError: numbers out of range, an unknown decoder, bags to mix, or no ridges where some are traced."""
    if not 0 <= mixup <= 1000:
        raise LDLError(f"model.mixup {mixup!r} must be in 0..1000, 0 for none")
    if mixup and head.takes_bags and not isinstance(head, FittedHead):
        # Instances beyond the smaller of two bags would become NaN, which is none.
        raise LDLError(
            f"model.mixup {mixup!r} mixes single instances, and {type(head).__name__} takes bags; set it to 0"
        )
    if decoder not in (decoders := get_args(Decoder)):
        raise LDLError(f"model.decoder {decoder!r} must be one of {', '.join(decoders)}")
    if not 0 <= crisp <= 10:
        raise LDLError(f"model.crisp {crisp!r} must be in 0..10 pixels, 0 for none")
    if crisp and (not gives_maps or isinstance(head, FittedHead)):
        raise LDLError(
            f"model.crisp {crisp!r} is for heads that learn by gradient at every pixel, with a backbone such as "
            f"PixelFeatures; set it to 0 for {type(head).__name__} here"
        )
