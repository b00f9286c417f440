"""One option: its default, its range, its type, and its role."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from ldl.errors import LDLError

ROLES = {
    "path": "the file or folder of the instances",
    "fold": "which instances there are, and which of them are tested",
    "group": "the groups and sets of the instances, and so which of them are tested",
    "validation": "which instances are validated",
    "label": "the labels and targets of the instances",
    "feature": "the features of the instances",
    "training": "how instances are drawn, weighted and changed for training",
    "limit": "how many instances are measured",
    "start": "where training starts, which a resumed run takes from its checkpoint",
    "place": "where files are kept, which changes no result",
    "speed": "how fast a run is and how much memory it takes, which changes no result",
    "display": "what a run shows and writes, which changes no result",
    "": "anything else",
}
"""What an option decides. Runs, comparisons and searches treat options of one role alike, in every class."""

NEUTRAL = ("place", "speed", "display")
"""Roles of options that change no result."""


@dataclass(frozen=True)
class Option:
    """Default, range and type of an option.

    Attributes:
        default: Default value, or ``inspect.Parameter.empty`` for a required option.
        least: Smallest allowed value.
        most: Largest allowed value.
        above: Exclusive lower bound.
        below: Exclusive upper bound.
        what: Meaning of the number, such as ``a share of the rows``, for messages.
        null: Meaning of None, for messages.
        may_change: Whether a run may resume with another value.
        role: What the option decides, one of :data:`ROLES`.
        is_path: Whether the value is a path, in which ``~`` is the home of the user; true for the role ``path``.
        annotation: Type; a string if its import is only for type checkers.
        module: Module of the declaration, in which the names of the type are defined.
    """

    default: Any = inspect.Parameter.empty
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    what: str = ""
    null: str = ""
    may_change: bool = False
    role: str = ""
    is_path: bool = False
    annotation: Any = Any
    module: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise LDLError(f"role {self.role!r} must be one of {', '.join(filter(None, ROLES))}")
        if self.role == "path":
            object.__setattr__(self, "is_path", True)

    @property
    def kinds(self) -> tuple[Any, ...]:
        """Members of a union type, or the single type."""
        return get_args(self.annotation) if get_origin(self.annotation) in (Union, UnionType) else (self.annotation,)

    @property
    def choices(self) -> tuple[Any, ...]:
        """Values of a ``Literal`` type, and of bool beside a Literal; empty for other types."""
        values = tuple(value for kind in self.kinds if get_origin(kind) is Literal for value in get_args(kind))
        return (False, True, *values) if values and bool in self.kinds else values

    @property
    def range(self) -> str:
        """Description of the accepted values; empty if everything is accepted."""
        low, high = self.above if self.least is None else self.least, self.below if self.most is None else self.most
        words = [f"one of {', '.join(map(_text, self.choices))}"] if self.choices else []
        high = None if self.most == math.inf else high
        if low is not None and high is not None and high != math.inf:
            ends = "[" if self.above is None else "(", "]" if self.below is None else ")"
            inside = f"{ends[0]}{_text(low)}, {_text(high)}{ends[1]}"
            words.append(f"in {_text(low)}..{_text(high)}" if ends == ("[", "]") else f"in {inside}")
            return " or ".join(words)
        bounds = [] if low is None else [f"{'at least' if self.above is None else 'above'} {_text(low)}"]
        if high is not None:
            end = f"{'at most' if self.below is None else 'below'} {_text(high)}"
            bounds.append("finite" if high == math.inf else end)
        if bounds:
            words.append(" and ".join(bounds))
        return " or ".join(words)

    def accepts(self, value: Any) -> bool:
        """Return whether a value, or every entry of a sequence, is in the range; the type is not checked.

        NaN and integers of more than 64 bits are in no range. Infinity is only in a range with ``most=math.inf``.
        """
        bounded = any(bound is not None for bound in (self.least, self.most, self.above, self.below))
        if value is None:
            return type(None) in self.kinds or self.annotation is Any or isinstance(self.annotation, str)
        if self.choices and (value in self.choices or not bounded):
            return value in self.choices
        if exceeds_64_bits(value) and value != self.most:
            return False
        if isinstance(value, Sequence) and not isinstance(value, str):
            return all(map(self.accepts, value)) if bounded else not any(map(exceeds_64_bits, value))
        if not bounded or not isinstance(value, (Real, str)):
            return True
        if isinstance(value, str):
            return False
        number: Any = value
        return (
            (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


def exceeds_64_bits(value: Any) -> bool:
    """Return whether a number is not finite or has more than 64 bits, so that compiled code cannot take it."""
    return not math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and abs(value) >= 2**63


def _text(number: Any) -> str:
    """Return a bound or a choice as text; bounds near a large power of two as that power."""
    if isinstance(number, (str, bool)):
        return str(number) if isinstance(number, str) else str(number).lower()
    # Seeds are bounded by a power of two.
    bits = number.bit_length() if isinstance(number, int) else 0
    if bits > 20 and number in (2**bits - 1, 2 ** (bits - 1)):
        return f"2^{bits} - 1" if number == 2**bits - 1 else f"2^{bits - 1}"
    return str(number) if isinstance(number, int) else f"{number:g}"
