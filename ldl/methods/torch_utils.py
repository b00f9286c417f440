"""Helpers around torch: process settings, one thread, recorded graphs, and eigenvectors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch import Tensor


@contextmanager
def library_defaults(device: str | None = "cpu") -> Iterator[None]:
    """Compute in float32 on a device, with gradients and without autocast, and restore the settings afterwards.

    Use it in functions that users call directly. A notebook may have called ``torch.set_default_dtype``,
    ``torch.set_default_device``, ``torch.set_grad_enabled`` or ``np.seterr``, or be inside ``torch.inference_mode`` or
    ``torch.autocast``. Only the default dtype is shared by all threads of the process.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        if device and torch.get_default_device().type != device:  # a default device slows every call down
            stack.enter_context(torch.device(device))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield


_turn = threading.Lock()
_had: dict[int, int] = {}
"""Threads of the program inside :func:`one_thread`, and the number of torch threads that each had."""


@contextmanager
def one_thread() -> Iterator[int]:
    """Limit torch to one thread, so that the last bits of linear algebra do not depend on the number of threads.

    Several threads of a program may be inside at once.

    Yields:
        The number of threads before, which is restored afterwards.
    """
    me = threading.get_ident()
    if me in _had:
        yield 1
        return
    with _turn:
        # A thread that calls torch for the first time inherits the last setting of another thread, which may be 1.
        _had[me] = before = max([torch.get_num_threads(), *_had.values()])
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        with _turn:
            del _had[me]
            torch.set_num_threads(before)


def traced() -> bool:
    """Return whether ``torch.export``, ``torch.onnx`` or ``torch.jit.trace`` is recording.

    Then sizes and numbers may be unknown, and only torch may compute. Code must use plain tensor operations, and return
    NaN for a row instead of raising an error.
    """
    return torch.jit.is_tracing() or torch.compiler.is_exporting()


def pick(table: Tensor, index: Tensor) -> Tensor:
    """Return ``table[index]`` for a table (M, ...) and an int64 index of any shape, in the fastest form for graphs."""
    return table.index_select(0, index.flatten()).unflatten(0, index.shape)


def as_rows(output: Tensor, features: Tensor) -> Tensor:
    """Return outputs (N, C) of the rows of features (..., F) as (..., C), in their dtype but at least float32."""
    dtype = torch.promote_types(features.dtype, torch.float32)
    return output.to(dtype).reshape(*features.shape[:-1], output.shape[1])


def eigh(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Return rising eigenvalues (..., n) and eigenvectors (..., n, n) of symmetric matrices.

    On CPUs, ``torch.linalg.eigh`` uses MKL, which may not converge if most rows are 0, as in Gram matrices of low rank.
    Then NumPy computes them in double precision.
    """
    try:
        values, vectors = torch.linalg.eigh(matrices)
    except torch.linalg.LinAlgError:
        pairs = np.linalg.eigh(matrices.double().cpu().numpy())
        values, vectors = (torch.from_numpy(array).to(matrices) for array in pairs)
    return values, vectors
