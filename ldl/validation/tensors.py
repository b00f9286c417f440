"""Check tensors of a loaded model before compiled code relies on them: shapes, ranges, distributions and trees."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor, nn

from ldl.errors import LDLError


def refuse(module: nn.Module, name: str, why: str) -> NoReturn:
    """Raise LDLError for the loaded tensor ``name``."""
    raise LDLError(
        f"loaded weights do not make a {type(module).__name__}: {name} {why}; the file is damaged or was changed, "
        "use another one"
    )


def check_parameters(module: nn.Module) -> None:
    """Raise LDLError for the first parameter that is not finite."""
    for name, parameter in module.named_parameters():
        check_numbers(module, name, parameter.detach())


def check_numbers(module: nn.Module, name: str, values: Tensor) -> None:
    """Raise LDLError if a number is not finite."""
    if not bool(values.isfinite().all()):
        refuse(module, name, f"holds {float(values[~values.isfinite()].flatten()[0])}, not a finite number")


def check_buffers(module: nn.Module, *names: str) -> None:
    """Raise LDLError if a number of the named buffers is not finite."""
    for name in names:
        check_numbers(module, name, getattr(module, name))


def check_shapes(module: nn.Module, lengths: dict[str, int], **shapes: str) -> dict[str, int]:
    """Check buffers against shapes such as ``"M D"``, in which a letter stands for the same length everywhere.

    Args:
        module: The module with the buffers as attributes.
        lengths: Letters with a known length. Other letters take their length from the first buffer that has them.
        **shapes: Shape of each buffer; empty for a single number.

    Returns:
        The lengths of all letters.

    Raises:
        LDLError: A buffer has another shape.
    """
    lengths = dict(lengths)
    for name, letters in shapes.items():
        shape, wanted = tuple(getattr(module, name).shape), letters.split()
        fits = len(shape) == len(wanted) and all(
            length == lengths.setdefault(letter, length) for letter, length in zip(wanted, shape)
        )
        if not fits:
            shown = ", ".join(f"{letter}={lengths[letter]}" if letter in lengths else letter for letter in wanted)
            refuse(module, name, f"has shape {shape}, not ({shown})")
    return lengths


def check_range(module: nn.Module, name: str, numbers: Tensor, below: int, least: int = 0) -> None:
    """Raise LDLError unless all numbers are integers in ``least`` to ``below - 1``."""
    if numbers.is_floating_point() or numbers.is_complex():
        refuse(module, name, f"has {numbers.dtype} numbers, not integers")
    numbers = numbers.long()
    bad = numbers[(numbers < least) | (numbers >= below)]
    if len(bad):
        refuse(module, name, f"holds {int(bad[0])}, which is not in {least}..{below - 1}")


def check_simplex(module: nn.Module, name: str, rows: Tensor) -> None:
    """Raise LDLError unless there is at least one row (..., C) and all rows are distributions."""
    flat = rows.reshape(-1, rows.shape[-1])
    if not len(flat):
        refuse(module, name, "has no distributions")
    if len(wrong := off_simplex(flat)):
        row = flat[wrong[0]]
        check_numbers(module, name, row)
        refuse(module, name, f"row {int(wrong[0])} is no distribution: least {row.min():g}, sum {row.sum():g}")


def off_simplex(rows: Tensor) -> Tensor:
    """Return the numbers (M,) int64 of the rows (N, C) that are not distributions up to rounding."""
    rounding = max(1e-3, 2 * torch.finfo(rows.dtype).eps)
    sums = rows.sum(1, dtype=torch.float64)
    # A comparison with NaN is false.
    return (~((sums - 1).abs() <= rounding) | (rows.amin(1) < 0)).nonzero()[:, 0]


def check_trees(
    module: nn.Module, roots: Tensor, inner: Tensor, child: Tensor, leaves: int, depth: int | None = None
) -> int:
    """Check that nodes form trees: every node except the roots is the child of exactly one node.

    Then no walk from a root leaves the nodes or runs in a cycle, and every leaf names one of ``leaves`` values.

    Args:
        module: The head, for messages.
        roots: (K,) first node of each tree.
        inner: (M,) bool, whether a node has children.
        child: (M,) left child, which the right child follows; in a leaf the number of its value.
        leaves: Number of leaf values.
        depth: Largest number of splits on a path; None allows any number.

    Returns:
        The number of splits on the longest path.

    Raises:
        LDLError: The nodes do not form trees.
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
    """Return the number of splits on the longest path of trees; see :func:`check_trees` for the arguments."""
    steps, level = 0, roots.long()
    while len(level := level[inner[level]]):
        left = child[level].long()
        steps, level = steps + 1, torch.cat([left, left + 1])
    return steps
