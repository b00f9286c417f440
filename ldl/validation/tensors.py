"""Check tensors of a loaded model before compiled code relies on them: shapes, ranges, distributions and trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NoReturn

import torch
from torch import Tensor, nn

from ldl.errors import LDLError

RANGE = re.compile(r"(-?\d+) <= number (<=?) (\w+)")
"""Rule of a buffer of integers, such as ``-1 <= number < F``."""
KINDS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "finite": (torch.isfinite, "a finite number"),
    "positive": (lambda numbers: numbers.isfinite() & (numbers > 0), "a positive number"),
    "not negative": (lambda numbers: numbers.isfinite() & (numbers >= 0), "a number of at least 0"),
    "not NaN": (lambda numbers: ~numbers.isnan(), "a number or infinity"),
}
"""Kinds of numbers, each with its test of every number, and in words."""


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


def check_numbers(module: nn.Module, name: str, numbers: Tensor, kind: str = "finite") -> None:
    """Raise LDLError if a number is not of a kind of :data:`KINDS`."""
    test, words = KINDS[kind]
    if not bool((good := test(numbers)).all()):
        refuse(module, name, f"holds {float(numbers[~good].flatten()[0]):g}, not {words}")


def check_buffers(module: nn.Module, rules: Mapping[str, str], **lengths: int) -> dict[str, int]:
    """Check buffers against rules such as ``"N C: distributions"``: the shape, and then the numbers.

    In a shape, a letter stands for the same length everywhere, a number for itself, and ``...`` for any shape. The
    shape of a single number is empty. The numbers are of a kind of :data:`KINDS`, ``bool``, ``distributions`` along the
    last dimension, or integers in a range such as ``-1 <= number < F``. Without a colon they may be anything.

    Args:
        module: The module with the buffers as attributes.
        rules: Rule of each buffer, by name.
        **lengths: Letters with a known length. Other letters take their length from the first buffer that has them.

    Returns:
        The lengths of all letters.

    Raises:
        LDLError: A buffer breaks its rule. All shapes come before all numbers.
    """
    split = {name: rule.partition(": ") for name, rule in rules.items()}
    for name, (shape, _, _) in split.items():
        _check_shape(module, name, shape.removesuffix(":").split(), lengths)
    for name, (_, _, kind) in split.items():
        numbers: Tensor = getattr(module, name)
        if kind == "distributions":
            check_simplex(module, name, numbers)
        elif bounds := RANGE.fullmatch(kind):
            least, sign, most = bounds.groups()
            check_range(module, name, numbers, _length(most, lengths) + (sign == "<="), int(least))
        elif kind == "bool":
            if numbers.dtype != torch.bool:
                refuse(module, name, f"is of {numbers.dtype}, not of bool")
        elif kind:
            check_numbers(module, name, numbers, kind)
    return lengths


def _check_shape(module: nn.Module, name: str, wanted: list[str], lengths: dict[str, int]) -> None:
    """Raise LDLError if a buffer has another shape, and take the lengths of new letters from it."""
    shape = tuple(getattr(module, name).shape)
    if wanted == ["..."]:
        return
    for letter, length in zip(wanted, shape):
        if letter.isalpha():
            lengths.setdefault(letter, length)
    if list(shape) != [_length(letter, lengths) for letter in wanted]:
        shown = ", ".join(f"{letter}={lengths[letter]}" if letter in lengths else letter for letter in wanted)
        refuse(module, name, f"has shape {shape}, not ({shown})")


def _length(text: str, lengths: Mapping[str, int]) -> int:
    """Return what a letter or a number of a rule stands for; -1 for a letter without a length."""
    return int(text) if text.isdigit() else lengths.get(text, -1)


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
