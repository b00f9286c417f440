"""The meaning of a table's entry, in every file format: a number, the name of a group, or missing.

A number is real; True and False are 1 and 0. None, NaN, NaT and NA are missing. The fields of a CSV file are text:
:data:`NUMBER` is the pattern of a number there, and the words of :data:`MISSING` are missing. In other formats text is
never a number. Dates, durations, complex numbers, lists, nested arrays and other objects are not numbers. The name of a
group, and a category, is text, a number or a date, and none of the words of :data:`MISSING`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from ldl.errors import LDLError, explaining

MISSING = frozenset(("", "?", "nan", "-nan", "nat", "na", "n/a", "#n/a", "#na", "<na>", "null", "none"))
"""Lower-case words for a missing entry."""
TRUTH = {"true": 1.0, "false": 0.0}
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
"""A number in text: ASCII digits with a point. Python's ``float`` accepts more, such as ``2024_01`` and ``٣``."""
WHOLE = re.compile(r"-?[0-9]+(\.0+)?")
PADDED = re.compile(r"[+-]?0[0-9]")
MOST_DIGITS = 400
"""Largest power of ten that is written with all of its digits."""
LARGEST = 1e100
"""Largest magnitude of a number in a table. Larger numbers are typing errors, and their squares overflow."""
LARGEST_DENSE = 2**30
"""Largest number of entries of a sparse matrix that is converted to a dense one."""
CACHED_ROWS = 4096
"""Rows that are copied at a time from columns to a matrix."""
TEXT_FIX = "; convert text that is a number with .astype(float), encode other text"
FIX = {
    "U": TEXT_FIX,
    "S": TEXT_FIX,
    "M": "; give a number, such as the days since the first date",
    "m": "; give a number, such as seconds",
    "c": ": Complex data not supported, in scikit-learn's words; give real and imaginary parts as columns of their own",
}
"""Fix for an array that holds no numbers, by the kind of its dtype."""


class EntryError(LDLError, TypeError):
    """An entry whose type is not a number; scikit-learn expects a TypeError."""


def as_pandas(table: Any) -> Any:
    """Convert a frame or a column of polars or pyarrow, and an array with named fields, to pandas.

    Masked entries become missing (:func:`unmasked`). All else is returned unchanged.
    """
    if isinstance(table, np.ndarray) and table.dtype.names:
        import pandas

        return pandas.DataFrame({name: unmasked(np.ravel(table[name])) for name in table.dtype.names})
    return table.to_pandas() if hasattr(table, "to_pandas") else unmasked(table)


def unmasked(array: Any) -> Any:
    """Return a masked array of numpy or torch, or a list of them, as a plain one; return all else unchanged.

    Masked entries become NaN, and among other objects than numbers None. An array without masked entries keeps its
    type.
    """
    if isinstance(array, list | tuple):
        masked = any(isinstance(each, np.ma.MaskedArray | torch.masked.MaskedTensor) for each in array)
        return [unmasked(each) for each in array] if masked else array
    if isinstance(array, torch.masked.MaskedTensor):
        values, present = array.get_data(), array.get_mask()
        return values if present.all() else values.double().masked_fill(~present, torch.nan)
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return array.data
    missing: Any = np.nan if array.dtype.kind in "fiub" else None
    return np.where(np.ma.getmaskarray(array), missing, array.data)


def is_frame(table: Any) -> bool:
    """Return whether the object is a pandas data frame."""
    return hasattr(table, "columns") and hasattr(table, "iloc")


def column_names(table: Any) -> list[str] | None:
    """Return the column names of a data frame, a table of pyarrow or an array with named fields as text, else None."""
    if isinstance(table, np.ndarray | Tensor):
        return list(table.dtype.names) if isinstance(table, np.ndarray) and table.dtype.names else None
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    return None if names is None else [str(name) for name in names]


def is_numbered(names: Sequence[str] | None) -> bool:
    """Return whether names are 0, 1, 2, ... in this order, which pandas gives to columns without names."""
    return names is not None and list(names) == [str(number) for number in range(len(names))]


def check_distinct_names(names: Iterable[Any], source: str) -> None:
    """Raise LDLError if two columns of the table ``source`` have the same name."""
    if doubled := [name for name, count in Counter(names).items() if count > 1]:
        raise LDLError(f"{source}: column {str(doubled[0])!r} is there twice; give every column a name of its own")


def check_same_order(**tables: Any) -> None:
    """Raise LDLError if two pandas objects have the same index in different orders.

    Rows are matched by position, as in scikit-learn, and other indices are ignored.

    Args:
        **tables: The objects by their names in messages; those without an index do not count.
    """
    indices = {name: each.index for name, each in tables.items() if hasattr(each, "iloc")}
    first = next(iter(indices), "")
    for name, index in indices.items():
        reference = indices[first]
        if len(reference) != len(index) or reference.equals(index) or not (reference.is_unique and index.is_unique):
            continue
        if reference.isin(index).all():
            raise LDLError(
                f"{name} has the index of {first} in another order, and rows are matched by position; order it with "
                f"{name}.loc[{first}.index], or pass {name}.to_numpy() if the positions are right"
            )


def as_full(array: Any, name: str) -> Any:
    """Convert a sparse matrix or tensor to a dense one; return all else unchanged.

    Args:
        array: The object.
        name: Its name in messages.

    Raises:
        LDLError: The dense matrix would have more than 2^30 entries.
    """
    of_torch = isinstance(array, Tensor)
    if not (array.layout != torch.strided if of_torch else scipy.sparse.issparse(array)):
        return array
    if math.prod(array.shape) > LARGEST_DENSE:
        raise LDLError(f"{name} have shape {tuple(array.shape)}, {LARGEST_DENSE} numbers at most are read")
    return array.detach().to_dense() if of_torch else array.toarray()


def as_array(array: Any) -> np.ndarray:
    """Convert an array, a tensor or nested lists to an array, sparse ones to dense, and bfloat16 to float32.

    Raises:
        LDLError: Lists have unequal lengths, or the object is no array.
    """
    with explaining("inputs are no array", errors=(ValueError, TypeError, RuntimeError)):
        array = as_full(unmasked(array), "inputs")
        if isinstance(array, Tensor):
            array = array.detach().cpu()
            return (array.float() if array.dtype == torch.bfloat16 else array).numpy()
        return np.asarray(array)


def read_number(text: str) -> float:
    """Return the number in a field of a CSV file.

    A missing field gives NaN. Any other text, and a number beyond float64, gives infinity.
    """
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    return np.nan if text.lower() in MISSING else TRUTH.get(text.lower(), np.inf)


def map_distinct(function: Callable[[Any], Any], entries: Any) -> np.ndarray:
    """Return the result of a function for each entry of a column, (N,) object, computed once for equal entries.

    Args:
        function: The function, whose result depends on nothing but the entry.
        entries: N texts or other entries of one type, an array or a pandas column.
    """
    import pandas

    codes, distinct = pandas.factorize(np.asarray(entries, object), use_na_sentinel=False)
    results = np.empty(len(distinct), object)
    results[:] = list(map(function, distinct))
    return results[codes]


def as_matrix(frame: Any) -> np.ndarray:
    """Return a data frame of numbers as a matrix (N, columns), float64, in C order, without a copy on the way."""
    matrix = np.empty(frame.shape)
    columns = [column.to_numpy() for _, column in frame.items()]
    # The entries of a few rows stay in the processor's cache.
    for start in range(0, len(matrix), CACHED_ROWS):
        rows = slice(start, start + CACHED_ROWS)
        for position, column in enumerate(columns):
            matrix[rows, position] = column[rows]
    return matrix


def is_text(numbers: np.ndarray) -> bool:
    """Return whether most fields of a column are text, by their numbers (:func:`read_number`); gaps do not count."""
    return bool(2 * np.isinf(numbers).sum() > (~np.isnan(numbers)).sum())


def to_numbers(entries: Any, subject: str) -> np.ndarray:
    """Convert an array, or a pandas column, to float64 of the same shape, with NaN for missing entries.

    Args:
        entries: The entries; they may be infinite.
        subject: Their name in messages, such as ``t.npz: features are``.

    Raises:
        EntryError: An entry is not a number.
    """
    if not isinstance(entries, np.ndarray):
        plain = entries.dtype.kind in "fiub"
        entries = entries.to_numpy(np.float64, na_value=np.nan) if plain else entries.to_numpy(object)
    if (kind := entries.dtype.kind) in "fiub":
        return np.asarray(entries, np.float64)
    if kind != "O":
        raise EntryError(f"{subject} {entries.dtype}, not numbers{FIX.get(kind, '')}")
    return np.array([_number(entry, subject) for entry in entries.flat], np.float64).reshape(entries.shape)


def to_names(entries: Any, subject: str) -> np.ndarray:
    """Return the group of each row, (N,): numbers unchanged, all else as stripped text.

    Args:
        entries: An array of N entries, a pandas column, or a MATLAB cell array.
        subject: Their name in messages, such as ``t.npz: the group``.

    Raises:
        LDLError: A row's group is missing or not a name.
    """
    array = np.ravel(np.asarray(entries))
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "f":
        names, nameless = array, ~np.isfinite(array)
    else:
        texts = [_name(entry) for entry in array]
        names, nameless = np.array(texts, str), np.array([text.lower() in MISSING for text in texts], bool)
    if nameless.any():
        row = nameless.argmax()
        raise LDLError(
            f"{subject} of row {row} is missing or no name, {str(array[row])[:80]!r} ({nameless.sum()} such rows); "
            "give every row one, of its own where it belongs to none"
        )
    return names


def as_text(entry: Any) -> str:
    """Return the text of a category, numbers as text; empty if it is missing or cannot be one."""
    text = _name(entry)
    return "" if text.lower() in MISSING else text


def spelling(entry: Any, numeral: bool = False) -> str:
    """Return the one spelling of a label, a rater or an item; empty if it is missing.

    A number is a decimal with all of its digits, whatever its type: 1, 1.0 and ``Decimal("1.00")`` are ``1``. Text
    loses the blanks around it. Text of a whole number with a fraction of zeros, such as ``1.0``, is the number; other
    text stays, such as ``007`` and ``1.10``.

    Args:
        entry: Text, a number, a date or another object.
        numeral: Whether all text of a number is the number, such as ``.50``, ``+1`` and ``1e3``. Text with leading
            zeros, such as ``01``, stays.
    """
    if isinstance(entry, bytes):
        entry = entry.decode(errors="replace")
    if not isinstance(entry, str):
        return "" if _is_missing(entry) else _decimal(entry)
    text = entry.strip()
    if text.isdecimal():  # digits alone, of any script, stay
        return text
    return _plain(text) if (NUMBER if numeral else WHOLE).fullmatch(text) and not PADDED.match(text) else text


def is_date(entry: Any) -> bool:
    """Return whether an object is a date, or a period of pandas."""
    return (isinstance(entry, date | np.datetime64) or _is_period(entry)) and not _is_missing(entry)


def _is_period(entry: Any) -> bool:
    return type(entry).__name__ == "Period"


def _name(entry: Any) -> str:
    """Return the spelling of a group's name; empty if it is missing or not a name."""
    if isinstance(entry, np.ndarray) and entry.size == 1:
        return _name(entry.item())
    is_name = isinstance(entry, str | bytes) or _is_real(entry) or is_date(entry)
    return spelling(entry) if is_name else ""


def _decimal(entry: Any) -> str:
    """Return an object as text, and a number as a decimal: 1.0 becomes 1, as in a column of integers."""
    if isinstance(entry, bool) or not isinstance(entry, Real | Decimal) or not math.isfinite(entry):
        return str(entry).strip()
    return str(int(entry)) if entry == entry // 1 else _plain(str(entry))  # type: ignore[arg-type]


def _plain(text: str) -> str:
    """Return the text of a number without an exponent, zeros at its end, and a plus."""
    if text.isdecimal() or not NUMBER.fullmatch(text) or abs((number := Decimal(text)).adjusted()) > MOST_DIGITS:
        return text
    digits = format(number, "f")
    return "0" if number == 0 else digits.rstrip("0").rstrip(".") if "." in digits else digits


def _number(entry: Any, subject: str) -> float:
    if _is_missing(entry):
        return np.nan
    if not _is_real(entry):
        fix = TEXT_FIX if isinstance(entry, str | bytes) else _conversion_error(entry)
        raise EntryError(f"{subject} {type(entry).__name__} {str(entry)[:40]!r} and such, not numbers{fix}")
    try:
        return float(entry)
    except OverflowError:
        return np.inf


def _conversion_error(entry: Any) -> str:
    """Return Python's reason, which scikit-learn's conformance tests expect, and a fix."""
    if isinstance(entry, timedelta):
        return "; convert it with .dt.total_seconds()"
    try:
        float(entry)
    except TypeError as error:
        return f": {error}"
    return ""


def _is_missing(entry: Any) -> bool:
    """Return whether an object is None, NaN, or the NaT or NA of a library."""
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(entry, Real | Decimal | np.datetime64) and bool(entry != entry)


def _is_real(entry: Any) -> bool:
    return isinstance(entry, Real | Decimal | np.bool_) and not isinstance(entry, np.timedelta64)
