"""Counts where the host would wait for a device, on a machine that has none: tensors are marked as being there."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
READS = {aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten.equal, aten._unique2, aten.bincount}
"""What gives the host a number, or a tensor whose size the host has to know."""

INDEXES = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
"""What does so where an index is a mask."""


class Waits:
    """Within its context, :attr:`found` lists the places where the host reads what was computed of marked tensors.

    It sees every operation, those of the backward pass and of the optimiser too, and the methods that read a tensor of
    the CPU without one.
    """

    def __init__(self) -> None:
        self.found: list[str] = []

    def __enter__(self) -> Self:
        self._modes = ExitStack()
        self._modes.enter_context(_Operations(self._tell))
        self._modes.enter_context(_Methods(self._tell))
        return self

    def __exit__(self, *error: Any) -> None:
        self._modes.close()

    def _tell(self, what: str) -> None:
        places = [
            f"{line.filename.rpartition('site-packages/')[2]}:{line.lineno}" for line in traceback.extract_stack()
        ]
        own = [place for place in places if "ldl/" in place or "lightning" in place]
        self.found.append(f"{what} at {' < '.join(own[:-9:-1])}")


def send(tensor: Tensor) -> Tensor:
    """A copy that counts as being on the device."""
    copy = tensor.detach().clone()
    mark(copy)
    return copy


def mark(*tensors: Tensor) -> None:
    """Have tensors count as being on the device, and what is computed of them."""
    for tensor in tensors:
        tensor.is_there = True  # type: ignore[attr-defined]


def _is_there(value: Any) -> bool:
    return isinstance(value, Tensor) and getattr(value, "is_there", False)


class _Operations(TorchDispatchMode):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self.tell = tell

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = tree_leaves((args, kwargs))
        out = func(*args, **(kwargs or {}))
        if any(map(_is_there, given)):
            packet = func.overloadpacket
            mask = packet in INDEXES and any(isinstance(part, Tensor) and part.dtype == torch.bool for part in args[1])
            if packet in READS or mask:
                self.tell(str(func))
            mark(*(part for part in tree_leaves(out) if isinstance(part, Tensor)))
        return out


class _Methods(TorchFunctionMode):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self.tell = tell

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if args and _is_there(args[0]):
            # A device, in place of its name, is that of another tensor: where marked ones would be already.
            back = func is Tensor.to and "cpu" in (*args[1:2], kwargs.get("device"))
            if back and kwargs.get("non_blocking"):
                copy = args[0].detach().clone()  # which is on its way, and is read when it has arrived
                copy.is_there = False
                return copy
            if back or func in (Tensor.tolist, Tensor.cpu, Tensor.numpy):
                self.tell(func.__name__)
        return func(*args, **kwargs)
