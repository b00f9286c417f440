"""Objects with large arrays that the processes of one machine hold once: the arrays are maps of files."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import torch
from torch import Tensor

SMALL = 1 << 16
"""Bytes up to which an array is copied to each process."""


def share(value: Any, folder: Path) -> bytes:
    """An object for :func:`unshare` in processes that this one has begun; ``folder`` gets its large arrays.

    Arrays and tensors come back as copy-on-write maps: pages are shared until one is written to.
    """
    stream = io.BytesIO()
    folder.mkdir(parents=True, exist_ok=True)
    _Sharer(stream, folder).dump(value)
    return stream.getvalue()


def unshare(shared: bytes) -> Any:
    """What :func:`share` was given by the process that has begun this one; never for bytes of a file."""
    return pickle.loads(shared)


class _Sharer(cloudpickle.Pickler):
    def __init__(self, stream: io.BytesIO, folder: Path) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.folder = folder
        self.count = 0

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Tensor and value.device.type == "cpu" and value.layout == torch.strided:
            plain = not value.requires_grad and value.dtype != torch.bfloat16 and not value.is_quantized
            if plain and value.nbytes > SMALL:
                return _tensor_of, (self._write(value.numpy()),)
        if type(value) in (np.ndarray, np.memmap) and value.dtype != object and value.nbytes > SMALL:
            return _array_of, (self._write(value),)
        return super().reducer_override(value)

    def _write(self, array: np.ndarray) -> str:
        path = self.folder / f"{self.count}.npy"
        self.count += 1
        np.save(path, np.asarray(array), allow_pickle=False)
        return str(path.absolute())


def _array_of(path: str) -> np.ndarray:
    # A plain array: subclasses are carried on into what is computed from them.
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def _tensor_of(path: str) -> Tensor:
    return torch.from_numpy(_array_of(path))
