"""Options of heads, backbones and data sets: fields with their ranges, from which ``__init__`` is made.

    @options
    class Ridge(FittedHead):
        '''Linear regression.

        Args:
            penalty: Weight of the squared norm.
        '''

        penalty: float = option(default=1.0, least=0)
        weight: Tensor = buffer()

Every annotated name with a value is an option, in order, those of base classes first; its description stands under
``Args:`` of the class that declares it. A base's option that is given again without a type is fixed, and an option no
more; one that is given again as a plain default keeps its range. Where the default is None, so may be the value.
``__init__`` stores the options and calls ``__post_init__`` where there is one; :func:`check_options` holds them against
their ranges.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from ldl.errors import LDLError

C = TypeVar("C", bound=type)
OPTIONS = "__ldl_options__"


@dataclass(frozen=True)
class Option:
    """What is known of one option.

    Attributes:
        default: Its default, or ``inspect.Parameter.empty`` where one must be given.
        least: Smallest value, itself allowed.
        most: Largest value, itself allowed.
        above: Bound below, not allowed itself.
        below: Bound above, not allowed itself.
        what: What the number is, such as ``a share of the rows``, for messages.
        null: What None stands for, for messages.
        may_change: Whether a checkpoint may be resumed with another value.
        annotation: Its type; as text where it is imported for type checkers alone.
        module: Where it is declared, and the names of its type are known.
    """

    default: Any = inspect.Parameter.empty
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    what: str = ""
    null: str = ""
    may_change: bool = False
    annotation: Any = Any
    module: str = ""

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The members of a union type, or the one type."""
        return get_args(self.annotation) if get_origin(self.annotation) in (Union, UnionType) else (self.annotation,)

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a ``Literal`` type, and of bool beside one; none for others."""
        values = tuple(value for kind in self.kinds if get_origin(kind) is Literal for value in get_args(kind))
        return (False, True, *values) if values and bool in self.kinds else values

    @property
    def range(self) -> str:
        """What is accepted, in words; empty where everything is."""
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
        return " or ".join(words + [" and ".join(bounds)] * bool(bounds))

    def accepts(self, value: Any) -> bool:
        """Whether a value, or every entry of a sequence of numbers, is in the range; the type is not looked at.

        NaN and whole numbers of more than 64 bits are in no range, infinity in none but that of ``most=math.inf``.
        """
        bounded = any(bound is not None for bound in (self.least, self.most, self.above, self.below))
        if value is None:
            return type(None) in self.kinds or self.annotation is Any or isinstance(self.annotation, str)
        if self.choices and (value in self.choices or not bounded):
            return value in self.choices
        if _beyond(value) and value != self.most:
            return False
        if isinstance(value, Sequence) and not isinstance(value, str):
            return all(map(self.accepts, value)) if bounded else not any(map(_beyond, value))
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


def _beyond(value: Any) -> bool:
    """Whether a number is one that no compiled code can take."""
    return not math.isfinite(value) if isinstance(value, float) else isinstance(value, int) and abs(value) >= 2**63


def _text(number: Any) -> str:
    if isinstance(number, (str, bool)):
        return str(number) if isinstance(number, str) else str(number).lower()
    # Seeds are bounded by a power of two.
    bits = number.bit_length() if isinstance(number, int) else 0
    if bits > 20 and number in (2**bits - 1, 2 ** (bits - 1)):
        return f"2^{bits} - 1" if number == 2**bits - 1 else f"2^{bits - 1}"
    return str(number) if isinstance(number, int) else f"{number:g}"


def option(
    *,
    default: Any = inspect.Parameter.empty,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    what: str = "",
    null: str = "",
    may_change: bool = False,
    kw_only: bool = False,
) -> Any:
    """An option with a range; see :class:`Option`. ``kw_only`` tells type checkers of one that must be given."""
    return Option(default, least, most, above, below, what, null, may_change)


def buffer(*, init: Literal[False] = False) -> Any:
    """What is made later, such as a tensor by ``build``: declared for type checkers, no option."""
    return buffer


@dataclass_transform(field_specifiers=(option, buffer))
def options(cls: C) -> C:
    """Make ``__init__`` of a class from its options, as the module says."""
    found: dict[str, Option] = {}
    annotations = cls.__dict__.get("__annotations__", {})
    for base in reversed(cls.__mro__):
        # What a class gives without a type is fixed from there on.
        fixed = base.__dict__.keys() - (annotations.keys() if base is cls else ())
        found = {name: known for name, known in found.items() if name not in fixed} | base.__dict__.get(OPTIONS, {})
    scope = vars(sys.modules[cls.__module__]) | {cls.__name__: cls}
    for name, annotation in annotations.items():
        annotation = _resolved(annotation, scope)
        if name not in cls.__dict__ or get_origin(annotation) is ClassVar:
            continue
        given = cls.__dict__[name]
        # A module or a buffer of this name would be hidden by an attribute of the class.
        delattr(cls, name)
        if given is not buffer:
            given = given if isinstance(given, Option) else replace(found.get(name, Option()), default=given)
            if given.default is None and not isinstance(annotation, str):
                annotation = annotation | None
            found[name] = replace(given, annotation=annotation, module=cls.__module__)
    setattr(cls, OPTIONS, found)
    cls.__init__ = _make_init(cls, found)  # type: ignore[misc]
    return cls


def _resolved(annotation: Any, scope: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)  # as typing.get_type_hints does, which would stop at the first unknown name
    except NameError:
        return annotation


def _make_init(cls: type, found: dict[str, Option]) -> Any:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # As for keyword arguments with and without defaults: those that must be given come first.
    order = sorted(found, key=lambda name: found[name].default is not inspect.Parameter.empty)
    parameters = [own.replace(name=n, default=found[n].default, annotation=found[n].annotation) for n in order]
    signature = inspect.Signature([own, *parameters], return_annotation=None)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        base = next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__ and OPTIONS not in base.__dict__)
        base.__init__(self)  # type: ignore[misc]
        for name in found:
            setattr(self, name, bound.arguments[name])
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__annotations__ = {name: found[name].annotation for name in order} | {"return": None}
    # jsonargparse looks there for the types that are left as text.
    module = next((known.module for known in found.values() if isinstance(known.annotation, str)), cls.__module__)
    __init__.__module__, __init__.__qualname__ = module, f"{cls.__qualname__}.__init__"
    __init__.__doc__ = "Store the options."
    return __init__


def options_of(component: object) -> dict[str, Option]:
    """The options of an object, or a class, by name; none where its class has an ``__init__`` of its own."""
    cls = component if isinstance(component, type) else type(component)
    owner = next(base for base in cls.__mro__ if "__init__" in base.__dict__)
    return getattr(cls, OPTIONS, {}) if OPTIONS in owner.__dict__ else {}


def check_options(component: object) -> None:
    """Raise LDLError for the first option that is not in its range: its name, its value, what is accepted."""
    # Where a class of a user's has an ``__init__`` of its own, it has given these to that of its base.
    for name, known in getattr(component, OPTIONS, {}).items():
        value = getattr(component, name)
        if not known.accepts(value):
            what = f", {known.what}" if known.what else ""
            null = f", or null for {known.null}" if known.null else ""
            words = known.range or ("not null" if value is None else "finite")
            words += " and of at most 64 bits" if isinstance(value, int) and _beyond(value) else ""
            raise LDLError(f"{type(component).__name__}.{name} {value!r} must be {words}{what}{null}")
