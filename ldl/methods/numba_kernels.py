"""Numba decorators with a disk cache, and the small kernels that trees, edges and the DSNA solver share."""

# mypy: disable-error-code="assignment,return-value,call-overload"
# numba takes numpy's scalars for int and float.

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

config: Any = numba.config  # numba creates its attributes at run time
F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function with numba. It releases the interpreter's lock, and its machine code is cached on disk."""
    return _compile(function)


def compiled_as_numpy(function: F) -> F:
    """As :func:`compiled`, but division by 0 gives inf or NaN instead of an error, so that loops can be vectorised."""
    return _compile(function, error_model="numpy")


def inlined(function: F) -> F:
    """As :func:`compiled`, for a part of a hot loop that is inlined into its callers.

    A call that is not inlined counts references to its arrays with atomic instructions, on which threads contend.
    """
    return _compile(function, forceinline=True)


def inlined_fast(function: F) -> F:
    """As :func:`inlined`; sums may be reordered, so that they can be vectorised."""
    return _compile(function, forceinline=True, fastmath=True)


def _compile(function: F, **options: bool | str) -> F:
    # numba chooses the folder when it decorates, so the user's own setting is restored afterwards.
    folder = _cache_folder(Path(function.__code__.co_filename).parent)
    user_folder, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(function, nogil=True, cache=True, **options)
    finally:
        config.CACHE_DIR = user_folder


@cache
def _cache_folder(package: Path) -> Path:
    """Return a writable folder named by a hash of this file and of the sources of a package.

    numba's own cache checks only the file of a function, not the files of the functions that it calls.
    """
    digest = hashlib.sha256()
    for source in sorted({Path(__file__), *package.glob("*.py")}):
        digest.update(source.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    parents = [Path(config.CACHE_DIR)] if config.CACHE_DIR else []
    parents += [Path(__file__).parent / "__pycache__", Path("~/.cache/ldl").expanduser()]
    for parent in parents:
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=parent / name):  # the folder is writable
                return parent / name
        except (OSError, RuntimeError):
            continue
    return Path(tempfile.mkdtemp(prefix=name))


@inlined_fast
def dot(one: np.ndarray, two: np.ndarray) -> float:
    """Return the scalar product of two rows, in the dtype of the first."""
    total = one.dtype.type(0)
    for p in range(len(one)):
        total += one[p] * two[p]
    return total


@inlined_fast
def add_row(total: np.ndarray, row: np.ndarray, factor: float) -> None:
    """Add ``factor`` times a row to ``total``."""
    for p in range(len(total)):
        total[p] += factor * row[p]


@inlined
def midpoint(below: float, above: float) -> float:
    """Return the float32 half-way between two float32 values, with ``below`` <= result < ``above`` after rounding."""
    middle = np.float32(0.5 * (np.float64(below) + np.float64(above)))
    return middle if middle < above else below


@inlined
def partition(ids: np.ndarray, spare: np.ndarray, right: np.ndarray, lo: int, hi: int) -> int:
    """Partition ids[lo:hi] stably into left rows, then right rows, and return the index of the first right row.

    ``right`` holds 1 for each row number that goes right, else 0. ``spare`` is scratch memory of at least hi - lo
    entries. Every row is written to both sides, and only the side that it belongs to advances, so the loop has no
    branch.
    """
    left_end, right_count = lo, 0
    for i in range(lo, hi):
        row = ids[i]
        ids[left_end] = row
        spare[right_count] = row
        goes_right = np.int64(right[row])
        left_end += 1 - goes_right
        right_count += goes_right
    for i in range(right_count):
        ids[left_end + i] = spare[i]
    return left_end


@inlined
def next_bits(state: np.ndarray) -> int:
    """Return 64 random bits and advance ``state``, (1,) uint64 (splitmix64, Steele, Lea & Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def substream(state: np.ndarray, number: int) -> int:
    """Return the initial state of the independent random stream ``number``; ``state`` is unchanged."""
    return state[0] ^ (np.uint64(number + 1) * np.uint64(0xD1342543DE82EF95))


@inlined
def next_share(state: np.ndarray) -> float:
    """Return a random number in [0, 1) and advance ``state``."""
    return np.float64(next_bits(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def draw_next(order: np.ndarray, k: int, state: np.ndarray) -> int:
    """Return entry ``k`` of a random permutation: one step of a Fisher-Yates shuffle of ``order``, in place."""
    other = k + int(next_bits(state) % np.uint64(len(order) - k))
    order[k], order[other] = order[other], order[k]
    return order[k]
