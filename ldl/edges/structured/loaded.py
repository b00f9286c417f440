"""Checks of a structured forest that was loaded, before compiled code walks through it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ldl.edges.structured.channels import CHANNELS, FEATURES, LABEL, SIDE
from ldl.edges.structured.forest import OF_KEPT
from ldl.trust.learned import check_numbers, check_range, check_shapes, check_trees, refuse

ROWS = 100_000
"""Segmentations that are checked at a time."""
KEPT = {"start": "S", "segments": "N P", "points": "N B", "kernel": "B G H H", "bias": "B"}


def check_forest(head: nn.Module, components: int) -> None:
    """Hold the buffers of a head against :class:`.forest.EdgeForest`.

    Args:
        head: Has them under the names of :meth:`.forest.EdgeForest.arrays`.
        components: Of the descriptors of kept patches; 0 where none are kept.

    Raises:
        LDLError: what is no forest of segmentations, or no patches of its leaves.
    """
    kept = {OF_KEPT + name: shape for name, shape in KEPT.items()} if components else {}
    sizes = check_shapes(
        head, {"P": LABEL * LABEL, "B": components, "G": CHANNELS, "H": SIDE}, roots="T", feature="M D", weight="M D",
        threshold="M", child="M", segments="L P", **kept,
    )  # fmt: skip
    feature: Tensor = head.get_buffer("feature")
    check_range(head, "feature", feature, FEATURES, -1)
    if not sizes["D"]:
        refuse(head, "feature", "has nodes without features")
    inner = feature[:, 0] >= 0
    check_range(head, "feature", feature[inner], FEATURES)
    check_trees(head, head.get_buffer("roots"), inner, head.get_buffer("child"), sizes["L"])
    numbers = ["weight", "threshold", *(OF_KEPT + name for name in ("points", "kernel", "bias") if components)]
    for name in numbers:
        check_numbers(head, name, head.get_buffer(name))
    _check_segments(head, "segments")
    if components:
        _check_segments(head, f"{OF_KEPT}segments")
        start = head.get_buffer(f"{OF_KEPT}start")
        check_range(head, f"{OF_KEPT}start", start, sizes["N"] + 1)
        ends = (int(start[0]), int(start[-1])) if len(start) else ()
        if sizes["S"] != sizes["L"] + 1 or ends != (0, sizes["N"]) or bool((start.diff() < 0).any()):
            refuse(head, f"{OF_KEPT}start", "does not share the kept patches among the leaves")


def _check_segments(head: nn.Module, name: str) -> None:
    """The segments of each row must be numbered 0, 1, ... without a gap."""
    segments = head.get_buffer(name)
    check_range(head, name, segments, LABEL * LABEL)
    # Part by part: as indices they take eight times the memory, and leaves may keep millions.
    for number, part in enumerate(segments.split(ROWS)):
        there = torch.zeros(len(part), LABEL * LABEL, dtype=torch.bool, device=part.device)
        there.scatter_(1, part.long(), True)
        gap = (there.sum(1) != part.amax(1).long() + 1).nonzero()
        if len(gap):
            refuse(head, name, f"row {number * ROWS + int(gap[0])} leaves out a number")
