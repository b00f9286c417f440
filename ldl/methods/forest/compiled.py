"""Compiles the loops of trees and edges, once per machine and version of the sources."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

config: Any = numba.config  # it makes its entries at run time
F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function with numba, without the interpreter's lock, and keep the machine code on disk."""
    return _compile(function)


def compiled_as_numpy(function: F) -> F:
    """As :func:`compiled`; division by 0 is no error but inf or NaN, so that loops become vector instructions."""
    return _compile(function, error_model="numpy")


def inlined(function: F) -> F:
    """As :func:`compiled`, for a part of a hot loop: it becomes one with its callers.

    A real call counts references to its arrays, with locked instructions that threads would fight over.
    """
    return _compile(function, forceinline=True)


def inlined_fast(function: F) -> F:
    """As :func:`inlined`, and sums may be taken in another order, which lets them use vector instructions."""
    return _compile(function, forceinline=True, fastmath=True)


def _compile(function: F, **options: bool | str) -> F:
    # numba picks the folder while it decorates; the user's own setting stays as it was.
    folder = _cache_folder(Path(function.__code__.co_filename).parent)
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(function, nogil=True, cache=True, **options)
    finally:
        config.CACHE_DIR = before


@cache
def _cache_folder(package: Path) -> Path:
    """A writable folder named after the sources of a package and of this one.

    numba itself looks at the file of a function, not at those it calls into.
    """
    digest = hashlib.sha256()
    for source in sorted({*Path(__file__).parent.glob("*.py"), *package.glob("*.py")}):
        digest.update(source.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    parents = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    parents += [Path(__file__).parent / "__pycache__", Path("~/.cache/ldl").expanduser()]
    for parent in parents:
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=parent / name):
                return parent / name
        except (OSError, RuntimeError):
            continue
    return Path(tempfile.mkdtemp(prefix=name))


_FOLDER = _cache_folder(Path(__file__).parent)
