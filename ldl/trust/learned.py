"""Checks of what a model has learned, after it was loaded and before any compiled code relies on it."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor, nn

from ldl.errors import LDLError


def refuse(module: nn.Module, name: str, why: str) -> NoReturn:
    """Raise LDLError for what was loaded as ``name``."""
    raise LDLError(
        f"loaded weights do not make a {type(module).__name__}: {name} {why}; the file is damaged or was changed, "
        "take another one"
    )


def check_parameters(module: nn.Module) -> None:
    """Raise LDLError for the first parameter that is not finite."""
    for name, parameter in module.named_parameters():
        check_numbers(module, name, parameter.detach())


def check_numbers(module: nn.Module, name: str, values: Tensor) -> None:
    """Raise LDLError where a number is not finite."""
    if not bool(values.isfinite().all()):
        refuse(module, name, f"holds {float(values[~values.isfinite()].flatten()[0])}, not a finite number")


def check_shapes(module: nn.Module, lengths: dict[str, int], **shapes: str) -> dict[str, int]:
    """Hold buffers against shapes such as ``"M D"``, in which a letter stands for one length wherever it occurs.

    Args:
        module: Has the buffers as attributes.
        lengths: Letters whose length is known; the others take that of the first buffer that has them.
        **shapes: The shape of each buffer; empty for a single number.

    Returns:
        The lengths of all letters.

    Raises:
        LDLError: a buffer of another shape.
    """
    known = dict(lengths)
    for name, letters in shapes.items():
        found, wanted = tuple(getattr(module, name).shape), letters.split()
        fits = len(found) == len(wanted) and all(
            length == known.setdefault(letter, length) for letter, length in zip(wanted, found)
        )
        if not fits:
            shown = ", ".join(f"{letter}={known[letter]}" if letter in known else letter for letter in wanted)
            refuse(module, name, f"has shape {found}, not ({shown})")
    return known


def check_range(module: nn.Module, name: str, numbers: Tensor, below: int, least: int = 0) -> None:
    """Raise LDLError for a number outside of ``least`` to ``below``, which is not allowed itself, or no integer."""
    if numbers.is_floating_point() or numbers.is_complex():
        refuse(module, name, f"has {numbers.dtype} numbers, not integers")
    numbers = numbers.long()
    bad = numbers[(numbers < least) | (numbers >= below)]
    if len(bad):
        refuse(module, name, f"holds {int(bad[0])}, which is not in {least}..{below - 1}")


def check_simplex(module: nn.Module, name: str, rows: Tensor) -> None:
    """Raise LDLError for a row (..., C) that is no distribution, or where there is none."""
    flat = rows.reshape(-1, rows.shape[-1])
    if not len(flat):
        refuse(module, name, "has no distributions")
    if len(wrong := off_simplex(flat)):
        row = flat[wrong[0]]
        check_numbers(module, name, row)
        refuse(module, name, f"row {int(wrong[0])} is no distribution: least {row.min():g}, sum {row.sum():g}")


def off_simplex(rows: Tensor) -> Tensor:
    """Which of the rows (N, C) are no distributions, but for rounding: (M,) int64."""
    rounding = max(1e-3, 2 * torch.finfo(rows.dtype).eps)
    sums = rows.sum(1, dtype=torch.float64)
    # What is NaN is neither near 1 nor anything else.
    return (~((sums - 1).abs() <= rounding) | (rows.amin(1) < 0)).nonzero()[:, 0]


def check_trees(
    module: nn.Module, roots: Tensor, inner: Tensor, child: Tensor, leaves: int, depth: int | None = None
) -> int:
    """Refuse what are no trees: every node but the roots must be the child of exactly one node.

    So no walk from a root leaves the nodes or goes in a circle, and every leaf names one of ``leaves`` values.

    Args:
        module: The head, for messages.
        roots: (K,) the first node of each tree.
        inner: (M,) bool, which nodes have children.
        child: (M,) the left child, which the right one follows; in a leaf its number.
        leaves: How many leaves there are.
        depth: Splits that the longest path may have; None allows any number.

    Returns:
        How many it has.

    Raises:
        LDLError: another structure.
    """
    roots, inner, child = roots.cpu(), inner.cpu(), child.cpu()
    nodes = len(inner)
    left = child[inner].long()
    check_range(module, "roots", roots, nodes)
    check_range(module, "child", child[inner], nodes - 1)
    check_range(module, "child", child[~inner], leaves)
    named = torch.cat([roots.long(), left, left + 1])
    if len(named) != nodes or not bool((torch.bincount(named, minlength=nodes) == 1).all()):
        refuse(module, "child", "makes no trees: a node is the child of several nodes, or of none")
    longest = longest_path(roots, inner, child)
    if depth is not None and longest > depth:
        refuse(module, "child", f"makes trees with more than {depth} splits on a path")
    return longest


def longest_path(roots: Tensor, inner: Tensor, child: Tensor) -> int:
    """Splits on the longest path of trees: so many steps lead every row to its leaf. As for :func:`check_trees`."""
    steps, level = 0, roots.long()
    while len(level := level[inner[level]]):
        left = child[level].long()
        steps, level = steps + 1, torch.cat([left, left + 1])
    return steps
