"""A bound on what a description may ask for: it is built without memory first, and what it would take is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ldl.errors import LDLError

ALWAYS = 4 * 2**30
"""Bytes that any model may take while it is built, temporary ones among them."""
RATIO = 16
"""How many times the bytes of its file beyond that."""
EACH = 2**18
"""Bytes that a tensor counts for at least, so that endless many small ones are counted too."""


class _TooLarge(BaseException):
    """No ``except Exception`` on the way may take it."""


class _Count(TorchDispatchMode):
    """Counts what is made, and stops where it is too much."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.left = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.left -= max(EACH, made.numel() * made.element_size())
            if self.left < 0:
                raise _TooLarge
        return made


def check_size(build: Callable[[], Any], size: int) -> Any:
    """What ``build`` makes, on torch's device ``meta``, where tensors have shapes and no memory.

    Args:
        build: Makes a model and returns it.
        size: Bytes of the file that says what to make.

    Returns:
        The model without memory; None where one of its parts cannot be made so.

    Raises:
        LDLError: it would take far more memory than its file, or ``build`` refuses.
    """
    most = ALWAYS + RATIO * size
    try:
        with torch.device("meta"), _Count(most):
            return build()
    except _TooLarge:
        raise LDLError(f"its model would take more than {most >> 30} GB, and the file has {size} bytes") from None
    except LDLError:
        raise
    except Exception:  # some of what plugins do needs memory; the model is then built as it is
        return None
