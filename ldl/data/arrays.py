"""Arrays of what users hold: tensors, sparse matrices, nested lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from ldl.errors import LDLError

MOST_NUMBERS = 2**30
"""Of a sparse matrix, which becomes a full one."""


def as_full(given: Any, what: str) -> Any:
    """A sparse matrix or tensor as a full one, all else as it is. Raises LDLError where ``what`` is too large."""
    of_torch = isinstance(given, Tensor)
    if not (given.layout != torch.strided if of_torch else scipy.sparse.issparse(given)):
        return given
    if math.prod(given.shape) > MOST_NUMBERS:
        raise LDLError(f"{what} have shape {tuple(given.shape)}, {MOST_NUMBERS} numbers at most are read")
    return given.detach().to_dense() if of_torch else given.toarray()


def as_array(given: Any) -> np.ndarray:
    """An array of what is one, or a tensor, or nested lists; bfloat16, which numpy does not know, as float32.

    Sparse matrices and tensors become full. Raises LDLError for lists of unequal length, or what has no numbers.
    """
    try:
        given = as_full(given, "inputs")
        if isinstance(given, Tensor):
            # Tensors on a device, or with gradients, are no arrays.
            given = given.detach().cpu()
            return (given.float() if given.dtype == torch.bfloat16 else given).numpy()
        return np.asarray(given)
    except LDLError:
        raise
    except (ValueError, TypeError, RuntimeError) as error:
        raise LDLError(f"inputs are no array: {' '.join(str(error).split())[:160]}") from None
