"""Whether a head takes what a backbone gives."""

from __future__ import annotations

from torch import nn

from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head, ImageHead


def check_images(head: Head, backbone: nn.Module, whole: bool) -> None:
    """Refuse a head that does not take what the backbone gives: ``whole`` images, or features."""
    if isinstance(head, ImageHead) != whole:
        raise LDLError(
            f"{type(head).__name__} cannot use the backbone {type(backbone).__name__}; heads fitted on images, and "
            "they alone, take WholeImages; leave model.backbone out, or null"
        )


def check_bags(head: Head, bags: bool) -> None:
    """Refuse a head of single instances where there are ``bags``."""
    name = type(head).__name__
    if bags and not head.takes_bags:
        by_gradient = not isinstance(head, AlternatingHead | FittedHead)
        pooled = f"pool it with --model.head Bagged --model.head.head {name}, or use" if by_gradient else "use"
        raise LDLError(f"{name} takes single instances, and the data are bags; {pooled} MILBoost")
