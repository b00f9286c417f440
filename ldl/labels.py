"""What the labels of a distribution mean: names, values and unit, with encoding and decoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ldl.errors import LDLError

Decoder = Literal["expectation", "argmax", "median"]
Encoder = Literal["gaussian", "triangle"]
Kind = Literal["nominal", "ordinal", "grid"]
MOST_POINTS = 10**6
"""Of the grid in a file."""

MOST_LABELS = 100_000
"""Every row has an entry a label, and so has every leaf."""

LARGEST = 1e15
"""Values are squared and summed in float32, which ends at 3e38."""


@dataclass(frozen=True)
class LabelSpace:
    """The C labels that a distribution is spread over.

    Make one with :meth:`nominal`, :meth:`ordinal` or :meth:`grid`.

    Attributes:
        kind: ``nominal`` (names only), ``ordinal`` (a value on a line) or ``grid`` (a point in the plane).
        names: One name a label.
        axes: The values along each axis: none for nominal labels, one axis for ordinal ones, two for a
            grid, whose labels run row by row (the second axis fastest).
        unit: Unit of the values, for tables and charts.
        axis_names: What the axes of a grid are called in tables, such as pitch and yaw; empty for numbers.
        cells: Which points of the grid are labels, as rising numbers of its row by row order; None for all.
    """

    kind: Kind
    names: tuple[str, ...]
    axes: tuple[tuple[float, ...], ...] = ()
    unit: str = ""
    axis_names: tuple[str, ...] = ()
    cells: tuple[int, ...] | None = None

    @classmethod
    def nominal(cls, names: Sequence[str]) -> LabelSpace:
        """Labels without an order, such as emotions. Raises LDLError for none, too many or repeated names."""
        check_count(len(names))
        if not (texts := tuple(str(name) for name in names)) or len(set(texts)) != len(texts):
            raise LDLError(f"label names must be unique and at least one, got {list(names)!r}")
        return cls("nominal", texts)

    @classmethod
    def ordinal(cls, values: Sequence[float], unit: str = "") -> LabelSpace:
        """Labels on a line, such as ages. Raises LDLError unless ``values`` rise strictly."""
        axis = _rising(values)
        return cls("ordinal", _named([(value,) for value in axis]), (axis,), unit)

    @classmethod
    def grid(
        cls,
        first: Sequence[float],
        second: Sequence[float],
        unit: str = "",
        axis_names: Sequence[str] = (),
        only: Sequence[tuple[float, float]] | None = None,
    ) -> LabelSpace:
        """Labels on a plane, such as (pitch, yaw): every pair of the two rising axes, or some of them.

        Args:
            first: Values of the first axis.
            second: Values of the second axis.
            unit: Unit of both.
            axis_names: Two different names, or none.
            only: The pairs that are labels, in any order; None takes all.

        Raises:
            LDLError: an axis that does not rise strictly, a pair that is not on the axes or there twice, no pairs, or
                names that are not two.
        """
        axes = (_rising(first), _rising(second))
        check_count(len(axes[0]) * len(axes[1]))
        pairs = [(a, b) for a in axes[0] for b in axes[1]]
        if axis_names and len(set(axis_names)) != 2:
            raise LDLError(f"a grid has two axes, so axis_names must be two different names, got {list(axis_names)!r}")
        cells = None
        if only is not None:
            wanted = {(float(a), float(b)) for a, b in only}
            if unknown := sorted(wanted - set(pairs)):
                raise LDLError(f"the pair {unknown[0]} is not on the axes of the grid; remove it from only")
            if not wanted or len(wanted) != len(only):
                raise LDLError(f"only must name pairs of the grid once each and at least one, got {len(only)}")
            cells = tuple(number for number, pair in enumerate(pairs) if pair in wanted)
            pairs = [pairs[number] for number in cells]
        return cls("grid", _named(pairs), axes, unit, tuple(axis_names), cells)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_values(self) -> bool:
        """Whether labels have numbers, so that values can be encoded and decoded."""
        return bool(self.axes)

    @property
    def ndim(self) -> int:
        """Number of axes: 0 nominal, 1 ordinal, 2 grid."""
        return len(self.axes)

    @property
    def points(self) -> Tensor:
        """Values of the labels, (C, ndim), at least float32."""
        self._need_values("points")
        dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)  # 16 bits would round them
        points = torch.cartesian_prod(*(torch.tensor(axis, dtype=dtype) for axis in self.axes)).reshape(-1, self.ndim)
        return points if self.cells is None else points[list(self.cells)]

    def encode(self, value: Tensor, sigma: Tensor | float, encoder: Encoder = "gaussian") -> Tensor:
        """Turn values into distributions, renormalised after truncation to the labels.

        Args:
            value: (...,) for ordinal labels, (..., 2) for a grid, inside the range of the labels.
            sigma: Standard deviation of the Gaussian, or half the base of the triangle, in the labels'
                unit: one number, or one a sample, (...,). Must be positive.
            encoder: Shape of the distribution, as a function of the Euclidean distance to ``value``.

        Returns:
            (..., C), on the simplex. A triangle narrower than the label spacing may reach no label; such
            a sample gets the nearest one.

        Raises:
            LDLError: nominal labels, a value outside the range or NaN, or sigma not positive.
        """
        self._need_values("encode")
        value = torch.as_tensor(value)
        if not value.is_floating_point():
            value = value.float()
        sigma = torch.as_tensor(sigma, dtype=value.dtype, device=value.device)
        if not bool((sigma > 0).all()):
            raise LDLError(f"sigma must be positive, got {sigma[~(sigma > 0)].flatten()[0].item():g}")
        coordinates = value.unsqueeze(-1) if self.ndim == 1 else value
        self._check_range(coordinates)
        points = self.points.to(value)
        squared = (coordinates.unsqueeze(-2) - points).square().sum(-1)
        sigma = sigma.unsqueeze(-1) if sigma.ndim else sigma
        if encoder == "gaussian":
            return torch.softmax(-squared / (2 * sigma.square()), dim=-1)
        if encoder != "triangle":
            raise LDLError(f"unknown encoder {encoder!r}; one of {get_args(Encoder)}")
        mass = (1 - squared.sqrt() / sigma).clamp_min(0)
        nearest = torch.nn.functional.one_hot(squared.argmin(-1), len(self)).to(mass)
        mass = torch.where(mass.sum(-1, keepdim=True) > 0, mass, nearest)
        return mass / mass.sum(-1, keepdim=True)

    def decode(self, distribution: Tensor, decoder: Decoder = "expectation") -> Tensor:
        """Turn distributions into values.

        Args:
            distribution: (..., C), on the simplex.
            decoder: ``expectation``; ``argmax`` (value of the likeliest label); ``median`` (the lowest value
                with at least half the mass at or below it: the Bayes decision for the absolute error;
                on a grid the median of each axis' marginal).

        Returns:
            (...,) for ordinal labels, (..., 2) for a grid, in the labels' unit.
        """
        self._need_values("decode")
        points = self.points.to(distribution)
        if decoder == "expectation":
            value = (distribution.unsqueeze(-1) * points).sum(-2)  # autocast rounds products of matrices
        elif decoder == "argmax":
            value = points[distribution.argmax(-1)]
        elif decoder == "median":
            return self.quantile(distribution, 0.5)
        else:
            raise LDLError(f"unknown decoder {decoder!r}; one of {get_args(Decoder)}")
        return value.squeeze(-1) if self.ndim == 1 else value

    def quantile(self, distribution: Tensor, probability: float) -> Tensor:
        """The lowest values with at least ``probability``, in 0..1, of the mass at or below them.

        Args:
            distribution: (..., C), on the simplex.
            probability: Share of the mass; 0.5 is the median.

        Returns:
            (...,) for ordinal labels, (..., 2) for a grid, where each is that of an axis' marginal; labels' unit.
        """
        self._need_values("quantile")
        value = torch.stack([self._marginal_quantile(distribution, axis, probability) for axis in range(self.ndim)], -1)
        return value.squeeze(-1) if self.ndim == 1 else value

    def deviation(self, distribution: Tensor) -> Tensor:
        """Standard deviation of distributions (..., C), in the labels' unit: (...,), or along each axis (..., 2)."""
        self._need_values("deviation")
        points = self.points.to(distribution)
        from_mean = points - (distribution.unsqueeze(-1) * points).sum(-2, keepdim=True)
        value = (distribution.unsqueeze(-1) * from_mean.square()).sum(-2).sqrt()
        return value.squeeze(-1) if self.ndim == 1 else value

    def _marginal_quantile(self, distribution: Tensor, axis: int, probability: float) -> Tensor:
        shape = [len(values) for values in self.axes]
        if self.cells is not None:
            whole = distribution.new_zeros(*distribution.shape[:-1], math.prod(shape))
            whole[..., list(self.cells)] = distribution
            distribution = whole
        table = distribution.reshape(*distribution.shape[:-1], *shape)
        others = [dim - self.ndim for dim in range(self.ndim) if dim != axis]
        marginal = table.sum(others) if others else table
        # Rounding may leave the total of an exact half a hair short of it.
        enough = probability * marginal.sum(-1, keepdim=True) * (1 - 1e-6)
        index = (marginal.cumsum(-1) < enough).sum(-1).clamp_max(shape[axis] - 1)
        return torch.tensor(self.axes[axis], dtype=distribution.dtype, device=distribution.device)[index]

    def _check_range(self, coordinates: Tensor) -> None:
        for number, axis in enumerate(self.axes):
            along = coordinates[..., number]
            outside = ~((along >= axis[0]) & (along <= axis[-1]))
            if bool(outside.any()):
                bad = along[outside].flatten()[0].item()
                raise LDLError(
                    f"value {bad:g} is outside the labels {axis[0]:g} to {axis[-1]:g} {self.unit}".rstrip()
                    + "; widen the label space or drop the sample"
                )

    def _need_values(self, action: str) -> None:
        if not self.has_values:
            raise LDLError(f"{action} needs labels with values, but these are nominal: {', '.join(self.names[:5])}")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, as stored in checkpoints; :meth:`from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> LabelSpace:
        """Rebuild a label space from :meth:`to_dict`. Raises LDLError for what that cannot have given."""
        try:
            names, axes, cells = state["names"], state["axes"], state.get("cells")
            if state["kind"] == "nominal":
                made = cls.nominal(names)
            elif state["kind"] == "ordinal":
                (axis,) = axes
                made = cls.ordinal(axis, state["unit"])
            else:
                made = cls._grid_of(axes, cells, state["unit"], state.get("axis_names", ()))
            if len(set(names)) < len(names) == len(made):
                state = {**state, "names": made.names}  # they all had six digits once
            texts = isinstance(made.unit, str) and all(isinstance(name, str) for name in made.names + made.axis_names)
            if texts and made == cls(**{name: _tuples(value) for name, value in state.items()}):
                return made
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise LDLError(f"these are no labels: {' '.join(str(error).split())[:160]}") from None
        raise LDLError("these are no labels: their names do not fit their axes, or are no texts")

    @classmethod
    def _grid_of(cls, axes: list[list[float]], cells: list[int] | None, unit: str, names: Sequence[str]) -> LabelSpace:
        first, second = axes
        size = len(first) * len(second)
        if size > MOST_POINTS or any(not 0 <= cell < size for cell in cells or ()):
            raise LDLError(f"a grid of {size} points is too large, or has cells outside of it")
        only = None if cells is None else [(first[cell // len(second)], second[cell % len(second)]) for cell in cells]
        return cls.grid(first, second, unit, names, only)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def check_count(count: float, fix: str = "give fewer") -> None:
    """Raise LDLError for more than ``MOST_LABELS`` labels; ``fix`` says what makes them fewer."""
    if not count <= MOST_LABELS:
        raise LDLError(f"there would be {count:,.6g} labels, more than {MOST_LABELS:,}; {fix}")


def _named(points: Sequence[tuple[float, ...]]) -> tuple[str, ...]:
    """Names of six digits a number, or of the fewest more that tell all points apart; 17 do for any."""
    texts = (tuple(",".join(f"{value:.{digits}g}" for value in point) for point in points) for digits in range(6, 18))
    return next(names for names in texts if len(set(names)) == len(names))


def _rising(values: Sequence[float]) -> tuple[float, ...]:
    check_count(len(values))
    axis = tuple(float(value) for value in values)
    if not axis or not all(map(math.isfinite, axis)) or any(not low < high for low, high in zip(axis, axis[1:])):
        raise LDLError(f"label values must be finite, rise strictly and be at least one, got {list(values)[:8]!r}")
    if max(map(abs, axis)) > LARGEST or bool((np.diff(np.asarray(axis, np.float32)) <= 0).any()):
        raise LDLError(
            f"label values must be at most {LARGEST:g} and differ in float32, which has seven digits, got "
            f"{list(values)[:8]!r}; take values from a smaller one, or in another unit"
        )
    return axis
